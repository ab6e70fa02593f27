"""The dashboard in a browser, the long part (`make web`): accessibility, many locks, memory."""
# SPDX-License-Identifier: MIT
import os
import time
import unittest

from scene import Scene  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import main

AXE = os.environ.get("DIBS_AXE")
MANY = 10000
STEPS = 30
ADDRESSES = (("#/", "Most wanted"), ("#/locks", "nightly"), ("#/locks/nightly", "Who is next"), ("#/waits", "nightly"), ("#/audit", "Audit"),
             ("#/jobs", "There is no job."), ("#/nodes", "No node is there"))


class Whole(unittest.TestCase):
    def setUp(self):
        self.scene = Scene()
        self.addCleanup(self.scene.end)
        self.browser = Browser()
        self.addCleanup(self.browser.end)

    def busy(self):
        """Milliseconds that the thread of the page has worked."""
        found = {m["name"]: m["value"] for m in self.browser.devtools("Performance.getMetrics")["metrics"]}
        return found["TaskDuration"] * 1000

    def sign_in(self):
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens["admin"])
        self.browser.await_text("Most wanted")

    @unittest.skipUnless(AXE, "axe-core was not fetched: the registry of npm is not reached")
    def test_accessibility(self):
        self.scene.lease("nightly", label="backup", meta={"build": "1"})
        self.scene.run("nightly")
        self.sign_in()
        with open(AXE, encoding="utf-8") as file:
            axe = file.read()
        for theme in ("light", "dark"):
            self.browser.run("localStorage.setItem('dibs.theme', args[0]); location.reload()", theme)
            self.browser.await_(f"return document.documentElement.dataset.theme === '{theme}'", theme)
            self.browser.devtools("Runtime.evaluate", expression=axe)
            for address, text in ADDRESSES:
                self.browser.run("location.hash = args[0]", address)
                self.browser.await_text(text)
                found = self.browser.run("const got = await axe.run(document, { resultTypes: ['violations'] });"
                                         "return got.violations.filter(v => ['serious', 'critical'].includes(v.impact))"
                                         ".map(v => [v.id, v.impact, v.nodes[0].html.slice(0, 200)])")
                self.assertEqual(found, [], (theme, address))

    def test_many_locks(self):
        """Only the rows in view are there, and a step of scrolling takes less than 50 ms of the processor."""
        connection = self.scene.connect()
        self.addCleanup(connection.close)
        for i in range(MANY):
            connection.request("POST", f"/v1/leases/many:{i // 100}:{i}", b'{"ttl_ms":3600000}',
                               {"Authorization": "Bearer " + self.scene.tokens["admin"], "Content-Type": "application/json"})
            connection.getresponse().read()
        self.sign_in()
        self.browser.run("location.hash = '#/locks?flat=1'")
        self.browser.await_text("many:0:0", "main")
        # Of the thread, not of the clock: other programs may be busy.
        self.browser.devtools("Performance.enable", timeDomain="threadTicks")
        before = self.busy()
        for _ in range(STEPS):
            self.browser.run("scrollBy(0, 4000); await new Promise(go => setTimeout(go, 50))")
        step_ms = (self.busy() - before) / STEPS
        self.assertLess(self.browser.run("return document.querySelectorAll('.rows .row').length"), 80)
        self.browser.fill("#find", "9999")
        self.browser.await_("return document.querySelectorAll('.rows .row').length === 1", "one row")
        print(f"{MANY} locks: {step_ms:.1f} ms of the processor for a step of scrolling")
        self.assertLess(step_ms, 50)

    def test_memory(self):
        """Elements and heap after a minute of changes are as after a quarter of it."""
        self.sign_in()
        self.browser.run("location.hash = '#/locks'")

        def change(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for i in range(20):
                    token = self.scene.lease(f"moves:{i}")["token"]
                    self.scene.post(f"/v1/leases/moves:{i}/release", {"token": token})
            self.browser.devtools("HeapProfiler.collectGarbage")
            return self.browser.run("return [performance.memory.usedJSHeapSize, document.querySelectorAll('*').length]")

        before, after = change(15), change(45)
        print(f"heap {before[0] // 1024} KiB then {after[0] // 1024} KiB; elements {before[1]} then {after[1]}")
        self.assertLess(after[0], before[0] * 1.5 + 2e6)
        self.assertLess(after[1], before[1] + 200)


if __name__ == "__main__":
    main()
