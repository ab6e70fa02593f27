"""Waiting until locks are free, and the live table of them."""
# SPDX-License-Identifier: MIT
import json
import signal
import subprocess

from support import DIBS, PATIENCE, Case, main, span


class Waiting(Case):
    def test_free(self):
        self.assertEqual(self.ok("wait", "x", "y"), "")
        told = self.json("wait", "--json", "x")
        self.assertEqual((told["free"], told["locks"]), (True, []))

    def test_a_look_without_waiting(self):
        self.acquire("x", "--owner", "me")
        for never in (["-n"], ["-w", "0"]):
            self.assertRegex(self.fails(75, "wait", *never, "y", "x"), r"^dibs: x is held by \S+ pid \d+ \(me\) for ")
        told = self.json("wait", "-n", "-q", "--json", "y", "x", code=75)
        self.assertEqual((told["free"], [lock["name"] for lock in told["locks"]]), (False, ["x"]))
        self.assertEqual(told["locks"][0]["holders"][0]["label"], "me")
        self.assertEqual(self.fails(75, "wait", "-nq", "x"), "")
        self.fails(3, "wait", "-n", "-E", "3", "x")
        self.assertEqual(self.fails(0, "wait", "-n", "-E", "0", "x"), "")
        self.assertIn("one of", self.fails(64, "wait", "-n", "-w", "1s", "x"))
        self.assertIn("wait needs NAME", self.fails(64, "wait"))

    def test_a_name_that_is_kept_closed_is_not_free(self):
        self.ok("run", "--hold-min", "1h", "x", "--", "true")
        self.assertRegex(self.fails(75, "wait", "-n", "x"), r"x is kept closed by .* for another \d")

    def test_a_semaphore_with_a_permit_out_is_not_free(self):
        self.acquire("x", "-p", "3")
        self.fails(75, "wait", "-n", "x")

    def test_it_ends_after_all_holders(self):
        holders = [self.hold("a"), self.hold("b")]
        # The marks are made while the locks are held: a wait that ends early does not find them.
        script = '"$0" wait --interval 10ms a b && test -e a.mark -a -e b.mark && echo both'
        waiting = subprocess.Popen(
            ["sh", "-c", script, DIBS], stdout=subprocess.PIPE, text=True, env=self.env, cwd=self.folder
        )
        self.addCleanup(self.finish, waiting)
        for name, holder in zip("ab", holders):
            self.write(name + ".mark", "")
            self.let_go(holder)
        self.assertEqual(waiting.communicate(timeout=PATIENCE)[0], "both\n")

    def test_it_stands_in_no_queue_and_gives_up(self):
        self.acquire("x", "--ttl", "1h")
        waiting = self.start("wait", "-w", span(0.1), "--interval", "10ms", "--json", "x")
        while waiting.poll() is None:
            shown = self.show("x")
            self.assertEqual((len(shown["holders"]), shown["waiters"]), (1, []))
        self.assertEqual(waiting.returncode, 75)
        told = json.loads(waiting.stdout.read())
        self.assertFalse(told["free"])
        self.assertGreaterEqual(told["waited_ms"], 100)
        self.assertIn("x is held by", waiting.stderr.read())

    def test_a_signal_ends_it(self):
        self.acquire("x", "--ttl", "1h")
        waiting = self.start("wait", "x")
        waiting.terminate()
        self.assertEqual(waiting.wait(PATIENCE), -signal.SIGTERM)


if __name__ == "__main__":
    main()
