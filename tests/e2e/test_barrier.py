"""barrier and barrier show."""
# SPDX-License-Identifier: MIT
import json
import signal

from support import Case, main, span, wait_until


class Barrier(Case):
    def shown(self, name):
        """How many have come, by a look; 0 without a barrier."""
        result = self.dibs("barrier", "show", name, "--json")
        return json.loads(result.stdout)["arrived"] if result.returncode == 0 else 0

    def party(self, name, *args):
        return self.start("barrier", name, *args)

    def await_party(self, name, arrived):
        wait_until(lambda: self.shown(name) == arrived, f"{arrived} at {name}")

    def test_all_pass_together(self):
        parties = [self.party("phase", "-n", "3", "--json") for _ in range(2)]
        self.await_party("phase", 2)
        text = self.ok("barrier", "show", "phase")
        self.assertIn("2 of 3 parties have come, 2 have a seat\n", text)
        self.assertIn(f":{parties[0].pid}\n", text)
        self.assertEqual(self.ok("barrier", "phase", "-n", "3"), "")
        answers = [json.loads(party.stdout.readline()) for party in parties]
        self.assertEqual([party.wait() for party in parties], [0, 0])
        self.assertTrue(all(answer["passed"] for answer in answers))
        self.assertEqual([answer["reason"] for answer in answers], [None, None])
        self.assertEqual(answers[0]["generation"], answers[1]["generation"])

    def test_barriers_are_listed(self):
        self.assertEqual(self.json("barrier", "ls", "--json")["barriers"], [])
        parties = [self.party(name, "-n", "2") for name in ("phase", "ls")]
        for name in ("phase", "ls"):
            self.await_party(name, 1)
        self.assertEqual(self.ok("barrier", "ls", "--names"), "ls\nphase\n")
        rows = self.json("barrier", "ls", "ph", "--json")["barriers"]
        self.assertEqual([(r["name"], r["parties"], r["seated"], r["arrived"]) for r in rows], [("phase", 2, 1, 1)])
        self.assertRegex(self.ok("barrier", "ls"), r"phase +2 +1 +1")
        for name in ("phase", "ls"):
            self.ok("barrier", name, "-n", "2")
        self.assertEqual([party.wait() for party in parties], [0, 0])

    def test_a_party_that_is_killed_is_named(self):
        ttl = span(0.6)
        dead = self.party("phase", "-n", "3", "--ttl", ttl)
        left = self.party("phase", "-n", "3", "--ttl", ttl)
        self.await_party("phase", 2)
        dead.kill()
        dead.wait()
        self.assertEqual(left.wait(), 122)
        self.assertIn("the barrier `phase` broke: ", left.stderr.read())

    def test_one_that_is_interrupted_leaves_at_once(self):
        gone = self.party("phase", "-n", "3", "--ttl", "1h")
        left = self.party("phase", "-n", "3", "--ttl", "1h")
        self.await_party("phase", 2)
        gone.send_signal(signal.SIGINT)
        self.assertEqual(gone.wait(), -signal.SIGINT)
        self.assertEqual(left.wait(), 122)

    def test_a_withdrawal_breaks_nothing(self):
        stays = self.party("phase", "-n", "3")
        left = self.party("phase", "-n", "3", "--withdraw")
        self.await_party("phase", 2)
        left.send_signal(signal.SIGTERM)
        self.assertEqual(left.wait(), -signal.SIGTERM)
        result = self.dibs("barrier", "phase", "-n", "3", "-w", "10ms", "--withdraw", "--json")
        self.assertEqual(result.returncode, 75)
        missing = "2 of 3 parties came; missing: 1 without a seat"
        self.assertIn(missing, result.stderr)
        self.assertIn(missing, json.loads(result.stdout)["reason"])
        self.await_party("phase", 1)
        back = self.party("phase", "-n", "3")
        self.ok("barrier", "phase", "-n", "3")
        self.assertEqual((stays.wait(), back.wait()), (0, 0))
        self.assertIn("no party has a seat", self.fails(1, "barrier", "show", "phase"))

    def test_exit_codes(self):
        self.fails(64, "barrier", "phase")
        self.fails(64, "barrier", "phase", "-n", "0")
        self.fails(64, "barrier", "phase", "other", "-n", "1")
        self.assertEqual(self.json("barrier", "phase", "-n", "1", "-w", "0", "--json")["status"], "OK")
        self.party("phase", "-n", "2")
        self.await_party("phase", 1)
        self.assertIn("has 2 parties, not 3", self.fails(64, "barrier", "phase", "-n", "3"))
        self.ok("latch", "count-down", "latch", "-n", "2")
        self.fails(64, "barrier", "latch", "-n", "2")
        self.fails(64, "barrier", "show", "latch")


if __name__ == "__main__":
    main()
