"""`dibs serve`: elections, groups, barriers, latches, topics, queues, breakers and limits."""
# SPDX-License-Identifier: MIT
import base64
import concurrent.futures
import json
import signal
import subprocess
import threading
import unittest

from runtools import DIBS, PATIENCE, NotInTime, main, wait_until
from servetools import URL, ServeCase


class Base(ServeCase):
    """What the tests of all nouns share; they ask one daemon."""

    def session(self, role="operate", **more):
        return self.daemon.post("/v1/sessions", dict({"ttl_ms": 600000}, **more), role=role).json["session"]

    def end(self, session, role="operate"):
        self.assertEqual(self.daemon.ask("DELETE", f"/v1/sessions/{session}", role=role).status, 204)

    def listed(self, path, name, found=lambda item: True, **query):
        """The row of a name, once the list has it so."""
        def look():
            answer = self.daemon.get(path, role="read", query=dict({"prefix": name}, **query))
            self.assertEqual(answer.status, 200, answer.text)
            rows = [item for item in answer.json["items"] if item["name"] == name and found(item)]
            return rows[0] if rows else None

        return wait_until(look, f"{name} in {path}")

    def audited(self, action, target, result="OK"):
        def look():
            lines = [line for line in self.daemon.log() if line["event"] == "audit" and line["action"] == action
                     and line["target"] == target and line["result"] == result]
            return lines[0] if lines else None

        line = wait_until(look, f"{action} of {target} in the log")
        self.assert_trail(action, target, line["reason"], line["request"])
        return line

    def assert_trail(self, action, target, reason, request):
        """The store keeps what the log has."""
        entries = self.daemon.get("/v1/audit", role="read", query={"name": target}).json["items"]
        found = [entry for entry in entries if entry["request"] == request]
        self.assertEqual([(entry["action"], entry["reason"], entry["from"]) for entry in found], [(action, reason, "127.0.0.1")])
        self.assertIn(found[0]["who"], self.daemon.tokens)

    def behind(self, *args):
        """A command of dibs that goes on until the test ends."""
        process = subprocess.Popen([DIBS, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.daemon.env)

        def end():
            process.terminate()
            process.communicate()

        self.addCleanup(end)
        return process


class Elections:
    def campaign(self, session, name, member, lease="c1", **more):
        return self.daemon.ask("PUT", f"/v1/sessions/{session}/leases/{lease}", dict({
            "name": name, "kind": "election", "member": member, "wait_ms": 60000}, **more), role="operate", query={"wait_ms": 0})

    def test_terms(self):
        name = self.name()
        empty = self.daemon.get(f"/v1/elections/{name}", role="read")
        self.assertEqual((empty.status, empty.json["leader"], empty.json["term"]), (200, None, 0))
        first, second = self.session(), self.session()
        self.campaign(first, name, "ann")
        row = wait_until(lambda: (lambda e: e if e["leader"] else None)(self.daemon.get(f"/v1/elections/{name}").json), "a leader")
        self.assertEqual(row["leader"]["member"], "ann")
        self.assertEqual(row["leader"]["meta"], {"via": "serve"})
        # The command and the library know it by the same name.
        told = json.loads(self.daemon.dibs("leader", name, "--json").stdout)
        self.assertEqual((told["leader"], told["term"]), ("ann", row["term"]))
        self.assertEqual(self.campaign(second, name, "bob").status, 202)
        wait_until(lambda: self.daemon.get(f"/v1/elections/{name}").json["candidate_count"] == 1, "a candidate")
        answer = self.daemon.get(f"/v1/elections/{name}", role="read")
        self.assertEqual(answer.json["candidates"][0]["member"], "bob")
        self.assertRegex(answer.headers["ETag"], f'^"{row["term"]}-1-1-[0-9a-f]{{8}}"$')
        self.assertEqual(self.daemon.get(f"/v1/elections/{name}", headers={"If-None-Match": answer.headers["ETag"]}).status, 304)
        self.assertEqual(self.listed("/v1/elections", name, lambda e: e["candidate_count"] == 1, state="led")["term"], row["term"])
        # A lock is no election.
        self.hold(name + "-lock")
        self.assertEqual(self.daemon.get("/v1/elections", query={"prefix": name + "-lock"}).json["items"], [])
        # Another's term needs an admin, who says which one.
        path = f"/v1/elections/{name}/resign"
        self.assert_problem(self.daemon.post(path, {"term": row["term"]}, role="operate"), 403, "role")
        self.assert_problem(self.daemon.post(path, {"reason": "why"}), 428, "fence-missing")
        self.assert_problem(self.daemon.post(path, {"term": row["term"] - 1}), 409, "stale")
        self.assert_problem(self.daemon.post(path, {"session": "0" * 32}, role="operate"), 404, "session-unknown")
        # A session is of its token alone.
        self.assert_problem(self.daemon.post(path, {"session": first}, role="admin"), 404, "session-unknown")
        self.assert_problem(self.daemon.post(path, {"session": second}, role="operate"), 409, "stale")
        self.assert_problem(self.daemon.post(path, {"session": first, "term": row["term"] - 1}, role="operate"), 409, "stale")
        self.assertEqual(self.daemon.post(path, {"session": first, "term": row["term"], "reason": "done"}, role="operate").json,
                         {"resigned": row["term"]})
        line = self.audited("resign", name)
        self.assertEqual((line["who"], line["reason"], line["fence"]), ("operate", "done", row["term"]))
        later = wait_until(lambda: (lambda e: e if e["leader"] and e["leader"]["member"] == "bob" else None)(
            self.daemon.get(f"/v1/elections/{name}").json), "the next leader")
        self.assertGreater(later["term"], row["term"])
        self.assertEqual(self.daemon.post(path, {"term": later["term"], "reason": "hung"}).status, 200)
        entry = self.daemon.get("/v1/audit", query={"name": name}).json["items"][0]
        self.assertEqual((entry["fence"], entry["who"], entry["reason"]), (later["term"], "admin", "hung"))
        self.end(first)
        self.end(second)

    def test_campaigns_are_checked(self):
        session = self.session()
        for body in ({"member": ""}, {"member": "x" * 64}, {"member": "a\tb"}, {"member": 7}, {"member": None},
                     {"kind": "lock", "member": "ann"}, {"kind": "king"}, {"mode": "shared"}):
            with self.subTest(body):
                body = dict({"name": self.name(), "kind": "election", "member": "ann"}, **body)
                self.assert_problem(self.daemon.ask("PUT", f"/v1/sessions/{session}/leases/x", body, role="operate"), 400, "invalid")
        self.end(session)

    def test_groups(self):
        name = self.name()
        self.assertEqual(self.daemon.get(f"/v1/members/{name}", role="read").json, {"name": name, "members": []})
        self.behind("join", name, "--member", "one", "--ttl", "60s", "--meta", "zone=a", "--", "sleep", "1000")
        group = wait_until(lambda: self.daemon.get(f"/v1/members/{name}", role="read").json["members"], "a member")
        self.assertEqual((group[0]["member"], group[0]["meta"]), ("one", {"zone": "a"}))
        self.assertEqual(self.listed("/v1/members", name)["member_count"], 1)
        page = self.daemon.get("/v1/members", query={"prefix": name}).json
        self.assertEqual((page["complete"], page["total"], page["items"][0]["counting"]), (True, 1, 0))


class Meetings:
    def arrive(self, name, session, number, role="operate", wait_ms=None, **more):
        body = dict({"session": session, "id": f"a{number}", "parties": 2}, **more)
        return self.daemon.post(f"/v1/barriers/{name}/arrive", body, role=role, query={"wait_ms": wait_ms} if wait_ms else None)

    def test_barriers(self):
        name = self.name()
        self.assert_problem(self.daemon.get(f"/v1/barriers/{name}", role="read"), 404, "notfound")
        first, second = self.session(), self.session()
        answer = self.arrive(name, first, 1, wait_ms=1)
        self.assertEqual((answer.status, answer.json["state"]), (202, "waiting"))
        row = wait_until(lambda: (lambda b: b if b.status == 200 and b.json["arrived"] == 1 else None)(
            self.daemon.get(f"/v1/barriers/{name}", role="read")), "an arrival")
        self.assertEqual((row.json["parties"], len(row.json["seats"]), row.json["seats"][0]["arrived"]), (2, 1, True))
        self.assertEqual(self.daemon.get(f"/v1/barriers/{name}", headers={"If-None-Match": row.headers["ETag"]}).status, 304)
        self.assertEqual(self.listed("/v1/barriers", name, state="gathering")["arrived"], 1)
        # The same arrival again is no second party; another one of the session is refused.
        self.assertEqual(self.arrive(name, first, 1, wait_ms=1).status, 202)
        self.assert_problem(self.arrive(name, first, 2, wait_ms=1), 409, "differs")
        self.assert_problem(self.arrive(name, first, 1, role="admin"), 404, "session-unknown")
        # A party that says another number has no seat, and may come again with the right one.
        self.assert_problem(self.arrive(name, second, 1, parties=3), 409, "mismatch")
        passed = self.arrive(name, second, 1)
        self.assertEqual((passed.status, passed.json["state"]), (200, "passed"), passed.text)
        self.assertEqual(self.arrive(name, first, 1).json, passed.json)
        # The next generation; a session that ends breaks it for the others.
        self.assertEqual(self.arrive(name, first, 2, wait_ms=1).status, 202)
        wait_until(lambda: self.daemon.get(f"/v1/barriers/{name}").json.get("arrived") == 1, "the second generation")
        self.end(second)
        self.assert_problem(self.arrive(name, first, 2), 409, "broken")
        self.end(first)
        wait_until(lambda: self.daemon.get(f"/v1/barriers/{name}").status == 404, "the end of the barrier")

    def test_a_seat_stays_as_its_first_arrival_made_it(self):
        """Options that it cannot have are refused: an arrival would wait for longer than its client thinks."""
        name, session = self.name(), self.session()

        def arrive(number, **more):
            return self.daemon.post(f"/v1/barriers/{name}/arrive", {"session": session, "id": f"a{number}", "parties": 1, **more},
                                    role="operate")

        self.assertEqual(arrive(1, ttl_ms=600000).status, 200)
        for body in ({"wait_ms": 1000}, {"ttl_ms": 700000}, {"withdraw": True}, {"parties": 2}):
            with self.subTest(body):
                self.assert_problem(arrive(2, **body), 409, "differs")
        self.assertEqual([arrive(2, ttl_ms=600000).status, arrive(3).status], [200, 200])
        self.end(session)

    def test_a_wait_ends_with_its_session(self):
        name, session, answers = self.name(), self.session(), []
        waiter = threading.Thread(target=lambda: answers.append(self.arrive(name, session, 1)))
        waiter.start()
        wait_until(lambda: self.daemon.get(f"/v1/barriers/{name}", role="read").status == 200, "an arrival")
        self.end(session)
        waiter.join()
        self.assert_problem(answers[0], 404, "session-unknown")

    def test_barriers_are_checked(self):
        session = self.session()
        path = f"/v1/barriers/{self.name()}/arrive"
        for body in ({}, {"session": session, "parties": 2}, {"session": session, "id": "a"}, {"id": "a", "parties": 2},
                     {"session": session, "id": "a", "parties": 0}, {"session": session, "id": "a", "parties": 2, "more": 1}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path, body, role="operate"), 400, "invalid")
        answer = self.daemon.post(path, {"session": session, "id": "t", "parties": 2, "wait_ms": 1}, role="operate")
        self.assert_problem(answer, 409, "timeout")
        self.end(session)

    def test_latches(self):
        name = self.name()
        path = f"/v1/latches/{name}"
        self.assert_problem(self.daemon.get(path, role="read"), 404, "notfound")
        for body in ({}, {"count": 2}, {"id": "a"}, {"count": 0, "id": "a"}, {"count": 2, "id": ""}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path + "/count-down", body, role="operate"), 400, "invalid")
        down = lambda ident, count=2: self.daemon.post(path + "/count-down", {"count": count, "id": ident}, role="operate")
        self.assertEqual(down("a").json, {"left": 1})
        self.assertEqual(down("a").json, {"left": 1})
        answer = self.daemon.get(path, role="read")
        self.assertEqual((answer.json["state"], answer.json["count"], answer.json["left"]), ("closed", 2, 1))
        self.assert_problem(down("b", 3), 409, "mismatch")
        self.assertEqual(down("b").json, {"left": 0})
        self.assertEqual(self.daemon.get(path, headers={"If-None-Match": answer.headers["ETag"]}).json["state"], "open")
        self.assertEqual(self.listed("/v1/latches", name, state="open")["left"], 0)
        self.assertEqual(self.daemon.post(path + "/reset", {"reason": "again"}).status, 204)
        self.assertEqual(self.audited("latch-reset", name)["reason"], "again")
        self.assertEqual(self.daemon.get(path).json["left"], 2)
        for generation, status in ((answer.json["generation"], 409), (self.daemon.get(path).json["generation"], 200)):
            body = {"count": 2, "id": "c", "generation": generation}
            self.assertEqual(self.daemon.post(path + "/count-down", body, role="operate").status, status)
        self.assertEqual(self.daemon.get(path).json["left"], 1)


class Topics:
    def publish(self, name, **body):
        answer = self.daemon.post(f"/v1/topics/{name}", body, role="operate")
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["position"]

    def test_list(self):
        name = self.name()
        path = f"/v1/topics/{name}/events"
        self.assertEqual(self.daemon.get(path, role="read").json["items"], [])
        first = self.publish(name, data="one <b>")
        raw = bytes(range(256))
        second = self.publish(name, data_base64=base64.b64encode(raw).decode())
        answer = self.daemon.get(path, role="read").json
        self.assertEqual([(item["kind"], item["position"]) for item in answer["items"]], [("event", first), ("event", second)])
        self.assertEqual(answer["items"][0]["data"], "one <b>")
        self.assertEqual(base64.b64decode(answer["items"][1]["data_base64"]), raw)
        self.assertEqual((answer["next"], answer["last"], answer["count"]), (second, second, 2))
        part = self.daemon.get(path, query={"limit": 1}).json
        self.assertEqual((part["next"], len(part["items"])), (first, 1))
        rest = self.daemon.get(path, query={"since": first}).json
        self.assertEqual([item["position"] for item in rest["items"]], [second])
        end = self.daemon.get(path, query={"since": "end"}).json
        self.assertEqual((end["items"], end["next"]), ([], second))
        for since in ("now", "-1", "1x", "18446744073709551616"):
            self.assert_problem(self.daemon.get(path, query={"since": since}), 400, "invalid")
        for body in ({}, {"data": 1}, {"data": "a", "data_base64": "YQ=="}, {"data_base64": "YQ"}, {"data_base64": "YR=="},
                     {"data_base64": "===="}, {"data": "a", "keep": 0}, {"data": "a", "what": 1}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(f"/v1/topics/{name}", body, role="operate"), 400, "invalid")
        self.assert_problem(self.daemon.post(f"/v1/topics/{name}", {"data": "x" * 65537}, role="operate"), 413, "too-long")
        self.assert_problem(self.daemon.post("/v1/topics/dibs.trail", {"data": "x"}), 400, "invalid")

    def stream(self, name, headers=None, query="", what="events"):
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        connection.request("GET", f"/v1/topics/{name}/{what}{query}", headers=dict({
            "Authorization": "Bearer " + self.daemon.tokens["read"], "Accept": "text/event-stream"}, **(headers or {})))
        response = connection.getresponse()
        self.assertEqual((response.status, response.headers["Content-Type"]), (200, "text/event-stream"))
        return response

    @staticmethod
    def next_event(response):
        frame = {}
        for line in iter(response.readline, b""):
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key:
                frame[key] = value
            elif "data" in frame:
                return frame["event"], frame.get("id"), json.loads(frame["data"])
        raise AssertionError("the stream has ended")

    def test_stream(self):
        name = self.name()
        first = self.publish(name, data="one")
        response = self.stream(name)
        self.assertEqual(self.next_event(response)[1:2], (str(first),))
        # What comes later comes at once, in order and once.
        positions = [self.publish(name, data="x" * 60000) for _ in range(4)]
        self.assertEqual([self.next_event(response)[1] for _ in range(4)], [str(position) for position in positions])
        # It goes on after the last event that a client saw, and begins at the end.
        again = self.stream(name, {"Last-Event-ID": str(positions[2])})
        self.assertEqual(self.next_event(again)[1], str(positions[3]))
        late = self.stream(name, query="?since=end")
        last = self.publish(name, data="last")
        self.assertEqual(self.next_event(late)[::2][1]["data"], "last")
        self.assertEqual(self.next_event(again)[1], str(last))
        # Events that were trimmed unread are told as a gap.
        self.daemon.dibs("events", "trim", name, "--through", str(positions[0]), "--yes")
        items = self.daemon.get(f"/v1/topics/{name}/events", query={"since": first}).json["items"]
        self.assertEqual((items[0]["kind"], items[0]["from"], items[0]["to"]), ("gap", first, positions[0]))
        self.assertEqual(self.next_event(self.stream(name, query=f"?since={first}"))[0], "gap")
        # A position that the store does not have any more: nothing that comes then is missed.
        kind, place, _ = self.next_event(self.stream(name, {"Last-Event-ID": str(last + 10**12)}))
        self.assertEqual((kind, place), ("fork", str(last)))
        self.publish(name, data="after")
        self.assertEqual(self.next_event(self.stream(name, {"Last-Event-ID": place}))[::2][1]["data"], "after")

    def send(self, name, **body):
        answer = self.daemon.post(f"/v1/topics/{name}/messages", body, role="operate")
        self.assertEqual((answer.status, answer.text), (204, ""))

    def test_messages(self):
        name = self.name()
        path = f"/v1/topics/{name}/messages"
        self.send(name, data="nobody listens")
        streams = [self.stream(name, what="messages") for _ in range(2)]
        other = self.stream(name + "-other", what="messages")
        raw = bytes(range(256))
        self.send(name, data="one <b>\nline")
        self.send(name, data_base64=base64.b64encode(raw).decode())
        self.send(name, data="")
        self.daemon.dibs("publish", "--live", name, "by the command")
        for response in streams:
            # A message has no id: there is nothing to go on after.
            self.assertEqual(self.next_event(response), ("message", None, {"data": "one <b>\nline"}))
            self.assertEqual(base64.b64decode(self.next_event(response)[2]["data_base64"]), raw)
            self.assertEqual([self.next_event(response)[2]["data"] for _ in range(2)], ["", "by the command"])
        # Each topic has its own, and its events have nothing to do with them.
        self.send(name + "-other", data="other")
        self.assertEqual(self.next_event(other)[2], {"data": "other"})
        self.assertEqual(self.daemon.get(f"/v1/topics/{name}/events", role="read").json["items"], [])
        self.assert_problem(self.daemon.post(path, {"data": "x"}, role="read"), 403, "role")
        self.assert_problem(self.daemon.post(path, {"data": "x" * 3901}, role="operate"), 413, "too-long")
        self.send(name, data="x" * 3900)
        self.assertEqual(len(self.next_event(streams[0])[2]["data"]), 3900)
        for body in ({}, {"data": 1}, {"data": "a", "data_base64": "YQ=="}, {"data_base64": "YQ"}, {"data": "a", "keep": 1}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path, body, role="operate"), 400, "invalid")

    def test_messages_of_the_library(self):
        """With those of dibs.leases an operator could tell viewers of leases that there never were."""
        for path, query in (("/v1/topics/dibs.leases/messages", {}), ("/v1/topics/~/messages", {"name": "dibs.leases"})):
            with self.subTest(path):
                self.assert_problem(self.daemon.ask("POST", path, {"data": "x"}, role="operate", query=query), 400, "invalid")
                self.assert_problem(self.daemon.get(path, role="read", query=query), 400, "invalid")

    def test_messages_reach_the_command(self):
        name = self.name()
        with subprocess.Popen([DIBS, "subscribe", "--live", "-n", "1", name], stdout=subprocess.PIPE, env=self.daemon.env,
                              text=True) as process:
            self.addCleanup(process.kill)
            # Nothing says when the command listens: it prints one of them, and ends.
            wait_until(lambda: process.poll() is not None or self.send(name, data="by http"), "a message at the command")
            self.assertEqual((process.stdout.read(), process.returncode), ("by http\n", 0))

    @unittest.skipIf(URL, "a server keeps what the daemon does not read")
    def test_missed_messages(self):
        """The daemon is stopped until its pipe is full: what finds no room is lost, and the stream says so."""
        name = self.name()
        response = self.stream(name, what="messages")
        count = 20
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(count):
                self.daemon.dibs("publish", "--live", name, "x" * 3900)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        events = [self.next_event(response)[0]]
        while events[-1] == "message":
            events.append(self.next_event(response)[0])
        self.assertEqual(events[-1], "missed")
        self.assertLess(len(events), count + 1)
        self.send(name, data="heard again")
        self.assertEqual(self.next_event(response)[2], {"data": "heard again"})


class Queues:
    def push(self, name, data="work", role="operate", key=None, **more):
        return self.daemon.post(f"/v1/queues/{name}", dict({"data": data}, **more), role=role,
                                headers={"Idempotency-Key": key} if key else None)

    def reserve(self, name, session, role="operate", key=None, **more):
        return self.daemon.post(f"/v1/queues/{name}/reserve", dict({"session": session}, **more), role=role,
                                headers={"Idempotency-Key": key} if key else None)

    def settle(self, name, session, delivery, how, role="operate", **more):
        return self.daemon.post(f"/v1/queues/{name}/settle", dict({"session": session, "delivery": delivery, "how": how}, **more),
                                role=role)

    def test_push_and_look(self):
        name = self.name()
        path = f"/v1/queues/{name}"
        self.assert_problem(self.daemon.get(path, role="read"), 404, "notfound")
        answer = self.push(name, "first", key="k1", headers={"kind": "mail"}, priority=3)
        self.assertEqual((answer.status, answer.json["duplicate"]), (201, False), answer.text)
        again = self.push(name, "first", key="k1")
        self.assertEqual((again.status, again.json), (200, {"id": answer.json["id"], "duplicate": True}))
        self.push(name, "late", delay_ms=600000)
        self.daemon.post(path, {"data_base64": base64.b64encode(b"\xff\x00").decode()}, role="operate")
        queue = self.daemon.get(path, role="read")
        self.assertEqual((queue.json["ready"], queue.json["later"], queue.json["totals"]["pushed"]), (2, 1, 3))
        self.assertEqual(self.daemon.get(path, headers={"If-None-Match": queue.headers["ETag"]}).status, 304)
        self.listed("/v1/queues", name, lambda queue: (queue["ready"], queue["later"]) == (2, 1), state="active")
        items = self.daemon.get(path + "/messages", role="read").json["items"]
        self.assertEqual((items[0]["data"], items[0]["headers"], items[0]["dedup_id"]), ("first", {"kind": "mail"}, "k1"))
        self.assertEqual((items[1]["data_base64"], items[1]["cut"]), ("/wA=", False))
        part = self.daemon.get(path + "/messages", query={"limit": 1}).json
        self.assertEqual((len(part["items"]), part["next"]), (1, "1"))
        rest = self.daemon.get(path + "/messages", query={"limit": 1, "after": part["next"]}).json
        self.assertEqual(([item["id"] for item in rest["items"]], rest["next"]), ([items[1]["id"]], None))
        self.assertEqual([item["data"] for item in self.daemon.get(path + "/messages", query={"state": "later"}).json["items"]],
                         ["late"])
        self.assert_problem(self.daemon.get(path + "/messages", query={"state": "gone"}), 400, "invalid")
        self.assert_problem(self.daemon.get("/v1/queues", query={"state": "gone"}), 400, "invalid")
        self.assert_problem(self.push(name, key="k" * 65), 400, "invalid")
        for body in ({}, {"data": 1}, {"data": "x", "headers": []}, {"data": "x", "headers": {"a=b": "c"}},
                     {"data": "x", "headers": {"a": 1}}, {"data": "x", "delay_ms": -1}, {"data": "x", "unknown": 1}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path, body, role="operate"), 400, "invalid")
        self.assert_problem(self.push(name, "x" * (256 * 1024 + 1)), 413, "too-long")
        # Long data is cut in a list, and whole in a delivery.
        self.push(name, "y" * 5000, priority=9)
        item = self.daemon.get(path + "/messages", query={"limit": 1}).json["items"][0]
        self.assertEqual((len(item["data"]), item["bytes"], item["cut"]), (4096, 5000, True))

    def test_the_etag_of_a_queue_has_its_settings(self):
        name = self.name()
        self.push(name)
        tags = set()
        for args in ([], ["--cap", "7"], ["--tries", "7"], ["--deads", "7"], ["--lost-max", "7"], ["--serial", "yes"]):
            if args:
                self.daemon.dibs("queue", "set", name, *args)
            answer = self.daemon.get(f"/v1/queues/{name}", headers={"If-None-Match": ", ".join(tags)} if tags else None)
            self.assertEqual(answer.status, 200, args)
            tags.add(answer.headers["ETag"])
        self.assertEqual(len(tags), 6)
        self.assertEqual(self.daemon.get(f"/v1/queues/{name}", headers={"If-None-Match": answer.headers["ETag"]}).status, 304)

    def test_pages_of_queues(self):
        names = [self.name(f"-{number}") for number in range(5)]
        for name in names:
            self.push(name)
        for name in names:
            self.listed("/v1/queues", name)
        got, after = [], None
        for _ in names:
            answer = self.daemon.get("/v1/queues", query=dict({"prefix": self.name(), "limit": 2}, **({"after": after} if after else {}))).json
            self.assertEqual((answer["total"], answer["total_is"]), (5, "exact"))
            got += [item["name"] for item in answer["items"]]
            after = answer["next"]
            if not after:
                break
        self.assertEqual(got, names)
        self.assert_problem(self.daemon.get("/v1/queues", query={"after": "x"}), 400, "invalid")
        self.assertEqual([item["name"] for item in self.daemon.get("/v1/queues", query={"q": names[3][5:]}).json["items"]], [names[3]])

    def test_deliveries(self):
        name, session, other = self.name(), self.session(), self.session()
        self.assertEqual(self.reserve(name, session).json, {"items": []})
        self.assert_problem(self.reserve(name, session, role="admin"), 404, "session-unknown")
        self.assert_problem(self.daemon.post(f"/v1/queues/{name}/reserve", {}, role="operate"), 400, "invalid")
        for number in range(4):
            self.push(name, f"m{number}")
        one = self.reserve(name, session, key="r1", count=2).json["items"]
        self.assertEqual([item["data"] for item in one], ["m0", "m1"])
        self.assertGreater(one[0]["valid_ms"], 0)
        # An answer that was lost: the same request brings the same messages.
        self.assertEqual({item["delivery"] for item in self.reserve(name, session, key="r1", count=2).json["items"]},
                         {item["delivery"] for item in one})
        self.assertEqual(self.settle(name, session, one[0]["delivery"], "done").status, 204)
        self.assertEqual(self.settle(name, session, one[0]["delivery"], "done").status, 204)
        self.assert_problem(self.settle(name, session, one[0]["delivery"], "dead"), 410, "lost")
        # A delivery is of its session alone.
        self.assert_problem(self.settle(name, other, one[1]["delivery"], "done"), 404, "notfound")
        self.assertEqual(self.reserve(name, other).json["items"][0]["data"], "m2")
        self.assert_problem(self.settle(name, other, one[1]["delivery"], "done"), 410, "lost")
        self.assertEqual(self.settle(name, session, one[1]["delivery"], "extend", limit_ms=60000).status, 204)
        self.assertEqual(self.settle(name, session, one[1]["delivery"], "retry", delay_ms=0, reason="later").status, 204)
        again = self.reserve(name, session, wait_ms=20000).json["items"][0]
        self.assertEqual((again["data"], again["attempt"]), ("m1", 2))
        self.assertEqual(self.settle(name, session, again["delivery"], "dead", reason="poison <b>").status, 204)
        dead = self.daemon.get(f"/v1/queues/{name}/messages", query={"state": "dead"}).json["items"]
        self.assertEqual([(item["data"], item["reason"]) for item in dead], [("m1", "poison <b>")])
        self.assert_problem(self.settle(name, session, "1.2.3", "gone"), 400, "invalid")
        # The end of a session gives back what it had.
        self.end(other)
        got = []

        def reserved():
            got.extend(self.reserve(name, session, wait_ms=100).json["items"])
            return len(got) == 2

        wait_until(reserved, "the messages of the session that has ended")
        self.assertEqual({item["data"] for item in got}, {"m2", "m3"})
        # A wait ends with what comes.
        threading.Timer(0.05, self.push, (name, "fresh")).start()
        self.assertEqual(self.reserve(name, session, wait_ms=25000).json["items"][0]["data"], "fresh")
        self.end(session)

    def test_deliveries_that_came_back_are_not_in_hand(self):
        name, session, other = self.name(), self.session(), self.session()
        for number in range(256):
            self.assertEqual(self.push(name, str(number)).status, 201)
        mine = [item for key in ("r1", "r2", "r3", "r4")
                for item in self.reserve(name, session, key=key, count=64).json["items"]]
        self.assertEqual(len(mine), 256)
        self.assert_problem(self.reserve(name, session, key="r5"), 429, "limit")
        for item in mine:
            self.assertEqual(self.settle(name, session, item["delivery"], "extend", limit_ms=1).status, 204)
        theirs = []

        def came_back():
            theirs.extend(self.reserve(name, other, count=min(64, 192 - len(theirs)), wait_ms=100).json["items"])
            return len(theirs) == 192

        wait_until(came_back, "the messages to come back")
        # The same request brings none of those that others may have.
        again = self.reserve(name, session, key="r1", count=64, wait_ms=20000)
        self.assertEqual(again.status, 200, again.text)
        self.assertEqual({(item["attempt"], item["delivery"] in {old["delivery"] for old in mine}) for item in again.json["items"]},
                         {(2, False)})
        self.assert_problem(self.settle(name, session, mine[0]["delivery"], "done"), 410, "lost")
        self.end(session)
        self.end(other)

    def test_messages_that_do_not_fit_into_one_answer(self):
        name, session, count = self.name(), self.session(), 64
        data = base64.b64encode(b"\xff" * 250000).decode()
        for _ in range(count):
            self.assertLess(self.daemon.post(f"/v1/queues/{name}", {"data_base64": data}, role="operate").status, 300)
        got = set()
        while len(got) < count:
            answer = self.reserve(name, session, key=f"r{len(got)}", count=count)
            self.assertEqual(answer.status, 200, answer.text[:200])
            for item in answer.json["items"]:
                self.assertNotIn(item["delivery"], got)
                got.add(item["delivery"])
                self.assertEqual(self.settle(name, session, item["delivery"], "done").status, 204)

    def test_reserve_sent_again_while_it_waits(self):
        """The second request has the key of one that waits: both get the one message, and no other."""
        name, session = self.name(), self.session()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            first = pool.submit(self.reserve, name, session, key="r1", wait_ms=25000)
            wait_until(lambda: self.daemon.get(f"/v1/queues/{name}").json.get("waiting") == 1, "the first request in the queue")
            # These would not wait themselves.
            others = [pool.submit(self.reserve, name, session, key="r1") for _ in range(2)]
            self.assertEqual(self.reserve(name, session, key="r2").json, {"items": []})
            self.push(name, "m0")
            self.push(name, "m1")
            got = [[item["data"] for item in future.result(PATIENCE).json["items"]] for future in (first, *others)]
        if not got[0]:
            raise NotInTime("the first request ended before the push")
        self.assertEqual(got, [["m0"]] * 3)
        self.assertEqual([item["data"] for item in self.reserve(name, session, key="r2").json["items"]], ["m1"])
        self.end(session)

    def test_operator(self):
        name = self.name()
        path = f"/v1/queues/{name}"
        self.assert_problem(self.daemon.post(path + "/pause", {}, role="operate"), 404, "notfound")
        for number in range(4):
            self.push(name, f"m{number}", tries=1)
        session = self.session()
        for item in self.reserve(name, session, count=3).json["items"]:
            self.settle(name, session, item["delivery"], "dead")
        self.assertEqual(self.daemon.post(path + "/pause", {"reason": "deploy"}, role="operate").status, 204)
        self.assertEqual(self.audited("queue-pause", name)["reason"], "deploy")
        self.assertTrue(self.daemon.get(path).json["paused"])
        self.assertEqual(self.reserve(name, session).json, {"items": []})
        self.listed("/v1/queues", name, state="paused")
        self.assertEqual(self.daemon.post(path + "/resume", {}, role="operate").status, 204)
        dead = [item["id"] for item in self.daemon.get(path + "/messages", query={"state": "dead"}).json["items"]]
        for body in ({}, {"ids": []}, {"ids": ["a"]}, {"ids": [1], "all": True}, {"all": False}, {"all": True, "max": 0},
                     {"ids": list(range(1, 102))}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path + "/redrive", body), 400, "invalid")
        self.assertEqual(self.daemon.post(path + "/redrive", {"ids": [dead[1], 999999], "reason": "mended"}).json,
                         {"redriven": 1, "left": 2})
        self.assertEqual(self.audited("queue-redrive", name)["who"], "admin")
        self.assertEqual(self.daemon.post(path + "/redrive", {"all": True, "max": 1}).json, {"redriven": 1, "left": 1})
        for body in ({}, {"states": []}, {"states": ["all"]}, {"states": "dead"}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path + "/purge", body), 400, "invalid")
        self.assertEqual(self.daemon.post(path + "/purge", {"states": ["dead", "ready"]}).json, {"purged": 4, "left": 0})
        self.audited("queue-purge", name)
        self.assert_problem(self.daemon.post(f"/v1/queues/{name}-none/purge", {"states": ["dead"]}), 404, "notfound")
        self.assert_problem(self.daemon.post(f"/v1/queues/{name}-none/redrive", {"ids": [1]}), 404, "notfound")
        self.end(session)


class Gates:
    def report(self, name, good, **more):
        return self.daemon.post(f"/v1/breakers/{name}/report", dict({"good": good, "threshold": 2, "recovery_ms": 600000}, **more),
                                role="operate")

    def test_breakers(self):
        name = self.name()
        path = f"/v1/breakers/{name}"
        self.assertEqual(self.daemon.get(path, role="read").json["state"], "closed")
        self.assertEqual(self.report(name, True).json["good"], 1)
        for body in ({}, {"good": 1}, {"good": True, "threshold": 0}, {"good": True, "rate_percent": 101}):
            with self.subTest(body):
                self.assert_problem(self.daemon.post(path + "/report", body, role="operate"), 400, "invalid")
        self.assertEqual(self.report(name, False).status, 200)
        self.report(name, False)
        wait_until(lambda: self.daemon.get(path).json["state"] == "open", "the breaker to open")
        refused = wait_until(lambda: (lambda a: a if a.status == 409 else None)(self.report(name, True)), "a refusal")
        self.assertGreater(self.assert_problem(refused, 409, "busy")["retry_ms"], 0)
        row = self.listed("/v1/breakers", name, state="open")
        self.assertGreater(row["retry_ms"], 0)
        self.assertEqual(self.daemon.post(path + "/reset", {"reason": "mended"}).status, 204)
        self.assertEqual(self.audited("breaker-reset", name)["reason"], "mended")
        answer = self.daemon.get(path)
        self.assertEqual(answer.json["state"], "closed")
        self.assertEqual(self.daemon.post(path + "/trip", {"reason": "by hand"}).status, 204)
        self.audited("breaker-trip", name)
        forced = self.daemon.get(path, headers={"If-None-Match": answer.headers["ETag"]}).json
        self.assertEqual((forced["state"], forced["retry_ms"]), ("forced", None))
        self.listed("/v1/breakers", name, state="forced")
        # Its value is not a way around the role that it takes.
        value = f"/v1/state/dibs.breaker%2F{name}"
        for method, body in (("GET", None), ("PUT", b"closed"), ("DELETE", None)):
            self.assert_problem(self.daemon.ask(method, value, body, role="operate"), 400, "invalid")
        self.assertEqual(self.daemon.get(path).json["state"], "forced")

    def test_a_look_at_a_breaker_changes_nothing(self):
        name = self.name()
        # The worker of the breaker may be reporting one while an answer is made, which then lacks it.
        for bad in range(1, 7):
            self.assertIn(self.report(name, False, threshold=100).json["bad"], (bad - 1, bad))
        for _ in range(2):
            row = self.listed("/v1/breakers", name, lambda item: item["bad"] == 6)
            for seen in (row, self.daemon.get(f"/v1/breakers/{name}").json):
                self.assertEqual((seen["state"], seen["version"], seen["bad"]), ("closed", 0, 6))

    def test_limits(self):
        path = f"/v1/limits/{self.name()}/take"
        take = lambda **body: self.daemon.post(path, dict({"count": 2, "period_ms": 600000}, **body), role="operate")
        self.assertEqual(take().json, {"remaining": 1})
        self.assertEqual(take().json, {"remaining": 0})
        self.assertGreater(self.assert_problem(take(), 409, "busy")["retry_ms"], 0)
        listed = wait_until(lambda: self.daemon.get("/v1/limits", query={"prefix": self.name()}, role="read").json["items"], "the list")
        self.assertEqual([(item["name"], item["count"], item["period_us"], item["out"]) for item in listed],
                         [(self.name(), 1, 300000000, 2)])
        self.assertGreater(listed[0]["full_ms"], 300000)
        for body in ({"count": None}, {"count": 0}, {"n": 0}, {"n": 3}, {"period_ms": 0}, {"wait_ms": 1}):
            with self.subTest(body):
                self.assert_problem(take(**body), 400, "invalid")

    def test_names_in_the_query(self):
        for noun in ("elections", "members", "breakers"):
            with self.subTest(noun):
                self.assertEqual(self.daemon.get(f"/v1/{noun}/~", query={"name": "a/b <i>"}).json["name"], "a/b <i>")
                self.assert_problem(self.daemon.get(f"/v1/{noun}/~"), 400, "invalid")
        for noun in ("queues", "latches", "barriers", "elections", "members", "breakers"):
            with self.subTest(noun):
                self.assert_problem(self.daemon.get(f"/v1/{noun}/{'x' * 300}"), 400, "invalid")
        for noun in ("queues", "latches", "barriers", "limits", "elections", "members", "breakers"):
            with self.subTest(noun):
                self.assert_problem(self.daemon.get(f"/v1/{noun}", query={"limit": 0}), 400, "invalid")


class Nouns(Elections, Meetings, Topics, Queues, Gates, Base):
    pass


if __name__ == "__main__":
    main()
