"""`dibs run`: the means by which a tree is ended, also where /proc is not there or another's."""
# SPDX-License-Identifier: MIT
import json
import os
import signal
import subprocess
import unittest

from runtools import (DIBS, LOST, NO_CGROUP, NO_PROC, PATIENCE, POWERLESS, NotInTime, RunCase, below, guard_of, inside, main,
                      may_unshare, read_stat, signal_all, span, wait_until)

# A writer that has left the command's group and lost its parent.
TREE = """
(setsid sh -c 'while :; do echo first >>witness; sleep 0.01; done' &)
exec sleep 1000
"""


class MeansCase(RunCase):
    def dibs_of(self, process):
        """The dibs that was started, perhaps below the one that prepared its surroundings."""
        for pid in [process.pid, *below(process.pid)]:
            stat = read_stat(pid)
            if stat and stat[0] == os.path.basename(DIBS)[:15]:
                return pid
        return None

    def no_overlap(self, before):
        """Of a stopped first holder's tree nothing is written after the second has begun."""
        self.write("tree.sh", TREE)
        process = self.start("run", "--ttl=" + span(1), "k", "--", "sh", "tree.sh", before=before)
        wait_until(lambda: "first" in self.text("witness") or process.poll() is not None, "the writer")
        if process.poll() == LOST:
            raise NotInTime(process.stderr.read())
        self.assertIsNone(process.poll(), "it was refused")
        stopped = self.dibs_of(process)
        for pid in below(stopped):
            self.addCleanup(self.reap, pid, read_stat(pid))
        os.kill(stopped, signal.SIGSTOP)
        self.succeed()
        self.assertEqual(self.late_writes(), 0)
        os.kill(stopped, signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 122)


class Here(MeansCase):
    def test_it_is_said(self):
        result = self.dibs("run", "-v", "k", "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "the tree of the command is ended by (one kill|a search)")
        found = json.loads(self.dibs("doctor", "--json").stdout)["findings"]
        self.assertEqual([f["severity"] for f in found if f["subject"] == "run"], ["fine"])

    def test_no_write_after_the_next_began(self):
        self.no_overlap([])

    def test_no_cgroup_is_left(self):
        """Nested runs have theirs inside, and are killed with it."""
        tree = ("grep ^0:: /proc/self/cgroup >outer; "
                f"exec {DIBS} run --ttl=1h inner -- sh -c 'grep ^0:: /proc/self/cgroup >own; exec sleep 1000'")
        process = self.start("run", "k", "--", "sh", "-c", tree)
        wait_until(lambda: self.text("own"), "the inner command")
        dead = below(process.pid)
        process.kill()
        process.wait()
        self.wait_dead(dead)
        for name in ("outer", "own"):
            path = self.text(name).strip()[len("0::/"):]
            for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                folder = os.path.join(mount, path)
                if "dibs-run-" in path:
                    wait_until(lambda where=folder: not os.path.exists(where), folder + " to be removed")


@unittest.skipUnless(may_unshare(), "needs root, to have mounts and PID namespaces of its own")
class Foreign(MeansCase):
    def test_proc_without_processes(self):
        """As in a chroot: a /proc is made, unless a cgroup does it."""
        self.no_overlap(inside(NO_PROC))

    def test_neither_proc_nor_cgroup(self):
        self.no_overlap(inside(NO_PROC + NO_CGROUP))

    def test_proc_of_another_namespace(self):
        self.no_overlap(inside(NO_CGROUP, "-p", "-f"))

    def test_proc_of_another_namespace_and_a_cgroup(self):
        # Without the right to make a /proc.
        before = inside("", "-p", "-f") + ["setpriv", "--bounding-set", "-all,+dac_override"]
        if "one kill" not in self.dibs("run", "-v", "k", "--", "true", before=before).stderr:
            self.skipTest("no cgroup can be made here")
        self.no_overlap(before)

    def test_refused_before_anything_is_started(self):
        for setup, more in ((NO_PROC + NO_CGROUP, ()), (NO_CGROUP, ("-p", "-f"))):
            with self.subTest(setup=setup):
                before = inside(setup, *more) + POWERLESS
                result = self.dibs("run", "k", "--", "touch", "started", before=before)
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertIn("--tree-unchecked", result.stderr)
                self.assertFalse(os.path.exists(self.path("started")))
                self.assertIsNone(self.show("k"))
                found = json.loads(self.dibs("doctor", "--json", before=before).stdout)["findings"]
                self.assertEqual([f["severity"] for f in found if f["subject"] == "run"], ["caution"])

    def test_unchecked_is_shown(self):
        before = inside(NO_PROC + NO_CGROUP) + POWERLESS
        process = self.start("run", "--tree-unchecked", "--meta", "why=test", "k", "--", "sh", "-c", "echo held; cat",
                             before=before, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "held\n")
        meta = self.show("k")["holders"][0]["meta"]
        self.assertEqual(meta, {"why": "test", "tree": "unchecked"})
        self.let_go(process)

    def unchecked(self, *words):
        """Runs it where nothing but its process group can be found; answers the run's process and the numbers that
        `words` wrote to the file "numbers". The test is in another group, for the kernel hangs one up that has lost
        its last parent while a process of it is stopped."""
        before = inside(NO_PROC + NO_CGROUP) + POWERLESS
        process = self.start("run", f"--ttl={span(2)}", "--tree-unchecked", *words, before=before, process_group=0)
        wait_until(lambda: self.text("numbers").endswith(".\n"), "the numbers of the command's processes")
        return process, [int(word) for word in self.text("numbers")[:-2].split()]

    def test_unchecked_ends_what_the_leader_left(self):
        process, numbers = self.unchecked("k", "--", "sh", "-c", "sleep 1000 & echo $! . >numbers")
        self.wait_dead(numbers)
        process.communicate()
        self.assertEqual(process.returncode, 0)

    def ends_in_time(self, guard, *words):
        """The command is dead when the lease ends, though dibs is stopped, and its guard too."""
        process, numbers = self.unchecked(*words)
        pids = [process.pid, *([guard_of(process.pid)] if guard else [])]
        if None in pids:
            raise NotInTime("the lease ended before dibs could be stopped: " + process.communicate()[1])
        signal_all(pids, signal.SIGSTOP)
        self.wait_dead(numbers)
        self.succeed()
        os.kill(process.pid, signal.SIGCONT)
        process.communicate()

    def test_unchecked_ends_in_time(self):
        group = ("k", "--", "sh", "-c", "sleep 1000 & echo $$ $! . >numbers; wait")
        alone = ("--foreground", "k", "--", "sh", "-c", "echo $$ . >numbers; exec sleep 1000")
        for words in group, alone:
            for guard in False, True:
                with self.subTest(words=words, guard=guard):
                    self.ends_in_time(guard, *words)
                    os.unlink(self.path("numbers"))


if __name__ == "__main__":
    main()
