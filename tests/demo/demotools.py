"""What the tests of `dibs demo` share: a cluster on free ports, its log, requests to it."""
# SPDX-License-Identifier: MIT
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

# pylint: disable=wrong-import-position
from runtools import PACE, NotInTime, alive, below, free_base  # noqa: E402
from support import DIBS, PATIENCE, Case, in_time, main, span, wait_until  # noqa: E402

__all__ = ["DIBS", "LOCK", "PACE", "PATIENCE", "REFUSAL", "DemoCase", "Cluster", "NotInTime", "alive", "answered", "below",
           "free_base", "in_time", "main", "span", "wait_until"]

CLAIM_MS = 3000  # for which a lock stays with a waiter that it was handed to
LOCK = "locks:ADS_REDLOCK"
REFUSAL = {"success": False, "message": "Could not acquire lock. Please try again later."}


def answered(answer):
    """An answer, unless it says that the store had none in time."""
    status, body = answer
    if status == 503 and body["message"].startswith("The store is away"):
        raise NotInTime(body["message"])
    return answer


class Cluster:
    """A running `dibs demo` with JSON lines."""

    def __init__(self, case, *options, workers=4, operations=0, env=None):
        self.case = case
        self.workers = workers
        self.base = free_base(workers)
        self.process = subprocess.Popen(
            [DIBS, "demo", "--log-format", "json", "--workers", str(workers), "--http-port", str(self.base),
             "--operations", str(operations), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=env or case.env, cwd=case.folder,
        )
        case.addCleanup(self.finish)
        self.lines = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.everyone = set()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(json.loads(line))
                self.news.notify_all()
        with self.news:
            self.lines.append({"event": "end"})
            self.news.notify_all()

    def finish(self):
        """Whatever went wrong, nothing is left running."""
        pids = below(self.process.pid)
        if self.process.poll() is None:
            self.process.kill()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()

    def events(self, event, **fields):
        """The lines so far that have these."""
        with self.news:
            return [line for line in self.lines
                    if line["event"] == event and all(line.get(k) == v for k, v in fields.items())]

    def await_events(self, event, count=1, **fields):
        """Waits for so many of them."""
        end = time.monotonic() + PATIENCE
        while True:
            with self.news:
                found = [line for line in self.lines
                         if line["event"] == event and all(line.get(k) == v for k, v in fields.items())]
                if len(found) >= count:
                    return found
                if self.lines[-1:] == [{"event": "end"}]:
                    raise AssertionError(f"it ended without {count} {event} {fields}: {self.lines}")
                in_time(time.monotonic(), end, f"{count} {event} {fields} in {self.lines}")
                self.news.wait(1)

    def await_ready(self):
        self.await_events("http_started", self.workers)
        self.everyone.update(below(self.process.pid))
        return self

    def ask(self, worker, method, path, body=None, headers=None):
        """(status, JSON, headers) of a request on a connection of its own."""
        conn = http.client.HTTPConnection("127.0.0.1", self.base + worker, timeout=PATIENCE)
        try:
            if isinstance(body, dict):
                body = json.dumps(body)
            if headers is None:
                headers = {} if body is None else {"Content-Type": "application/json"}
            conn.request(method, path, body, headers)
            reply = conn.getresponse()
            return reply.status, json.loads(reply.read() or b"null"), reply.headers
        finally:
            conn.close()

    def get(self, worker, path):
        return self.ask(worker, "GET", path)[:2]

    def update(self, worker, **fields):
        return self.ask(worker, "POST", "/update", fields)[:2]

    def in_background(self, worker, **fields):
        """An update of which the answer, or the error, is in the list that is given back."""
        answers = []

        def run():
            try:
                answers.append(self.update(worker, **fields))
            except OSError as error:
                answers.append(error)
            except http.client.HTTPException as error:
                answers.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.case.addCleanup(thread.join, PATIENCE)
        return thread, answers

    def stop(self, number=signal.SIGTERM):
        """Stops it; the seconds that took. All that it must leave behind is checked."""
        self.everyone.update(below(self.process.pid))
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        took = time.monotonic() - began
        self.await_events("end")  # its last lines may still be in the pipe
        self.case.assertEqual(code, 0, self.process.stderr.read())
        self.case.assertEqual([pid for pid in self.everyone if alive(pid)], [])
        self.check_given_back()
        return took

    def check_given_back(self):
        """What was handed to a worker that was stopping goes back with its last step, for which the store may have had no time: then it ends with its claim."""
        left = self.case.show(LOCK)
        if left is None:
            return
        self.case.assertEqual([holder for holder in left["holders"] if holder["left_ms"] > CLAIM_MS], [], left)
        raise NotInTime(f"nobody gave back {left}")


class DemoCase(Case):
    def check_no_overlap(self, cluster):
        """No two of the recorded intervals overlap, and tokens rise with them."""
        held = sorted(cluster.events("lock_released", status="OK"), key=lambda line: line["held_from_us"])
        for before, after in zip(held, held[1:]):
            self.assertLessEqual(before["held_until_us"], after["held_from_us"], (before, after))
            self.assertLess(before["fence"], after["fence"], (before, after))
        return held

    def data_env(self):
        """The environment in which values are found: over a quorum, in its first server."""
        return dict(self.env, DIBS_URL=self.env["DIBS_URL"].replace("redlock:", "redis:").partition(",")[0])

    def keys(self):
        return self.ok("state", "ls", "--names", env=self.data_env()).split()
