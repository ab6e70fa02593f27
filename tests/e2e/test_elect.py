"""elect: a command of the leader, and its end before another leads; leader: who that is; health."""
# SPDX-License-Identifier: MIT
import json
import os
import signal
import subprocess

from runtools import LOST, PATIENCE, UNAVAIL, NotInTime, RunCase, alive, main, span, wait_until

WORK = "echo $DIBS_TERM; exec cat"


class Elect(RunCase):
    def lead(self, *options):
        """A leader whose command ends with its standard input; and its term."""
        process = self.start(
            "elect", *options, "e", "--", "sh", "-c", WORK, stdin=subprocess.PIPE
        )
        line = process.stdout.readline()
        if not line and process.wait(PATIENCE) in (LOST, UNAVAIL):
            raise NotInTime(process.stderr.read())
        return process, int(line)

    def await_candidate(self):
        wait_until(lambda: self.waiters("e") == 1, "a candidate")

    def test_the_command_ends_by_itself(self):
        result = self.dibs("elect", "e", "--", "sh", "-c", "echo $DIBS_TERM; exit 7")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertGreater(int(result.stdout), 0)
        self.assertEqual(self.dibs("leader", "e").returncode, 1)
        self.assertEqual(self.dibs("elect", "e", "--", "/nowhere").returncode, 127)
        self.assertEqual(self.dibs("elect", "e").returncode, 64)

    def test_durability(self):
        """A store without replicas refuses it."""
        for options, env in ((["--durability", "wait:1"], self.env), ([], {**self.env, "DIBS_DURABILITY": "wait:1"})):
            result = self.dibs("elect", *options, "e", "--", "touch", "began", env=env)
            self.assertEqual(result.returncode, 78, result.stderr)
        self.assertFalse(os.path.exists(self.path("began")))

    def test_the_next_one_leads(self):
        first, term = self.lead()
        second = self.start("elect", "e", "--", "sh", "-c", WORK, stdin=subprocess.PIPE)
        self.await_candidate()
        self.let_go(first)
        self.assertGreater(int(second.stdout.readline()), term)
        self.let_go(second)

    def test_it_campaigns_again(self):
        process, term = self.lead("--ttl", span(1.5), "--stop", span(0.3))
        self.break_lock("e")
        self.assertGreater(int(process.stdout.readline()), term)
        self.let_go(process)

    def test_once(self):
        process, _ = self.lead("--once", "--ttl", span(1.5), "--stop", span(0.3))
        self.break_lock("e")
        self.assertEqual(process.wait(PATIENCE), LOST)

    def test_a_stopped_leader_loses_its_tree_first(self):
        """The command of the next leader finds no process of the last one."""
        first = self.start(
            "elect", "--ttl", span(1.5), "e", "--", "sh", "-c", "sleep 1000 & echo $!; wait"
        )
        child = int(first.stdout.readline())
        second = self.start(
            "elect", "e", "--", "sh", "-c", f"kill -0 {child} 2>/dev/null && echo alive || echo dead"
        )
        self.await_candidate()
        os.kill(first.pid, signal.SIGSTOP)
        self.assertEqual(second.stdout.readline(), "dead\n")
        self.assertFalse(alive(child))

    def test_a_signal_ends_the_campaign(self):
        leader, _ = self.lead()
        waiting = self.start("elect", "e", "--", "true")
        self.await_candidate()
        waiting.terminate()
        self.assertEqual(waiting.wait(PATIENCE), -signal.SIGTERM)
        wait_until(lambda: self.waiters("e") == 0, "an empty queue")
        self.let_go(leader)

    def follow(self, member, *options, command=WORK):
        """A candidate of this name that waits."""
        before = self.waiters("e")
        process = self.start("elect", "--member", member, *options, "e", "--", "sh", "-c", command, stdin=subprocess.PIPE)
        wait_until(lambda: self.waiters("e") == before + 1, "a candidate")
        return process

    def transfer(self, heir, *options):
        return self.start("leader", "--transfer", heir, *options, "e")

    def test_a_transfer_to_a_named_candidate(self):
        """The command of the heir finds no process of the last leader, and the first in the queue waits on."""
        first = self.start(
            "elect", "--member", "a", "e", "--", "sh", "-c",
            'trap "exec sleep 0.2" TERM; sleep 1000 & echo $!; echo $$; while :; do wait; done'
        )
        tree = [int(first.stdout.readline()) for _ in range(2)]
        second = self.follow("b")
        look = " ".join(f"kill -0 {pid} 2>/dev/null && echo alive;" for pid in tree)
        third = self.follow("c", command=f"{look} {WORK}")
        asking = self.transfer("c")
        term = int(third.stdout.readline())
        self.assertEqual(asking.communicate(timeout=PATIENCE)[0], f"c term {term}\n")
        self.assertEqual(asking.returncode, 0)
        self.assertIn("the lead is handed on", first.stderr.readline())
        self.assertEqual(self.dibs("state", "ls", "--names").stdout, "")
        wait_until(lambda: self.waiters("e") == 2, "the last leader in the queue")
        self.let_go(third)
        self.assertGreater(int(second.stdout.readline()), term)
        self.let_go(second)

    def test_a_leader_that_was_told_to_end_does_not_campaign_again(self):
        """The transfer comes while its command, which has got the TERM, takes its time."""
        leader = self.start("elect", "--member", "a", "e", "--", "sh", "-c",
                            'trap "echo told; while ! test -e go; do sleep 0.02; done; exit" TERM; echo on; while :; do sleep 0.02; done')
        self.assertEqual(leader.stdout.readline(), "on\n")
        heir = self.follow("b")
        leader.terminate()
        self.assertEqual(leader.stdout.readline(), "told\n")
        asking = self.transfer("b")
        self.assertTrue(any("the lead is handed on" in line for line in iter(leader.stderr.readline, "")))
        self.write("go", "")
        self.assertEqual(leader.wait(PATIENCE), LOST)
        asking.communicate(timeout=PATIENCE)
        self.assertGreater(int(heir.stdout.readline()), 0)
        self.let_go(heir)

    def test_a_transfer_of_once(self):
        leader, _ = self.lead("--once", "--member", "a")
        heir = self.follow("b")
        asking = self.transfer("b", "--json")
        self.assertEqual(leader.wait(PATIENCE), LOST)
        shown = json.loads(asking.communicate(timeout=PATIENCE)[0])
        self.assertEqual((shown["leader"], shown["term"]), ("b", int(heir.stdout.readline())))
        again = self.dibs("leader", "--transfer", "b", "e")
        self.assertEqual((again.returncode, again.stdout), (0, f"b term {shown['term']}\n"))
        trail = [(e["action"], e["name"], e["reason"].split("[")[0]) for e in json.loads(self.dibs("trail", "--json").stdout)["trail"]]
        self.assertEqual(trail, [("leader-transfer", "e", "to b ")])
        self.let_go(heir)

    def test_a_transfer_that_cannot_be(self):
        """The leader leads on: an heir that is not there, or does not answer, costs nothing."""
        self.assertEqual(self.dibs("leader", "--transfer", "b", "e").returncode, 1)
        leader, term = self.lead("--member", "a")
        missing = self.dibs("leader", "--transfer", "b", "e")
        self.assertIn("no candidate for e is called b", missing.stderr)
        self.assertEqual(missing.returncode, 1)
        first = self.follow("b")
        self.start("run", "--meta", "member=c", "e", "--", "true")  # waits, and hears nothing
        wait_until(lambda: self.waiters("e") == 2, "a second one that waits")
        late = self.dibs("leader", "--transfer", "c", "-w", "300ms", "e")
        self.assertIn("c did not come to lead e in time", late.stderr)
        self.assertEqual(late.returncode, 75)
        self.assertEqual(self.dibs("leader", "e").stdout, f"a term {term}\n")
        self.assertEqual(self.dibs("leader", "-l", "--transfer", "b", "e").returncode, 64)
        self.assertEqual(self.dibs("leader", "--transfer", "x" * 64, "e").returncode, 64)
        self.assertEqual(self.dibs("elect", "--member", "x" * 64, "e", "--", "true").returncode, 64)
        self.dibs("state", "set", "dibs.heir/e", "nobody", "--expires", "1h")
        other = self.dibs("leader", "--transfer", "c", "e")
        self.assertIn("a transfer of e to nobody is under way", other.stderr)
        self.assertEqual(other.returncode, 75)
        self.dibs("state", "set", "dibs.heir/e", "b", "--expires", "1h")
        self.assertGreater(int(first.stdout.readline()), term)

    def await_deaf(self, *members):
        """Candidates that wait, and do not hear their name; behind another, so that none is the next."""
        for count, member in enumerate(("first", *members), 1):
            self.start("run", "--meta", f"member={member}", "e", "--", "true")
            wait_until(lambda count=count: self.waiters("e") == count, "one that waits")

    def heir(self):
        return self.dibs("state", "get", "dibs.heir/e").stdout.strip()

    def test_a_later_transfer_does_not_end_an_earlier_one(self):
        self.lead("--member", "a")
        self.await_deaf("b")
        first = self.transfer("b", "-w", "1h")
        wait_until(lambda: self.heir() == "b", "a transfer")
        second = self.dibs("leader", "--transfer", "b", "-w", "100ms", "e")
        self.assertIn("b did not come to lead e in time", second.stderr)
        self.assertEqual(self.heir(), "b")
        self.transfer("b", "-w", "1h")
        first.kill()
        self.dibs("state", "del", "dibs.heir/e")
        wait_until(lambda: self.heir() == "b", "the second transfer")

    def test_of_many_transfers_at_once_one_is_under_way(self):
        heirs = [f"m{number}" for number in range(6)]
        self.lead("--member", "a")
        self.await_deaf(*heirs)
        asking = [self.transfer(heir, "-w", "1h") for heir in heirs]
        wait_until(lambda: sum(one.poll() is not None for one in asking) == len(asking) - 1, "all others")
        for one in asking:
            if one.returncode is not None:
                self.assertEqual(one.returncode, 75)
                self.assertIn(f"a transfer of e to {self.heir()} is under way", one.stderr.read())

    def test_too_few_members_end_the_term(self):
        """Of two members one leaves: the command ends, and runs again when it is back."""
        leader = self.start(
            "elect", "--min-nodes", "2", "--ttl", span(1.2), "--stop", span(0.2), "e", "--", "sh", "-c", WORK,
            stdin=subprocess.PIPE
        )
        member = self.start("join", "--ttl", span(0.8), "e", "--", "cat", stdin=subprocess.PIPE)
        term = int(leader.stdout.readline())
        if json.loads(self.dibs("leader", "--json", "e").stdout or "{}").get("members") != 2:
            raise NotInTime("a seat was not kept in time")
        self.let_go(member)
        said = leader.stderr.readline()
        while "waiting for members of e" in said:
            said = leader.stderr.readline()
        if "did not run in time" in said:
            raise NotInTime(said)
        self.assertIn("too few members live", said)
        self.start("join", "--ttl", span(0.8), "e", "--", "cat", stdin=subprocess.PIPE)
        self.assertGreater(int(leader.stdout.readline()), term)
        self.let_go(leader)

    def test_a_wait_for_members_is_said(self):
        """What there is too little of; and when no seat is to be had."""
        process = self.start("elect", "--min-nodes", "2", "e", "--", "true")
        self.assertEqual(process.stderr.readline(), "dibs: waiting for members of e: fewer than 2 are counted yet (dibs members e)\n")
        self.env["DIBS_URL"] = f"fault+{self.env['DIBS_URL']}?step=meet&fault=fail"
        process = self.start("elect", "--store-timeout", "500ms", "--min-nodes", "2", "e", "--", "true")
        self.assertRegex(process.stderr.readline(), "^dibs: waiting for members of e: the store gave no seat ")

    def test_metadata_of_a_candidate(self):
        process, _ = self.lead("--meta", "addr=10.0.0.7:80", "--meta", "zone=a")
        self.assertEqual(json.loads(self.dibs("leader", "--json", "e").stdout)["meta"], "addr=10.0.0.7:80\tzone=a")
        self.let_go(process)
        for words in (["--meta", "addr"], [f"--meta=a={i}" for i in range(90)]):
            self.assertEqual(self.dibs("elect", *words, "e", "--", "true").returncode, 64)

    def test_when_to_renew(self):
        process = self.start("elect", "--log-level", "trace", "--ttl", "1h", "--renew-every", "30ms", "e", "--", "cat", stdin=subprocess.PIPE)
        while "renewed: e" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.communicate(timeout=PATIENCE)
        late = self.dibs("elect", "--ttl", "600ms", "--renew-every", "201ms", "e", "--", "true")
        self.assertEqual(late.returncode, 64)
        self.assertIn("elect: --renew-every is more than a third of --ttl", late.stderr)

    def members(self):
        shown = self.dibs("members", "--json", "e")
        return json.loads(shown.stdout)["members"] if shown.returncode == 0 else []

    def left_ms(self):
        return max([m["left_ms"] for m in self.members()], default=0)

    def test_how_often_a_seat_is_kept(self):
        """A seat lives for three heartbeats, whatever the ttl is; the first leader comes after it."""
        process = self.start("elect", "--min-nodes", "2", "--ttl", "1m", "--heartbeat", "1h", "--meta", "a=b", "e", "--", "true")
        wait_until(lambda: self.left_ms() > 2 * 3600000, "a seat of hours")
        self.assertEqual(self.members()[0]["meta"], "a=b")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), -signal.SIGTERM)
        self.assertEqual(self.members(), [])
        leader, _ = self.lead("--once", "--min-nodes", "1", "--ttl", "1h", "--heartbeat", span(0.5))
        for _ in range(3):
            last = self.left_ms()
            wait_until(lambda: self.left_ms() > last or leader.poll() is not None, "a seat that is kept")
        leader.stdin.close()
        if leader.wait(PATIENCE) == LOST:
            raise NotInTime("the seat was not kept in time")
        self.assertEqual(leader.returncode, 0)
        alone = self.dibs("elect", "--heartbeat", "1s", "e", "--", "true")
        self.assertEqual(alone.returncode, 64)
        self.assertIn("--heartbeat goes with --min-nodes", alone.stderr)

    def test_leader(self):
        watch = self.start("leader", "-l", "e")
        self.assertEqual(watch.stdout.readline(), "nobody\n")
        self.assertIn("e has no leader", self.dibs("leader", "e").stderr)
        nobody = self.dibs("leader", "--json", "e")
        self.assertEqual(nobody.returncode, 1)
        self.assertIsNone(json.loads(nobody.stdout)["leader"])
        process, term = self.lead()
        member = f"{os.uname().nodename}:{process.pid}"
        self.assertEqual(watch.stdout.readline(), f"{member} term {term}\n")
        self.assertEqual(self.dibs("leader", "e").stdout, f"{member} term {term}\n")
        shown = json.loads(self.dibs("leader", "--json", "e").stdout)
        self.assertEqual((shown["leader"], shown["term"]), (member, term))
        self.assertEqual((shown["pid"], shown["candidates"]), (process.pid, 0))
        self.let_go(process)
        self.assertEqual(watch.stdout.readline(), "nobody\n")


class Health(RunCase):
    def health(self, *options, code=0, url=None):
        result = self.dibs(*(["--url", url] if url else []), "health", "--json", "--slow", "1h", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        shown = json.loads(result.stdout)
        self.assertEqual(shown["schema"], 1)
        return shown["health"], {part["name"]: part for part in shown["parts"]}, shown["reason"]

    def test_healthy(self):
        health, parts, reason = self.health()
        self.assertEqual((health, reason, set(parts)), ("healthy", None, {"lock", "state"}))
        for part in parts.values():
            self.assertEqual((part["result"], part["status"]), ("ok", "OK"))
            self.assertGreater(part["took_us"], 0)
        text = self.dibs("health", "--slow", "1h").stdout.splitlines()
        self.assertEqual(text[0], "healthy")
        self.assertRegex(text[2], r"\Alock +ok +[0-9.]+(us|ms|s)")
        self.assertEqual(self.dibs("health", "-q", "--slow", "1h").stdout, "")
        self.assertEqual(self.dibs("ls", "--names").stdout, "")
        self.assertEqual(self.dibs("state", "ls", "--names").stdout, "")

    def test_a_leader_and_members(self):
        health, parts, reason = self.health("--election", "e", "--group", "g", code=1)
        self.assertEqual((health, reason), ("degraded", None))
        self.assertEqual(parts["leader"]["result"], "missing")
        self.assertEqual(parts["members"]["result"], "missing")
        self.assertEqual(parts["leader"]["detail"], "e has no leader")
        leader = self.start("elect", "e", "--", "sh", "-c", WORK, stdin=subprocess.PIPE)
        leader.stdout.readline()
        health, parts, _ = self.health("--election", "e")
        self.assertEqual((health, parts["leader"]["result"]), ("healthy", "ok"))
        self.assertIn(f":{leader.pid} leads e", parts["leader"]["detail"])
        self.let_go(leader)

    def test_a_store_that_is_slow_or_away(self):
        self.assertEqual(self.dibs("health", "--url", f"fault+sqlite:{self.path('slow.db')}?step=get&delay_ms=20",
                                   "--slow", "15ms").returncode, 1)
        away = f"fault+sqlite:{self.path('away.db')}?fault=fail"
        health, parts, reason = self.health(url=away, code=69)
        self.assertEqual((health, parts["lock"]["result"], parts["state"]["result"]), ("unhealthy", "failed", "skipped"))
        self.assertTrue(reason)
        health, parts, reason = self.health(url="redis://127.0.0.1:1", code=69)
        self.assertEqual((health, parts["lock"]["status"]), ("unhealthy", "UNAVAIL"))
        health, parts, reason = self.health(url="/nowhere/at/all.db", code=78)
        self.assertEqual((health, bool(reason)), ("unhealthy", True))
        self.assertEqual(self.dibs("health", "--url", "nonsense").returncode, 64)
        self.assertEqual(self.dibs("health", "--election", "").returncode, 64)


if __name__ == "__main__":
    main()
