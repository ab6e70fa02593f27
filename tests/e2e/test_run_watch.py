"""`dibs run`: its tree is dead in time also when who watches over it is stopped, killed or starved."""
# SPDX-License-Identifier: MIT
import os
import signal
import subprocess
import sys
import unittest

from runtools import (NO_CGROUP, PACE, PATIENCE, NotInTime, RunCase, alive, below, guard_of, inside, main, may_unshare,
                      read_stat, span, wait_until)

# A writer that has left the command's group and lost its parent.
WRITER = """
(setsid sh -c 'while :; do echo first >>witness; sleep 0.01; done' &)
exec sleep 1000
"""

# Each writes once, forks the next, and is gone before anybody has found it.
SUCCESSION = """
import os, sys, time
while True:
    with open("witness", "a") as witness:
        witness.write("first\\n")
    time.sleep(float(sys.argv[1]))
    if os.fork():
        os._exit(0)
    os.setsid()
"""


class WatchCase(RunCase):
    before = ()

    def grow(self, *options, tree=WRITER):
        """A first holder whose tree writes; dibs and its guard."""
        self.write("tree.sh", tree)
        process = self.start("run", *options, "k", "--", "sh", "tree.sh", before=self.before)
        wait_until(lambda: "first" in self.text("witness") or process.poll() is not None, "the writer")
        if process.poll() is not None:
            raise NotInTime("it ended before its tree had grown: " + process.stderr.read())
        for pid in below(process.pid):
            self.addCleanup(self.reap, pid, read_stat(pid))
        return process, guard_of(process.pid)

    def stop(self, *pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda one=pid: read_stat(one)[1] in "TZX", "it to stop")
            if not alive(pid):
                raise NotInTime("it ended before it was stopped")

    def starve(self, count=12):
        """As many busy loops; they end with the test."""
        for _ in range(count):
            loop = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            self.addCleanup(loop.wait)
            self.addCleanup(loop.kill)

    def no_overlap(self):
        self.succeed()
        late = self.late_writes()
        if late:
            raise NotInTime(f"{late} writes of the first holder after the second began")


class Stopped(WatchCase):
    def test_dibs_and_guard_together(self):
        process, guard = self.grow("--ttl=" + span(1))
        tree = below(guard)
        self.stop(guard, process.pid)
        self.no_overlap()
        self.wait_dead(tree)
        for pid in (guard, process.pid):
            if alive(pid):
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertIn("the lease on k was lost", process.stderr.read())

    def test_the_guard_alone_and_the_command_ends(self):
        tree = "echo first >>witness; while ! test -e stop; do sleep 0.01; done"
        process, guard = self.grow("--ttl=" + span(2), tree=tree)
        self.stop(guard)
        self.write("stop", "")
        result = self.dibs("run", "-w", span(PATIENCE), "k", "--", "true", patience=2 * PATIENCE * PACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(process.wait(PATIENCE), 125)
        self.assertIn("does not answer", process.stderr.read())

    def test_the_guard_alone_for_a_moment(self):
        process, guard = self.grow("--ttl=1h")
        self.stop(guard)
        os.kill(guard, signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 143)


class Starting(WatchCase):
    @unittest.skipUnless("DIBS_STOP_SHIM" in os.environ, "sanitizers do not load the shim")
    def test_the_guard_before_the_command_starts(self):
        shim = {**self.env, "LD_PRELOAD": os.environ["DIBS_STOP_SHIM"]}
        process = self.start("run", "--ttl=" + span(2), "k", "--", "touch", "started", env=shim)
        wait_until(lambda: guard_of(process.pid), "the guard")
        result = self.dibs("run", "-w", span(PATIENCE), "k", "--", "true", patience=2 * PATIENCE * PACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(process.wait(PATIENCE), 125)
        self.assertIn("does not answer", process.stderr.read())
        self.assertFalse(os.path.exists(self.path("started")))


class Killed(WatchCase):
    def test_dibs_and_guard_killed_together(self):
        process, guard = self.grow("--ttl=1h")
        tree = below(process.pid)
        # So that neither acts on the end of the other.
        self.stop(process.pid, guard)
        os.kill(guard, signal.SIGKILL)
        process.kill()
        process.wait()
        self.wait_dead(tree)

    def test_dibs_and_the_one_between_killed_together(self):
        process, guard = self.grow("--ttl=1h")
        tree, between = below(process.pid), read_stat(guard)[2]
        self.stop(process.pid, between)
        os.kill(between, signal.SIGKILL)
        process.kill()
        process.wait()
        self.wait_dead(tree)

    def test_the_one_between_while_dibs_is_stopped(self):
        process, guard = self.grow("--ttl=" + span(1))
        self.stop(process.pid)
        os.kill(read_stat(guard)[2], signal.SIGKILL)
        self.no_overlap()
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 122)

    def test_the_one_between_them(self):
        process, guard = self.grow("--ttl=1h")
        tree = below(process.pid)
        os.kill(read_stat(guard)[2], signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 125)
        self.assertFalse([pid for pid in tree if alive(pid)])


class Starved(WatchCase):
    def setUp(self):
        super().setUp()
        self.write("succession.py", SUCCESSION)
        self.succession = f"{sys.executable} succession.py 0.01 & exec sleep 1000"

    def test_by_busy_loops(self):
        process, _ = self.grow("--ttl=" + span(1))
        self.starve()
        self.stop(process.pid)
        self.no_overlap()

    def test_by_successors(self):
        process, _ = self.grow("--ttl=" + span(1), tree=self.succession)
        self.stop(process.pid)
        self.no_overlap()

    def test_by_successors_in_haste(self):
        tree = f"for i in 1 2 3 4; do {sys.executable} succession.py 0.0005 & done; exec sleep 1000"
        process, _ = self.grow("--ttl=" + span(1), tree=tree)
        self.stop(process.pid)
        self.no_overlap()

    def test_by_both(self):
        process, _ = self.grow("--ttl=" + span(1), tree=self.succession)
        self.starve()
        self.stop(process.pid)
        self.no_overlap()


class Rank(WatchCase):
    def test_the_command_and_the_hook_have_that_of_dibs(self):
        tree = "cut -d' ' -f19,41 /proc/self/stat >command; echo first >>witness; exec sleep 1000"
        hook = "--on-lost=exec:cut -d' ' -f19,41 /proc/self/stat >hook"
        self.before = ("nice", "-n", "5")
        process, _ = self.grow("--ttl=" + span(2), hook, tree=tree)
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        nice, policy = os.getpriority(os.PRIO_PROCESS, 0) + 5, os.SCHED_OTHER
        expected = f"{min(nice, 19)} {policy}\n"
        self.assertEqual((self.text("command"), self.text("hook")), (expected, expected))


@unittest.skipUnless(may_unshare(), "needs root, to hide cgroups from it")
class WithoutCgroups(Stopped, Killed, Starved):
    """The same by a search through /proc."""

    before = inside(NO_CGROUP)


if __name__ == "__main__":
    main()
