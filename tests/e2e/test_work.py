"""work and job logs: nodes that tick and execute."""
# SPDX-License-Identifier: MIT
import contextlib
import json
import os
import re
import select
import shutil
import signal
import sqlite3
import time

from nodes import FILE, Work
from runtools import PACE, NotInTime, alive, below, signal_all
from support import PATIENCE, ROOT, main, span, wait_until


class Failing(Work):
    def failing(self):
        return [job["name"] for job in self.json("job", "ls", "--failing", "--json")["jobs"]]

    def test_jobs_that_fail_are_listed_until_they_do_not(self):
        file = self.write("some.yaml", """
jobs:
  some: {shell: 'echo $DIBS_RUN_TOKEN >>tokens; test -e mended', retry: {attempts: 2, delay: 0}}
  never: {run: ['true']}
""")
        node = self.node(file=file)
        self.assertEqual(self.failing(), [])
        self.fails(1, "job", "start", "some", "--wait")
        self.assertEqual(self.failing(), ["some"])
        tokens = [int(line) for line in self.lines("tokens")]
        self.assertEqual((len(tokens), tokens), (2, sorted(set(tokens))))
        self.write("mended", "")
        self.ok("job", "start", "some", "--wait")
        self.assertEqual(self.failing(), [])
        self.stop(node)


class Living(Work):
    def running(self):
        return [job["name"] for job in self.json("job", "ls", "--running", "--json")["jobs"]]

    def test_jobs_of_which_any_number_of_runs_may_live(self):
        file = self.write("any.yaml", """
jobs:
  any: {concurrency: allow, shell: 'echo >>begun; while ! test -e go; do sleep 0.02; done'}
  idle: {run: ['true']}
""")
        node = self.node(file=file)
        self.assertEqual(self.running(), [])
        run = self.begin("any")
        wait_until(lambda: self.text("begun"), "the command")
        self.ok("job", "start", "any", "--id", "quick")
        self.assertEqual(self.running(), ["any"])
        self.assertIn("status  running\n", self.ok("job", "show", "any"))
        self.write("go", "")
        self.ok("job", "wait", run)
        self.ok("job", "wait", "any.quick")
        self.assertEqual(self.running(), [])
        self.assertEqual(self.json("job", "show", "any", "--json")["job"]["status"], "on demand")
        self.stop(node)


class Queued(Work):
    """concurrency: queue. Commands go on until there is a file of the name that they ask for."""

    TURN = "shell: 'echo begin $DIBS_RUN >>turns; while ! test -e go; do sleep 0.02; done; echo end $DIBS_RUN >>turns'"

    def job(self):
        return self.json("job", "show", "turn", "--json")["job"]

    def test_one_run_waits_for_the_end_of_another(self):
        file = self.write("turn.yaml", "jobs: {turn: {concurrency: queue, %s}}\n" % self.TURN)
        node = self.node(file=file)
        first = self.begin("turn")
        wait_until(lambda: self.lines("turns"), "the first run")
        second = self.begin("turn")
        self.assertIn(second, self.fails(75, "job", "start", "turn"))
        self.assertEqual((self.job()["live"], self.job()["waits"]), (first, second))
        self.assertIn(f"waits   {second}\n", self.ok("job", "show", "turn"))
        self.assertEqual(self.run_of(second)["state"], "QUEUED")
        self.write("go", "")
        self.ok("job", "wait", second)
        self.assertEqual(self.lines("turns"), [f"begin {first}", f"end {first}", f"begin {second}", f"end {second}"])
        self.assertEqual((self.job()["live"], self.job()["waits"]), (None, None))
        self.stop(node)

    def test_ticks_that_find_no_place_are_counted(self):
        file = self.write("turn.yaml", "jobs: {turn: {schedule: '* * * * * *', concurrency: queue, %s}}\n" % self.TURN)
        node = self.node(file=file)
        wait_until(lambda: self.job()["skipped"] >= 2, "ticks that are skipped")
        wait_until(lambda: self.lines("turns"), "the first run")
        self.ok("job", "pause", "turn")
        runs = self.json("job", "runs", "turn", "--json")["runs"]
        self.assertEqual([run["state"] for run in runs], ["ACTIVE", "QUEUED"])
        self.write("go", "")
        self.ok("job", "wait", runs[1]["id"])
        self.assertEqual([line.split()[1] for line in self.lines("turns")], [run["id"] for run in runs for _ in range(2)])
        self.stop(node)

    def test_a_run_whose_time_is_over_leaves_its_place(self):
        file = self.write("turn.yaml", "jobs: {turn: {concurrency: queue, %s}}\n" % self.TURN)
        node = self.node(file=file)
        first = self.begin("turn")
        wait_until(lambda: self.lines("turns"), "the first run")
        self.ok("job", "load", self.write("turn.yaml", "jobs: {turn: {concurrency: queue, start_deadline: 300ms, run: [x]}}\n"))
        second = self.begin("turn")
        self.fails(75, "job", "wait", second)
        self.assertEqual(self.run_of(second)["state"], "MISSED")
        self.assertIsNone(self.job()["waits"])
        self.write("go", "")
        self.ok("job", "wait", first)
        self.stop(node)


class Shown(Work):
    def test_what_a_run_did_and_waits_for(self):
        file = self.write("shown.yaml", """
defaults: {zone: Europe/Berlin}
jobs:
  shown:
    steps:
      good: {run: ['true']}
      bad: {shell: 'exit 3', on_failure: continue}
      tries: {shell: 'exit 4', retry: {attempts: 2, delay: 1h, jitter: 0%}}
      asks: {wait: {bookmark: approval}, needs: [good, bad]}
""")
        node = self.node(file=file)
        run = self.begin("shown")
        self.waits(run, "asks")
        steps = wait_until(lambda: (steps := self.run_of(run)["steps"])[2]["state"] == "RETRY" and steps, "the first try")
        nodes = [step["node"] for step in steps]
        self.assertEqual((nodes[0], nodes[2:]), (nodes[1], [None, None]))
        self.assertRegex(nodes[0], "^[0-9a-f]{16}$")
        self.assertEqual(self.run_of(run)["zone"], "Europe/Berlin")
        self.assertEqual(self.json("job", "runs", "shown", "--json")["runs"][0]["zone"], "Europe/Berlin")
        lines = [line[8:] for line in self.ok("job", "show", run).splitlines() if line.startswith("step ")]
        self.assertEqual(lines[:2], [f"good OK, attempt 1, node {nodes[0]}, exit 0",
                                     f"bad FAILED, failed, attempt 1, node {nodes[0]}, exit 3"])
        self.assertRegex(lines[2], "^tries RETRY, failed, attempt 1, exit 4, again at 20..-..-..T..:..:..Z$")
        self.assertEqual(lines[3], "asks WAITING, attempt 0, waits for bookmark approval")
        self.stop(node)
        self.ok("job", "cancel", run)
        self.assertEqual(json.loads(self.dibs("job", "wait", run, "--json").stdout)["runs"][0]["zone"], "Europe/Berlin")


class Results(Work):
    def test_bytes_that_are_no_text(self):
        file = self.write("bytes.yaml", """
jobs:
  bytes:
    steps:
      make: {shell: 'printf "\\377\\303(" >"$DIBS_RESULT"'}
      read: {shell: 'cat "$DIBS_NEEDS" >needs; printf %s "$DIBS_NEEDS_MAKE" | od -An -tx1 >bytes', needs: [make]}
""")
        node = self.node(file=file)
        run = self.begin("bytes", "--wait")
        self.stop(node)
        step = self.run_of(run)["steps"][0]
        self.assertEqual((step["result_base64"], "result" in step), ("/8Mo", False))
        self.assertEqual(json.loads(self.text("needs")), {"make_base64": "/8Mo"})
        self.assertEqual(self.text("bytes").split(), ["ff", "c3", "28"])
        self.assertIsNone(self.run_of(run)["steps"][1]["result"])


class Long(Work):
    """Records of runs have 256 KiB."""

    MAX = 256 * 1024

    def setUp(self):
        super().setUp()
        self.file = self.write("long.yaml", """
jobs:
  long:
    shell: 'echo >>begun; while ! test -e go; do sleep 0.02; done'
    params: {%s}
  good: {run: ['true']}
""" % ", ".join(f"p{i}: " for i in range(64)))

    def record(self, run):
        return self.ok("state", "get", "job/{main}/run/" + run)

    def pad(self, run, size):
        """Params that leave `size` bytes of the record."""
        record = json.loads(self.record(run))
        record["params"] = params = {f"p{i}": "" for i in range(64)}
        left = self.MAX - size - len(json.dumps(record, separators=(",", ":")))
        for name in params:
            params[name] = "x" * min(left, 4096)
            left -= len(params[name])
        with open(self.write("record", json.dumps(record, separators=(",", ":"))), encoding="utf-8") as file:
            self.ok("state", "set", "job/{main}/run/" + run, "-", stdin=file)

    def test_params_without_room_are_refused(self):
        self.ok("job", "load", self.file)
        params = [word for i in range(63) for word in ("-p", f"p{i}={'x' * 4096}")]
        self.assertIn("are too long", self.fails(64, "job", "start", "long", *params))
        self.assertEqual(self.json("job", "runs", "long", "--json")["runs"], [])
        self.ok("job", "start", "long", *params[:-6])

    def test_a_claim_without_room_has_no_slot(self):
        self.ok("job", "load", self.file)
        self.pad(self.begin("long"), 10)
        node = self.node("--slots", "1")
        self.ok("job", "start", "good", "--wait")
        self.assertEqual(self.text("begun"), "")
        self.assertIn("would be longer than 256 KiB", self.text("log"))
        self.stop(node)

    def test_an_end_without_room_leaves_its_slot(self):
        self.ok("job", "load", self.file)
        run = self.begin("long")
        before = len(self.record(run))
        node = self.node("--slots", "1")
        wait_until(lambda: self.text("begun"), "the command")
        began = len(self.record(run)) - before
        self.write("go", "")
        self.ok("job", "wait", run)
        self.assertGreater(len(self.record(run)) - before, began + 20)
        self.stop(node)
        run = self.begin("long")
        self.pad(run, began + 10)
        node = self.node("--slots", "1")
        wait_until(lambda: len(self.text("begun")) == 2, "the command")
        self.ok("job", "start", "good", "--wait")
        self.assertIn(run + "/main is left: its record is too long", self.text("log"))
        self.stop(node)


class Definitions(Work):
    def kept(self):
        return sorted(item["key"].split("/")[-1] for item in
                      self.json("state", "ls", "job/{main}/def/one/", "--json")["values"])

    def test_definitions_that_no_run_has_go(self):
        hashes = []
        for version in range(1, 5):
            file = self.write("one.yaml", f"version: {version}\njobs: {{one: {{run: [echo, '{version}']}}}}\n")
            self.ok("job", "load", file)
            hashes.append(self.json("job", "show", "one", "--json")["job"]["hash"])
            if version == 2:
                self.begin("one")
        self.assertEqual(self.kept(), sorted(hashes))
        node = self.node("--cleanup-every", "0", file=file)
        wait_until(lambda: len(self.kept()) == 2, "definitions to go")
        # The run of the second has not ended: no node has its definition in a file.
        self.assertEqual(self.kept(), sorted([hashes[1], hashes[3]]))
        self.stop(node)


class Following(Work):
    def test_output_comes_soon_while_somebody_follows(self):
        file = self.write("talk.yaml", "jobs: {talk: {kill_after: 100ms, shell: 'while :; do echo line; sleep 0.05; done'}}\n")
        node = self.node(file=file)
        run = self.begin("talk")
        wait_until(lambda: self.run_of(run)["steps"][0]["state"] == "RUNNING", "the start")
        follower = self.start("job", "logs", run, "-f")
        versions = set()

        def written():
            got = self.dibs("state", "get", f"job/{{main}}/out/{run}/main/1", "--json")
            if got.returncode == 0:
                versions.add(json.loads(got.stdout)["version"])
            return len(versions)

        # By itself the node writes after 1, 3, 7, 15, 31, 61 s ...
        wait_until(lambda: written() >= 9, "output that is written often")
        self.ok("job", "cancel", run)
        self.assertEqual(set(follower.communicate(timeout=PATIENCE)[0].split()), {"line"})
        self.stop(node)

    def test_output_that_was_not_written_is_written_again(self):
        file = self.write("say.yaml", "jobs: {say: {kill_after: 100ms, shell: 'for i in 1 2 3 4; do "
                          "while ! test -e say$i; do sleep 0.02; done; echo line$i; done; exec sleep 1000'}}\n")
        node = self.node("--url", "fault+" + self.env["DIBS_URL"] + "?fault=fail&step=put&every=2", file=file)
        run = self.begin("say")
        wait_until(lambda: self.run_of(run)["steps"][0]["state"] == "RUNNING", "the start")
        follower = self.start("job", "logs", run, "-f")
        for i in "1234":  # Every second write fails, and the output does not change after it.
            self.write("say" + i, "")
            wait_until(lambda i=i: "line" + i in self.dibs("job", "logs", run).stdout, "line " + i)
        self.ok("job", "cancel", run)
        self.assertEqual(follower.communicate(timeout=PATIENCE)[0].split(), ["line1", "line2", "line3", "line4"])
        self.stop(node)


class Ticks(Work):
    def test_a_tick_runs_once(self):
        every = self.write("every.yaml", "jobs: {tick: {schedule: '* * * * * *', shell: 'echo $DIBS_TICK $DIBS_RUN_TOKEN >>ticks'}}\n")
        nodes = [self.node(file=every), self.node(file=every)]
        wait_until(lambda: len(self.lines("ticks")) >= 2, "two ticks")
        self.stop(*nodes)
        ticks, tokens = zip(*(line.split() for line in self.lines("ticks")))
        tokens = [int(token) for token in tokens]
        self.assertEqual((min(tokens) > 0, tokens), (True, sorted(set(tokens))))
        self.assertEqual(len(set(ticks)), len(ticks), ticks)
        runs = self.json("job", "runs", "tick", "--json")["runs"]
        self.assertEqual([run["tick"] for run in runs if run["state"] == "OK"], list(ticks))

    def test_a_rerun_has_the_tick_of_its_run(self):
        every = self.write("every.yaml", "jobs: {tick: {schedule: '* * * * * *', concurrency: allow,"
                           " run: [sh, -c, 'echo $DIBS_TICK $1 >>ticks', '', '${tick}']}}\n")
        node = self.node(file=every)
        wait_until(lambda: self.lines("ticks"), "a tick")
        self.ok("job", "pause", "tick")
        self.stop(node)
        run = next(run for run in self.json("job", "runs", "tick", "--json")["runs"] if run["state"] == "OK")
        self.assertIn(f"{run['tick']} {run['tick']}", self.lines("ticks"))
        self.assertIn(f"\ntick    {run['tick']}\nzone    UTC\n", self.ok("job", "show", run["id"]))
        node = self.node(file=every)
        self.ok("job", "rerun", run["id"])
        wait_until(lambda: self.lines("ticks").count(f"{run['tick']} {run['tick']}") == 2, "the same tick again")
        self.stop(node)

    def test_a_state_that_cannot_be_read_is_in_nobodys_way(self):
        many = self.write("many.yaml", "jobs:\n" + "".join(
            f"  j{i}: {{schedule: '* * * * * *', shell: 'echo j{i} >>ticked'}}\n" for i in range(3)))
        node = self.node("-j", "8", "--drain-within", "1s", file=many)
        wait_until(lambda: len(set(self.lines("ticked"))) == 3, "a tick of each job")
        self.ok("state", "set", "job/{main}/state/j1", "{")
        wait_until(lambda: " j1: " in self.text("log"), "a look at the state")
        self.write("ticked", "")
        wait_until(lambda: set(self.lines("ticked")) >= {"j0", "j2"}, "ticks of the others")
        self.stop(node)

    def test_a_state_that_cannot_be_read_keeps_no_node_from_stopping(self):
        """The end of a run needs the state of its job. Another node ends the run when the state is mended."""
        file = self.write("one.yaml", "jobs: {one: {concurrency: forbid, shell: 'echo $$ >pid; "
                          "while ! test -e go; do sleep 0.02; done'}}\n")
        key = "job/{main}/state/one"
        for break_it in (["set", key, "{"], ["del", key]):
            node = self.node("--drain-within", "10ms", file=file)
            run = self.begin("one")
            self.pid()
            state = self.ok("state", "get", key)
            self.ok("state", *break_it)
            self.write("go", "")
            wait_until(lambda run=run: run in self.text("log").partition(f"{run}/main attempt 1: started")[2],
                       "a look at the state")
            self.stop(node)
            self.assertIn(f"{run}/main is left: this node stops", self.text("log"))
            self.ok("state", "set", key, state)
            node = self.node(file=file)
            wait_until(lambda run=run: self.run_of(run)["ended_us"], "the end of the run")
            self.stop(node)
            for name in ("pid", "go"):
                os.unlink(self.path(name))

    def test_a_dead_node_leaves_its_turn(self):
        """It is in the list of nodes for a while, and the first by rank of some of the jobs."""
        many = self.write("many.yaml", "jobs:\n" + "".join(
            f"  j{i}: {{schedule: '* * * * * *', shell: 'echo j{i} >>ticked'}}\n" for i in range(6)))
        first = self.node(file=many, ttl=span(2))
        wait_until(lambda: self.lines("ticked"), "a tick")
        second = self.node("-j", "16", file=many, ttl=span(2))
        first.kill()
        first.wait()
        self.write("ticked", "")
        wait_until(lambda: len(set(self.lines("ticked"))) == 6, "a tick of each job")
        self.stop(second)

    def reads(self, node):
        with open(f"/proc/{node.pid}/io", encoding="ascii") as io:
            return int(re.search(r"syscr: (\d+)", io.read()).group(1))

    def test_a_store_that_refuses_the_version_of_zone_data_is_asked_in_time(self):
        """It answers reads, and the node tries again once a second, not without a pause."""
        self.env["DIBS_URL"] = "sqlite:" + self.path("refusing.db")
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")
        file = self.write("idle.yaml", "jobs: {idle: {schedule: '0 0 29 2 *', zone: Europe/Berlin, run: [x]}}\n")
        self.ok("job", "load", file)
        with contextlib.closing(sqlite3.connect(self.path("refusing.db"), timeout=PATIENCE)) as store:
            store.execute("CREATE TRIGGER refuse BEFORE INSERT ON value WHEN NEW.key LIKE '%tzdata' "
                          "BEGIN SELECT RAISE(ABORT, 'refused'); END")
        node = self.node(file=file)
        wait_until(lambda: "new zone data: " in self.text("log"), "the refusal")
        before, begun = self.reads(node), time.monotonic()
        select.select([], [], [], 2)
        self.assertLess((self.reads(node) - before) / (time.monotonic() - begun), 200)
        self.stop(node)

    def test_an_idle_node_does_not_poll(self):
        """For longer than the second between two looks of a node that polls, it does not even read."""
        idle = self.write("idle.yaml", "jobs:\n" + "".join(
            f"  j{i}: {{schedule: '0 0 29 2 *', run: [x]}}\n" for i in range(50)))
        node = self.node(file=idle)

        def is_quiet():
            before = self.reads(node)
            return select.select([], [], [], 1.3) and self.reads(node) == before

        wait_until(is_quiet, "a time without a look")
        self.stop(node)

    def test_jobs_that_cannot_be_ticked_are_in_nobodys_way(self):
        """More of them than a node tries in one look are due, and stay so: this node has no zones."""
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")
        stuck = "jobs:\n" + "".join(
            f"  s{i}: {{schedule: '* * * * * *', zone: Europe/Berlin, run: ['true']}}\n" for i in range(400))
        self.ok("job", "load", self.write("stuck.yaml", stuck))
        self.env["TZDIR"] = self.path("nowhere")
        node = self.node(file=self.write("good.yaml", "jobs: {good: {schedule: '* * * * * *', run: ['true']}}\n"))
        wait_until(lambda: len([run for run in self.json("job", "runs", "good", "--json")["runs"]
                                if run["state"] == "OK"]) >= 2, "two ticks")
        self.assertEqual(self.json("job", "runs", "s1", "--json")["runs"], [])
        self.stop(node)

    def test_new_zone_data_moves_the_next_tick(self):
        def zones(version, like):
            folder = os.path.dirname(self.write(f"zones-{version}/tzdata.zi", f"# version {version}\n"))
            os.mkdir(os.path.join(folder, "Test"))
            shutil.copy(os.path.join(ROOT, "tests/jobs/zoneinfo", like), os.path.join(folder, "Test/Zone"))
            return folder

        def next_time():
            return self.json("job", "show", "yearly", "--json")["job"]["next"]

        file = self.write("zones.yaml", """
jobs:
  yearly: {schedule: '0 3 1 1 *', zone: Test/Zone, run: ['true']}
  now: {run: ['true']}
""")
        older, newer = zones("2020a", "Europe/Berlin"), zones("2099b", "America/New_York")
        self.env["TZDIR"] = older
        self.ok("job", "load", file)
        before = next_time()
        self.assertEqual(before[11:], "02:00:00Z")
        self.env["TZDIR"] = newer
        node = self.node(file=file)
        wait_until(lambda: next_time() != before, "the next time by newer data")
        after = next_time()
        self.assertEqual(after[11:], "08:00:00Z")
        self.stop(node)
        # Older data changes nothing.
        self.env["TZDIR"] = older
        node = self.node(file=file)
        self.ok("job", "start", "now", "--wait")
        self.assertEqual(next_time(), after)
        self.stop(node)

    def test_nodes_may_start_together(self):
        many = self.write("many.yaml", "jobs:\n" + "".join(f"  j{i}: {{run: [x]}}\n" for i in range(30)))
        nodes = [self.start("work", many, "--once") for _ in range(4)]
        for node in nodes:
            self.assertEqual((node.wait(PATIENCE), node.poll() and node.stderr.read()), (0, 0))

    def test_a_dead_node_is_taken_over(self):
        file = self.write("lost.yaml", """
jobs:
  here: {run: ['true'], runs_on: other}
  lost:
    retry: {attempts: 9, on: [lost], delay: 0}
    shell: |
      exec 9>>guard; flock -n 9 || echo two >>twice
      echo $DIBS_NODE $DIBS_ATTEMPT >>begun
      while ! test -e go; do sleep 0.02; done
""")
        first = self.node(file=file, ttl=span(3))
        run = self.begin("lost")
        wait_until(lambda: self.lines("begun"), "the first attempt")
        second = self.node("--label", "other", file=file)
        # It has looked, and has left the run of a living node alone.
        self.ok("job", "start", "here", "--wait")
        tree = below(first.pid)
        before = len(self.lines("begun"))
        first.kill()
        wait_until(lambda: len(self.lines("begun")) > before, "an attempt of the other node")
        self.assertFalse([pid for pid in tree if alive(pid)])
        self.write("go", "")
        self.ok("job", "wait", run)
        self.assertEqual(self.text("twice"), "")
        begun = [line.split() for line in self.lines("begun")]
        self.assertNotEqual(begun[-1][0], begun[0][0])
        self.assertEqual([int(attempt) for _, attempt in begun], list(range(1, len(begun) + 1)))
        self.stop(second)


    def test_forbid_goes_on_when_its_node_is_dead(self):
        """The run that lived is lost with its node. Ticks begin again when its tree is dead, and not before."""
        file = self.write("alone.yaml", """
defaults: {kill_after: 100ms}
jobs:
  alone:
    schedule: '* * * * * *'
    concurrency: forbid
    shell: |
      exec 9>>guard; flock -n 9 || echo two >>twice
      echo $DIBS_NODE >>begun
      while ! test -e go; do sleep 0.02; done
""")
        first = self.node(file=file, ttl=span(3))
        wait_until(lambda: self.lines("begun"), "the first run")
        second = self.node(file=file, ttl=span(3))
        first.kill()
        wait_until(lambda: len(set(self.lines("begun"))) > 1, "a run of the other node")
        self.assertEqual(self.text("twice"), "")
        self.write("go", "")
        self.stop(second)

    def test_a_node_that_stands_still_for_less_than_its_lease_is_not_dead(self):
        file = self.write("still.yaml", """
jobs:
  here: {run: ['true'], runs_on: other}
  still: {shell: 'echo $DIBS_NODE $DIBS_ATTEMPT >>begun; while ! test -e go; do sleep 0.02; done', retry: {attempts: 9, on: [lost], delay: 0}}
""")
        ttl_s = 20 * PACE
        first = self.node(file=file, ttl=f"{ttl_s:.0f}s")
        run = self.begin("still")
        wait_until(lambda: self.lines("begun"), "the first attempt")
        second = self.node("--label", "other", file=file)
        tree = [first.pid, *below(first.pid)]
        stopped_at = time.monotonic()
        signal_all(tree, signal.SIGSTOP)
        # The other node looks meanwhile, and runs what is for it.
        self.ok("job", "start", "here", "--wait")
        signal_all(tree, signal.SIGCONT)
        if time.monotonic() - stopped_at > ttl_s / 4:
            raise NotInTime("the node stood still for too long")
        self.write("go", "")
        self.ok("job", "wait", run)
        self.assertEqual(len(self.lines("begun")), 1, self.text("begun"))
        self.stop(first, second)

    def test_replace_waits_for_a_stubborn_tree(self):
        """A command that takes no notice of TERM is dead before the run that replaces it begins."""
        file = self.write("stubborn.yaml", """
jobs:
  stubborn:
    concurrency: replace
    kill_after: 300ms
    shell: |
      trap "" TERM
      exec 9>>guard; flock -n 9 || echo two >>twice
      echo $DIBS_RUN >>begun
      while ! test -e go; do sleep 0.02; done
""")
        node = self.node(file=file)
        runs = []
        for number in range(3):
            runs.append(self.begin("stubborn"))
            wait_until(lambda number=number: len(self.lines("begun")) > number, "the next run")
        self.write("go", "")
        self.ok("job", "wait", runs[-1])
        self.assertEqual(self.text("twice"), "")
        self.assertEqual(self.lines("begun"), runs)
        self.assertEqual([self.run_of(run)["state"] for run in runs[:-1]], ["CANCELLED"] * 2)
        self.stop(node)


class Sweeps(Work):
    def test_the_lock_of_a_sweep_ends_with_the_lease_of_its_node(self):
        """Else nobody would look after the runs of a node that died while it swept."""
        file = self.write("again.yaml", """
jobs: {again: {run: ['false'], retry: {attempts: 1000, delay: 0, on: [failed]}}}
""")
        node = self.node("-j", "8", file=file, ttl="4s")
        for _ in range(8):
            self.begin("again")

        def held():
            shown = self.dibs("show", "workflow:retry-scheduler", "--json")
            return shown.returncode == 0 and json.loads(shown.stdout)["holders"]

        holders = wait_until(held, "a sweep")
        self.assertLessEqual(holders[0]["ttl_ms"], 4000)
        self.stop(node)


class Children(Work):
    """Runs of job steps that end, or go, while no node looks after the run that waits for them."""

    FILE = """version: VERSION
defaults: {concurrency: allow}
jobs:
  kid: {description: VERSION, history: {ok: 1}, steps: {ask: {wait: {bookmark: ok}}}}
  parent: {steps: {one: {job: kid}, two: {job: kid}, three: {job: kid}}}
"""

    def load(self, version):
        file = self.write("kids.yaml", self.FILE.replace("VERSION", str(version)))
        self.ok("job", "load", file)
        return file

    def kids(self):
        return [run["id"] for run in self.json("job", "runs", "kid", "--json")["runs"]]

    def begin_parent(self, file):
        """With three runs that wait, which it has seen. No node is there afterwards."""
        node = self.node(file=file)
        run = self.begin("parent")
        wait_until(lambda: len(self.kids()) == 3, "the runs of its steps")
        self.stop(node)
        return run

    def test_a_child_stays_until_its_parent_has_seen_its_end(self):
        run = self.begin_parent(self.load(1))
        kids = self.kids()
        for kid in kids:
            self.ok("job", "resume", kid, "ok")
        self.load(2)
        file = self.load(3)  # The history is due at once, and the definition before goes with it.
        token = self.acquire("workflow:resume-scheduler", "--ttl", "1h")
        node = self.node("--cleanup-every", "0", file=file)
        wait_until(lambda: len(self.ok("state", "ls", "--names", "job/{main}/def/kid/").split()) == 2, "a look at the history")
        self.assertEqual(self.kids(), kids)
        self.ok("release", "workflow:resume-scheduler", "--token", token)
        self.ok("job", "wait", run)
        self.assertEqual(self.kids(), kids)
        self.stop(node)

    def test_a_child_that_is_gone_is_not_begun_again(self):
        file = self.load(1)
        run = self.begin_parent(file)
        lost = self.kids()[0]
        self.ok("state", "del", f"job/{{main}}/run/{lost}")
        node = self.node(file=file)
        for kid in self.kids():
            self.dibs("job", "resume", kid, "ok")

        def is_there():
            return self.dibs("job", "show", lost).returncode == 0

        wait_until(lambda: self.run_of(run)["ended_us"] or is_there(), "the end of the parent")
        self.assertFalse(is_there())
        self.assertEqual(self.run_of(run)["state"], "FAILED")
        self.assertIn(f"there is no run {lost}", self.text("log"))
        self.stop(node)


class Batches(Work):
    FILE = """
defaults: {kill_after: 100ms}
jobs:
  part: {shell: 'until test -e $DIBS_PARAM_N; do sleep 0.02; done; exit $DIBS_PARAM_N', params: {n: {}}}
  sum:
    params: {batch: {default: b1}}
    steps:
      parts: {wait: {batch: '${param.batch}', of: 3}}
      add: {shell: 'echo $DIBS_RUN >>added', needs: [parts]}
  open: {steps: {parts: {wait: {batch: b1}}, add: {shell: 'echo open >>added', needs: [parts]}}}
"""

    def part(self, i, *args):
        return self.begin("part", "-p", f"n={i}", "--batch", "b1", *args)

    def test_runs_go_on_when_all_members_have_ended(self):
        node = self.node("-j", "8", file=self.write("batch.yaml", self.FILE))
        runs = [self.begin("sum"), self.begin("open")]
        for run in runs:
            self.waits(run, "parts")
        parts = [self.part(i) for i in range(2)]
        for i, part in enumerate(parts):
            self.write(str(i), "")
            self.fails(1, "job", "wait", part) if i else self.ok("job", "wait", part)
        # Two of three have ended, one of them badly, and a node has looked since.
        later = self.begin("sum", "-p", "batch=b2")
        self.ok("job", "start", "part", "-p", "n=0", "--wait")
        self.assertEqual([self.run_of(run)["state"] for run in runs], ["ACTIVE"] * 2)
        self.assertEqual(self.text("added"), "")
        self.part(2)
        self.write("2", "")
        for run in runs:
            self.ok("job", "wait", run)
        self.assertEqual(sorted(self.lines("added")), sorted(["open", runs[0]]))
        # A run that comes later finds the batch complete.
        self.ok("job", "start", "sum", "--wait")
        self.assertEqual(self.run_of(later)["state"], "ACTIVE")
        self.stop(node)

    def test_a_batch_is_awaited(self):
        node = self.node("-j", "8", file=self.write("batch.yaml", self.FILE))
        wait = ("job", "wait", "--batch", "b1")
        self.assertIn("no batch b1", self.fails(1, *wait))
        self.write("0", "")
        first = self.part(0)
        self.assertEqual(self.json("job", "wait", first, "--json")["runs"][0]["state"], "OK")
        self.assertIn("no start has said", self.fails(75, *wait, "-w", "0"))
        self.assertEqual(self.json(*wait, "--of", "2", "-w", "0", "--json", code=75),
                         {"schema": 1, "batch": "b1", "of": 2, "ended": 1, "failed": 0})
        waiter = self.start(*wait, "--json")
        self.part(1, "--of", "2")
        self.write("1", "")
        out, err = waiter.communicate(timeout=PATIENCE)
        self.assertEqual((waiter.returncode, json.loads(out)),
                         (1, {"schema": 1, "batch": "b1", "of": 2, "ended": 2, "failed": 1}))
        self.assertIn("1 of the 2 members", err)
        self.assertIn("not 3", self.fails(64, *wait, "--of", "3"))
        for words in ([], ["x", "--batch", "b1"], ["x", "--of", "2"]):
            self.assertIn("--batch", self.fails(64, "job", "wait", *words))
        self.begin("part", "-p", "n=0", "--batch", "b2", "--of", "1")
        self.ok("job", "wait", "--batch", "b2", "-w", "1h")
        self.stop(node)

    def test_a_name_may_be_used_again_after_a_week(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("week.db")
        node = self.node("-j", "8", file=self.write("batch.yaml", self.FILE))
        for i in range(3):
            self.write(str(i), "")
            self.part(i, "--of", "3")
        self.ok("job", "start", "sum", "--wait")
        # The record has expired; what has ended is still in the index.
        with contextlib.closing(sqlite3.connect(self.path("week.db"), timeout=PATIENCE)) as store, store:
            self.assertEqual(store.execute("DELETE FROM value WHERE key LIKE '%/batch/b1'").rowcount, 1)
            self.assertEqual(store.execute("UPDATE entry SET at = at - 8 * 86400000000 WHERE name LIKE '%/batch/b1'")
                             .rowcount, 3)
        self.write("added", "")
        again = self.begin("sum")
        for i in range(2):
            self.dibs("job", "wait", self.part(i))
        self.ok("job", "start", "part", "-p", "n=0", "--wait")
        self.assertEqual((self.run_of(again)["state"], self.text("added")), ("ACTIVE", ""))
        self.part(2)
        self.ok("job", "wait", again)
        self.assertEqual(self.lines("added"), [again])
        self.stop(node)

    def test_a_batch_that_lacks_members_is_not_swept_for_ever(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("swept.db")
        node = self.node(file=self.write("batch.yaml", self.FILE))
        self.write("0", "")
        self.ok("job", "wait", self.part(0, "--of", "2"))
        with contextlib.closing(sqlite3.connect(self.path("swept.db"), isolation_level=None, timeout=PATIENCE)) as store:
            wait_until(lambda: store.execute("SELECT count(*) FROM entry WHERE name LIKE '%/resume'").fetchone()[0] == 0,
                       "the end of its sweeps")
        self.stop(node)

    def test_a_batch_that_cannot_be(self):
        node = self.node(file=self.write("batch.yaml", self.FILE))
        self.begin("part", "-p", "n=9", "--batch", "b3", "--of", "2")
        for name in ("a/b", "x" * 200, "b3"):
            self.fails(1, "job", "start", "sum", "-p", f"batch={name}", "--wait")
        self.assertIn("the batch b3 has 2 members, not 3", self.text("log"))
        self.stop_now(node)

    def stop_now(self, node):
        for _ in range(2):
            node.send_signal(signal.SIGTERM)
            wait_until(lambda: "drains" in self.text("log"), "the drain")
        self.assertEqual(node.wait(PATIENCE), 0, self.text("log"))


class Stops(Work):
    def test_a_drain_lets_commands_end(self):
        node = self.node()
        run = self.begin("drained")
        self.pid()
        node.send_signal(signal.SIGTERM)
        wait_until(lambda: "drains" in self.text("log"), "the drain")
        later = self.begin("good")
        self.write("go", "")
        self.assertEqual(node.wait(PATIENCE), 0)
        self.assertEqual((self.run_of(run)["state"], self.run_of(later)["state"]), ("OK", "QUEUED"))
        self.assertEqual(self.ok("job", "logs", run), "end\n")

    def test_a_user_drains_a_node(self):
        node = self.node("--label", "eu")
        other = self.node()
        run = self.begin("elsewhere")
        self.ok("job", "wait", run)
        listed = wait_until(lambda: (nodes := self.json("job", "nodes", "--json")["nodes"]) and len(nodes) == 2 and nodes,
                            "two nodes")
        one = [entry for entry in listed if entry["pid"] == node.pid][0]
        self.assertEqual((one["labels"], one["slots"], one["state"]), ("eu", 4, "active"))
        self.assertIn(one["id"], self.ok("job", "nodes"))
        self.assertIn("no node", self.fails(1, "job", "drain", "x"))
        self.ok("job", "drain", one["id"][:12])
        self.assertEqual(node.wait(PATIENCE), 0)
        self.assertEqual([entry["pid"] for entry in self.json("job", "nodes", "--json")["nodes"]], [other.pid])
        self.ok("job", "start", "good", "--wait")
        self.stop(other)

    def test_a_second_signal_ends_commands(self):
        node = self.node()
        run = self.begin("long")
        pid = self.pid()
        node.send_signal(signal.SIGTERM)
        wait_until(lambda: "drains" in self.text("log"), "the drain")
        node.send_signal(signal.SIGTERM)
        self.assertEqual(node.wait(PATIENCE), 0)
        self.assertFalse(alive(pid))
        self.assertEqual((self.run_of(run)["state"], self.run_of(run)["reason"]), ("FAILED", "stopped"))

    def test_once(self):
        self.ok("job", "load", self.file)
        runs = [self.begin("good"), self.begin("parent")]
        self.ok("work", self.file, "--once")
        self.assertEqual([self.run_of(run)["state"] for run in runs], ["OK", "OK"])
        self.assertEqual(self.lines("after"), ["after"] * 2)

    def test_files_that_a_node_refuses(self):
        other = self.write("other.yaml", "board: two\njobs: {x: {run: [x]}}\n")
        self.assertIn("board", self.fails(78, "work", self.file, other, "--once"))
        self.fails(78, "work", self.write("bad.yaml", "jobs: {x: {}}\n"), "--once")
        self.assertIn("label", self.fails(64, "work", self.file, "--label", "a/b"))

    def test_prefix_of_sweeps(self):
        """A wrong one would stop retries, limits, waits and the history."""
        for prefix, why in (("a\tb", "control character"), ("a\udcffb", "UTF-8"), ("x" * 239, "longer than 238")):
            self.assertIn(why, self.fails(64, "work", self.file, "--once", "--sweep-prefix", prefix))
            self.assertIn(why, self.fails(64, "serve", "--check", "--sweep-prefix", prefix))
            self.env["DIBS_JOBS_SWEEP_PREFIX"] = prefix
            self.assertIn(why, self.fails(78, "work", self.file, "--once"))
            self.assertIn(why, self.fails(78, "serve", "--check"))
            del self.env["DIBS_JOBS_SWEEP_PREFIX"]
        names = self.env.get("DIBS_PREFIX", "")
        longest = "x" * (238 - len(names))
        self.ok("work", self.file, "--once", "--sweep-prefix", longest)
        self.assertIn("the locks of sweeps cannot have this prefix",
                      self.fails(64, "work", self.file, "--once", "--sweep-prefix", longest, "--prefix", names + "y"))


if __name__ == "__main__":
    main()
