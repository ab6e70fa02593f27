"""job load, ls, show, next, start, runs, cancel, rerun, resume, pause, unpause, reset, rm: without a node."""
# SPDX-License-Identifier: MIT
import concurrent.futures
import contextlib
import os
import select
import sqlite3
import subprocess

from runtools import PACE
from support import DIBS, PATIENCE, ROOT, Case, main, span, wait_until

FILE = """
version: 1
set: billing
jobs:
  nightly: {schedule: '0 2 * * *', zone: Europe/Berlin, concurrency: forbid, run: ['true']}
  report:
    run: [echo, '${param.region}']
    params: {region: {default: eu, pattern: '[a-z]{2}'}}
  order:
    steps:
      check: {run: ['true']}
      approve: {wait: {bookmark: approval}}
      ship: {run: ['true'], needs: [check, approve]}
"""


class Jobs(Case):
    def setUp(self):
        super().setUp()
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")
        self.file = self.write("billing.yaml", FILE)

    def load(self, text=FILE, *args, code=0):
        return self.json("job", "load", self.write("billing.yaml", text), "--json", *args, code=code)["files"][0]

    def job(self, name):
        return self.json("job", "show", name, "--json")["job"]

    def run_of(self, run):
        return self.json("job", "show", run, "--json")["runs"][0]

    def start(self, *args):
        return self.ok("job", "start", *args).rstrip("\n")

    def names(self, *args):
        return [job["name"] for job in self.json("job", "ls", *args, "--json")["jobs"]]


class Load(Jobs):
    def test_a_file_is_loaded_once(self):
        self.assertEqual(self.ok("job", "load", "--dry-run", self.file),
                         "+ nightly\n+ report\n+ order\n"
                         "set billing: 3 added, 0 changed, 0 removed, 0 as they were (nothing was done)\n")
        self.assertEqual(self.names(), [])
        self.assertEqual((self.load()["verdict"], self.names()), ("loaded", ["nightly", "order", "report"]))
        self.assertEqual(self.load()["verdict"], "same")
        job = self.job("nightly")
        self.assertEqual((job["set"], job["zone"], job["status"]), ("billing", "Europe/Berlin", "due"))
        times = self.json("job", "next", "nightly", "-n", "2", "--json")["times"]
        self.assertEqual(times[0]["instant"], job["next"])
        self.assertEqual([time["local"][11:] for time in times], ["02:00:00"] * 2)
        self.assertEqual(self.json("job", "next", "report", "--json")["times"], [])

    def test_a_file_that_fails_is_told_so(self):
        self.load()
        other = self.write("other.yaml", "set: other\njobs: {report: {run: ['true']}, nightly: {run: ['true']}}\n")
        told = self.json("job", "load", "--json", other, code=78)["files"][0]
        self.assertEqual(told["verdict"], "failed")
        self.assertNotIn("same", told)

    def test_the_higher_version_wins(self):
        self.load()
        other = FILE.replace("[echo", "[printf")
        self.assertIn("report", self.fails(78, "job", "load", self.write("billing.yaml", other)))
        self.assertEqual(self.load(other.replace("version: 1", "version: 3"))["changed"], 1)
        before = self.job("report")["hash"]
        self.assertEqual(self.load(code=78)["verdict"], "older")
        self.assertEqual(self.job("report")["hash"], before)
        self.assertEqual(self.load(FILE, "--force")["changed"], 1)
        trail = [(e["action"], e["name"], e["reason"].split("[")[0]) for e in self.json("trail", "--json")["trail"]]
        self.assertEqual(trail, [("job-load", "billing", "--force ")])
        self.assertNotEqual(self.job("report")["hash"], before)

    def test_a_forced_load_that_breaks_off_is_in_the_trail(self):
        # It marks the set, changes the jobs, marks the set again.
        for works, jobs, entries in ((0, 0, 0), (1, 0, 1), (2, 3, 1)):
            url = f"sqlite:{self.path(f'{works}.db')}"
            self.env["DIBS_URL"] = f"fault+{url}?fault=fail&step=commit&every={works + 1}"
            self.fails(69, "job", "load", "--force", self.file)
            self.env["DIBS_URL"] = url
            trail = [(e["action"], e["name"]) for e in self.json("trail", "--json")["trail"]]
            self.assertEqual((len(self.names()), trail), (jobs, [("job-load", "billing")] * entries), works)

    def test_a_job_that_is_gone_is_never_due(self):
        self.load()
        run = self.start("nightly")
        fewer = "".join(line + "\n" for line in FILE.splitlines() if "nightly" not in line)
        self.assertEqual(self.load(fewer.replace("version: 1", "version: 2"))["removed"], 1)
        self.assertEqual(self.names(), ["order", "report"])
        self.assertIn("no set any more", self.fails(1, "job", "start", "nightly"))
        self.assertEqual(self.run_of(run)["state"], "QUEUED")
        self.assertEqual(self.load(FILE.replace("version: 1", "version: 3"))["added"], 1)
        self.assertIsNotNone(self.job("nightly")["next"])

    def test_a_job_has_one_set(self):
        self.load()
        self.assertIn("is in the set billing", self.fails(
            78, "job", "load", self.write("more.yaml", "jobs: {fresh: {run: [x]}, nightly: {run: [x]}}")))
        self.assertEqual(self.names(), ["nightly", "order", "report"])
        self.ok("job", "rm", "nightly")
        self.assertIn("no set any more", self.fails(1, "job", "rm", "nightly"))
        self.ok("job", "load", self.path("more.yaml"))
        self.assertEqual(self.names("--set", "more"), ["fresh", "nightly"])
        self.assertEqual(self.names("--set", "billing"), ["order", "report"])
        self.assertEqual(self.names("*r*", "--set", "billing"), ["order", "report"])

    def test_other_words_for_verbs(self):
        self.ok("job", "apply", self.file)
        run = self.ok("job", "run", "report").rstrip("\n")
        self.ok("job", "cancel", run)
        self.assertRegex(self.ok("job", "retry", run), r"^report\.")

    def test_a_mistake_loads_nothing(self):
        bad = self.write("x.yaml", FILE.replace("0 2 *", "0 25 *"))
        self.assertIn("hour 25", self.fails(78, "job", "load", bad))
        self.assertEqual(self.names(), [])
        # As every list, with its head.
        for verb, head in (("ls", "JOB SET STATUS NEXT SCHEDULE ZONE"), ("runs", "RUN STATE REASON CAUSE BEGUN ENDED"),
                           ("nodes", "NODE STATE HOST PID RUNNING LABELS JOINED")):
            self.assertEqual(self.ok("job", verb).split(), head.split())


class Runs(Jobs):
    def setUp(self):
        super().setUp()
        self.load()

    def test_a_run_is_started_once(self):
        run = self.start("report", "-p", "region=us")
        self.assertRegex(run, r"^report\.[0-9a-f]{12}$")
        shown = self.run_of(run)
        self.assertEqual((shown["state"], shown["cause"], shown["params"]), ("QUEUED", "hand", {"region": "us"}))
        self.assertEqual([(step["name"], step["state"]) for step in shown["steps"]], [("main", "READY")])
        self.assertEqual(self.run_of(self.start("report"))["params"], {"region": "eu"})
        self.assertIn("region", self.fails(64, "job", "start", "report", "-p", "region=12"))
        self.assertIn("job ls", self.fails(1, "job", "start", "none"))
        # The same id is the same run.
        for _ in range(2):
            self.assertEqual(self.start("report", "--id", "mine"), "report.mine")
        runs = self.json("job", "runs", "report", "--json")["runs"]
        self.assertEqual(([one["id"] for one in runs][0], len(runs)), (run, 3))
        self.assertEqual(len(self.json("job", "runs", "report", "-n", "2", "--json")["runs"]), 2)
        self.assertEqual(self.json("job", "runs", "--state", "FAILED", "--json")["runs"], [])
        self.ok("job", "rm", "report")
        self.assertEqual(self.start("report", "--id", "mine"), "report.mine")
        self.assertIn("no set any more", self.fails(1, "job", "start", "report", "--id", "other"))

    def test_a_run_that_cannot_be_read_hides_no_job(self):
        self.ok("job", "load", self.write("any.yaml", "jobs: {any: {concurrency: allow, run: [x]}}\n"))
        lives = self.start("any")
        for run in (self.start("any", "--id", "a"), self.start("any", "--id", "b")):
            self.ok("state", "set", f"job/{{main}}/run/{run}", '{"state":"ODD"}')
        self.assertEqual(self.names(), ["any", "nightly", "order", "report"])
        self.assertEqual(self.names("--running"), ["any"])
        self.assertEqual(self.names("--failing"), [])
        self.assertEqual(self.job("any")["status"], "running")
        self.ok("job", "cancel", lives)
        self.assertEqual(self.job("any")["status"], "on demand")

    def test_a_definition_that_cannot_be_read_hides_no_run(self):
        run = self.start("report")
        self.ok("job", "cancel", run)
        self.ok("state", "set", f"job/{{main}}/def/report/{self.job('report')['hash']}", '{"new":1}')
        self.assertEqual(self.names(), ["nightly", "order", "report"])
        self.assertEqual([one["id"] for one in self.json("job", "runs", "report", "--json")["runs"]], [run])
        self.assertEqual((self.run_of(run)["state"], self.run_of(run)["zone"]), ("CANCELLED", None))
        self.assertIn("state   CANCELLED", self.ok("job", "show", run))
        (told,) = self.json("job", "wait", run, "--json", code=125)["runs"]
        self.assertEqual(told["id"], run)

    def test_a_run_that_cannot_be_read_is_named_between_the_others(self):
        runs = [self.start("report", "--id", name) for name in ("one", "two", "three")] + [self.start("nightly")]
        self.ok("state", "set", f"job/{{main}}/run/{runs[1]}", '{"state":"ODD"}')
        told = self.json("job", "runs", "--json")["runs"]
        self.assertEqual(sorted((one["id"], one["job"], one["state"]) for one in told), sorted(
            (run, run.partition(".")[0], "UNREADABLE" if run == runs[1] else "QUEUED") for run in runs))
        (odd,) = [one for one in told if one["state"] == "UNREADABLE"]
        self.assertIn("no valid record: \"state\"", odd["reason"])
        self.assertEqual((odd["params"], odd["steps"]), ({}, []))
        self.assertRegex(self.ok("job", "runs", "report"), r"(?m)^report\.two +UNREADABLE +- +- +- +-$")
        self.assertEqual(len(self.ok("job", "runs", "report").splitlines()), 4)
        self.assertEqual(len(self.json("job", "runs", "--state", "QUEUED", "--json")["runs"]), 3)
        self.assertIn("report.two has no valid record", self.fails(64, "job", "show", runs[1]))

    def test_a_job_whose_definition_cannot_be_read_is_shown(self):
        self.ok("job", "pause", "nightly", "--note", "until then")
        definition = f"job/{{main}}/def/nightly/{self.job('nightly')['hash']}"
        self.assertIsNone(self.job("nightly")["unreadable"])
        self.ok("state", "set", definition, '{"new":1}')
        shown = self.job("nightly")
        self.assertEqual((shown["status"], shown["note"], shown["zone"], shown["steps"]), ("paused", "until then", None, []))
        self.assertIn("of the job nightly cannot be read: ", shown["unreadable"])
        self.assertRegex(self.ok("job", "show", "nightly"), r"(?m)^note    the definition \w+ of the job nightly cannot be read: .")
        self.ok("state", "del", definition)
        self.assertIn("the store has no definition", self.ok("job", "show", "nightly"))
        self.assertIn("no job and no run none", self.fails(1, "job", "show", "none"))

    def test_a_batch_has_so_many_members(self):
        runs = [self.start("report", "--batch", "b1", "--id", "one"),
                self.start("report", "--batch", "b1", "--of", "2")]
        self.assertEqual(len(set(runs)), 2)
        self.assertIn("all 2 members of the batch b1", self.fails(75, "job", "start", "report", "--batch", "b1"))
        # The same id is the same member.
        self.assertEqual(self.start("report", "--batch", "b1", "--id", "one"), runs[0])
        self.assertIn("not 3", self.fails(64, "job", "start", "report", "--batch", "b1", "--of", "3"))
        self.assertIn("--batch", self.fails(64, "job", "start", "report", "--of", "3"))

    def test_forbid_allows_one(self):
        run = self.start("nightly")
        self.assertIn(run, self.fails(75, "job", "start", "nightly"))
        self.assertEqual(self.names("--running"), ["nightly"])
        self.ok("job", "cancel", run)
        self.assertEqual(self.run_of(run)["state"], "CANCELLED")
        self.assertIn("CANCELLED", self.fails(1, "job", "cancel", run))
        self.assertNotEqual(self.start("nightly"), run)
        self.assertIn("no run", self.fails(1, "job", "cancel", "nightly.none"))

    def test_a_run_is_waited_for(self):
        with subprocess.Popen([DIBS, "job", "start", "report", "--wait"], env=self.env, cwd=self.folder,
                              stdout=subprocess.PIPE, text=True) as waiter:
            self.addCleanup(self.finish, waiter)
            run = waiter.stdout.readline().rstrip("\n")
            self.ok("job", "cancel", run)
            self.assertEqual(waiter.wait(PATIENCE), 125)
        self.fails(125, "job", "wait", run)
        self.assertIn("not ended in time", self.fails(75, "job", "wait", self.start("report"), "-w", "10ms"))
        self.assertIn("not in the store", self.fails(1, "job", "wait", "report.none"))

    def test_a_bookmark_is_resumed_once(self):
        run = self.start("order")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            codes = list(pool.map(lambda i: self.dibs("job", "resume", run, "approval", "--data", str(i)).returncode,
                                  range(8)))
        self.assertEqual(codes.count(0), 1, codes)
        self.assertTrue(set(codes) <= {0, 1, 75}, codes)
        steps = {step["name"]: step for step in self.run_of(run)["steps"]}
        self.assertEqual((steps["approve"]["state"], steps["approve"]["result"]), ("OK", str(codes.index(0))))
        self.assertEqual(steps["ship"]["state"], "PENDING")
        self.assertIn("resumed by", self.fails(1, "job", "resume", run, "approval"))
        entries = [(e["action"], e["name"]) for e in self.json("trail", "--json")["trail"]]
        self.assertEqual(entries.count(("run-resume", run)), 1, entries)
        self.fails(1, "job", "resume", run, "none")

    def test_the_lock_of_a_bookmark_tells_the_second(self):
        run = self.start("order")
        self.acquire(f"workflow:{run}:bookmark:approval", "-n")
        self.assertIn("already in progress", self.fails(75, "job", "resume", run, "approval"))

    def test_work_before_a_run_goes_on_is_done_once(self):
        run = self.start("order")
        work = "echo $DIBS_RUN/$DIBS_BOOKMARK >>begun; until test -e go; do sleep 0.02; done; printf yes"
        with subprocess.Popen([DIBS, "job", "resume", run, "approval", "--", "sh", "-c", work], env=self.env,
                              cwd=self.folder) as first:
            self.addCleanup(self.finish, first)
            wait_until(lambda: self.text("begun"), "the work to begin")
            for words in ([], ["--", "sh", "-c", "echo second >>begun"]):
                self.assertIn("already in progress", self.fails(75, "job", "resume", run, "approval", *words))
            self.assertEqual({step["name"]: step["state"] for step in self.run_of(run)["steps"]}["approve"], "WAITING")
            self.write("go", "")
            self.assertEqual(first.wait(PATIENCE), 0)
        self.assertEqual(self.text("begun"), f"{run}/approval\n")
        step = {step["name"]: step for step in self.run_of(run)["steps"]}["approve"]
        self.assertEqual((step["state"], step["result"]), ("OK", "yes"))
        # Nothing is left to do, so that no command is started.
        self.assertIn("resumed by", self.fails(1, "job", "resume", run, "approval", "echo", "never"))

    def test_work_is_not_lost_while_the_store_is_away(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("held.db")
        self.ok("job", "load", self.file)
        run = self.start("order")
        work = "echo x >>begun; until test -e go; do sleep 0.02; done; echo done >&2; printf yes"
        with subprocess.Popen([DIBS, "job", "resume", run, "approval", "--store-timeout", span(0.1), "--", "sh", "-c", work],
                              env=self.env, cwd=self.folder) as first:
            self.addCleanup(self.finish, first)
            wait_until(lambda: self.text("begun"), "the work to begin")
            with contextlib.closing(sqlite3.connect(self.path("held.db"), isolation_level=None,
                                                    timeout=PATIENCE)) as store:
                store.execute("BEGIN IMMEDIATE")
                self.write("go", "")
                # Several times as long as it waits for an answer: a caller that gives up does so by then.
                select.select([], [], [], PACE)
                store.execute("ROLLBACK")
            self.assertEqual(first.wait(PATIENCE), 0)
        step = {step["name"]: step for step in self.run_of(run)["steps"]}["approve"]
        self.assertEqual((step["state"], step["result"], self.text("begun")), ("OK", "yes", "x\n"))

    def test_work_that_fails_leaves_the_bookmark(self):
        run = self.start("order")
        self.assertIn("has exited with 3", self.fails(3, "job", "resume", run, "approval", "--", "sh", "-c", "exit 3"))
        self.fails(127, "job", "resume", run, "approval", "./none")
        much = ["head", "-c", "5000", "/dev/zero"]
        self.assertIn("4096 bytes", self.fails(125, "job", "resume", run, "approval", *much))
        self.assertIn("--data", self.fails(64, "job", "resume", run, "approval", "--data", "x", "--", "true"))
        self.assertIn("name is missing", self.fails(64, "job", "resume", run, "--", "true", "x"))
        self.assertIn("name is missing", self.fails(64, "job", "resume", "--", run))
        self.assertIn("name is missing", self.fails(64, "job", "resume", "--", run, "approval", "true"))
        self.assertIn("no bookmark none", self.fails(1, "job", "resume", "--", run, "none"))
        self.fails(1, "job", "resume", run, "none", "--", "true")
        self.assertEqual({step["name"]: step["state"] for step in self.run_of(run)["steps"]}["approve"], "WAITING")
        # Options before the command are ours, those behind its first word are its own.
        self.ok("job", "resume", run, "approval", "--ttl", "10s", "echo", "--data")
        self.assertEqual({step["name"]: step for step in self.run_of(run)["steps"]}["approve"]["result"], "--data\n")

    def test_work_ends_with_its_lock(self):
        run = self.start("order")
        lock = f"workflow:{run}:bookmark:approval"
        with subprocess.Popen([DIBS, "job", "resume", run, "approval", "--", "sh", "-c", "echo x >begun; sleep 1000"],
                              env=self.env, cwd=self.folder, stderr=subprocess.PIPE) as first:
            self.addCleanup(self.finish, first)
            wait_until(lambda: self.text("begun"), "the work to begin")
            self.ok("break", lock, "--force", "--yes")
            self.assertEqual(first.wait(PATIENCE), 122)
        self.ok("job", "resume", run, "approval")

    def test_an_id_is_of_one_job(self):
        self.ok("job", "load", self.write("dots.yaml", "jobs: {a: {run: [x]}, a.b: {run: [x]}}\n"))
        self.assertEqual(self.start("a", "--id", "b.c"), "a.b.c")
        self.assertIn("a.b.c is the id of a run of the job a, and not of a.b; give another id",
                      self.fails(64, "job", "start", "a.b", "--id", "c"))
        self.assertEqual(self.start("a", "--id", "b.c"), "a.b.c")
        self.assertEqual([len(self.json("job", "runs", job, "--json")["runs"]) for job in ("a", "a.b")], [1, 0])

    def test_a_rerun_keeps_results(self):
        run = self.start("order")
        self.ok("job", "resume", run, "approval", "--data", "yes")
        self.assertIn("has not ended", self.fails(75, "job", "rerun", run))
        self.ok("job", "cancel", run)
        again = self.ok("job", "rerun", run, "--from", "ship").rstrip("\n")
        shown = self.run_of(again)
        self.assertEqual((shown["cause"], shown["origin"]), ("rerun", run))
        self.assertEqual({step["name"]: step["state"] for step in shown["steps"]}["approve"], "OK")
        self.fails(1, "job", "rerun", run, "--from", "none")

    def test_a_rerun_has_the_same_parameters(self):
        run = self.start("report", "-p", "region=us")
        self.ok("job", "cancel", run)
        again = self.run_of(self.ok("job", "rerun", run).rstrip("\n"))
        self.assertEqual((again["state"], again["origin"], again["params"]), ("QUEUED", run, {"region": "us"}))


class Operator(Jobs):
    def setUp(self):
        super().setUp()
        self.load()

    def test_a_pause_has_a_note_and_an_end(self):
        self.ok("job", "pause", "nightly", "--note", "disk full", "--until", "2199-01-01T00:00:00Z")
        job = self.job("nightly")
        self.assertEqual((job["status"], job["note"], job["paused_until"]),
                         ("paused", "disk full", "2199-01-01T00:00:00Z"))
        self.assertIn("@", job["paused_by"])
        self.assertEqual(self.names("--paused"), ["nightly"])
        # Its next time is after the pause.
        self.assertIsNone(job["next"])
        self.assertRegex(self.ok("job", "ls", "nightly"), "paused +- ")
        self.assertIn("\nuntil   2199-01-01T00:00:00Z\n", self.ok("job", "show", "nightly"))
        times = self.json("job", "next", "nightly", "-n", "1", "--json")["times"]
        self.assertEqual([time["instant"] for time in times], ["2199-01-01T01:00:00Z"])
        self.assertIn("has passed", self.fails(64, "job", "pause", "nightly", "--until", "2001-01-01"))
        self.assertIn("is no time", self.fails(64, "job", "pause", "nightly", "--until", "soon"))
        self.ok("job", "unpause", "nightly")
        self.assertEqual(self.job("nightly")["status"], "due")
        self.ok("job", "pause", "--all")
        self.assertIn("nightly is paused", self.dibs("job", "next", "nightly").stderr)
        self.assertEqual(self.json("job", "next", "nightly", "--json")["times"], [])
        self.ok("job", "unpause", "--match", "n*")
        self.assertEqual(self.names("--paused"), ["order", "report"])
        for words in ([], ["nightly", "--all"], ["--all", "--match", "x"]):
            self.assertIn("give names", self.fails(64, "job", "pause", *words))
        self.fails(1, "job", "unpause", "none")

    def test_a_job_that_was_removed_stays_away(self):
        self.ok("job", "pause", "nightly")
        self.ok("job", "rm", "nightly")
        for change in ("reset", "unpause", "pause"):
            self.assertIn("no set any more; load a file", self.fails(1, "job", change, "nightly"))
        self.fails(1, "job", "pause", "nightly", "--until", "2199-01-01T00:00:00Z")
        self.load(FILE.replace("version: 1", "version: 2"))
        self.assertIn("nightly", self.names())

    def test_the_end_of_a_run_keeps_no_job_that_was_removed(self):
        run = self.start("nightly")
        self.ok("job", "rm", "nightly")
        self.ok("job", "cancel", run)
        states = self.json("state", "ls", "job/{main}/state/", "--json")["values"]
        self.assertEqual([value["expires_ms"] is not None for value in states], [True, False, False])

    def test_changes_are_in_the_trail(self):
        self.ok("job", "pause", "nightly", "--note", "disk full")
        self.ok("job", "unpause", "nightly", "--reason", "it is empty again")
        self.ok("job", "pause", "--all")
        self.fails(1, "job", "pause", "none")
        self.ok("job", "reset", "nightly")
        run = self.start("report")
        self.ok("job", "cancel", run)
        self.ok("job", "rm", "nightly")
        entries = self.json("trail", "--json")["trail"]
        self.assertEqual([(e["action"], e["name"], e["reason"].split("[")[0].rstrip()) for e in entries], [
            ("job-pause", "nightly", "disk full"), ("job-resume", "nightly", "it is empty again"), ("job-pause", "*", "3 jobs"),
            ("job-reset", "nightly", ""), ("run-cancel", run, ""), ("job-rm", "nightly", "")])
        self.assertTrue(all(e["reason"].endswith(f"@{os.uname().nodename}]") for e in entries))

    def test_a_reset_and_an_edit_make_nothing_late(self):
        before = self.job("nightly")["next"]
        self.assertEqual(self.ok("job", "reset", "nightly"), f"nightly runs again from {before} on\n")
        self.assertEqual(self.job("nightly")["next"], before)
        told = self.json("job", "reset", "nightly", "--json")
        self.assertEqual((told["job"], told["next"], told["ran_before"]), ("nightly", before, 0))
        self.assertIsNone(self.json("job", "reset", "report", "--json")["next"])
        self.ok("job", "pause", "nightly")
        self.assertIn("nightly is paused", self.ok("job", "reset", "nightly"))
        told = self.json("job", "reset", "nightly", "--json")
        self.assertEqual((told["paused"], told["next"], self.job("nightly")["status"]), (True, None, "paused"))
        self.ok("job", "unpause", "nightly")
        self.load(FILE.replace("version: 1", "version: 2").replace("0 2 * * *", "30 4 * * *"))
        times = self.json("job", "next", "nightly", "-n", "1", "--json")["times"]
        self.assertEqual((times[0]["local"][11:], times[0]["instant"]), ("04:30:00", self.job("nightly")["next"]))
        self.assertEqual(self.json("job", "runs", "nightly", "--json")["runs"], [])

    def test_boards_are_apart(self):
        self.ok("job", "load", self.write("other.yaml", "board: two\njobs: {nightly: {run: [x]}}\n"))
        self.assertEqual(self.names("--board", "two"), ["nightly"])
        self.assertEqual(self.job("nightly")["set"], "billing")
        self.fails(64, "job", "ls", "--board", "a/b")
        self.assertIn("there is no job and no run", self.fails(1, "job", "show", "none"))


if __name__ == "__main__":
    main()
