"""Servers that are not what they say: what dibs gives away to them, and what it tells."""
# SPDX-License-Identifier: MIT
import secrets
import socket
import struct
import threading

from runtools import NotInTime, free_base
from support import PATIENCE, Case, main, span

DENIED, UNAVAIL = 77, 69
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


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

    def told(self):
        """All that it was told, once those who told it are gone."""
        for thread in self.threads:
            thread.join(PATIENCE)
        return self.heard

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

    def read(self, conn, size):
        got = b""
        while len(got) < size:
            part = conn.recv(size - len(got))
            if not part:
                raise OSError("the end")
            got += part
        self.heard += got
        return got


def proof(code, more=b""):
    """A server's question for proof of who asks."""
    return b"R" + struct.pack("!II", 8 + len(more), code) + more


CLEAR_TEXT = proof(3)
SCRAM = proof(10, b"SCRAM-SHA-256\0\0")


def startup(server, conn, refusal=b"N"):
    """Reads what a client begins with; questions for encryption are answered with the refusal."""
    while True:
        size, code = struct.unpack("!II", server.read(conn, 8))
        server.read(conn, size - 8)
        if code not in (SSL_REQUEST, GSS_REQUEST):
            return
        conn.sendall(refusal)


def at_once(server, conn):
    startup(server, conn)
    conn.sendall(CLEAR_TEXT)


def in_pieces(server, conn):
    startup(server, conn)
    for at in range(len(CLEAR_TEXT)):
        conn.sendall(CLEAR_TEXT[at : at + 1])


def with_the_refusal(server, conn):
    startup(server, conn, b"N" + CLEAR_TEXT)


def after_another_question(server, conn):
    startup(server, conn)
    conn.sendall(SCRAM)
    server.read(conn, 5)
    conn.sendall(CLEAR_TEXT)


def with_another_question(server, conn):
    startup(server, conn)
    conn.sendall(SCRAM + CLEAR_TEXT)


def within_another_question(server, conn):
    """One that says to be longer than its kind is. libpq goes on behind the salt, where the next one is hidden."""
    startup(server, conn)
    conn.sendall(proof(5, b"salt" + CLEAR_TEXT))


def after_being_let_in(server, conn):
    """The first says that it is a standby, so that the second is asked, which is this one again."""
    startup(server, conn)
    server.turn = getattr(server, "turn", 0) + 1
    if server.turn % 2 == 0:
        conn.sendall(CLEAR_TEXT)
        return
    status = b"".join(b"S" + struct.pack("!I", 4 + len(pair)) + pair
                      for pair in (b"server_version\x0015.0\0", b"in_hot_standby\0on\0",
                                   b"default_transaction_read_only\0on\0"))
    conn.sendall(proof(0) + status + b"Z" + struct.pack("!I", 5) + b"I")


class ClearText(Case):
    def setUp(self):
        super().setUp()
        self.mark = "mark" + secrets.token_hex(12)

    def url(self, server, hosts=1, params=""):
        place = ",".join([f"127.0.0.1:{server.port}"] * hosts)
        return f"postgres://somebody:{self.mark}@{place}/db{params}"

    def test_nobody_is_given_a_password_in_clear_text(self):
        for serve in (at_once, in_pieces, with_the_refusal, after_another_question, with_another_question):
            for mode in ("", "?sslmode=disable", "?sslmode=prefer", "?sslmode=allow"):
                if serve is with_the_refusal and mode.endswith(("disable", "allow")):
                    continue
                with self.subTest((serve.__name__, mode)):
                    server = Impostor(self, serve)
                    result = self.dibs("--url", self.url(server, params=mode), "ping")
                    self.assertNotIn(self.mark.encode(), server.told())
                    self.assertEqual(result.returncode, DENIED, result.stderr)
                    self.assertIn("asked for the password in clear text on a connection without TLS", result.stderr)
                    self.assertIn("sslmode=verify-full", result.stderr)

    def test_no_question_is_hidden_in_another(self):
        server = Impostor(self, within_another_question)
        result = self.dibs("--url", self.url(server, params="?sslmode=disable"), "ping")
        self.assertNotIn(self.mark.encode(), server.told())
        self.assertEqual(result.returncode, UNAVAIL, result.stderr)
        self.assertIn("a request for a password that cannot be", result.stderr)

    def test_nor_is_the_second_host(self):
        server = Impostor(self, after_being_let_in)
        result = self.dibs("--url", self.url(server, hosts=2), "ping")
        self.assertNotIn(self.mark.encode(), server.told())
        self.assertEqual(result.returncode, DENIED, result.stderr)
        self.assertGreaterEqual(server.turn, 2)

    def test_who_allows_it_sends_it(self):
        server = Impostor(self, at_once)
        result = self.dibs("--store-timeout", span(1), "--url", self.url(server, params="?cleartext=1"), "ping")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(self.mark.encode(), server.told())


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


class Quorums(Case):
    """What fails is counted by reason, with the names of the servers if they fit, and never a part of one."""

    def ask(self, *servers, late):
        """`late` closed ports that seem to be silent are too many: a busy machine may be late to be refused."""
        limit = span(0.3)
        url = f"redlock://{','.join(servers)}?node_timeout={limit}"
        said = self.fails(UNAVAIL, "--store-timeout", limit, "--url", url, "run", "-n", "x", "--", "true")
        if f"{late} timed out" in said:
            raise NotInTime(said)
        return said

    def test_reasons_are_counted(self):
        closed = f"127.0.0.1:{free_base(1) + 1}"
        silent = [f"127.0.0.1:{Impostor(self, lambda server, conn: None).port}" for _ in range(2)]
        self.assertIn(
            f"3 of 3 servers did not agree: 1 refused the connection ({closed}), 2 timed out ({', '.join(silent)})\n",
            self.ask(closed, *silent, late=3),
        )

    def test_no_name_is_cut(self):
        base = free_base(9)
        self.assertRegex(
            self.ask(*(f"[0:0:0:0:0:ffff:7f00:1]:{base + i}" for i in range(1, 10)), late=""),
            r": [5-9] of 9 servers did not agree: [5-9] refused the connection\n$",
        )


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
