"""The page and the event stream of a worker: as browsers and programs use them."""
# SPDX-License-Identifier: MIT
import http.client
import json

from demotools import LOCK, PATIENCE, Cluster, DemoCase, in_time, main, wait_until

STREAMS_MAX = 128
KEPT = 256


class Stream:
    """A connection that follows GET /events."""

    def __init__(self, case, cluster, worker=1, last_id=None):
        self.conn = http.client.HTTPConnection("127.0.0.1", cluster.base + worker, timeout=PATIENCE)
        case.addCleanup(self.close)
        self.conn.request("GET", "/events", headers={"Last-Event-ID": last_id} if last_id else {})
        self.reply = self.conn.getresponse()
        self.status = self.reply.status

    def close(self):
        self.conn.close()

    def frame(self):
        """The fields of the next event; None at the end of the stream."""
        fields = {}
        while line := self.reply.readline().decode():
            if line == "\n":
                return fields
            if not line.startswith(":"):
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
        return None

    def event(self):
        """The next one that has data: (id, name, data)."""
        while (fields := self.frame()) is not None:
            if "data" in fields:
                return fields.get("id"), fields.get("event"), json.loads(fields["data"])
        return None

    def until(self, name, **facts):
        """All events up to the first with this name and these facts."""
        seen = []
        while event := self.event():
            seen.append(event)
            data = event[2]
            if data.get("event") == name and all(data.get(k) == v for k, v in facts.items()):
                return seen
        raise AssertionError(f"the stream ended without {name} {facts}: {seen}")


class Page(DemoCase):
    def ask(self, cluster, method, path, headers=None):
        conn = http.client.HTTPConnection("127.0.0.1", cluster.base + 1, timeout=PATIENCE)
        try:
            conn.request(method, path, headers=headers or {})
            reply = conn.getresponse()
            return reply.status, reply.read().decode(), reply.headers
        finally:
            conn.close()

    def test_what_a_browser_gets(self):
        cluster = Cluster(self, workers=2).await_ready()
        status, text, head = self.ask(cluster, "GET", "/")
        self.assertEqual((status, head["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("worker 1 of 2", text)
        self.assertIn("lock: free | 0 waiting", text)
        self.assertIn("script-src 'self'", head["Content-Security-Policy"])
        self.assertEqual(int(head["Content-Length"]), len(text.encode()))
        status, nothing, head = self.ask(cluster, "HEAD", "/")
        self.assertEqual((status, nothing, head["Content-Type"]), (200, "", "text/html; charset=utf-8"))
        status, script, head = self.ask(cluster, "GET", "/events.js")
        self.assertEqual((status, head["Content-Type"]), (200, "text/javascript; charset=utf-8"))
        self.assertIn("new EventSource('events')", script)
        self.assertEqual(head["Cache-Control"], "no-cache")
        status, nothing, again = self.ask(cluster, "GET", "/events.js", {"If-None-Match": head["ETag"]})
        self.assertEqual((status, nothing, again["ETag"]), (304, "", head["ETag"]))
        self.assertEqual(self.ask(cluster, "GET", "/events.js", {"If-None-Match": '"old"'})[0], 200)
        cluster.stop()

    def test_names_of_holders_are_text(self):
        cluster = Cluster(self, workers=1).await_ready()
        token = self.acquire(LOCK, "--owner", "<script>alert(1)</script>&amp;", "--ttl", "60s")
        text = self.ask(cluster, "GET", "/")[1]
        self.assertIn("held by &lt;script&gt;alert(1)&lt;/script&gt;&amp;amp; for", text)
        self.ok("release", LOCK, "--token", token)
        cluster.stop()


class Events(DemoCase):
    def test_as_they_come(self):
        cluster = Cluster(self, workers=2).await_ready()
        stream = Stream(self, cluster)
        self.assertEqual((stream.status, stream.reply.headers["Content-Type"]), (200, "text/event-stream"))
        self.assertEqual(stream.frame(), {"retry": "2000"})
        # What was before is there, in order and of this worker alone.
        stream.until("http_started")
        cluster.update(2, operationName="Elsewhere", duration=1)
        cluster.update(1, operationName="Here\u2028<b>", duration=1)
        seen = stream.until("lock_released")
        self.assertEqual([data["event"] for _, _, data in seen],
                         ["lock_wanted", "lock_acquired", "value_before", "value_after", "operation_done", "lock_released"])
        self.assertEqual({(data["worker"], data.get("operation", "Here\u2028<b>")) for _, _, data in seen}, {(1, "Here\u2028<b>")})
        logged = cluster.await_events("lock_released", operation="Here\u2028<b>")
        self.assertEqual(seen[-1][2], logged[0])
        numbers = [int(number.split("-")[1]) for number, _, _ in seen]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 6)))
        cluster.stop()

    def test_coming_back(self):
        cluster = Cluster(self, workers=1).await_ready()
        stream = Stream(self, cluster)
        cluster.update(1, operationName="One", duration=1)
        last = stream.until("lock_released", operation="One")[-1][0]
        stream.close()
        cluster.update(1, operationName="Two", duration=1)
        seen = Stream(self, cluster, last_id=last).until("lock_released")
        self.assertEqual(seen[0][2]["operation"], "Two")
        # Numbers of another process, of the future, and no numbers.
        epoch = last.split("-")[0]
        for bad in ("00000000-1", f"{epoch}-999999", f"{epoch}-", f"{epoch}--1", f"{epoch}-1x", "x"):
            stream = Stream(self, cluster, last_id=bad)
            self.assertEqual(stream.event(), (None, "reset", {}), bad)
            self.assertEqual(stream.event()[0], f"{epoch}-1")
        cluster.stop()

    def test_what_was_missed_is_said(self):
        cluster = Cluster(self, workers=1).await_ready()
        first = Stream(self, cluster).event()[0]
        done = 0
        while len(cluster.lines) < KEPT + 50:
            cluster.update(1, operationName=f"Number {done}", duration=0)
            done += 1
            cluster.await_events("lock_released", done)
        stream = Stream(self, cluster, last_id=first)
        number, name, data = stream.event()
        self.assertEqual((number, name), (None, "gap"))
        self.assertEqual(stream.event()[0], first.replace("-1", f"-{data['missed'] + 2}"))
        self.assertEqual(len(stream.until("lock_released", operation=f"Number {done - 1}")), KEPT - 1)
        # One that begins has missed nothing.
        self.assertIsNone(Stream(self, cluster).event()[1])
        cluster.stop()

    def test_too_many_and_gone(self):
        cluster = Cluster(self, workers=1).await_ready()
        for _ in range(2):
            streams = [Stream(self, cluster) for _ in range(STREAMS_MAX)]
            self.assertEqual({stream.status for stream in streams}, {200})
            status, body, head = cluster.ask(1, "GET", "/events")
            self.assertEqual((status, head["Retry-After"]), (503, "5"))
            self.assertEqual(body["success"], False)
            self.assertIn(f"{STREAMS_MAX} streams are open", body["message"])
            self.assertEqual(cluster.get(1, "/status")[0], 200)
            self.assertEqual(cluster.update(1, duration=1)[0], 200)
            for stream in streams:
                stream.until("lock_released")
            for stream in streams:
                stream.close()
            wait_until(lambda: self.free_again(cluster), "a stream to be free")
        cluster.stop()

    def free_again(self, cluster):
        """All of the closed ones were noticed, though nothing was sent to them."""
        streams = [Stream(self, cluster) for _ in range(STREAMS_MAX)]
        fine = all(stream.status == 200 for stream in streams)
        for stream in streams:
            stream.close()
        return fine

    def test_stop(self):
        """Streams are ended, with what happened last, and hold nothing up."""
        cluster = Cluster(self, workers=2).await_ready()
        streams = [Stream(self, cluster, worker) for worker in (1, 1, 2)]
        cluster.in_background(1, operationName="Long", duration=60000)
        cluster.await_events("lock_acquired")
        in_time(cluster.stop(), 5)
        for stream in streams[:2]:
            stream.until("lock_released", operation="Long")
        for stream in streams:
            while stream.event():
                pass
            self.assertTrue(stream.reply.isclosed())


if __name__ == "__main__":
    main()
