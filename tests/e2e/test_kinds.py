"""Shared and exclusive locks, permits, several names at once: on any store."""
# SPDX-License-Identifier: MIT
import json
import os
import signal
import subprocess

from support import DIBS, PATIENCE, Case, main, span, wait_until


class Kinds(Case):
    def test_readers_share_and_keep_the_writer_out(self):
        one, two = self.hold("k", "-s"), self.hold("k", "--shared")
        self.assertEqual([h["mode"] for h in self.show("k")["holders"]], ["shared", "shared"])
        self.fails(75, "run", "-n", "-x", "k", "--", "true")
        self.fails(75, "run", "-n", "k", "--", "true")
        self.ok("run", "-n", "-s", "k", "--", "true")
        self.let_go(one)
        self.fails(75, "run", "-n", "k", "--", "true")
        self.let_go(two)
        self.ok("run", "-n", "--exclusive", "k", "--", "true")

    def test_a_waiting_writer_holds_readers_back(self):
        reader = self.hold("k", "-s")
        writer = self.start("run", "k", "--", "sh", "-c", "echo writer >>order")
        wait_until(lambda: self.waiters("k") == 1, "the writer to queue")
        late = self.start("run", "-s", "k", "--", "sh", "-c", "echo reader >>order")
        wait_until(lambda: self.waiters("k") == 2, "the reader to queue")
        self.let_go(reader)
        self.assertEqual([writer.wait(PATIENCE), late.wait(PATIENCE)], [0, 0])
        self.assertEqual(self.text("order"), "writer\nreader\n")

    def test_a_timeout_names_the_holder(self):
        holder = self.hold("k", "--owner", "nightly")
        for options in (["-w", span(0.05)], ["-w", span(0.05), "--also", "free"]):
            said = self.fails(75, "run", *options, "k", "--", "true")
            self.assertRegex(said, rf"^dibs: not granted in time: `\S*k` is held by \S+:{holder.pid} nightly\n$")
        self.let_go(holder)

    def test_permits(self):
        one, two = self.hold("k", "-p", "2"), self.hold("k", "-p2")
        shown = self.show("k")
        self.assertEqual(shown["capacity"], 2)
        self.assertEqual([(h["mode"], h["permits"]) for h in shown["holders"]], [("permits", 1)] * 2)
        self.assertIn("1 of 2", self.ok("ls"))
        self.assertIn("permits, 1 of 2", self.ok("show", "k"))
        self.fails(75, "run", "-n", "-p", "2", "k", "--", "true")
        self.let_go(one)
        self.ok("run", "-n", "-p", "2", "k", "--", "true")
        self.let_go(two)

    def test_several_permits(self):
        holder = self.hold("k", "-p", "5", "--take", "3")
        self.assertEqual(self.show("k")["holders"][0]["permits"], 3)
        self.fails(75, "run", "-n", "-p", "5", "--take", "3", "k", "--", "true")
        self.ok("run", "-n", "-p", "5", "--take", "2", "k", "--", "true")
        self.let_go(holder)

    def test_kinds_do_not_mix(self):
        holder = self.hold("k", "-p", "2")
        said = self.fails(64, "run", "-n", "-p", "3", "k", "--", "true")
        self.assertRegex(said, r"\b2\b")
        self.assertRegex(said, r"\b3\b")
        self.fails(64, "run", "-n", "k", "--", "true")
        self.fails(64, "run", "-n", "-s", "k", "--", "true")
        self.let_go(holder)
        self.ok("run", "-n", "-p", "3", "k", "--", "true")

    def test_acquire(self):
        one = self.acquire("k", "-s")
        two = self.acquire("k", "-s", "-n")
        self.fails(75, "acquire", "k", "-n")
        self.ok("renew", "k", "--token", one)
        self.ok("check", "k", "--token", two)
        self.ok("release", "k", "--token", one)
        self.ok("release", "k", "--token", two)
        permit = self.acquire("k", "-p", "1", "-n")
        self.fails(75, "acquire", "k", "-p", "1", "-n")
        self.ok("release", "k", "--token", permit)

    def test_usage(self):
        for message, args in [
            ("--shared, --exclusive and --permits exclude each other", ["-s", "-x"]),
            ("--shared, --exclusive and --permits exclude each other", ["-s", "-p", "2"]),
            ("--take goes with --permits", ["--take", "2"]),
            ("--take is more", ["-p", "2", "--take", "3"]),
            ("-p: '0' is not between 1", ["-p", "0"]),
            ("not with --also", ["-p", "2", "--also", "other"]),
            ("--meta is KEY=VALUE", ["--meta", "plain"]),
            ("--meta is KEY=VALUE", ["--meta", "=x"]),
        ]:
            for verb in (["acquire", "k"], ["run", "-c", "true", "k"]):
                with self.subTest(args=args, verb=verb):
                    self.assertIn(message, self.fails(64, *verb, *args))


class Several(Case):
    def also(self, names):
        return [word for name in names for word in ("--also", name)]

    def test_all_are_held_and_given_back(self):
        holder = self.hold("b", "--also", "a", "--also", "c", "--also", "b")
        for name in "abc":
            self.fails(75, "run", "-n", name, "--", "true")
        self.assertEqual(self.ok("ls", "--names"), "a\nb\nc\n")
        self.let_go(holder)
        self.ok("run", "-n", "a", *self.also("bc"), "--", "true")
        self.assertEqual(self.ok("ls", "--names"), "")

    def test_all_or_none(self):
        holder = self.hold("b")
        said = self.fails(75, "run", "-n", "a", *self.also("bc"), "--", "touch", "ran")
        self.assertIn("b", said)
        self.assertEqual(self.ok("ls", "--names"), "b\n")
        self.fails(75, "run", "-w", span(0.5), "a", *self.also("bc"), "--", "touch", "ran")
        self.assertEqual(self.ok("ls", "--names"), "b\n")
        self.assertFalse(os.path.exists(self.path("ran")))
        waiting = self.start("run", "a", *self.also("bc"), "--", "true")
        wait_until(lambda: self.waiters("b") == 1, "the waiter to queue")
        self.let_go(holder)
        self.assertEqual(waiting.wait(PATIENCE), 0)

    def test_a_signal_ends_the_wait_for_all(self):
        holder = self.hold("b")
        waiting = self.start("run", "a", *self.also("bc"), "--", "touch", "ran")
        wait_until(lambda: self.waiters("b") == 1, "the waiter to queue")
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(waiting.wait(PATIENCE), -signal.SIGTERM)
        self.assertEqual(self.ok("ls", "--names"), "b\n")
        self.let_go(holder)

    def test_environment(self):
        out = self.ok("run", "second name", *self.also(["a", "z"]), "--", "env")
        values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        self.assertEqual(values["DIBS_LOCK_COUNT"], "3")
        names = [values[f"DIBS_LOCK_NAME_{i}"] for i in (1, 2, 3)]
        self.assertEqual(names, ["second name", "a", "z"])
        fences = [int(values[f"DIBS_LOCK_TOKEN_{i}"]) for i in (1, 2, 3)]
        self.assertEqual(len(set(fences)), 3)
        self.assertEqual((values["DIBS_LOCK_NAME"], values["DIBS_LOCK_TOKEN"]), ("second name", str(fences[0])))
        self.assertNotIn("DIBS_LOCK_COUNT", self.ok("run", "a", "--", "env"))

    def test_fences_are_those_of_the_store(self):
        holder = self.start("run", "b", "--also", "a", "--", "sh", "-c",
                            "echo $DIBS_LOCK_TOKEN_1 $DIBS_LOCK_TOKEN_2; exec cat", stdin=subprocess.PIPE)
        fences = [int(word) for word in holder.stdout.readline().split()]
        self.assertEqual(fences, [self.show(name)["holders"][0]["fence"] for name in "ba"])
        self.let_go(holder)

    def test_the_loss_of_one_ends_the_command(self):
        holder = self.hold("a", "--ttl=3s", *self.also("bc"))
        self.break_lock("b")
        self.assertEqual(holder.wait(PATIENCE), 122)
        self.assertIn("the lease on b was lost: it was taken away", holder.stderr.read())
        self.ok("run", "-n", "a", *self.also("bc"), "--", "true")

    def test_in_opposite_orders_nobody_waits_for_ever(self):
        script = "echo . >>turns"
        many = [self.start("run", *(["a", "--also", "b"] if i % 2 else ["b", "--also", "a"]),
                           "--", "sh", "-c", script) for i in range(12)]
        self.assertEqual([one.wait(PATIENCE) for one in many], [0] * 12)
        self.assertEqual(self.text("turns"), ".\n" * 12)

    def test_shared(self):
        one = self.hold("a", "-s", "--also", "b")
        two = self.hold("b", "-s", "--also", "a")
        self.fails(75, "run", "-n", "a", "--", "true")
        self.let_go(one)
        self.let_go(two)

    def test_acquire(self):
        lines = [line.split(" ", 1) for line in self.ok("acquire", "b", "--also", "an a").splitlines()]
        self.assertEqual([name for _, name in lines], ["b", "an a"])
        self.fails(75, "acquire", "an a", "-n")
        for token, name in lines:
            self.ok("check", name, "--token", token)
            self.ok("release", name, "--token", token)
        answer = self.json("acquire", "b", "--also", "a", "--json")
        self.assertEqual([lock["name"] for lock in answer["locks"]], ["b", "a"])
        self.assertEqual(answer["token"], answer["locks"][0]["token"])

    def test_acquire_with_a_file(self):
        path = self.path("tokens")
        self.ok("acquire", "b", "--also", "an a", "--token-file", path)
        for name in ("an a", "b"):
            self.ok("renew", name, "--token-file", path)
            self.ok("release", name, "--token-file", path)
        self.assertIn("no token of c", self.fails(64, "release", "c", "--token-file", path))

    def test_too_many(self):
        names = [f"n{i}" for i in range(70)]
        self.assertIn("at most 64", self.fails(64, "run", "k", *self.also(names), "--", "true"))
        self.ok("run", "k", *self.also(names[:63]), "--", "true")


class Nested(Case):
    def inside(self, outer, inner, name="k"):
        """The outcome of a run inside a run, as its status line tells it."""
        script = f"{DIBS} run --status-fd=1 -n {inner} {name} -- true; true"
        return json.loads(self.ok("run", *outer, name, "--", "sh", "-c", script))

    def test_what_is_enough(self):
        for outer, inner in [([], "-s"), ([], "-x"), (["-s"], "-s"),
                             (["-p", "3", "--take", "2"], "-p 3"),
                             (["-p", "3", "--take", "2"], "-p 3 --take 2")]:
            with self.subTest(outer=outer, inner=inner):
                status = self.inside(outer, inner)
                self.assertEqual((status["nested"], status["code"]), (True, 0))

    def test_what_would_never_end(self):
        for outer, inner in [(["-s"], "-x"), (["-p", "3", "--take", "2"], "-p 3 --take 3")]:
            with self.subTest(outer=outer, inner=inner):
                script = f"{DIBS} run {inner} k -- true"
                self.assertIn("never end", self.fails(64, "run", *outer, "k", "--", "sh", "-c", script))

    def test_more_permits_are_taken_beside(self):
        status = self.inside(["-p", "5", "--take", "1"], "-p 5 --take 3")
        self.assertEqual((status["nested"], status["code"]), (False, 0))

    def test_another_kind_is_refused(self):
        self.assertEqual(self.inside([], "-p 2")["code"], 64)
        self.assertEqual(self.inside(["-p", "2"], "")["code"], 64)

    def test_some_of_several(self):
        script = f"{DIBS} run -n b --also a --also c -- env; {DIBS} run -n c -- true; echo $?"
        out = self.ok("run", "a", "--", "sh", "-c", f"echo $DIBS_LOCK_TOKEN; {script}").splitlines()
        values = dict(line.split("=", 1) for line in out if "=" in line)
        self.assertEqual(values["DIBS_LOCK_NAME_2"], "a")
        self.assertEqual(values["DIBS_LOCK_TOKEN_2"], out[0])
        self.assertEqual(out[-1], "0")

    def test_all_of_several(self):
        script = f"{DIBS} run --status-fd=1 -n b --also a -- true; true"
        status = json.loads(self.ok("run", "a", "--also", "b", "--", "sh", "-c", script))
        self.assertTrue(status["nested"])


if __name__ == "__main__":
    main()
