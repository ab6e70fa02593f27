"""A store with something in it, and a page that shows it: what the tests of the dashboard share."""
# SPDX-License-Identifier: MIT
import http.client
import json
import os
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

# pylint: disable=wrong-import-position
from runtools import DIBS, PATIENCE, wait_until  # noqa: E402
from servetools import Daemon  # noqa: E402

__all__ = ["Scene", "DIBS", "PATIENCE", "wait_until"]

TWO_LOCKS = os.environ.get("DIBS_TWO_LOCKS")


class Scene(Daemon):
    """A daemon, clients of its store, and waits that are under way."""

    def __init__(self, *args, **more):
        self.waits, self.processes = [], []
        super().__init__(*args, **more)

    @property
    def page(self):
        return f"http://127.0.0.1:{self.port}/"

    def lease(self, name, **body):
        """Takes a lease by HTTP; it is not renewed."""
        answer = self.post("/v1/leases/~", {"ttl_ms": 600000, **body}, query={"name": name})
        if answer.status != 201:
            raise AssertionError(answer.text)
        return answer.json

    def fill(self, first, count):
        """Leases many:I:N with N from `first` on, copied within the embedded store: a token has a rate, and a test little time."""
        model = "many:0:0"
        if first == 0:
            self.lease(model, label="worker", meta={"build": "42"})
        self.copy(model, ((i, f"many:{i // 100}:{i}") for i in range(max(1, first), first + count)))
        wait_until(lambda: self.get("/v1/overview").json["counts"]["names"] >= first + count, "the look at all of them")

    def copy(self, model, names):
        """Copies a party within the embedded store, to (number, name): its owner and its fence have the number too."""
        store = sqlite3.connect(self.url.split(":", 1)[1], timeout=PATIENCE)
        columns = [row[1] for row in store.execute("PRAGMA table_info(party)")]
        values = ", ".join({"name": "?", "owner": "?", "fence": "fence + ?"}.get(column, column) for column in columns)
        with store:
            store.executemany(f"INSERT OR IGNORE INTO party SELECT {values} FROM party WHERE name = '{model}'",
                              ((name, f"{i:032x}", i) for i, name in names))
        store.close()

    def wait_for(self, name, **body):
        """Waits for a name until the scene ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", "/v1/leases/~?name=" + name, json.dumps({"ttl_ms": 600000, "wait_ms": 55000, **body}),
                           {"Authorization": "Bearer " + self.tokens["admin"], "Content-Type": "application/json"})
        self.waits.append(connection)

    def behind(self, *args):
        """A command that goes on until the scene ends."""
        self.processes.append(subprocess.Popen([DIBS, *args], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL))

    def run(self, name, *options):
        """A process that holds or waits for a name until the scene ends."""
        self.behind("run", *options, name, "--", "sleep", "3600")

    def deadlock(self, one, other, others=0):
        """Two processes that hold one name each and wait for the other's, one of them behind so many others."""
        pair = [subprocess.Popen([TWO_LOCKS, self.url, "", *names], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for names in ((one, other), (other, one))]
        self.processes += pair
        for process in pair:
            process.stdout.readline()
        for _ in range(others):
            self.wait_for(other)
        wait_until(lambda: self.get("/v1/locks/~", query={"name": other}).json["waiter_count"] == others, "the others to wait")
        for process in pair:
            process.stdin.write(b"on\n")
            process.stdin.flush()
        wait_until(lambda: self.get("/v1/waits").json["circles"], "a deadlock")

    def leave(self):
        """Ends all clients."""
        for connection in self.waits:
            connection.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE)
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
        self.waits, self.processes = [], []

    def end(self, *args):
        self.leave()
        return super().end(*args)
