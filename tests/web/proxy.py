"""A proxy before the daemon that takes a prefix off the path of each request, or leaves it, and passes on all else as it is."""
# SPDX-License-Identifier: MIT
import re
import socket
import threading

from runtools import PATIENCE

__all__ = ["Proxy"]


class Proxy:
    """Listens on a port of its own until end()."""

    def __init__(self, port, strip=""):
        self.goal, self.strip = port, strip.encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open, self.threads = [], []
        self.begin(self.accept)

    def begin(self, work, *args):
        thread = threading.Thread(target=work, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.goal))
            except OSError:
                return
            self.open += [client, server]
            self.begin(self.pass_requests, client, server)
            self.begin(self.pass_on, server, client)

    @staticmethod
    def shut(*sockets):
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended already

    def pass_on(self, source, goal):
        try:
            while part := source.recv(65536):
                goal.sendall(part)
        except OSError:
            pass  # either side has ended, and so does the other
        self.shut(source, goal)

    def pass_requests(self, client, server):
        """One head after the other, each with the body that it announces."""
        rest = b""
        try:
            while True:
                while b"\r\n\r\n" not in rest:
                    part = client.recv(65536)
                    if not part:
                        return
                    rest += part
                head, rest = rest.split(b"\r\n\r\n", 1)
                length = re.search(rb"(?im)^content-length: *(\d+)", head)
                left = int(length[1]) if length else 0
                while len(rest) < left:
                    rest += client.recv(65536)
                if self.strip:
                    head = re.sub(rb"^(\S+) " + re.escape(self.strip), rb"\1 ", head, count=1)
                server.sendall(head + b"\r\n\r\n" + rest[:left])
                rest = rest[left:]
        except OSError:
            pass  # either side has ended
        finally:
            self.shut(client, server)

    def end(self):
        self.shut(self.listener, *self.open)
        self.listener.close()
        for thread in self.threads:
            thread.join(PATIENCE)
        for sock in self.open:
            sock.close()
