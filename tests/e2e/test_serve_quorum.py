"""`dibs serve` on a quorum: leases as everywhere, and the refusals that docs/redis.md tells of for the rest."""
# SPDX-License-Identifier: MIT
import tempfile

from runtools import main, wait_until
from servetools import URL, Daemon, ServeCase

# What needs one order of changes, or one decision.
REFUSED = (
    ("GET", "/v1/state", None), ("GET", "/v1/state/k", None), ("PUT", "/v1/state/k", {}), ("POST", "/v1/state/k/add", {"delta": 1}),
    ("GET", "/v1/topics", None), ("GET", "/v1/topics/t/events", None), ("POST", "/v1/topics/t", {"data": "x"}),
    ("GET", "/v1/topics/t/messages", None), ("POST", "/v1/topics/t/messages", {"data": "x"}),
    ("GET", "/v1/queues", None), ("GET", "/v1/queues/q", None), ("POST", "/v1/queues/q", {"data": "x"}),
    ("GET", "/v1/members/g", None), ("GET", "/v1/barriers/b", None),
    ("GET", "/v1/latches/l", None), ("POST", "/v1/latches/l/count-down", {"count": 1, "id": "i"}),
    ("POST", "/v1/limits/l/take", {"n": 1, "count": 1, "period_ms": 1000}),
    ("GET", "/v1/audit", None), ("GET", "/v1/jobs", None), ("GET", "/v1/runs", None), ("POST", "/v1/jobs/j/run", {}))


class Quorum(ServeCase):
    def session(self, **more):
        return self.daemon.post("/v1/sessions", {"ttl_ms": 600000, **more}, role="operate").json

    def put(self, session, lease, **body):
        return self.daemon.ask("PUT", f"/v1/sessions/{session['session']}/leases/{lease}", {"name": self.name(), **body},
                               role="operate")

    def test_leases(self):
        path = "/v1/leases/" + self.name()
        lease = self.daemon.post(path, {"ttl_ms": 30000}, role="operate")
        self.assertEqual(lease.status, 201, lease.text)
        token = {"token": lease.json["token"]}
        self.assert_problem(self.daemon.post(path, {}, role="operate"), 409, "busy")
        self.assertTrue(self.daemon.post(path + "/check", token).json["held"])
        self.assertEqual(self.daemon.post(path + "/renew", token).status, 200)
        self.assertEqual(self.daemon.get("/v1/locks/" + self.name()).json["holders"][0]["fence"], lease.json["fence"])
        wait_until(lambda: self.daemon.get("/v1/locks", query={"prefix": self.name()}).json["total"] == 1, "the lock in the look")
        self.assertEqual(self.daemon.post(path + "/release", token).status, 204)
        self.assert_problem(self.daemon.post(path + "/renew", token), 410, "lost")

    def test_sessions(self):
        first, second = self.session(), self.session()
        held = self.put(first, "a")
        self.assertEqual((held.status, held.json["state"]), (201, "held"), held.text)
        self.assert_problem(self.put(first, "s", mode="shared"), 501, "unsupported")
        convert = self.daemon.post(f"/v1/sessions/{first['session']}/leases/a/convert", {"mode": "shared"}, role="operate")
        self.assert_problem(convert, 501, "unsupported")
        adopted = self.session(adopt=[{"id": "b", "name": self.name(), "token": held.json["token"]}])["leases"]["b"]
        self.assertEqual((adopted["state"], adopted["why"]), ("freed", "unsupported"))
        waiting = self.daemon.ask("PUT", f"/v1/sessions/{second['session']}/leases/w", {"name": self.name(), "wait_ms": 600000},
                                  role="operate", query={"wait_ms": 0})
        self.assertEqual(waiting.status, 202, waiting.text)
        self.assertIsNone(waiting.json["place"])  # It has no queue.
        path = f"/v1/sessions/{first['session']}/leases/a"
        self.assertEqual(self.daemon.ask("DELETE", path, role="operate").status, 204)
        granted = self.daemon.get(f"/v1/sessions/{second['session']}/leases/w", role="operate", query={"wait_ms": 50000}).json
        self.assertEqual(granted["state"], "held")
        self.assertGreater(granted["fence"], held.json["fence"])

    def test_break(self):
        """There is no trail, so the log has it."""
        token = self.hold(self.name())
        answer = self.daemon.post(f"/v1/locks/{self.name()}/break", {"fence": int(token.split(":")[1]), "reason": "stuck"})
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(self.daemon.get("/v1/locks/" + self.name()).json["holders"], [])
        lines = [line for line in self.daemon.log() if line["event"] == "audit" and line["target"] == self.name()]
        self.assertEqual([line["result"] for line in lines], ["OK"])
        self.hold(self.name())
        self.assert_problem(self.daemon.post(f"/v1/locks/{self.name()}/yield", role="operate"), 501, "unsupported")

    def test_refusals(self):
        for method, path, body in REFUSED:
            with self.subTest(method + " " + path):
                detail = self.assert_problem(self.daemon.ask(method, path, body), 501, "unsupported")["detail"]
                self.assertTrue(detail)

    def test_breaker_of_the_daemon_alone(self):
        answer = self.daemon.post(f"/v1/breakers/{self.name()}/report", {"good": True}, role="operate")
        self.assertEqual(answer.status, 200, answer.text)

    def test_probes(self):
        for path in ("/livez", "/readyz", "/healthz"):
            self.assertEqual(self.daemon.get(path, role=None).status, 200, path)
        self.assertTrue(self.daemon.get("/v1/overview").json["store"]["up"])
        self.assertIn("dibs_backend_up 1\n", self.daemon.get("/metrics").text)

    def test_no_jobs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write("jobs: {one: {run: [x]}}\n")
            file.flush()
            daemon = Daemon("--jobs", file.name, url=URL)
            self.addCleanup(daemon.end)
            self.assertIn("no jobs", daemon.await_event("jobs_failed")["message"])
            self.assertEqual(daemon.get("/livez", role=None).status, 200)


class WithDataStore(ServeCase):
    """Locks on the quorum, and all else in a store that keeps values."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dibs-data-")
        cls.addClassCleanup(folder.cleanup)
        cls.data_url = f"sqlite:{folder.name}/data.db"
        with open(f"{folder.name}/jobs.yaml", "w", encoding="utf-8") as file:
            file.write("jobs: {one: {run: [echo, done]}}\n")
        cls.options = ("--data-url", cls.data_url, "--jobs", file.name)
        super().setUpClass()

    def trail(self):
        items = self.daemon.get("/v1/audit", query={"limit": 100}).json["items"]
        return [item for item in items if item["name"] == self.name()]

    def test_all_nouns_are_there(self):
        for method, path, body in REFUSED:
            if (method, path) == ("GET", "/v1/topics/t/messages"):
                continue
            with self.subTest(method + " " + path):
                self.assertNotEqual(self.daemon.ask(method, path, body).status, 501)

    def test_locks_are_on_the_quorum_and_values_are_not(self):
        lease = self.daemon.post("/v1/leases/" + self.name(), {"ttl_ms": 30000}, role="operate")
        self.assertEqual(lease.status, 201, lease.text)
        self.assertIn(self.name(), self.daemon.dibs("ls").stdout)
        self.assertNotIn(self.name(), self.daemon.dibs("ls", "--url", self.data_url).stdout)
        written = self.daemon.ask("PUT", "/v1/state/" + self.name(), b"here", role="operate")
        self.assertIn(written.status, (200, 201, 204), written.text)
        self.assertEqual(self.daemon.dibs("state", "get", self.name(), "--url", self.data_url).stdout.strip(), "here")

    def test_a_session_takes_what_was_pushed(self):
        """Deliveries and arrivals of a session are in the data store too, beside leases on the quorum."""
        session = self.daemon.post("/v1/sessions", {"ttl_ms": 600000}, role="operate").json["session"]
        pushed = self.daemon.post(f"/v1/queues/{self.name()}", {"data": "x"}, role="operate")
        self.assertEqual(pushed.status, 201, pushed.text)
        taken = self.daemon.post(f"/v1/queues/{self.name()}/reserve", {"session": session}, role="operate")
        self.assertEqual(taken.status, 200, taken.text)
        self.assertEqual([item["data"] for item in taken.json["items"]], ["x"])
        arrived = self.daemon.post(f"/v1/barriers/{self.name()}/arrive", {"session": session, "id": "a", "parties": 1},
                                   role="operate", query={"wait_ms": 25000})
        self.assertEqual(arrived.status, 200, arrived.text)

    def test_a_job_runs(self):
        begun = self.daemon.post("/v1/jobs/one/run", role="operate")
        self.assertIn(begun.status, (200, 201, 202), begun.text)
        wait_until(lambda: [run for run in self.daemon.get("/v1/runs").json.get("items", ()) if run["state"] == "OK"], "a run")

    def test_break_is_in_the_trail(self):
        token = self.hold(self.name())
        fence = int(token.split(":")[1])
        answer = self.daemon.post(f"/v1/locks/{self.name()}/break", {"fence": fence, "reason": "stuck"})
        self.assertEqual(answer.status, 200, answer.text)
        entries = self.trail()
        self.assertEqual([(entry["action"], entry["fence"], entry["reason"]) for entry in entries], [("break", fence, "stuck")])
        gone = self.daemon.post(f"/v1/locks/{self.name()}/break", {"fence": fence, "reason": "again"})
        self.assertIn(gone.status, (404, 409), gone.text)
        self.assertIn("break-failed", [entry["action"] for entry in self.trail()])

    def test_the_daemon_names_both(self):
        version = self.daemon.get("/version").json
        self.assertTrue(version["store"].startswith("redlock:"))
        self.assertEqual(version["data_store"], self.data_url)
        checks = {check["name"]: check["ok"] for check in self.daemon.get("/healthz").json["checks"]}
        self.assertTrue(checks["data"])

    def test_a_quorum_of_data_is_refused(self):
        refused = self.daemon.dibs("serve", "--check", "--tokens", self.daemon.file, "--data-url", URL, check=False)
        self.assertEqual(refused.returncode, 78)
        self.assertIn("keeps no values", refused.stderr)


class DataStoreAway(ServeCase):
    """The data store does not answer: locks go on, and nothing is changed that the trail must have."""

    options = ("--data-url", "redis://127.0.0.1:9?connect_timeout=100ms")

    def test_locks_go_on(self):
        lease = self.daemon.post("/v1/leases/" + self.name(), {"ttl_ms": 30000}, role="operate")
        self.assertEqual(lease.status, 201, lease.text)
        self.assertEqual(self.daemon.get("/readyz", role=None).status, 200)
        refused = self.daemon.post(f"/v1/locks/{self.name()}/break", {"fence": lease.json["fence"], "reason": "stuck"})
        self.assert_problem(refused, 503, "unavail")
        self.assertEqual(len(self.daemon.get("/v1/locks/" + self.name()).json["holders"]), 1)
        self.assertEqual(self.daemon.get("/healthz").json["status"], "unhealthy")


if __name__ == "__main__":
    main()
