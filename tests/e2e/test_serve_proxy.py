"""Streams of `dibs serve` through real proxies, which buffer and pack answers as far as they are allowed to."""
# SPDX-License-Identifier: MIT
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
import zlib

from runtools import PATIENCE, main, wait_until
from servetools import Events, ServeCase

PATHS = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
NGINX = shutil.which("nginx", path=PATHS)
HAPROXY = shutil.which("haproxy", path=PATHS)

NGINX_CONF = """
daemon off;
USER
worker_processes 1;
pid FOLDER/pid;
error_log stderr;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    gzip on;
    gzip_types *;
    gzip_min_length 0;
    gzip_proxied any;
    proxy_buffering on;
    server {
        listen 127.0.0.1:PORT;
        location / {
            proxy_pass http://127.0.0.1:DAEMON;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Forwarded "";
        }
    }
}
"""

HAPROXY_CONF = """
defaults
    mode http
    timeout connect 10s
    timeout client 1h
    timeout server 1h
    option forwardfor
    compression algo gzip
    compression type text/event-stream application/json
frontend clients
    bind 127.0.0.1:PORT
    http-request del-header Forwarded
    default_backend daemons
backend daemons
    server daemon 127.0.0.1:DAEMON
"""


class Stream(Events):
    """Events that are read as they come, packed or not."""

    def __init__(self, connection, path, headers):
        self.connection = connection
        connection.request("GET", path, headers=headers)
        self.answer = connection.getresponse()
        self.unpack = zlib.decompressobj(31) if self.answer.headers["Content-Encoding"] == "gzip" else None
        self.rest = b""

    def line(self):
        while b"\n" not in self.rest:
            part = self.answer.read1(65536)
            if not part:
                raise AssertionError(f"the stream has ended: {self.rest}")
            self.rest += self.unpack.decompress(part) if self.unpack else part
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()


class Proxied:
    """Tests of one proxy, which `command` starts."""

    config = ""
    options = ("--hosts", "dibs.example.org", "--trusted-proxies", "127.0.0.1")

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="dibs-proxy-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self.proxy = None
        self.addCleanup(self.end_proxy)
        self.start_proxy()

    def command(self, path):
        raise NotImplementedError

    def start_proxy(self):
        path = self.folder + "/conf"
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.config.replace("FOLDER", self.folder).replace("PORT", str(self.port))
                       .replace("DAEMON", str(self.daemon.port)).replace("USER", "user root;" if os.geteuid() == 0 else ""))
        with open(self.folder + "/log", "ab") as log:
            self.proxy = subprocess.Popen(self.command(path), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers():
            if self.proxy.poll() is not None:
                with open(self.folder + "/log", encoding="utf-8") as log:
                    raise RuntimeError("the proxy has ended: " + log.read())
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(answers, "the proxy")

    def end_proxy(self):
        if self.proxy:
            self.proxy.terminate()
            self.proxy.wait(PATIENCE)
            self.proxy = None

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def stream(self, path, packed, last=None):
        headers = {"Authorization": "Bearer " + self.daemon.tokens["operate"], "Accept": "text/event-stream"}
        if packed:
            headers["Accept-Encoding"] = "gzip"
        if last:
            headers["Last-Event-ID"] = last
        stream = Stream(self.connect(), path, headers)
        self.assertEqual(stream.answer.status, 200)
        return stream

    def ask(self, method, path, body=None):
        connection = self.connect()
        connection.request(method, path, body=None if body is None else json.dumps(body),
                           headers={"Authorization": "Bearer " + self.daemon.tokens["operate"],
                                    "Content-Type": "application/json", "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.headers["Content-Encoding"] == "gzip":
            text = zlib.decompress(text, 31)
        self.assertLess(answer.status, 300, text)
        return json.loads(text) if text else None

    def test_stream_through_proxy_misses_nothing(self):
        """Each event arrives before the next one is made, and those of an outage of the proxy after it."""
        for packed in (False, True):
            with self.subTest(packed=packed):
                topic = self.name("-packed" if packed else "-plain")
                stream = self.stream(f"/v1/topics/{topic}/events?since=end", packed)
                for i in range(5):
                    self.daemon.post("/v1/topics/" + topic, {"data": str(i)})
                    self.assertEqual(stream.next("event", "gap")[1]["data"], str(i))
                self.end_proxy()
                for i in range(5, 10):
                    self.daemon.post("/v1/topics/" + topic, {"data": str(i)})
                self.start_proxy()
                stream = self.stream(f"/v1/topics/{topic}/events", packed, last=stream.id)
                for i in range(5, 10):
                    self.assertEqual(stream.next("event", "gap")[1]["data"], str(i))

    def test_events_of_locks(self):
        for packed in (False, True):
            with self.subTest(packed=packed):
                name = self.name("-packed" if packed else "-plain")
                stream = self.stream("/v1/events?topics=locks&prefix=" + name, packed)
                self.assertEqual(stream.line(), "retry: 2000")
                token = self.hold(name)
                self.assertEqual(stream.next("locks")[1]["changed"][0]["name"], name)
                self.daemon.dibs("release", name, "--token", token)
                self.assertEqual(stream.next("locks")[1]["removed"], [name])

    def test_a_page_that_changes_something(self):
        """The browser says whose page it is by the name that it knows, and the proxy has TLS or has not."""
        for scheme in ("http", "https"):
            connection = self.connect()
            connection.request("PUT", "/v1/state/" + self.name(), body=b"x", headers={
                "Host": "dibs.example.org", "Origin": scheme + "://dibs.example.org", "Sec-Fetch-Site": "same-origin",
                "Authorization": "Bearer " + self.daemon.tokens["operate"]})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200, answer.read())

    def test_session(self):
        """Requests, a long poll and the stream of a session, all of them through the proxy."""
        session = self.ask("POST", "/v1/sessions", {"name": "proxied", "ttl_ms": 600000})["session"]
        token = self.hold(self.name())
        stream = self.stream(f"/v1/sessions/{session}/stream", True)
        stream.next("beat")
        path = f"/v1/sessions/{session}/leases/a"
        self.assertEqual(self.ask("PUT", path + "?wait_ms=0", {"name": self.name(), "wait_ms": 600000})["state"], "waiting")
        polled = []
        poll = threading.Thread(target=lambda: polled.append(self.ask("GET", path + "?wait_ms=50000")))
        poll.start()
        self.daemon.dibs("release", self.name(), "--token", token)
        granted = stream.next("granted")[1]
        poll.join()
        self.assertEqual((polled[0]["state"], polled[0]["fence"]), ("held", granted["fence"]))
        self.ask("DELETE", f"/v1/sessions/{session}")
        stream.next("ended")


@unittest.skipUnless(NGINX, "nginx is not installed")
class Nginx(Proxied, ServeCase):
    config = NGINX_CONF

    def command(self, path):
        return [NGINX, "-e", "stderr", "-p", self.folder, "-c", path]


@unittest.skipUnless(HAPROXY, "haproxy is not installed")
class Haproxy(Proxied, ServeCase):
    config = HAPROXY_CONF

    def command(self, path):
        return [HAPROXY, "-db", "-f", path]


if __name__ == "__main__":
    main()
