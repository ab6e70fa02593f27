"""Ways to `dibs serve`: TLS, several listeners, sockets in the file system and of the service manager, proxies, limits."""
# SPDX-License-Identifier: MIT
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import warnings

from runtools import DIBS, PATIENCE, NotInTime, main, wait_until
from servetools import URL, Answer, Daemon, ServeCase

# A program that hands listening sockets on as a service manager does.
ACTIVATE = """
import os, socket, sys
socks = [socket.socket(), socket.socket()]
for i, sock in enumerate(socks):
    sock.bind(("127.0.0.1", 0))
    sock.listen()
for i, sock in enumerate(socks):
    os.dup2(sock.fileno(), 10 + i)
for i in range(2):
    os.dup2(10 + i, 3 + i, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="api:metrics")
os.execv(sys.argv[1], sys.argv[1:])
"""


def ask_on(connection, method, path, token=None, body=None, headers=None):
    sent = dict(headers or {})
    if token:
        sent["Authorization"] = "Bearer " + token
    if body is not None:
        sent["Content-Type"] = "application/json"
    connection.request(method, path, body=body, headers=sent)
    return Answer(connection.getresponse())


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE)


class Certificates:
    """An authority, and certificates of it."""

    def __init__(self, folder):
        self.folder = folder
        self.authority("ca")
        self.authority("other")

    def path(self, name):
        return f"{self.folder}/{name}"

    def authority(self, name):
        # Clients of Python 3.13 want an authority that says what its key is for.
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-addext",
                "keyUsage=critical,keyCertSign,cRLSign", "-subj", "/CN=" + name, "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"))

    def issue(self, name, common, authority="ca", into=None):
        into = into or name
        with open(self.path("ext"), "w", encoding="utf-8") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + common, "-keyout",
                self.path(into + ".key"), "-out", self.path("csr"))
        openssl("x509", "-req", "-in", self.path("csr"), "-CA", self.path(authority + ".pem"), "-CAkey",
                self.path(authority + ".key"), "-CAcreateserial", "-days", "2", "-extfile", self.path("ext"), "-out",
                self.path(into + ".pem"))


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dibs-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.certs = Certificates(cls.folder)
        cls.certs.issue("server", "first")
        cls.certs.issue("client", "operate")
        cls.certs.issue("stranger", "stranger")
        cls.certs.issue("forged", "admin", authority="other")
        cls.daemon = Daemon("--tls-cert", cls.certs.path("server.pem"), "--tls-key", cls.certs.path("server.key"),
                            "--tls-client-ca", cls.certs.path("ca.pem"), url=URL)
        cls.addClassCleanup(cls.end_daemon)

    @classmethod
    def end_daemon(cls):
        code = cls.daemon.end()
        if code:
            raise AssertionError(f"the daemon ended with {code}: {cls.daemon.last_log[-4000:]}")

    def context(self, client=None):
        context = ssl.create_default_context(cafile=self.certs.path("ca.pem"))
        if client:
            context.load_cert_chain(self.certs.path(client + ".pem"), self.certs.path(client + ".key"))
        return context

    def connect(self, context=None):
        return http.client.HTTPSConnection("127.0.0.1", self.daemon.port, timeout=PATIENCE,
                                           context=context or self.context())

    def certificate(self, connection):
        return dict(part[0] for part in connection.sock.getpeercert()["subject"])["commonName"]

    def test_requests(self):
        connection = self.connect()
        for _ in range(3):  # on one connection
            self.assertEqual(ask_on(connection, "GET", "/v1/whoami", self.daemon.tokens["read"]).json["name"], "read")
        self.assertEqual(ask_on(connection, "GET", "/v1/whoami").status, 401)
        value = os.urandom(700 * 1024).hex().encode()[:1000 * 1000]
        put = ask_on(connection, "PUT", "/v1/state/big", self.daemon.tokens["operate"], body=value)
        self.assertEqual(put.status, 200, put.text)
        self.assertEqual(ask_on(connection, "GET", "/v1/state/big", self.daemon.tokens["read"]).text.encode(), value)
        connection.close()

    def test_two_requests_in_one_record(self):
        with self.context().wrap_socket(socket.create_connection(("127.0.0.1", self.daemon.port), PATIENCE),
                                        server_hostname="localhost") as sock:
            sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2
                         + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b""
            while part := sock.recv(65536):
                text += part
        self.assertEqual(text.count(b"HTTP/1.1 200 OK"), 3, text)

    def test_old_versions_and_plain_text_are_refused(self):
        old = self.context()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.connect(old).request("GET", "/livez")
        plain = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=PATIENCE)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            ask_on(plain, "GET", "/livez")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            self.assertEqual(ask_on(self.connect(context), "GET", "/livez").status, 200)

    def test_handshakes_of_one_address(self):
        own = self.connect()

        def refused():
            page = ask_on(own, "GET", "/metrics", self.daemon.tokens["read"]).text
            return int(page.split('dibs_http_refused_total{why="handshakes"} ')[1].split()[0])

        self.assertEqual(refused(), 0)
        # More than may begin at once, sooner than they are allowed anew.
        for _ in range(1000):
            socket.create_connection(("127.0.0.1", self.daemon.port), PATIENCE, source_address=("127.0.0.9", 0)).close()
        wait_until(refused, "the end of the quota")
        # Others go on.
        self.assertEqual(ask_on(self.connect(), "GET", "/livez").status, 200)

    def test_the_rate_of_handshakes_is_read_again(self):
        path = self.certs.path("rates.yaml")

        def write(rate):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"serve:\n  handshake_rate: {rate}\n")

        def connect():
            return http.client.HTTPSConnection("127.0.0.1", daemon.port, timeout=PATIENCE, context=self.context())

        def refused():
            page = ask_on(own, "GET", "/metrics", daemon.tokens["read"]).text
            return int(page.split('dibs_http_refused_total{why="handshakes"} ')[1].split()[0])

        def come_often():
            for _ in range(300):
                socket.create_connection(("127.0.0.1", daemon.port), PATIENCE, source_address=("127.0.0.9", 0)).close()
            # One that came after them has an answer.
            self.assertEqual(ask_on(connect(), "GET", "/livez").status, 200)

        write(0)
        daemon = Daemon("--config", path, "--tls-cert", self.certs.path("server.pem"), "--tls-key", self.certs.path("server.key"), url=URL)
        self.addCleanup(daemon.end)
        own = connect()
        come_often()
        self.assertEqual(refused(), 0)
        write(1)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded")
        come_often()
        wait_until(refused, "the end of the quota")

    def test_client_certificates(self):
        who = ask_on(self.connect(self.context("client")), "GET", "/v1/whoami")
        self.assertEqual((who.json["name"], who.json["role"]), ("operate", "operate"))
        # Its role holds, and a token counts before it.
        self.assertEqual(ask_on(self.connect(self.context("client")), "GET", "/v1/tokens").status, 403)
        self.assertEqual(ask_on(self.connect(self.context("client")), "GET", "/v1/whoami",
                                self.daemon.tokens["read"]).json["name"], "read")
        # No token has this name; and this authority is not known.
        self.assertEqual(ask_on(self.connect(self.context("stranger")), "GET", "/v1/whoami").status, 401)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            ask_on(self.connect(self.context("forged")), "GET", "/v1/whoami")

    def test_cert_changes_under_streams(self):
        stream = self.connect()
        stream.request("GET", "/v1/events?topics=locks&prefix=tls-stream",
                       headers={"Authorization": "Bearer " + self.daemon.tokens["read"]})
        events = stream.getresponse()
        self.assertEqual(events.readline(), b"retry: 2000\n")
        self.assertEqual(self.certificate(stream), "first")
        reloads = len([line for line in self.daemon.log() if line["event"] == "reloaded"])
        self.certs.issue("server", "second")
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.await_event("reloaded", reloads + 1)
        new = self.connect()
        new.connect()
        self.assertEqual(self.certificate(new), "second")
        # A bad file changes nothing.
        with open(self.certs.path("server.pem"), "w", encoding="utf-8") as file:
            file.write("no certificate\n")
        self.daemon.process.send_signal(signal.SIGHUP)
        failed = self.daemon.await_event("reload_failed")
        self.assertIn("certificate", failed["message"])
        again = self.connect()
        again.connect()
        self.assertEqual(self.certificate(again), "second")
        # Nor does an authority's that has a second, broken one.
        self.certs.issue("server", "first")
        with open(self.certs.path("ca.pem"), "r+", encoding="utf-8") as file:
            whole = file.read()
            file.write("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
        self.daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("authority", self.daemon.await_event("reload_failed", 2)["message"])
        with open(self.certs.path("ca.pem"), "w", encoding="utf-8") as file:
            file.write(whole)
        self.assertEqual(self.daemon.dibs("acquire", "tls-stream", "-n", "--ttl", "60s").returncode, 0)
        wait_until(lambda: b"tls-stream" in events.readline(), "the event on the stream of before")
        stream.close()
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.await_event("reloaded", reloads + 2)


class Listeners(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dibs-ways-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.path = cls.folder + "/serve.sock"
        cls.daemon = Daemon("--listen", f"127.0.0.1:0,127.0.0.2:0,unix:{cls.path}", "--metrics-listen", "127.0.0.1:0",
                            "--trusted-proxies", "127.0.0.1,10.0.0.0/8", "--socket-mode", "0660", "--token-rate", "20", url=URL)
        cls.addClassCleanup(cls.end_daemon)
        cls.lines = [line for line in cls.daemon.log() if line["event"] == "listening"]

    @classmethod
    def end_daemon(cls):
        code = cls.daemon.end()
        if code:
            raise AssertionError(f"the daemon ended with {code}: {cls.daemon.last_log[-4000:]}")
        if os.path.exists(cls.path):
            raise AssertionError("the daemon has left its socket behind")

    def on_socket(self):
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(PATIENCE)
        connection.sock.connect(self.path)
        return connection

    def on_port(self, purpose, host="127.0.0.1", source=None):
        port = [line["port"] for line in self.lines if line["for"] == purpose and line["at"].startswith(host)][0]
        return http.client.HTTPConnection(host, port, timeout=PATIENCE, source_address=source and (source, 0))

    def test_several_addresses(self):
        self.assertEqual([line["for"] for line in self.lines], ["api", "api", "socket", "metrics"])
        for host in ("127.0.0.1", "127.0.0.2"):
            answer = ask_on(self.on_port("api", host), "GET", "/v1/whoami", self.daemon.tokens["read"])
            self.assertEqual(answer.json["name"], "read")

    def test_socket_in_the_file_system(self):
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o660)
        who = ask_on(self.on_socket(), "GET", "/v1/whoami").json
        self.assertEqual((who["name"], who["role"]), (f"uid-{os.geteuid()}", "admin"))
        by_token = ask_on(self.on_socket(), "GET", "/v1/whoami", self.daemon.tokens["read"]).json
        self.assertEqual((by_token["name"], by_token["role"]), ("read", "read"))
        self.assertEqual(ask_on(self.on_socket(), "GET", "/v1/whoami", headers={"Host": "evil.example"}).status, 421)

    def test_a_second_daemon_does_not_take_the_socket(self):
        second = subprocess.run([DIBS, "serve", "--listen", "unix:" + self.path, "--tokens", self.daemon.file],
                                env=self.daemon.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=PATIENCE, check=False)
        self.assertEqual(second.returncode, 75, second.stdout)
        self.assertEqual(ask_on(self.on_socket(), "GET", "/livez").status, 200)

    def test_the_next_daemon_keeps_the_socket(self):
        """It takes the path as soon as nobody accepts there, while the one before still sends an answer."""
        path = self.folder + "/next.sock"
        first = Daemon("--listen", f"127.0.0.1:0,unix:{path}", "--drain-within", "10m")
        self.addCleanup(first.end)
        for _ in range(8):
            self.assertEqual(first.post("/v1/topics/many", {"data": "x" * 65536}).status, 201)
        with socket.socket(socket.AF_UNIX) as slow:
            slow.connect(path)
            slow.sendall(b"GET /v1/topics/many/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(slow.recv(8), b"HTTP/1.1")
            first.process.terminate()
            wait_until(lambda: not os.path.exists(path) or self.refused(path), "the end of the socket")
            second = Daemon("--listen", f"127.0.0.1:0,unix:{path}")
            self.addCleanup(second.end)
            if first.process.poll() is not None:
                raise NotInTime("the first daemon ended before the second one was there")
        first.process.wait(PATIENCE)
        self.assertTrue(os.path.exists(path))
        self.assertFalse(self.refused(path))

    @staticmethod
    def refused(path):
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(path) != 0

    def test_metrics_without_a_token(self):
        for path in ("/metrics", "/livez", "/readyz"):
            self.assertEqual(ask_on(self.on_port("metrics"), "GET", path).status, 200, path)
        for path in ("/v1/whoami", "/v1/locks", "/healthz", "/version", "/openapi.json"):
            answer = ask_on(self.on_port("metrics"), "GET", path, self.daemon.tokens["admin"])
            self.assertEqual(answer.status, 404, path)

    def test_metrics_token_is_its_own(self):
        self.assertEqual(ask_on(self.on_port("api"), "GET", "/metrics").status, 401)

    def address_of(self, request, *lines):
        """The address in the log of a request to the first listener, whose peer is a trusted proxy."""
        connection = self.on_port("api")
        connection.putrequest("GET", "/v1/whoami")
        for name, value in (("Authorization", "Bearer " + self.daemon.tokens["operate"]), ("X-Request-Id", request), *lines):
            connection.putheader(name, value)
        connection.endheaders()
        self.assertEqual(Answer(connection.getresponse()).status, 200)
        return wait_until(lambda: [line["from"] for line in self.daemon.log() if line.get("request") == request],
                          "the line of the request")[0]

    def test_clients_behind_proxies(self):
        listed, named = "X-Forwarded-For", "Forwarded"
        cases = (((), "127.0.0.1"),
                 (((listed, "203.0.113.9"),), "203.0.113.9"),
                 # The client wrote the first one.
                 (((listed, "198.51.100.1, 203.0.113.9, 10.1.2.3"),), "203.0.113.9"),
                 (((named, 'for=198.51.100.1, proto=https;For="[2001:db8::1]:443"'),), "2001:db8::1"),
                 (((listed, "not an address"),), "127.0.0.1"),
                 (((named, "by=1.2.3.4"),), "127.0.0.1"),
                 # A proxy may add a line of its own below that of the client.
                 (((listed, "198.51.100.1"), (listed, "203.0.113.9")), "203.0.113.9"),
                 (((named, "for=198.51.100.1"), ("X-Other", "1"), ("forwarded", "for=203.0.113.9")), "203.0.113.9"),
                 (((listed, "198.51.100.1"), (listed, "203.0.113.9"), (listed, "10.1.2.3")), "203.0.113.9"),
                 # The proxy wrote one of the two, and the client the other.
                 (((named, "for=198.51.100.1"), (listed, "203.0.113.7")), "127.0.0.1"),
                 (((named, "for=203.0.113.7"), (listed, "203.0.113.7")), "203.0.113.7"))
        for i, (lines, expected) in enumerate(cases):
            with self.subTest(lines):
                self.assertEqual(self.address_of(f"proxy-{i}", *lines), expected)

    def test_spoofed_header_does_not_help(self):
        """trudesk#667: an address that is no trusted proxy guesses tokens under many names."""
        statuses = [ask_on(self.on_port("api", source="127.0.0.3"), "GET", "/v1/whoami", "dibs_" + "x" * 43,
                           headers={"X-Forwarded-For": f"203.0.113.{i}"}).status for i in range(12)]
        self.assertIn(429, statuses)
        # Through the proxy each client has its own count.
        through = [ask_on(self.on_port("api"), "GET", "/v1/whoami", "dibs_" + "y" * 43,
                          headers={"X-Forwarded-For": f"203.0.113.{i}"}).status for i in range(12)]
        self.assertEqual(set(through), {401})

    def test_requests_of_one_token(self):
        connection = self.on_port("api")
        statuses = []
        while len(statuses) < 5000 and 429 not in statuses:
            answer = ask_on(connection, "GET", "/v1/whoami", self.daemon.tokens["admin"])
            statuses.append(answer.status)
        self.assertEqual(statuses[-1], 429)
        self.assertGreaterEqual(len(statuses), 100)
        self.assertEqual(answer.json["code"], "limit")
        self.assertEqual(ask_on(connection, "GET", "/v1/whoami", self.daemon.tokens["read"]).status, 200)
        self.assertEqual(ask_on(connection, "GET", "/livez").status, 200)


class Given(unittest.TestCase):
    def test_sockets_of_the_service_manager(self):
        daemon = Daemon(wrap=(sys.executable, "-c", ACTIVATE), url=URL)
        self.addCleanup(daemon.end)
        lines = [line for line in daemon.log() if line["event"] == "listening"]
        self.assertEqual([line["for"] for line in lines], ["api", "metrics"])
        self.assertEqual(daemon.get("/v1/whoami", role="read").json["name"], "read")
        metrics = http.client.HTTPConnection("127.0.0.1", lines[1]["port"], timeout=PATIENCE)
        self.assertEqual(ask_on(metrics, "GET", "/metrics").status, 200)


class Verbose(ServeCase):
    def test_readyz(self):
        self.assertEqual(self.daemon.get("/readyz", role=None).text, "ok\n")
        self.assert_problem(self.daemon.get("/readyz?verbose", role=None), 401, "token")
        lines = self.daemon.get("/readyz?verbose", role="read").text.splitlines()
        self.assertEqual(lines[-1], "ok")
        self.assertEqual([line.split(" ")[0] for line in lines[:-1]], ["[+]phase", "[+]store", "[+]tokens", "[+]connections"])

    def test_link_to_the_next_page(self):
        for i in range(3):
            self.hold(self.name(f":{i}"))
        path = "/v1/locks?limit=1&prefix=" + self.name(":")
        wait_until(lambda: self.daemon.get(path).json["total"] == 3, "the locks in the look")
        names = []
        while path:
            answer = self.daemon.get(path)
            names += [row["name"] for row in answer.json["items"]]
            link = answer.headers["Link"]
            self.assertEqual(link is None, answer.json["next"] is None)
            path = "/v1/locks" + link[1:link.index(">")] if link else None
            if link:
                self.assertTrue(link.endswith('>; rel="next"'))
        self.assertEqual(names, [self.name(f":{i}") for i in range(3)])


if __name__ == "__main__":
    main()
