"""Servers that are not what they say: what dibs gives away to them, and what it tells."""
# SPDX-License-Identifier: MIT
import socket
import threading

from support import PATIENCE, Case, main

UNAVAIL = 69


class Impostor:
    """Serves each connection by a function, and keeps what it was told."""

    def __init__(self, case, serve):
        self.heard = b""
        self.threads = []
        self.serve = serve
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        case.addCleanup(self.close)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.socket.close()

    def run(self):
        while True:
            try:
                conn = self.socket.accept()[0]
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.attend, args=(conn,), daemon=True))
            self.threads[-1].start()

    def attend(self, conn):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.settimeout(PATIENCE)
        with conn:
            try:
                self.serve(self, conn)
                while part := conn.recv(4096):
                    self.heard += part
            except OSError:
                pass


def refer(server, conn):
    """A Redis server that is a cluster of one, and refers to itself for whatever is asked."""
    stream = conn.makefile("rb")
    whole = f"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:{server.port}\r\n$40\r\n{'a' * 40}\r\n"
    known = {b"CLUSTER": whole, b"CLIENT": "+OK\r\n", b"ROLE": "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"}
    while head := stream.readline():
        words = []
        for _ in range(int(head[1:])):
            words.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
        conn.sendall(known.get(words[0].upper(), f"-MOVED 5 127.0.0.1:{server.port}\r\n").encode())


class Clusters(Case):
    def test_no_slot_is_named_that_is_none(self):
        for verb in (["ping"], ["acquire", "x", "-n"], ["ls"]):
            with self.subTest(verb):
                server = Impostor(self, refer)
                result = self.dibs("--store-timeout", "1s", "--url", f"redis-cluster://127.0.0.1:{server.port}", *verb)
                self.assertEqual(result.returncode, UNAVAIL, result.stderr)
                self.assertNotIn("slot -1", result.stderr)
                self.assertRegex(result.stderr, "refer to each other|slot [0-9]+ of the cluster is being moved")


if __name__ == "__main__":
    main()
