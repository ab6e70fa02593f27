"""`dibs run`: the whole tree is dead before the lease could pass to another."""
# SPDX-License-Identifier: MIT
import os
import signal
import time

from runtools import PATIENCE, NotInTime, RunCase, alive, below, guard_of, in_time, main, read_stat, span, wait_until

# A child in its group, one in a session of its own with a child of that, and one
# that lost its parent. Each says that it is there.
TREE = """
trap '' HUP
sh -c 'echo $$ >>pids; while :; do sleep 1000; done' &
setsid sh -c 'echo $$ >>pids; sh -c "echo \\$\\$ >>pids; sleep 1000; :" ; :' &
(setsid sh -c 'echo $$ >>pids; sleep 1000; :' &)
echo $$ >>pids
wait
"""


class TreeCase(RunCase):
    def grow(self, *options, tree=TREE, count=5, name="k"):
        """Starts the tree; returns dibs and every process below it but the guard."""
        process = self.start("run", *options, name, "--", "sh", "-c", tree)

        def grown():
            if process.poll() is not None:
                raise NotInTime("it ended before its tree had grown: " + process.stderr.read())
            return len(self.text("pids").split()) >= count

        wait_until(grown, "the tree to grow")
        guard = guard_of(process.pid)
        pids = [pid for pid in below(process.pid) if pid != guard]
        missing = set(map(int, self.text("pids").split())) - set(pids)
        self.assertFalse([pid for pid in missing if alive(pid)])
        if missing:
            raise NotInTime("the tree was ended before it was looked at")
        for pid in pids:
            self.addCleanup(self.reap, pid, read_stat(pid))
        return process, guard, pids

    @staticmethod
    def dead_in_time(pids):
        """For what ends a moment before its lease does."""
        if any(alive(pid) for pid in pids):
            raise NotInTime("the tree outlived its lease")


class Death(TreeCase):
    def test_kill_9_of_dibs_takes_the_tree_with_it(self):
        process, guard, pids = self.grow("--ttl=" + span(1))
        process.kill()
        process.wait()
        self.wait_dead(pids + [guard])
        begun = time.monotonic()
        self.assertEqual(self.dibs("run", "k", "--", "true").returncode, 0)
        in_time(time.monotonic() - begun, PATIENCE / 2)

    def test_kill_9_does_not_wait_for_the_lease(self):
        process, guard, pids = self.grow("--ttl=1h")
        process.kill()
        process.wait()
        self.wait_dead(pids + [guard])
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 75)

    def test_kill_9_of_the_group_of_dibs(self):
        process = self.start("run", "k", "--", "sh", "-c", TREE, start_new_session=True)
        wait_until(lambda: len(self.text("pids").split()) >= 5, "the tree to grow")
        pids = below(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.wait_dead(pids)

    def test_the_guard_is_killed(self):
        process, guard, pids = self.grow()
        os.kill(guard, signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 125)
        self.assertFalse([pid for pid in pids if alive(pid)])

    def test_the_guard_does_not_answer(self):
        # Five signs of life, half a second or more apart, are not missed before the lease ends, however slow it all is.
        process, guard, pids = self.grow("--hold-max=2s")
        os.kill(guard, signal.SIGSTOP)
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertIn("the lease on k ", process.stderr.read())
        self.assertFalse([pid for pid in pids + [guard] if alive(pid)])

    def test_the_command_is_killed(self):
        process, guard, pids = self.grow("-k", "100ms")
        top = [pid for pid in pids if read_stat(pid)[2] == guard and read_stat(pid)[0] == "sh"]
        os.kill(min(top), signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 137)
        self.assertFalse([pid for pid in pids if alive(pid)])


class Stopped(TreeCase):
    def test_a_stopped_dibs_loses_its_tree_before_its_lease(self):
        process, _, pids = self.grow("--ttl=" + span(1))
        process.send_signal(signal.SIGSTOP)
        other = self.start("run", "k", "--", "sh", "-c", "echo got it")
        # The other may only have it once all of the first tree is dead.
        other_got_it = other.stdout.readline()
        self.dead_in_time(pids)
        self.assertEqual(other_got_it, "got it\n")
        self.assertEqual(other.wait(PATIENCE), 0)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertIn("the lease on k was lost", process.stderr.read())

    def test_a_short_stop_does_no_harm(self):
        process, _, pids = self.grow("--ttl=1h")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: read_stat(process.pid)[1] == "T", "dibs to stop")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: read_stat(process.pid)[1] != "T", "dibs to go on")
        self.assertTrue(all(alive(pid) for pid in pids))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 143)

    def test_a_stopped_command_keeps_its_lease(self):
        process, guard, pids = self.grow("--ttl=" + span(1))
        top = [pid for pid in pids if read_stat(pid)[2] == guard]
        for pid in top:
            os.kill(pid, signal.SIGSTOP)
        rival = self.dibs("run", "-w", span(1.5), "k", "--", "true")
        if rival.returncode != 75 and process.poll() is not None:
            self.assertEqual(process.returncode, 143, process.stderr.read())
        self.assertEqual(rival.returncode, 75)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(PATIENCE), 143)


class LeftBehind(TreeCase):
    def test_what_the_command_leaves_running_is_ended_first(self):
        process = self.start("run", "k", "--", "sh", "-c", "setsid sleep 1000 & echo $!; exit 3")
        left = int(process.stdout.readline())
        self.assertEqual(process.wait(PATIENCE), 3)
        self.assertFalse(alive(left))
        self.assertIn("left running", process.stderr.read())

    def test_it_is_asked_before_it_is_killed(self):
        tree = ("(setsid sh -c 'trap \"echo asked >asked; exit\" TERM; echo up >up;"
                " while :; do sleep 0.01; done' &); while ! test -e up; do sleep 0.01; done; exit 3")
        result = self.dibs("run", "k", "--", "sh", "-c", tree)
        self.assertEqual((result.returncode, self.text("asked")), (3, "asked\n"))

    def test_it_is_killed_when_it_does_not_listen(self):
        tree = ("(setsid sh -c 'trap \"\" TERM; echo $$ >up; while :; do sleep 0.01; done' &);"
                " while ! test -s up; do sleep 0.01; done; exit 3")
        result = self.dibs("run", "-k", "50ms", "k", "--", "sh", "-c", tree)
        self.assertEqual(result.returncode, 3)
        self.assertFalse(alive(int(self.text("up"))))

    def test_the_lock_is_held_until_then(self):
        tree = ("(setsid sh -c 'trap \"\" TERM; echo $$ >up; while :; do sleep 0.01; done' &);"
                " while ! test -s up; do sleep 0.01; done; exit 3")
        process = self.start("run", "-k", "1h", "k", "--", "sh", "-c", tree)
        wait_until(lambda: self.text("up"), "the one left behind")
        self.assertIn("left running", process.stderr.readline())
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 75)
        os.kill(int(self.text("up")), signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 3)
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 0)

    def test_it_may_end_by_itself_at_any_moment(self):
        for i in range(40):
            result = self.dibs("run", "k", "--", "sh", "-c", f"sleep 0.00{i % 10} & exit 3")
            self.assertEqual(result.returncode, 3, result.stderr)

    def test_many_that_fork_while_they_are_killed(self):
        fork = "while :; do sh -c 'sleep 0.02 & sleep 0.02' & sleep 0.005; done"
        tree = f"(setsid sh -c \"{fork}\" &); (setsid sh -c \"{fork}\" &); sleep 0.2; exit 3"
        process = self.start("run", "-k", "0", "k", "--", "sh", "-c", tree)
        self.assertEqual(process.wait(PATIENCE), 3)
        self.assertEqual(below(process.pid), [])


class Lost(TreeCase):
    def test_taken_away(self):
        process, _, pids = self.grow("--ttl=" + span(3))
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertFalse([pid for pid in pids if alive(pid)])
        self.assertIn("the lease on k was lost", process.stderr.read())

    def test_exit_code_for_it(self):
        process, _, _ = self.grow("--ttl=" + span(3), "--lost-exit-code=33")
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 33)

    def test_who_does_not_listen_is_killed(self):
        tree = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.01; done"
        process, _, pids = self.grow("--ttl=" + span(3), "-k", "100ms", tree=tree, count=1)
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertFalse([pid for pid in pids if alive(pid)])

    def test_who_ends_well_is_told_all_the_same(self):
        tree = "trap 'echo cleaned >cleaned; exit 0' TERM; echo $$ >>pids; while :; do sleep 0.01; done"
        process, _, _ = self.grow("--ttl=" + span(3), tree=tree, count=1)
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertEqual(self.text("cleaned"), "cleaned\n")

    def test_signal_only(self):
        tree = ("trap 'echo told >told; while ! test -e enough; do sleep 0.01; done; exit 0' USR1;"
                " echo $$ >>pids; while :; do sleep 0.01; done")
        process, _, _ = self.grow("--on-lost=signal:USR1", "--ttl=" + span(3), tree=tree, count=1)
        self.break_lock("k")
        wait_until(lambda: self.text("told"), "the signal")
        self.assertIsNone(process.poll())
        with open(self.path("enough"), "w", encoding="utf-8"):
            pass
        self.assertEqual(process.wait(PATIENCE), 122)

    def test_signal_only_is_not_killed_at_the_deadline(self):
        tree = ("trap 'echo told >told' USR1; echo $$ >>pids;"
                " while ! test -e enough; do sleep 0.01; done; exit 0")
        process, _, pids = self.grow("--on-lost=signal:USR1", "--hold-max=" + span(2), tree=tree, count=1)
        wait_until(lambda: self.text("told"), "the signal")
        self.assertEqual(self.dibs("run", "k", "--", "true").returncode, 0)
        self.assertTrue(alive(int(self.text("pids"))))
        with open(self.path("enough"), "w", encoding="utf-8"):
            pass
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertFalse([pid for pid in pids if alive(pid)])

    def test_ignored(self):
        tree = "echo $$ >>pids; while ! test -e enough; do sleep 0.01; done; exit 6"
        process, _, _ = self.grow("--on-lost=ignore", "--ttl=" + span(3), tree=tree, count=1)
        self.break_lock("k")
        wait_until(lambda: "the lease on k was lost" in process.stderr.readline(), "word of the loss")
        with open(self.path("enough"), "w", encoding="utf-8"):
            pass
        self.assertEqual(process.wait(PATIENCE), 6)

    def test_max_run_holds_after_a_loss(self):
        tree = "trap '' USR1; echo $$ >>pids; while :; do sleep 0.01; done"
        for policy, code in (("ignore", 124), ("signal:USR1", 122)):
            with self.subTest(policy=policy):
                process, _, pids = self.grow("--on-lost=" + policy, "--ttl=" + span(2), "--max-run=" + span(2), "-k", "100ms",
                                             tree=tree, count=1)
                self.break_lock("k")
                ended, said = process.wait(PATIENCE), process.stderr.read()
                if "was lost" not in said:
                    raise NotInTime(said)
                self.assertEqual(ended, code, said)
                self.assertIn("--max-run", said)
                self.assertFalse([pid for pid in pids if alive(pid)])
            os.remove(self.path("pids"))

    def text_of_hook(self):
        """A hook ends with the lease at the latest."""
        text = self.text("hook")
        if not text:
            raise NotInTime("the hook was ended before it was done")
        return text

    def test_hook(self):
        process, _, pids = self.grow("--ttl=" + span(3), "--on-lost=exec:echo $DIBS_LOCK_NAME >hook")
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertEqual(self.text_of_hook(), "k\n")
        self.assertFalse([pid for pid in pids if alive(pid)])

    def test_hook_ends_after_the_command(self):
        tree = "echo $$ >>pids; while ! test -e stop; do sleep 0.01; done"
        process, _, _ = self.grow("--on-lost=exec:touch stop; sleep 0.3; echo done >hook", "--ttl=" + span(3),
                                  tree=tree, count=1)
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertEqual(self.text_of_hook(), "done\n")

    def test_hook_that_does_not_end(self):
        process, _, pids = self.grow("--on-lost=exec:echo $$ >hook; exec sleep 1000",
                                     "--ttl=" + span(3), "-k", "100ms")
        self.break_lock("k")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertFalse([pid for pid in pids if alive(pid)])
        self.assertFalse(alive(int(self.text_of_hook())))

    def test_dead_before_another_has_it(self):
        tree = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.01; done"
        process, _, pids = self.grow("--hold-max=" + span(2), tree=tree, count=1)
        other = self.start("run", "k", "--", "echo", "got it")
        self.assertEqual(other.stdout.readline(), "got it\n")
        self.dead_in_time(pids)
        self.assertEqual(process.wait(PATIENCE), 122)


if __name__ == "__main__":
    main()
