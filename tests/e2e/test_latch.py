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
        self.ok("latch", "reset", "batch")
        self.assertEqual(self.ok("latch", "show", "batch"), "3 of 3 left\n")

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
