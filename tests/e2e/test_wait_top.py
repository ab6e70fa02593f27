"""Waiting until locks are free, and the live table of them."""
# SPDX-License-Identifier: MIT
import json
import signal
import subprocess

from runtools import read_stat
from support import DIBS, PATIENCE, Case, Screen, main, span, wait_until


class Waiting(Case):
    def test_free(self):
        self.assertEqual(self.ok("wait", "x", "y"), "")
        told = self.json("wait", "--json", "x")
        self.assertEqual((told["free"], told["locks"]), (True, []))

    def test_a_look_without_waiting(self):
        self.acquire("x", "--owner", "me", "--ttl", "1h")
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
        self.acquire("x", "-p", "3", "--ttl", "1h")
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

    def test_it_looks_before_the_interval_is_over(self):
        """At first, and when the last lease ends by itself."""
        token = self.acquire("x", "--ttl", "1h")
        waiting = self.start("wait", "-v", "--interval", "1h", "x")
        self.assertIn("waiting: x is held", waiting.stderr.readline())
        self.ok("release", "x", "--token", token)
        self.assertEqual(waiting.wait(PATIENCE), 0)
        self.acquire("y", "--ttl", span(0.2))
        self.acquire("z", "--ttl", span(0.3))
        self.ok("wait", "--interval", "1h", "y", "z")

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


class Top(Case):
    HEADS = "NAME HOLDER MODE HELD LEFT WAITING WAITED NEXT".split()

    @staticmethod
    def names(lines):
        """The names in the rows, below a summary, a message and the heads."""
        return [line.split()[0] for line in lines[3:] if line.strip()]

    def test_off_a_terminal_it_looks_once(self):
        self.acquire("x", "--owner", "me", "--ttl", "1h")
        self.acquire("other", "--ttl", "1h")
        heads, row = self.ok("top", "x").splitlines()
        self.assertEqual(heads.split(), self.HEADS)
        self.assertRegex(row, r"^x +\S+ pid \d+ \(me\) +exclusive +\S+ +5\dm\d\ds +0 +- +-$")
        told = [json.loads(line) for line in self.ok("top", "--json", "-n", "2", "-d", "10ms").splitlines()]
        self.assertEqual([[lock["name"] for lock in look["locks"]] for look in told], [["other", "x"]] * 2)
        self.assertEqual([(look["held"], look["waiting"], look["stale"]) for look in told], [(2, 0, 0)] * 2)

    def test_once_on_a_terminal(self):
        self.acquire("x", "--ttl", "1h")
        code, shown = self.on_terminal("top", "--once", env={**self.env, "TERM": "xterm"})
        self.assertEqual((code, shown.splitlines()[1].split()[0]), (0, "x"))
        self.assertNotIn("\033[?1049h", shown)

    def test_a_terminal_that_cannot_be_drawn_on(self):
        code, shown = self.on_terminal("top", env={**self.env, "TERM": "dumb"})
        self.assertEqual((code, shown.split()), (0, self.HEADS))

    def test_live(self):
        token = self.acquire("x", "--owner", "me", "--ttl", "1h")
        waiter = self.start("acquire", "x", "--owner", "you", "--ttl", "1h")
        screen = Screen(self, "top", "-d", "20ms", columns=150)
        lines = screen.frame(lambda lines: "1 held, 1 waiting, 0 stale" in lines[0], "a holder and a waiter")
        self.assertEqual(lines[2].split(), self.HEADS)
        self.assertRegex(lines[3], r"^x +\S+ pid \d+ \(me\) +exclusive +\S+ +5\dm\d\ds +1 +\S+ +\S+ pid \d+ \(you\)$")
        self.assertFalse(screen.restored())
        self.ok("release", "x", "--token", token)
        self.assertEqual(waiter.wait(PATIENCE), 0)
        lines = screen.frame(lambda lines: "1 held, 0 waiting" in lines[0], "the next holder")
        self.assertIn("(you)", lines[3])
        screen.press(b"q")
        self.assertEqual(screen.process.wait(PATIENCE), 0)
        self.assertTrue(screen.restored())
        screen.read_until(lambda shown: shown.endswith(b"\033[?7h\033[?25h\033[?1049l"), "the first screen")

    def test_a_signal_restores_the_terminal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            screen = Screen(self, "top", "-d", "1h")
            screen.frame(lambda lines: "0 held" in lines[0], "a table")
            screen.process.send_signal(number)
            self.assertEqual(screen.process.wait(PATIENCE), -number)
            self.assertTrue(screen.restored())
            screen.read_until(lambda shown: shown.endswith(b"\033[?1049l"), "the first screen")

    def test_keys_and_size(self):
        """Neither waits for the next look, which is an hour away."""
        for name, ttl in (("c", "3h"), ("a", "2h"), ("b", "1h")):
            self.acquire(name, "--ttl", ttl)
        screen = Screen(self, "top", "-d", "1h", "--sort", "left")
        self.assertEqual(self.names(screen.frame(lambda lines: "3 held" in lines[0], "a table")), ["b", "a", "c"])
        screen.press(b"s")
        self.assertEqual(self.names(screen.frame(lambda lines: "by held" in lines[0], "another order")), ["c", "a", "b"])
        screen.press(b"s")
        self.assertEqual(self.names(screen.frame(lambda lines: "by name" in lines[0], "a third")), ["a", "b", "c"])
        screen.resize(5, 30)
        screen.process.send_signal(signal.SIGWINCH)
        lines = screen.frame(lambda lines: lines[-1] == "and 2 more", "fewer lines")
        self.assertEqual((len(lines), max(map(len, lines))), (5, 30))
        self.acquire("d", "--ttl", "1h")
        screen.press(b" ")
        screen.frame(lambda lines: lines[-1] == "and 3 more", "one more lock")

    def test_a_stop_gives_the_terminal_back(self):
        screen = Screen(self, "top", "-d", "1h")
        screen.frame(lambda lines: "0 held" in lines[0], "a table")
        screen.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: read_stat(screen.process.pid)[1] == "T", "a stopped process")
        self.assertTrue(screen.restored())
        screen.process.send_signal(signal.SIGCONT)
        screen.frame(lambda lines: "0 held" in lines[0], "the table again")
        self.assertFalse(screen.restored())
        screen.press(b"q")
        self.assertEqual(screen.process.wait(PATIENCE), 0)
        self.assertTrue(screen.restored())

    def test_it_ends_with_its_terminal(self):
        """Also when no signal says so: this one is not the controlling terminal."""
        screen = Screen(self, "top", "-d", "20ms")
        screen.frame(lambda lines: "0 held" in lines[0], "a table")
        screen.hang_up()
        self.assertEqual(screen.process.wait(PATIENCE), 70)

    def test_a_label_cannot_drive_the_terminal(self):
        self.acquire("x", "--owner", "\033[2Jbad", "--ttl", "1h")
        screen = Screen(self, "top", "-d", "1h")
        lines = screen.frame(lambda lines: "1 held" in lines[0], "a table")
        self.assertNotIn("\033", "".join(lines))


if __name__ == "__main__":
    main()
