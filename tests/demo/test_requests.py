"""Two hundred bad requests: each gets its answer, and nothing else is disturbed."""
# SPDX-License-Identifier: MIT
import socket
import threading

from demotools import PATIENCE, Cluster, DemoCase, main

NAME_MAX = 200

# Bodies of POST /update that are answered with 400.
BAD_BODIES = [
    b"{", b"}", b"[", b"nonsense", b"{'duration': 1}", b'{"duration": 1,}', b'{"duration": 01}', b'{"duration": +1}',
    b'{"duration": 1} x', b'{"duration": 1}{}', b'{"duration"}', b'{"duration": }', b'{duration: 1}', b'"text"', b"1",
    b"null", b"true", b"[]", b'[{"duration": 1}]', b" ", b"\x00", b"\xff\xfe", b'{"operationName": "\xc3"}',
    b'{"operationName": "\xed\xa0\x80"}', b'{"operationName": "\\ud800"}', b'{"operationName": "\\x"}',
    b'{"operationName": "a\nb"}', b'{"operationName": "unended', b'{"duration": 1, "duration": 2}',
    b"\xef\xbb\xbf{}", b"[" * 100, b'{"a":' * 100, b"{" + b",".join(b'"k%d":1' % i for i in range(300)) + b"}",
    b'{"duration": -1}', b'{"duration": -0.5}', b'{"duration": 0.5}', b'{"duration": 60001}', b'{"duration": 1e99}',
    b'{"duration": 1e999}', b'{"duration": 99999999999999999999}', b'{"duration": -9223372036854775809}',
    b'{"duration": "2000"}', b'{"duration": null}', b'{"duration": true}', b'{"duration": [1]}', b'{"duration": NaN}',
    b'{"operationName": 7}', b'{"operationName": ""}', b'{"operationName": null}', b'{"operationName": {}}',
    b'{"operationName": "' + b"x" * (NAME_MAX + 1) + b'"}', b'{"operationName": "a\\u0000b"}',
]

# What is not where it should be, or not asked for as it should be.
BAD_PLACES = [
    ("GET", "//", 404), ("GET", "/nope", 404), ("GET", "/status/", 404), ("GET", "//status", 404), ("GET", "/Status", 404),
    ("GET", "/status/1", 404), ("POST", "/updates", 404), ("DELETE", "/adss", 404), ("GET", "/..%2fstatus", 404),
    ("GET", "/%2e%2e/etc/passwd", 404), ("GET", "/" + "x" * 3000, 404), ("GET", "/%C3%A9", 404),
    ("GET", "/update", 405), ("PUT", "/update", 405), ("DELETE", "/update", 405), ("PATCH", "/update", 405),
    ("HEAD", "/update", 405), ("OPTIONS", "/update", 405), ("POST", "/status", 405), ("PUT", "/ads", 405),
    ("DELETE", "/ads", 405), ("POST", "/health", 405), ("POST", "/", 405), ("PUT", "/events", 405), ("BREW", "/status", 405), ("get", "/status", 405),
    ("GET", "/%", 400), ("GET", "/%zz", 400), ("GET", "/%00", 400), ("GET", "/%ff", 400), ("GET", "/status?%", 400),
    ("GET", "/status?a=%00", 400), ("GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", 400), ("OPTIONS", "*", 400),
]

ALLOW = {"/": "GET, HEAD", "/update": "POST", "/status": "GET, HEAD", "/ads": "GET, HEAD", "/health": "GET, HEAD",
         "/events": "GET, HEAD"}

# No HTTP, or not clearly so: refused and cut off.
GARBAGE = [
    b"\r\n\r\n\r\n\x00\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET /status HTTP/9.9\r\n\r\n",
    b"GET /status HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\x80\x2e\x01\x03\x01\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /status HTTP/1.1\r\nHost: localhost\r\nbroken\r\n\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"\x00" * 100 + b"\r\n\r\n",
]

SLOW = [
    b"", b"G", b"GET /status", b"GET /status HTTP/1.1\r\n", b"GET /status HTTP/1.1\r\nHost: local",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", b"POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    b"POST /update HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
]


def read_all(sock):
    """What comes until the end, which may be a reset."""
    got = b""
    try:
        while part := sock.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def status_of(text):
    return int(text.split(b" ", 2)[1]) if text else None


class BadRequests(DemoCase):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster(self, workers=2).await_ready()
        self.sent = 0

    def connect(self):
        self.sent += 1
        return socket.create_connection(("127.0.0.1", self.cluster.base + 1), timeout=PATIENCE)

    def raw(self, data):
        """Sends bytes on a connection of their own; all that comes back."""
        with self.connect() as sock:
            try:
                sock.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_all(sock)

    def refused(self, status, method, path, body=None, headers=None):
        self.sent += 1
        got, answer, head = self.cluster.ask(1, method, path, body, headers)
        self.assertEqual(got, status, (method, path, body, answer))
        if method != "HEAD":
            self.assertEqual(list(answer), ["success", "message"])
            self.assertIs(answer["success"], False)
            self.assertEqual(head["Content-Type"], "application/json")
        if status == 405:
            self.assertEqual(head["Allow"], ALLOW[path])

    def send_slowly(self, begin, answers):
        with self.connect() as sock:
            sock.sendall(begin)
            answers.append((begin, read_all(sock)))

    def drip(self, answers):
        """A byte every now and then, for longer than is allowed."""
        text = b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"y" * 1000
        with self.connect() as sock:
            sock.settimeout(0.05)
            for i in range(len(text)):
                try:
                    sock.sendall(text[i : i + 1])
                    got = sock.recv(65536)
                except TimeoutError:
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    break
                answers.append(("drip", got))
                break

    def test_two_hundred(self):
        # The slow ones are slow; the others are sent meanwhile.
        answers = []
        slow = [threading.Thread(target=self.send_slowly, args=(begin, answers)) for begin in SLOW * 2]
        slow += [threading.Thread(target=self.drip, args=(answers,)) for _ in range(4)]
        ends = []
        garbage = [threading.Thread(target=lambda data=data: ends.append((data, self.raw(data)))) for data in GARBAGE * 2]
        for thread in slow + garbage:
            thread.start()
        for body in BAD_BODIES:
            self.refused(400, "POST", "/update", body)
            self.refused(400, "POST", "/update", iter([body[:1], body[1:]]))  # in chunks
        for method, path, status in BAD_PLACES * 2:
            self.refused(status, method, path)
        for size in (16 * 1024 + 1, 100 * 1024, 3 * 1024 * 1024):
            self.refused(413, "POST", "/update", b" " * size)
            self.refused(413, "POST", "/update", (b" " * 1000 for _ in range(size // 1000 + 1)))
        for data in (b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 60000 + b"\r\n\r\n",
                     b"GET /" + b"y" * 60000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /status HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(200))
                     + b"Connection: close\r\n\r\n"):
            self.assertIn(status_of(self.raw(data)), (413, 414, 431), data[:60])
        self.check_pages_of_others()
        self.check_pipelined_garbage()
        self.check_the_cluster_is_well()
        for thread in slow + garbage:
            thread.join()
        self.assertGreaterEqual(self.sent, 200)
        self.assertEqual(len(ends), len(garbage))
        for data, got in ends:
            self.assertIn(status_of(got), (400, 505), data)
            self.assertIn(b'{"success":false,"message":"The request is not valid: ', got)
        self.assertEqual(len(answers), len(slow))
        for begin, got in answers:
            self.assertEqual(status_of(got), 408, begin)
        self.check_the_cluster_is_well()
        self.assertEqual(self.cluster.events("worker_died"), [])
        self.assertEqual(self.cluster.get(1, "/status")[1]["processId"], self.cluster.events("http_started", worker=1)[0]["pid"])
        self.assertLess(self.cluster.stop(), 5)

    def check_pages_of_others(self):
        """What a browser sends for a page of another origin changes nothing."""
        done = len(self.cluster.events("value_after"))
        here = f"http://127.0.0.1:{self.cluster.base + 1}"
        json_type = {"Content-Type": "application/json"}
        for status, headers in (
            (403, {"Origin": "http://elsewhere.example"}), (403, {"Origin": "null"}), (403, {"Sec-Fetch-Site": "cross-site"}),
            (403, {"Sec-Fetch-Site": "same-site", "Origin": here}), (421, {"Host": "rebound.example"}),
        ):
            for body in (None, b'{"duration": 1}'):
                self.refused(status, "POST", "/update", body, {**json_type, **headers})
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
            self.refused(415, "POST", "/update", b'{"duration": 1}', {"Content-Type": kind})
        self.assertEqual(len(self.cluster.events("value_after")), done)
        # One of its own, and a program that sends no body, may.
        for headers in ({}, {**json_type, "Origin": here, "Sec-Fetch-Site": "same-origin"}):
            body = b'{"duration": 1}' if headers else None
            self.assertEqual(self.cluster.ask(1, "POST", "/update", body, headers)[0], 200)

    def check_pipelined_garbage(self):
        """What comes before the garbage is answered."""
        good = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        update = b'POST /update HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"duration": 1}'
        for data, count in ((good * 5 + b"nonsense\r\n\r\n", 5), (good + update + good + b"\x00\r\n\r\n", 3),
                            (update * 3 + b"GET\r\n\r\n" + update, 3)):
            self.assertEqual(self.raw(data).count(b"HTTP/1.1 200 OK"), count, data)

    def check_the_cluster_is_well(self):
        """Requests among the bad ones are served, and none has left anything."""
        done = len(self.cluster.events("value_after"))
        for worker in (1, 2):
            status, body = self.cluster.update(worker, operationName="Good", duration=1)
            self.assertEqual((status, body["data"]["name"]), (200, f"Good by Worker {worker}"))
        self.assertEqual(self.cluster.get(2, "/ads")[1]["data"], body["data"])
        self.cluster.await_events("value_after", done + 2)
        self.check_no_overlap(self.cluster)


if __name__ == "__main__":
    main()
