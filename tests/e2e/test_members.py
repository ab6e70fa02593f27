"""members: who is in a group, once and as it changes; join: being a member while a command runs."""
# SPDX-License-Identifier: MIT
import json
import os
import signal
import subprocess

from runtools import PATIENCE, alive, wait_until
from support import Case, main, span


class Members(Case):
    def join(self, *options):
        """A member whose command ends with its standard input."""
        process = self.start(
            "join", *options, "g", "--", "sh", "-c", "echo $$; exec cat", stdin=subprocess.PIPE
        )
        line = process.stdout.readline()
        if not line:
            self.assertEqual(process.wait(PATIENCE), 0, "it ended before its command began")
        process.command = int(line)
        return process

    def test_a_member_is_there_while_its_command_runs(self):
        self.assertIn("has no members", self.fails(1, "members", "g"))
        self.assertEqual(self.json("members", "--json", "g", code=1)["members"], [])
        follower = self.start("members", "-l", "--interval", "20ms", "g")
        one = self.join("--owner", "first", "--meta", "addr=here")
        name = f"{os.uname().nodename}:{one.pid}"
        self.assertEqual(follower.stdout.readline(), f"joined {name}\n")
        two = self.join("--member", "two")
        self.assertEqual(follower.stdout.readline(), "joined two\n")
        self.assertEqual(self.ok("members", "--names", "g"), f"{name}\ntwo\n")
        self.assertIn(name, self.ok("members", "g"))
        shown = self.json("members", "--json", "g")["members"]
        self.assertEqual([m["member"] for m in shown], [name, "two"])
        self.assertEqual((shown[0]["label"], shown[0]["meta"], shown[0]["pid"]), ("first", "addr=here", one.pid))
        self.assertEqual((shown[0]["counts"], shown[0]["fence"] < shown[1]["fence"]), (False, True))
        self.let_go(one)
        self.assertEqual(follower.stdout.readline(), f"left {name}\n")
        self.let_go(two)
        self.assertEqual(follower.stdout.readline(), "left two\n")
        self.fails(1, "members", "g")

    def test_groups_are_listed(self):
        self.assertEqual(self.json("members", "--json")["groups"], [])
        member = self.join()
        self.ok("latch", "count-down", "g-latch", "-n", "2")
        self.assertEqual(self.ok("members", "--names"), "g\n")
        self.assertEqual(self.ok("members", "--groups", "--names", "x"), "")
        row = self.json("members", "--groups", "g", "--json")["groups"]
        self.assertEqual([(r["name"], r["member_count"], r["counting"]) for r in row], [("g", 1, 0)])
        self.assertRegex(self.ok("members"), r"g +1 +0")
        self.assertIn("give its name", self.fails(64, "members", "-l"))
        self.let_go(member)
        self.assertEqual(self.ok("members", "--names"), "")

    def test_the_command_and_its_code(self):
        self.fails(7, "join", "g", "--", "sh", "-c", "exit 7")
        self.fails(127, "join", "g", "--", "/nowhere")
        self.fails(64, "join", "g")
        self.ok("latch", "count-down", "l", "-n", "2")
        self.fails(64, "join", "l", "--", "true")
        self.fails(64, "members", "l")

    def test_a_member_that_is_killed_takes_its_command_along(self):
        member = self.join("--ttl", span(1))
        os.kill(member.pid, signal.SIGKILL)
        member.wait(PATIENCE)
        wait_until(lambda: not alive(member.command), "the end of the command")
        wait_until(lambda: self.dibs("members", "g").returncode == 1, "the end of the seat")

    def test_json_follow(self):
        follower = self.start("members", "-l", "--json", "--interval", "20ms", "g")
        member = self.join("--member", "a")
        joined = json.loads(follower.stdout.readline())
        self.assertEqual((joined["event"], joined["member"]), ("joined", "a"))
        self.let_go(member)
        left = json.loads(follower.stdout.readline())
        self.assertEqual((left["event"], left["fence"]), ("left", joined["fence"]))


if __name__ == "__main__":
    main()
