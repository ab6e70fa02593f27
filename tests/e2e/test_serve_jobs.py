"""`dibs serve` and jobs: the engine within the daemon, jobs, runs with live output, nodes."""
# SPDX-License-Identifier: MIT
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest
from urllib.parse import quote

from runtools import DIBS, PATIENCE, NotInTime, main, wait_until
from servetools import URL, Daemon, ServeCase

# `gate FILE` ends when the test makes the file.
GATE = "while ! test -e {0}; do sleep 0.02; done"
JOBS = """
set: served
board: BOARD
jobs:
  hello:
    description: Says hello
    concurrency: allow
    params: {who: {default: world, pattern: '[a-z]+'}}
    env: {SECRET_OF_JOB: planted-in-env}
    run: [sh, -c, 'echo "hello $DIBS_PARAM_WHO"; echo "to err" >&2']
  slow:
    concurrency: forbid
    kill_after: 100ms
    shell: 'echo begun; GATE; echo over'
  zeros:
    shell: 'i=0; while [ $i -lt 330 ]; do printf "%0100d\\n" $i; i=$((i + 1)); done; head -c 4000 /dev/zero; echo'
  fails:
    run: [sh, -c, 'echo broken; exit 3']
  often:
    schedule: '@every 1s'
    run: ['true']
  nightly:
    schedule: '0 2 * * *'
    zone: Europe/Berlin
    run: ['true']
  graph:
    concurrency: allow
    steps:
      one: {shell: 'echo 1 > "$DIBS_RESULT"'}
      ask: {wait: {bookmark: approval}, needs: [one]}
      two: {shell: 'echo two', needs: [ask]}
  wide: {run: ['true'], params: {PARAMS}}
  bytes: {shell: 'printf "\\377\\303(" >"$DIBS_RESULT"'}
  retried:
    output: {keep: 256k}
    retry: {attempts: 2, delay: 10ms}
    shell: 'echo "attempt $DIBS_ATTEMPT"; test $DIBS_ATTEMPT = 2 || { GATE; exit 1; }; seq -f "%0200g" 1000'
  accents:
    shell: 'printf x; printf "é%.0s" $(seq 6000); echo'
"""


# Together more than an event may have.
PARAMS = {f"p{i}": "x" * 3900 for i in range(16)}


def jobs_text(gate, board="main"):
    return JOBS.replace("GATE", GATE.format(gate)).replace("BOARD", board).replace("PARAMS", ": {}, ".join(PARAMS) + ": {}")


class Jobs(ServeCase):
    """One daemon whose engine executes what the tests start."""

    @classmethod
    def setUpClass(cls):
        cls.jobs_folder = tempfile.TemporaryDirectory(prefix="dibs-jobs-")
        cls.addClassCleanup(cls.jobs_folder.cleanup)
        cls.gate = cls.jobs_folder.name + "/gate"
        cls.file = cls.jobs_folder.name + "/jobs.yaml"
        with open(cls.file, "w", encoding="utf-8") as file:
            file.write(jobs_text(cls.gate))
        cls.options = ("--jobs", cls.file, "--slots", "8")
        super().setUpClass()
        wait_until(lambda: cls.daemon.get("/v1/nodes").json["total"] == 1, "the node of the daemon")

    def open_gate(self):
        with open(self.gate, "w", encoding="utf-8"):
            pass
        self.addCleanup(lambda: os.path.exists(self.gate) and os.unlink(self.gate))

    def run_of(self, answer):
        self.assertEqual(answer.status, 202, answer.text)
        self.assertEqual(answer.headers["Location"], "/v1/runs/" + answer.json["id"])
        return answer.json["id"]

    def start(self, job, body=None, **more):
        return self.run_of(self.daemon.post(f"/v1/jobs/{job}/run", body, **more))

    def await_run(self, run, *states):
        def found():
            answer = self.daemon.get("/v1/runs/" + self.path(run))
            self.assertEqual(answer.status, 200, answer.text)
            return answer.json if answer.json["state"] in states else None

        return wait_until(found, f"{run} in {states}")

    def trail(self, name):
        """What the store keeps of changes, newest first."""
        return [(entry["action"], entry["who"], entry["reason"])
                for entry in self.daemon.get("/v1/audit", query={"name": name}).json["items"]]

    def test_jobs(self):
        answer = self.daemon.get("/v1/jobs", role="read").json
        names = [job["name"] for job in answer["items"]]
        self.assertEqual(names, ["accents", "bytes", "fails", "graph", "hello", "nightly", "often", "retried", "slow", "wide", "zeros"])
        self.assertEqual((answer["total"], answer["board"], answer["complete"]), (11, "main", True))
        nightly = answer["items"][names.index("nightly")]
        self.assertEqual((nightly["set"], nightly["zone"], nightly["schedule"]), ("served", "Europe/Berlin", ["0 2 * * *"]))
        self.assertEqual([answer["items"][names.index(name)]["schedule_text"] for name in ("nightly", "often", "hello")],
                         ["at 02:00 every day", "every 1s", None])
        self.assertRegex(nightly["next_at"], "^20..-..-..T0[01]:00:00")
        self.assertGreater(nightly["next_in_ms"], 0)
        # Parts, filters, and orders.
        first = self.daemon.get("/v1/jobs", query={"limit": 6}).json
        rest = self.daemon.get("/v1/jobs", query={"limit": 6, "after": first["next"]}).json
        self.assertEqual([job["name"] for job in first["items"] + rest["items"]], names)
        self.assertIsNone(rest["next"])
        for query, wanted in [({"q": "says"}, ["hello"]), ({"prefix": "s"}, ["slow"]), ({"status": "on demand", "prefix": "f"}, ["fails"]),
                              ({"set": "other"}, [])]:
            # A run that has just ended is in the daemon's look for a moment.
            wait_until(lambda query=query, wanted=wanted: [job["name"] for job in self.daemon.get("/v1/jobs", query=query).json["items"]] == wanted,
                       f"{wanted} for {query}")
        self.assertEqual(self.daemon.get("/v1/jobs", query={"sort": "next"}).json["items"][0]["name"], "often")
        self.assert_problem(self.daemon.get("/v1/jobs", query={"sort": "size"}), 400, "invalid")
        # A job that has run since a part was answered is elsewhere now; those behind its old place still come.
        due = [job["name"] for job in self.daemon.get("/v1/jobs", query={"sort": "next"}).json["items"]]
        part = self.daemon.get("/v1/jobs", query={"sort": "next", "limit": 1}).json
        wait_until(lambda: self.daemon.get("/v1/jobs", query={"sort": "next", "limit": 1}).json["next"] != part["next"], "the next tick")
        rest = [job["name"] for job in self.daemon.get("/v1/jobs", query={"sort": "next", "after": part["next"]}).json["items"]]
        self.assertEqual([name for name in rest if name != "often"], [name for name in due if name != "often"])
        self.assert_problem(self.daemon.get("/v1/jobs", query={"sort": "next", "after": "often"}), 400, "invalid")
        self.assert_problem(self.daemon.get("/v1/jobs", query={"status": "late"}), 400, "invalid")
        page = self.daemon.get("/v1/jobs", query={"limit": 1})
        self.assertIn("after=" + page.json["next"], page.headers["Link"])
        self.assert_problem(self.daemon.get("/v1/jobs", query={"board": "a/b"}), 400, "invalid")
        self.assertEqual(self.daemon.get("/v1/jobs", query={"board": "empty"}).json["items"], [])

    def test_one_job(self):
        answer = self.daemon.get("/v1/jobs/graph").json
        self.assertEqual([(step["name"], step["kind"], step["needs"]) for step in answer["steps"]],
                         [("one", "shell", []), ("ask", "wait", ["one"]), ("two", "shell", ["ask"])])
        self.assertIn(self.file, answer["loaded"]["from"])
        hello = self.daemon.get("/v1/jobs/hello")
        self.assertEqual(hello.json["steps"][0]["env"], ["SECRET_OF_JOB"])
        self.assertNotIn("planted-in-env", hello.text)
        self.assert_problem(self.daemon.get("/v1/jobs/none"), 404, "notfound")
        self.assert_problem(self.daemon.post("/v1/jobs/none/run"), 404, "notfound")

    def test_what_cannot_be_read_hides_no_run(self):
        path = self.daemon.folder + "/odd.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("board: odd\njobs: {some: {concurrency: allow, run: [x]}}\n")
        self.daemon.dibs("job", "load", path)
        runs = [self.daemon.dibs("job", "start", "-b", "odd", "some", "--id", name).stdout.strip() for name in ("a", "b", "c")]
        self.daemon.dibs("state", "set", f"job/{{odd}}/run/{runs[1]}", '{"state":"ODD"}')
        states = dict(zip(runs, ("QUEUED", "UNREADABLE", "QUEUED")))
        for answer in (self.daemon.get("/v1/runs", query={"board": "odd"}).json["items"],
                       self.daemon.get("/v1/jobs/some", query={"board": "odd"}).json["runs"]):
            self.assertEqual({run["id"]: run["state"] for run in answer}, states)
            (odd,) = [run for run in answer if run["id"] == runs[1]]
            self.assertEqual((odd["job"], odd["steps"], odd["params"]), ("some", [], {}))
            self.assertIn("some.b has no valid record: ", odd["reason"])
        live = self.daemon.get("/v1/runs", query={"board": "odd", "state": "live"}).json["items"]
        self.assertEqual(sorted(run["id"] for run in live), [runs[0], runs[2]])
        self.assertIn("some.b has no valid record", self.daemon.get("/v1/runs/some.b", query={"board": "odd"}).json["detail"])
        # The same of a definition.
        job = self.daemon.get("/v1/jobs/some", query={"board": "odd"}).json
        self.assertIsNone(job["unreadable"])
        self.daemon.dibs("state", "set", f"job/{{odd}}/def/some/{job['hash']}", '{"new":1}')
        bare = self.daemon.get("/v1/jobs/some", query={"board": "odd"})
        self.assertEqual(bare.status, 200, bare.text)
        self.assertIn("of the job some cannot be read: ", bare.json["unreadable"])
        self.assertEqual((bare.json["set"], len(bare.json["runs"])), (job["set"], 3))
        self.assertNotIn("steps", bare.json)
        self.assert_problem(self.daemon.get("/v1/jobs/some/next", query={"board": "odd"}), 400, "invalid")

    def test_values_of_the_engine_are_not_shown(self):
        key = self.daemon.get("/v1/state", query={"prefix": "job/{main}/"}).json["items"][0]["key"]
        path = "/v1/state/" + quote(key, safe="")
        for role, method, body in (("read", "GET", None), ("admin", "PUT", b"{}"), ("admin", "DELETE", None)):
            self.assert_problem(self.daemon.ask(method, path, body, role=role), 400, "invalid")
        self.assert_problem(self.daemon.post(path + "/add", {"delta": 1}), 400, "invalid")

    def test_next(self):
        answer = self.daemon.get("/v1/jobs/nightly/next", query={"n": 3}).json
        self.assertEqual((answer["zone"], len(answer["items"])), ("Europe/Berlin", 3))
        for tick in answer["items"]:
            self.assertIn("T02:00:00", tick["local"])
            self.assertIn(tick["offset"], ("+01:00", "+02:00"))
        utc = self.daemon.get("/v1/jobs/nightly/next", query={"n": 1, "tz": "UTC"}).json["items"][0]
        self.assertEqual((utc["local"] + ".000Z", utc["offset"]), (utc["at"], "+00:00"))
        self.assert_problem(self.daemon.get("/v1/jobs/nightly/next", query={"tz": "No/Where"}), 400, "invalid")
        self.assertEqual(self.daemon.get("/v1/jobs/slow/next").json["items"], [])

    def test_overview_has_the_next_ticks(self):
        due = {job["name"]: job["next_at"] for job in self.daemon.get("/v1/jobs").json["items"]
               if job["next_at"] and not job["paused"]}
        rows = self.daemon.get("/v1/overview", role="read").json["next"]
        self.assertEqual({row["job"] for row in rows}, set(due))
        self.assertEqual(rows, sorted(rows, key=lambda row: row["at"]))
        self.assertIn(("nightly", due["nightly"]), [(row["job"], row["at"]) for row in rows])
        self.assertTrue(all(row["in_ms"] >= 0 for row in rows))

    def test_run_with_params(self):
        run = self.start("hello", {"params": {"who": "ann"}, "reason": "to see it"}, role="operate")
        record = self.await_run(run, "OK")
        self.assertEqual((record["cause"], record["params"], record["steps"][0]["exit_code"]), ("hand", {"who": "ann"}, 0))
        self.assertGreaterEqual(record["took_ms"], 0)
        text = self.daemon.get(f"/v1/runs/{run}/output", role="read")
        self.assertEqual(text.headers["Content-Type"], "text/plain; charset=utf-8")
        self.assertEqual(sorted(text.text.splitlines()), ["hello ann", "to err"])
        for body in ({"params": {"who": "ANN"}}, {"params": {"no": "x"}}, {"params": {"who": 7}}, {"params": 7}, {"colour": "red"}):
            self.assert_problem(self.daemon.post("/v1/jobs/hello/run", body), 400, "invalid")
        line = wait_until(lambda: [line for line in self.daemon.log() if line.get("action") == "job-run" and
                                   line.get("reason") == "to see it"], "the change in the log")[0]
        self.assertEqual((line["who"], line["target"], line["result"]), ("operate", "hello", "OK"))

    def test_key_names_the_run(self):
        runs = {self.start("hello", headers={"Idempotency-Key": "order-7"}) for _ in range(3)}
        self.assertEqual(runs, {"hello.order-7"})
        self.await_run("hello.order-7", "OK")
        self.assertEqual(self.start("hello", headers={"Idempotency-Key": "order-7"}), "hello.order-7")
        self.assert_problem(self.daemon.post("/v1/jobs/hello/run", headers={"Idempotency-Key": "a/b"}), 400, "invalid")

    def test_busy_cancel_and_rerun(self):
        run = self.start("slow")
        self.await_run(run, "ACTIVE")
        problem = self.assert_problem(self.daemon.post("/v1/jobs/slow/run"), 409, "busy")
        self.assertEqual(problem["run"], run)
        self.assert_problem(self.daemon.post(f"/v1/runs/{run}/rerun"), 409, "busy")
        wait_until(lambda: {"run": run, "step": "main"} in self.daemon.get("/v1/nodes").json["items"][0]["steps"],
                   "the step at its node")
        live = {"state": "live", "job": "slow"}
        wait_until(lambda: [item["id"] for item in self.daemon.get("/v1/runs", query=live).json["items"]] == [run], "it in the list")
        self.assertEqual(self.run_of(self.daemon.post(f"/v1/runs/{run}/cancel", {"reason": "enough"})), run)
        self.assertEqual(self.await_run(run, "CANCELLED")["reason"], "cancelled")
        self.assert_problem(self.daemon.post(f"/v1/runs/{run}/cancel"), 409, "stale")
        self.assert_problem(self.daemon.post("/v1/runs/none.1/cancel"), 404, "notfound")
        self.open_gate()
        again = self.run_of(self.daemon.post(f"/v1/runs/{run}/rerun", headers={"Idempotency-Key": "again"}))
        self.assertEqual(again, "slow.again")
        self.assertEqual(self.trail(run), [("run-rerun", "admin", ""), ("run-cancel", "admin", "enough")])
        self.assertIn(("job-run", "admin", ""), self.trail("slow"))
        self.assertEqual(self.await_run(again, "OK")["origin"], run)

    def test_a_rerun_has_the_same_parameters(self):
        run = self.run_of(self.daemon.post("/v1/jobs/hello/run", {"params": {"who": "ann"}}))
        self.await_run(run, "OK")
        again = self.run_of(self.daemon.post(f"/v1/runs/{run}/rerun"))
        self.assertEqual(self.await_run(again, "OK")["params"], {"who": "ann"})

    def test_a_result_that_is_no_text(self):
        run = self.run_of(self.daemon.post("/v1/jobs/bytes/run"))
        (step,) = self.await_run(run, "OK")["steps"]
        self.assertEqual((step["result_base64"], "result" in step), ("/8Mo", False))

    def test_live_output(self):
        run = self.start("slow", headers={"Idempotency-Key": "live"})
        events, seen = self.events(run), []
        # The command has begun and waits; a place follows its lines.
        while not seen or seen[-1][1] != "place" or len(seen) < 3:
            seen.append(next(events))
        place = seen[-1]
        self.assertEqual([event[2] for event in seen if event[1] == "line"],
                         [["sys", "step main, attempt 1", "main"], ["out", "begun", "main"]])
        self.open_gate()
        rest = list(events)
        self.assertEqual([event[2] for event in rest if event[1] == "line"],
                         [["out", "over", "main"], ["sys", "main: ok, exit code 0", "main"]])
        self.assertEqual(rest[-1][1:], ("end", {"state": "OK"}))
        # Another stream goes on after the place of the first.
        self.assertEqual([event[2][1] for event in self.events(run, headers={"Last-Event-ID": place[0]}) if event[1] == "line"],
                         ["over", "main: ok, exit code 0"])
        self.assertEqual([event[2][1] for event in self.events(run, query="?tail=1") if event[1] == "line"],
                         ["step main, attempt 1", "over", "main: ok, exit code 0"])
        self.assert_problem(self.daemon.get(f"/v1/runs/{run}/output", query={"from": "x"}), 400, "invalid")
        for accept in ("text/event-stream", "text/plain"):
            for query in ({"step": "none"}, {"attempt": 99}, {"step": "main", "attempt": 2}):
                answer = self.daemon.get(f"/v1/runs/{run}/output", headers={"Accept": accept}, query=query)
                self.assert_problem(answer, 404, "notfound")
        self.assert_problem(self.daemon.get("/v1/runs/none.1/output", headers={"Accept": "text/event-stream"}), 404, "notfound")

    @staticmethod
    def shown(events):
        return [event[2][1] for event in events if event[1] == "line"]

    def test_output_of_a_retry(self):
        """It is whole for a stream that was open before it, and for one that goes on after the first attempt."""
        run = self.start("retried")
        events = self.events(run)
        while next(events)[1] != "place":
            pass
        running = {"status": "running", "prefix": "retried"}
        wait_until(lambda: self.daemon.get("/v1/jobs", query=running).json["items"], "the job among those that run")
        self.assertEqual(self.daemon.get("/v1/jobs/retried").json["status"], "running")
        self.open_gate()
        rest = list(events)
        self.assertEqual(rest[-1][1:], ("end", {"state": "OK"}))
        wait_until(lambda: not self.daemon.get("/v1/jobs", query=running).json["items"], "the job to run no more")
        self.assertEqual(self.daemon.get("/v1/jobs/retried").json["status"], "on demand")
        whole = ["step main, attempt 2", "attempt 2", *(f"{number:0200d}" for number in range(1, 1001)), "main: ok, exit code 0"]
        lines = self.shown(rest)
        self.assertEqual(lines[lines.index(whole[0]):], whole)
        first = list(self.events(run, query="?attempt=1"))
        self.assertEqual(self.shown(first), ["step main, attempt 1", "attempt 1"])
        place = [event[0] for event in first if event[1] == "place"][-1]
        rest = list(self.events(run, headers={"Last-Event-ID": place}))
        self.assertEqual(self.shown(rest), whole)
        self.assertEqual(rest[-1][1:], ("end", {"state": "OK"}))
        # A stream that had not read the first attempt to its end when the second began.
        rest = list(self.events(run, headers={"Last-Event-ID": "0:1:0:0"}))
        self.assertEqual(self.shown(rest), ["attempt 1", *whole])
        # A stream that begins has the last lines alone.
        self.assertEqual(self.shown(self.events(run, query="?tail=2")), [whole[0], *whole[-3:]])

    def test_a_long_line_is_cut_between_characters(self):
        run = self.start("accents")
        self.await_run(run, "OK")
        lines = self.shown(self.events(run))[1:-1]
        self.assertEqual((len(lines), "".join(lines)), (3, "x" + "é" * 6000))

    def test_output_longer_than_a_pull(self):
        """Bytes that JSON writes with six characters make frames of more than 64 KiB of what was read at once."""
        run = self.start("zeros")
        self.await_run(run, "OK")
        events = list(self.events(run))
        lines = [event[2][1] for event in events if event[1] == "line" and event[2][0] == "out"]
        self.assertEqual(lines, [f"{number:0100d}" for number in range(330)] + ["\0" * 4000])
        self.assertEqual(events[-1][1:], ("end", {"state": "OK"}))

    def events(self, run, headers=None, query=""):
        """The events of an output: (id, name, data without its time)."""
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        connection.request("GET", f"/v1/runs/{run}/output{query}",
                           headers={"Authorization": "Bearer " + self.daemon.tokens["read"], "Accept": "text/event-stream",
                                    **(headers or {})})
        response = connection.getresponse()
        self.assertEqual((response.status, response.headers["Content-Type"]), (200, "text/event-stream"))
        fields = {}
        for line in response:
            line = line.decode().rstrip("\n")
            if line and not line.startswith(":"):
                key, _, value = line.partition(": ")
                fields[key] = value
            elif not line and "event" in fields:
                data = json.loads(fields["data"])
                yield fields.get("id"), fields["event"], data[1:] if isinstance(data, list) else data
                fields = {}

    def test_failure(self):
        run = self.start("fails")
        record = self.await_run(run, "FAILED")
        self.assertEqual((record["reason"], record["steps"][0]["exit_code"]), ("failed", 3))
        self.assertEqual([attempt["exit_code"] for attempt in record["attempts"]], [3])
        self.assertTrue(record["attempts"][0]["node"])
        self.assertEqual(record["steps"][0]["node"], record["attempts"][0]["node"])
        failed = {"state": "failed", "job": "fails"}
        wait_until(lambda: run in [item["id"] for item in self.daemon.get("/v1/runs", query=failed).json["items"]], "it in the list")
        etag = self.daemon.get("/v1/runs/" + run).headers["ETag"]
        self.assertEqual(self.daemon.get("/v1/runs/" + run, headers={"If-None-Match": etag}).status, 304)
        self.assert_problem(self.daemon.get("/v1/runs", query={"state": "green"}), 400, "invalid")
        self.assert_problem(self.daemon.get("/v1/runs", query={"job": "none"}), 404, "notfound")
        self.assert_problem(self.daemon.get("/v1/runs", query={"after": "x"}), 400, "invalid")
        job = self.daemon.get("/v1/jobs/fails").json
        self.assertEqual((job["run_count"], job["last"], job["runs"][0]["id"]), (len(job["runs"]), run, run))
        row = wait_until(lambda: next((row for row in self.daemon.get("/v1/jobs", query={"prefix": "fails"}).json["items"]
                                       if row["last"] == run), None), "the run in the list of jobs")
        self.assertEqual(row["run_count"], job["run_count"])
        # Of each job the newest, so that a job with many runs hides no other.
        newest = self.start("fails")
        self.await_run(newest, "FAILED")
        latest = {"latest": 1, "limit": 1000}
        wait_until(lambda: [item["id"] for item in self.daemon.get("/v1/runs", query=latest).json["items"] if item["job"] == "fails"] == [newest],
                   "the newest alone in the list")
        self.assert_problem(self.daemon.get("/v1/runs", query={"latest": 0}), 400, "invalid")

    def test_bookmark(self):
        run = self.start("graph")
        step = wait_until(lambda: next((s for s in self.daemon.get("/v1/runs/" + run).json["steps"]
                                        if s["waits_for"] == "bookmark"), None), "the bookmark")
        self.assertEqual((step["name"], step["bookmark"], step["needs"]), ("ask", "approval", ["one"]))
        path = f"/v1/runs/{run}/resume"
        # Another caller is at it.
        lock = f"workflow:{run}:bookmark:approval"
        token = self.hold(lock)
        problem = self.assert_problem(self.daemon.post(path, {"bookmark": "approval"}), 409, "busy")
        self.assertIn("already in progress", problem["detail"])
        self.daemon.dibs("release", lock, "--token", token)
        self.assert_problem(self.daemon.post(path, {}), 400, "invalid")
        self.assert_problem(self.daemon.post(path, {"bookmark": "other"}), 404, "notfound")
        self.assertEqual(self.daemon.post(path, {"bookmark": "approval", "data": "yes\n"}, role="operate").status, 202)
        record = self.await_run(run, "OK")
        self.assertEqual((record["steps"][1]["result"], record["steps"][1]["resumed_by"]), ("yes\n", "operate via serve"))
        self.assert_problem(self.daemon.post(path, {"bookmark": "approval"}), 409, "stale")
        self.assertIn("== two, attempt 1\ntwo\n", self.daemon.get(f"/v1/runs/{run}/output").text)

    def test_pause(self):
        answer = self.daemon.post("/v1/jobs/nightly/pause", {"reason": "disk is full", "until_at": "2199-01-01T00:00:00Z"})
        self.assertEqual((answer.status, answer.json), (200, {"job": "nightly", "paused": True}))
        job = self.daemon.get("/v1/jobs/nightly").json
        self.assertEqual((job["status"], job["paused"]["by"], job["paused"]["reason"]), ("paused", "admin via serve", "disk is full"))
        self.assertEqual((job["next_at"], job["next_in_ms"]), (None, None))
        # Lists show a change of this daemon at once, unless the look at the board is held up.
        paused = [j["name"] for j in self.daemon.get("/v1/jobs", query={"status": "paused"}).json["items"]]
        if not paused:
            raise NotInTime("the list is from before the pause")
        self.assertEqual(paused, ["nightly"])
        self.assertEqual(self.daemon.get("/v1/jobs/nightly/next").json["items"], [])
        self.assertEqual(self.daemon.post("/v1/jobs/nightly/resume").json, {"job": "nightly", "paused": False})
        self.assertEqual(self.trail("nightly")[:2], [("job-resume", "admin", ""), ("job-pause", "admin", "disk is full")])
        self.assertEqual(self.daemon.get("/v1/jobs/nightly").json["status"], "due")
        own = len(self.trail("nightly"))
        self.assertEqual(self.daemon.post("/v1/jobs/pause", {"match": "[gn]*", "reason": "r"}).json, {"jobs": ["graph", "nightly"], "left": 0})
        self.assertEqual(self.daemon.post("/v1/jobs/resume", {"match": "*"}).json, {"jobs": ["graph", "nightly"], "left": 0})
        # One entry for all of them, and a line of the log for each. A change of nothing has none.
        self.assertEqual(self.daemon.post("/v1/jobs/resume", {"match": "*"}).json, {"jobs": [], "left": 0})
        self.assertEqual(self.trail("[gn]*"), [("job-pause", "admin", "2 jobs: r")])
        self.assertEqual(self.trail("*"), [("job-resume", "admin", "2 jobs")])
        self.assertEqual(len(self.trail("nightly")), own)
        wait_until(lambda: {"graph", "nightly", "[gn]*"} <= {line["target"] for line in self.daemon.log()
                                                            if line["event"] == "audit" and line["action"] == "job-pause"}, "the lines")
        for body in ({}, {"match": ""}):
            self.assert_problem(self.daemon.post("/v1/jobs/pause", body), 400, "invalid")
        for until in ("soon", "1999-01-01T00:00:00Z"):
            self.assert_problem(self.daemon.post("/v1/jobs/nightly/pause", {"until_at": until}), 400, "invalid")

    def test_ticks_and_timeline(self):
        run = wait_until(lambda: self.daemon.get("/v1/runs", query={"job": "often", "state": "ok"}).json["items"], "a tick")[0]
        self.assertRegex(run["id"], r"^often@\d{8}T\d{6}Z$")
        self.assertEqual((run["cause"], run["tick_at"] is None), ("tick", False))
        first = self.daemon.get("/v1/runs", query={"limit": 1}).json
        second = self.daemon.get("/v1/runs", query={"limit": 1, "after": first["next"]}).json
        self.assertNotEqual(first["items"][0]["id"], second["items"][0]["id"])
        timeline = self.daemon.get("/v1/timeline").json
        self.assertIn("often", [item["job"] for item in timeline["runs"]])
        # Runs that began behind the span are not in it.
        older = self.daemon.get("/v1/timeline", query={"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}).json
        self.assertEqual((older["runs"], older["ticks"], older["complete"]), ([], [], True))
        ticks = [tick["at"] for tick in timeline["ticks"] if tick["job"] == "often"]
        self.assertEqual(ticks, sorted(ticks))
        self.assertGreater(len(ticks), 100)
        later = self.daemon.get("/v1/timeline", query={"from": "2198-06-01T00:00:00Z", "to": "2198-06-02T12:00:00Z"}).json
        self.assertEqual([tick["at"] for tick in later["ticks"] if tick["job"] == "nightly"],
                         ["2198-06-01T00:00:00.000Z", "2198-06-02T00:00:00.000Z"])
        for query in ({"from": "x"}, {"from": "2026-01-02", "to": "2026-01-01"}, {"from": "2026-01-01", "to": "2027-01-01"}):
            self.assert_problem(self.daemon.get("/v1/timeline", query=query), 400, "invalid")

    def test_calendar(self):
        self.await_run(self.start("fails"), "FAILED")
        run = self.start("slow")
        self.addCleanup(self.daemon.post, f"/v1/runs/{run}/cancel", {})
        self.await_run(run, "ACTIVE")
        wait_until(lambda: self.daemon.get("/v1/runs", query={"job": "often", "state": "ok"}).json["items"], "a tick")

        def counted():
            got = self.daemon.get("/v1/timeline", query={"step_s": 60}).json
            sums = {key: sum(cell[key] for cell in got["cells"]) for key in ("ok", "failed", "live")}
            return got if all(sums.values()) else None

        got = wait_until(counted, "runs of each kind")
        self.assertEqual((got["step_s"], "runs" in got, "ticks" in got), (60, False, False))
        self.assertEqual([cell for cell in got["cells"] if cell["at"] > got["now"] and cell["ok"] + cell["failed"] + cell["live"]], [])
        self.daemon.post(f"/v1/runs/{run}/cancel", {})
        self.await_run(run, "CANCELLED")
        # A tick at the end of the span is in no cell.
        later = self.daemon.get("/v1/timeline", query={"from": "2198-06-01T00:00:00Z", "to": "2198-06-01T10:00:00Z", "step_s": 3600}).json
        self.assertEqual([cell["ticks"] for cell in later["cells"]], [3601] + 9 * [3600])
        self.assertEqual((later["cells"][1]["at"], later["complete"]), ("2198-06-01T01:00:00.000Z", True))
        month = self.daemon.get("/v1/timeline", query={"from": "2198-06-01T00:00:00Z", "to": "2198-07-01T00:00:00Z", "step_s": 86400}).json
        self.assertFalse(month["complete"])
        for query in ({"step_s": 59}, {"step_s": 90000}, {"step_s": 60, "from": "2198-06-01", "to": "2198-06-08"}):
            self.assert_problem(self.daemon.get("/v1/timeline", query=query), 400, "invalid")

    def test_events(self):
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events?topics=runs,jobs",
                           headers={"Authorization": "Bearer " + self.daemon.tokens["read"]})
        response = connection.getresponse()
        states = []
        self.assertEqual(response.status, 200)
        self.start("hello", headers={"Idempotency-Key": "told"})
        self.start("wide", {"params": PARAMS}, headers={"Idempotency-Key": "told"})
        for line in response:
            if line.startswith(b"data: "):
                changed = json.loads(line[6:]).get("changed", [])
                states += [(run["id"], run["state"], run.get("brief", False)) for run in changed if str(run.get("id")).endswith(".told")]
                if {run[0] for run in states if run[1] == "OK"} == {"hello.told", "wide.told"}:
                    break
        self.assertEqual({(run[0], run[2]) for run in states}, {("hello.told", False), ("wide.told", True)})
        self.assert_problem(self.daemon.get("/v1/events", query={"topics": "weather"}), 400, "invalid")

    def test_metrics(self):
        self.await_run(self.start("fails"), "FAILED")

        def counted():
            text = self.daemon.get("/metrics", role="read").text
            return text if 'dibs_job_runs_total{job="fails",result="failed"}' in text else None

        text = wait_until(counted, "the count of a run")
        for pattern in (r'dibs_job_last_exit_code\{job="fails"\} 3$', r'dibs_job_next_run_timestamp_seconds\{job="nightly"\} \d+$',
                        r'dibs_job_duration_seconds_bucket\{job="fails",le="\+Inf"\} [1-9]', r'dibs_job_running\{job="slow"\} \d+$',
                        r'dibs_job_period_seconds\{job="often"\} 1$', r'dibs_job_period_seconds\{job="nightly"\} [1-9]\d+$',
                        r'dibs_job_missed_total\{job="often"\} \d+$', r'dibs_job_start_delay_seconds_count\{job="fails"\} [1-9]'):
            self.assertIsNotNone(re.search(pattern, text, re.M), pattern)
        self.assertEqual(len(re.findall("^# TYPE dibs_job_", text, re.M)), 10)
        # A job that is paused is never late.
        self.daemon.post("/v1/jobs/nightly/pause", {"reason": "test"})
        wait_until(lambda: 'dibs_job_period_seconds{job="nightly"}' not in self.daemon.get("/metrics").text, "no period")
        self.daemon.post("/v1/jobs/nightly/resume", {})

    def test_nodes(self):
        answer = self.daemon.get("/v1/nodes", role="read").json
        self.assertEqual((answer["engine"], answer["board"], len(answer["items"])), ("running", "main", 1))
        node = answer["items"][0]
        self.assertEqual(node["pid"], self.daemon.process.pid)
        self.assertRegex(node["id"], "^[0-9a-f]{16}$")


class Long(ServeCase):
    """Runs with 240 KiB of params, 17 MB in all: more than an answer may have."""

    COUNT = 72

    def test_pages_end_in_time(self):
        names = [f"p{i}" for i in range(60)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="dibs-long-") as file:
            file.write("set: long\njobs: {long: {concurrency: allow, run: ['true'], params: {%s}}}" % ", ".join(f"{name}: " for name in names))
            file.flush()
            self.daemon.dibs("job", "load", file.name)
        params = [word for name in names for word in ("-p", f"{name}={'x' * 4096}")]
        made = [self.daemon.dibs("job", "start", "long", *params).stdout.strip() for _ in range(self.COUNT)]
        query, seen, pages = {"job": "long", "limit": 1000}, [], 0
        wait_until(lambda: [run["id"] for run in self.daemon.get("/v1/runs", query={"job": "long", "limit": 1}).json["items"]] == made[-1:],
                   "a look after the last of them")
        while query:
            answer = self.daemon.get("/v1/runs", query=query)
            self.assertEqual(answer.status, 200, answer.text[:1000])
            seen += [run["id"] for run in answer.json["items"]]
            query = answer.json["next"] and {**query, "after": answer.json["next"]}
            pages += 1
        self.assertEqual((len(seen), set(seen)), (self.COUNT, set(made)))
        self.assertGreater(pages, 1)


class Slow(unittest.TestCase):
    """Looks at the board take so long that readers get an old one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dibs-slow-")
        self.addCleanup(folder.cleanup)
        url = f"sqlite:{folder.name}/store.db"
        with open(folder.name + "/jobs.yaml", "w", encoding="utf-8") as file:
            file.write("jobs: {one: {run: ['true']}, two: {run: ['true']}}")
        subprocess.run([DIBS, "job", "load", "--url", url, file.name], stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
        self.daemon = Daemon(url=f"fault+{url}?step=first&delay_ms=1500")
        self.addCleanup(self.daemon.end)

    def test_a_change_of_many_looks_at_the_store(self):
        for verb in ("pause", "resume"):
            answer = self.daemon.post(f"/v1/jobs/{verb}", {"match": "*"})
            if answer.status == 503 or answer.json.get("left"):
                raise NotInTime(answer.text)
            self.assertEqual(answer.json, {"jobs": ["one", "two"], "left": 0}, verb)


class Engine(unittest.TestCase):
    """The life of the engine, on daemons of their own that share a store."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dibs-engine-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.gate = self.folder + "/gate"
        self.file = self.folder + "/jobs.yaml"
        self.url = URL or f"sqlite:{self.folder}/store.db"
        self.board = "b" + os.path.basename(self.folder).replace("_", "-")[-8:]
        self.write()

    def write(self, more=""):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(jobs_text(self.gate, self.board) + more)

    def start(self, *args, **more):
        daemon = Daemon("--jobs", self.file, *args, url=self.url, **more)
        self.addCleanup(daemon.end)
        return daemon

    def test_several_daemons_one_tick(self):
        daemons = [self.start(), self.start()]
        wait_until(lambda: daemons[0].get("/v1/nodes").json["total"] == 2, "two nodes")
        run = daemons[0].post("/v1/jobs/slow/run").json["id"]
        wait_until(lambda: daemons[1].get("/v1/runs/" + run).json["state"] == "ACTIVE", "the run")

        def with_step():
            nodes = daemons[0].get("/v1/nodes").json["items"]
            return nodes if any(node["steps"] for node in nodes) else None

        nodes = wait_until(with_step, "the step at its node")
        owner = next(node for node in nodes if node["steps"])["pid"]
        # A daemon that drains waits for its command; the other one goes on.
        first = next(daemon for daemon in daemons if daemon.process.pid == owner)
        other = next(daemon for daemon in daemons if daemon.process.pid != owner)
        first.process.send_signal(signal.SIGTERM)
        first.await_event("draining")
        with open(self.gate, "w", encoding="utf-8"):
            pass
        self.assertEqual(first.process.wait(PATIENCE), 0)
        node = next(node for node in nodes if node["pid"] != owner)["id"]
        wait_until(lambda: [(item["id"], item["state"]) for item in other.get("/v1/nodes").json["items"]] == [(node, "active")], "one node")
        self.assertEqual(other.post("/v1/nodes/none/drain").status, 404)
        self.assertEqual(other.post(f"/v1/nodes/{node}/drain", {"reason": "old"}).status, 202)
        wait_until(lambda: other.get("/v1/nodes").json["engine"] == "ended", "the end of the drain")
        self.assertEqual(other.get("/v1/runs/" + run).json["state"], "OK")
        wait_until(lambda: other.get("/v1/nodes").json["total"] == 0, "a list without nodes")

    def test_drain_is_bounded(self):
        daemon = self.start("--drain-within", "200ms")
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        run = daemon.post("/v1/jobs/slow/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "ACTIVE", "the run")
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(PATIENCE), 0)
        shown = json.loads(daemon.dibs("job", "show", run, "--board", self.board, "--json").stdout)["runs"][0]
        self.assertEqual((shown["state"], shown["reason"]), ("FAILED", "stopped"))

    AGAIN = "  again: {shell: 'test $DIBS_ATTEMPT = 2', retry: {attempts: 2, delay: 1ms}}\n"

    def configure(self, line):
        config = self.folder + "/dibs.yaml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"jobs:\n  {line}\n")
        return config

    def hold(self, name):
        env = {"HOME": self.folder, "XDG_STATE_HOME": self.folder, "PATH": os.environ["PATH"], "DIBS_URL": self.url}
        holder = subprocess.Popen([DIBS, "run", name, "--", "sh", "-c", "echo held; exec sleep 1000"],
                                  stdout=subprocess.PIPE, env=env, text=True)
        self.addCleanup(lambda: (holder.terminate(), holder.wait(PATIENCE), holder.stdout.close()))
        self.assertEqual(holder.stdout.readline(), "held\n")
        return holder

    def test_sweeps_as_configured(self):
        """Their locks have a prefix of their own, so that nobody's hold on the usual ones matters."""
        config = self.configure("sweep_prefix: 'ours:'")
        self.write(self.AGAIN)
        self.hold("workflow:retry-scheduler")
        daemon = self.start("--config", config)
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        run = daemon.post("/v1/jobs/again/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "OK", "the second attempt")

    def test_admin_of_a_sweep(self):
        """The name of the lock is known without the prefix, as it is with it."""
        self.write(self.AGAIN)
        holder = self.hold("unlock:retry-scheduler")
        daemon = self.start("--config", self.configure("sweep_prefix: 'unlock:'"))
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        run = daemon.post("/v1/jobs/again/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["steps"][0]["state"] == "RETRY", "the first attempt")
        for name in ("retry-scheduler", "unlock:retry-scheduler"):
            answer = daemon.get("/admin/locks/" + name, role="read").json
            self.assertEqual((answer["lockKey"], answer["locked"], answer["threadId"]), ("unlock:retry-scheduler", True, holder.pid))
        self.assertEqual(daemon.ask("DELETE", "/admin/locks/retry-scheduler").status, 204)
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "OK", "the second attempt")
        # A lock of that very name comes first.
        holder = self.hold("retry-scheduler")
        answer = daemon.get("/admin/locks/retry-scheduler").json
        self.assertEqual((answer["lockKey"], answer["locked"], answer["threadId"]), ("retry-scheduler", True, holder.pid))

    def test_admin_of_a_sweep_of_another_store(self):
        """Jobs and their sweeps are in the store of the data, and other locks are not."""
        self.write(self.AGAIN)
        holder = self.hold("workflow:retry-scheduler")
        daemon = Daemon("--jobs", self.file, "--data-url", self.url, url=f"sqlite:{self.folder}/locks.db")
        self.addCleanup(daemon.end)
        for name in ("retry-scheduler", "workflow:retry-scheduler"):
            answer = daemon.get("/admin/locks/" + name, role="read").json
            self.assertEqual((answer["lockKey"], answer["locked"], answer["threadId"]), ("workflow:retry-scheduler", True, holder.pid))
        self.assertEqual(daemon.ask("DELETE", "/admin/locks/workflow:retry-scheduler").status, 204)
        self.assertFalse(daemon.get("/admin/locks/retry-scheduler").json["locked"])

    def test_sweeps_rest_as_configured(self):
        """The next look for retries is tomorrow, whatever else the node does."""
        self.write(self.AGAIN)
        daemon = self.start("--config", self.configure("retry_every: 1d"))
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        again = daemon.post("/v1/jobs/again/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + again).json["steps"][0]["state"] == "RETRY", "the first attempt")
        for _ in range(2):
            run = daemon.post("/v1/jobs/hello/run").json["id"]
            wait_until(lambda run=run: daemon.get("/v1/runs/" + run).json["state"] == "OK", "another run")
        self.assertEqual(daemon.get("/v1/runs/" + again).json["steps"][0]["state"], "RETRY")

    def set_clock(self, ahead_s):
        """Of the embedded store, which has that of its processes."""
        clock = self.folder + "/clock"
        with open(clock, "r+b" if os.path.exists(clock) else "wb") as file:
            file.write(struct.pack("=qq", ahead_s * 1000000, 0))

    def start_with_clock(self):
        self.set_clock(0)
        daemon = self.start(env={"LD_PRELOAD": os.environ["DIBS_CLOCK_SHIM"], "CLOCK_SHIM": self.folder + "/clock"})
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        return daemon

    @unittest.skipUnless("DIBS_CLOCK_SHIM" in os.environ and not URL, "the clock of the daemon is not that of the store")
    def test_a_reset_goes_on_after_the_clock_was_set_back(self):
        """An operator who does not want to wait until the clock has caught up."""
        jobs = ("each", "every")
        self.write("  each: {schedule: '* * * * * *', run: ['true']}\n  every: {schedule: '@every 1s', run: ['true']}\n")
        daemon = self.start_with_clock()

        def ticks(job):
            answer = daemon.get("/v1/runs", query={"job": job, "limit": 100})
            items = answer.json["items"] if answer.status == 200 else ()
            return [run["tick_at"] for run in items if run.get("tick_at") and run["state"] == "OK"]

        for job in jobs:
            wait_until(lambda job=job: ticks(job), f"a tick of {job}")
        self.set_clock(-3600)
        wait_until(lambda: "the clock of the store was set back" in daemon.log_text(), "the news of the step")
        firsts = {job: min(wait_until(lambda job=job: ticks(job), "its ticks")) for job in jobs}
        for job in jobs:
            daemon.dibs("job", "reset", job, "--board", self.board)
            wait_until(lambda job=job: any(tick < firsts[job] for tick in ticks(job)), f"a tick of {job} by the clock as it is now")
            found = ticks(job)
            self.assertEqual(len(found), len(set(found)), "no tick twice")

    @unittest.skipUnless("DIBS_CLOCK_SHIM" in os.environ and not URL, "the clock of the daemon is not that of the store")
    def test_a_reset_into_times_that_ran_says_when_the_job_runs_again(self):
        """They are passed over one by one: the job does not stand at the first of them, and none runs twice."""
        self.write("  each: {schedule: '*/5 * * * * *', run: ['true'], concurrency: allow, history: {ok: 1000},\n"
                   "         misfire: {policy: run_all, max: 100}}\n")
        daemon = self.start_with_clock()

        def ticks():
            answer = daemon.get("/v1/runs", query={"job": "each", "limit": 1000})
            items = answer.json["items"] if answer.status == 200 else ()
            return sorted(run["tick_at"].replace(".000Z", "Z") for run in items if run.get("tick_at") and run["state"] == "OK")

        wait_until(ticks, "a tick")
        self.set_clock(480)
        wait_until(lambda: len(ticks()) > 90, "the ticks of eight minutes")
        self.set_clock(0)
        wait_until(lambda: "the clock of the store was set back" in daemon.log_text(), "the news of the step")
        told = json.loads(daemon.dibs("job", "reset", "each", "--board", self.board, "--json").stdout)
        if told["ran_before"] == 0:
            raise NotInTime("the clock had caught up before the reset")
        self.assertGreater(told["next"], max(ticks()))
        found = re.search(r"its time (\S+) has run before", wait_until(lambda: re.search(
            r"each: its time \S+ has run before", daemon.log_text()), "a time that is passed over").group(0)).group(1)
        self.assertIn(found, ticks())
        again = json.loads(daemon.dibs("job", "show", "each", "--board", self.board, "--json").stdout)["job"]["next"]
        self.assertGreater(again, found)
        self.assertEqual(len(ticks()), len(set(ticks())), "no tick twice")

    @unittest.skipUnless("DIBS_CLOCK_SHIM" in os.environ and not URL, "the clock of the daemon is not that of the store")
    def test_a_clock_that_is_set_back_is_announced(self):
        def behind():
            found = re.search(r"^dibs_backend_clock_behind_seconds (\S+)$", daemon.get("/metrics").text, re.M)
            return float(found.group(1))

        daemon = self.start_with_clock()
        self.assertEqual(behind(), 0)
        self.assertNotIn("clock", daemon.get("/readyz?verbose").text)
        self.set_clock(-3600)
        wait_until(lambda: "the clock of the store was set back" in daemon.log_text(), "the news of the step")
        self.assertTrue(0 < behind() < 3700, behind())
        answer = daemon.get("/readyz?verbose")
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.text, r"\[-\]clock of the store was set back: jobs wait \d+ s for it")
        self.set_clock(0)
        wait_until(lambda: "the clock of the store has caught up" in daemon.log_text(), "its end")
        wait_until(lambda: behind() == 0, "no clock behind")

    def test_reload(self):
        daemon = self.start()
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        run = daemon.post("/v1/jobs/slow/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "ACTIVE", "the run")
        self.write("  late: {run: [echo, late]}\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded")
        wait_until(lambda: daemon.get("/v1/jobs/late").status == 200, "the new job")
        late = daemon.post("/v1/jobs/late/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + late).json["state"] == "OK", "a run of the new job")
        # The command of the old files has gone on.
        self.assertEqual(daemon.get("/v1/runs/" + run).json["state"], "ACTIVE")
        with open(self.gate, "w", encoding="utf-8"):
            pass
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "OK", "its end")
        self.write("  late: {runs: [echo, late]}\n")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("did you mean", daemon.await_event("reload_failed")["message"])
        self.assertEqual(daemon.get("/v1/nodes").json["engine"], "running")

    def test_commands_of_the_files_before_end_with_the_daemon(self):
        """They have the time of a drain, their signal, and the time to obey it."""
        marks = [self.folder + name for name in ("/begun", "/asked", "/obeyed")]
        work = f"trap 'touch {marks[1]}; sleep 0.5; touch {marks[2]}; exit 0' TERM; touch {marks[0]}; while :; do sleep 0.02; done"
        self.write(f"  mild: {{kill_after: 1h, shell: \"{work}\"}}\n")
        daemon = self.start("--drain-within", "500ms")
        wait_until(lambda: daemon.get("/v1/nodes").json["total"] == 1, "the node")
        run = daemon.post("/v1/jobs/mild/run").json["id"]
        wait_until(lambda: os.path.exists(marks[0]), "the command")
        self.write("  late: {run: [echo, late]}\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded")
        wait_until(lambda: daemon.get("/v1/jobs/late").status == 200, "the new job")
        self.assertEqual((daemon.get("/v1/runs/" + run).json["state"], os.path.exists(marks[1])), ("ACTIVE", False))
        daemon.end()
        self.assertEqual([os.path.exists(mark) for mark in marks], [True] * 3)

    def test_a_reload_that_is_refused_leaves_the_jobs_at_work(self):
        def write(version, more=""):
            with open(self.file, "w", encoding="utf-8") as file:
                file.write(f"version: {version}\n" + jobs_text(self.gate, self.board) + more)

        def reloaded_well():
            return "dibs_config_last_reload_successful 1" in daemon.get("/metrics").text

        write(1)
        daemon = self.start()
        wait_until(lambda: daemon.get("/v1/nodes").json["engine"] == "running", "the engine")
        write(1, "  late: {run: [echo, late]}\n")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("goes on with the jobs that it has", daemon.await_event("jobs_failed")["message"])
        wait_until(lambda: not reloaded_well(), "the failure in the metrics")
        self.assertEqual(daemon.get("/v1/nodes").json["engine"], "running")
        run = daemon.post("/v1/jobs/hello/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "OK", "a run of the jobs before")
        write(2, "  late: {run: [echo, late]}\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: daemon.get("/v1/jobs/late").status == 200 and reloaded_well(), "the new job")
        run = daemon.post("/v1/jobs/late/run").json["id"]
        wait_until(lambda: daemon.get("/v1/runs/" + run).json["state"] == "OK", "a run of the new job")

    def test_settings(self):
        daemon = self.start("--engine", "off")
        answer = daemon.get("/v1/nodes").json
        self.assertEqual((answer["engine"], answer["items"], answer["board"]), ("off", [], self.board))
        # It is listed all the same, until it ends.
        other = Daemon("--engine", "on", "--board", "other", url=self.url)
        self.addCleanup(other.end)
        pids = {daemon.process.pid: state for daemon, state in ((daemon, ("off", self.board)), (other, ("on", "other")))}

        def listed():
            return {item["pid"]: (item["meta"]["engine"], item["meta"]["board"]) for item in daemon.get("/v1/nodes").json["daemons"]
                    if item["pid"] in pids}

        wait_until(lambda: listed() == pids, "both daemons in the list")
        other.end()
        wait_until(lambda: list(listed()) == [daemon.process.pid], "a list without the other")

        def check(*args):
            result = subprocess.run([DIBS, "serve", "--check", "--tokens", daemon.file, *args], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=daemon.env, check=False, timeout=PATIENCE)
            return result.returncode, result.stderr

        self.assertEqual(check("--jobs", self.file), (0, ""))
        with open(self.folder + "/bad.yaml", "w", encoding="utf-8") as file:
            file.write("jobs:\n  a: {run: [x], shedule: '* * * * *'}\n")
        for args, why in [(["--jobs", f"{self.file},{self.folder}/bad.yaml"], "bad.yaml:2:"),
                          (["--jobs", self.folder + "/none.yaml"], "none.yaml"),
                          (["--jobs", self.file, "--board", "other"], "is for the board"),
                          (["--labels", "a b"], "is no label")]:
            with self.subTest(args):
                code, text = check(*args)
                self.assertEqual((code, why in text), (78, True), text)


if __name__ == "__main__":
    main()
