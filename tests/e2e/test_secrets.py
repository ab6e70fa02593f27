"""Passwords are found nowhere: not in what is printed, logged or written, not in a
process list, not in the environment of others, not in memory that a core file has."""
# SPDX-License-Identifier: MIT
import json
import os
import re
import resource
import secrets
import signal
import socket
import subprocess
import unittest
from urllib.parse import quote, urlsplit

from runtools import UNAVAIL, NotInTime, below, free_base, main, span
from support import DIBS, PATIENCE, ROOT, Case

SERVER = os.environ.get("DIBS_TEST_URL")
HOLDER = os.environ.get("DIBS_URL_HOLDER")


ENDLESS = ("watch", "demo", "serve")

# Looked for in memory are pieces of so many characters, one after the other: twice as many in a row have one of them.
PIECE = 10

# Larger than this is only what a sanitizer keeps for itself.
SPAN_MAX = 1 << 26

# How each verb is used; one that is missing here fails a test.
USES = {
    "run": ["secret-run", "--", "true"],
    "acquire": ["secret-acquire", "-n", "--ttl", "1s", "--meta", "who=test"],
    "release": ["secret-acquire", "--token", "0" * 32 + ":1"],
    "renew": ["secret-acquire", "--token", "0" * 32 + ":1"],
    "check": ["secret-acquire"],
    "ls": ["--json"],
    "show": ["secret-acquire", "--json"],
    "top": ["--json"],
    "watch": ["--json", "--interval", "100ms"],
    "wait": ["secret-run", "-w", "10s", "--json"],
    "stats": ["--json"],
    "deadlocks": ["--json"],
    "break": ["secret-acquire", "--force", "--yes"],
    "trail": ["--json"],
    "state get": ["secret-value"],
    "state set": ["secret-value", "x"],
    "state cas": ["secret-value", "x", "--version", "1"],
    "state add": ["secret-number", "1"],
    "state del": ["secret-value"],
    "state ls": ["--json"],
    "elect": ["secret-elect", "--", "true"],
    "leader": ["secret-elect"],
    "join": ["secret-group", "--", "true"],
    "members": ["secret-elect", "--json"],
    "state watch": ["secret-value", "--count", "1"],
    "barrier": ["secret-barrier", "-n", "1"],
    "breaker run": ["secret-breaker", "--", "true"],
    "breaker ls": ["--json"],
    "breaker show": ["secret-breaker", "--json"],
    "breaker open": ["secret-breaker"],
    "breaker close": ["secret-breaker"],
    "latch count-down": ["secret-latch", "-n", "2"],
    "latch wait": ["secret-latch", "-n", "2", "-w", "0"],
    "latch show": ["secret-latch", "--json"],
    "latch ls": ["--json"],
    "latch reset": ["secret-latch"],
    "publish": ["secret-topic", "x"],
    "subscribe": ["secret-topic", "--since", "start", "-n", "1"],
    "events read": ["secret-topic", "--json"],
    "events ls": ["--json"],
    "events show": ["secret-topic", "--json"],
    "events trim": ["secret-topic", "--through", "end", "--yes"],
    "limit": ["secret-limit", "--rate", "10/s", "--json"],
    "queue push": ["secret-queue", "x", "--json"],
    "queue pop": ["secret-queue", "-n", "--json"],
    "queue ack": ["secret-queue", "1-2-3-4-5-6"],
    "queue nack": ["secret-queue", "1-2-3-4-5-6"],
    "queue extend": ["secret-queue", "1-2-3-4-5-6"],
    "queue run": ["secret-queue", "-w", "0", "--", "true"],
    "queue ls": ["--json"],
    "queue set": ["secret-queue", "--tries", "3"],
    "queue pause": ["secret-queue"],
    "queue resume": ["secret-queue"],
    "queue stats": ["secret-queue", "--json"],
    "queue peek": ["secret-queue", "--json"],
    "queue dead": ["secret-queue", "--json"],
    "queue redrive": ["secret-queue", "--yes", "--json"],
    "queue purge": ["secret-queue", "--yes", "--json"],
    "queue rm": ["secret-queue"],
    "job check": [os.path.join(ROOT, "examples/jobs.yaml"), "--json"],
    "job load": [os.path.join(ROOT, "examples/jobs.yaml"), "--json"],
    "job ls": ["--json"],
    "job show": ["secret-job", "--json"],
    "job next": ["secret-job", "--json"],
    "job start": ["secret-job", "--json"],
    "job wait": ["secret-job.1", "--json"],
    "job runs": ["--json"],
    "job logs": ["secret-job.1"],
    "work": [os.path.join(ROOT, "examples/jobs.yaml"), "--once"],
    "job cancel": ["secret-job.1"],
    "job rerun": ["secret-job.1", "--json"],
    "job resume": ["secret-job.1", "approval"],
    "job pause": ["secret-job"],
    "job unpause": ["secret-job"],
    "job reset": ["secret-job"],
    "job rm": ["secret-job"],
    "job nodes": ["--json"],
    "job drain": ["0"],
    "cron check": ["0 2 * * *"],
    "cron next": ["0 2 * * *", "--json"],
    "cron explain": ["0 2 * * *"],
    "cron import": ["/dev/null"],
    "store status": [],
    "store init": [],
    "store share": ["--group", str(os.getgid())],
    "store upgrade": [],
    "serve": ["--listen", "127.0.0.1:0", "--start-wait", "0s"],
    "access add": ["secret-name", "--role", "admin"],
    "access ls": ["--json"],
    "access rm": ["secret-name"],
    "demo": ["--workers", "1", "--operations", "0", "--http-port", str(free_base(2))],
    "ping": ["--json"],
    "health": ["--election", "secret-run", "--json"],
    "doctor": ["--json"],
    "config": ["--json"],
    "completion": ["bash"],
    "help": [],
    "version": [],
}


def command(url, *words):
    """Asks the server over a connection of its own."""
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), timeout=PATIENCE) as sock:
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts.append(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
        sock.sendall(b"".join(parts))
        return sock.recv(65536).decode()


def verbs():
    """Every verb that the command has; not one that only has verbs of its own, such as state."""
    text = subprocess.run([DIBS, "completion", "bash"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = text[text.index("_dibs_options()") :]
    options = options[: options.index("esac")]
    found = re.findall(r"^ *'([a-z -]+)'\)", options, re.MULTILINE)
    return {verb for verb in found if verb in USES or not any(other.startswith(verb + " ") for other in found)}


def soon():
    """Ends what would go on for ever."""
    signal.setitimer(signal.ITIMER_REAL, 0.5)


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def memory(pid, whole=False):
    """(name, bytes) of what a process may write to: what a core file would have of it, or all."""
    keep, spans = None, []
    with open(f"/proc/{pid}/smaps", encoding="latin-1") as file:
        for line in file:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r?w?)\S* \S+ \S+ \S+ *(.*)", line)
            if head:
                keep = head if head[3] == "rw" else None
            elif line.startswith("VmFlags:") and keep and (whole or " dd" not in line):
                spans.append((keep[4].strip() or "anonymous", int(keep[1], 16), int(keep[2], 16)))
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for name, begin, end in spans:
            if end - begin > SPAN_MAX:
                continue
            file.seek(begin)
            yield name, file.read(end - begin)


@unittest.skipUnless(SERVER, "needs a server")
class Secrets(Case):
    def setUp(self):
        super().setUp()
        # Long, so that what it is written to grows on the way.
        self.marks = ["mark" + secrets.token_hex(64) for _ in range(2)]
        self.user = "user" + secrets.token_hex(4)
        # With what must be escaped in a URL, so that it has two forms.
        self.password = self.marks[0] + "/@:" + self.marks[1]
        self.where = urlsplit(SERVER).netloc
        reply = command(SERVER, "ACL", "SETUSER", self.user, "on", ">" + self.password, "~*", "&*", "+@all")
        self.assertEqual(reply, "+OK\r\n")
        self.addCleanup(command, SERVER, "ACL", "DELUSER", self.user)
        self.env.pop("DIBS_URL")
        self.env["DIBS_LOG_LEVEL"] = "trace"
        self.planted = set()

    def url(self, password=None):
        return f"redis://{self.user}:{quote(password or self.password, safe='')}@{self.where}"

    def plant(self, name, text):
        path = self.write(name, text)
        os.chmod(path, 0o600)
        self.planted.add(path)
        return path

    def assert_clean(self, what, *texts):
        for text in texts:
            text = text if isinstance(text, bytes) else text.encode()
            for mark in self.marks:
                self.assertNotIn(mark.encode(), text, what)

    def assert_files_clean(self, what):
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                self.assert_clean((what, path), name)
                if path not in self.planted:
                    self.assert_clean((what, path), read_bytes(path))

    def ways(self):
        """(name, arguments, environment) for each way to hand the secret over."""
        file_url = self.plant("url", self.url() + "\n")
        file_word = self.plant("password", self.password + "\n")
        config = self.plant("config.yaml", f"url: '{self.url()}'\n")
        bare = f"redis://{self.user}@{self.where}"
        exchange = f"{self.where},user={self.user},password={self.password}"
        yield "flag", ["--url", self.url()], {}
        yield "flag=", ["--url=" + self.url()], {}
        yield "flag twice", ["--url", self.url("first" + self.marks[0]), "--url", self.url()], {}
        yield "string", ["--url", exchange], {}
        yield "file", ["--url", "file:" + file_url], {}
        yield "variable", [], {"DIBS_URL": self.url()}
        yield "password file", ["--url", f"{bare}?password_file={file_word}"], {}
        yield "password variable", ["--url", bare], {"DIBS_REDIS_PASSWORD": self.password}
        yield "redis-cli's variable", ["--url", bare], {"REDISCLI_AUTH": self.password}
        yield "server's variable", ["--url", "redis:"], {"REDIS_URL": self.url()}
        yield "config", ["--config", config], {"DIBS_CONFIG": ""}

    def failures(self):
        """The same for URLs that do not work."""
        mark = self.marks[0]
        yield "wrong password", ["--url", self.url("wrong" + mark)]
        yield "nobody there", ["--url", f"redis://u:{mark}@127.0.0.1:1"]
        yield "no such scheme", ["--url", f"radish://u:{mark}@{self.where}"]
        yield "unescaped", ["--url", f"redis://u:{mark}/{mark}@{self.where}"]
        yield "bad port", ["--url", f"redis://u:{mark}@127.0.0.1:x"]
        yield "bad escape", ["--url", f"redis://u:%zz{mark}@{self.where}"]
        yield "unknown parameter", ["--url", f"redis://{self.where}?pass={mark}"]
        yield "another", ["--url", f"redis://{self.where}?db=0&redis_pwd={mark}"]
        yield "and another", ["--url", f"redis://{self.where}?AUTH={mark}"]
        yield "token of a query", ["--url", f"sqlite:{self.path('x.db')}?auth_token={mark}"]
        yield "string with a comma", ["--url", f"{self.where},password=x,{mark}=y"]
        yield "no slashes", ["--url", f"redis:u:{mark}@{self.where}"]
        yield "control character", ["--url", f"redis://u:{mark}\x01@{self.where}"]
        yield "too long", ["--url", f"redis://u:{mark * 200}@{self.where}"]
        yield "not a server", ["--url", f"redis://u:{mark}@{self.where}/99"]
        yield "strict", ["--url", self.url() + "?strict=1"]
        yield "tls", ["--url", self.url().replace("redis:", "rediss:")]

    def use(self, verb, args, extra, what):
        words = [*verb.split(), *USES[verb]]
        env = {**self.env, **extra}
        result = self.dibs(
            "--store-timeout", span(1), *args, *words, env=env, preexec_fn=soon if verb in ENDLESS else None
        )
        self.assert_clean((what, verb, result.args), result.stdout, result.stderr)
        return result

    def test_every_verb_is_known_here(self):
        self.assertEqual(verbs(), set(USES))

    def test_no_verb_shows_it(self):
        way = ["--url", self.url()]
        for verb in USES:
            with self.subTest(verb):
                result = self.use(verb, way, {}, "flag")
                if result.returncode == UNAVAIL:
                    raise NotInTime(result.stderr)
                self.assertNotIn(result.returncode, (70, 77, 78), result.stderr)
                if "--json" in USES[verb]:
                    plain = [word for word in USES[verb] if word != "--json"]
                    table = self.dibs(*way, *verb.split(), *plain, preexec_fn=soon if verb in ENDLESS else None)
                    self.assert_clean(verb, table.stdout, table.stderr)
        self.assert_files_clean("every verb")

    def test_a_word_too_many_is_not_repeated(self):
        for words in (["ping"], ["doctor"], ["show", "k"], [self.url()]):
            result = self.dibs(*words, self.url())
            self.assertEqual(result.returncode, 64, result.stderr)
            self.assertIn("did you mean --url URL?", result.stderr)
            self.assert_clean(words, result.stdout, result.stderr)

    def test_no_way_shows_it(self):
        for what, args, extra in self.ways():
            for verb in ("config", "doctor", "ping", "acquire"):
                with self.subTest((what, verb)):
                    result = self.use(verb, args, extra, what)
                    self.assertIn(result.returncode, (0, 75), (what, result.stderr))
        self.assert_files_clean("every way")

    def test_no_failure_shows_it(self):
        for what, args in self.failures():
            for verb in ("ping", "run", "config"):
                with self.subTest((what, verb)):
                    result = self.use(verb, args, {}, what)
                    if verb == "ping" and what not in ("strict",):
                        self.assertNotEqual(result.returncode, 0, what)
        self.assert_files_clean("every failure")

    def test_the_store_does_not_keep_it(self):
        self.ok("--url", self.url(), "run", "--share-stats", "kept", "--", "true")
        self.ok("--url", self.url(), "acquire", "kept")
        self.ok("--url", self.url(), "break", "kept", "--force", "--yes")
        self.assert_clean("clients", command(SERVER, "CLIENT", "LIST"))
        self.assert_clean("slow log", command(SERVER, "SLOWLOG", "GET", "128"))
        for key in re.findall(r"\$\d+\r\n([^\r]+)", command(SERVER, "KEYS", "*")):
            for reader in (["GET", key], ["HGETALL", key], ["XRANGE", key, "-", "+"], ["ZRANGE", key, "0", "-1"]):
                self.assert_clean(key, command(SERVER, *reader))

    def test_process_lists(self):
        """What ps shows of dibs, its guard and the command, and their environment."""
        show = "tr '\\0' '\\n' </proc/self/environ >environ; echo up; exec cat"
        for what, args, extra in self.ways():
            with self.subTest(what):
                process = self.start(
                    *args, "run", "--ttl", "5s", "listed", "--", "sh", "-c", show, stdin=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, env={**self.env, **extra},
                )
                self.assertEqual(process.stdout.readline(), "up\n")
                for pid in [process.pid, *below(process.pid)]:
                    self.assert_clean((what, pid), read_bytes(f"/proc/{pid}/cmdline"))
                # What the caller put into the environment is the caller's; dibs adds
                # nothing.
                mine = {**self.env, **extra}
                for line in read_bytes(self.path("environ")).decode().splitlines():
                    name, _, value = line.partition("=")
                    if mine.get(name) != value:
                        self.assert_clean((what, name), value)
                os.unlink(self.path("environ"))
                self.let_go(process)

    def test_workers_of_the_demonstration(self):
        """They are given the URL in a way that leaves no trace: not in their environment either."""
        for what, args, extra in self.ways():
            if what not in ("flag", "file", "variable", "config"):
                continue
            with self.subTest(what):
                process = self.start("demo", "--workers", "2", "--operations", "0", "--log-format", "json", "--http-port",
                                     str(free_base(2)), *args, env={**self.env, **extra}, stderr=subprocess.DEVNULL)
                lines = []
                while sum('"http_started"' in line for line in lines) < 2:
                    lines.append(process.stdout.readline())
                    self.assertNotEqual(lines[-1], "", lines)
                workers = below(process.pid)
                seen = [read_bytes(f"/proc/{pid}/{file}") for pid in workers for file in ("environ", "cmdline")]
                found = {pid: self.found(pid) for pid in workers}
                process.terminate()
                process.communicate(timeout=PATIENCE)
                self.assertEqual(len(workers), 2)
                self.assert_clean(what, *seen, *lines)
                self.assertFalse(any(found.values()), found)

    def test_no_core_file(self):
        """dibs leaves none; the command it runs is as it always is."""
        def unlimited():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        def cores():
            return {name for name in os.listdir(self.folder) if name.startswith("core")}

        if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            self.skipTest("core files are not allowed here")
        abort = ["sh", "-c", "kill -ABRT $$"]
        plain = subprocess.Popen(abort, cwd=self.folder, preexec_fn=unlimited)
        plain.returncode = os.waitpid(plain.pid, 0)[1]
        if not os.WCOREDUMP(plain.returncode):
            self.skipTest("no core files are written here")
        here = cores()
        for name in here:
            os.unlink(self.path(name))
        self.assertEqual(self.dibs("--url", self.url(), "run", "a", "--", *abort, preexec_fn=unlimited).returncode, 134)
        if here:
            self.assertTrue(cores(), "the command's own")
        for name in cores():
            os.unlink(self.path(name))
        process = self.start("--url", self.url(), "run", "b", "--", "sh", "-c", "echo up; exec cat",
                             stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=unlimited)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGSEGV)
        process.returncode = os.waitpid(process.pid, 0)[1]
        self.assertEqual(os.WTERMSIG(process.returncode), signal.SIGSEGV)
        self.assertFalse(os.WCOREDUMP(process.returncode))
        self.assertEqual(cores(), set())

    def found(self, pid, whole=False):
        """Where in the memory of a process there is a piece of the password, and which: {(place, piece)}."""
        pieces = {mark[at : at + PIECE] for mark in self.marks for at in range(0, len(mark) - PIECE + 1, PIECE)}
        try:
            return {(name, piece) for name, part in memory(pid, whole) for piece in pieces if piece.encode() in part}
        except PermissionError:
            self.skipTest("the memory of a child cannot be read here")
            return None

    def test_memory_of_dibs(self):
        """For those who collect core files whatever the limit is."""
        for number, (what, args, extra) in enumerate(self.ways()):
            if extra:
                continue
            with self.subTest(what):
                process = self.start(*args, "run", f"memory{number}", "--", "sh", "-c", "echo up; exec cat",
                                     stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
                self.assertEqual(process.stdout.readline(), "up\n")
                found = {pid: self.found(pid) for pid in [process.pid, *below(process.pid)]}
                self.let_go(process)
                self.assertFalse(any(found.values()), found)

    def hold_and_close(self, name, url):
        """What is left of the password while a program holds a lock, for a core file and in all, and after it has
        closed the client."""
        process = subprocess.Popen([HOLDER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.finish, process)
        process.stdin.write(url.encode() + b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"held\n")
        found = [self.found(process.pid), self.found(process.pid, whole=True)]
        process.stdin.write(b"close\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"closed\n")
        found.append(self.found(process.pid, whole=True))
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE), 0)
        return found

    @unittest.skipUnless(HOLDER, "needs a program")
    def test_memory_of_a_program(self):
        """The library keeps the password apart from what a core file has, and nothing of it for longer than that."""
        word = self.plant("password", self.password + "\n")
        for number, url in enumerate((
            self.url(),
            self.url() + "?client_name=" + "x" * 60,
            f"redis://{self.user}@{self.where}?password_file={word}",
            f"{self.where},user={self.user},password={self.password}",
            f"{self.where},password={self.password},name={'y' * 60},user={self.user}",
        )):
            with self.subTest(url):
                core, whole, after = self.hold_and_close(f"memory{number}", url)
                self.assertFalse(core)
                # It is there, for the next connection, but nowhere else.
                self.assertEqual({name for name, _ in whole}, {"anonymous"})
                self.assertFalse(after)


class CoreLimit(Case):
    """dibs leaves no core files; what it runs has the limit that the user has set."""

    LIMIT = 1 << 20
    SHOW = ["python3", "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])"]

    def setUp(self):
        super().setUp()
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        if hard != resource.RLIM_INFINITY and hard < self.LIMIT:
            self.skipTest("core files are not allowed here")

    def limited(self):
        resource.setrlimit(resource.RLIMIT_CORE, (self.LIMIT, resource.getrlimit(resource.RLIMIT_CORE)[1]))

    def test_of_commands(self):
        for verb in (["run", "core"], ["elect", "core"], ["join", "core-group"], ["limit", "core", "--rate", "1000/s"],
                     ["breaker", "run", "core"]):
            with self.subTest(verb):
                self.assertEqual(self.ok(*verb, "--", *self.SHOW, preexec_fn=self.limited), f"{self.LIMIT}\n")

    def test_of_jobs(self):
        file = self.write("core.yaml", f"jobs: {{core: {{run: {json.dumps(self.SHOW)}}}}}")
        self.ok("job", "load", file)
        run = self.ok("job", "start", "core").rstrip("\n")
        self.ok("work", file, "--once", preexec_fn=self.limited)
        self.assertIn(str(self.LIMIT), self.ok("job", "logs", run))


if __name__ == "__main__":
    main()
