"""The pages of coordination and queues in a browser: rows, states, roles and actions, and names that want to be markup."""
# SPDX-License-Identifier: MIT
import unittest

from scene import Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import main

MARKUP = "<img src=x onerror=window.broken=1>"


class Shown(unittest.TestCase):
    """A scene and a browser, for the tests of one class."""

    @classmethod
    def setUpClass(cls):
        cls.scene = Scene()
        cls.addClassCleanup(cls.scene.end)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def show(self, address, role="admin"):
        """The page of an address, as a viewer with this role sees it."""
        self.browser.open("about:blank")
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens[role])
        self.browser.await_text(role, "#me")
        self.browser.run("location.hash = args[0]", address)

    def confirm(self, reason=None, word=None):
        self.browser.find("dialog[open]")
        if reason:
            self.browser.fill("#reason", reason)
        if word:
            self.browser.fill("#typed", word)
        self.browser.click("dialog button[type=submit]")
        self.browser.await_("return !document.querySelector('dialog')", "the end of the dialog")

    def lead(self, name, member, **more):
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        answer = self.scene.ask("PUT", f"/v1/sessions/{session}/leases/x", {"name": name, "kind": "election", "member": member,
                                                                            "wait_ms": 600000, **more}, query={"wait_ms": 0})
        self.assertIn(answer.status, (201, 202), answer.text)
        return session

    def dead_letters(self, name, count, data="poison"):
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        for _ in range(count):
            self.scene.post("/v1/queues/~", {"data": data}, query={"name": name})
        items = self.scene.post("/v1/queues/~/reserve", {"session": session, "count": count}, query={"name": name}).json["items"]
        for item in items:
            self.scene.post("/v1/queues/~/settle", {"session": session, "delivery": item["delivery"], "how": "dead", "reason": data},
                            query={"name": name})

    def queue(self, name):
        return self.scene.get("/v1/queues/~", query={"name": name}).json


class Nouns(Shown):
    def test_coordination(self):
        self.show("#/coordination")
        self.browser.await_text("Nobody is a candidate.")
        self.browser.await_text("No breaker has opened.")
        self.lead("election-1", "ann " + MARKUP)
        self.browser.await_text("ann " + MARKUP)
        self.scene.post("/v1/breakers/payments/trip", {"reason": "test"})
        self.browser.await_text("payments")
        self.browser.await_text("open by hand")
        self.show("#/")
        self.browser.await_text("Breaker open payments", ".attention")
        self.show("#/coordination")
        # A command and a session, which have named nothing to the daemon's lists.
        for noun in ("No party waits.", "No latch has counted.", "No tokens are out.", "dibs.nodes"):
            self.browser.await_text(noun)
        self.scene.behind("latch", "count-down", "shards", "-n", "2")
        self.browser.await_text("1 of 2")
        self.scene.behind("limit", "sms-gateway", "--rate", "5/h", "--tokens", "4")
        self.browser.await_text("sms-gateway")
        self.assertIn("one each 12", self.browser.text("main"))
        self.scene.behind("join", "workers-1", "--", "sleep", "1000")
        self.browser.await_text("workers-1")
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        self.scene.post("/v1/barriers/phase-1/arrive", {"session": session, "id": "a", "parties": 3}, query={"wait_ms": 1})
        self.browser.await_text("1 of 3")
        self.browser.fill("#begins", "work")
        self.browser.await_("return !document.body.innerText.includes('phase-1')", "the shorter lists")
        self.browser.await_text("workers-1")
        self.browser.fill("#begins", "")
        self.browser.await_text("phase-1")
        # A breaker that has not opened is looked up by its name.
        self.browser.fill("#lookup", "quiet")
        self.browser.click(".filters button")
        self.browser.await_text("quiet is closed.", ".filters")
        # Each change is asked for by its name.
        self.browser.click_text("End the term…")
        self.assertIn("election-1", self.browser.text("dialog"))
        self.confirm("hung")
        wait_until(lambda: not self.scene.get("/v1/elections/election-1").json["leader"], "the end of the term")
        self.browser.click_text("Close…")
        self.assertIn("payments", self.browser.text("dialog"))
        self.confirm("mended")
        self.assertEqual(self.scene.get("/v1/breakers/payments").json["state"], "closed")
        self.browser.click_text("Reset…")
        self.assertIn("shards", self.browser.text("dialog"))
        self.confirm("again")
        self.assertEqual(self.scene.get("/v1/latches/shards").json["left"], 2)
        self.assertIsNone(self.browser.run("return window.broken ?? null"))
        self.assertEqual([line for line in self.browser.complaints() if "Failed to load resource" not in line], [])
        self.lead("election-2", "bob")
        self.show("#/coordination", "read")
        self.browser.await_text("bob")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main .table button').length"), 0)

    def test_queues(self):
        self.show("#/queues/none")
        self.browser.await_text("Not here")
        name = "mail " + MARKUP
        self.dead_letters(name, 3, MARKUP)
        self.show("#/queues")
        self.browser.await_text(name)
        self.browser.click(".queues a.name")
        self.browser.await_text("Dead letters 3")
        self.browser.await_text(MARKUP, ".messages")
        # What went wrong is on the first page, and leads to its own.
        self.browser.run("location.hash = '#/'")
        self.browser.await_text("Dead letters " + name, ".attention")
        self.browser.await_text("3 dead letters", ".tiles")
        self.browser.run("[...document.querySelectorAll('.attention a')].find(a => a.innerText.startsWith('Dead letters')).click()")
        self.browser.await_text("Dead letters 3")
        self.browser.click_text("Redrive…")
        self.confirm()
        wait_until(lambda: self.queue(name)["dead"] == 2, "one redriven")
        self.browser.await_text("Dead letters 2")
        self.browser.click_text("Redrive dead letters…")
        self.assertIn("All 2", self.browser.text("dialog"))
        self.confirm("mended")
        self.assertEqual((self.queue(name)["dead"], self.queue(name)["ready"]), (0, 3))
        self.browser.click_text("Pause…")
        self.assertIn(name, self.browser.text("dialog"))
        self.confirm("deploy")
        self.browser.await_text("Paused: nothing is delivered.")
        self.browser.click_text("Resume…")
        self.confirm()
        self.browser.await_text("No consumer is there.")
        self.browser.click("[data-act=ready]")
        self.browser.await_text("Drop “Ready”…")
        self.browser.click("[data-act=purge]")
        self.assertTrue(self.browser.run("return document.querySelector('dialog button[type=submit]').disabled"))
        self.confirm("test", name)
        self.assertEqual(self.queue(name)["ready"], 0)
        self.assertIsNone(self.browser.run("return window.broken ?? null"))
        for width in (390, 1280, 2560):
            self.browser.size(width)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
        self.browser.size(1280)
        # A reader is offered nothing.
        self.dead_letters(name, 1)
        self.show("#/queues/" + self.browser.run("return encodeURIComponent(args[0])", name), "read")
        self.browser.await_text("Dead letters 1")
        self.assertEqual(self.browser.run("return document.querySelectorAll('[data-act=pause], [data-act=redrive], [data-act=purge]').length"), 0)


class Rows(Shown):
    """What stays and what changes when news come."""

    def term(self, name):
        return self.scene.get("/v1/elections/" + name).json["leader"]

    def test_rows_of_coordination_are_kept(self):
        """News change what a row says, not the row: the focus and a question stay, and a question is about the row as it is then."""
        first = self.lead("kept-1", "ann")
        self.scene.behind("latch", "count-down", "kept-2", "-n", "3")
        self.show("#/coordination")
        for row, part in (("kept-1", "ann"), ("kept-2", "1 of 3")):
            self.browser.await_(f"return [...document.querySelectorAll('.coord .row')].some(x => x.innerText.startsWith('{row}') && x.innerText.includes('{part}'))", row)
        self.browser.run("window.mine = name => [...document.querySelectorAll('.coord .row')].find(x => x.innerText.startsWith(name));"
                         "window.at = mine('kept-2').querySelector('button'); at.focus();")
        self.scene.behind("latch", "count-down", "kept-2", "-n", "3")
        self.browser.await_("return mine('kept-2').innerText.includes('2 of 3')", "the second count")
        self.assertTrue(self.browser.run("return at.isConnected && document.activeElement === at"))
        self.browser.press("enter")
        self.browser.await_text("2 of 3 have counted", "dialog")
        self.lead("kept-1", "bob")
        self.browser.await_("return mine('kept-1').innerText.includes('and 1 candidate')", "the candidate")
        self.browser.press("escape")
        self.browser.await_("return !document.querySelector('dialog')", "the end of the dialog")
        self.assertTrue(self.browser.run("return document.activeElement === at"))
        # Another leads by now: the button, which has stayed, asks about that one.
        self.browser.run("window.at = mine('kept-1').querySelector('button'); at.focus();")
        self.scene.ask("DELETE", "/v1/sessions/" + first)
        self.browser.await_("return mine('kept-1').innerText.includes('bob')", "the next leader")
        self.assertTrue(self.browser.run("return document.activeElement === at"))
        self.browser.press("enter")
        self.browser.await_text("bob leads kept-1", "dialog")
        self.confirm("test")
        wait_until(lambda: not self.term("kept-1"), "the end of the term")

    def test_a_row_that_goes_leaves_the_focus_behind_it(self):
        before = self.lead("goes-1", "ann")
        self.lead("goes-2", "bob")
        self.show("#/coordination")
        self.browser.await_text("goes-1")
        self.browser.await_text("goes-2")
        self.browser.run("window.at = [...document.querySelectorAll('.coord .row')].find(x => x.innerText.startsWith('goes-2')).querySelector('button'); at.focus();")
        self.scene.ask("DELETE", "/v1/sessions/" + before)
        self.browser.await_("return !document.body.innerText.includes('goes-1')", "the end of a row")
        self.assertTrue(self.browser.run("return document.activeElement === at"))

    def test_a_member_that_counts_by_now(self):
        self.show("#/coordination/counted")
        self.browser.await_text("Nobody is there.", "main")
        self.scene.behind("join", "counted", "--member", "ann", "--ttl", "9s", "--", "sleep", "3600")
        self.browser.await_text("not yet", "[aria-label=Members]")
        self.browser.await_text("yes", "[aria-label=Members]")

    def test_a_list_says_that_there_are_more(self):
        self.lead("more", "ann", ttl_ms=600000)
        wait_until(lambda: "more" in [e["name"] for e in self.scene.get("/v1/elections").json["items"]], "the first election")
        self.scene.copy("more", ((i, f"more-{i}") for i in range(1, 251)))
        wait_until(lambda: self.scene.get("/v1/elections", query={"prefix": "more"}).json["total"] == 251, "all elections")
        self.show("#/coordination")
        self.browser.await_text("Leader", "[aria-label=Elections]")
        self.browser.fill("#begins", "more")
        self.browser.await_text("200 of 251; search to find the others.", "section[aria-label=Elections]")
        self.browser.fill("#begins", "more-25")
        self.browser.await_("return !document.body.innerText.includes('search to find')", "a list with all that fit")

    def test_holders_beyond_those_of_a_list(self):
        """A list has 8 holders of a name; the number of permits is of all of them, and a picture says how many it leaves out."""
        for _ in range(10):
            self.scene.lease("wide", mode="permits", permits=2, capacity=20)
        self.scene.wait_for("wide", mode="permits", permits=1, capacity=20)
        self.show("#/locks?q=wide")
        self.browser.await_text("20/20", "main")
        self.browser.await_text("and 9 more", "main")
        self.show("#/waits")
        self.browser.await_("return [...document.querySelectorAll('.waitgraph')].some(x => x.textContent.includes('wide') && x.textContent.includes('and 5 more'))", "the holders that are not drawn")

    def test_what_is_due_later_counts_down(self):
        self.scene.post("/v1/queues/later-mail", {"data": "x", "delay_ms": 3600000})
        self.show("#/queues/later-mail?state=later")
        self.browser.await_text("due in ", ".messages")
        first = self.browser.text(".messages .why small").strip()
        self.assertRegex(first, "^due in (59m|1h)")
        self.browser.await_("return document.querySelector('.messages .why small').innerText.trim() !== args[0]", "another time", first)


if __name__ == "__main__":
    main()
