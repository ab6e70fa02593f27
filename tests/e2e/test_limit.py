"""limit: tokens of a shared rate, then a command."""
# SPDX-License-Identifier: MIT
import json
import time

from support import Case, main


class Limit(Case):
    def test_it_runs_the_command_while_tokens_are_left(self):
        words = ("limit", "sms", "--rate", "2/h", "--burst", "2")
        self.assertEqual(self.ok(*words, "--", "echo", "-n", "sent"), "sent")
        self.assertEqual(self.ok(*words, "echo", "again"), "again\n")
        refused = self.dibs(*words, "--", "echo", "never")
        self.assertEqual((refused.returncode, refused.stdout), (75, ""))
        self.assertRegex(refused.stderr, r"^dibs: sms is over its limit; try again in (30m00s|29m\d\ds)\n$")
        self.assertEqual(self.dibs(*words, "-q").stderr, "")
        self.assertEqual(self.dibs(*words, "-E", "0").returncode, 0)

    def test_json_tells_the_outcome(self):
        words = ("limit", "api", "--rate", "60/h", "--burst", "3", "--json")
        granted = json.loads(self.ok(*words, "--tokens", "2"))
        self.assertEqual((granted["granted"], granted["remaining"], granted["retry_after_ms"]), (True, 1, None))
        refused = self.dibs(*words, "--tokens", "2", "--", "echo", "never")
        answer = json.loads(refused.stdout)
        self.assertEqual((refused.returncode, answer["granted"], answer["remaining"]), (75, False, 1))
        self.assertTrue(0 < answer["retry_after_ms"] <= 60000)
        self.assertEqual(self.ok(*words, "--", "echo", "x"), "x\n")

    def test_it_waits_for_its_token(self):
        words = ("limit", "slow", "--rate", "1/200ms", "-w", "1m")
        begun = time.monotonic()
        for _ in range(4):
            self.ok(*words)
        self.assertGreater(time.monotonic() - begun, 0.59)

    def test_the_exit_code_is_the_commands(self):
        words = ("limit", "x", "--rate", "1000/s", "--")
        self.assertEqual(self.dibs(*words, "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.dibs(*words, "/nowhere/at/all").returncode, 127)
        self.assertEqual(self.dibs(*words, "/dev/null").returncode, 126)

    def test_what_is_no_rate_is_refused(self):
        for rate in ("", "0/s", "x", "5/", "5/x", "5/.5s", "-1/s", "5/0s", "99999999999999999999/s"):
            self.fails(64, "limit", "x", "--rate", rate)
        self.assertIn("give --rate", self.dibs("limit", "x").stderr)
        self.assertIn("raise the burst", self.dibs("limit", "x", "--rate", "1/s", "--tokens", "2").stderr)

    def test_a_list(self):
        self.assertEqual(self.json("limit", "ls", "--json")["limits"], [])
        self.ok("limit", "sms-b", "--rate", "5/h")
        self.ok("limit", "sms-a", "--rate", "7/m", "--burst", "900", "--tokens", "800")
        self.ok("limit", "ls", "--rate", "1/7h")
        self.assertEqual(self.ok("limit", "ls", "--names"), "ls\nsms-a\nsms-b\n")
        rows = self.json("limit", "ls", "--json", "sms-")["limits"]
        self.assertEqual([(row["name"], row["count"], row["period_us"]) for row in rows],
                         [("sms-a", 7, 60000000), ("sms-b", 1, 720000000)])
        self.assertLessEqual(rows[0]["out"], 800)
        self.assertEqual(rows[1]["out"], 1)
        table = self.ok("limit", "ls")
        self.assertRegex(table, r"(?m)^NAME +RATE +OUT +BACK IN\n")
        self.assertRegex(table, r"(?m)^ls +1/25200000000us +1 +\S+$")
        self.assertRegex(table, r"(?m)^sms-a +7/m +\d+ +\S+$")
        self.assertRegex(table, r"(?m)^sms-b +5/h +1 +1[12]m\d\ds$")
        self.assertIn("after its options", self.fails(64, "limit", "ls", "sms-", "--json"))

    def test_a_store_that_is_away(self):
        away = ("--url", "redis://127.0.0.1:1", "limit", "x", "--rate", "1/h")
        self.assertEqual(self.dibs(*away, "--", "echo", "never").returncode, 69)
        went_on = self.dibs(*away, "--on-unavailable", "open", "--", "echo", "on")
        self.assertEqual((went_on.returncode, went_on.stdout), (0, "on\n"))
        self.assertIn("without a limit", went_on.stderr)


if __name__ == "__main__":
    main()
