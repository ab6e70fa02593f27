"""The pages of jobs, runs and nodes in a browser: rows, states, roles and actions, live output, and output that wants to be markup."""
# SPDX-License-Identifier: MIT
import os
import tempfile
import unittest

from scene import Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser
from runtools import main

MARKUP = "<img src=x onerror=window.broken=1>"
# A command with OPEN ends when the test makes the file.
OPEN = "while ! test -e GATE; do sleep 0.02; done"
JOBS = """
set: served
jobs:
  hello:
    description: Says MARKUP
    concurrency: allow
    params: {who: {default: world, pattern: '[a-z]+'}}
    run: [sh, -c, 'echo "hello $DIBS_PARAM_WHO MARKUP"']
  greet:
    params: {who: {default: world}}
    run: [sh, -c, 'echo "for <$DIBS_PARAM_WHO>"']
  slow:
    kill_after: 100ms
    shell: 'echo begun; OPEN; echo over'
  tidy:
    steps:
      work: {shell: 'OPEN', kill_after: 100ms}
      clean: {shell: 'echo tidies; while ! test -e GATE.clean; do sleep 0.02; done', kill_after: 100ms, needs: [work], when: always}
  bad:
    concurrency: allow
    shell: 'test -e GATE.well'
  broken:
    shell: 'exit 1'
  nightly:
    schedule: '0 2 * * *'
    zone: Europe/Berlin
    run: ['true']
  hourly:
    schedule: '0 * * * *'
    run: ['true']
  flow:
    concurrency: allow
    steps:
      fetch: {shell: 'echo fetched'}
      left: {shell: 'echo left side', needs: [fetch]}
      right: {shell: 'echo try; exit 3', needs: [fetch], retry: {attempts: 2, delay: 10ms}, on_failure: continue}
      ask: {wait: {bookmark: approval}, needs: [left, right]}
      last: {shell: 'echo the last', needs: [ask]}
"""


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dibs-jobs-")
        cls.addClassCleanup(folder.cleanup)
        cls.gate = folder.name + "/gate"
        with open(folder.name + "/jobs.yaml", "w", encoding="utf-8") as file:
            file.write(JOBS.replace("OPEN", OPEN).replace("GATE", cls.gate).replace("MARKUP", MARKUP))
        cls.scene = Scene("--jobs", folder.name + "/jobs.yaml", "--slots", "8")
        cls.addClassCleanup(cls.scene.end)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)
        wait_until(lambda: cls.scene.get("/v1/nodes").json["total"] == 1, "the node of the daemon")

    def show(self, address, role="admin"):
        """The page of an address, as a viewer with this role sees it."""
        self.browser.open("about:blank")
        self.browser.open(self.scene.page + "#token=" + self.scene.tokens[role])
        self.browser.await_text(role, "#me")
        self.browser.run("location.hash = args[0]", address)

    def ask(self, label, name):
        """Opens a question, which must name what it changes."""
        self.browser.click_text(label)
        self.browser.await_text(name, "dialog")

    def confirm(self, reason=None):
        if reason:
            self.browser.fill("#reason", reason)
        self.browser.click("dialog button[type=submit]")
        self.browser.await_("return !document.querySelector('dialog')", "the end of the dialog")

    def shown_run(self):
        """The run whose page is shown."""
        return self.browser.await_("return location.hash.startsWith('#/runs/') && decodeURIComponent(location.hash.slice(7))", "the page of a run")

    def run_of(self, job, **body):
        return self.scene.post(f"/v1/jobs/{job}/run", body).json["id"]

    def state(self, run):
        return self.scene.get("/v1/runs/" + run).json["state"]

    def fits(self):
        for width in (390, 1280, 2560):
            self.browser.size(width)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
            self.picture(width)
        self.browser.size(1280)

    def picture(self, width):
        if os.environ.get("DIBS_PICTURES"):
            name = self.browser.run("return location.hash.replace(/\\W+/g, '-')")
            self.browser.picture(f"{os.environ['DIBS_PICTURES']}/{name}-{width}.png")

    def good(self):
        """Nothing ran that the store said, and nothing failed."""
        self.assertIsNone(self.browser.run("return window.broken ?? null"))
        self.assertEqual([line for line in self.browser.complaints() if "Failed to load resource" not in line], [])

    def test_list_and_one(self):
        self.show("#/jobs")
        self.browser.await_text("nightly", ".jobs")
        self.browser.await_text("Says " + MARKUP, ".jobs")
        # A run comes to the page by itself.
        wait_until(lambda: self.state(self.run_of("hello")) != "", "a run")
        self.browser.await_("return document.querySelectorAll('.jobs .streak a').length > 0", "a run among the latest")
        self.fits()
        self.browser.fill("#find", "night")
        self.browser.await_("return document.querySelectorAll('.jobs .rows .row').length === 1", "one row")
        self.browser.fill("#find", "none-such")
        self.browser.await_text("Nothing fits.")
        self.browser.click_text("12 hours")
        self.browser.await_text("Runs, and ticks to come")
        self.browser.await_("return document.querySelectorAll('.jobtime .tick').length >= 6 && document.querySelectorAll('.jobtime .is').length >= 1", "ticks and runs")
        self.assertIn("hours=12", self.browser.run("return location.hash"))
        self.fits()
        self.browser.run("location.hash = '#/jobs/nightly'")
        self.browser.await_text("0 2 * * *")
        self.browser.await_text("02:00:00 +0", ".plain")
        self.browser.await_text("at 02:00 every day, Europe/Berlin", ".facts")
        self.browser.await_text("It has not run yet.")
        self.ask("Pause…", "nightly")
        self.assertTrue(self.browser.run("return document.querySelector('dialog button[type=submit]').disabled"))
        self.confirm("until " + MARKUP)
        self.browser.await_text("until " + MARKUP, ".lead")
        self.assertEqual(self.scene.get("/v1/jobs/nightly").json["paused"]["reason"], "until " + MARKUP)
        self.assertIsNone(self.scene.get("/v1/jobs/nightly").json["paused"]["until_at"])
        self.resume("nightly")
        self.browser.await_text("Next: ")
        self.fits()
        self.good()
        self.show("#/jobs/none")
        self.browser.await_text("Not here")
        # A reader is offered nothing.
        self.show("#/jobs/nightly", "read")
        self.browser.await_text("0 2 * * *")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main .acts button').length"), 0)

    def resume(self, job):
        self.ask("Resume…", job)
        self.confirm()
        wait_until(lambda: not self.scene.get("/v1/jobs/" + job).json["paused"], "the job to go on")

    def test_pause_until(self):
        """Until a moment in the zone that is shown: the viewer's, then UTC."""
        self.browser.devtools("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        self.addCleanup(self.browser.devtools, "Emulation.setTimezoneOverride", timezoneId="")
        self.show("#/jobs/hourly")
        for at in ("2099-12-31T18:30:00.000Z", "2100-01-01T00:00:00.000Z"):
            self.ask("Pause…", "hourly")
            self.browser.run("const el = document.getElementById('until'); el.value = args[0]; el.dispatchEvent(new Event('input', { bubbles: true }))", "2100-01-01T00:00")
            self.confirm("for a while")
            self.browser.await_text(", until ", ".lead")
            self.assertEqual(self.scene.get("/v1/jobs/hourly").json["paused"]["until_at"], at)
            self.resume("hourly")
            self.browser.await_text("Pause…")
            self.browser.press("z")
        # A moment that is over is not taken.
        self.ask("Pause…", "hourly")
        self.browser.run("document.getElementById('until').value = args[0]", "2020-01-01T00:00")
        self.browser.fill("#reason", "too late")
        self.browser.click("dialog button[type=submit]")
        self.assertFalse(self.browser.run("return document.getElementById('until').checkValidity()"))
        self.assertIsNone(self.scene.get("/v1/jobs/hourly").json["paused"])
        self.browser.press("escape")
        self.good()

    def cells(self, what):
        return self.browser.run(f"return [...document.querySelectorAll('.week [role=gridcell]')].filter(x => {what}).length")

    def test_week(self):
        run = self.run_of("broken")
        wait_until(lambda: self.state(run) == "FAILED", "the end of the run")
        self.show("#/jobs")
        self.browser.click_text("Week")
        self.browser.await_("return document.querySelector('.week .hue.bad em')", "the run that failed")
        self.assertIn("week=now", self.browser.run("return location.hash"))
        self.assertEqual((self.cells("true"), self.cells("x.classList.contains('here')"), self.cells("x.tabIndex === 0")), (168, 1, 1))
        self.assertRegex(self.browser.run("return document.querySelector('.week .hue.bad').title"), r"\d failed")
        self.fits()
        # By keys from an hour to a run in it.
        self.browser.run("document.querySelector('.week .hue.bad').click()")
        self.browser.await_("return document.querySelector('.lanes svg a')", "the runs of the hour")
        self.browser.run("document.querySelector('.lanes svg a').focus()")
        self.browser.press("enter")
        self.assertTrue(self.shown_run())
        self.show("#/jobs?week=now")
        self.browser.await_("return document.querySelector('.week .hue.bad em')", "the run that failed")
        # Another week has its own address.
        self.browser.click_text("Later ›")
        self.browser.await_("return document.querySelector('.week') && [...document.querySelectorAll('.week [role=gridcell]')].filter(x => x.innerText.startsWith('+')).length >= 167", "ticks in each hour")
        self.assertRegex(self.browser.run("return location.hash"), r"week=\d{4}-\d\d-\d\d")
        # By keys: the first hour of the week, the one below and the one behind that; there it is opened.
        self.browser.run("document.querySelector('.week [tabindex=\"0\"]').focus()")
        self.browser.press("home", "down", "right", "enter")
        self.browser.await_text("hourly", ".lanes")
        self.assertIn("01:00 to 02:00", self.browser.text("main"))
        self.assertEqual((self.cells("x.getAttribute('aria-selected') === 'true'"), self.cells("x === document.activeElement && x.title.includes('01:00')")), (1, 1))
        address = self.browser.run("return location.hash")
        self.assertIn("at=", address)
        self.fits()
        self.show(address)
        self.browser.await_text("hourly", ".lanes")
        self.browser.click_text("Close")
        self.browser.await_("return !document.querySelector('.lanes')?.offsetParent", "the hour to be closed")
        # On a narrow screen the days are beside each other.
        self.browser.size(390)
        self.browser.run("document.querySelector('.week [tabindex=\"0\"]').focus()")
        before = self.browser.run("return document.activeElement.getBoundingClientRect().left")
        self.browser.press("right")
        self.assertGreater(self.browser.run("return document.activeElement.getBoundingClientRect().left"), before)
        self.assertEqual(self.cells("x.scrollWidth > x.clientWidth + 1"), 0)
        self.browser.size(1280)
        self.browser.click_text("This week")
        self.browser.await_("return document.querySelector('.week .here')", "this week")
        self.browser.click_text("‹ Earlier")
        self.browser.await_text("Nothing in this week.")
        self.show("#/jobs?week=none&at=none")
        self.browser.await_("return document.querySelector('.week .here')", "this week")
        self.good()

    def test_week_of_a_change_of_clocks(self):
        """An hour that occurs twice has the ticks of both and of the nightly job; one that is skipped has no cell."""
        self.browser.devtools("Emulation.setTimezoneOverride", timezoneId="Europe/Berlin")
        self.addCleanup(self.browser.devtools, "Emulation.setTimezoneOverride", timezoneId="")
        for week, cell, sign in (("2100-10-31", 6 * 24 + 2, "+3"), ("2100-03-28", 6 * 24 + 2, "")):
            self.show("#/jobs?week=" + week)
            self.browser.await_("return document.querySelectorAll('.week [role=gridcell]').length === 168", "the week")
            self.browser.await_("return [...document.querySelectorAll('.week [role=gridcell]')][args[0]].innerText === args[1]", "the hour of the change", cell, sign)
        self.assertEqual(self.cells("x.innerText === '+1'") + self.cells("x.innerText === '+2'"), 167)
        # It says that it occurs twice, and both are opened.
        self.show("#/jobs?week=2100-10-31")
        self.browser.await_("return document.querySelectorAll('.week [role=gridcell]').length === 168", "the week")
        self.browser.await_("const x = [...document.querySelectorAll('.week [role=gridcell]')].find(x => x.title.includes('02:00 twice: 3 to come')); x?.click(); return x", "the hour that occurs twice")
        self.browser.await_text("02:00 to 03:00", "main")
        self.browser.await_("return document.querySelector('.lanes svg').getAttribute('aria-label') === '0 runs, 3 ticks'", "the ticks of both")
        self.good()

    def test_overview(self):
        run = self.run_of("bad")
        wait_until(lambda: self.state(run) == "FAILED", "the end of the run")
        self.show("#/")
        self.browser.await_text("Failed bad", ".attention")
        self.browser.await_text("hourly", ".three")
        self.assertIn("Coming up", self.browser.text("main"))
        self.assertNotIn("job/{", self.browser.text(".three > :nth-child(2)"))  # the engine's own
        # A run that went well ends it.
        self.browser.run("[...document.querySelectorAll('.attention a')].find(a => a.innerText.startsWith('Failed')).click()")
        self.assertEqual(self.shown_run(), run)
        with open(self.gate + ".well", "w", encoding="utf-8"):
            pass
        again = self.run_of("bad")
        wait_until(lambda: self.state(again) == "OK", "the end of the run")
        self.show("#/")
        self.browser.await_text("hourly", ".three")
        wait_until(lambda: "Failed bad" not in self.browser.text("main"), "the failure to be gone")
        self.good()

    def test_overview_tells_what_is_so_now(self):
        """A row stays, with its focus, and what it says follows the news."""
        runs = [self.run_of("broken")]
        wait_until(lambda: self.state(runs[0]) == "FAILED", "the end of the run")
        self.show("#/")
        self.browser.await_text(runs[0], ".attention")
        self.browser.run("window.row = [...document.querySelectorAll('.attention a')].find(a => a.innerText.includes(args[0])); row.focus()", runs[0])
        runs.append(self.run_of("broken"))
        wait_until(lambda: self.state(runs[1]) == "FAILED", "the end of the run")
        self.browser.await_text(runs[1], ".attention")
        self.assertTrue(self.browser.run("return document.activeElement === row && row.innerText.includes(args[0])", runs[1]))
        self.browser.press("enter")
        self.assertEqual(self.shown_run(), runs[1])
        self.good()

    def test_run_now(self):
        self.show("#/jobs/hello", "operate")
        self.ask("Run now…", "hello")
        self.browser.fill("#param-who", "BAD")
        self.browser.click("dialog button[type=submit]")
        self.browser.await_("return document.querySelector('dialog .badtext').innerText", "what the daemon refused")
        self.browser.fill("#param-who", "ann")
        self.confirm("to see it")
        run = self.shown_run()
        self.browser.await_text("hello ann " + MARKUP, ".output")
        wait_until(lambda: self.state(run) == "OK", "the end of the run")
        self.browser.await_text("ok", "h1")
        self.ask("Run again…", run)
        self.confirm()
        wait_until(lambda: self.shown_run() != run, "the page of the new run")
        self.browser.await_text("hello ann", ".output")
        self.browser.await_text(run, "main")  # of which it is a repetition
        self.good()

    def test_an_emptied_field_is_sent_as_it_is(self):
        for shown, words in (("world", "for <world>"), ("", "for <>")):
            self.show("#/jobs/greet", "operate")
            self.ask("Run now…", "greet")
            self.assertEqual(self.browser.run("return document.getElementById('param-who').value"), "world")
            self.browser.fill("#param-who", shown)
            self.confirm()
            self.assertEqual(self.scene.get("/v1/runs/" + self.shown_run()).json["params"], {"who": shown})
            self.browser.await_text(words, ".output")
        self.good()

    def test_live_output_and_cancel(self):
        run = self.run_of("slow")
        self.show("#/runs/" + run)
        self.browser.await_text("begun", ".output")  # while it runs
        self.assertFalse(self.state(run) in ("OK", "FAILED"))
        self.browser.run("location.hash = '#/nodes'")
        self.browser.await_text(run, ".nodes")
        self.browser.await_text("1 of 8", ".nodes")
        self.fits()
        self.browser.click(".nodes .stepof")
        self.assertEqual(self.shown_run(), run)
        self.ask("Cancel…", run)
        self.confirm("enough")
        wait_until(lambda: self.state(run) == "CANCELLED", "the end of the run")
        self.browser.await_text("cancelled", "h1")
        self.browser.await_text("Run again…")
        self.good()

    def test_a_clock_that_is_wrong(self):
        """What a run took until now is counted on the clock of the daemon."""
        run = self.run_of("flow")
        wait_until(lambda: self.state(run) == "ACTIVE", "the begin of the run")
        for hours in (2, -2):
            script = self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=f"const now = Date.now; Date.now = () => now() + {hours} * 36e5;")
            self.show("#/runs/" + run)
            self.browser.await_text("approval", ".runsteps")
            self.browser.devtools("Page.removeScriptToEvaluateOnNewDocument", **script)
            took = self.browser.text(".facts div").split()
            self.assertEqual(took[0], "Took")
            self.assertRegex(took[1], r"^\d+[sm]$")
            if hours < 0:
                self.browser.await_("return document.querySelector('.facts dd').innerText !== '0s'", "a time that grows")
        self.scene.post(f"/v1/runs/{run}/cancel", {"reason": "test"})
        self.good()

    def test_a_second_cancel_is_meant(self):
        run = self.run_of("tidy")
        self.show("#/runs/" + run)
        self.ask("Cancel…", run)
        # Another cancels it, which the question has not seen.
        self.scene.post(f"/v1/runs/{run}/cancel", {"reason": "first"})
        self.browser.fill("#reason", "too late")
        self.browser.click("dialog button[type=submit]")
        self.browser.await_text("It was cancelled meanwhile.", "dialog")
        self.browser.press("escape")
        self.browser.await_text("tidies", ".output")
        self.assertEqual((self.scene.get("/v1/runs/" + run).json["cancels"], self.state(run)), (1, "ACTIVE"))
        self.ask("Cancel again…", "always run, too")
        self.confirm("all of it")
        wait_until(lambda: self.state(run) == "CANCELLED", "the end of the run")
        self.assertEqual(self.scene.get("/v1/runs/" + run).json["cancels"], 2)
        self.good()

    def test_steps(self):
        run = self.run_of("flow")
        self.show("#/runs/" + run)
        self.browser.await_("return document.querySelectorAll('.steps g').length === 5 && document.querySelectorAll('.steps .edge').length === 5", "the order of the steps")
        self.browser.await_text("for approval", ".runsteps")
        self.browser.await_text("before", ".runsteps")  # the first of two attempts
        self.ask("Let it go on…", "approval")
        self.confirm()
        self.browser.await_text("the last", ".output")
        wait_until(lambda: self.state(run) not in ("ACTIVE", "QUEUED"), "the end of the run")
        # One step alone.
        self.browser.run("[...document.querySelectorAll('.runsteps .row')].find(row => row.innerText.startsWith('left')).querySelector('button').click()")
        self.browser.await_("const words = document.querySelector('.output').innerText; return words.includes('left side') && !words.includes('fetched')", "the output of one step")
        self.browser.click_text("All of it")
        self.browser.await_text("fetched", ".output")
        self.fits()
        self.browser.click_text("Rerun from here…")
        self.browser.await_text("fetch", "dialog")
        self.confirm()
        wait_until(lambda: self.shown_run() != run, "the page of the new run")
        self.browser.run("location.hash = '#/jobs/flow'")
        self.browser.await_text(run, ".runs")
        self.browser.await_text("echo left side", ".jobsteps")
        self.fits()
        self.good()

    def test_states(self):
        """No job and no node; then a drain, as an admin asks for it."""
        scene = Scene("--engine", "off")
        self.addCleanup(scene.end)
        self.browser.open("about:blank")
        self.browser.open(scene.page + "#token=" + scene.tokens["read"])
        self.browser.await_text("read", "#me")
        for address, words in (("#/jobs", "There is no job."), ("#/jobs?hours=2", "Nothing in this time."), ("#/jobs?week=now", "Nothing in this week."), ("#/nodes", "No node is there"), ("#/runs/none.1", "Not here")):
            self.browser.run("location.hash = args[0]", address)
            self.browser.await_text(words)
        self.browser.run("location.hash = '#/nodes'")
        self.browser.await_text(f":{scene.process.pid}", ".daemons")
        self.browser.await_text("off", ".daemons .pill")
        self.good()

    def test_what_cannot_be_read_empties_no_page(self):
        scene = Scene("--engine", "off")
        self.addCleanup(scene.end)
        path = scene.folder + "/some.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("jobs: {some: {concurrency: allow, schedule: '0 2 * * *', run: [x]}, other: {run: [x]}}\n")
        scene.dibs("job", "load", path)
        odd, well = [scene.dibs("job", "start", "some", "--id", name).stdout.strip() for name in ("odd", "well")]
        scene.dibs("state", "set", "job/{main}/run/" + odd, '{"state":"ODD"}')
        self.browser.open("about:blank")
        self.browser.open(scene.page + "#token=" + scene.tokens["admin"])
        self.browser.await_text("admin", "#me")
        self.browser.run("location.hash = '#/jobs'")
        self.browser.await_("return document.querySelectorAll('.jobs .streak a').length === 2", "both runs")
        self.assertIn("unreadable", self.browser.run("return [...document.querySelectorAll('.jobs .streak a')].map(a => a.title).join()"))
        for hash in ("", scene.get("/v1/jobs/some").json["hash"]):
            if hash:
                scene.dibs("state", "set", "job/{main}/def/some/" + hash, '{"new":1}')
            self.browser.run("location.hash = '#/jobs'")
            self.browser.await_text("other", ".jobs")
            self.browser.run("location.hash = '#/jobs/some'")
            self.browser.await_text(well, ".runs")
            self.browser.await_text("some.odd has no valid record", ".runs")
            self.assertIn("unreadable", self.browser.text(".runs"))
            self.assertEqual("Run now…" in self.browser.text(".title"), not hash)
        self.assertIn("of the job some cannot be read: ", self.browser.text(".lead"))
        self.browser.run("location.hash = args[0]", "#/runs/" + odd)
        self.browser.await_text("some.odd has no valid record", ".failed")
        self.good()

    def test_z_drain(self):
        """The last, since the node ends."""
        self.show("#/nodes", "operate")
        self.browser.await_text("active", ".nodes")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main button').length"), 0)
        self.show("#/nodes")
        self.browser.await_text("active", ".nodes")
        self.ask("Drain…", self.scene.get("/v1/nodes").json["items"][0]["id"])
        self.confirm("new kernel")
        self.browser.await_("const words = document.querySelector('main').innerText; return words.includes('draining') || words.includes('No node is there')", "the drain")
        self.good()


if __name__ == "__main__":
    main()
