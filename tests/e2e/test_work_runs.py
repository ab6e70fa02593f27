"""work: the runs that nodes execute, and their ends."""
# SPDX-License-Identifier: MIT
import contextlib
import os
import pwd
import signal
import sqlite3
import time
import unittest

from nodes import FILE, Work
from runtools import PACE, alive, below, read_stat
from support import PATIENCE, main, span, wait_until


class Runs(Work):
    def test_ends_of_runs(self):
        node = self.node()
        self.assertRegex(self.ok("job", "start", "good", "-p", "name=me", "--wait"), r"^good\.")
        self.fails(1, "job", "start", "bad", "--wait")
        self.fails(124, "job", "start", "slow", "--wait")
        self.assertFalse(alive(self.pid()))
        os.unlink(self.path("pid"))
        run = self.begin("long")
        pid = self.pid()
        self.ok("job", "cancel", run)
        self.fails(125, "job", "wait", run)
        self.assertFalse(alive(pid))
        run = self.begin("alone", "--wait")
        self.assertIn(f" {run}/main: has the lock mine, try 1\n", self.text("log"))
        self.acquire("mine", "-n")
        run = self.begin("alone")
        self.fails(75, "job", "wait", run)
        self.assertIn(f" {run}/main: the lock mine is held; skipped\n", self.text("log"))
        wait_until(lambda: self.lines("after") == ["after"], "the follower")
        self.stop(node)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_a_user_that_is_a_number_has_its_own_home(self):
        nobody = pwd.getpwnam("nobody")
        file = self.write("users.yaml", """
jobs:
  number: {user: '%d', shell: 'echo "$HOME $USER $SHELL"'}
  name: {user: nobody, shell: 'echo "$HOME $USER $SHELL"'}
  node: {shell: 'echo "$HOME $USER $SHELL"'}
""" % nobody.pw_uid)
        self.env.update({"HOME": "/of-the-node", "USER": "of-the-node", "SHELL": "/bin/of-the-node"})
        node = self.node(file=file)
        said = {name: self.ok("job", "logs", self.begin(name, "--wait")) for name in ("number", "name", "node")}
        self.stop(node)
        expected = f"{nobody.pw_dir} {nobody.pw_name} {nobody.pw_shell}\n"
        self.assertEqual(said, {"number": expected, "name": expected,
                                "node": "/of-the-node of-the-node /bin/of-the-node\n"})

    def test_a_store_that_is_away_is_no_busy_lock(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("held.db")
        file = self.write("alone.yaml", """
jobs: {alone: {run: ['true'], lock: {key: mine, retries: 1, retry_delay: %s}}}
""" % span(0.4))
        node = self.node("--store-timeout", span(0.2), file=file)
        token = self.acquire("mine", "-n")
        run = self.begin("alone")
        wait_until(lambda: f"{run}/main: the lock mine is held; again in " in self.text("log"), "the claim")
        self.ok("release", "mine", "--token", token)
        # Its second look at the lock has no answer.
        store = sqlite3.connect(self.path("held.db"), isolation_level=None, timeout=PATIENCE)
        self.addCleanup(store.close)
        store.execute("BEGIN IMMEDIATE")
        wait_until(lambda: " mine: " in self.text("log") or self.run_of(run)["state"] == "OK", "a look at the lock")
        store.execute("ROLLBACK")
        self.ok("job", "wait", run)
        self.stop(node)

    def test_a_lock_that_comes_too_late_starts_nothing(self):
        file = self.write("late.yaml", """
jobs: {late: {shell: 'echo ran >>ran', start_deadline: %s, lock: {key: mine, wait: 1h}}}
""" % span(1))
        node = self.node("--timeout-every", "1h", file=file)
        token = self.acquire("mine", "--ttl", "1h")
        run = self.begin("late")
        made = self.run_of(run)["made_us"] / 1e6
        wait_until(lambda: self.run_of(run)["steps"][0]["state"] == "CLAIMED", "the claim")
        wait_until(lambda: time.time() > made + 2 * PACE, "the end of the time in which it may start")
        self.ok("release", "mine", "--token", token)
        wait_until(lambda: self.run_of(run)["ended_us"], "the end of the run")
        self.assertEqual(self.run_of(run)["state"], "MISSED")
        self.assertFalse(os.path.exists(self.path("ran")))
        self.stop(node)

    def test_a_command_may_outlive_the_lease_of_its_node(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("held.db")
        work = "echo $$ >pid-$DIBS_JOB; until test -e go; do sleep 0.02; done; printf late >\"$DIBS_RESULT\""
        file = self.write("lost.yaml", f"""
defaults: {{kill_after: 100ms}}
jobs:
  kept: {{on_lost: finish, shell: '{work}'}}
  killed: {{on_lost: kill, shell: '{work}'}}
""")
        node = self.node("--store-timeout", span(0.2), file=file, ttl=span(2))
        runs = {job: self.begin(job) for job in ("kept", "killed")}
        pids = {job: int(wait_until(lambda name=f"pid-{job}": self.text(name).endswith("\n") and self.text(name), job))
                for job in runs}
        known = self.joined()
        store = sqlite3.connect(self.path("held.db"), isolation_level=None, timeout=PATIENCE)
        self.addCleanup(store.close)
        store.execute("BEGIN IMMEDIATE")
        wait_until(lambda: "has lost its lease" in self.text("log"), "the loss")
        store.execute("ROLLBACK")
        wait_until(lambda: self.joined() > known, "the node to join again")
        for run in runs.values():
            self.fails(122, "job", "wait", run)
        self.assertEqual([alive(pids[job]) for job in ("kept", "killed")], [True, False])
        self.write("go", "")
        run = wait_until(lambda: (one := self.run_of(runs["kept"]))["state"] == "OK" and one, "the late result")
        self.assertEqual((run["steps"][0]["result"], run["steps"][0]["attempt"]), ("late", 1))
        self.assertEqual(self.run_of(runs["killed"])["state"], "FAILED")
        self.stop(node)

    @contextlib.contextmanager
    def dead_executor(self, node):
        """Its node takes its trees for alive for as long as somebody has the pipe that all of them have."""
        executor = next(pid for pid in below(node.pid) if (read_stat(pid) or [""])[0] == "dibs-executor")
        with open(f"/proc/{executor}/fd/0", "wb"):
            os.kill(executor, signal.SIGKILL)
            wait_until(lambda: not alive(executor), "the executor to die")
            yield

    def test_an_executor_that_dies_fails_no_other_run(self):
        node = self.node()
        self.fails(1, "job", "start", "bad", "--wait")
        with self.dead_executor(node):
            run = self.begin("good")
            wait_until(lambda: "try again" in self.text("log") or self.run_of(run)["ended_us"], "the start")
            self.assertEqual(self.run_of(run)["state"], "ACTIVE", self.text("log"))
        self.ok("job", "wait", run)
        self.assertEqual(self.run_of(run)["steps"][0]["attempt"], 1)
        self.stop(node)

    def test_an_executor_that_stays_dead_fails_the_run(self):
        node = self.node(ttl=span(2))
        self.fails(1, "job", "start", "bad", "--wait")
        with self.dead_executor(node):
            run = self.begin("good")
            self.fails(1, "job", "wait", run)
        self.stop(node)
        self.assertRegex(self.ok("job", "logs", run), "^[^\n]+; try again[^\n]*\n$")

    def test_a_command_that_cannot_start_says_why(self):
        file = self.write("none.yaml", "jobs: {none: {run: [/no/such/command]}}\n")
        node = self.node(file=file)
        run = self.begin("none")
        self.fails(1, "job", "wait", run)
        self.stop(node)
        self.assertEqual(self.ok("job", "logs", run), "cannot run /no/such/command: No such file or directory\n")
        step = self.run_of(run)["steps"][0]
        self.assertEqual((step["reason"], step["exit"]), ("not started", 0))

    def test_steps_and_their_results(self):
        node = self.node()
        run = self.begin("order")
        self.waits(run, "approve")
        self.ok("job", "resume", run, "ok")
        self.ok("job", "wait", run)
        steps = {step["name"]: step for step in self.run_of(run)["steps"]}
        self.assertEqual((steps["first"]["result"], steps["second"]["attempt"]), ("7", 2))
        self.assertEqual(self.ok("job", "logs", run), "one\ngot 7\n")
        self.assertEqual(self.ok("job", "logs", run + "/second/1", "-f"), "got 7\n")
        self.assertIn("no step", self.fails(1, "job", "logs", run + "/none"))
        self.fails(64, "job", "logs", run + "/second/0")
        self.stop(node)

    def test_children_end_with_their_parent(self):
        node = self.node()
        self.ok("job", "start", "parent", "--wait")
        child = [run for run in self.json("job", "runs", "good", "--json")["runs"] if run["cause"] == "child"][0]
        self.assertEqual(self.ok("job", "logs", child["id"]), "hello child\n")
        run = self.begin("parent-of-long")
        pid = self.pid()
        self.ok("job", "cancel", run)
        self.fails(125, "job", "wait", run)
        wait_until(lambda: not alive(pid), "the command of the child to end")
        os.unlink(self.path("pid"))
        self.fails(124, "job", "start", "parent-of-little-time", "--wait")
        if self.text("pid"):
            wait_until(lambda: not alive(self.pid()), "the command of the other child to end")
        self.stop(node)

    def test_a_child_goes_on_when_its_job_changes(self):
        text = """version: 1
jobs:
  kid: {params: {name: {}}, shell: 'echo $$ >pid; until test -e go; do sleep 0.02; done'}
  parent: {steps: {kid: {job: kid, with: {name: child}}}}
"""
        file = self.write("kids.yaml", text)
        other = self.write("other/kids.yaml", text.replace("version: 1", "version: 2").replace("name:", "region:"))
        node = self.node(file=file)
        for change in (["rm", "kid"], ["load", other]):
            run = self.begin("parent")
            self.pid()
            self.ok("job", *change)
            self.write("go", "")
            self.ok("job", "wait", run)
            for name in ("pid", "go"):
                os.unlink(self.path(name))
            self.ok("job", "load", file, "--force")
        self.stop(node)

    def test_children_end_with_a_run_that_is_replaced(self):
        """Nobody but a node knows of it: a tick replaces the run."""
        file = self.write("etl.yaml", """
defaults: {kill_after: 100ms}
jobs:
  load: {concurrency: allow, shell: 'echo $$ >>pids; exec sleep 1000'}
  etl: {concurrency: replace, steps: {load: {job: load}}}
""")
        node = self.node(file=file)
        runs = []
        for number in range(2):
            runs.append(self.begin("etl"))
            wait_until(lambda number=number: len(self.lines("pids")) > number, "the command of the child")
        first, second = (int(pid) for pid in self.lines("pids"))
        wait_until(lambda: not alive(first), "the child of the run that was replaced to end")
        self.assertTrue(alive(second))
        self.assertEqual([self.run_of(run)["state"] for run in runs], ["CANCELLED", "ACTIVE"])
        self.ok("job", "cancel", runs[1])
        wait_until(lambda: not alive(second), "the other child to end")
        self.stop(node)

    def test_jobs_that_clean_up_are_begun_by_runs_that_end_badly(self):
        file = self.write("clean.yaml", """version: 1
defaults: {kill_after: 100ms}
jobs:
  clean: {shell: 'echo $DIBS_RUN >>cleaned'}
  slow: {shell: 'echo $$ >pid; until [ -e go ]; do sleep 0.01; done; echo done >>slow'}
  breaks: {steps: {work: {run: [false]}, tidy: {job: clean, when: failed}, close: {job: clean, when: always}}}
  endless: {steps: {work: {run: [sleep, '1000']}, close: {job: slow, when: always}}}
  closing: {steps: {work: {run: ['true']}, close: {job: slow, when: always}}}
""")
        node = self.node(file=file)
        run = self.begin("breaks")
        self.fails(1, "job", "wait", run)
        self.assertEqual({step["name"]: step["state"] for step in self.run_of(run)["steps"]},
                         {"work": "FAILED", "tidy": "OK", "close": "OK"})
        self.assertEqual(len(self.lines("cleaned")), 2)
        run = self.begin("endless")
        wait_until(lambda: self.run_of(run)["steps"][0]["state"] == "RUNNING", "the first step")
        self.ok("job", "cancel", run)
        self.pid()
        self.write("go", "")
        self.fails(125, "job", "wait", run)
        for name in ("pid", "go"):
            os.unlink(self.path(name))
        run = self.begin("closing")
        self.pid()
        self.ok("job", "cancel", run)
        self.write("go", "")
        wait_until(lambda: self.run_of(run)["steps"][1]["state"] == "OK", "the run that closes")
        self.assertEqual(self.lines("slow"), ["done"] * 2)
        self.stop(node)

    def test_a_node_runs_only_its_own_commands(self):
        self.ok("job", "load", self.write("other.yaml", "jobs: {foreign: {shell: 'echo x >>foreign'}}\n"))
        foreign = self.begin("foreign")
        node = self.node()
        label = self.begin("elsewhere")
        self.ok("job", "start", "good", "--wait")
        self.assertEqual([self.run_of(run)["state"] for run in (foreign, label)], ["QUEUED"] * 2)
        self.assertEqual(self.text("foreign"), "")
        with_label = self.node("--label", "eu")
        self.ok("job", "wait", label)
        self.assertEqual(self.lines("placed"), ["main"])
        # Another definition of a job that it has.
        newer = FILE.replace("version: 1", "version: 2").replace("echo $DIBS_JOB >>after", "echo newer >>after")
        self.ok("job", "load", self.write("newer.yaml", newer))
        later = self.begin("after")
        self.ok("job", "start", "bad", "--id", "x")
        self.fails(1, "job", "wait", "bad.x")
        self.assertEqual(self.run_of(later)["state"], "QUEUED")
        self.stop(node, with_label)


    def test_runs_of_others_are_in_nobodys_way(self):
        steps = ", ".join(f"s{i}: {{run: [x]}}" for i in range(200))
        self.ok("job", "load", self.write("other.yaml", f"jobs: {{wide: {{steps: {{{steps}}}}}}}\n"))
        self.begin("wide")
        self.begin("wide")
        node = self.node()
        self.ok("job", "start", "good", "--wait")
        self.stop(node)

    def test_a_node_leaves_calls_to_programs(self):
        calls = "jobs: {calls: {call: sync}, both: {steps: {one: {run: ['true']}, two: {call: sync, needs: [one]}}}}\n"
        file = self.write("calls.yaml", calls)
        self.ok("job", "load", file)
        self.begin("calls")
        both = self.begin("both")
        self.ok("work", file, "--once")
        self.assertEqual([one["state"] for one in self.run_of(both)["steps"]], ["OK", "READY"])
        self.assertEqual([run["state"] for run in self.json("job", "runs", "calls", "--json")["runs"]], ["QUEUED"])


if __name__ == "__main__":
    main()
