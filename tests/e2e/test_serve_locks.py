"""Routes of `dibs serve`: locks, leases, values, waits, feed, charts and the trail."""
# SPDX-License-Identifier: MIT
import concurrent.futures
import json
import os
import re
import threading

from runtools import PATIENCE, ROOT, NotInTime, main, wait_until
from servetools import ServeCase


class Locks(ServeCase):
    options = ("--prefix", "serve-test:", "--share-stats")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.env["DIBS_PREFIX"] = "serve-test:"

    def listed(self, **query):
        """The list, once the look has had time to see what was done before."""
        answer = self.daemon.get("/v1/locks", query=query)
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def await_names(self, names, **query):
        return wait_until(lambda: [row["name"] for row in self.listed(**query)["items"]] == names and self.listed(**query),
                          f"{names} in the list")

    def acquire(self, name, **body):
        answer = self.daemon.post("/v1/leases/" + self.path(name), body, role="operate")
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json

    def test_one_lock(self):
        name = self.name("/with slash")
        free = self.daemon.get("/v1/locks/~", query={"name": name}, role="read")
        self.assertEqual((free.status, free.headers["ETag"], free.json["holders"]), (200, '"free"', []))
        token = self.hold(name, "--meta", "who=test")
        held = self.daemon.get("/v1/locks/" + self.path(name), role="read")
        holder = held.json["holders"][0]
        owner, fence = token.split(":")
        self.assertEqual((holder["fence"], holder["meta"], holder["owner8"]), (int(fence), {"who": "test"}, owner[:8]))
        self.assertNotIn(owner, held.text)
        self.assertRegex(held.headers["ETag"], f'^"{fence}-0-1-[0-9a-f]{{8}}"$')
        again = self.daemon.get("/v1/locks/" + self.path(name), headers={"If-None-Match": held.headers["ETag"]})
        self.assertEqual((again.status, again.text), (304, ""))
        self.assert_problem(self.daemon.get("/v1/locks/~"), 400, "invalid")

    def test_long_poll(self):
        name = self.name()
        token = self.hold(name)
        etag = self.daemon.get("/v1/locks/" + name).headers["ETag"]
        first = self.daemon.get("/v1/locks/" + name, headers={"If-None-Match": etag}, query={"wait_ms": 1})
        self.assertEqual(first.status, 304)
        # As the daemon sent it, as a proxy that packs answers marks it, and as one of several.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waits = [pool.submit(self.daemon.get, "/v1/locks/" + name, headers={"If-None-Match": known}, query={"wait_ms": 55000})
                     for known in (etag, "W/" + etag, '"1-0-1", ' + etag)]
            self.daemon.dibs("release", name, "--token", token)
            answers = [wait.result(PATIENCE) for wait in waits]
        if any(answer.status == 304 for answer in answers):
            raise NotInTime("no look at the store in time")
        self.assertEqual([(answer.status, answer.headers["ETag"]) for answer in answers], [(200, '"free"')] * 3)

    def test_lists(self):
        names = [self.name(f":{i}") for i in range(5)]
        for name in reversed(names):
            self.hold(name, "--owner", "label-of-" + name[-1])
        prefix = self.name(":")
        whole = self.await_names(names, prefix=prefix)
        self.assertEqual((whole["total"], whole["total_is"], whole["complete"], whole["next"]), (5, "exact", True, None))
        part = self.listed(prefix=prefix, limit=2)
        self.assertEqual(([row["name"] for row in part["items"]], part["total"]), (names[:2], 5))
        rest = self.listed(prefix=prefix, limit=3, after=part["next"])
        self.assertEqual(([row["name"] for row in rest["items"]], rest["next"]), (names[2:], None))
        self.assertEqual([row["name"] for row in self.listed(prefix=prefix, sort="-name")["items"]], names[::-1])
        self.assertEqual([row["name"] for row in self.listed(prefix=prefix, q="label-of-3")["items"]], [names[3]])
        self.assertEqual(self.listed(prefix=prefix, state="wanted")["items"], [])
        self.assertEqual(len(self.listed(prefix=prefix, state="held", sort="-age")["items"]), 5)
        for query in ({"sort": "colour"}, {"state": "x"}, {"after": "zz"}, {"limit": 0}, {"limit": 1001}, {"limit": "x"}):
            with self.subTest(query):
                self.assert_problem(self.daemon.get("/v1/locks", query=query), 400, "invalid")

    def test_break_hits_the_holder_that_was_seen(self):
        name = self.name()
        token = self.hold(name)
        fence = int(token.split(":")[1])
        path = f"/v1/locks/{name}/break"
        self.assert_problem(self.daemon.post(path), 428, "fence-missing")
        self.assert_problem(self.daemon.post(path, {"fence": fence - 1}), 409, "stale")
        self.assertEqual(self.daemon.dibs("check", name, "--token", token, check=False).returncode, 0)
        answer = self.daemon.post(path, {"fence": fence, "reason": "it [who=nobody] hangs"},
                                  headers={"X-Request-Id": "break-1"})
        self.assertEqual(answer.json, {"broken": 1})
        self.assert_problem(self.daemon.post(path, {"fence": fence}), 404, "notfound")
        entry = self.daemon.get("/v1/audit", query={"name": name}).json["items"][0]
        self.assertEqual(
            (entry["who"], entry["from"], entry["request"], entry["reason"], entry["action"], entry["fence"]),
            ("admin", "127.0.0.1", "break-1", "it [who=nobody] hangs", "break", fence))
        self.assertEqual((entry["role"], entry["route"], entry["result"]), ("admin", "/v1/locks/{name}/break", "OK"))
        self.assertEqual(self.daemon.get("/v1/audit", query={"name": name, "who": "read"}).json["items"], [])
        lines = [line for line in self.daemon.log() if line["event"] == "audit" and line["target"] == name]
        self.assertEqual([line["result"] for line in lines], ["STALE", "OK", "NOTFOUND"])
        # By the ETag that was shown, and whatever holder there is.
        token = self.hold(name)
        etag = self.daemon.get("/v1/locks/" + name).headers["ETag"]
        self.assertEqual(self.daemon.post(path, headers={"If-Match": etag}).status, 200)
        # An ETag that is not of this lease breaks nothing.
        token = self.hold(name)
        fence = int(token.split(":")[1])
        for etag, body in (('"0-0-0"', {}), ("nonsense", {"fence": fence}), (f'"{fence - 1}-0-1"', {"fence": fence})):
            self.assert_problem(self.daemon.post(path, body, headers={"If-Match": etag}), 412, "precondition")
        self.assertEqual(self.daemon.post(path, {"fence": 0}).status, 200)

    def test_bodies_are_strict(self):
        path = f"/v1/locks/{self.name()}/break"
        for body, pointer in (({"fense": 1}, "/fense"), ({"fence": "1"}, "/fence"), ({"fence": -1}, "/fence"),
                              ({"reason": "a\nb", "fence": 1}, "/reason")):
            with self.subTest(body):
                self.assertEqual(self.assert_problem(self.daemon.post(path, body), 400, "invalid")["pointer"], pointer)
        self.assert_problem(self.daemon.post(path, [1]), 400, "invalid")
        self.assert_problem(self.daemon.ask("POST", path, b"{]", headers={"Content-Type": "application/json"}), 400, "invalid")
        self.assert_problem(self.daemon.ask("POST", path, b"a=1"), 415, "media-type")
        self.assert_problem(self.daemon.post(path, {"reason": "x" * 70000}), 413, "too-long")

    def test_yield(self):
        name = self.name()
        self.assert_problem(self.daemon.post(f"/v1/locks/{name}/yield", role="operate"), 404, "notfound")
        self.hold(name)
        self.assertEqual(self.daemon.post(f"/v1/locks/{name}/yield", role="operate").json, {"asked": 0})
        self.assertEqual(self.daemon.post(f"/v1/locks/{name}/yield", {"reason": "deploy"}, role="operate").status, 200)
        entry = self.daemon.get("/v1/audit", query={"name": name}).json["items"][0]
        self.assertEqual((entry["action"], entry["reason"]), ("yield", "deploy"))

    def test_break_stale(self):
        name = self.name()
        # Its process is gone, and the first renewal will be missed soon.
        self.daemon.dibs("run", name, "--ttl", "60s", "--", "sh", "-c", "kill -9 $PPID", check=False)
        dry = self.daemon.post("/v1/locks/break-stale", {"prefix": name, "dry_run": True})
        self.assertEqual(dry.status, 200, dry.text)
        self.assertIsInstance(dry.json["broken"], list)
        self.assertEqual(self.daemon.post("/v1/locks/break-stale", {"prefix": self.name("-none")}).json, {"broken": [], "complete": True})

    def test_seed_of_admin_locks(self):
        name = self.name()
        free = {"lockKey": "serve-test:" + name, "locked": False, "remainingTime": 0, "threadId": None}
        self.assertEqual(self.daemon.get("/admin/locks/" + name, role="read").json, free)
        self.acquire(name, ttl_ms=25000)
        for path in (name, "serve-test:" + name):
            answer = self.daemon.get("/admin/locks/" + path, role="read").json
            self.assertEqual(list(answer), ["lockKey", "locked", "remainingTime", "threadId"])
            self.assertEqual((answer["lockKey"], answer["locked"]), ("serve-test:" + name, True))
            self.assertTrue(0 < answer["remainingTime"] <= 25000)
            self.assertEqual(answer["threadId"], self.daemon.process.pid)
        for reason in ("stuck\nwho=nobody", "\x1b[2J", "x" * 257, ""):
            self.assert_problem(self.daemon.ask("DELETE", "/admin/locks/" + name, query={"reason": reason}), 400, "invalid")
        self.assertTrue(self.daemon.get("/admin/locks/" + name, role="read").json["locked"])
        gone = self.daemon.ask("DELETE", "/admin/locks/" + name, query={"reason": "stuck"})
        self.assertEqual((gone.status, gone.text), (204, ""))
        self.assertEqual(self.daemon.get("/v1/audit", query={"name": name}).json["items"][0]["reason"], "stuck")
        self.assert_problem(self.daemon.ask("DELETE", "/admin/locks/" + name), 404, "notfound")

    def test_leases(self):
        name = self.name()
        path = "/v1/leases/" + name
        lease = self.acquire(name, ttl_ms=60000, label="worker", meta={"job": "7"})
        self.assertTrue(0 < lease["valid_ms"] < 60000)
        holder = self.daemon.get("/v1/locks/" + name).json["holders"][0]
        self.assertEqual((holder["label"], holder["meta"], holder["fence"]), ("worker", {"job": "7"}, lease["fence"]))
        busy = self.daemon.post(path, {}, role="operate")
        self.assertTrue(self.assert_problem(busy, 409, "busy")["retriable"])
        self.assert_problem(self.daemon.post(path, {"wait_ms": 50}), 409, "timeout")
        self.assert_problem(self.daemon.post(path, {"mode": "permits", "capacity": 3}), 409, "mismatch")
        token = {"token": lease["token"]}
        self.assertTrue(self.daemon.post(path + "/check", token).json["held"])
        renewed = self.daemon.post(path + "/renew", {**token, "ttl_ms": 120000})
        self.assertGreater(renewed.json["valid_ms"], 60000)
        other = {"token": "0" * 32 + ":" + lease["token"].split(":")[1]}
        self.assertFalse(self.daemon.post(path + "/check", other).json["held"])
        self.assert_problem(self.daemon.post(path + "/release", other), 410, "lost")
        self.assertEqual(self.daemon.post(path + "/release", token).status, 204)
        self.assert_problem(self.daemon.post(path + "/renew", token), 410, "lost")
        self.assertFalse(self.daemon.post(path + "/check", token).json["held"])
        self.assertEqual(self.assert_problem(self.daemon.post(path + "/renew"), 400, "invalid")["pointer"], "/token")
        self.assertNotIn(lease["token"].split(":")[0], self.daemon.log_text())

    def waiting(self, name):
        return self.daemon.get("/v1/locks/" + name).json["waiter_count"]

    def test_a_wait_is_granted(self):
        name = self.name()
        first = self.acquire(name, ttl_ms=60000)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.acquire(name, ttl_ms=60000, wait_ms=55000)))
        thread.start()
        wait_until(lambda: self.waiting(name) == 1, "the waiter")
        waits = wait_until(lambda: self.daemon.get("/v1/waits", query={"prefix": name}).json["items"], "the wait in the look")
        self.assertEqual(waits[0]["name"], name)
        self.daemon.post(f"/v1/leases/{name}/release", {"token": first["token"]})
        thread.join()
        self.assertGreater(answers[0]["fence"], first["fence"])
        # It is a lease of the whole time, not a claim of some seconds.
        self.assertGreater(answers[0]["valid_ms"], 30000)
        self.daemon.post(f"/v1/leases/{name}/release", {"token": answers[0]["token"]})

    def test_a_wait_ends_with_its_connection(self):
        name = self.name()
        first = self.acquire(name, ttl_ms=60000)
        connection = self.daemon.connect()
        connection.request("POST", "/v1/leases/" + name, body=b'{"wait_ms": 55000}',
                           headers={"Authorization": "Bearer " + self.daemon.tokens["operate"],
                                    "Content-Type": "application/json"})
        wait_until(lambda: self.waiting(name) == 1, "the waiter")
        connection.close()
        wait_until(lambda: self.waiting(name) == 0, "the end of the wait")
        self.daemon.post(f"/v1/leases/{name}/release", {"token": first["token"]})
        self.assertEqual(self.daemon.get("/v1/locks/" + name).json["holders"], [])

    def test_values(self):
        key = self.name("/of value")
        path = "/v1/state/" + self.path(key)
        self.assert_problem(self.daemon.get(path), 404, "notfound")
        made = self.daemon.ask("PUT", path, b"\x00\xffbytes"[2:], headers={"If-None-Match": "*"}, role="operate")
        self.assertEqual(made.status, 200, made.text)
        self.assert_problem(self.daemon.ask("PUT", path, b"x", headers={"If-None-Match": "*"}), 412, "precondition")
        got = self.daemon.get(path, role="read")
        self.assertEqual((got.text, got.headers["ETag"]), ("bytes", made.headers["ETag"]))
        self.assertEqual(self.daemon.get(path, headers={"If-None-Match": got.headers["ETag"]}).status, 304)
        newer = self.daemon.ask("PUT", path, b"5", headers={"If-Match": got.headers["ETag"]}, query={"ttl_ms": 60000})
        self.assertEqual(newer.status, 200, newer.text)
        self.assert_problem(self.daemon.ask("PUT", path, b"6", headers={"If-Match": got.headers["ETag"]}), 412, "precondition")
        self.assertTrue(0 < int(self.daemon.get(path).headers["Dibs-Expires-Ms"]) <= 60000)
        self.assertEqual(self.daemon.post(path + "/add", {"delta": 37}).json, {"sum": 42})
        listed = self.daemon.get("/v1/state", query={"prefix": key}).json
        self.assertEqual(([item["key"] for item in listed["items"]], listed["next"]), ([key], None))
        self.assert_problem(self.daemon.ask("DELETE", path, headers={"If-Match": got.headers["ETag"]}), 412, "precondition")
        self.assertEqual(self.daemon.ask("DELETE", path).status, 204)
        self.assert_problem(self.daemon.ask("PUT", path, b"x" * (1024 * 1024 + 1)), 413, "too-long")
        self.assertEqual(self.daemon.ask("PUT", path, b"x" * 1024 * 1024).status, 200)
        self.assert_problem(self.daemon.ask("PUT", path, b"x", headers={"If-Match": "5"}), 400, "invalid")

    def test_metrics(self):
        name = self.name()
        for i in range(3):
            self.acquire(f"{name}:{i}", ttl_ms=60000)
        self.acquire(name + "-s", ttl_ms=60000, mode="permits", permits=2, capacity=5)
        wait_until(lambda: self.listed(prefix=name)["total"] == 4, "the locks in the look")
        self.daemon.post("/v1/leases/" + name + "-s", {"mode": "permits", "permits": 4, "capacity": 5})
        answer = self.daemon.get("/metrics", role="read")
        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        types, samples = self.read_metrics(answer.text)
        self.assertEqual(samples["dibs_store_locks_held", f'lock="{name}:*"'], 3)
        self.assertEqual(samples["dibs_semaphore_permits_in_use", f'lock="{name}-s"'], 2)
        self.assertEqual(samples["dibs_semaphore_permits", f'lock="{name}-s"'], 5)
        self.assertEqual(samples["dibs_backend_up", ""], 1)
        self.assertGreaterEqual(samples["dibs_lock_attempts_total", ""], 5)
        self.assertGreaterEqual(samples["dibs_lock_not_acquired_total", 'reason="busy"'], 1)
        self.assertGreaterEqual(samples["dibs_http_requests_total", 'route="/v1/leases/{name}",code="201"'], 4)
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"^\| `(\w+)`", file.read(), re.MULTILINE))
        self.assertEqual(documented, set(types))
        for lock in [f"{name}:{i}" for i in range(3)] + [name + "-s"]:
            self.daemon.ask("DELETE", "/admin/locks/" + lock)

    def test_openmetrics(self):
        plain = self.daemon.get("/metrics").text
        answer = self.daemon.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        self.assertEqual(answer.headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        lines = answer.text.splitlines()
        self.assertEqual((lines[-1], lines.count("# EOF")), ("# EOF", 1))
        types, family = {}, None
        for line in lines[:-1]:
            if line.startswith("# "):
                family = line.split(" ")[2]
                if line.startswith("# TYPE "):
                    types[family] = line.split(" ")[3]
                continue
            name = re.match(r"\w+", line).group()
            ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}[types[family]]
            self.assertIn(name, [family + end for end in ends])
        self.assertEqual({re.sub("_total$", "", name) for name in self.read_metrics(plain)[0]}, set(types))

    def test_contrib_names_metrics_that_exist(self):
        """Alert rules and the dashboard use metrics, labels and types that there are."""
        types, _ = self.read_metrics(self.daemon.get("/metrics").text)
        with open(os.path.join(ROOT, "contrib", "grafana.json"), encoding="utf-8") as file:
            board = json.load(file)
        texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        with open(os.path.join(ROOT, "contrib", "alerts.yaml"), encoding="utf-8") as file:
            texts += re.findall(r"^ +expr: (.*)$", file.read(), re.MULTILINE)
        self.assertGreater(len(texts), 25)
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        places = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in board["panels"]]
        self.assertEqual(places, sorted(set(places)))
        for name in ("lock_renewal_slack_ratio", "backend_op_seconds", "backend_clock_skew_seconds", "lock_broken_total", "lock_hold_seconds", "job_period_seconds"):
            self.assertTrue([text for text in texts if "dibs_" + name in text], name)
        self.assertEqual([target["format"] for panel in board["panels"] if panel["type"] == "heatmap" for target in panel["targets"]], ["heatmap"])
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            labels = dict(re.findall(r"^\| `(\w+)` \| \w+ \| ([\w, ]*?) *\|", file.read(), re.MULTILINE))
        for text in texts:
            with self.subTest(text):
                names = re.findall(r"\b(?:dibs|process)_\w+", text)
                self.assertTrue(names)
                for name in names:
                    base = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
                    self.assertIn(base, types)
                    bare = re.sub(r"\{[^}]*\}", "", text)
                    ranged = re.findall(rf"(\w+)\({name}\[", bare)
                    self.assertEqual(types[base] != "gauge", f"{name}[" in bare and ranged[:1] != ["max_over_time"])
                    for label in re.findall(r"\b(\w+)=", "".join(re.findall(re.escape(name) + r"\{([^}]*)\}", text))):
                        self.assertIn(label, labels[base].split(", "))

    def read_metrics(self, text):
        """Types by name and values by name and labels, after checks of the format."""
        types, samples, seen = {}, {}, None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                seen = line.split(" ", 3)[2]
                self.assertNotIn(seen, types)
            elif line.startswith("# TYPE "):
                self.assertEqual(line.split(" ")[2], seen)
                types[seen] = line.split(" ")[3]
            else:
                name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
                base = re.sub(r"_(bucket|sum|count)$", "", name) if types[seen] == "histogram" else name
                self.assertEqual(base, seen, line)
                self.assertEqual(types[seen] == "counter", name.endswith("_total"), line)
                self.assertNotIn((name, labels or ""), samples)
                samples[name, labels or ""] = float(value)
        for (name, labels), value in samples.items():
            if name.endswith("_bucket") and 'le="+Inf"' in labels:
                route = re.sub(r",?le=.*", "", labels)
                self.assertEqual(value, samples[name.replace("_bucket", "_count"), route])
        return types, samples

    def history(self, name):
        self.listed(prefix=name)  # keeps the look awake
        return self.daemon.get(f"/v1/locks/{name}/history").json["items"]

    def test_history(self):
        name = self.name()
        self.listed()
        lease = self.acquire(name, ttl_ms=60000, label="first")
        hold = wait_until(lambda: self.history(name), "the hold in the history")[0]
        self.assertEqual((hold["fence"], hold["label"], hold["how"], hold["ended_at"]), (lease["fence"], "first", "held", None))
        self.daemon.post(f"/v1/leases/{name}/release", {"token": lease["token"]})
        ended = wait_until(lambda: [hold for hold in self.history(name) if hold["ended_at"]], "the end in the history")[0]
        self.assertEqual((ended["fence"], ended["how"]), (lease["fence"], "ended"))
        self.assertGreaterEqual(ended["ended_at"], ended["granted_at"])
        self.assertNotIn(lease["token"].split(":")[0][8:], json.dumps(ended))

    def test_overview(self):
        name = self.name()
        lease = self.acquire(name, ttl_ms=60000)
        thread = threading.Thread(target=lambda: self.daemon.post(f"/v1/leases/{name}", {"wait_ms": 55000, "ttl_ms": 1000}))
        thread.start()
        seen = wait_until(lambda: [over for over in [self.daemon.get("/v1/overview", role="read").json]
                                   if name in [row["name"] for row in over["contended"]]], "the wait in the overview")[0]
        self.assertGreaterEqual(seen["counts"]["waiters"], 1)
        self.assertGreaterEqual(seen["counts"]["held"], 1)
        self.assertTrue(seen["store"]["up"])
        self.daemon.post(f"/v1/leases/{name}/release", {"token": lease["token"]})
        thread.join()

    def feed(self, name):
        return [event["kind"] for event in self.daemon.get("/v1/feed", query={"name": name}, role="read").json["items"]]

    def test_feed(self):
        name = self.name()
        self.listed()
        first = self.acquire(name, ttl_ms=60000, label="first")
        wait_until(lambda: self.feed(name) == ["acquired"], "the grant in the feed")
        thread = threading.Thread(target=lambda: self.acquire(name, ttl_ms=60000, wait_ms=55000))
        thread.start()
        wait_until(lambda: self.feed(name) == ["queued", "acquired"], "the wait in the feed")
        self.daemon.post(f"/v1/leases/{name}/release", {"token": first["token"]})
        thread.join()
        kinds = ["acquired", "released", "queued", "acquired"]
        wait_until(lambda: self.feed(name) == kinds, "the second grant in the feed")
        events = self.daemon.get("/v1/feed", query={"name": name}).json["items"]
        self.assertEqual((events[3]["label"], events[3]["fence"], events[2]["place"]), ("first", first["fence"], 1))
        self.assertGreater(events[0]["fence"], first["fence"])
        self.assertEqual(self.daemon.get("/v1/feed", query={"name": name, "limit": 1}).json["items"], events[:1])
        self.assertIn(events[0], self.daemon.get("/v1/feed", query={"limit": 1000}).json["items"])
        self.assert_problem(self.daemon.get("/v1/feed", query={"limit": 1001}), 400, "invalid")

    def test_series(self):
        lease = self.acquire(self.name(), ttl_ms=60000)
        wait_until(lambda: self.listed(prefix=self.name())["total"] == 1, "the lock in the look")
        for step in (5, 60):
            answer = self.daemon.get("/v1/series", query={"step_s": step}, role="read").json
            self.assertEqual((answer["step_s"], answer["now"]["at_s"] % step), (step, 0))
            self.assertGreaterEqual(answer["now"]["held"], 1)
            self.assertEqual(answer["now"]["store_up"], 1)
            times = [point["at_s"] for point in answer["items"]]
            self.assertEqual(times, sorted(times))
        few = self.daemon.get("/v1/series", query={"names": "held,waiting"}).json["now"]
        self.assertEqual(list(few), ["at_s", "held", "waiting"])
        for query in ({"step_s": 30}, {"step_s": 1}, {"names": "colour"}):
            self.assert_problem(self.daemon.get("/v1/series", query=query), 400, "invalid")
        self.daemon.post(f"/v1/leases/{self.name()}/release", {"token": lease["token"]})

    def test_statistics(self):
        name = self.name()
        lease = self.acquire(name)
        self.daemon.post(f"/v1/leases/{name}/release", {"token": lease["token"]})
        answer = self.daemon.get("/v1/stats")
        self.assertEqual(answer.status, 200, answer.text)
        self.assertIsInstance(json.loads(answer.text)["items"], list)


if __name__ == "__main__":
    main()
