"""The dashboard in a browser: pages, actions, states, themes, widths, keys, and names that want to be markup."""
# SPDX-License-Identifier: MIT
import gzip
import hashlib
import os
import re
import shutil
import sqlite3
import unittest

from scene import PATIENCE, Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from corpus import SHORT as CORPUS
from runtools import ROOT, main

WEB = os.path.join(ROOT, "web")
# uPlot 1.6.32, as its authors published it.
VENDORED = {"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
            "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
            "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"}
COMPRESSED_MAX = 60 * 1000
PAGES = ("#/", "#/locks", "#/locks?flat=1", "#/waits", "#/audit")


def files():
    for folder, _, names in os.walk(WEB):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                yield os.path.relpath(os.path.join(folder, name), WEB), file.read()


def as_packed(path, text):
    """As the build packs it: blank lines and indents are left out, comments that have lines of their own or end one, but for those of a licence (`/*!`), and spaces of CSS."""
    if path.endswith("LICENSE"):
        return text
    kept, inside = [], False
    for line in text.decode().splitlines(keepends=True):
        begins, ends = line.lstrip(" ").startswith("/* "), line.endswith("*/\n")
        if not (inside or begins) and not line.lstrip(" ").startswith("// ") and line != "\n":
            kept.append(re.sub(" +// .*", "", line.lstrip(" ")) if path.endswith(".js") else line.lstrip(" "))
        inside = not ends if inside or begins else False
    whole = "".join(kept)
    if path.endswith(".css"):
        for long, short in ((" { ", "{"), (" }", "}"), (": ", ":"), (", ", ","), ("; ", ";"), (" > ", ">"), ("\n", "")):
            whole = whole.replace(long, short)
    return whole.encode()


class Files(unittest.TestCase):
    def test_vendored_files_are_as_published(self):
        self.assertEqual({name: hashlib.sha256(text).hexdigest() for path, text in files()
                          for folder, name in [os.path.split(path)] if folder == "vendor"}, VENDORED)

    def test_nothing_parses_markup(self):
        for path, text in files():
            for word in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b"new Function"):
                if not path.startswith("vendor"):
                    self.assertNotIn(word, text, path)


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scene = Scene("--base-path", "/ops/dibs")
        cls.addClassCleanup(cls.scene.end)

    def test_files(self):
        for path, text in files():
            url = "/" + ("" if path == "index.html" else path)
            with self.subTest(url):
                answer = self.scene.get(url, role=None)
                self.assertEqual((answer.status, answer.text.encode()), (200, text))
                self.assertEqual(answer.headers["Cache-Control"], "no-cache")
                policy = answer.headers["Content-Security-Policy"]
                self.assertIn("default-src 'none'; script-src 'self'; style-src 'self'", policy)
                self.assertNotIn("unsafe", policy)
                again = self.scene.get("/ops/dibs" + url, role=None, headers={"If-None-Match": answer.headers["ETag"]})
                self.assertEqual((again.status, again.text), (304, ""))

    def raw(self, path, **headers):
        """The status, headers and bytes of an answer that is not unpacked."""
        connection = self.scene.connect()
        try:
            connection.putrequest("GET", path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    @unittest.skipUnless(shutil.which("gzip"), "the build packs files by gzip")
    def test_packed_files(self):
        own = 0
        for path, text in files():
            with self.subTest(path):
                url = "/" + ("" if path == "index.html" else path)
                status, headers, sent = self.raw(url, Accept_Encoding="br, gzip")
                self.assertEqual((status, headers["Content-Encoding"], headers["Vary"]), (200, "gzip", "Accept-Encoding"))
                self.assertEqual(gzip.decompress(sent), as_packed(path, text))
                own += 0 if path.startswith("vendor") else len(sent)
                self.assertEqual(int(headers["Content-Length"]), len(sent))
                # Each form has its own tag: a cache that has one is not told that the other is unchanged.
                plain = self.raw(url)[1]
                self.assertEqual((plain["Content-Encoding"], plain["Vary"]), (None, "Accept-Encoding"))
                self.assertNotEqual(plain["ETag"], headers["ETag"])
                again, unchanged, _ = self.raw(url, Accept_Encoding="gzip", If_None_Match=headers["ETag"])
                self.assertEqual((again, unchanged["Content-Encoding"], unchanged["ETag"]), (304, None, headers["ETag"]))
                self.assertEqual(self.raw(url, Accept_Encoding="gzip", If_None_Match=plain["ETag"])[0], 200)
        self.assertLess(own, COMPRESSED_MAX)

    @unittest.skipUnless(shutil.which("gzip"), "the build packs files by gzip")
    def test_packed_only_when_asked(self):
        for header, packed in (("gzip", True), ("GZIP", True), ("deflate, gzip;q=1.0, *;q=0.5", True), ("br;q=1.0,gzip; q=0.8", True), ("gzip;q=0.001", True),
                               ("identity", False), ("gzip;q=0", False), ("gzip; q=0.000, br", False), ("xgzip", False), ("gzipx", False), ("", False), (",,", False)):
            with self.subTest(header):
                self.assertEqual(self.raw("/js/main.js", Accept_Encoding=header)[1]["Content-Encoding"], "gzip" if packed else None)

    def test_other_paths(self):
        for path in ("/js/../tokens", "/js/%2e%2e/index.html", "/js/..%2findex.html", "/JS/main.js", "/js/", "/js/pages/", "/css/app.css%00"):
            self.assertIn(self.scene.get(path, role=None).status, (400, 404), path)

    def test_base_path(self):
        answer = self.scene.get("/ops/dibs", role=None)
        self.assertEqual((answer.status, answer.headers["Location"]), (308, "/ops/dibs/"))
        self.assertIsNone(answer.headers["Content-Type"])


class Page(unittest.TestCase):
    """One store and one browser for all tests; each leaves the page signed in as admin."""

    @classmethod
    def setUpClass(cls):
        cls.scene = scene = Scene("--base-path", "/ops/dibs")
        cls.addClassCleanup(scene.end)
        for name in ("billing:account:12", "billing:invoice", "deploy/api", "deploy/web"):
            scene.lease(name, label="worker", meta={"build": "42"})
        for _ in range(2):
            scene.lease("downloads", mode="permits", permits=1, capacity=4)
        scene.lease("nightly", label="backup.sh")
        scene.run("nightly", "--label", "second")
        scene.deadlock("circle:one", "circle:two")
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)
        cls.base = scene.page + "ops/dibs/"
        cls.browser.open(cls.base + "#token=" + scene.tokens["admin"])
        cls.browser.await_text("Most wanted")

    def go(self, address, text):
        self.browser.run("location.hash = args[0]", address)
        self.browser.await_text(text)

    def sign_in(self, role):
        self.browser.run("sessionStorage.setItem('dibs.token', args[0]); location.hash = '#/'; location.reload()", self.scene.tokens[role])
        self.browser.await_text(f"{role}, {role}", "#me")

    def test_overview(self):
        self.go("#/", "wait for each other")
        text = self.browser.text("main")
        for part in ("needs a look", "Deadlock", "circle:one, circle:two", "Most wanted", "Held for longest", "Just now"):
            self.assertIn(part, text)
        self.assertNotIn("token", self.browser.run("return location.href"))
        self.browser.click(".attention a")
        self.browser.await_text("does not end by itself")

    def test_locks(self):
        self.go("#/locks", "billing:")
        self.browser.await_text("invoice", "main")
        self.assertIn("2/4", self.browser.text("main"))
        # A branch closes and opens.
        self.browser.run("[...document.querySelectorAll('.branch')].find(x => x.innerText.includes('billing:')).click()")
        self.browser.await_("return !document.body.innerText.includes('invoice')", "the branch to close")
        self.browser.run("[...document.querySelectorAll('.branch')].find(x => x.innerText.includes('billing:')).click()")
        self.browser.await_text("invoice", "main")
        # The daemon searches, in capitals or not; the address has it.
        self.browser.fill("#find", "NIGHT")
        self.browser.await_("return document.querySelectorAll('.rows .row').length === 1", "one row")
        self.assertEqual(self.browser.run("return location.hash"), "#/locks?q=NIGHT")
        self.browser.fill("#find", "nothing has this")
        self.browser.await_text("Nothing fits.")
        self.go("#/locks?state=permits", "downloads")
        self.browser.await_("return document.querySelectorAll('.rows .row').length === 1", "one semaphore")

    def test_break_and_ask(self):
        name = "to/break:me"
        fence = self.scene.lease(name, label="stuck")["fence"]
        self.go("#/locks/" + name.replace("/", "%2F"), str(fence))
        self.browser.click_text("Ask to give back…")
        self.browser.await_text(name, "dialog")
        self.assertTrue(self.browser.run("return document.querySelector('dialog [type=submit]').disabled"))
        self.browser.fill("#reason", "a deployment waits")
        self.browser.click_text("Ask", "dialog button")
        self.browser.await_text("does not listen", "#toasts")
        self.browser.click_text("Break…")
        self.browser.await_text(str(fence), "dialog")
        self.assertTrue(self.browser.run("return document.querySelector('dialog .danger').disabled"))
        self.browser.fill("#reason", "its host is gone")
        self.assertTrue(self.browser.run("return document.querySelector('dialog .danger').disabled"))
        self.browser.fill("#typed", name)
        self.browser.click("dialog .danger")
        self.browser.await_text("Broken: " + name, "#toasts")
        self.browser.await_text("Free.", "main")
        self.browser.await_text("its host is gone", "main")
        self.go("#/audit", "its host is gone")
        self.browser.await_text("a deployment waits", "main")

    def test_another_holder_by_now_is_left_alone(self):
        token = self.scene.lease("changes")["token"]
        self.go("#/locks/changes", "Held by one")
        self.browser.click_text("Break…")
        self.browser.fill("#reason", "late")
        self.browser.fill("#typed", "changes")
        self.scene.post("/v1/leases/changes/release", {"token": token})
        fence = self.scene.lease("changes")["fence"]
        self.browser.click("dialog .danger")
        self.browser.await_("return document.querySelector('dialog .badtext')?.textContent", "the refusal in the dialog")
        self.assertEqual(self.scene.get("/v1/locks/changes").json["holders"][0]["fence"], fence)
        self.browser.press("escape")
        self.browser.await_("return !document.querySelector('dialog')", "the dialog to close")

    def test_waits(self):
        self.go("#/waits", "Deadlock")
        text = self.browser.text("main")
        self.assertIn("holds circle:one and waits for circle:two", text)
        self.assertIn("nightly", text)
        self.browser.await_text("1", "nav em.bad")

    def test_roles(self):
        self.addCleanup(self.sign_in, "admin")
        for role, offers in (("read", []), ("operate", ["Ask to give back…"])):
            self.sign_in(role)
            self.go("#/locks/nightly", "Who is next")
            self.browser.await_text("Fence", "main")
            self.assertEqual(self.browser.run("return [...document.querySelectorAll('.holder footer button')].map(x => x.innerText)"), offers)
            self.go("#/waits", "Deadlock")
            self.assertFalse(self.browser.run("return !!document.querySelector('main .danger')"))

    def test_sign_in_and_out(self):
        self.addCleanup(self.sign_in, "admin")
        self.browser.click("[aria-label='Sign out']")
        self.browser.await_text("A token, please")
        self.assertIsNone(self.browser.run("return sessionStorage.getItem('dibs.token')"))
        self.browser.fill("#token", "dibs_wrong")
        self.browser.press("enter")
        self.browser.await_text("not known", "main")
        self.browser.fill("#token", self.scene.tokens["read"])
        self.browser.click("#keep")
        self.browser.click_text("Sign in")
        self.browser.await_text("read, read", "#me")
        self.assertEqual(self.browser.run("return localStorage.getItem('dibs.token')"), self.scene.tokens["read"])
        self.browser.run("localStorage.removeItem('dibs.token')")

    def test_themes_and_widths(self):
        self.addCleanup(self.browser.size, 1280)
        self.addCleanup(self.browser.run, "localStorage.removeItem('dibs.theme')")
        paper = []
        for theme in ("light", "dark"):
            self.browser.run("localStorage.setItem('dibs.theme', args[0]); location.reload()", theme)
            self.browser.await_text("admin, admin", "#me") if theme == "light" else None
            self.browser.await_(f"return document.documentElement.dataset.theme === '{theme}'", theme)
            paper.append(self.browser.run("return getComputedStyle(document.documentElement).backgroundColor"))
            for width in (390, 1280, 2560):
                self.browser.size(width)
                for address, text in (("#/", "Most wanted"), ("#/locks", "downloads"), ("#/locks/nightly", "Who is next"), ("#/waits", "Deadlock"), ("#/coordination", "Groups"),
                                      ("#/coordination/dibs.nodes", "Facts"), ("#/queues", "Queues"), ("#/jobs", "Jobs"), ("#/nodes", "No node is there"), ("#/audit", "Audit")):
                    with self.subTest((theme, width, address)):
                        self.go(address, text)
                        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
        self.assertNotEqual(*paper)

    def test_keys(self):
        self.go("#/", "Most wanted")
        self.browser.run("document.activeElement.blur()")  # a test before may have searched
        self.browser.press("g", "l")
        self.browser.await_text("Locks", "h1")
        self.browser.await_text("downloads", "main")
        self.browser.press("j", "j", "down")
        self.browser.await_("return document.activeElement.matches('.rows .row')", "a row with the focus")
        self.browser.press("home", "left")
        self.browser.await_("return document.activeElement.getAttribute('aria-expanded') === 'false'", "a closed branch")
        self.browser.press("right")
        self.browser.await_("return document.activeElement.getAttribute('aria-expanded') === 'true'", "an open branch")
        self.browser.press("down", "down", "enter")
        self.browser.await_text("Held by", "main")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "main")
        self.browser.press("escape")
        self.browser.await_text("Locks", "h1")
        self.browser.press("/")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "find")
        self.browser.press("escape", "?")
        self.browser.await_text("light or dark", "dialog")
        self.browser.press("escape", "z")
        self.browser.await_text("UTC", ".zone")

    def test_xss_corpus_is_text(self):
        scene, browser = self.scene, self.browser
        for i, text in enumerate(CORPUS):
            scene.lease(text, label=text, meta={f"m{i}": text, "k" + text.replace("=", ""): "v"})
            if i % 4 == 0:
                scene.wait_for(f"%3Cb%3E{i}", label=text)
        for i in range(0, len(CORPUS), 4):
            scene.lease("<i>" + CORPUS[i], label=CORPUS[i])
        self.assertEqual(scene.post("/v1/locks/~/break", {"fence": 0, "reason": CORPUS[1]}, query={"name": "<i>" + CORPUS[0]}).status, 200)
        browser.run("window.broken = 0")
        addresses = [*PAGES, *("#/locks/" + browser.run("return encodeURIComponent(args[0])", text) for text in CORPUS[:6]), "#/<img src=x onerror=window.broken=1>"]
        for address in addresses:
            browser.run("location.hash = args[0]", address)
            browser.await_("return document.querySelector('main h1')?.textContent && !document.body.innerText.includes('Loading …')", "the page")
        browser.run("location.hash = '#/locks?flat=1'")
        browser.await_text(CORPUS[0], "main")
        browser.run("location.hash = '#/audit'")
        browser.await_text(CORPUS[1], "main")
        self.assertEqual(browser.run("return window.broken"), 0)
        self.assertIsNone(browser.alert())
        self.assertEqual(browser.run("return document.querySelectorAll('main script, main img, main iframe, main style, main [onload], main [onerror]').length"), 0)
        self.assertEqual([line for line in browser.complaints() if "401" not in line and "409" not in line], [])


class States(unittest.TestCase):
    def test_waits_that_are_not_drawn_are_counted(self):
        scene = Scene()
        self.addCleanup(scene.end)
        scene.lease("model")
        scene.wait_for("model")
        wait_until(lambda: scene.get("/v1/waits").json["total"] == 1, "a client that waits")
        # 220 names more, each with a holder and a waiter on a host of its own.
        store = sqlite3.connect(scene.url.split(":", 1)[1], timeout=PATIENCE)
        columns = [row[1] for row in store.execute("PRAGMA table_info(party)")]
        values = ", ".join({"name": "?1", "who": "?1 || who", "until_us": "until_us + 600000000"}.get(column, column) for column in columns)
        with store:
            store.executemany(f"INSERT INTO party SELECT {values} FROM party WHERE name = 'model'", ((f"more{i}",) for i in range(220)))
        store.close()
        wait_until(lambda: scene.get("/v1/waits").json["total"] == 221, "all that wait")
        browser = Browser()
        self.addCleanup(browser.end)
        browser.open(scene.page + "#token=" + scene.tokens["read"])
        browser.await_text("read", "#me")
        browser.run("location.hash = '#/waits'")
        browser.await_text("Not drawn: 176 smaller groups and 21 other wanted names.", "main")
        self.assertEqual(browser.run("return document.querySelectorAll('.waitgraph').length"), 24)
        browser.click("main .note a")
        browser.await_text("221 fit")

    def test_empty_then_gone_and_back(self):
        scene = Scene()
        self.addCleanup(scene.end)
        browser = Browser()
        self.addCleanup(browser.end)
        browser.open(scene.page + "#token=" + scene.tokens["read"])
        browser.await_text("Nobody holds anything.")
        browser.run("location.hash = '#/locks'")
        browser.await_text("dibs run NAME -- COMMAND")
        browser.run("location.hash = '#/waits'")
        browser.await_text("Nobody waits.")
        browser.run("location.hash = '#/audit'")
        browser.await_text("Nothing was changed by hand.")
        # A change comes to the page by itself.
        browser.run("location.hash = '#/locks'")
        scene.lease("comes")
        browser.await_text("comes", "main")
        # A daemon that does not answer: the page says so, and shows what it knew as old.
        browser.run("window.kept = 1")
        scene.process.send_signal(19)
        self.addCleanup(lambda: scene.process.poll() is None and scene.process.send_signal(18))
        wait_until(lambda: "This is how things were then" in browser.text("#notice"), "the page to say that news have stopped")
        self.assertIn(browser.run("return document.body.dataset.link"), ("stale", "lost"))
        self.assertIn("comes", browser.text("main"))
        scene.process.send_signal(18)
        browser.await_("return document.body.dataset.link === 'live' && !document.getElementById('notice').firstChild", "news again")
        self.assertEqual(browser.run("return window.kept"), 1)


if __name__ == "__main__":
    main()
