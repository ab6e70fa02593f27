"""What the tests of `dibs serve` share: one daemon for all tests of a class, and requests to it."""
# SPDX-License-Identifier: MIT
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from urllib.parse import quote, urlencode

from runtools import DIBS, LOST, PATIENCE, UNAVAIL, NotInTime, wait_until

import unittest

__all__ = ["Daemon", "Answer", "Events", "ServeCase", "URL"]

ROLES = ("read", "operate", "admin")
URL = os.environ.get("DIBS_TEST_URL")


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


class Daemon:
    """A daemon with a folder and tokens of its own."""

    def __init__(self, *args, env=None, url=None, wrap=()):
        self.folder = tempfile.mkdtemp(prefix="dibs-serve-")
        self.url = url or f"sqlite:{self.folder}/store.db"
        self.env = {"HOME": self.folder, "XDG_STATE_HOME": self.folder, "PATH": os.environ["PATH"], "DIBS_URL": self.url}
        for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.env.update(env or {})
        self.file = f"{self.folder}/tokens"
        self.tokens = {role: self.dibs("access", "add", role, "--role", role, "--tokens", self.file).stdout.strip()
                       for role in ROLES}
        self.log_path = f"{self.folder}/log"
        if "--start-wait" not in args:
            args = ("--start-wait", "10m", *args)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*wrap, DIBS, "serve", "--listen", "127.0.0.1:0", "--tokens", self.file, "--log-format", "json", "--look-every",
                 "100ms", *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        try:
            self.port = self.await_event("listening")["port"]
            self.await_event("ready")
        except AssertionError:
            self.end()
            raise

    def dibs(self, *args, check=True):
        done = subprocess.run([DIBS, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
                              check=False, timeout=PATIENCE)
        if check and done.returncode in (UNAVAIL, LOST):
            raise NotInTime(f"{args}: exit code {done.returncode}: {done.stderr}")
        if check:
            done.check_returncode()
        return done

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.startswith("{") and line.endswith("}\n")]

    def log_text(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def await_event(self, event, count=1):
        def found():
            if self.process.poll() is not None:
                raise RuntimeError("the daemon has ended: " + self.log_text())
            lines = [line for line in self.log() if line["event"] == event]
            return lines[count - 1] if len(lines) >= count else None

        return wait_until(found, f"{event} in the log of the daemon")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, role="admin", headers=None, query=None):
        """One request on a connection of its own. A body that is no bytes is sent as JSON."""
        sent = dict(headers or {})
        if role:
            sent.setdefault("Authorization", "Bearer " + self.tokens.get(role, role))
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if query:
            path += "?" + urlencode(query)
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, {} if body is None else body, **more)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        if os.path.exists(self.log_path):
            self.last_log = self.log_text()
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.process.returncode


class Events:
    """A stream of events: who derives from it has line(), which reads one, and raises when the stream has ended."""

    id = None

    def next(self, *wanted):
        """The next event, of these names if there are any."""
        while True:
            name, data, line = "message", None, self.line()
            while line:
                key, _, value = line.partition(": ")
                name = value if key == "event" else name
                data = value if key == "data" else data
                self.id = value if key == "id" else self.id
                line = self.line()
            if data is not None and (not wanted or name in wanted):
                return name, json.loads(data)


class ServeCase(unittest.TestCase):
    """All tests of the class ask one daemon; each has names of its own."""

    options = ()

    def assertEqual(self, first, second, msg=None):
        """A status or a code that a slow machine explains, where another was expected, is lateness."""
        if type(first) is type(second) and first != second and first in (408, 503, 504, "unavail", "unknown"):
            raise NotInTime(f"{first}, not {second}: {msg}")
        super().assertEqual(first, second, msg)

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*cls.options, url=URL)
        cls.addClassCleanup(cls.end_daemon)

    @classmethod
    def end_daemon(cls):
        """Sanitizers find leaks at the end, and say so by the exit code."""
        code = cls.daemon.end()
        if code:
            raise AssertionError(f"the daemon ended with {code}: {cls.daemon.last_log[-4000:]}")

    def name(self, tail=""):
        return self.id().rsplit(".", 1)[1] + tail

    def assert_problem(self, answer, status, code):
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(answer.json["code"], code, answer.text)
        self.assertEqual(answer.json["status"], status)
        self.assertEqual(answer.json["type"], "/problems#" + code)
        return answer.json

    def hold(self, name, *options, ttl="60s"):
        """Takes a lock by the command; its token."""
        return self.daemon.dibs("acquire", name, "-n", "--ttl", ttl, *options).stdout.strip()

    @staticmethod
    def path(name):
        return quote(name, safe="")

    @staticmethod
    def pattern(path):
        """A path of the routes with something for each parameter."""
        return re.sub(r"\{\w+\}", "some", path)
