"""breaker run, ls, show, open, close."""
# SPDX-License-Identifier: MIT
import json
import os
import signal

from support import Case, main


class Breaker(Case):
    def test_commands_that_fail_open_it(self):
        words = ("breaker", "run", "pay", "--threshold", "2", "--recovery", "1h")
        self.assertEqual(self.ok(*words, "--", "echo", "-n", "paid"), "paid")
        self.assertEqual(self.dibs(*words, "--", "sh", "-c", "exit 7").returncode, 7)
        shown = self.json("breaker", "show", "pay", "--json")
        self.assertEqual((shown["state"], shown["good"], shown["bad"]), ("closed", 1, 1))
        self.assertEqual(self.dibs(*words, "false").returncode, 1)
        refused = self.dibs(*words, "--", "echo", "never")
        self.assertEqual((refused.returncode, refused.stdout), (75, ""))
        self.assertRegex(refused.stderr, r"^dibs: pay is open; try again in (1h(\d\dm)?|59m(\d\ds)?)\n$")
        self.assertEqual(self.dibs(*words, "-q", "true").stderr, "")
        self.assertEqual(self.dibs(*words, "-E", "9", "true").returncode, 9)
        skipped = self.dibs(*words, "-E", "0", "true")
        self.assertEqual((skipped.returncode, skipped.stderr), (0, ""))
        answer = json.loads(self.dibs(*words, "--json", "true").stdout)
        self.assertFalse(answer["passed"])
        self.assertTrue(0 < answer["retry_after_ms"] <= 3960000)
        self.assertRegex(self.ok("breaker", "show", "pay"), r"^open, recovers in (1h|59m)")

    def test_a_good_try_closes_it(self):
        words = ("breaker", "run", "pay", "--threshold", "1", "--recovery", "1ms")
        self.assertEqual(self.dibs(*words, "false").returncode, 1)
        self.assertIn(self.json("breaker", "show", "pay", "--json")["state"], ("open", "half-open"))
        while self.dibs(*words, "true").returncode == 75:
            pass
        self.assertEqual(self.json("breaker", "show", "pay", "--json")["state"], "closed")

    def test_one_that_has_recovered_takes_the_first_command(self):
        words = ("breaker", "run", "pay", "--threshold", "1", "--recovery", "10s")
        self.ok("breaker", "open", "pay", "--recovery", "500ms")
        while self.json("breaker", "show", "pay", "--json")["state"] != "half-open":
            pass
        self.assertEqual(self.json("breaker", "ls", "--json")["breakers"][0]["state"], "half-open")
        self.ok(*words, "--", "true")
        self.assertEqual(self.json("breaker", "show", "pay", "--json")["state"], "closed")

    def test_by_hand(self):
        self.ok("breaker", "open", "x")
        refused = self.dibs("breaker", "run", "x", "--json", "true")
        self.assertEqual((refused.returncode, json.loads(refused.stdout)["retry_after_ms"]), (75, None))
        self.assertIn("dibs breaker close", self.dibs("breaker", "run", "x", "true").stderr)
        self.assertTrue(self.ok("breaker", "show", "x").startswith("forced; "))
        self.assertEqual(self.json("breaker", "close", "x", "--json")["state"], "closed")
        self.ok("breaker", "run", "x", "true")
        self.assertEqual(self.json("breaker", "open", "x", "--recovery", "1h", "--json")["state"], "open")

    def test_listing(self):
        self.assertEqual(self.ok("breaker", "ls", "--names"), "")
        for name in ("pay", "ls", "mail"):
            self.ok("breaker", "open", name, *(["--recovery", "1h"] if name == "mail" else []))
        self.ok("breaker", "close", "pay")
        self.ok("breaker", "run", "never", "true")
        self.assertEqual(self.ok("breaker", "ls", "--names"), "ls\nmail\npay\n")
        self.assertEqual(self.ok("breaker", "ls", "--names", "ma"), "mail\n")
        shown = self.json("breaker", "ls", "--json")["breakers"]
        self.assertEqual([(b["name"], b["state"]) for b in shown], [("ls", "forced"), ("mail", "open"), ("pay", "closed")])
        self.assertEqual((shown[0]["retry_after_ms"], shown[2]["retry_after_ms"]), (None, 0))
        self.assertTrue(0 < shown[1]["retry_after_ms"] <= 3960000)
        self.assertRegex(self.ok("breaker", "ls", "mail"), r"NAME +STATE +RECOVERS IN +GOOD +BAD +SLOW\nmail +open +(1h|59m)")
        self.assertTrue(self.ok("breaker", "show", "ls").startswith("forced; "))
        self.assertEqual(self.dibs("--url", "redis://127.0.0.1:1", "breaker", "ls").returncode, 69)

    def test_a_look_changes_nothing(self):
        words = ("breaker", "run", "pay", "--threshold", "100", "--", "false")
        self.ok("breaker", "open", "pay")
        version = self.json("breaker", "close", "pay", "--json")["version"]
        for _ in range(6):
            self.assertEqual(self.dibs(*words).returncode, 1)
        for _ in range(2):
            listed = self.json("breaker", "ls", "--json")["breakers"][0]
            for seen in (listed, self.json("breaker", "show", "pay", "--json")):
                self.assertEqual((seen["state"], seen["version"], seen["bad"]), ("closed", version, 6))
        self.assertEqual(self.dibs(*words).returncode, 1)

    def test_which_codes_are_bad(self):
        words = ("breaker", "run", "x", "--threshold", "1", "--fail-on", "2,4-6")
        for code in (1, 3, 7):
            self.assertEqual(self.dibs(*words, "--", "sh", "-c", f"exit {code}").returncode, code)
        self.assertEqual(self.dibs(*words, "--", "/nowhere/at/all").returncode, 127)
        self.assertEqual(self.json("breaker", "show", "x", "--json")["bad"], 0)
        self.assertEqual(self.dibs(*words, "--", "sh", "-c", "exit 5").returncode, 5)
        self.assertEqual(self.dibs(*words, "true").returncode, 75)
        for codes in ("", "x", "1,", "5-2", "256", "1-", "-1"):
            self.fails(64, "breaker", "run", "x", "--fail-on", codes, "true")

    def test_slow_commands_are_counted(self):
        words = ("breaker", "run", "x", "--slow", "1ms", "--slow-percent", "100", "--min-calls", "2")
        for _ in range(2):
            self.ok(*words, "sleep", "0.01")
        self.assertEqual(self.dibs(*words, "true").returncode, 75)

    def test_a_command_that_dibs_is_asked_to_end_counts_for_nothing(self):
        run = self.start("breaker", "run", "x", "--threshold", "1", "--", "sh", "-c", "echo on; exec sleep 100")
        run.stdout.readline()
        os.kill(run.pid, signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        self.assertEqual(self.json("breaker", "show", "x", "--json")["bad"], 0)

    def test_a_signal_that_the_command_takes_counts_for_nothing(self):
        script = "trap 'exit 1' USR1; echo on; while :; do sleep 0.01; done"
        run = self.start("breaker", "run", "x", "--threshold", "1", "--", "sh", "-c", script)
        run.stdout.readline()
        os.kill(run.pid, signal.SIGUSR1)
        self.assertEqual(run.wait(), 1)
        self.assertEqual(self.json("breaker", "show", "x", "--json")["state"], "open")

    def test_it_goes_on_while_the_store_is_away(self):
        away = ("--url", "redis://127.0.0.1:1", "breaker", "run", "x")
        went_on = self.dibs(*away, "--", "echo", "on")
        self.assertEqual((went_on.returncode, went_on.stdout), (0, "on\n"))
        self.assertIn("for this client alone", went_on.stderr)
        self.assertEqual(self.dibs("--url", "redis://127.0.0.1:1", "breaker", "show", "x").returncode, 69)


if __name__ == "__main__":
    main()
