"""Texts that want to run, in every field that a client, an operator or a job can write, on every page (`make web`)."""
# SPDX-License-Identifier: MIT
import json
import os
import sqlite3
import tempfile
import unittest
from urllib.parse import quote

from scene import PATIENCE, Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from corpus import CORPUS
from runtools import main

PAGES = ("#/", "#/locks", "#/locks?flat=1", "#/locks?sort=-age", "#/waits", "#/coordination", "#/queues", "#/jobs", "#/jobs?hours=2", "#/jobs?week=now", "#/nodes", "#/audit")
NONE_OF = "script, img, iframe, object, embed, video, audio, source, link, meta, base, style, template, form[action], foreignObject, animate, set"

TURNED = """
const all = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), found = [];
while (all.nextNode()) {
  const text = all.currentNode, el = text.parentElement, style = getComputedStyle(el);
  if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(text.data) || el.closest('svg, option')) continue;
  const alone = [...el.childNodes].slice([...el.childNodes].indexOf(text) + 1).every(x => !x.textContent.trim());
  if (!alone || (style.display === 'inline' && !style.unicodeBidi.startsWith('isolate'))) found.push(el.outerHTML.slice(0, 120));
}
return found;
"""


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dibs-xss-")
        cls.addClassCleanup(folder.cleanup)
        with open(folder.name + "/lines", "w", encoding="utf-8") as file:
            file.write("\n".join(CORPUS) + "\n")
        jobs = {f"job{i}": {"description": text, "schedule": "0 2 * * *", "params": {"x": {"default": text}}, "run": ["cat", folder.name + "/lines"],
                            "env": {"X": text}} for i, text in enumerate(CORPUS)}
        jobs["fails"] = {"shell": f"cat {folder.name}/lines >&2; exit 3"}
        path = os.path.join(folder.name, "jobs.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"set": "texts", "jobs": jobs}, file)
        cls.scene = Scene("--jobs", path, "--slots", "8")
        cls.addClassCleanup(cls.scene.end)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def ask(self, method, path, body, good, **query):
        """A name that the daemon refuses is none that the page could show."""
        answer = self.scene.ask(method, path, body, query=query)
        self.assertIn(answer.status, good, (path, body, answer.text))
        return answer.json if answer.text.startswith("{") and answer.status < 300 else None

    def fill_locks(self):
        good = []
        for i, text in enumerate(CORPUS):
            answer = self.scene.post("/v1/leases/~", {"ttl_ms": 600000, "label": text, "meta": {f"m{i}": text}}, query={"name": text})
            self.assertIn(answer.status, (201, 400), answer.text)
            good += [text] if answer.status == 201 else []
        for text in CORPUS[::5]:
            self.scene.wait_for(quote(good[0], safe=""), label=text)
        self.assertGreater(len(good), len(CORPUS) * 0.8)
        return good

    def fill_hosts(self):
        """Whoever can write to the store says which host it is: that goes past every check of a client."""
        store = sqlite3.connect(self.scene.url.split(":", 1)[1], timeout=PATIENCE)
        columns = [row[1] for row in store.execute("PRAGMA table_info(party)")]
        values = ", ".join({"name": "?", "owner": "?", "who": "?"}.get(column, column) for column in columns)
        with store:
            for i, text in enumerate(CORPUS):
                store.execute(f"INSERT INTO party SELECT {values} FROM party WHERE name = ?",
                              (f"host:{i}", f"{i:032x}", f"{text}:1/{text} {text}\tk={text}\t{text}=v", self.named[-1]))
        store.close()

    def fill_nouns(self):
        session = self.scene.post("/v1/sessions", {"ttl_ms": 600000, "name": CORPUS[1]}).json["session"]
        for i, text in enumerate(CORPUS):
            if i % 6 == 0:
                self.ask("POST", "/v1/breakers/~/trip", {"reason": text}, (200, 204, 400), name=text)
                self.ask("POST", "/v1/latches/~/count-down", {"count": 2, "id": text}, (200, 400), name=text)
                self.ask("POST", "/v1/limits/~/take", {"count": 1, "period_ms": 3600000}, (200, 400), name=text)
                self.ask("PUT", f"/v1/sessions/{session}/leases/e{i}", {"name": f"election{i}", "kind": "election", "member": text, "wait_ms": 1000},
                         (200, 201, 202, 400), wait_ms=0)
                self.ask("POST", "/v1/queues/~", {"data": text}, (200, 201, 400), name=text)
            self.ask("POST", "/v1/queues/~", {"data": text, "headers": {f"h{i}": text}}, (200, 201, 400), name="letters")
        while self.bury(session):
            pass

    def fill_members(self):
        """Members, their labels and facts. Names of steps, nodes' labels and tokens have letters and digits alone."""
        for text in CORPUS[:3]:
            self.scene.behind("join", "members", "--member", text, "--label", text, "--meta", "fact=" + text, "--", "sleep", "3600")
        wait_until(lambda: len(self.scene.get("/v1/members/members").json["members"]) == 3, "three members")

    def bury(self, session):
        items = self.ask("POST", "/v1/queues/~/reserve", {"session": session, "count": 10, "wait_ms": 0}, (200,), name="letters")["items"]
        for item in items:
            self.ask("POST", "/v1/queues/~/settle", {"session": session, "delivery": item["delivery"], "how": "dead", "reason": item["data"]}, (200, 204), name="letters")
        return len(items)

    def fill_trail(self):
        for i, text in enumerate(CORPUS):
            self.scene.lease(f"broken:{i}")
            self.ask("POST", "/v1/locks/~/break", {"fence": 0, "reason": text}, (200, 400), name=f"broken:{i}")
            if i % 6 == 0:
                self.ask("POST", f"/v1/jobs/job{i}/pause", {"reason": text}, (200, 204, 400))

    def fill_runs(self):
        runs = [self.scene.post(f"/v1/jobs/{job}/run", {"reason": CORPUS[1], **more}).json["id"]
                for job, more in (("job1", {"params": {"x": CORPUS[2]}}), ("fails", {}))]
        for run in runs:
            wait_until(lambda: self.scene.get("/v1/runs/" + run).json["state"] in ("OK", "FAILED"), "the end of the run")
        return runs

    def visit(self, address):
        self.browser.run("location.hash = args[0]", address)
        self.browser.await_("return document.querySelector('main h1')?.textContent && !document.querySelector('main').innerText.includes('Loading …')", "the page " + address)
        self.assertEqual(self.browser.run("return [window.broken, [...document.body.querySelectorAll(args[0])].map(x => x.outerHTML.slice(0, 80)),"
                                          "[...document.querySelectorAll('main *')].flatMap(x => x.getAttributeNames()).filter(n => n.startsWith('on')),"
                                          "[...document.querySelectorAll('a')].map(a => a.getAttribute('href')).filter(x => x && !x.startsWith('#')), ({}).broken ?? null]", NONE_OF),
                         [0, [], [], [], None], address)

        # A mark of direction turns the text that has it, and nothing beside it.
        self.assertEqual(self.browser.run(TURNED), [], address)

    def path(self, *parts):
        return "#/" + "/".join(self.browser.run("return encodeURIComponent(args[0])", part) for part in parts)

    def test_texts_stay_texts(self):
        self.named = self.fill_locks()
        self.fill_hosts()
        self.fill_nouns()
        self.fill_members()
        self.fill_trail()
        runs = self.fill_runs()
        browser = self.browser
        browser.open(self.scene.page + "#token=" + self.scene.tokens["admin"])
        browser.await_text("admin", "#me")
        browser.run("window.broken = 0")
        for address in (*PAGES, *("#/runs/" + run for run in runs)):
            self.visit(address)
        browser.await_text(CORPUS[-1], ".output")  # of the last run
        for text in self.named:
            self.visit(self.path("locks", text))
            self.assertEqual(browser.run("return document.querySelector('main h1 code').textContent"), text)
        for i, text in enumerate(CORPUS):
            self.visit(f"#/locks/host%3A{i}")
            self.visit(f"#/jobs/job{i}")
            self.visit(self.path("queues", text))  # of some, and the error of the others
        self.visit("#/coordination/members")
        browser.await_text(CORPUS[1], ".audit")
        self.visit("#/queues/letters")
        browser.await_text(CORPUS[1], ".messages")
        self.visit("#/locks?q=" + browser.run("return encodeURIComponent(args[0])", CORPUS[1]))
        for text in CORPUS[::6]:
            self.visit(self.path("runs", text))
            self.visit(self.path("coordination", text))
            self.visit(text if text.startswith("#") else "#/" + text)
        self.visit("#/audit")
        browser.await_text(CORPUS[1], "main")
        # In a question, too.
        self.visit(self.path("locks", CORPUS[1]))
        browser.click_text("Break…")
        browser.await_text(CORPUS[1], "dialog")
        self.assertEqual(browser.run("return [window.broken, document.querySelectorAll('dialog img').length]"), [0, 0])
        self.assertIsNone(browser.alert())
        self.assertEqual([line for line in browser.complaints() if "Failed to load resource" not in line], [])


if __name__ == "__main__":
    main()
