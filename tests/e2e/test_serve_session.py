"""Sessions of `dibs serve`: leases that live with beats, move between daemons, and are given back."""
# SPDX-License-Identifier: MIT
import concurrent.futures
import fcntl
import http.server
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import uuid

from runtools import DIBS, PATIENCE, ROOT, alive, main, wait_until
from servetools import URL, Daemon, Events, ServeCase

from pace import PACE, NotInTime, in_time

EXAMPLES = {
    "sh": ("sh", f"{ROOT}/examples/sidecar/sidecar.sh"),
    "python": ("python3", f"{ROOT}/examples/sidecar/sidecar.py"),
    "node": ("node", f"{ROOT}/examples/sidecar/sidecar.mjs"),
}
KINDS = [kind for kind, command in EXAMPLES.items() if shutil.which(command[0])]
LONG_MS = 600000


class Stream(Events):
    """The events of a session or of the hub, read one after the other."""

    def __init__(self, case, path, **headers):
        self.connection = case.daemon.connect()
        case.addCleanup(self.connection.close)
        self.connection.request("GET", path, headers={
            "Authorization": "Bearer " + case.daemon.tokens["operate"], **headers})
        self.answer = self.connection.getresponse()

    def line(self):
        line = self.answer.readline().decode()
        if not line:
            raise AssertionError("the stream has ended")
        return line.rstrip("\n")


class SessionCase(ServeCase):
    def open(self, status=201, headers=None, **body):
        answer = self.daemon.post("/v1/sessions", {"name": self.name(), "ttl_ms": LONG_MS, **body}, role="operate",
                                  headers=headers)
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def path(self, session, lease=None):  # pylint: disable=arguments-differ
        return f"/v1/sessions/{session['session']}" + (f"/leases/{lease}" if lease else "")

    def put(self, session, lease, status=201, query=None, **body):
        answer = self.daemon.ask("PUT", self.path(session, lease), {"name": self.name(), **body}, role="operate",
                                 query=query)
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def state(self, session, lease, wait_ms=None):
        query = None if wait_ms is None else {"wait_ms": wait_ms}
        answer = self.daemon.get(self.path(session, lease), role="operate", query=query)
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def convert(self, session, lease, mode, status=200):
        answer = self.daemon.post(self.path(session, lease) + "/convert", {"mode": mode}, role="operate")
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def remove(self, session, lease=None, status=204):
        answer = self.daemon.ask("DELETE", self.path(session, lease), role="operate")
        self.assertEqual(answer.status, status, answer.text)

    def holders(self, name=None):
        return self.daemon.get("/v1/locks/" + (name or self.name())).json["holders"]

    def await_free(self, name=None):
        wait_until(lambda: not self.holders(name), "the lock to be free")

    def reload(self, *args):
        count = sum(line["event"] == "reloaded" for line in self.daemon.log())
        shown = self.daemon.dibs("access", *args, "--tokens", self.daemon.file).stdout.strip()
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.await_event("reloaded", count + 1)
        return shown


class Leases(SessionCase):
    def test_lease(self):
        session = self.open()
        self.assertEqual(session["beat_ms"], LONG_MS // 3)
        held = self.put(session, "a", meta={"build": "7"}, ttl_ms=60000)
        self.assertEqual(held["state"], "held")
        self.assertLessEqual(held["valid_ms"], 60000 - 600 - 2)
        holder, = self.holders()
        self.assertEqual((holder["fence"], holder["label"], holder["meta"]),
                         (held["fence"], self.name(), {"build": "7", "via": "serve"}))
        self.assertTrue(held["token"].startswith(holder["owner8"]))
        self.assertNotIn(session["session"], json.dumps(holder))
        self.remove(session, "a")
        self.await_free()
        self.assertEqual(self.state(session, "a")["state"], "freed")
        beat = self.daemon.post(self.path(session) + "/beat", role="operate")
        self.assertEqual((beat.status, beat.json["leases"]), (200, {}))
        self.put(session, "a", status=410, meta={"build": "7"}, ttl_ms=60000)
        self.remove(session)
        self.assert_problem(self.daemon.post(self.path(session) + "/beat", role="operate"), 404, "session-unknown")
        for secret in (held["token"], session["session"]):
            self.assertNotIn(secret, self.daemon.log_text())

    def test_a_beat_has_all_leases_when_some_are_over(self):
        """The daemon stands still until two leases are over, and may read the beat before it has noticed."""
        session, short_ms = self.open(), int(1000 * PACE)
        for lease, ttl_ms in (("long", LONG_MS), ("one", short_ms), ("two", short_ms)):
            self.put(session, lease, name=f"{self.name()}-{lease}", ttl_ms=ttl_ms)
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            connection.request("POST", self.path(session) + "/beat", body="{}", headers={
                "Authorization": "Bearer " + self.daemon.tokens["operate"], "Content-Type": "application/json"})
            time.sleep(1.1 * short_ms / 1000)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        leases = json.loads(answer.read())["leases"]
        self.assertEqual((sorted(leases), leases["long"]["state"]), (["long", "one", "two"], "held"))

    def test_valid_ms_is_the_lesser(self):
        session = self.open(ttl_ms=20000)
        held = self.put(session, "a", ttl_ms=60000)
        self.assertLessEqual(held["valid_ms"], 20000 - 200 - 2)
        beat = self.daemon.post(self.path(session) + "/beat", role="operate").json
        self.assertLessEqual(beat["valid_ms"], 20000 - 200 - 2)
        self.assertLessEqual(beat["leases"]["a"]["until_clock_ms"], beat["clock_ms"] + 20000)
        short = self.put(session, "b", ttl_ms=5000, name=self.name("2"))
        self.assertLessEqual(short["valid_ms"], 5000 - 50 - 2)

    def test_retry_of_put_is_one_lease(self):
        session, answers = self.open(), []
        threads = [threading.Thread(target=lambda: answers.append(self.put(session, "a"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({answer["fence"] for answer in answers}), 1)
        self.assertEqual(len(answers), 4)
        self.assertEqual(len(self.holders()), 1)
        self.assertEqual(self.put(session, "a", status=409, ttl_ms=5000)["code"], "differs")

    def test_removed_before_it_arrives(self):
        session = self.open()
        self.remove(session, "late")
        self.assertEqual(self.put(session, "late", status=410)["code"], "freed")
        self.assertEqual(self.holders(), [])

    def test_wait(self):
        token = self.hold(self.name())
        session = self.open()
        self.assertEqual(self.put(session, "no", status=409)["code"], "busy")
        self.assertEqual(self.put(session, "a", status=202, query={"wait_ms": 0}, wait_ms=LONG_MS)["state"], "waiting")
        self.assertEqual(self.state(session, "a")["state"], "waiting")
        wait_until(lambda: self.state(session, "a")["place"] == 1, "the first place")
        left = self.put(session, "b", status=202, query={"wait_ms": 0}, wait_ms=LONG_MS, name=self.name())
        self.assertEqual(left["state"], "waiting")
        wait_until(lambda: self.state(session, "b")["place"] == 2, "the second place")
        beat = self.daemon.post(self.path(session) + "/beat", role="operate").json["leases"]
        self.assertEqual((beat["a"]["place"], beat["b"]["place"]), (1, 2))
        self.remove(session, "b")
        self.assertNotIn("place", self.state(session, "b"))
        released = threading.Timer(0.1, self.daemon.dibs, ("release", self.name(), "--token", token))
        released.start()
        granted = self.state(session, "a", wait_ms=50000)
        released.join()
        self.assertEqual((granted["state"], len(self.holders())), ("held", 1))
        self.assertGreaterEqual(granted["until_clock_ms"], granted["clock_ms"])
        self.assertNotIn("place", granted)

    def test_refusals(self):
        session = self.open()
        for body, words in (({"nmae": "x"}, "nmae"), ({"mode": "any"}, "mode"), ({"ttl_ms": 5}, "ttl_ms"),
                            ({"wait_ms": -1}, "wait_ms"), ({"name": ""}, "name"), ({"mode": "permits"}, "capacity")):
            self.assertIn(words, self.put(session, "a", status=400, **body)["detail"])
        self.assertEqual(self.put(session, "a%20b", status=400)["code"], "invalid")
        for body in ({"ttl_ms": 1}, {"keep": "no"}, {"adopt": [{}]}, {"labels": 1},
                     {"adopt": [{"id": "a", "name": "x", "token": "1"}, {"id": "a", "name": "y", "token": "2"}]}):
            answer = self.daemon.post("/v1/sessions", body, role="operate")
            self.assertEqual(answer.status, 400, answer.text)
        self.assertEqual(self.daemon.post("/v1/sessions", {}, role="read").status, 403)
        # Another token does not see it.
        self.assert_problem(self.daemon.post(self.path(session) + "/beat", role="admin"), 404, "session-unknown")
        self.assertEqual(self.put(session, "a")["state"], "held")

    def test_limit_of_leases(self):
        session = self.open()
        for i in range(64):
            self.put(session, f"l{i}", name=self.name(str(i)))
        self.assertEqual(self.put(session, "more", status=429)["code"], "limit")
        self.remove(session, "l3")
        wait_until(lambda: not self.holders(self.name("3")), "the lease to be given back")
        self.put(session, "more")

    def test_post_again_is_one_session(self):
        key = {"Idempotency-Key": uuid.uuid4().hex}
        first = self.open(headers=key)
        self.assertEqual(self.open(status=200, headers=key)["session"], first["session"])
        self.assertNotEqual(self.open()["session"], first["session"])
        # The key is of one request: what else is asked with it would be passed over.
        self.assert_problem(self.daemon.post("/v1/sessions", {"name": "other", "ttl_ms": LONG_MS}, headers=key, role="operate"),
                            409, "differs")

    def test_adopt(self):
        """Taking over gives a new owner: the end of the session before ends nothing."""
        first = self.open()
        held = self.put(first, "a")
        adopt = {"id": "b", "name": self.name(), "token": held["token"]}
        second = self.open(adopt=[adopt, {**adopt, "id": "c"}])
        moved = second["leases"]["b"]
        self.assertEqual((moved["state"], second["leases"]["c"]["state"]), ("held", "lost"))
        self.assertGreater(moved["fence"], held["fence"])
        self.remove(first)
        wait_until(lambda: self.daemon.get(self.path(first), role="operate").status == 404, "the end of the session")
        self.assertEqual([holder["fence"] for holder in self.holders()], [moved["fence"]])
        self.assertEqual(self.state(second, "b")["state"], "held")

    def test_an_adoption_that_cannot_begin_is_in_the_answer(self):
        first = self.open()
        held = self.put(first, "a")
        adopt = {"id": "b", "name": self.name(), "token": held["token"]}
        second = self.open(adopt=[{**adopt, "mode": "permits"}, {**adopt, "id": "c"}])
        self.assertEqual(second["leases"]["b"], {"state": "freed", "why": "invalid"})
        # The token is not used up by it.
        self.assertEqual(second["leases"]["c"]["state"], "held")
        self.assertEqual(self.state(second, "b")["state"], "freed")
        self.assertIn("capacity", self.put(second, "b", status=400)["detail"])
        self.assertEqual(self.daemon.post(self.path(second) + "/beat", role="operate").json["leases"]["b"]["state"], "freed")
        self.remove(second, "b")
        self.remove(second)
        wait_until(lambda: not self.holders(), "the end of the leases")

    def test_convert(self):
        first, second = self.open(), self.open()
        reader = self.put(first, "a", mode="shared")
        self.put(second, "b", mode="shared")
        self.assertEqual(self.convert(first, "a", "exclusive", status=409)["code"], "busy")
        kept = self.state(first, "a")
        self.assertEqual((kept["state"], kept["mode"], kept["fence"]), ("held", "shared", reader["fence"]))
        self.remove(second, "b")
        wait_until(lambda: len(self.holders()) == 1, "the other reader to be gone")
        stream = Stream(self, self.path(first) + "/stream")
        self.assertEqual(stream.next("granted")[1]["fence"], reader["fence"])
        writer = self.convert(first, "a", "exclusive")
        self.assertEqual((writer["state"], writer["mode"]), ("held", "exclusive"))
        self.assertGreater(writer["fence"], reader["fence"])
        self.assertTrue(0 < writer["valid_ms"] <= 30000)
        self.assertEqual([(holder["fence"], holder["mode"]) for holder in self.holders()], [(writer["fence"], "exclusive")])
        told = stream.next("granted")[1]
        self.assertEqual((told["fence"], told["token"], told["mode"]), (writer["fence"], writer["token"], "exclusive"))
        self.assertEqual(self.put(second, "c", status=409, mode="shared")["code"], "busy")
        # The same again changes nothing, and the PUT is still of this lease.
        self.assertEqual(self.convert(first, "a", "exclusive")["fence"], writer["fence"])
        self.assertEqual(self.put(first, "a", mode="shared")["fence"], writer["fence"])
        lock = "/v1/locks/" + self.name()
        known = self.daemon.get(lock).headers["ETag"]
        lowered = self.convert(first, "a", "shared")
        self.assertEqual((lowered["mode"], lowered["fence"]), ("shared", writer["fence"]))
        # The fence stays, and the answer is another all the same.
        self.assertEqual(self.daemon.get(lock, headers={"If-None-Match": known}).status, 200)
        self.put(second, "d", mode="shared")
        adopt = {"name": self.name(), "mode": "shared"}
        third = self.open(adopt=[{**adopt, "id": "old", "token": reader["token"]}, {**adopt, "id": "new", "token": lowered["token"]}])
        self.assertEqual((third["leases"]["old"]["state"], third["leases"]["new"]["state"]), ("lost", "held"))

    def test_convert_is_checked(self):
        session = self.open()
        self.put(session, "x")
        for body in ({}, {"mode": "permits"}, {"mode": 1}, {"mode": "shared", "wait_ms": 1}):
            answer = self.daemon.post(self.path(session, "x") + "/convert", body, role="operate")
            self.assertEqual(self.assert_problem(answer, 400, "invalid")["pointer"], "/wait_ms" if len(body) > 1 else "/mode")
        self.put(session, "waits", status=202, query={"wait_ms": 0}, wait_ms=LONG_MS)
        self.assertEqual(self.convert(session, "waits", "shared", status=409)["code"], "busy")
        self.put(session, "permit", name=self.name("-permits"), mode="permits", capacity=2)
        self.assertEqual(self.convert(session, "permit", "shared", status=400)["code"], "invalid")
        self.put(session, "leads", name=self.name("-election"), kind="election", member="m")
        self.assertEqual(self.convert(session, "leads", "shared", status=400)["code"], "invalid")
        self.assertEqual(self.convert(session, "none", "shared", status=404)["code"], "notfound")
        self.remove(session, "x")
        self.assertEqual(self.convert(session, "x", "shared", status=410)["code"], "freed")
        self.assertEqual(self.daemon.post(self.path(session, "leads") + "/convert", {"mode": "shared"}, role="read").status, 403)

    @unittest.skipIf(URL, "the file of the store is to be locked")
    def test_removed_while_it_is_converted(self):
        session = self.open()
        self.put(session, "a", mode="shared")
        # No step is done until the file is free. Of two conversions one says that the other is under way.
        store = sqlite3.connect(self.daemon.url.removeprefix("sqlite:"), isolation_level=None)
        self.addCleanup(store.close)
        store.execute("BEGIN IMMEDIATE")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(self.daemon.post, self.path(session, "a") + "/convert", {"mode": "exclusive"}, role="operate")
                     for _ in range(2)]
            refused = next(concurrent.futures.as_completed(asked, PATIENCE))
            self.remove(session, "a")
            store.execute("ROLLBACK")
            answers = {done is refused: done.result(PATIENCE) for done in asked}
        self.assert_problem(answers[True], 409, "busy")
        self.assert_problem(answers[False], 410, "freed")
        self.await_free()

    def test_stream(self):
        session = self.open()
        stream = Stream(self, self.path(session) + "/stream")
        self.assertEqual(stream.next()[0], "beat")
        held = self.put(session, "a")
        self.assertEqual(stream.next("granted")[1]["fence"], held["fence"])
        second = Stream(self, self.path(session) + "/stream")
        self.assertEqual(second.next("granted")[1]["token"], held["token"])
        self.assertEqual(stream.next()[0], "replaced")
        self.assertEqual(stream.answer.read(), b"")
        self.daemon.dibs("break", self.name(), "--force", "--yes", "--reason", "test")
        lost = second.next("lost")[1]
        self.assertEqual((lost["id"], lost["state"]), ("a", "lost"))
        self.assertEqual(self.put(session, "a", status=410)["code"], "lost")
        self.remove(session, "a", status=410)
        self.remove(session)
        self.assertEqual(second.next()[0], "ended")

    def test_the_head_of_a_stream_replaces_none(self):
        session = self.open()
        path = self.path(session) + "/stream"
        stream = Stream(self, path)
        self.assertEqual(stream.next()[0], "beat")
        head = self.daemon.ask("HEAD", path, role="operate")
        self.assertEqual((head.status, head.headers["Content-Type"], head.text), (200, "text/event-stream", ""))
        self.put(session, "a")
        self.assertEqual(stream.next("granted", "replaced")[0], "granted")

    def test_stream_behind_a_proxy_keeps_nothing(self):
        session = self.open(keep="stream")
        stream = Stream(self, self.path(session) + "/stream", **{"X-Forwarded-For": "10.1.2.3"})
        self.assertEqual((stream.answer.status, json.loads(stream.answer.read())["code"]), (400, "keep"))

    def test_sessions_end_by_themselves(self):
        """One client is dead, one beats, one has a stream open: the first loses its lease after one ttl."""
        ttl_ms = int(2000 * PACE)
        sessions = {keep: self.open(ttl_ms=ttl_ms, keep="stream" if keep == "stream" else "heartbeat")
                    for keep in ("dead", "beats", "stream")}
        Stream(self, self.path(sessions["stream"]) + "/stream")
        for keep, session in sessions.items():
            self.put(session, "a", name=self.name(keep))
        begun = beaten = time.monotonic()
        while self.holders(self.name("dead")):
            in_time(time.monotonic() - begun, PATIENCE, "the end of a session")
            answer = self.daemon.post(self.path(sessions["beats"]) + "/beat", role="operate")
            in_time(time.monotonic() - beaten, ttl_ms / 1000, "the next beat")
            beaten = time.monotonic()
            self.assertEqual(answer.json["leases"]["a"]["state"], "held", answer.text)
            time.sleep(0.05)
        self.assertGreaterEqual(time.monotonic() - begun, ttl_ms / 1000 * 0.9)
        time.sleep(ttl_ms / 1000 / 3)
        kept = {keep: len(self.holders(self.name(keep))) for keep in ("beats", "stream")}
        in_time(time.monotonic() - beaten, ttl_ms / 1000, "a look after the last beat")
        self.assertEqual(kept, {"beats": 1, "stream": 1})


    def test_metrics(self):
        before = self.sample('dibs_sessions_ended_total{why="closed"}')
        session = self.open()
        self.put(session, "a")
        self.assertGreaterEqual(self.sample('dibs_sessions{keep="heartbeat"}'), 1)
        self.assertGreaterEqual(self.sample("dibs_session_leases"), 1)
        self.remove(session)
        wait_until(lambda: self.sample('dibs_sessions_ended_total{why="closed"}') > before, "the end to be counted")

    def sample(self, name):
        lines = [line.rsplit(" ", 1) for line in self.daemon.get("/metrics", role="read").text.splitlines()]
        return float(dict(line for line in lines if len(line) == 2)[name])


class Events(SessionCase):
    def test_events(self):
        stream = Stream(self, "/v1/events?prefix=" + self.name())
        self.assertEqual(stream.answer.headers["X-Accel-Buffering"], "no")
        self.assertEqual((stream.line(), stream.line()), ("retry: 2000", ""))
        token = self.hold(self.name())
        _, data = stream.next("locks")
        self.assertEqual(data["changed"][0]["name"], self.name())
        # The stream is cut; its client comes back with the last id, and misses nothing.
        seen = stream.id
        stream.connection.close()
        self.daemon.dibs("release", self.name(), "--token", token)
        again = Stream(self, "/v1/events?prefix=" + self.name(), **{"Last-Event-ID": seen})
        self.assertEqual(again.next("locks", "reset"), ("locks", {"changed": [], "removed": [self.name()], "seen": "look"}))
        other = Stream(self, "/v1/events", **{"Last-Event-ID": "00000000-7"})
        self.assertEqual(other.next()[0], "reset")
        self.assertEqual(Stream(self, "/v1/events?topics=none").answer.status, 400)

    def hear_short_holds(self, stream):
        """Holds until both ends of one were told by its client; all that the stream told."""
        told = []
        over = threading.Event()

        def read():
            while {event["kind"] for event in told if event["seen"] == "client"} < {"acquired", "released"}:
                told.append(stream.next("feed")[1])
            over.set()

        reader = threading.Thread(target=read)
        reader.start()
        begun = time.monotonic()
        # The daemon views from a moment after the stream began.
        while not over.wait(0.5):
            in_time(time.monotonic() - begun, PATIENCE, "a hold in the feed")
            self.daemon.dibs("run", "--share-events", "--owner", "desk", self.name(), "--", "true")
            self.daemon.dibs("run", self.name("-alone"), "--", "true")
        reader.join()
        return told

    def test_a_short_hold_is_told_by_its_client(self):
        """Of a hold that no look sees, the feed has both ends, and each once."""
        told = self.hear_short_holds(Stream(self, "/v1/events?topics=feed&prefix=" + self.name()))
        ends = [(event["name"], event["fence"], event["kind"] == "acquired") for event in told]
        self.assertEqual(len(ends), len(set(ends)), told)
        for event in told:
            if event["seen"] == "client":
                self.assertEqual((event["name"], event["label"], event["mode"]), (self.name(), "desk", "exclusive"), event)
        self.assertNotIn("dibs.viewers", self.daemon.get("/v1/state", role="read").text)

    def test_a_hold_between_two_streams_is_told(self):
        """A page that is loaded anew misses no short hold."""
        path = "/v1/events?topics=feed&prefix=" + self.name()
        stream = Stream(self, path)
        self.hear_short_holds(stream)
        seen = stream.id
        stream.connection.close()
        between = self.name("-between")
        self.daemon.dibs("run", "--share-events", between, "--", "true")
        again = Stream(self, path, **{"Last-Event-ID": seen})
        told = {}
        while between not in told or told[between] != "released":
            event = again.next("feed")[1]
            if event["seen"] == "client":
                told[event["name"]] = event["kind"]

    def test_a_lease_that_a_request_leaves_goes_on(self):
        """The daemon does not keep what it acquires for others, and does not call that released."""
        stream = Stream(self, "/v1/events?topics=feed&prefix=" + self.name())
        self.assertEqual((stream.line(), stream.line()), ("retry: 2000", ""))
        lease = self.daemon.post("/v1/leases/" + self.name(), {"ttl_ms": 60000}, role="operate").json
        kinds = [stream.next("feed")[1]["kind"]]
        for _ in range(3):
            renewed = self.daemon.post(f"/v1/leases/{self.name()}/renew", {"token": lease["token"]}, role="operate")
            self.assertEqual(renewed.status, 200, renewed.text)
        other = self.hold(self.name("-other"))
        kinds.append(stream.next("feed")[1]["name"])
        self.daemon.dibs("release", self.name("-other"), "--token", other)
        kinds.append(stream.next("feed")[1]["name"])
        self.daemon.post(f"/v1/leases/{self.name()}/release", {"token": lease["token"]}, role="operate")
        end = stream.next("feed")[1]
        kinds += [end["name"], end["kind"]]
        self.assertEqual(kinds, ["acquired", self.name("-other"), self.name("-other"), self.name(), "released"])

    def test_stream_ends_with_token(self):
        token = self.reload("add", "guest", "--role", "operate")
        session = self.daemon.post("/v1/sessions", {}, role=token).json
        streams = [Stream(self, path, Authorization="Bearer " + token)
                   for path in ("/v1/events", self.path(session) + "/stream", "/v1/topics/guests/messages")]
        self.assertEqual(streams[1].next()[0], "beat")
        self.reload("rm", "guest")
        for stream in streams:
            self.assertEqual(stream.next("goaway")[0], "goaway")
            self.assertEqual(stream.answer.read(), b"")


class OneStream(SessionCase):
    options = ("--streams-max", "1")

    def test_a_stream_that_is_refused_replaces_none(self):
        session = self.open()
        path = self.path(session) + "/stream"
        stream = Stream(self, path)
        self.assertEqual(stream.next()[0], "beat")
        self.assertEqual(Stream(self, path).answer.status, 503)
        self.put(session, "a")
        self.assertEqual(stream.next("granted", "replaced")[0], "granted")


class Reading(SessionCase):
    """A unix socket: the kernel has acknowledged what its client has read."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="dibs-reading-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.socket = folder + "/serve.sock"
        cls.options = ("--listen", f"127.0.0.1:0,unix:{cls.socket}")
        super().setUpClass()

    def stream(self, session):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.connect(self.socket)
        client.sendall(f"GET {self.path(session)}/stream HTTP/1.1\r\nHost: localhost\r\n"
                       f"Authorization: Bearer {self.daemon.tokens['operate']}\r\n\r\n".encode())
        return client

    def refuse_one(self, session, number):
        """News for the stream of the session; the status."""
        return self.daemon.ask("PUT", self.path(session, f"r{number}"), {"name": self.name(), "wait_ms": 0}, role="operate").status

    def test_a_stream_without_a_pause_keeps_its_session(self):
        """One byte of the news is always on its way. A client that reads no more loses its session, whatever comes."""
        ttl_ms, numbers = int(2000 * PACE), iter(range(100000))
        self.hold(self.name(), ttl="1h")
        session = self.open(ttl_ms=ttl_ms, keep="stream")
        client = self.stream(session)
        begun = read = time.monotonic()
        while read - begun < ttl_ms / 1000 * 1.5:
            self.assertEqual(self.refuse_one(session, next(numbers)), 409)
            unread, = struct.unpack("i", fcntl.ioctl(client, termios.FIONREAD, bytes(4)))
            if unread > 1:
                self.assertTrue(client.recv(unread - 1))
            in_time(time.monotonic() - read, ttl_ms / 1000 / 6, "a look at the stream")
            read = time.monotonic()
            time.sleep(0.06)
        while self.refuse_one(session, next(numbers)) != 404:
            in_time(time.monotonic() - read, PATIENCE, "the end of a session")
            time.sleep(0.06)
        self.assertGreater(time.monotonic() - read, ttl_ms / 1000 / 3)


class ManyLeases(SessionCase):
    options = ("--session-leases", "1024", "--token-rate", "100000")

    @unittest.skipIf(URL, "the URL does not matter")
    def test_a_beat_of_many_leases(self):
        """What one event has no room for is in the next one, and each is whole."""
        def acquire(number):
            answer = self.daemon.post(f"/v1/leases/n{number}", {"ttl_ms": LONG_MS}, role="operate")
            self.assertEqual(answer.status, 201, answer.text)
            return {"id": f"{number:064}", "name": f"n{number}", "token": answer.json["token"].replace(":", ".") + ".x"}

        # A request has no more room, and a session takes a hundred more at once.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            session = self.open(keep="stream", adopt=list(pool.map(acquire, range(360))))
            for answer in pool.map(lambda number: self.put(session, f"{number:064}", name=f"n{number}"), range(360, 450)):
                self.assertEqual(answer["state"], "held")
        stream, told = Stream(self, self.path(session) + "/stream"), []
        while len(told) < 450:
            told += stream.next("beat")[1]["until_clock_ms"]
        self.assertEqual(sorted(told), [f"{number:064}" for number in range(450)])
        self.remove(session)


@unittest.skipIf(URL, "a store that fails is one of its own")
class Failing(SessionCase):
    def test_adopt(self):
        """The store does not answer about one lease: the others do not wait for it one after the other."""
        other = Daemon("--store-timeout", "3s", url=f"fault+{self.daemon.url}?step=convert&delay_ms=600000")
        self.addCleanup(other.end)
        first = self.open()
        held = [self.put(first, f"l{number}", name=self.name(f"-{number}")) for number in range(3)]
        answer = other.post("/v1/sessions", {"adopt": [
            {"id": f"l{number}", "name": self.name(f"-{number}"), "token": lease["token"]} for number, lease in enumerate(held)]})
        self.assertEqual(answer.status, 201, answer.text)
        self.assertEqual([answer.json["leases"][f"l{number}"] for number in range(3)],
                         [{"state": "freed", "why": why} for why in ("unknown", "unavail", "unavail")])

    def test_a_drain_gives_up_on_a_store_that_fails(self):
        """Each renewal takes 3 s, and is done though its answer is lost. Others are begun for 2 s; the rest is left as it is."""
        other = Daemon("--store-timeout", "60s", "--drain-within", "60s",
                       url=f"fault+{self.daemon.url}?step=renew&fault=drop_after&delay_ms=3000")
        self.addCleanup(other.end)
        session = other.post("/v1/sessions", {"ttl_ms": LONG_MS}, role="operate").json["session"]
        names = [self.name(f"-{number}") for number in range(4)]
        for name in names:
            answer = other.ask("PUT", f"/v1/sessions/{session}/leases/{name}", {"name": name, "ttl_ms": LONG_MS}, role="operate")
            self.assertEqual(answer.status, 201, answer.text)

        def left():
            return [self.holders(name)[0]["left_ms"] for name in names]

        before, seen_at = left(), time.monotonic()
        other.process.terminate()
        self.assertEqual(other.process.wait(PATIENCE), 0)
        passed_ms = 1000 * (time.monotonic() - seen_at)
        renewed = [name for name, was, now in zip(names, before, left()) if now + passed_ms > was + 1000]
        self.assertIn(len(renewed), (1, 2), (before, passed_ms))


class ClientCase(SessionCase):
    """The clients of examples/sidecar."""

    daemons = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemons = [cls.daemon]

    def client(self, kind, name, command=("sh", "-c", 'echo "$$ $DIBS_FENCE"; exec cat'), token=None, ttl_ms=5000 * PACE, urls=()):
        urls = [*urls, *(f"http://127.0.0.1:{daemon.port}" for daemon in self.daemons)]
        env = {**self.daemon.env, "DIBS_SERVE": " ".join(urls), "DIBS_SERVE_TOKEN": token or self.daemon.tokens["operate"],
               "DIBS_SESSION_TTL_MS": str(int(ttl_ms))}
        process = subprocess.Popen([*EXAMPLES[kind], name, *command], env=env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, process)
        return process

    def rival(self, name):
        process = subprocess.Popen([DIBS, "acquire", name, "--wait", "1h"], env=self.daemon.env, stdout=subprocess.PIPE)
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()


class Moves(ClientCase):
    """Three daemons of one store, with the same tokens."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()  # the first is the last one, which stays
        for _ in range(2):
            other = Daemon(url=cls.daemon.url)
            cls.addClassCleanup(other.end)
            shutil.copy(cls.daemon.file, other.file)
            other.process.send_signal(signal.SIGHUP)
            other.await_event("reloaded")
            other.tokens = cls.daemon.tokens
            cls.daemons.insert(0, other)

    def fence_of(self, name):
        held = json.loads(self.daemon.dibs("show", name, "--json", check=False).stdout or "{}").get("holders")
        return held[0]["fence"] if held else 0

    def await_moved(self, clients, fences):
        """A lease that is taken over has a new fence. Only a client that is too slow loses it."""

        def moved(kind):
            if clients[kind].poll() is not None:
                raise NotInTime(f"{kind} lost its lock: {clients[kind].stderr.read()}")
            return self.fence_of(kind) > fences[kind] and self.fence_of(kind)

        for kind in fences:
            fences[kind] = wait_until(lambda kind=kind: moved(kind), f"the lease of {kind} to move")

    def test_without_curl(self):
        """It says so, and does not try for ever."""
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([shutil.which("sh"), EXAMPLES["sh"][1], "x", "true"], env={"PATH": empty},
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (127, "sidecar.sh: curl is not installed\n"))

    def test_a_long_ttl(self):
        """Its third is longer than the daemon lets a request wait for a lock."""
        clients = {kind: self.client(kind, f"long-{kind}", ttl_ms=600000) for kind in KINDS}
        for kind, client in clients.items():
            fence = int((client.stdout.readline() or client.stderr.read()).split()[1])
            self.assertEqual(fence, self.fence_of(f"long-{kind}"))
            client.stdin.close()
            self.assertEqual(client.wait(PATIENCE), 0)

    def test_clients(self):
        """A daemon is killed, the next is drained: no client loses its lock. Then the lock is broken."""
        command = ("sh", "-c", 'exec 3<&0; cat <&3 & echo "$$ $DIBS_FENCE $!"; exec cat')
        clients = {kind: self.client(kind, kind, command) for kind in KINDS}
        begun = {kind: client.stdout.readline().split() for kind, client in clients.items()}
        fences = {kind: int(words[1]) for kind, words in begun.items()}
        self.assertEqual(fences, {kind: self.fence_of(kind) for kind in KINDS})
        rivals = {kind: self.rival(kind) for kind in KINDS}
        self.daemons[0].process.kill()
        self.await_moved(clients, fences)
        self.daemons[1].process.terminate()
        self.assertEqual(self.daemons[1].process.wait(PATIENCE), 0, self.daemons[1].log_text())
        self.await_moved(clients, fences)
        for kind in KINDS:
            self.assertIsNone(rivals[kind].poll(), kind)
            os.kill(int(begun[kind][0]), 0)  # the command runs on
        # One ends in order, the others lose their locks.
        clients[KINDS[0]].stdin.close()
        self.assertEqual(clients[KINDS[0]].wait(PATIENCE), 0)
        for kind in KINDS[1:]:
            self.daemon.dibs("break", kind, "--force", "--yes", "--reason", "test")
            self.assertEqual(clients[kind].wait(PATIENCE), 75, kind)
        for kind in KINDS:
            wait_until(lambda child=int(begun[kind][2]): not alive(child), f"the end of the child of the command of {kind}")
            self.assertEqual(rivals[kind].wait(PATIENCE), 0, kind)


@unittest.skipIf(URL, "the URL does not matter")
class Ends(ClientCase):
    """A client that ends before its command, which must not go on beside the next holder."""

    def begin(self, **more):
        clients = {kind: self.client(kind, self.name("-" + kind), **more) for kind in KINDS}
        works = {kind: int(client.stdout.readline().split()[0]) for kind, client in clients.items()}
        return clients, works, {kind: self.rival(self.name("-" + kind)) for kind in KINDS}

    def assert_ended(self, clients, works, rivals, status):
        for kind in KINDS:
            ended = clients[kind].wait(PATIENCE)
            self.assertFalse(alive(works[kind]), f"the command of {kind} goes on, and its lock will be another's")
            if ended == 75:
                raise NotInTime(f"{kind} lost its lock before")
            self.assertEqual(ended, status, kind)
            self.assertEqual(rivals[kind].wait(PATIENCE), 0, kind)

    def test_refused(self):
        token = self.reload("add", "guest", "--role", "operate")
        begun = self.begin(token=token)
        self.reload("rm", "guest")
        self.assert_ended(*begun, 1)

    def test_terminated(self):
        """The lease is given back: the rivals do not wait for its end."""
        begun = self.begin(ttl_ms=LONG_MS / 4)
        for client in begun[0].values():
            client.terminate()
        self.assert_ended(*begun, 143)

    def test_terminated_in_the_queue(self):
        self.hold(self.name())
        clients = [self.client(kind, self.name()) for kind in KINDS]
        wait_until(lambda: len(self.daemon.get("/v1/locks/" + self.name()).json["waiters"]) == len(KINDS), "the clients to wait")
        for client in clients:
            client.terminate()
        for kind, client in zip(KINDS, clients):
            self.assertEqual(client.wait(PATIENCE), 143, kind)

    def test_a_command_that_is_not_there(self):
        clients = {kind: self.client(kind, self.name("-" + kind), ("/not/there",), ttl_ms=LONG_MS / 4) for kind in KINDS}
        for kind, client in clients.items():
            self.assertEqual(client.wait(PATIENCE), 127, kind)
            self.await_free(self.name("-" + kind))

    def test_a_proxy_without_a_daemon(self):
        """What it answers is no JSON: the clients ask the next daemon."""

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(502)
                self.end_headers()
                self.wfile.write(b"<h1>Bad Gateway</h1>")

            def log_message(self, *_):
                pass

        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        self.addCleanup(proxy.server_close)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.shutdown)
        for kind in KINDS:
            client = self.client(kind, self.name("-" + kind), ("true",), urls=[f"http://127.0.0.1:{proxy.server_port}"])
            self.assertEqual(client.wait(PATIENCE), 0, client.stderr.read() if client.returncode else kind)


if __name__ == "__main__":
    main()
