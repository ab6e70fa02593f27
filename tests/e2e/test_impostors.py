"""Servers that are not what they say: what dibs tells of them."""
# SPDX-License-Identifier: MIT
import socket
import threading

from support import PATIENCE, Case, main

UNAVAIL = 69


class Impostor:
    """Serves each connection by a function."""

    def __init__(self, case, serve):
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
            threading.Thread(target=self.attend, args=(conn,), daemon=True).start()

    def attend(self, conn):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.settimeout(PATIENCE)
        with conn:
            try:
                self.serve(self, conn)
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
        """What is told is what the last attempt met; so it is asked until the deadline does not cut that one off."""
        wanted = "the servers of the cluster refer to each other"
        server = Impostor(self, refer)
        said = ""
        for _ in range(20):
            result = self.dibs("--store-timeout", "1s", "--url", f"redis-cluster://127.0.0.1:{server.port}", "ping")
            said = result.stderr
            self.assertEqual(result.returncode, UNAVAIL, said)
            self.assertNotIn("slot -1", said)
            if wanted in said:
                break
        self.assertIn(wanted, said)


if __name__ == "__main__":
    main()
