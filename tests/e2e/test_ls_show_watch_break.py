"""Looking at locks, following them, taking them away."""
# SPDX-License-Identifier: MIT
import json
import signal

from support import PATIENCE, Case, main, wait_until


class Looking(Case):
    def test_empty(self):
        self.assertEqual(self.ok("ls").split(), "NAME MODE HOLDER HELD LEFT FENCE WAITING".split())
        self.assertEqual(self.json("ls", "--json")["locks"], [])
        self.assertEqual(self.ok("ls", "--names"), "")
        self.assertIn("nobody", self.fails(1, "show", "x"))

    def test_ls(self):
        for name in ("b", "a:1", "a:2"):
            self.acquire(name)
        self.assertEqual(self.ok("ls", "--names"), "a:1\na:2\nb\n")
        self.assertEqual(self.ok("ls", "--names", "a:"), "a:1\na:2\n")
        self.assertEqual([l["name"] for l in self.json("ls", "--json", "a:")["locks"]], ["a:1", "a:2"])
        self.assertEqual(len(self.ok("ls", "a:").splitlines()), 3)

    def test_ls_columns_line_up(self):
        self.acquire("short", "--owner", "\u00fcber")
        self.acquire("a-much-longer-name")
        lines = self.ok("ls").splitlines()
        for head in ("MODE", "HOLDER", "HELD", "LEFT", "FENCE", "WAITING"):
            column = lines[0].index(head)
            for line in lines[1:]:
                self.assertEqual(line[column - 2 : column], "  ")
                self.assertNotEqual(line[column], " ")

    def test_show(self):
        token = self.acquire("x", "--owner", "me", "--ttl", "1m")
        waiter = self.start("acquire", "x", "--owner", "you", "--priority", "3")
        shown = wait_until(
            lambda: (lambda s: s if s["waiters"] else None)(self.show("x")), "a waiter"
        )
        holder, waiting = shown["holders"][0], shown["waiters"][0]
        self.assertEqual(f"{holder['owner']}:{holder['fence']}", token)
        self.assertEqual((holder["label"], holder["mode"], holder["ttl_ms"]), ("me", "exclusive", 60000))
        self.assertFalse(holder["claim"] or holder["released"])
        self.assertEqual(
            (waiting["label"], waiting["pid"], waiting["priority"], waiting["fence"]),
            ("you", waiter.pid, 3, 0),
        )
        text = self.ok("show", "x")
        for part in ("holder", "waiter", "(me)", "(you)", holder["owner"], str(holder["fence"])):
            self.assertIn(part, text)
        self.assertEqual(self.json("ls", "--json")["locks"][0]["waiters"][0]["pid"], waiter.pid)
        self.assertRegex(self.ok("ls"), r"x .* 1\n$")


class Watching(Case):
    def watch(self, *args):
        process = self.start("watch", "--json", "--interval", "20ms", *args)
        return process, lambda: json.loads(process.stdout.readline())

    def test_events(self):
        first = self.acquire("x", "--owner", "one")
        process, event = self.watch()
        seen = event()
        self.assertEqual((seen["schema"], seen["event"], seen["label"]), (1, "held", "one"))
        waiter = self.start("acquire", "x")
        seen = event()
        self.assertEqual((seen["event"], seen["pid"]), ("joined", waiter.pid))
        self.ok("release", "x", "--token", first)
        seen = [event(), event()]
        self.assertEqual([s["event"] for s in seen], ["released", "granted"])
        self.assertEqual([s["released"] for s in seen], [True, False])
        self.assertEqual(f"{seen[0]['owner']}:{seen[0]['fence']}", first)
        self.assertEqual(waiter.wait(PATIENCE), 0)
        second = waiter.stdout.read().strip()
        self.assertEqual(f"{seen[1]['owner']}:{seen[1]['fence']}", second)
        self.ok("release", "x", "--token", second)
        self.assertEqual(event()["event"], "released")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
        self.assertEqual((process.stdout.read(), process.stderr.read()), ("", ""))

    def test_what_is_there_and_who_leaves(self):
        self.acquire("x")
        waiter = self.start("acquire", "x")
        wait_until(lambda: self.show("x")["waiters"], "a waiter")
        _, event = self.watch()
        self.assertEqual([event()["event"], event()["event"]], ["held", "waiting"])
        waiter.terminate()
        waiter.wait(PATIENCE)
        self.assertEqual(event()["event"], "left")

    def test_prefix(self):
        self.acquire("b")
        _, event = self.watch("a")
        self.acquire("a1")
        self.assertEqual(event()["name"], "a1")

    def test_text(self):
        self.acquire("x", "--owner", "me")
        process = self.start("watch")
        self.assertRegex(
            process.stdout.readline(),
            r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  held +x  exclusive  .* pid \d+ \(me\)  fence \d+\n$",
        )
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), -signal.SIGTERM)

    def test_a_reader_that_goes_away(self):
        self.acquire("x")
        process, event = self.watch()
        event()
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), -signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), "")


class Breaking(Case):
    def test_by_fence(self):
        token = self.acquire("x")
        fence = int(token.split(":")[1])
        self.fails(1, "break", "x", "--yes", "--if-fence", str(fence + 1))
        self.ok("check", "x", "--token", token)
        result = self.dibs("break", "x", "--yes", "--if-token", str(fence), "--reason", "why not")
        self.assertEqual(result.returncode, 0)
        self.assertIn("why not", result.stderr)
        self.fails(122, "check", "x", "--token", token)
        self.fails(1, "break", "x", "--yes", "--force")

    def test_by_force_and_the_next_is_served(self):
        self.acquire("x")
        waiter = self.start("acquire", "x")
        wait_until(lambda: self.show("x")["waiters"], "a waiter")
        self.assertEqual(self.json("break", "x", "-y", "--force", "--json")["broken"], 1)
        self.assertEqual(waiter.wait(PATIENCE), 0)

    def test_asks_on_a_terminal(self):
        token = self.acquire("x", "--owner", "me")
        for answer in (b"n\n", b"\n", b"\x04"):
            with self.subTest(answer=answer):
                code, shown = self.on_terminal("break", "x", "--force", answer=answer)
                self.assertEqual(code, 1, shown)
                self.assertIn("nothing was changed", shown)
                self.assertIn("(me)", shown)
                self.assertIn("[y/N]", shown)
                self.ok("check", "x", "--token", token)
        code, shown = self.on_terminal("break", "x", "--force", answer=b"y\n")
        self.assertEqual(code, 0, shown)
        self.fails(1, "check", "x")

    def test_does_not_ask_about_nothing(self):
        code, shown = self.on_terminal("break", "x", "--force")
        self.assertEqual(code, 1)
        self.assertNotIn("[y/N]", shown)


if __name__ == "__main__":
    main()
