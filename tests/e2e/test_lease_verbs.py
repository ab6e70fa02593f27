"""acquire, release, renew, check: the halves of a lock."""
# SPDX-License-Identifier: MIT
import os
import signal
import stat
import subprocess

from support import DIBS, PATIENCE, Case, main, span, wait_until


class Halves(Case):
    def holder(self, name):
        shown = self.show(name)
        holders = [h for h in shown["holders"] if not h["released"]] if shown else []
        return holders[0] if holders else None

    def test_the_lease_outlives_the_process(self):
        token = self.acquire("x", "--ttl", "1m")
        owner, fence = token.split(":")
        holder = self.holder("x")
        self.assertEqual((holder["owner"], str(holder["fence"])), (owner, fence))
        self.assertGreater(holder["left_ms"], 30000)
        self.fails(75, "acquire", "x", "-n")
        self.assertIn("held by", self.ok("check", "x"))
        self.ok("check", "x", "--token", token)
        self.ok("release", "x", "--token", token)
        self.assertIsNone(self.holder("x"))

    def test_fences_rise(self):
        fences = []
        for _ in range(5):
            token = self.acquire("x")
            fences.append(int(token.split(":")[1]))
            self.ok("release", "x", "--token", token)
        self.assertEqual(fences, sorted(set(fences)))

    def test_an_unrenewed_lease_ends(self):
        token = self.acquire("x", "--ttl", span(0.2))
        wait_until(lambda: self.dibs("check", "x").returncode == 1, "the end of the lease")
        self.fails(122, "check", "x", "--token", token)
        self.fails(122, "renew", "x", "--token", token)
        self.fails(122, "release", "x", "--token", token)

    def test_renew(self):
        token = self.acquire("x", "--ttl", "20s")
        answer = self.json("renew", "x", "--ttl", "10m", "--token", token, "--json")
        self.assertGreater(answer["valid_ms"], 500000)
        self.assertEqual(answer["token"], token)
        self.assertGreater(self.holder("x")["left_ms"], 500000)
        self.ok("renew", "x", "--ttl", "1s", "--token", token)
        self.assertGreater(self.holder("x")["left_ms"], 500000)

    def test_a_release_asks_for_no_more_time(self):
        """Also where no lease may be as long as the default; run on such a store too."""
        token = self.acquire("x", "--ttl", "2s")
        self.ok("release", "x", "--token", token)
        self.assertIsNone(self.holder("x"))

    def test_release_of_another_s(self):
        token = self.acquire("x")
        other = "0" * 32 + ":" + token.split(":")[1]
        self.fails(122, "release", "x", "--token", other)
        self.fails(122, "check", "x", "--token", other)
        self.ok("check", "x", "--token", token)

    def test_a_token_of_another_fence(self):
        owner, fence = self.acquire("x").split(":")
        self.fails(122, "check", "x", "--token", f"{owner}:{int(fence) - 1}")
        self.fails(122, "release", "x", "--token", f"{owner}:{int(fence) + 1}")
        self.ok("check", "x", "--token", f"{owner}:{fence}")

    def test_the_fence_alone(self):
        """It is enough to look and to break, and too little to release, which says so."""
        token = self.acquire("x")
        fence = token.split(":")[1]
        self.assertIn("held by", self.ok("check", "x", "--token", fence))
        self.fails(122, "check", "x", "--token", str(int(fence) + 1))
        for verb in ("release", "renew"):
            told = self.fails(64, verb, "x", "--token", fence)
            self.assertIn(f"dibs break x --if-fence {fence}", told)
            self.assertIn("OWNER:FENCE", told)
        self.ok("check", "x", "--token", token)
        self.ok("break", "x", "--yes", "--if-fence", token)
        self.fails(122, "check", "x", "--token", fence)
        self.assertIn("fence", self.fails(64, "break", "x", "--yes", "--if-fence", "soon"))

    def test_the_fence_of_a_run(self):
        script = f'{DIBS} check x --token "$DIBS_LOCK_FENCE" && ' \
            f'{DIBS} renew x --token "$DIBS_LOCK_OWNER:$DIBS_LOCK_FENCE"'
        self.assertIn("held by", self.ok("run", "x", "-c", script))

    def test_a_token_of_a_transfer(self):
        owner, fence = self.acquire("x").split(":")
        self.ok("check", "x", "--token", f"{owner}.{fence}.x")
        for wrong in (f"{owner}.{fence}", f"{owner}.{fence}.", f"{owner}.{fence}.xx", f"{owner}:{fence}.x"):
            self.fails(64, "check", "x", "--token", wrong)
        self.ok("release", "x", "--token", f"{owner}.{fence}.x")
        self.assertIsNone(self.holder("x"))

    def test_check_json(self):
        self.assertFalse(self.json("check", "x", "--json", code=1)["held"])
        token = self.acquire("x", "--owner", "me")
        self.assertEqual(self.json("check", "x", "--json")["holder"]["label"], "me")
        self.ok("release", "x", "--token", token)
        self.assertIsNone(self.json("check", "x", "--json", "--token", token, code=122)["holder"])

    def test_acquire_json(self):
        answer = self.json("acquire", "x", "--json", "--ttl", "10s")
        self.assertEqual(answer["token"], f"{answer['owner']}:{answer['fence']}")
        self.assertEqual(answer["name"], "x")
        self.assertTrue(0 < answer["valid_ms"] <= 10000)

    def test_conflict_exit_code(self):
        self.acquire("x")
        self.assertIn("`x` is held by", self.fails(9, "acquire", "x", "-n", "-E", "9"))
        self.assertIn("in time", self.fails(75, "acquire", "x", "-w", span(0.02)))
        result = self.dibs("acquire", "x", "-n", "-E0")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_wait_0_is_nonblock(self):
        self.acquire("x")
        self.assertIn("`x` is held by", self.fails(75, "acquire", "x", "-w", "0"))

    def waiter(self, name, *options):
        """An acquire that is seen to wait."""
        process = self.start("acquire", name, *options)
        wait_until(
            lambda: process.pid in [w["pid"] for w in self.show(name)["waiters"]], "a waiter"
        )
        return process

    def test_waits_its_turn(self):
        token = self.acquire("x")
        process = self.waiter("x", "--ttl", "40s")
        self.ok("release", "x", "--token", token)
        self.assertEqual(process.wait(PATIENCE), 0)
        granted = process.stdout.read().strip()
        self.ok("check", "x", "--token", granted)
        self.assertGreater(self.holder("x")["left_ms"], 30000)

    def test_priority(self):
        token = self.acquire("x")
        low, high = self.waiter("x"), self.waiter("x", "--priority", "5")
        self.ok("release", "x", "--token", token)
        self.assertEqual(high.wait(PATIENCE), 0)
        self.assertIsNone(low.poll())

    def test_signals_end_a_wait_and_leave_the_queue(self):
        self.acquire("x")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                process = self.waiter("x")
                process.send_signal(number)
                self.assertEqual(process.wait(PATIENCE), -number)
                self.assertEqual(process.stdout.read(), "")
                self.assertEqual(self.show("x")["waiters"], [])

    def test_retries(self):
        token = self.acquire("x")
        process = self.start("acquire", "x", "-n", "--retries", "100000", "--retry-delay", "10ms")
        self.ok("release", "x", "--token", token)
        self.assertEqual(process.wait(PATIENCE), 0)


class TokenFiles(Case):
    def test_round(self):
        path = self.path("token")
        self.assertEqual(self.ok("acquire", "x", "--token-file", path), "")
        mode = os.stat(path)
        self.assertEqual(stat.S_IMODE(mode.st_mode), 0o600)
        self.ok("check", "x", "--token", self.text("token").strip())
        self.ok("renew", "x", "--token-file", path)
        self.ok("check", "x", "--token-file", path)
        self.ok("release", "x", "--token-file", path)
        self.fails(122, "release", "x", "--token-file", path)

    def test_replaces_what_was_there(self):
        path = self.write("token", "old")
        self.ok("acquire", "x", "--token-file", path)
        self.ok("check", "x", "--token-file", path)

    def test_a_link_stays_one(self):
        path = self.write("token", "old")
        os.symlink("token", self.path("link"))
        self.ok("acquire", "x", "--token-file", self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.ok("check", "x", "--token-file", path)

    def test_only_files_are_replaced(self):
        os.mkfifo(self.path("pipe"))
        os.mkdir(self.path("folder"))
        for name, why in (("pipe", "name one"), ("folder", "Is a directory")):
            self.assertIn(why, self.fails(64, "acquire", "x", "--token-file", self.path(name)))
            self.assertIsNone(self.show("x"))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))

    def test_nothing_is_left_after_a_refusal(self):
        self.acquire("x")
        path = self.write("token", "old")
        before = sorted(os.listdir(self.folder))
        self.fails(75, "acquire", "x", "-n", "--token-file", path)
        self.assertEqual(self.text("token"), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_a_folder_that_is_not_there(self):
        err = self.fails(64, "acquire", "x", "--token-file", self.path("none/token"))
        self.assertIn("none/token", err)
        self.assertIsNone(self.show("x"))

    def test_a_file_that_is_not_there(self):
        self.assertIn("none", self.fails(64, "release", "x", "--token-file", self.path("none")))

    def test_a_file_with_something_else(self):
        path = self.write("token", "hello\n")
        self.assertIn("not a token", self.fails(64, "release", "x", "--token-file", path))

    def test_json_beside_the_file(self):
        path = self.path("token")
        answer = self.json("acquire", "x", "--json", "--token-file", path)
        self.assertEqual(answer["token"], self.text("token").strip())


class HandOver(Case):
    """A token that reaches nobody must not leave a lock behind."""

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run(
                [DIBS, "acquire", "x"], stdout=full, stderr=subprocess.PIPE, env=self.env, check=False
            )
        self.assertEqual(result.returncode, 70)
        self.assertIsNone(self.show("x"))

    def test_a_reader_that_has_gone(self):
        reading, writing = os.pipe()
        os.close(reading)
        result = subprocess.run(
            [DIBS, "acquire", "x"], stdout=writing, stderr=subprocess.PIPE, env=self.env, check=False
        )
        os.close(writing)
        self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, b""))
        self.assertIsNone(self.show("x"))


if __name__ == "__main__":
    main()
