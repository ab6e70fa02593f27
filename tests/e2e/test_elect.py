"""elect: a command of the leader, and its end before another leads; leader: who that is."""
# SPDX-License-Identifier: MIT
import json
import os
import signal
import subprocess

from runtools import LOST, PATIENCE, RunCase, alive, main, span, wait_until

WORK = "echo $DIBS_TERM; exec cat"


class Elect(RunCase):
    def lead(self, *options):
        """A leader whose command ends with its standard input; and its term."""
        process = self.start(
            "elect", *options, "e", "--", "sh", "-c", WORK, stdin=subprocess.PIPE
        )
        return process, int(process.stdout.readline())

    def await_candidate(self):
        wait_until(lambda: self.waiters("e") == 1, "a candidate")

    def test_the_command_ends_by_itself(self):
        result = self.dibs("elect", "e", "--", "sh", "-c", "echo $DIBS_TERM; exit 7")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertGreater(int(result.stdout), 0)
        self.assertEqual(self.dibs("leader", "e").returncode, 1)
        self.assertEqual(self.dibs("elect", "e", "--", "/nowhere").returncode, 127)
        self.assertEqual(self.dibs("elect", "e").returncode, 64)

    def test_the_next_one_leads(self):
        first, term = self.lead()
        second = self.start("elect", "e", "--", "sh", "-c", WORK, stdin=subprocess.PIPE)
        self.await_candidate()
        self.let_go(first)
        self.assertGreater(int(second.stdout.readline()), term)
        self.let_go(second)

    def test_it_campaigns_again(self):
        process, term = self.lead("--ttl", span(1.5), "--stop", span(0.3))
        self.break_lock("e")
        self.assertGreater(int(process.stdout.readline()), term)
        self.let_go(process)

    def test_once(self):
        process, _ = self.lead("--once", "--ttl", span(1.5), "--stop", span(0.3))
        self.break_lock("e")
        self.assertEqual(process.wait(PATIENCE), LOST)

    def test_a_stopped_leader_loses_its_tree_first(self):
        """The command of the next leader finds no process of the last one."""
        first = self.start(
            "elect", "--ttl", span(1.5), "e", "--", "sh", "-c", "sleep 1000 & echo $!; wait"
        )
        child = int(first.stdout.readline())
        second = self.start(
            "elect", "e", "--", "sh", "-c", f"kill -0 {child} 2>/dev/null && echo alive || echo dead"
        )
        self.await_candidate()
        os.kill(first.pid, signal.SIGSTOP)
        self.assertEqual(second.stdout.readline(), "dead\n")
        self.assertFalse(alive(child))

    def test_a_signal_ends_the_campaign(self):
        leader, _ = self.lead()
        waiting = self.start("elect", "e", "--", "true")
        self.await_candidate()
        waiting.terminate()
        self.assertEqual(waiting.wait(PATIENCE), -signal.SIGTERM)
        wait_until(lambda: self.waiters("e") == 0, "an empty queue")
        self.let_go(leader)

    def test_leader(self):
        watch = self.start("leader", "-l", "e")
        self.assertEqual(watch.stdout.readline(), "nobody\n")
        self.assertIn("e has no leader", self.dibs("leader", "e").stderr)
        nobody = self.dibs("leader", "--json", "e")
        self.assertEqual(nobody.returncode, 1)
        self.assertIsNone(json.loads(nobody.stdout)["leader"])
        process, term = self.lead()
        member = f"{os.uname().nodename}:{process.pid}"
        self.assertEqual(watch.stdout.readline(), f"{member} term {term}\n")
        self.assertEqual(self.dibs("leader", "e").stdout, f"{member} term {term}\n")
        shown = json.loads(self.dibs("leader", "--json", "e").stdout)
        self.assertEqual((shown["leader"], shown["term"]), (member, term))
        self.assertEqual((shown["pid"], shown["candidates"]), (process.pid, 0))
        self.let_go(process)
        self.assertEqual(watch.stdout.readline(), "nobody\n")


if __name__ == "__main__":
    main()
