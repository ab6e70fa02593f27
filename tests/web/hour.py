"""The dashboard open for an hour of a busy store (`make web-hour`): the memory of the page stays, and that of the daemon is bounded.

  hour.py MINUTES [FASTER]

FASTER makes all that happens so many times as fast: 120 minutes at 5 have the events and the turns of ten hours.
"""
# SPDX-License-Identifier: MIT
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from scene import DIBS, Scene  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import free_base

# A page for ten seconds each, the overview at the end of each turn. The page turns itself, and its memory is read
# some thirty times in all: each command to the browser leaves bytes of its own in it.
PAGES = ("#/locks", "#/locks?flat=1", "#/waits", "#/coordination", "#/queues", "#/jobs", "#/jobs?hours=2", "#/nodes", "#/audit", "#/")
FASTER = float(sys.argv[2]) if len(sys.argv) > 2 else 1
STAY_S = 10 / FASTER
LOOKS = 30
WORKERS = 4
JOBS = f"""jobs:
  often:
    schedule: "@every {max(1, round(5 / FASTER))}s"
    run: [echo, it is time]
"""
# A chart of the last hour fills while the hour goes by, and a heap is never quite the same.
SLACK_BYTES = 1 << 20
# The daemon keeps the latest 65,536 holds and 4 MiB of events, which takes longer than an hour to fill.
DAEMON_BYTES = 64 << 20


class Hour:
    """A daemon with workers that take one lock in turns, a job every five seconds, and a window. end() ends all."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dibs-hour-")
        with open(self.folder.name + "/jobs.yaml", "w", encoding="utf-8") as file:
            file.write(JOBS)
        self.scene = Scene("--jobs", self.folder.name + "/jobs.yaml")
        self.scene.processes.append(subprocess.Popen(
            [DIBS, "demo", "--workers", str(WORKERS), "--http-port", str(free_base(WORKERS)), "--duration", f"{100 / FASTER:.0f}ms",
             "--every", f"{1000 / FASTER:.0f}ms"],
            env=self.scene.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.browser = Browser()
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens["admin"])
        self.browser.await_text("Most wanted")
        self.browser.devtools("HeapProfiler.enable")
        self.browser.devtools("Performance.enable")
        self.events = 0
        threading.Thread(target=self.count, daemon=True).start()

    def turn(self, times):
        """Every page in its turn, so many times over; ends at the overview."""
        addresses = PAGES * times
        self.browser.run("args[0].forEach((address, i) => setTimeout(() => { location.hash = address; }, i * args[1]));", addresses, STAY_S * 1000)
        time.sleep(STAY_S * len(addresses))
        self.browser.await_text("Most wanted")

    def look(self):
        """What is in use after garbage is gone: bytes of scripts, nodes of the page, who listens; and the daemon's resident bytes."""
        for _ in range(3):
            self.browser.devtools("HeapProfiler.collectGarbage")
        found = {m["name"]: int(m["value"]) for m in self.browser.devtools("Performance.getMetrics")["metrics"]}
        with open(f"/proc/{self.scene.process.pid}/statm", encoding="ascii") as file:
            daemon = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return {"heap": found["JSHeapUsedSize"], "nodes": found["Nodes"], "listeners": found["JSEventListeners"], "daemon": daemon}

    def count(self):
        """Reads the stream that the page reads, until the daemon ends it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.scene.port)
        connection.request("GET", "/v1/events", headers={"Authorization": "Bearer " + self.scene.tokens["read"]})
        for line in connection.getresponse():
            self.events += line.startswith(b"event:")

    def end(self):
        self.browser.end()
        self.scene.end()
        self.folder.cleanup()


def grown(looks, key, slack):
    """The medians of the second and of the last quarter, and whether the last is too large."""
    quarter = max(1, len(looks) // 4)
    before = statistics.median(look[key] for look in looks[quarter:2 * quarter] or looks[:1])
    after = statistics.median(look[key] for look in looks[-quarter:])
    return before, after, after > before * 1.1 + slack


def main():
    minutes = float(sys.argv[1])
    hour = Hour()
    looks, until = [], time.monotonic() + minutes * 60
    times = max(1, round(minutes * 60 / (LOOKS * STAY_S * len(PAGES))))
    try:
        while time.monotonic() < until or len(looks) < 2:
            hour.turn(times)
            looks.append(hour.look())
            look = looks[-1]
            print(f"{minutes - (until - time.monotonic()) / 60:5.1f} min  heap {look['heap'] // 1024:6} KiB  nodes {look['nodes']:5}  "
                  f"listeners {look['listeners']:4}  daemon {look['daemon'] // 1024:6} KiB  events {hour.events}", flush=True)
        complaints = hour.browser.complaints()
    finally:
        hour.end()
    failed = bool(complaints)
    for line in complaints:
        print(f"the console says: {line}")
    for key, slack in (("heap", SLACK_BYTES), ("nodes", 500), ("listeners", 100)):
        before, after, too_large = grown(looks, key, slack)
        print(f"{key}: {before:.0f} in the second quarter, {after:.0f} in the last{': it grows' if too_large else ''}")
        failed = failed or too_large
    if looks[-1]["daemon"] > DAEMON_BYTES:
        print(f"daemon: {looks[-1]['daemon']} bytes, more than {DAEMON_BYTES}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
