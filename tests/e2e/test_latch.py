"""latch count-down, wait, show, reset."""
# SPDX-License-Identifier: MIT
import json

from support import Case, main


class Latch(Case):
    def test_a_batch(self):
        waiter = self.start("latch", "wait", "batch", "-n", "3", "--json")
        self.assertEqual(self.ok("latch", "count-down", "batch", "-n", "3", "--id", "a"), "2 of 3 left\n")
        self.assertEqual(self.ok("latch", "count-down", "batch", "-n", "3", "--id", "a"), "2 of 3 left\n")
        shown = self.json("latch", "show", "batch", "--json")
        self.assertEqual((shown["name"], shown["open"], shown["count"], shown["left"]), ("batch", False, 3, 2))
        self.assertEqual(self.ok("latch", "count-down", "batch", "-n", "3"), "1 of 3 left\n")
        self.assertEqual(self.ok("latch", "count-down", "batch", "-n", "3"), "open\n")
        self.assertTrue(json.loads(waiter.stdout.readline())["open"])
        self.assertEqual(waiter.wait(), 0)
        self.assertEqual(self.ok("latch", "wait", "batch", "-n", "3", "-w", "0"), "")
        self.assertEqual(self.ok("latch", "reset", "batch"), "")
        self.assertRegex(self.ok("latch", "show", "batch"), r"^3 of 3 left, generation [1-9][0-9]*\n$")
        self.ok("latch", "count-down", "batch", "-n", "3")
        told = self.json("latch", "reset", "batch", "--json")
        self.assertEqual((told["name"], told["open"], told["count"], told["left"]), ("batch", False, 3, 3))

    def test_a_wait_in_vain_tells_what_is_left(self):
        told = self.json("latch", "wait", "batch", "-n", "2", "-w", "0", "--json", code=75)
        self.assertEqual((told["open"], told["count"], told["left"]), (False, 2, 2))
        self.ok("latch", "count-down", "batch", "-n", "2")
        told = self.json("latch", "wait", "batch", "-n", "2", "-w", "10ms", "--json", code=75)
        self.assertEqual((told["open"], told["left"]), (False, 1))

    def test_a_count_for_an_older_generation(self):
        words = ("latch", "count-down", "batch", "-n", "2")
        old = self.json(*words, "--id", "a", "--json")["generation"]
        self.assertEqual(self.ok(*words, "--generation", str(old), "--id", "a"), "1 of 2 left\n")
        now = self.json("latch", "reset", "batch", "--json")["generation"]
        self.assertIn(f"generation {old} of the latch `batch` is over; it has generation {now} now",
                      self.fails(1, *words, "--generation", str(old), "--id", "b"))
        self.assertEqual(self.ok("latch", "show", "batch"), f"2 of 2 left, generation {now}\n")
        self.assertEqual(self.json("latch", "ls", "--json")["latches"][0]["generation"], now)
        self.assertEqual(self.ok(*words, "--generation", str(now), "--id", "b"), "1 of 2 left\n")
        self.fails(64, *words, "--generation", "0")

    def test_latches_are_listed(self):
        self.assertEqual(self.json("latch", "ls", "--json")["latches"], [])
        self.ok("latch", "count-down", "b-1", "-n", "3")
        self.ok("latch", "count-down", "b-0", "-n", "1")
        self.ok("latch", "count-down", "other", "-n", "1")
        self.assertEqual(self.ok("latch", "ls", "--names", "b-"), "b-0\nb-1\n")
        rows = self.json("latch", "ls", "b-", "--json")["latches"]
        self.assertEqual([(r["name"], r["open"], r["left"], r["count"]) for r in rows], [("b-0", True, 0, 1), ("b-1", False, 2, 3)])
        self.assertRegex(self.ok("latch", "ls"), r"b-1 +closed +2 +3")

    def test_help_names_the_thing(self):
        """The exit code of a limit is about no lock."""
        self.assertNotIn("lock", self.ok("limit", "--help").split("--conflict-exit-code")[1].split("--json")[0])
        self.assertIn("did you mean 'latch count-down'", self.fails(64, "latch", "down", "batch"))
        self.assertIn("did you mean 'elect'", self.fails(64, "campaign", "e"))

    def test_exit_codes(self):
        self.fails(1, "latch", "show", "nothing")
        self.fails(1, "latch", "reset", "nothing")
        self.fails(75, "latch", "wait", "nothing", "-n", "1", "-w", "10ms")
        self.fails(64, "latch", "wait", "nothing")
        self.fails(64, "latch", "count-down", "nothing")
        self.fails(64, "latch", "count-down", "nothing", "-n", "0")
        self.ok("latch", "count-down", "few", "-n", "2")
        self.fails(64, "latch", "count-down", "few", "-n", "3")
        self.fails(64, "latch", "wait", "few", "-n", "3")


if __name__ == "__main__":
    main()
