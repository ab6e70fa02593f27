"""Pages of another origin, in the same browser: they change nothing, read nothing and frame nothing. And the policy of the dashboard's own page."""
# SPDX-License-Identifier: MIT
import http.server
import threading
import unittest

from scene import PATIENCE, Scene  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import main


class Other(http.server.BaseHTTPRequestHandler):
    """One page, which has nothing, and a script that a page would load if its policy let it."""

    def do_GET(self):  # pylint: disable=invalid-name
        script = self.path.endswith(".js")
        text = b"window.broken = 1" if script else b"<!doctype html><title>Another</title><body>Another"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        """Says nothing."""


class Origins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scene = Scene()
        cls.addClassCleanup(cls.scene.end)
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        cls.other = f"http://127.0.0.1:{cls.server.server_address[1]}/"
        thread = threading.Thread(target=cls.server.serve_forever)
        thread.start()
        cls.addClassCleanup(thread.join, PATIENCE)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def fetch(self, path, options):
        """What a page of the other origin gets: the type of the answer and its status, or that there is none."""
        return self.browser.run("return fetch(args[0], args[1]).then(a => [a.type, a.status], () => ['none', 0])", self.scene.page + path, options)

    def test_another_origin_changes_and_reads_nothing(self):
        fence = self.scene.lease("origins")["fence"]
        body = '{"fence": %d, "reason": "x"}' % fence
        self.browser.open(self.other)
        known = {"Authorization": "Bearer " + self.scene.tokens["admin"]}
        # With a token, and a type that is no form's, the browser asks first, and is not allowed.
        for options in ({"method": "POST", "body": body, "headers": {**known, "Content-Type": "application/json"}}, {"headers": known}):
            path = "v1/locks/origins/break" if "method" in options else "v1/locks/origins"
            self.assertEqual(self.fetch(path, options), ["none", 0])
        # A form's request needs no leave. It reaches the daemon, which refuses it; its answer cannot be seen.
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            answer = self.fetch("v1/locks/origins/break", {"method": "POST", "mode": "no-cors", "body": body, "headers": {"Content-Type": kind}})
            self.assertEqual(answer[1], 0)
        self.browser.run("const form = document.createElement('form'), field = document.createElement('input');"
                         "Object.assign(form, { method: 'post', action: args[0], enctype: 'text/plain', target: 'frame' });"
                         "Object.assign(field, { name: args[1].slice(0, -1) + ', \"x\": \"', value: '\"}' });"
                         "const frame = document.createElement('iframe'); frame.name = 'frame'; form.append(field); document.body.append(frame, form);"
                         "const over = new Promise(done => { frame.onload = done; }); form.submit(); await over;", self.scene.page + "v1/locks/origins/break", body)
        self.assertEqual([holder["fence"] for holder in self.scene.get("/v1/locks/origins").json["holders"]], [fence])
        refused = [line for line in self.scene.log() if line["event"] == "request" and line["method"] in ("POST", "OPTIONS") and "origins" not in line.get("who", "")
                   and line["status"] >= 400]
        self.assertGreaterEqual(len(refused), 4, self.scene.log_text())

    def test_another_origin_frames_nothing(self):
        self.browser.open(self.other)
        self.browser.run("const frame = document.createElement('iframe'); frame.src = args[0]; document.body.append(frame);"
                         "await new Promise(done => { frame.onload = done; });", self.scene.page)
        frame = self.browser.devtools("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]
        # It is refused before its policy would have a say.
        self.assertEqual((frame["url"], frame["mimeType"]), (self.scene.page, "application/problem+json"))

    def test_the_page_runs_its_own_files_alone(self):
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens["admin"])
        self.browser.await_text("admin, admin", "#me")
        self.browser.complaints()
        self.browser.run("for (const set of [el => { el.textContent = 'window.broken = 1'; }, el => { el.src = args[0] + 'x.js'; }, el => { el.src = 'data:text/javascript,window.broken=1'; }]) {"
                         "const el = document.createElement('script'); const over = new Promise(done => { el.onerror = done; setTimeout(done, 500); }); set(el); document.head.append(el); await over; }"
                         "const button = document.createElement('button'); button.setAttribute('onclick', 'window.broken = 1'); document.body.append(button); button.click();", self.other)
        self.assertIsNone(self.browser.run("return window.broken ?? null"))
        said = " ".join(self.browser.complaints())
        self.assertIn("script-src", said)
        # Nor does it send anything elsewhere.
        self.assertEqual(self.browser.run("return fetch(args[0]).then(() => 'sent', () => 'refused')", self.other), "refused")
        self.assertIn("connect-src", " ".join(self.browser.complaints()))


if __name__ == "__main__":
    main()
