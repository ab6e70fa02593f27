"""Clients that mean harm to `dibs serve`: slow, many, silent, oversized, ambiguous. `make load` runs it at length."""
# SPDX-License-Identifier: MIT
import json
import os
import re
import resource
import socket
import time

from runtools import PATIENCE, main, wait_until
from servetools import ServeCase

LOAD = bool(os.environ.get("DIBS_LOAD"))
SLOW, ADDRESSES = (5000, 80) if LOAD else (150, 5)
STREAMS = 1000 if LOAD else 40
IDLE = 10000 if LOAD else 300
CONNECTIONS = 4096 if LOAD else 128
HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"


def allow_files(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count <= hard or hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


class Threats(ServeCase):
    options = ("--connections-max", str(CONNECTIONS), "--access-log", "none", "--token-rate", "0")

    def setUp(self):
        allow_files(20000)
        self.open = []
        self.addCleanup(self.close_all)

    def close_all(self):
        for sock in self.open:
            sock.close()

    def connect_from(self, number):
        """From one of many addresses of this machine; the daemon may close it at any time."""
        sock = socket.create_connection(("127.0.0.1", self.daemon.port), PATIENCE,
                                        source_address=(f"127.0.{number // 200 + 1}.{number % 200 + 1}", 0))
        self.open.append(sock)
        return sock

    def resident(self):
        with open(f"/proc/{self.daemon.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def served(self, count=50):
        """Times of a normal client, all of whose requests are answered."""
        times = []
        for _ in range(count):
            began = time.monotonic()
            self.assertEqual(self.daemon.get("/livez", role=None).status, 200)
            times.append(time.monotonic() - began)
        return sorted(times)

    def judge_times(self, times):
        if LOAD:
            p99 = times[len(times) * 99 // 100]
            print(f"{self.id().rsplit('.', 1)[1]}: p99 of a normal client {p99 * 1000:.1f} ms", flush=True)

    def test_slow_head(self):
        for i in range(SLOW):
            sock = self.connect_from(i % ADDRESSES)
            try:
                sock.sendall(HEAD)
            except OSError:
                continue  # it had to make room
            if i % 50 == 0:
                self.served(1)
        self.judge_times(self.served(500 if LOAD else 50))

    def test_idle(self):
        before = self.resident()
        for i in range(IDLE):
            sock = self.connect_from(i % ADDRESSES)
            try:
                sock.sendall(HEAD + b"\r\n")
                sock.recv(4096)
            except OSError:
                continue
        self.judge_times(self.served())
        # A connection has 17 KiB at most, whatever else there is.
        self.assertLess(self.resident() - before, CONNECTIONS * 24 * 1024 + 16 * 1024 * 1024)

    def test_slow_reader(self):
        names = [self.name(f":{i}") for i in range(20)]
        for i in range(min(STREAMS, CONNECTIONS // 4)):
            sock = self.connect_from(i % ADDRESSES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                         + self.daemon.tokens["read"].encode() + b"\r\n\r\n")
        before = self.resident()
        for _ in range(30 if LOAD else 3):
            for name in names:
                lease = self.daemon.post("/v1/leases/" + name, {"ttl_ms": 60000, "label": "x" * 60}).json
                self.daemon.post(f"/v1/leases/{name}/release", {"token": lease["token"]})
        self.judge_times(self.served())
        # The ring is the only buffer: 4 MiB of frames, and 64 KiB at a time for each stream.
        self.assertLess(self.resident() - before, 16 * 1024 * 1024 + STREAMS * 80 * 1024)

    def status_of(self, request):
        """The status of raw bytes, 0 if there is none, and whether the connection ended."""
        sock = self.connect_from(0)
        try:
            sock.sendall(request)
            sock.shutdown(socket.SHUT_WR)
            text = b""
            while part := sock.recv(65536):
                text += part
        except OSError:
            text = b""
        return [int(part[:3]) for part in text.split(b"HTTP/1.1 ")[1:]]

    def test_oversized(self):
        host = b"Host: localhost\r\n"
        token = b"Authorization: Bearer " + self.daemon.tokens["admin"].encode() + b"\r\n"
        for request, statuses in (
                (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", [431]),
                (b"GET /livez HTTP/1.1\r\n" + host + b"X: " + b"a" * 20000 + b"\r\n\r\n", [431]),
                (b"GET /livez HTTP/1.1\r\n" + host + b"".join(b"X%d: 1\r\n" % i for i in range(2000)) + b"\r\n", [431]),
                (b"POST /v1/leases/x HTTP/1.1\r\n" + host + token + b"Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n",
                 [413])):
            with self.subTest(request[:60]):
                self.assertEqual(self.status_of(request), statuses)
        # Cookies of other programs on localhost.
        self.assertEqual(self.status_of(b"GET /livez HTTP/1.1\r\n" + host + b"Cookie: " + b"c" * 12 * 1024
                                        + b"\r\nConnection: close\r\n\r\n"), [200])
        self.assertEqual(self.daemon.get("/v1/locks", query={"q": "x" * 9000}).status, 200)

    def test_names_end_no_line_of_the_log(self):
        for control in ("\n", "\x1b", "\x7f", "\u0085", "\u009b"):
            for body, query in (({}, {"name": f"a{control}b"}), ({"reason": f"a{control}b"}, {"name": "a"})):
                self.assert_problem(self.daemon.post("/v1/breakers/~/trip", body, query=query), 400, "invalid")
        name = "a{\u202e\u2028\"x"
        reasons = ("two\\nlines", '","who":"nobody', "\u2028\u202eback")
        for reason in reasons:
            tripped = self.daemon.post("/v1/breakers/~/trip", {"reason": reason}, query={"name": name})
            self.assertEqual(tripped.status, 204, tripped.text)
        wait_until(lambda: [line["reason"] for line in self.daemon.log() if line.get("target") == name] == list(reasons), "the lines")
        with open(self.daemon.log_path, "rb") as file:
            raw = file.read()
        for line in raw.decode().split("\n")[:-1]:
            self.assertIsInstance(json.loads(line), dict, line)
        self.assertEqual(re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", raw.decode()), [])
        self.assertEqual({line["who"] for line in self.daemon.log() if line["event"] == "audit"}, {"admin"})

    def test_nothing_shows_a_secret(self):
        """Owners, sessions and tokens, in lists, metrics, the trail, events and the log."""
        name = self.name()
        lease = self.daemon.post("/v1/leases/" + name, {"ttl_ms": 60000}).json["token"]
        session = self.daemon.post("/v1/sessions", {"ttl_ms": 60000}).json["session"]
        wait_until(lambda: self.daemon.ask("PUT", f"/v1/sessions/{session}/leases/one", {"name": name + "-2"}).status == 201, "a lease")
        self.daemon.post(f"/v1/locks/{name}/yield", {})
        wait_until(lambda: self.daemon.get("/v1/locks", query={"prefix": name}).json["total"] == 2, "both in the look")
        paths = ["/metrics", "/v1/locks", "/v1/locks/" + name, f"/v1/locks/{name}/history", "/v1/waits", "/v1/stats", "/v1/audit",
                 "/v1/overview", "/v1/feed", "/v1/tokens", "/v1/whoami", "/version", "/v1/state", "/admin/locks/" + name]
        pages = {path: self.daemon.get(path).text for path in paths}
        pages["the log"] = self.daemon.log_text()
        hashes = [line.split("sha256:")[1][:64] for line in open(self.daemon.file, encoding="ascii") if "sha256:" in line]
        self.assertEqual(len(hashes), 3)
        for secret in (lease.split(":")[0], session, *self.daemon.tokens.values(), *hashes):
            for path, text in pages.items():
                self.assertNotIn(secret, text, path)
        self.assertIn(lease[:8], pages["/v1/locks/" + name])

    def test_smuggling(self):
        """A request whose end is not clear is refused, and nothing after it is taken for another."""
        inner = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for headers, body in ((b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
                              (b"Content-Length: 0\r\nContent-Length: 44\r\n", b""),
                              (b"Content-Length: +0\r\n", b""),
                              (b"Content-Length: 0, 0\r\n", b""),
                              (b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"),
                              (b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n"),
                              (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
                              (b"Transfer-Encoding: chunked\r\n", b"0x0\r\n\r\n"),
                              (b"Transfer-Encoding: chunked\r\n", b"0\n\r\n"),
                              (b"X: a\r\n b\r\n", b""),
                              (b"X: a\nContent-Length: 3\r\n", b"")):
            with self.subTest(headers):
                statuses = self.status_of(b"POST /v1/leases/x HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n" + headers
                                          + b"\r\n" + body + inner)
                self.assertEqual(len(statuses), 1, statuses)
                self.assertIn(statuses[0], (400, 501))
        wait_until(lambda: self.daemon.get("/livez").status == 200, "an answer after all of it")


if __name__ == "__main__":
    main()
