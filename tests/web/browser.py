"""A browser for tests: Debian's chromium, driven by the WebDriver protocol with the standard library alone."""
# SPDX-License-Identifier: MIT
import base64
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile

from runtools import PATIENCE, NotInTime, wait_until

__all__ = ["Browser", "WebError", "KEYS"]

TAKEN = "port not available"
LATE = ("timeout", "script timeout")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "tab": "\ue004", "escape": "\ue00c", "down": "\ue015", "up": "\ue013", "left": "\ue012",
        "right": "\ue014", "end": "\ue010", "home": "\ue011", "shift": "\ue008"}
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
           "--hide-scrollbars", "--force-color-profile=srgb", "--no-proxy-server"]


# The driver and its browser form a group, which ends when the pipe from the test does: a test that is killed leaves none behind.
DRIVER = "exec 3<&0; (cat <&3 >/dev/null; kill -KILL 0) & exec chromedriver --port=0 --log-level=WARNING </dev/null 3<&-"


class WebError(RuntimeError):
    """What the browser refused."""


class Browser:
    """One window. end() ends it and everything it started."""

    def __init__(self, width=1280, height=860, options=(), trace=None):
        self.folder = tempfile.mkdtemp(prefix="dibs-web-")
        self.start_driver()
        try:
            self.port = wait_until(self.read_port, "the port of chromedriver")
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL" if trace else "OFF"}, "unhandledPromptBehavior": "ignore",
                "goog:chromeOptions": {"args": [*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={self.folder}/profile",
                                                *options], **({"perfLoggingPrefs": {"traceCategories": trace}} if trace else {})}}}})
            self.session = "/session/" + answer["sessionId"]
            self.do("POST", "/timeouts", {"script": int(PATIENCE * 1000), "pageLoad": int(PATIENCE * 1000)})
        except BaseException:
            self.end()
            raise

    def start_driver(self):
        self.log = open(f"{self.folder}/driver.log", "wb")
        self.driver = subprocess.Popen(["sh", "-c", DRIVER], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, start_new_session=True,
                                       env={**os.environ, "HOME": self.folder, "TMPDIR": self.folder})

    def end_driver(self):
        """The driver's group is the browser's too."""
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.driver.stdin.close()
        self.log.close()

    def read_port(self):
        """The driver takes a free port of IPv6 and wants the same one of IPv4, where another process may have it: then another driver tries."""
        if self.driver.poll() is not None:
            if TAKEN not in self.log_text():
                raise WebError("chromedriver has ended: " + self.log_text())
            self.end_driver()
            self.start_driver()
        for line in self.log_text().splitlines():
            if "started successfully on port" in line:
                return int(line.rsplit(" ", 1)[1].rstrip("."))
        return None

    def log_text(self):
        with open(f"{self.folder}/driver.log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def ask(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, body=text, headers={"Content-Type": "application/json"})
        answer = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(answer, dict) and "error" in answer:
            if answer["error"] in LATE:
                raise NotInTime(f"{answer['error']}: {answer.get('message', '')[:600]}")
            raise WebError(f"{answer['error']}: {answer.get('message', '')[:600]}")
        return answer

    def do(self, method, path, body=None):
        return self.ask(method, self.session + path, body)

    def end(self):
        try:
            if hasattr(self, "session"):
                self.do("DELETE", "")
        except (WebError, OSError, http.client.HTTPException):
            pass
        self.end_driver()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- The page.

    def open(self, url):
        self.do("POST", "/url", {"url": url})

    def run(self, script, *args):
        """The value of a script's return; it may await."""
        wrapped = ("const done = arguments[arguments.length - 1], args = [...arguments].slice(0, -1);"
                   "(async () => { " + script + " })().then(v => done([v]), e => done(['error', String(e && e.stack || e)]));")
        got = self.do("POST", "/execute/async", {"script": wrapped, "args": list(args)})
        if len(got) == 2:
            raise WebError(got[1])
        return got[0]

    def find(self, css):
        """The first element that fits, or None."""
        got = self.do("POST", "/elements", {"using": "css selector", "value": css})
        return got[0][ELEMENT] if got else None

    def await_(self, script, what, *args):
        """Waits until the script returns something true."""
        return wait_until(lambda: self.run(script, *args), what)

    def text(self, css="body"):
        return self.run("return document.querySelector(args[0])?.innerText ?? ''", css)

    def await_text(self, part, css="body"):
        try:
            return wait_until(lambda: part in self.text(css), f"“{part}” in {css}")
        except NotInTime as error:
            raise NotInTime(f"{error}; it shows: {self.text(css)[:1500]}") from None

    def use(self, css, what, *acts):
        """Acts on an element; anew if the page has drawn another in its place meanwhile."""
        def acted():
            element = self.find(css)
            try:
                for path, body in acts if element else ():
                    self.do("POST", f"/element/{element}/{path}", body)
            except WebError as error:
                if "stale element" not in str(error):
                    raise
                return False
            return element

        wait_until(acted, f"{what} {css}")

    def click(self, css):
        self.use(css, "an element", ("click", {}))

    def click_text(self, text, css="button, a"):
        """Clicks the first of these with exactly this text."""
        self.await_("const el = [...document.querySelectorAll(args[1])].find(x => x.innerText.trim() === args[0] && !x.disabled);"
                    "el?.click(); return !!el;", f"“{text}” to click", text, css)

    def fill(self, css, text):
        self.use(css, "a field", ("clear", {}), ("value", {"text": text}))

    def press(self, *keys):
        """Presses keys one after the other, wherever the focus is."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def focused(self):
        return self.run("const el = document.activeElement; return (el.getAttribute('aria-label') || el.innerText || el.id || el.tagName).trim()")

    def size(self, width, height=860):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, dark):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def devtools(self, command, **params):
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def alert(self):
        """The text of a dialog that a script has opened, or None."""
        try:
            return self.do("GET", "/alert/text")
        except WebError:
            return None

    def complaints(self):
        """What the console says of errors: exceptions, refused scripts, files that are missing."""
        return [line["message"] for line in self.do("POST", "/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]

    def traced(self):
        """The events of the trace since the last call, for a browser with `trace`."""
        lines = (json.loads(line["message"])["message"] for line in self.do("POST", "/se/log", {"type": "performance"}))
        return [line["params"] for line in lines if line["method"] == "Tracing.dataCollected"]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.do("GET", "/screenshot")))
