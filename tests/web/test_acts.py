"""What an operator does on the dashboard by keys alone, on the pages of waits and breakers, and through proxies."""
# SPDX-License-Identifier: MIT
import json
import unittest

from scene import Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from proxy import Proxy
from runtools import main

STOPS_MAX = 80  # of the key Tab on one page


class Acts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scene = Scene("--base-path", "/ops/dibs")
        cls.addClassCleanup(cls.scene.end)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def show(self, address, base=None):
        self.browser.open("about:blank")
        self.browser.open((base or self.scene.page) + "#token=" + self.scene.tokens["admin"])
        self.browser.await_text("admin, admin", "#me")
        self.browser.run("location.hash = args[0]", address)

    def tab_to(self, label):
        """Presses Tab until this has the focus, as somebody does who has no mouse."""
        for _ in range(STOPS_MAX):
            if self.browser.focused().startswith(label):
                return
            self.browser.press("tab")
        self.fail(f"Tab does not lead to “{label}”")

    def await_dialog(self, part):
        self.browser.await_text(part, "dialog")
        self.assertTrue(self.browser.run("return document.querySelector('dialog').contains(document.activeElement)"))

    def await_no_dialog(self):
        self.browser.await_("return !document.querySelector('dialog')", "the end of the dialog")

    def test_break_by_keys_alone(self):
        self.scene.lease("keys:stuck", label="batch")
        self.show("#/locks/keys%3Astuck")
        self.browser.await_text("Held by one", "main")
        self.tab_to("Break…")
        self.browser.press("enter")
        self.await_dialog("keys:stuck")
        # A question that is left changes nothing, and the focus is where it was.
        self.browser.press("escape")
        self.await_no_dialog()
        self.assertEqual(self.browser.focused(), "Break…")
        self.assertEqual(len(self.scene.get("/v1/locks/keys%3Astuck").json["holders"]), 1)
        self.browser.press("enter")
        self.await_dialog("keys:stuck")
        self.browser.press(*"its host is gone", "tab", *"stuck", "enter")
        self.browser.await_text("Broken: keys:stuck", "#toasts")
        self.assertEqual(self.scene.get("/v1/locks/keys%3Astuck").json["holders"], [])

    def test_pause_a_queue_by_keys_alone(self):
        self.scene.post("/v1/queues/~", {"data": "x"}, query={"name": "keys-mail"})
        self.show("#/queues")
        self.browser.await_text("keys-mail")
        self.tab_to("keys-mail")
        self.browser.press("enter")
        self.browser.await_text("No consumer is there.")
        for button, label in (("Pause…", "deploy"), ("Resume…", "")):
            self.tab_to(button)
            self.browser.press("enter")
            self.await_dialog("keys-mail")
            self.browser.press(*label, "enter")
            self.await_no_dialog()
            paused = bool(label)
            wait_until(lambda paused=paused: self.scene.get("/v1/queues/keys-mail").json["paused"] == paused, button)

    def test_break_a_deadlock_where_it_is_shown(self):
        self.scene.deadlock("acts:one", "acts:two")
        self.show("#/waits")
        self.browser.await_text("holds acts:one and waits for acts:two", "main")
        self.browser.click_text("Break acts:one…")
        self.await_dialog("acts:one")
        self.browser.fill("#reason", "they wait for each other")
        self.browser.fill("#typed", "acts:one")
        self.browser.click("dialog .danger")
        self.browser.await_text("Broken: acts:one", "#toasts")
        wait_until(lambda: "acts:one" not in json.dumps(self.scene.get("/v1/waits").json["circles"]), "the end of the deadlock")
        self.browser.await_("return !document.querySelector('main').innerText.includes('Break acts:one…')", "the page to see it")

    def test_a_deadlock_behind_others_is_named(self):
        self.scene.deadlock("acts:five", "acts:six", others=7)
        self.show("#/waits")
        self.browser.await_text("and waits for acts:six", "main")
        self.browser.await_text("Break acts:six…", "main")

    def hold_back(self, part, method="GET"):
        """Requests of this method whose address has this part wait until release(); window.sent counts them."""
        self.browser.run("const real = window.real ||= window.fetch; window.held = []; window.sent = 0;"
                         "window.fetch = (path, opts) => (opts?.method || 'GET') !== args[1] || !String(path).includes(args[0]) ? real(path, opts)"
                         ": (window.sent++, new Promise((done, fail) => { held.push(() => done(real(path, opts)));"
                         " opts?.signal?.addEventListener('abort', () => fail(opts.signal.reason)); }));", part, method)

    def release(self):
        self.browser.run("window.fetch = window.real; window.held.forEach(go => go());")

    def test_a_drop_is_of_the_state_that_it_names(self):
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        self.scene.post("/v1/queues/acts-drop", {"data": "bad"})
        item = self.scene.post("/v1/queues/acts-drop/reserve", {"session": session, "count": 1}).json["items"][0]
        self.scene.post("/v1/queues/acts-drop/settle", {"session": session, "delivery": item["delivery"], "how": "dead", "reason": "x"})
        self.scene.post("/v1/queues/acts-drop", {"data": "waits"})
        self.show("#/queues/acts-drop?state=ready")
        self.browser.await_text("Drop “Ready”…")
        self.hold_back("/messages")
        self.browser.click("[data-act=dead]")
        self.browser.click("[data-act=purge]")
        self.await_dialog("“Ready”")
        self.browser.fill("#reason", "test")
        self.browser.fill("#typed", "acts-drop")
        self.browser.click("dialog .danger")
        self.await_no_dialog()
        self.release()
        left = self.scene.get("/v1/queues/acts-drop").json
        self.assertEqual((left["ready"], left["dead"]), (0, 1))

    def test_a_question_is_sent_once(self):
        self.scene.lease("acts:once")
        self.show("#/locks/acts%3Aonce")
        self.browser.click_text("Break…")
        self.hold_back("/break", "POST")
        self.browser.fill("#typed", "once")
        self.browser.fill("#reason", "slow")
        self.browser.press("enter", "e", "r", "enter")
        self.assertEqual(self.browser.run("return window.sent"), 1)
        self.release()
        self.browser.await_text("Broken: acts:once", "#toasts")

    def test_a_page_outlives_a_request_without_an_answer(self):
        self.scene.lease("acts-old")
        self.show("#/locks/acts-old")
        self.browser.await_text("Held by one", "main")
        self.hold_back("acts-old")
        self.browser.await_text("Shown as of", "main")
        self.browser.run("window.fetch = window.real")
        self.browser.await_("return !document.querySelector('main').innerText.includes('Shown as of')", "news again")

    def test_open_a_breaker(self):
        for change in ("trip", "reset"):
            self.assertIn(self.scene.post("/v1/breakers/acts-payments/" + change, {"reason": "test"}).status, (200, 204))
        self.show("#/coordination")
        self.browser.await_text("acts-payments")
        self.browser.click_text("Open…")
        self.await_dialog("acts-payments")
        self.browser.fill("#reason", "the bank is away")
        self.browser.click("dialog .danger")
        self.browser.await_text("Open: acts-payments", "#toasts")
        self.assertEqual(self.scene.get("/v1/breakers/acts-payments").json["state"], "forced")
        self.browser.await_text("open by hand")
        entry = self.scene.get("/v1/audit", query={"name": "acts-payments"}).json["items"][0]
        self.assertEqual((entry["action"], entry["reason"]), ("breaker-trip", "the bank is away"))

    def through(self, strip, name):
        """Through a proxy: the page, its files, a stream that goes on, and a change."""
        proxy = Proxy(self.scene.port, strip)
        self.addCleanup(proxy.end)
        self.show("#/locks", f"http://127.0.0.1:{proxy.port}/ops/dibs/")
        self.browser.await_text("Locks", "h1")
        self.browser.await_("return document.body.dataset.link === 'live'", "the stream of events")
        self.scene.lease(name)
        self.browser.await_text(name, "main")
        self.browser.run("location.hash = args[0]", "#/locks/" + name)
        self.browser.click_text("Break…")
        self.browser.fill("#reason", "through a proxy")
        self.browser.fill("#typed", name)
        self.browser.click("dialog .danger")
        self.browser.await_text("Broken: " + name, "#toasts")
        self.assertEqual([line for line in self.browser.complaints() if "Failed to load resource" not in line], [])

    def test_behind_a_proxy(self):
        self.through("", "proxied-whole")

    def test_behind_a_proxy_that_strips_its_path(self):
        self.through("/ops/dibs", "proxied-stripped")


if __name__ == "__main__":
    main()
