"""publish, subscribe, events read, ls, show, trim."""
# SPDX-License-Identifier: MIT
import array
import fcntl
import json
import os
import signal
import struct
import termios
import threading
import time
import unittest

from support import PATIENCE, Case, main, span, wait_until


class Events(Case):
    def test_every_subscriber_gets_every_event(self):
        subscribers = [self.start("subscribe", "t", "--since", "start", "-n", "3", "--json") for _ in range(2)]
        first = int(self.ok("publish", "t", "one"))
        second = self.json("publish", "t", "two", "--json")["position"]
        self.assertGreater(second, first)
        self.ok("publish", "-q", "t", "-", stdin=None, input="three")
        for subscriber in subscribers:
            got = [json.loads(subscriber.stdout.readline()) for _ in range(3)]
            self.assertEqual([g["value"] for g in got], ["one", "two", "three"])
            self.assertEqual([g["position"] for g in got[:2]], [first, second])
            self.assertEqual(subscriber.wait(), 0)

    def test_where_to_begin(self):
        positions = self.ok("publish", "--lines", "t", stdin=None, input="a\nb\nc").split()
        self.assertEqual(self.ok("events", "read", "t"), "a\nb\nc\n")
        self.assertEqual(self.ok("events", "read", "t", "--since", positions[1]), "c\n")
        self.assertEqual(self.ok("events", "read", "t", "--since", "end"), "")
        self.assertEqual(self.ok("events", "read", "t", "--since", "1h", "-n", "2"), "a\nb\n")
        self.assertEqual(self.ok("events", "read", "t", "--since", "@%d" % (time.time() + 3600)), "")
        self.assertEqual(self.ok("events", "read", "t", "--with-position", "-n", "1"), positions[0] + " a\n")
        self.assertIn("--since is start", self.fails(64, "events", "read", "t", "--since", "soon"))

    def test_a_trim_is_a_gap(self):
        positions = self.ok("publish", "--lines", "t", stdin=None, input="a\nb\nc").split()
        self.assertEqual(self.ok("events", "trim", "t", "--through", positions[1], "--yes"), "2 events removed\n")
        shown = self.json("events", "show", "t", "--json")
        self.assertEqual((shown["events"], shown["bytes"]), (1, 1))
        self.assertEqual([str(shown["first"]), str(shown["last"])], [positions[2], positions[2]])
        got = self.ok("events", "read", "t", "--since", positions[0], "--json").splitlines()
        gap = json.loads(got[0])
        self.assertEqual((gap["kind"], str(gap["from"]), str(gap["to"])), ("gap", positions[0], positions[1]))
        self.assertEqual(json.loads(got[1])["value"], "c")
        self.assertIn("were trimmed", self.fails(1, "events", "read", "t", "--since", positions[0], "--fail-gap"))
        told = self.json("events", "trim", "t", "--through", "end", "-y", "--json")
        self.assertEqual(told, {"schema": 1, "topic": "t", "removed": 1})

    def test_a_trim_asks_and_is_in_the_trail(self):
        self.ok("publish", "-q", "--lines", "t", stdin=None, input="a\nb\nc")
        trim = ("events", "trim", "t", "--through", "end")
        self.assertIn("--yes is needed", self.fails(64, *trim))
        code, shown = self.on_terminal(*trim, answer=b"n\n")
        self.assertEqual(code, 1, shown)
        self.assertIn("remove all 3 events of t?", shown)
        away = "fault+" + self.env["DIBS_URL"] + "?fault=fail&step=append"
        self.assertIn("the trail did not take events-trim of t", self.fails(69, "--url", away, *trim, "-y"))
        self.assertEqual(self.json("events", "show", "t", "--json")["events"], 3)
        code, shown = self.on_terminal(*trim, "--reason", "too many", answer=b"y\n")
        self.assertEqual(code, 0, shown)
        trail = self.json("trail", "--json")["trail"]
        self.assertEqual([(e["action"], e["name"]) for e in trail], [("events-trim", "t")])
        self.assertTrue(trail[0]["reason"].startswith("too many [who="))

    def test_topics_are_listed(self):
        self.assertEqual(self.json("events", "ls", "t", "--json")["topics"], [])
        self.ok("publish", "-q", "--lines", "t2", stdin=None, input="a\nbc")
        self.ok("publish", "-q", "t1", "x")
        self.ok("publish", "-q", "u", "x")
        self.ok("events", "trim", "t1", "--through", "end", "-y")
        topics = self.json("events", "ls", "t", "--json")["topics"]
        shown = [self.json("events", "show", name, "--json") for name in ("t1", "t2")]
        self.assertEqual(topics, [{k: v for k, v in one.items() if k != "schema"} for one in shown])
        self.assertEqual([(one["events"], one["bytes"], one["first"] > 0) for one in topics], [(0, 0, False), (2, 3, True)])
        self.assertEqual(self.ok("events", "ls", "--names", "t"), "t1\nt2\n")
        # The trim has left an entry in the trail.
        self.assertEqual(self.ok("events", "ls", "--names"), "dibs.trail\nt1\nt2\nu\n")
        table = self.ok("events", "ls", "t2").splitlines()
        self.assertEqual(table[0].split(), ["TOPIC", "EVENTS", "BYTES", "FIRST", "LAST"])
        self.assertEqual(table[1].split(), ["t2", "2", "3", str(shown[1]["first"]), str(shown[1]["last"])])

    def test_a_group_goes_on_where_it_was(self):
        self.ok("publish", "-q", "--lines", "t", stdin=None, input="a\nb\nc")
        first = ["subscribe", "t", "--group", "g", "--since", "start"]
        self.assertEqual(self.ok(*first, "-n", "2"), "a\nb\n")
        self.assertEqual(self.ok(*first, "-n", "1"), "c\n")
        self.fails(75, *first, "-w", "10ms")
        self.assertEqual(self.ok("subscribe", "t", "--group", "h", "--since", "start", "-n", "1"), "a\n")

    def test_a_signal_gives_the_turn_to_the_next(self):
        one_of_group = ["subscribe", "t", "--group", "g", "--since", "start", "--ttl", "1h"]
        self.ok("publish", "-q", "t", "one")
        for number in (signal.SIGTERM, signal.SIGINT):
            reader = self.start(*one_of_group)
            self.assertEqual(reader.stdout.readline(), "one\n" if number == signal.SIGTERM else "two\n")
            reader.send_signal(number)
            self.assertEqual(reader.wait(PATIENCE), -number, reader.stderr.read())
            self.ok("publish", "-q", "t", "two" if number == signal.SIGTERM else "three")
        self.assertEqual(self.ok(*one_of_group, "-n", "1", "-w", span(20)), "three\n")

    def test_a_signal_ends_a_print_that_nobody_takes(self):
        one_of_group = ["subscribe", "t", "--group", "g", "--since", "start", "--ttl", "1h"]
        for letter in "abc":
            self.ok("publish", "-q", "t", "-", stdin=None, input=letter * 60000)
        reader = self.start(*one_of_group)
        unread = array.array("i", [0])

        def blocked():
            fcntl.ioctl(reader.stdout, termios.FIONREAD, unread)
            return unread[0] > 60001

        wait_until(blocked, "a full pipe")
        reader.send_signal(signal.SIGTERM)
        self.assertEqual(reader.wait(PATIENCE), -signal.SIGTERM)
        # The second one was not printed to its end.
        self.assertIn(self.ok(*one_of_group, "-n", "1", "-w", span(20))[0], "ab")

    def test_a_message_is_for_those_who_listen_now(self):
        self.ok("publish", "--live", "t", "before")
        listeners = [self.start("subscribe", "--live", "t", "-n", "2", *more) for more in ([], ["--json"])]
        told = threading.Event()

        def send():
            while not told.wait(0.05):
                self.ok("publish", "--live", "t", "now")
        sender = threading.Thread(target=send)
        sender.start()
        try:
            first = [listener.stdout.readline() for listener in listeners]
        finally:
            told.set()
            sender.join()
        self.assertEqual(first[0], "now\n")
        self.assertEqual(json.loads(first[1]), {"schema": 1, "topic": "t", "kind": "message", "value": "now"})
        self.assertEqual(self.json("publish", "--live", "t", "now", "--json")["bytes"], 3)
        for listener in listeners:
            self.assertEqual(listener.wait(), 0)
        self.fails(1, "events", "show", "t")
        self.fails(75, "subscribe", "--live", "t", "-w", "10ms")
        self.assertIn("--since", self.fails(64, "subscribe", "--live", "--since", "start", "t"))
        self.assertIn("--keep", self.fails(64, "publish", "--live", "--keep", "3", "t", "x"))
        self.assertIn("3900", self.fails(64, "publish", "--live", "t", "-", stdin=None, input="x" * 4000))

    def test_limits(self):
        for _ in range(6):
            self.ok("publish", "-q", "t", "0123456789", "--keep-bytes", "30")
        self.assertEqual(self.json("events", "show", "t", "--json")["events"], 3)

    def test_lines_have_any_bytes(self):
        with open(self.path("lines"), "wb") as file:
            file.write(b"a\0b\n\nc")
        with open(self.path("lines"), "rb") as file:
            self.ok("publish", "-q", "--lines", "t", stdin=file)
        got = [json.loads(line) for line in self.ok("events", "read", "t", "--since", "start", "--json").splitlines()]
        self.assertEqual([event["value"] for event in got], ["a\0b", "", "c"])
        self.assertIn("65536", self.fails(64, "publish", "--lines", "t", stdin=None, input="x" * 65537 + "\n"))
        self.ok("publish", "-q", "--lines", "t", stdin=None, input="x" * 65536 + "\n")
        self.assertIn("give no DATA", self.fails(64, "publish", "--lines", "t", "x"))

    def test_exit_codes(self):
        self.fails(1, "events", "show", "nothing")
        self.fails(64, "events", "trim", "nothing")
        self.fails(64, "events", "trim", "nothing", "--through", "all")
        self.fails(64, "publish", "dibs.trail", "x")
        self.fails(75, "subscribe", "nothing", "-w", "10ms")
        self.assertIn("65536", self.fails(64, "publish", "t", "-", stdin=None, input="x" * 70000))


@unittest.skipUnless(os.environ.get("DIBS_TEST_URL") and os.environ.get("DIBS_CLOCK_SHIM"), "needs a server and the clock shim")
class Clock(Case):
    def test_a_duration_is_before_the_time_of_the_store(self):
        self.ok("publish", "-q", "t", "one")
        with open(self.path("clock"), "wb") as file:
            file.write(struct.pack("qq", 2 * 3600 * 1000000, 0))
        ahead = {**self.env, "LD_PRELOAD": os.environ["DIBS_CLOCK_SHIM"], "CLOCK_SHIM": self.path("clock")}
        self.assertEqual(self.ok("events", "read", "t", "--since", "1h", env=ahead), "one\n")


if __name__ == "__main__":
    main()
