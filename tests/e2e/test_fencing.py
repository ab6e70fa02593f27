"""The snippets of docs/fencing.md, taken out of it and run."""
# SPDX-License-Identifier: MIT
import glob
import http.client
import http.server
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import unittest

from support import DIBS, ROOT, Case, main, wait_until

with open(os.path.join(ROOT, "docs", "fencing.md"), encoding="utf-8") as DOCUMENT:
    BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT.read(), re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for kind, text in BLOCKS if kind == language]


def block(language, part):
    """The one block of that language with that text in it."""
    found = [text for text in blocks(language) if part in text]
    assert len(found) == 1, (language, part, len(found))
    return found[0]


class Blocks(unittest.TestCase):
    def test_every_one_is_run(self):
        kinds = sorted(kind for kind, _ in BLOCKS)
        self.assertEqual(kinds, ["c", "lua", "python", "python"] + ["sql"] * 5)


class InC(Case):
    MAIN = """
int main(void)
{
    dibs_error err;

    if (write_record(33, "first", &err) != DIBS_OK ||
        write_record(34, "second", &err) != DIBS_OK ||
        write_record(33, "late", &err) != DIBS_STALE ||
        write_record(34, "third", &err) != DIBS_OK ||
        write_record(0, "nobody", &err) != DIBS_INVALID)
        return 1;
    return guard.highest == 34 ? 0 : 2;
}
"""

    def test_guard(self):
        folder = os.path.dirname(DIBS)
        needs = subprocess.run(["nm", "-D", folder + "/libdibs.so"], capture_output=True, text=True, check=True)
        if re.search("__[at]san_init", needs.stdout):
            self.skipTest("the library is built with a sanitizer")
        source = self.write("guard.c", block("c", "dibs_guard_admit") + self.MAIN)
        subprocess.run(
            ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT + "/include", "-o", self.path("guard")]
            + [source, "-L", folder, "-ldibs", "-Wl,-rpath," + folder],
            check=True,
        )
        result = subprocess.run([self.path("guard")], capture_output=True, text=True, check=False)
        self.assertEqual((result.stdout, result.returncode), ("first\nsecond\nthird\n", 0))


class SqlRules:
    """What the statements must do on any database. run_sql() gives the rows changed."""

    def test_update(self):
        self.run_sql(block("sql", "TABLE account"))
        write = block("sql", "UPDATE account SET")
        values = {"id": 1, "balance": 100}
        self.assertEqual(self.run_sql(write, fence=33, **values), 0, "there is no such row")
        self.run_sql("INSERT INTO account (id, balance) VALUES (1, 5);")
        self.assertEqual(self.run_sql(write, fence=1794702830958099, **values), 1)
        self.assertEqual(self.run_sql(write, fence=1794702830958098, id=1, balance=7), 0)
        self.assertEqual(self.run_sql(write, fence=1794702830958099, id=1, balance=8), 1)
        self.assertEqual(self.value("SELECT balance FROM account"), "8")
        self.assertEqual(self.value("SELECT fence FROM account"), "1794702830958099")

    def test_insert_or_update(self):
        self.run_sql(block("sql", "TABLE account"))
        write = block("sql", "INSERT INTO account")
        for fence, changed in ((33, 1), (34, 1), (33, 0), (34, 1), (35, 1)):
            self.assertEqual(self.run_sql(write, id=2, balance=fence, fence=fence), changed, fence)
        self.assertEqual(self.value("SELECT balance FROM account"), "35")

    def test_a_row_for_the_fence(self):
        self.run_sql(block("sql", "TABLE fence"))
        admit = block("sql", "INSERT INTO fence")
        for fence, changed in ((33, 1), (34, 1), (33, 0), (34, 1), (35, 1)):
            self.assertEqual(self.run_sql(admit, resource="ledger", fence=fence), changed, fence)
        self.assertEqual(self.run_sql(admit, resource="other", fence=1), 1)
        self.assertEqual(self.value("SELECT highest FROM fence WHERE resource = 'ledger'"), "35")


class OnSqlite(SqlRules, unittest.TestCase):
    def setUp(self):
        self.base = sqlite3.connect(":memory:")
        self.addCleanup(self.base.close)

    def run_sql(self, text, **values):
        return self.base.execute(text, values).rowcount

    def value(self, text):
        return str(self.base.execute(text).fetchone()[0])


class Cluster:
    """A PostgreSQL of its own, as an unprivileged user, on a unix socket."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self.call("initdb", "-D", folder + "/data", "-A", "trust", "-U", "postgres", "--no-sync")
        with open(folder + "/log", "wb") as log:
            self.process = subprocess.Popen(
                [programs + "/postgres", "-D", folder + "/data", "-k", folder, "-c", "listen_addresses="],
                stdout=log,
                stderr=log,
                cwd="/",
                user=self.user,
            )

    def call(self, program, *args, text=""):
        return subprocess.run(
            [os.path.join(self.programs, program), *args],
            input=text,
            capture_output=True,
            text=True,
            cwd="/",
            user=self.user,
            check=False,
        )

    def psql(self, text, **values):
        words = ["-X", "-q", "-h", self.folder, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-At"]
        for name, value in values.items():
            words += ["-v", f"{name}={value}"]
        return self.call("psql", *words, text=text)

    def ready(self):
        assert self.process.poll() is None, "postgres has ended"
        return self.psql("SELECT 1").returncode == 0

    def stop(self):
        self.process.terminate()
        self.process.wait()


class OnPostgres(SqlRules, Case):
    def setUp(self):
        super().setUp()
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            self.skipTest("PostgreSQL is not installed")
        os.chmod(self.folder, 0o755)
        os.mkdir(self.path("pg"))
        self.cluster = Cluster(self.path("pg"), found[-1])
        self.addCleanup(self.cluster.stop)
        wait_until(self.cluster.ready, "postgres")

    def run_sql(self, text, **values):
        # What psql puts in for a variable is quoted only where it is asked to.
        text = text.replace(":resource", ":'resource'")
        result = self.cluster.psql("\\set QUIET off\n" + text, **values)
        self.assertEqual(result.returncode, 0, result.stderr)
        changed = re.search(r"^(?:UPDATE|INSERT 0) (\d+)$", result.stdout, re.MULTILINE)
        return int(changed.group(1)) if changed else None

    def value(self, text):
        return self.cluster.psql(text).stdout.strip()


@unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-cli"), "Redis is not installed")
class OnRedis(Case):
    def setUp(self):
        super().setUp()
        self.socket = self.path("redis.sock")
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", self.folder],
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(self.finish, server)
        wait_until(self.answers, "redis-server")

    def answers(self):
        """The socket is there before anybody listens on it."""
        ping = ["redis-cli", "-s", self.socket, "PING"]
        return subprocess.run(ping, capture_output=True, text=True, check=False).stdout.strip() == "PONG"

    def cli(self, *args):
        result = subprocess.run(["redis-cli", "-s", self.socket, *args], capture_output=True, text=True, check=True)
        return result.stdout.strip()

    def test_script(self):
        script = block("lua", "KEYS")
        for fence, answer in ((33, "1"), (34, "1"), (33, "0"), (34, "1"), (9, "0"), (1794702830958099, "1")):
            self.assertEqual(self.cli("EVAL", script, "2", "k", "k:fence", str(fence), f"by {fence}"), answer, fence)
        self.assertEqual(self.cli("EVAL", script, "2", "k", "k:fence", "1794702830958098", "late"), "0")
        self.assertEqual(self.cli("GET", "k"), "by 1794702830958099")
        self.assertEqual(self.cli("GET", "k:fence"), "1794702830958099")


class OverHttp(unittest.TestCase):
    def serve(self, handler):
        """A connection to a server on loopback that lives for the test."""
        handler.log_message = lambda *_: None
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        connection = http.client.HTTPConnection(*server.server_address)
        self.addCleanup(connection.close)
        return connection

    def test_server(self):
        scope = {}
        exec(compile(block("python", "class Reports"), "fencing.md", "exec"), scope)
        reports = scope["Reports"]
        connection = self.serve(reports)
        for headers, status in (
            ({"Dibs-Fence": "33"}, 204),
            ({"Dibs-Fence": "34"}, 204),
            ({"Dibs-Fence": "33"}, 412),
            ({"Dibs-Fence": "34"}, 204),
            ({}, 428),
        ):
            connection.request("PUT", "/reports/today", str(headers).encode(), headers)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, status, headers)
        self.assertEqual(reports.written["/reports/today"], (34, b"{'Dibs-Fence': '34'}"))

    def test_object_store(self):
        scope = {}
        exec(compile(block("python", "def fenced_put"), "fencing.md", "exec"), scope)
        put = scope["fenced_put"]
        connection = self.serve(ObjectStore)
        ObjectStore.objects.clear()
        self.assertTrue(put(connection, "/report", b"first", 33))
        self.assertTrue(put(connection, "/report", b"second", 34))
        self.assertFalse(put(connection, "/report", b"late", 33))
        self.assertEqual(ObjectStore.objects["/report"], (34, b"second", 2))
        # Another writes between the look and the write: the loop sees it.
        ObjectStore.between = [(40, b"other")]
        self.assertFalse(put(connection, "/report", b"late", 35))
        ObjectStore.between = [(40, b"other")]
        self.assertTrue(put(connection, "/report", b"later", 41))
        self.assertEqual(ObjectStore.objects["/report"][:2], (41, b"later"))
        ObjectStore.between = [(1, b"other")]
        self.assertTrue(put(connection, "/new", b"mine", 2))
        self.assertEqual(ObjectStore.objects["/new"], (2, b"mine", 2))


class ObjectStore(http.server.BaseHTTPRequestHandler):
    """As much of S3 as a conditional put needs."""

    protocol_version = "HTTP/1.1"
    objects = {}  # path: (fence, body, version)
    between = []  # written by somebody else before the next put

    def end(self, status, **headers):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def write(self, fence, body):
        version = self.objects.get(self.path, (0, b"", 0))[2]
        self.objects[self.path] = (fence, body, version + 1)

    def do_HEAD(self):
        if self.path not in self.objects:
            self.end(404)
            return
        fence, _, version = self.objects[self.path]
        self.end(200, ETag=f'"{version}"', x_amz_meta_fence=str(fence))

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.between:
            self.write(*self.between.pop())
        version = self.objects.get(self.path, (0, b"", 0))[2]
        if self.headers.get("If-None-Match") == "*":
            fits = version == 0
        else:
            fits = self.headers.get("If-Match") == f'"{version}"'
        if fits:
            self.write(int(self.headers["x-amz-meta-fence"]), body)
        self.end(200 if fits else 412)


if __name__ == "__main__":
    main()
