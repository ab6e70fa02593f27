"""What each page of the dashboard says when the store is away, when it may not see something, and when a right is taken away (`make web`)."""
# SPDX-License-Identifier: MIT
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from scene import PATIENCE, Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import main

JOBS = """
set: states
jobs:
  nightly: {schedule: '0 2 * * *', shell: 'echo done'}
  wordy: {schedule: '0 9-17/2 * * MON-FRI', shell: 'echo done'}
"""
# Each page, and what it shows of the scene.
PAGES = {"#/": "Most wanted", "#/locks": "held-name", "#/locks/held-name": "Held by one", "#/waits": "held-name", "#/coordination": "payments",
         "#/queues": "letters", "#/queues/letters": "Ready 1", "#/jobs": "nightly", "#/jobs/nightly": "0 2 * * *", "#/jobs?hours=48": "nightly", "#/jobs?week=now": "Runs by their begin", "#/nodes": "active", "#/audit": "for a test"}


class Redis:
    """A server of its own, which can go away and come back."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="dibs-redis-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly", "yes"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.answers, "the Redis server")

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as peer:
                peer.sendall(b"PING\r\n")
                return peer.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def end(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def fill(scene):
    scene.lease("held-name", label="worker")
    scene.wait_for("held-name", label="next")
    scene.post("/v1/breakers/payments/trip", {"reason": "test"})
    scene.post("/v1/queues/letters", {"data": "x"})
    scene.lease("gone")
    scene.post("/v1/locks/gone/break", {"fence": 0, "reason": "for a test"})
    run = scene.post("/v1/jobs/nightly/run", {}).json["id"]
    wait_until(lambda: scene.get("/v1/runs/" + run).json["state"] == "OK", "the end of a run")
    return {**PAGES, "#/runs/" + run: "done"}


class States(unittest.TestCase):
    def begin(self, **more):
        folder = tempfile.TemporaryDirectory(prefix="dibs-states-")
        self.addCleanup(folder.cleanup)
        with open(folder.name + "/jobs.yaml", "w", encoding="utf-8") as file:
            file.write(JOBS)
        self.scene = Scene("--jobs", folder.name + "/jobs.yaml", **more)
        self.addCleanup(self.scene.end)
        self.pages = fill(self.scene)
        self.browser = Browser()
        self.addCleanup(self.browser.end)
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens["admin"])
        self.browser.await_text("admin", "#me")

    def go(self, address, text=None):
        self.browser.run("location.hash = args[0]", address)
        if text:
            self.browser.await_text(text)

    @unittest.skipUnless(shutil.which("redis-server"), "redis-server is not installed")
    def test_store_away(self):
        redis = Redis()
        self.addCleanup(redis.end)
        self.begin(url=f"redis://127.0.0.1:{redis.port}")
        self.go("#/locks", "held-name")
        redis.stop()
        # What was shown stays, and is said to be old.
        self.browser.await_text("The store is away", "#notice")
        self.assertIn("held-name", self.browser.text("main"))
        self.assertEqual(self.browser.run("return document.body.dataset.link"), "away")
        for address in self.pages:
            with self.subTest(address):
                self.go(address)
                self.browser.await_("const words = document.querySelector('main').innerText; return document.querySelector('main .card, main .empty') && !words.includes('Loading …')",
                                    "the page without its store")
                self.browser.await_text("The store is away", "#notice")
        self.go("#/")
        self.browser.await_text("The store is away.", "h1")
        self.browser.await_text("Most wanted")
        # It goes on by itself.
        redis.start()
        self.browser.await_("return !document.getElementById('notice').firstChild && document.body.dataset.link === 'live'", "news again")
        for address, text in self.pages.items():
            with self.subTest(address):
                if address != "#/nodes":  # the lease of the node may be gone
                    self.go(address, text)

    def refuse(self, pattern, status=403, detail="The token may not see this"):
        """From now on the daemon, as far as the page knows, refuses what fits."""
        self.browser.run("window.real ??= window.fetch; window.fetch = (path, opts) => new RegExp(args[0]).test(path) && !/whoami|events|overview/.test(path)"
                         " ? Promise.resolve(new Response(JSON.stringify({ status: args[1], code: 'names', title: 'Not allowed', detail: args[2] }),"
                         " { status: args[1], headers: { 'Content-Type': 'application/problem+json' } })) : window.real(path, opts)", pattern, status, detail)

    def test_part_not_read(self):
        """A part of the overview that cannot be read is no sign that all is well."""
        self.begin()
        self.go("#/", "Breaker open payments")
        self.refuse("v1/(queues|breakers)", 503, "The store was too slow")
        self.browser.await_text("Not read breakers, queues", ".attention")
        self.assertIn("The store was too slow", self.browser.text(".attention"))
        self.assertIn("Breaker open payments", self.browser.text(".attention"))
        self.assertIn("need a look", self.browser.text("h1"))
        self.assertIn("not read", self.browser.run("return [...document.querySelectorAll('.tile')].find(x => /In queues/i.test(x.innerText)).innerText"))
        self.refuse("^$")
        self.browser.await_("return !document.querySelector('.attention').innerText.includes('Not read')", "the parts again")

    def test_trail_leads_to_what_was_changed(self):
        self.begin()
        run = self.scene.post("/v1/jobs/nightly/run", {}).json["id"]
        wait_until(lambda: self.scene.get("/v1/runs/" + run).json["state"] == "OK", "the end of a run")
        self.scene.post(f"/v1/runs/{run}/rerun", {})
        self.scene.post("/v1/queues/letters/pause", {})
        node = self.scene.get("/v1/nodes").json["items"][0]["id"]
        self.scene.post(f"/v1/nodes/{node}/drain", {})
        self.go("#/audit", "node-drain")
        links = self.browser.run("return [...document.querySelectorAll('.audit .rows .row')].map(x => [x.children[2].innerText.trim(), x.querySelector('a')?.getAttribute('href')])")
        wanted = {"break": "#/locks/gone", "queue-pause": "#/queues/letters", "job-run": "#/jobs/nightly", "run-rerun": "#/runs/" + run.replace(":", "%3A").replace("@", "%40"),
                  "node-drain": "#/nodes", "breaker-trip": "#/coordination"}
        self.assertEqual({action: href for action, href in links if action in wanted}, wanted)

    def test_not_allowed(self):
        self.begin()
        for address, text in self.pages.items():
            with self.subTest(address):
                # At once, and after it was allowed.
                self.refuse("v1/")
                self.go("#/none")
                self.go(address, "The token may not see this")
                self.assertIn("Not allowed", self.browser.text("main"))
                self.refuse("^$")
                self.go("#/none")
                self.go(address, text)
                self.refuse("v1/")
                self.browser.await_text("The token may not see this", "main")
                if "/runs/" not in address:
                    self.assertIn(text, self.browser.text("main"))
                self.refuse("^$")

    def test_narrow(self):
        """On a telephone no cell of a row runs into the next, and each number has its name."""
        self.begin()
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        item = self.scene.post("/v1/queues/letters/reserve", {"session": session}).json["items"][0]
        self.scene.post("/v1/queues/letters/settle", {"session": session, "delivery": item["delivery"], "how": "dead", "reason": "nobody could do this, and that is a long story"})
        self.browser.size(390, 844)
        for address, text in {**self.pages, "#/queues/letters": "long story"}.items():
            with self.subTest(address):
                self.go(address, text)
                self.assertEqual(self.browser.run("return [...document.querySelectorAll('main .rows .row > *')].filter(x => x.offsetParent && x.scrollWidth > x.clientWidth + 1"
                                                  " && getComputedStyle(x).overflowX === 'visible').map(x => x.outerHTML.slice(0, 160))"), [])
        self.go("#/jobs", "nightly")
        self.assertGreaterEqual(self.browser.run("return document.querySelector('.jobs .rows .row:last-child .name').getBoundingClientRect().width"), 40)
        self.go("#/queues", "letters")
        self.assertIn("Ready", self.browser.run("return getComputedStyle(document.querySelector('.queues .rows .row').children[1], '::before').content"))

    def test_right_is_taken_away(self):
        self.begin()
        fence = self.scene.get("/v1/locks/held-name").json["holders"][0]["fence"]
        self.go("#/locks/held-name", "Held by one")
        self.browser.click_text("Break…")
        self.browser.fill("#reason", "too late")
        self.browser.fill("#typed", "held-name")
        with open(self.scene.file, encoding="utf-8") as file:
            lines = file.read()
        with open(self.scene.file, "w", encoding="utf-8") as file:
            file.write(lines.replace("admin admin", "admin read"))
        self.assertNotEqual(lines, lines.replace("admin admin", "admin read"))
        os.kill(self.scene.process.pid, signal.SIGHUP)
        wait_until(lambda: self.scene.get("/v1/whoami").json["role"] == "read", "the new role")
        self.browser.click("dialog button[type=submit]")
        self.browser.await_("return document.querySelector('dialog .badtext').innerText", "what the daemon refused")
        self.assertEqual(self.scene.get("/v1/locks/held-name").json["holders"][0]["fence"], fence)


if __name__ == "__main__":
    main()
