"""`dibs serve`: metrics of locks, elections, queues and breakers, in a format that Prometheus's own tool accepts."""
# SPDX-License-Identifier: MIT
import os
import shutil
import subprocess
import unittest

from runtools import PATIENCE, main, wait_until
from servetools import ServeCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMTOOL = os.environ.get("DIBS_PROMTOOL") or shutil.which("promtool")
NO_PROMTOOL = "promtool is not installed; Debian has it in the package prometheus"


class Metrics(ServeCase):
    options = ("--metrics-classes", "tenant:*:sync,tenant:*")

    def page(self):
        answer = self.daemon.get("/metrics", role="read")
        self.assertEqual(answer.status, 200)
        return answer.text

    def samples(self):
        found = {}
        for line in self.page().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                self.assertNotIn(name, found)
                found[name] = float(value)
        return found

    def until(self, key, value):
        """The samples, once one of them is so."""
        return wait_until(lambda: (lambda now: now if now.get(key) == value else None)(self.samples()), f"{key} {value}")

    def test_times_of_locks(self):
        name = self.name()
        for i in range(3):
            self.daemon.dibs("run", "--share-stats", f"{name}:{i}", "--", "true")
        now = self.until(f'dibs_lock_wait_seconds_count{{lock="{name}:*"}}', 3)
        self.assertEqual(now[f'dibs_lock_hold_seconds_count{{lock="{name}:*"}}'], 3)
        self.assertEqual(now[f'dibs_lock_hold_seconds_bucket{{lock="{name}:*",le="+Inf"}}'], 3)
        self.assertGreater(now[f'dibs_lock_hold_seconds_sum{{lock="{name}:*"}}'], 0)
        self.assertEqual(now[f'dibs_lock_contended_total{{lock="{name}:*"}}'], 0)
        self.assertIn(f'dibs_lock_wait_quantile_seconds{{lock="{name}:*",percentile="95"}}', now)
        holder = self.daemon.post(f"/v1/leases/{name}:7", {"ttl_ms": 60000})
        self.assertEqual(holder.status, 201)
        busy = self.daemon.dibs("run", "-n", "--share-stats", f"{name}:7", "--", "true", check=False)
        self.assertEqual(busy.returncode, 75, busy.stderr)
        self.until(f'dibs_lock_contended_total{{lock="{name}:*"}}', 1)

    def test_classes_of_the_settings(self):
        for tenant in ("acme", "globex"):
            self.hold(f"tenant:{tenant}:sync")
            self.hold(f"tenant:{tenant}")
        self.until('dibs_store_locks_held{lock="tenant:*:sync"}', 2)
        self.until('dibs_store_locks_held{lock="tenant:*"}', 2)
        refused = self.daemon.dibs("serve", "--check", "--tokens", self.daemon.file, "--metrics-classes", "x" * 256, check=False)
        self.assertEqual(refused.returncode, 78)
        self.assertIn("shorten", refused.stderr)

    def test_reasons(self):
        name = self.name()
        before = self.samples()
        self.assertEqual(self.daemon.post("/v1/leases/" + name, {"ttl_ms": 60000}).status, 201)
        self.assertEqual(self.daemon.post("/v1/leases/" + name, {}).json["code"], "busy")
        self.assertEqual(self.daemon.post("/v1/leases/" + name, {"wait_ms": 50}).json["code"], "timeout")
        now = self.samples()
        grown = {reason: now[key] - before[key] for reason in ("busy", "timeout", "cancelled", "error")
                 for key in [f'dibs_lock_not_acquired_total{{reason="{reason}"}}']}
        self.assertEqual(grown, {"busy": 1, "timeout": 1, "cancelled": 0, "error": 0})

    def test_renewals_and_round_trips(self):
        before = self.samples()
        slack = "dibs_lock_renewal_slack_ratio_"
        session = self.daemon.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        path = f"/v1/sessions/{session}/leases/x"
        wait_until(lambda: self.daemon.ask("PUT", path, {"name": self.name(), "ttl_ms": 1000}, query={"wait_ms": 0}).status == 201,
                   "the lease")
        now = wait_until(lambda: (lambda now: now if now[slack + "count"] > before[slack + "count"] else None)(self.samples()), "a renewal")
        self.assertEqual(self.daemon.ask("DELETE", f"/v1/sessions/{session}").status, 204)
        self.assertEqual(now[slack + 'bucket{le="+Inf"}'], now[slack + "count"])
        mean = (now[slack + "sum"] - before[slack + "sum"]) / (now[slack + "count"] - before[slack + "count"])
        self.assertTrue(0 < mean < 1, mean)
        now = wait_until(lambda: (lambda now: now if now['dibs_backend_op_seconds_count{op="now"}'] > 1 else None)(self.samples()), "round trips")
        self.assertGreater(now['dibs_backend_op_seconds_sum{op="now"}'], 0)
        self.assertLess(abs(now["dibs_backend_clock_skew_seconds"]), 60)

    def test_leases_that_were_broken(self):
        name, key = self.name(), 'dibs_lock_broken_total{action="break"}'
        before = self.samples()[key]
        lease = self.daemon.post("/v1/leases/" + name, {"ttl_ms": 60000}).json
        self.assertEqual(self.daemon.post(f"/v1/locks/{name}/break", {"fence": lease["fence"] - 1, "reason": "no"}).status, 409)
        self.assertEqual(self.samples()[key], before)
        self.assertEqual(self.daemon.post(f"/v1/locks/{name}/break", {"fence": lease["fence"], "reason": "test"}).status, 200)
        self.assertEqual(self.samples()[key], before + 1)

    def test_queues(self):
        name = self.name()
        for text in ("one", "two", "three"):
            self.daemon.dibs("queue", "push", name, text)
        self.daemon.dibs("queue", "push", name, "later", "--delay", "1h")
        now = self.until(f'dibs_queue_pushed_total{{queue="{name}"}}', 4)
        self.assertEqual(now[f'dibs_queue_messages{{queue="{name}",state="ready"}}'], 3)
        self.assertEqual(now[f'dibs_queue_messages{{queue="{name}",state="later"}}'], 1)
        self.daemon.dibs("queue", "run", "--once", name, "--", "true")
        now = self.until(f'dibs_queue_done_total{{queue="{name}"}}', 1)
        self.assertEqual(now[f'dibs_queue_messages{{queue="{name}",state="ready"}}'], 2)
        self.assertGreaterEqual(now[f'dibs_queue_oldest_seconds{{queue="{name}"}}'], 0)

    def test_breakers(self):
        name = self.name()
        path = f"/v1/breakers/{name}"
        self.assertEqual(self.daemon.post(path + "/report", {"good": True}).status, 200)
        self.until(f'dibs_breaker_state{{breaker="{name}"}}', 0)
        self.assertEqual(self.daemon.post(path + "/trip", {"reason": "test"}).status, 204)
        now = self.until(f'dibs_breaker_state{{breaker="{name}"}}', 2)
        self.assertGreaterEqual(now[f'dibs_breaker_changes_total{{breaker="{name}"}}'], 1)

    def test_elections(self):
        name = self.name()
        session = self.daemon.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]

        def campaign(lease):
            return self.daemon.ask("PUT", f"/v1/sessions/{session}/leases/{lease}", {
                "name": name, "kind": "election", "member": lease, "wait_ms": 60000}, query={"wait_ms": 0})

        term = wait_until(lambda: (lambda got: got.json["fence"] if got.status == 201 else None)(campaign("first")), "the lead")
        campaign("second")
        now = self.until(f'dibs_election_candidates{{election="{name}"}}', 1)
        self.assertEqual(now[f'dibs_election_led{{election="{name}"}}'], 1)
        self.assertEqual(now[f'dibs_election_term{{election="{name}"}}'], term)
        self.assertEqual(now[f'dibs_election_changes_total{{election="{name}"}}'], 0)
        self.assertEqual(self.daemon.ask("DELETE", f"/v1/sessions/{session}/leases/first").status, 204)
        now = self.until(f'dibs_election_changes_total{{election="{name}"}}', 1)
        self.assertGreater(now[f'dibs_election_term{{election="{name}"}}'], term)

    def test_deadlocks(self):
        one, two = self.name("-1"), self.name("-2")
        self.assertEqual(self.samples()["dibs_store_deadlocks"], 0)
        sessions = [self.daemon.post("/v1/sessions", {"ttl_ms": 600000}).json["session"] for _ in range(2)]

        def ask(session, lease, name):
            return self.daemon.ask("PUT", f"/v1/sessions/{session}/leases/{lease}", {"name": name, "wait_ms": 60000},
                                   query={"wait_ms": 0}).status

        for session, name in zip(sessions, (one, two)):
            wait_until(lambda: ask(session, "held", name) == 201, "the lease")
        for session, name in zip(sessions, (two, one)):
            self.assertEqual(ask(session, "wanted", name), 202)
        self.until("dibs_store_deadlocks", 1)
        for session in sessions:
            self.assertEqual(self.daemon.ask("DELETE", f"/v1/sessions/{session}").status, 204)
        self.until("dibs_store_deadlocks", 0)

    @unittest.skipUnless(PROMTOOL, NO_PROMTOOL)
    def test_promtool_accepts_the_page(self):
        self.daemon.dibs("run", "--share-stats", self.name(), "--", "true")
        self.daemon.dibs("queue", "push", self.name(), "item")
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=self.page(), text=True, timeout=PATIENCE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    @unittest.skipUnless(PROMTOOL, NO_PROMTOOL)
    def test_promtool_accepts_the_alerts(self):
        for args in (("check", "rules", "contrib/alerts.yaml"), ("test", "rules", "tests/e2e/alerts_test.yaml")):
            checked = subprocess.run([PROMTOOL, *args], cwd=ROOT, text=True, timeout=PATIENCE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout)


if __name__ == "__main__":
    main()
