"""queue stats, peek, dead, redrive, purge, pause, resume, set, rm."""
# SPDX-License-Identifier: MIT
import contextlib
import getpass
import json
import os
import re
import sqlite3
import subprocess

from runtools import PATIENCE, NotInTime, span
from support import DIBS, Case, main


class QueueAdmin(Case):
    def test_settings(self):
        self.ok("queue", "set", "mail", "--tries", "3", "--serial", "yes", "--deads", "7")
        self.ok("queue", "pause", "mail")
        shown = self.json("queue", "stats", "mail", "--json")
        self.assertEqual(
            [shown[key] for key in ("name", "tries", "serial", "deads", "cap", "lost_max", "paused")],
            ["mail", 3, True, 7, 1000000, 4, True],
        )
        self.assertIn("paused, serial\n", self.ok("queue", "stats", "mail"))
        self.ok("queue", "resume", "mail")
        self.ok("queue", "set", "mail", "--tries", "0", "--serial", "no")
        shown = self.json("queue", "stats", "mail", "--json")
        self.assertEqual([shown[key] for key in ("tries", "serial", "deads", "paused")], [16, False, 7, False])
        self.ok("queue", "rm", "mail")
        self.fails(1, "queue", "stats", "mail")

    def test_json_tells_what_was_changed(self):
        told = self.json("queue", "set", "mail", "--tries", "3", "--serial", "yes", "--json")
        self.assertEqual(told, {"schema": 1, "name": "mail", "tries": 3, "serial": True})
        for verb, key, value in (("pause", "paused", True), ("resume", "paused", False), ("rm", "removed", True)):
            self.assertEqual(self.json("queue", verb, "mail", "--json"), {"schema": 1, "name": "mail", key: value})
        self.assertEqual(self.dibs("queue", "rm", "mail", "--json").stdout, "")

    def test_doctor_names_queues_that_need_somebody(self):
        def found():
            findings = self.json("doctor", "--json")["findings"]
            return [(f["severity"], f["subject"], f["found"]) for f in findings if f["subject"].startswith("queue")]

        self.assertEqual(found(), [])
        self.ok("queue", "push", "-q", "mail", "x")
        self.assertEqual(found(), [("fine", "queues", "1, and none needs somebody")])
        self.ok("queue", "pause", "mail")
        self.ok("queue", "set", "mail", "--cap", "1")
        self.ok("queue", "set", "print", "--deads", "1")
        self.ok("queue", "push", "-q", "print", "y")
        self.fails(65, "queue", "run", "print", "--once", "--", "sh", "-c", "exit 65")
        shown = found()
        self.assertEqual([(one[0], one[1]) for one in shown],
                         [("note", "queue mail"), ("caution", "queue mail"), ("caution", "queue print")])
        self.assertIn("paused with ready items: 1, the oldest for ", shown[0][2])
        self.assertEqual([one[2] for one in shown[1:]], ["full: 1 items of at most 1", "dead letters: 1 of at most 1"])
        self.assertIn("dibs queue redrive", self.ok("doctor"))
        away = "fault+" + self.env["DIBS_URL"] + "?fault=fail&step="
        for step in ("queues", "stats"):
            self.assertIn("note     queues: not known: the store fails", self.ok("--url", away + step, "doctor"))

    def trail(self, begins=""):
        return [(e["action"], e["name"], e["reason"]) for e in self.json("trail", begins, "--json")["trail"]]

    def test_changes_are_in_the_trail(self):
        who = f"[who={getpass.getuser()}@{os.uname().nodename}]"
        self.ok("queue", "push", "mail", "hello")
        self.ok("queue", "pause", "mail", "--reason", "too many")
        self.ok("queue", "resume", "mail")
        self.ok("queue", "set", "mail", "--tries", "3")
        self.ok("queue", "redrive", "mail", "-y")
        self.ok("queue", "purge", "mail", "-y", "--reason", "a test")
        self.fails(1, "queue", "rm", "none")
        self.ok("queue", "rm", "mail")
        self.fails(1, "latch", "reset", "nobody")
        self.ok("breaker", "open", "api", "--reason", "it is slow")
        self.ok("breaker", "close", "api")
        self.assertEqual(self.trail("mail"), [
            ("queue-pause", "mail", f"too many {who}"), ("queue-resume", "mail", who), ("queue-set", "mail", who),
            ("queue-redrive", "mail", who), ("queue-purge", "mail", f"a test {who}"), ("queue-rm", "mail", who)])
        self.assertEqual(self.trail("api"), [("breaker-trip", "api", f"it is slow {who}"), ("breaker-reset", "api", who)])
        self.assertEqual(self.trail("no"), [("latch-reset", "nobody", who), ("latch-reset-failed", "nobody", f"NOTFOUND {who}")])

    def test_no_entry_no_purge(self):
        """What is dropped is written down before."""
        self.ok("queue", "push", "mail", "hello")
        away = "fault+" + self.env["DIBS_URL"] + "?fault=fail&step=append"
        self.assertIn("the trail did not take queue-purge of mail", self.fails(69, "--url", away, "queue", "purge", "mail", "-y"))
        self.assertEqual(self.json("queue", "stats", "mail", "--json")["ready"], 1)
        self.assertIn("the trail did not take queue-pause of mail", self.dibs("--url", away, "queue", "pause", "mail").stderr)
        self.assertTrue(self.json("queue", "stats", "mail", "--json")["paused"])

    def sql(self, text):
        with contextlib.closing(sqlite3.connect(self.env["DIBS_URL"][len("sqlite:"):], timeout=PATIENCE)) as store:
            store.executescript(text)

    def test_a_change_that_fails_midway_has_its_number_in_the_trail(self):
        """A store that refuses the second piece of a purge, and of a redrive."""
        who = f"[who={getpass.getuser()}@{os.uname().nodename}]"
        self.ok("queue", "push", "mail", "--lines", stdin=None, input="item\n" * 1500)
        self.sql("CREATE TRIGGER full BEFORE DELETE ON item WHEN (SELECT count(*) FROM item) <= 500 "
                 "BEGIN SELECT RAISE(ABORT, 'planted'); END;")
        purge = self.dibs("queue", "purge", "mail", "-y")
        self.assertEqual((purge.returncode != 0, purge.stdout), (True, "1000\n"), purge.stderr)
        self.sql("DROP TRIGGER full; INSERT INTO dead(id, q, wall_us, priority, attempts, lost, tries, to_worker, dedup, "
                 "reason, data) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
                 "SELECT i, q, 1, 0, 1, 0, 0, '', '', '', 'x' FROM n, queue WHERE name = 'mail'; "
                 "UPDATE queue SET dead = 1500 WHERE name = 'mail'; "
                 "CREATE TRIGGER full BEFORE DELETE ON dead WHEN (SELECT count(*) FROM dead) <= 500 "
                 "BEGIN SELECT RAISE(ABORT, 'planted'); END;")
        redrive = self.dibs("queue", "redrive", "mail", "-y")
        self.assertEqual((redrive.returncode != 0, redrive.stdout), (True, "1000\n"), redrive.stderr)
        first, second, third, fourth = self.trail("mail")
        self.assertEqual((first, third), (("queue-purge", "mail", who), ("queue-redrive", "mail", who)))
        self.assertEqual((second[0], fourth[0]), ("queue-purge-partly", "queue-redrive-partly"))
        for entry in (second, fourth):
            self.assertRegex(entry[2], "^[A-Z]+ after 1000 items " + re.escape(who))

    def test_listing(self):
        self.assertEqual(self.ok("queue", "ls", "--names"), "")
        self.ok("queue", "push", "mail", "hello")
        self.ok("queue", "pause", "orders")
        self.assertEqual(self.ok("queue", "ls", "--names"), "mail\norders\n")
        self.assertEqual(self.ok("queue", "ls", "--names", "ma"), "mail\n")
        shown = self.json("queue", "ls", "--json")["queues"]
        self.assertEqual([(q["name"], q["ready"], q["paused"]) for q in shown], [("mail", 1, False), ("orders", 0, True)])
        self.assertRegex(self.ok("queue", "ls"), r"(?m)^mail +1 +0 +0 +0 +0 .*running\norders .*paused$")

    def test_rates(self):
        self.ok("queue", "pause", "mail")
        shown = self.json("queue", "stats", "mail", "--interval", "10ms", "--json")
        self.assertGreaterEqual(shown["span_ms"], 10)
        self.assertEqual(shown["pushed_in_span"], 0)
        self.assertRegex(self.ok("queue", "stats", "mail", "--interval", "10ms"), r"rates +pushed 0\.0/s, .*failed 0\.0/s\n")
        self.assertNotIn("span_ms", self.json("queue", "stats", "mail", "--json"))

    def test_failures_in_a_span(self):
        self.ok("queue", "pause", "mail")
        self.ok("queue", "resume", "mail")
        look = subprocess.Popen(
            [DIBS, "queue", "stats", "mail", "--interval", span(2), "--json"],
            env=self.env, cwd=self.folder, stdout=subprocess.PIPE,
        )
        self.addCleanup(self.finish, look)
        while look.poll() is None:
            self.ok("queue", "push", "mail", "hello")
            popped = self.json("queue", "pop", "mail", "--json")
            self.ok("queue", "nack", "mail", popped["token"], "--delay", "1h")
        shown = json.loads(look.stdout.read())
        if shown["failed_in_span"] == 0:
            raise NotInTime("nothing was nacked between the two looks")
        self.assertLessEqual(shown["failed_in_span"], shown["delivered_in_span"] + 1)
        self.assertEqual(shown["acked_in_span"], 0)

    def test_a_queue_that_is_made_anew_in_a_span(self):
        for text in ("one", "two", "three"):
            self.ok("queue", "push", "mail", text)
            self.ok("queue", "pop", "mail", "--ack")
        shown = None
        while not shown:  # a look just between finds no queue
            look = subprocess.Popen([DIBS, "queue", "stats", "mail", "--interval", span(1), "--json"], env=self.env, cwd=self.folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.addCleanup(self.finish, look)
            while look.poll() is None:
                self.dibs("queue", "rm", "mail")
                self.ok("queue", "push", "mail", "anew")
            shown = look.returncode == 0 and json.loads(look.stdout.read())
        self.assertLess(max(shown[key] for key in shown if key.endswith("_in_span")), 1000)

    def test_done_items(self):
        self.ok("queue", "push", "mail", "hello")
        self.ok("queue", "pop", "mail", "--ack")
        self.assertEqual(self.json("queue", "peek", "mail", "--place", "done", "--json")["items"], [])
        self.ok("queue", "set", "mail", "--keep-done", "2")
        for text in ("one", "two", "three"):
            self.ok("queue", "push", "mail", text)
            popped = self.json("queue", "pop", "mail", "--json")
            self.ok("queue", "ack", "mail", popped["token"], "--result", text + "\nsent")
        shown = self.json("queue", "stats", "mail", "--json")
        self.assertEqual([shown[key] for key in ("done", "keep_done", "acked")], [2, 2, 4])
        self.assertRegex(self.ok("queue", "stats", "mail"), r"(?m)^done +2 records$")
        items = self.json("queue", "peek", "mail", "--place", "done", "--json")["items"]
        self.assertEqual([item["result"] for item in items], ["three\nsent", "two\nsent"])
        self.assertEqual([item["place"] for item in items], ["done", "done"])
        self.assertIn("since", items[0])
        self.assertRegex(self.ok("queue", "peek", "mail", "--place", "done"), "two.sent")
        self.ok("queue", "push", "mail", "bad")
        self.ok("queue", "nack", "mail", self.json("queue", "pop", "mail", "--json")["token"], "--dead")
        self.assertEqual(self.ok("queue", "purge", "mail", "--done", "--dead", "--yes"), "3\n")
        self.assertEqual(self.json("queue", "stats", "mail", "--json")["done"], 0)
        self.fails(64, "queue", "set", "mail", "--keep-done", "100001")

    def test_nothing_there(self):
        self.ok("queue", "pause", "mail")
        self.assertEqual(self.json("queue", "peek", "mail", "--json")["items"], [])
        self.assertEqual(self.json("queue", "dead", "mail", "--json")["items"], [])
        self.assertEqual(self.json("queue", "purge", "mail", "--yes", "--json")["purged"], 0)
        self.assertEqual(self.ok("queue", "redrive", "mail", "--yes"), "0\n")
        self.assertIn("no dead letter 5", self.fails(1, "queue", "redrive", "mail", "5", "--yes"))

    def test_it_asks(self):
        self.ok("queue", "push", "mail", "hello")
        code, shown = self.on_terminal("queue", "purge", "mail", answer=b"n\n")
        self.assertEqual(code, 1)
        self.assertIn("drop 1 item of mail? [y/N]", shown)
        self.assertEqual(self.json("queue", "stats", "mail", "--json")["ready"], 1)
        code, shown = self.on_terminal("queue", "purge", "mail", answer=b"y\n")
        self.assertEqual(code, 0, shown)
        self.assertEqual(self.dibs("queue", "peek", "mail", "--json").stdout.count("hello"), 0)

    def test_a_queue_in_use_is_not_removed(self):
        self.ok("queue", "push", "mail", "hello")
        self.ok("queue", "pop", "mail", "--json", "--ttl", "1h")
        self.assertIn("the queue has 1 item, 0 dead letters and 1 consumer; purge it first",
                      self.fails(75, "queue", "rm", "mail"))
        self.ok("queue", "purge", "mail", "--all", "--yes")
        self.assertIn("the queue has 1 consumer; try again when it has none", self.fails(75, "queue", "rm", "mail"))

    def test_exit_codes(self):
        for verb in ("stats", "peek", "dead", "rm"):
            self.assertIn("there is no queue `none`", self.fails(1, "queue", verb, "none"))
        for verb in ("purge", "redrive"):
            self.assertIn("there is no queue `none`", self.fails(1, "queue", verb, "none", "--yes"))
            self.assertIn("--yes is needed", self.fails(64, "queue", verb, "none"))
        self.assertIn("no setting is given", self.fails(64, "queue", "set", "mail"))
        self.assertIn("not the id of an item", self.fails(64, "queue", "redrive", "mail", "five", "--yes"))
        self.fails(64, "queue", "peek", "mail", "--place", "nowhere")
        self.assertIn("did you mean 'queue rm'", self.fails(64, "queue", "delete", "mail"))


if __name__ == "__main__":
    main()
