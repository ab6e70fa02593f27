"""`dibs run` as a script sees it: exit codes, waiting, options, what the child gets."""
# SPDX-License-Identifier: MIT
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import unittest

from runtools import DIBS, PACE, PATIENCE, NotInTime, RunCase, alive, guard_of, main, span, wait_until


class ExitCodes(RunCase):
    def check(self, code, *args, **kwargs):
        result = self.dibs(*args, **kwargs)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_status_of_the_command_passes_through(self):
        for code in (0, 1, 7, 63, 64, 75, 122, 255):
            self.check(code, "run", "k", "--", "sh", "-c", f"exit {code}")

    def test_death_by_signal_is_128_plus_its_number(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
            self.check(128 + number, "run", "k", "--", "sh", "-c", f"kill -{int(number)} $$")

    def test_usage(self):
        for args in (
            ["run"],
            ["run", "k"],
            ["run", "-c", "true", "k", "--", "true"],
            ["run", "--no-fork", "k", "--", "true"],
            ["run", "--on-lost=sing", "k", "--", "true"],
            ["run", "--on-lost=signal:NOSUCH", "k", "--", "true"],
            ["run", "--on-lost=exec:", "k", "--", "true"],
            ["run", "--signal=NOSUCH", "k", "--", "true"],
            ["run", "--once=@daily", "k", "--", "true"],
            ["run", "--once=", "k", "--", "true"],
            ["run", "--once-after=success", "k", "--", "true"],
            ["run", "--status-fd=99", "k", "--", "true"],
            ["run", "--ttl=fast", "k", "--", "true"],
            ["run", "", "--", "true"],
        ):
            with self.subTest(args=args):
                result = self.check(64, *args)
                self.assertIn("dibs: ", result.stderr)

    def test_no_fork_is_refused_with_its_reason(self):
        self.assertIn("beside the command", self.check(64, "run", "-F", "k", "--", "true").stderr)

    def test_store_out_of_reach(self):
        self.check(0, "run", "k", "--", "true")
        other = sqlite3.connect(self.path("locks.db"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        result = self.check(69, "run", "--store-timeout=" + span(0.1), "k", "--", "touch", "ran")
        self.assertIn("dibs: ", result.stderr)
        other.execute("ROLLBACK")
        other.close()
        self.assertFalse(os.path.exists(self.path("ran")))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_permission_refused(self):
        os.chmod(self.folder, 0o755)
        os.mkdir(self.path("closed"), 0o700)
        self.env["DIBS_URL"] = "sqlite:" + self.path("closed/locks.db")
        # The checkout may be where others cannot go, as below a home of mode 0700.
        program = shutil.copy(DIBS, self.path("dibs"))
        os.chmod(program, 0o755)
        self.check(0, "version", program=program, user=65534)
        self.check(77, "run", "k", "--", "true", program=program, user=65534)

    def test_unfit_store(self):
        with open(self.path("locks.db"), "w", encoding="utf-8") as file:
            file.write("this is not a database\n" * 100)
        self.check(78, "run", "k", "--", "true")

    def test_busy(self):
        self.hold("k")
        result = self.check(75, "run", "-n", "k", "--", "touch", "ran")
        self.assertIn("dibs: ", result.stderr)
        self.check(75, "run", "-w", "0", "k", "--", "touch", "ran")
        self.check(75, "run", "-w", span(0.05), "k", "--", "touch", "ran")
        self.check(9, "run", "-n", "-E", "9", "k", "--", "touch", "ran")
        self.assertEqual(self.check(75, "run", "-nq", "k", "--", "touch", "ran").stderr, "")
        self.assertEqual(self.check(0, "run", "-nE0", "k", "--", "touch", "ran").stderr, "")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_command_not_found_and_not_executable(self):
        with open(self.path("plain"), "w", encoding="utf-8") as file:
            file.write("text\n")
        self.assertIn("nosuch", self.check(127, "run", "k", "--", "./nosuch").stderr)
        self.check(127, "run", "k", "--", "no-such-command-anywhere")
        self.check(126, "run", "k", "--", "./plain")
        self.check(126, "run", "k", "--", ".")
        self.check(125, "run", "k", "--", "x" * 5000)
        self.check(0, "run", "-n", "k", "--", "true")

    def test_guard_killed(self):
        process = self.start("run", "k", "--", "sleep", "1000")
        guard = wait_until(lambda: guard_of(process.pid), "the guard")
        os.kill(guard, signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE), 125)
        self.assertIn("guard", process.stderr.read())
        self.check(0, "run", "-n", "k", "--", "true")


class Waiting(RunCase):
    def test_waits_without_limit_by_default(self):
        holder = self.hold("k")
        waiting = self.start("run", "k", "--", "echo", "ran")
        wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
        self.let_go(holder)
        self.assertEqual(waiting.wait(PATIENCE), 0)
        self.assertEqual(waiting.stdout.read(), "ran\n")

    def test_granted_within_the_wait(self):
        holder = self.hold("k")
        waiting = self.start("run", "-w", "50s", "k", "--", "true")
        wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
        self.let_go(holder)
        self.assertEqual(waiting.wait(PATIENCE), 0)

    def test_no_word_about_waiting_without_a_terminal(self):
        holder = self.hold("k")
        waiting = self.dibs("run", "-w", span(1.5), "k", "--", "true")
        self.assertEqual(waiting.returncode, 75)
        self.assertNotIn("waiting for", waiting.stderr)
        self.let_go(holder)

    def test_retries(self):
        holder = self.hold("k")
        again = self.dibs("run", "-n", "--retries=3", "--retry-delay=10ms", "k", "--", "true")
        self.assertEqual(again.returncode, 75)
        alone = self.dibs("run", "--retries=3", "--retry-delay=10ms", "k", "--", "true")
        self.assertEqual(alone.returncode, 75)
        patient = self.start("run", "-n", "--retries=100000", "--retry-delay=10ms", "k", "--", "true")
        self.let_go(holder)
        self.assertEqual(patient.wait(PATIENCE), 0)

    def test_priority_goes_first(self):
        holder = self.hold("k")
        low = self.start("run", "k", "--", "sh", "-c", "echo low >>order")
        wait_until(lambda: self.waiters("k") == 1, "the first waiter")
        high = self.start("run", "--priority=5", "k", "--", "sh", "-c", "echo high >>order")
        wait_until(lambda: self.waiters("k") == 2, "the second waiter")
        self.let_go(holder)
        self.assertEqual([low.wait(PATIENCE), high.wait(PATIENCE)], [0, 0])
        self.assertEqual(self.text("order"), "high\nlow\n")

    def test_a_signal_ends_the_wait(self):
        holder = self.hold("k")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            waiting = self.start("run", "k", "--", "touch", "ran")
            wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
            waiting.send_signal(number)
            self.assertEqual(waiting.wait(PATIENCE), -number)
            self.assertEqual(self.waiters("k"), 0)
        self.let_go(holder)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_an_ignored_signal_is_ignored(self):
        holder = self.hold("k")
        waiting = self.start("run", "k", "--", "true",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
        waiting.send_signal(signal.SIGHUP)
        self.let_go(holder)
        self.assertEqual(waiting.wait(PATIENCE), 0)


class Options(RunCase):
    def test_environment_of_the_command(self):
        given = {"DIBS_REDIS_PASSWORD": "a", "REDISCLI_AUTH": "b", "REDIS_URL": "redis://c", "PGPASSWORD": "d"}
        result = self.dibs("run", "--ttl=20s", "--", "a name", "--", "env", "-0", env={**self.env, **given})
        values = dict(line.split("=", 1) for line in result.stdout.split("\0")[:-1])
        self.assertEqual(values["DIBS_LOCK_NAME"], "a name")
        self.assertEqual(values["DIBS_LOCK_TTL_MS"], "20000")
        self.assertRegex(values["DIBS_LOCK_OWNER"], "^[0-9a-f]{32}$")
        # The caller's own are passed on as they are, passwords too.
        others = {name: value for name, value in values.items() if not name.startswith("DIBS_LOCK_")}
        self.assertEqual(others, {**self.env, **given})
        self.assertGreater(int(values["DIBS_LOCK_TOKEN"]), 0)
        self.assertEqual(values["DIBS_LOCK_FENCE"], values["DIBS_LOCK_TOKEN"])
        later = self.dibs("run", "a name", "--", "sh", "-c", "echo $DIBS_LOCK_TOKEN")
        self.assertGreater(int(later.stdout), int(values["DIBS_LOCK_TOKEN"]))

    def test_shell_string(self):
        result = self.dibs("run", "-c", "echo $((6 * 7)); exit 3", "k")
        self.assertEqual((result.returncode, result.stdout), (3, "42\n"))

    def test_stdin(self):
        given = self.dibs("run", "k", "--", "cat", stdin=None, input="hello\n")
        self.assertEqual(given.stdout, "hello\n")
        null = self.dibs("run", "--stdin=null", "k", "--", "cat", stdin=None, input="hello\n")
        self.assertEqual((null.returncode, null.stdout), (0, ""))

    def test_other_descriptors_are_handed_on(self):
        reader, writer = os.pipe()
        result = self.dibs("run", "k", "--", "sh", "-c", f"echo through >&{writer}", pass_fds=[writer])
        os.close(writer)
        self.assertEqual(result.returncode, 0, result.stderr)
        with os.fdopen(reader) as stream:
            self.assertEqual(stream.read(), "through\n")

    def test_the_command_starts_with_signals_as_they_were(self):
        script = "import signal,sys; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
        result = self.dibs("run", "k", "--", "python3", "-c", script)
        self.assertEqual(result.stdout, "[]\n", result.stderr)

    def test_owner_is_shown_to_others(self):
        holder = self.hold("k", "--owner=nightly")
        self.assertEqual(self.show("k")["holders"][0]["label"], "nightly")
        self.let_go(holder)

    def test_hold_min_keeps_others_out(self):
        self.assertEqual(self.dibs("run", "--hold-min=30s", "k", "--", "true").returncode, 0)
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 75)
        self.assertEqual(self.dibs("run", "--hold-min=300ms", "other", "--", "true").returncode, 0)
        self.assertEqual(self.dibs("run", "other", "--", "true").returncode, 0)

    def test_hold_max_ends_it(self):
        process = self.start("run", "--ttl=" + span(0.4), "--hold-max=" + span(0.2), "k", "--", "sleep", "1000")
        self.assertEqual(process.wait(PATIENCE), 122)
        self.assertEqual(self.dibs("run", "k", "--", "true").returncode, 0)

    def test_hold_max_ends_it_no_sooner_and_says_why(self):
        runs = []
        for ttl, hold in ((2, 0.6), (0.6, 0.72)):
            read, write = os.pipe()
            runs.append((hold * PACE, read, self.start(
                "run", "--ttl=" + span(ttl), "--hold-max=" + span(hold), f"--status-fd={write}", f"k{ttl}", "--",
                "sleep", "1000", pass_fds=[write])))
            os.close(write)
        for hold, read, process in runs:
            with os.fdopen(read, encoding="utf-8") as file:
                held = json.loads(file.readline())["held_ms"] / 1000
            self.assertEqual(process.wait(PATIENCE), 122)
            said = process.stderr.read()
            # A renewal, or a start, that was late explains both.
            if held < 0.8 * hold or "--hold-max is over" not in said:
                raise NotInTime(f"held for {held} s of {hold} s: {said}")

    def test_max_run(self):
        result = self.dibs("run", "--max-run=100ms", "k", "--", "sleep", "1000")
        self.assertEqual(result.returncode, 124)
        self.assertIn("--max-run", result.stderr)

    def test_max_run_kills_what_ignores_the_signal(self):
        script = "trap '' TERM; echo $$ >pid; while :; do sleep 0.01; done"
        result = self.dibs("run", "--max-run=" + span(0.2), "-k", "50ms", "k", "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 124)
        if not self.text("pid"):
            raise NotInTime("the command did not begin in time")
        self.assertFalse(alive(int(self.text("pid"))))

    def test_max_run_sends_the_signal_asked_for(self):
        script = "trap 'echo told >told; exit 0' USR2; while :; do sleep 0.01; done"
        result = self.dibs("run", "--max-run=" + span(0.3), "--signal=USR2", "k", "--", "sh", "-c", script)
        if not self.text("told"):
            raise NotInTime("the command did not begin in time, or its end was late")
        self.assertEqual((result.returncode, self.text("told")), (124, "told\n"))

    def test_signals_are_forwarded(self):
        for number, name in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"),
                             (signal.SIGHUP, "HUP"), (signal.SIGUSR1, "USR1")):
            script = f"trap 'echo got; exit 5' {name}; echo ready; while :; do sleep 0.01; done"
            process = self.start("run", "k", "--", "sh", "-c", script)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            self.assertEqual(process.wait(PATIENCE), 5)
            self.assertEqual(process.stdout.read(), "got\n")

    def test_a_signal_that_kills_the_command_is_its_status(self):
        process = self.start("run", "k", "--", "sh", "-c", "echo ready; exec sleep 1000")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 143)

    def test_foreground_stays_in_the_group(self):
        script = "echo $(ps -o pgid= -p $$)"
        apart = self.start("run", "k", "--", "sh", "-c", script, start_new_session=True)
        self.assertEqual(apart.wait(PATIENCE), 0)
        self.assertNotEqual(int(apart.stdout.read()), apart.pid)
        same = self.start("run", "--foreground", "k", "--", "sh", "-c", script, start_new_session=True)
        self.assertEqual(same.wait(PATIENCE), 0)
        self.assertEqual(int(same.stdout.read()), same.pid)

    def test_fifty_in_a_race_lose_no_update(self):
        with open(self.path("counter"), "w", encoding="utf-8") as file:
            file.write("0\n")
        # The marker is made with O_EXCL (noclobber): an overlap makes it fail.
        script = (
            "set -C; : >inside || { echo overlap >>overlaps; exit 1; }; set +C;"
            " read n <counter; n=$((n + 1)); echo $n >counter; rm inside"
        )
        racers = [self.start("run", "k", "--", "sh", "-c", script) for _ in range(50)]
        for racer in racers:
            self.assertEqual(racer.wait(PATIENCE), 0, racer.stderr.read())
        self.assertEqual(self.text("counter"), "50\n")
        self.assertEqual(self.text("overlaps"), "")


class Once(RunCase):
    def run_once(self, slot, name="k"):
        result = self.dibs("run", f"--once={slot}", name, "--", "sh", "-c", "echo ran >>ran")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_a_text_slot_runs_once(self):
        self.run_once("release 4")
        self.run_once("release 4")
        self.assertEqual(self.text("ran"), "ran\n")
        self.run_once("release 5")
        self.run_once("release 4", name="another")
        self.assertEqual(self.text("ran"), "ran\n" * 3)

    def test_a_word_that_looks_like_a_slot_of_time_is_refused(self):
        for word, meant in (("daily", "day"), ("Days", "day"), ("minut", "minute"), ("hourly", "hour"), ("@daily", "day"),
                            ("weekly", "minute, hour or day"), ("month", "minute, hour or day"), ("7d", "minute, hour or day"),
                            ("@reboot", "minute, hour or day")):
            result = self.dibs("run", "--once", word, "k", "--", "touch", "ran")
            self.assertEqual((result.returncode, result.stdout), (64, ""), word)
            self.assertIn(f"run: --once has no slot '{word}'; did you mean {meant}? For a text of that name write text:{word}\n",
                          result.stderr)
        self.assertEqual(self.dibs("run", "--once", "text:", "k", "--", "true").returncode, 64)
        self.assertEqual(self.text("ran"), "")
        for word in ("text:daily", "text:daily", "text:day", "2026-W47", "text:2026-W47", "day-shift", "a longer text of someone's own"):
            self.run_once(word)
        self.assertEqual(self.text("ran"), "ran\n" * 5)
        self.assertEqual(self.dibs("state", "get", "once:k").stdout, "text a longer text of someone's own\n")

    def test_cron_gets_no_mail_from_who_skips(self):
        self.run_once("x")
        for options in ([], ["-n", "-E", "0"], ["-q"]):
            result = self.dibs("run", *options, "--once=x", "k", "--", "touch", "again")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), options)
        told = self.dibs("run", "-v", "--once=x", "k", "--", "touch", "again")
        self.assertEqual(told.returncode, 0)
        self.assertIn('the slot "text x" has been used already', told.stderr)
        self.assertFalse(os.path.exists(self.path("again")))

    def test_a_slot_of_time_runs_once(self):
        # Another day may begin between two runs, but not twice among three.
        for _ in range(3):
            self.run_once("day")
        self.assertIn(self.text("ran"), ("ran\n", "ran\n" * 2))
        self.assertRegex(self.dibs("state", "get", "once:k").stdout, r"^day \d{4}-\d\d-\d\dZ$")

    def test_a_clock_that_is_behind_starts_nothing(self):
        self.dibs("state", "set", "once:k", "minute 9999-01-01T00:00Z")
        self.run_once("minute")
        self.assertEqual(self.text("ran"), "")
        self.run_once("hour")
        self.assertEqual(self.text("ran"), "ran\n")

    def test_who_is_late_does_not_wait_for_the_lock(self):
        holder = self.hold("k", "--once=x")
        self.run_once("x")
        self.assertEqual(self.text("ran"), "")
        self.let_go(holder)

    def test_of_many_at_once_one_runs(self):
        many = [self.start("run", "--once=x", "k", "--", "sh", "-c", "echo ran >>ran")
                for _ in range(10)]
        self.assertEqual([one.wait(PATIENCE) for one in many], [0] * 10)
        self.assertEqual(self.text("ran"), "ran\n")

    def test_a_failure_uses_the_slot_up_unless_success_is_asked_for(self):
        script = "echo ran >>ran; exit $1"
        for when, runs in ((["--once-after=start"], 1), ([], 1), (["--once-after=success"], 2)):
            with self.subTest(when=when):
                self.dibs("state", "del", "once:k")
                codes = [self.dibs("run", "--once=x", *when, "k", "--", "sh", "-c", script, "sh", code).returncode
                         for code in ("3", "0", "3")]
                self.assertEqual(codes, [3, 0, 0])
                self.assertEqual(self.text("ran"), "ran\n" * runs)
                os.remove(self.path("ran"))

    def test_of_many_at_once_all_but_one_find_the_success(self):
        many = [self.start("run", "--once=x", "--once-after=success", "k", "--", "sh", "-c", "echo ran >>ran")
                for _ in range(4)]
        self.assertEqual([one.wait(PATIENCE) for one in many], [0] * 4)
        self.assertEqual(self.text("ran"), "ran\n")

    def test_a_success_that_cannot_be_recorded_is_told(self):
        result = self.dibs("run", "--once=x", "--once-after=success", "k", "--", "mv", "locks.db", "gone.db")
        self.assertEqual(result.returncode, 0)
        self.assertIn("the next run in the slot", result.stderr)

    def test_a_command_that_cannot_start_leaves_the_slot(self):
        self.assertEqual(self.dibs("run", "--once=x", "k", "--", "./nosuch").returncode, 127)
        self.run_once("x")
        self.assertEqual(self.text("ran"), "ran\n")

    def test_a_command_that_cannot_start_leaves_the_slot_before(self):
        self.run_once("x")
        self.assertEqual(self.dibs("run", "--once=y", "k", "--", "./nosuch").returncode, 127)
        self.run_once("x")
        self.assertEqual(self.text("ran"), "ran\n")
        self.run_once("y")
        self.assertEqual(self.text("ran"), "ran\nran\n")


class DryRun(RunCase):
    def would(self, *args, code=0):
        """What a run would do, and why, told alike to people and to programs."""
        text = self.dibs("run", "--dry-run", *args)
        self.assertEqual(text.returncode, code, text.stderr)
        result = self.dibs("run", "--json", "--dry-run", *args)
        self.assertEqual(result.returncode, code, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual((told["schema"], told["code"]), (1, code))
        self.assertIn(f"would: {told['would']} ({told['why']}), exit code {code}\n", text.stdout)
        self.assertFalse(os.path.exists(self.path("ran")))
        return told["would"]

    def test_nothing_is_taken(self):
        told = self.dibs("run", "--dry-run", "--ttl=7s", "--meta=a=b", "--once=x", "k", "--", "touch", "ran").stdout
        for line in ("store: " + self.env["DIBS_URL"], "lock: k is free", "slot: text x, not used",
                     "command: touch ran", "  ttl                  7s", "  wait                 wait without limit",
                     "  meta                 a=b"):
            self.assertIn(line + "\n", told)
        self.assertEqual(self.would("--once=x", "k", "--", "touch", "ran"), "start")
        self.assertIsNone(self.show("k"))
        self.assertEqual(self.dibs("state", "ls", "--names").stdout, "")
        del self.env["DIBS_URL"]
        self.assertIn("this user's own (no URL)", self.dibs("run", "--dry-run", "k", "--", "true").stdout)

    def test_a_busy_lock(self):
        holder = self.hold("k", "--owner=nightly")
        run = ("k", "--", "touch", "ran")
        told = self.dibs("run", "--dry-run", *run)
        self.assertIn("lock: k is busy, held by ", told.stdout)
        self.assertIn("nightly", told.stdout)
        self.assertEqual(self.would(*run, code=75), "wait")
        self.assertEqual(self.would("-w", "3s", *run, code=75), "wait")
        self.assertEqual(self.would("-n", *run, code=75), "give up")
        self.assertEqual(self.would("-n", "-E", "0", *run), "give up")
        self.assertEqual(self.would("free", "--also", *run, code=75), "wait")
        self.assertEqual(self.would("-p", "2", *run, code=64), "fail")
        self.env["DIBS_ENABLED"] = "no"
        self.assertEqual(self.would("-n", *run), "start")
        del self.env["DIBS_ENABLED"]
        self.assertIsNone(self.show("free"))
        self.assertEqual(self.waiters("k"), 0)
        self.let_go(holder)
        self.assertEqual(self.would("-n", *run), "start")

    def test_kinds(self):
        holders = [self.hold("rw", "-s"), self.hold("sem", "-p", "3", "--take", "2")]
        self.assertEqual(self.would("-s", "rw", "--", "true"), "start")
        self.assertEqual(self.would("rw", "--", "true", code=75), "wait")
        self.assertEqual(self.would("-p", "3", "sem", "--", "true"), "start")
        self.assertEqual(self.would("-p", "3", "--take", "2", "sem", "--", "true", code=75), "wait")
        self.assertEqual(self.would("-p", "4", "sem", "--", "true", code=64), "fail")
        writer = self.start("run", "rw", "--", "true")
        wait_until(lambda: self.waiters("rw"), "a waiter")
        self.assertEqual(self.would("-s", "rw", "--", "true", code=75), "wait")
        self.assertEqual(self.would("-s", "--priority=1", "rw", "--", "true"), "start")
        self.assertEqual(self.would("-s", "--barge", "rw", "--", "true"), "start")
        for holder in holders:
            self.let_go(holder)
        self.assertEqual(writer.wait(PATIENCE), 0)

    def test_what_would_not_start(self):
        self.assertEqual(self.would("k", "--", "./nosuch", code=127), "fail")
        self.assertEqual(self.would("k", "--", "no-such-command", code=127), "fail")
        self.assertEqual(self.would("k", "--", self.folder, code=126), "fail")
        self.dibs("run", "--once=x", "k", "--", "true")
        self.assertEqual(self.would("--once=x", "k", "--", "touch", "ran"), "skip")
        nested = self.dibs("run", "k", "--", DIBS, "run", "--dry-run", "-n", "k", "--", "true")
        self.assertIn("would: start (the lock is held further up)", nested.stdout)
        self.assertEqual(self.dibs("run", "--json", "k", "--", "true").returncode, 64)


class StatusLine(RunCase):
    def status(self, *args):
        reader, writer = os.pipe()
        result = self.dibs("run", f"--status-fd={writer}", *args, pass_fds=[writer])
        os.close(writer)
        with os.fdopen(reader) as stream:
            lines = stream.read().splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        status = json.loads(lines[0])
        self.assertEqual(status["code"], result.returncode)
        self.assertEqual((status["schema"], status["name"]), (1, "k"))
        return status

    def test_a_run(self):
        status = self.status("k", "--", "sh", "-c", "exit 3")
        self.assertTrue(status["acquired"])
        self.assertEqual((status["exit"], status["signal"], status["lost"]), (3, None, False))
        self.assertGreater(status["fence"], 0)
        self.assertGreaterEqual(status["held_ms"], 0)

    def test_a_death(self):
        status = self.status("k", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual((status["exit"], status["signal"], status["code"]), (None, 9, 137))

    def test_not_acquired(self):
        holder = self.hold("k")
        status = self.status("-w", span(0.05), "k", "--", "true")
        self.assertFalse(status["acquired"])
        self.assertEqual((status["exit"], status["fence"], status["code"]), (None, 0, 75))
        self.let_go(holder)

    def test_not_started(self):
        self.assertEqual(self.status("k", "--", "./nosuch")["code"], 127)

    def test_skipped(self):
        self.assertFalse(self.status("--once=x", "k", "--", "true")["skipped"])
        self.assertTrue(self.status("--once=x", "k", "--", "true")["skipped"])

    def test_the_command_does_not_have_it(self):
        reader, writer = os.pipe()
        result = self.dibs("run", f"--status-fd={writer}", "k", "--", "sh", "-c",
                           f"test ! -e /proc/self/fd/{writer}", pass_fds=[writer])
        os.close(writer)
        os.close(reader)
        self.assertEqual(result.returncode, 0)


class Nested(RunCase):
    def test_the_same_lock_inside(self):
        script = f"{DIBS} run k -- sh -c 'echo $DIBS_LOCK_TOKEN $DIBS_LOCK_NAME; exit 4'"
        result = self.dibs("run", "k", "--", "sh", "-c", "echo $DIBS_LOCK_TOKEN; " + script)
        self.assertEqual(result.returncode, 4, result.stderr)
        outer, inner = result.stdout.splitlines()
        self.assertEqual(inner, outer + " k")

    def test_through_another_lock(self):
        script = f"{DIBS} run b -- {DIBS} run -n a -- {DIBS} run -n b -- echo inside"
        result = self.dibs("run", "a", "--", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stdout), (0, "inside\n"), result.stderr)

    def test_it_is_still_held_after_the_inner_run(self):
        script = f"{DIBS} run k -- true; env -u DIBS_LOCK_CHAIN {DIBS} run -n k -- true; echo $?"
        self.assertEqual(self.dibs("run", "k", "--", "sh", "-c", script).stdout, "75\n")

    def test_names_with_odd_characters(self):
        name = "a,b:c%20 d/ü"
        result = self.dibs("run", name, "--", DIBS, "run", "-n", name, "--", "echo", "inside")
        self.assertEqual((result.returncode, result.stdout), (0, "inside\n"), result.stderr)

    def test_a_name_that_is_the_end_of_another_is_another(self):
        script = f"{DIBS} run -n k -- echo inside"
        holder = self.hold("k")
        result = self.dibs("run", "kk", "--", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stdout), (75, ""))
        self.let_go(holder)

    def test_what_the_environment_claims_is_checked(self):
        holder = self.hold("k")
        self.env["DIBS_LOCK_CHAIN"] = "k:" + "0" * 32 + ":17"
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 75)
        self.env["DIBS_LOCK_CHAIN"] = "k::,,k:xyz"
        self.assertEqual(self.dibs("run", "-n", "k", "--", "true").returncode, 75)
        self.let_go(holder)

    def test_another_store_is_another_lock(self):
        script = f"DIBS_URL=sqlite:{self.path('other.db')} {DIBS} run --status-fd=1 -n k -- true"
        result = self.dibs("run", "k", "--", "sh", "-c", script)
        self.assertFalse(json.loads(result.stdout)["nested"])

    def test_while_the_store_is_away(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.env["DIBS_URL"] = f"redis://127.0.0.1:{nobody.getsockname()[1]}"
            inner = [DIBS, "run", "--on-unavailable", "open", "k", "--", "echo", "inside"]
            result = self.dibs("run", "--on-unavailable", "open", "k", "--", *inner)
            self.assertEqual((result.returncode, result.stdout), (0, "inside\n"), result.stderr)
            self.assertEqual(result.stderr.count("the store is away"), 2, result.stderr)
            self.env["DIBS_ON_UNAVAILABLE"] = "open"
            inner[3] = "fail"
            self.assertEqual(self.dibs("run", "k", "--", *inner).returncode, 69)


if __name__ == "__main__":
    main()
