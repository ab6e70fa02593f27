"""The cluster at work: its endpoints, its log, and one at a time."""
# SPDX-License-Identifier: MIT
import os
import re
import signal

from demotools import PACE, REFUSAL, Cluster, DemoCase, NotInTime, answered, free_base, in_time, main, span, wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Endpoints(DemoCase):
    def check_ad(self, data, worker, name):
        self.assertEqual(list(data), ["id", "name", "time"])
        self.assertEqual((data["id"], data["name"]), (f"worker-{worker}", name))
        self.assertRegex(data["time"], TIME)

    def test_every_endpoint_of_every_worker(self):
        cluster = Cluster(self).await_ready()
        pids = {line["worker"]: line["pid"] for line in cluster.events("http_started")}
        for worker in range(1, 5):
            status, body = cluster.get(worker, "/status")
            self.assertEqual((status, list(body)), (200, ["workerId", "processId", "status", "timestamp"]))
            self.assertEqual((body["workerId"], body["processId"], body["status"]), (worker, pids[worker], "running"))
            self.assertRegex(body["timestamp"], TIME)

            self.assertEqual(cluster.get(worker, "/health"),
                             (200, {"status": "healthy", "workerId": worker, "redis": "connected"}))

            status, body = cluster.update(worker, operationName="Custom Operation Name", duration=5)
            self.assertEqual((status, list(body)), (200, ["success", "message", "data"]))
            self.assertIs(body["success"], True)
            self.assertEqual(body["message"], "Operation completed successfully")
            self.check_ad(body["data"], worker, f"Custom Operation Name by Worker {worker}")

            status, after = cluster.get(1 + worker % 4, "/ads")
            self.assertEqual((status, list(after)), (200, ["success", "data"]))
            self.assertEqual((after["success"], after["data"]), (True, body["data"]))
        # The body is optional.
        status, body, headers = cluster.ask(1, "POST", "/update", '{"duration": 0}')
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        self.check_ad(body["data"], 1, "Cache Update Operation by Worker 1")
        thread, answers = cluster.in_background(2)
        self.assertEqual(cluster.await_events("lock_acquired", 6)[-1]["worker"], 2)
        thread.join()
        self.assertEqual(answers[0][0], 200)
        self.assertGreaterEqual(cluster.await_events("operation_done", 6)[-1]["took_ms"], 2000)
        in_time(cluster.stop(), 5)

    def test_the_refusal(self):
        cluster = Cluster(self, "--wait", span(0.1), workers=2).await_ready()
        thread, answers = cluster.in_background(1, operationName="Long", duration=round(1500 * PACE))
        cluster.await_events("lock_acquired", operation="Long")
        self.assertEqual(answered(cluster.update(2, duration=0)), (409, REFUSAL))
        thread.join()
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(cluster.update(2, duration=0)[0], 200)
        # The value is there no longer.
        self.ok("state", "del", "ADS_REDLOCK", env=self.data_env())
        self.assertEqual(cluster.get(1, "/ads"), (404, {"success": False, "message": "ADS_REDLOCK does not exist"}))
        self.assertEqual(cluster.update(2, duration=0)[0], 200)
        self.assertEqual(cluster.get(1, "/ads")[0], 200)
        cluster.stop()


class OneAtATime(DemoCase):
    def test_forty_at_once(self):
        cluster = Cluster(self, "--duration", "100ms", operations=1).await_ready()
        runs = [cluster.in_background(1 + i % 4, operationName=f"Update {i}", duration=20 + i % 7) for i in range(40)]
        for thread, _ in runs:
            thread.join()
        done = 0
        for i, (_, answers) in enumerate(runs):
            status, body = answered(answers[0])
            if status == 200:
                done += 1
                self.assertEqual(body["data"]["name"], f"Update {i} by Worker {1 + i % 4}")
            else:
                self.assertEqual((status, body), (409, REFUSAL))
        if done <= 20:
            raise NotInTime(f"only {done} of 40 had their turn while they waited")
        # What was answered was done, with the worker's own first operations.
        wait_until(lambda: len(self.check_no_overlap(cluster)) == done + 4, "all releases in the log")
        self.assertEqual(len(cluster.events("lock_released")), done + 4)
        last = max(cluster.events("lock_released"), key=lambda line: line["fence"])
        value = cluster.get(1, "/ads")[1]["data"]
        self.assertEqual(value["name"], f"{last['operation']} by Worker {last['worker']}")
        cluster.stop()

    def test_a_worker_killed_while_it_holds(self):
        cluster = Cluster(self, "--ttl", "1500ms", workers=3).await_ready()
        victim = cluster.events("http_started", worker=1)[0]["pid"]
        _, answers = cluster.in_background(1, operationName="Doomed", duration=60000)
        cluster.await_events("lock_acquired", operation="Doomed")
        os.kill(victim, signal.SIGKILL)
        # It passes on when its time is up; the value is as it was before.
        status, body = cluster.update(2, operationName="Heir", duration=1)
        self.assertEqual((status, body["data"]["name"]), (200, "Heir by Worker 2"))
        before = [line["value"] for line in cluster.await_events("value_before", 2)][-1]
        self.assertNotIn("Doomed", before)
        died = cluster.await_events("worker_died", id=1)[0]
        self.assertEqual((died["was_pid"], died["cause"]), (victim, "killed by signal 9 (Killed)"))
        again = cluster.await_events("http_started", 2, worker=1)[1]["pid"]
        self.assertNotEqual(again, victim)
        self.assertEqual(cluster.get(1, "/status")[1]["processId"], again)
        self.assertEqual(cluster.update(1, duration=0)[0], 200)
        self.assertFalse(answers and answers[0] == 200)
        self.check_no_overlap(cluster)
        cluster.stop()


class Log(DemoCase):
    def test_the_lines_for_people(self):
        base = free_base(2)
        store = "Redis" if self.env["DIBS_URL"].startswith("red") else "SQLite"
        process = self.start("demo", "--workers", "2", "--http-port", str(base), "--operations", "1", "--duration", "300ms")
        lines = []
        while sum("Lock released" in line for line in lines) < 2:
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], lines)
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        self.assertEqual(process.wait(), 0)
        text = "".join(lines)
        self.assertNotIn("\033", text)
        self.assertTrue(text.startswith(f"Primary process {process.pid} is running\nStarting 2 worker processes...\n\n"))
        ad = r"\{ id: 'worker-[12]', name: '[^']*', time: '" + TIME.pattern + r"' \}"
        for pattern in (
            rf"Connected to {store}",
            rf"{store} connection established",
            r"ADS_REDLOCK does not exist\. Creating initial value\.\.\.",
            rf"Created ADS_REDLOCK key: {ad}",
            rf"Set WARMUP_LAST_SUCCESSFUL to: {TIME.pattern}",
            r"Attempting to acquire lock for: Cache Update Operation 1",
            r"✓ Lock acquired after \d+ms for: Cache Update Operation 1",
            rf"Current ADS_REDLOCK value: {ad}",
            rf"✓ Updated ADS_REDLOCK to: {ad}",
            r"Operation took ([3-9]\d\d|\d{4,})ms",
            r"✓ Lock released for: Cache Update Operation 1",
        ):
            self.assertRegex(text, rf"(?m)^\[Worker [12] \(PID: \d+\)\] {pattern}$")
        self.assertIn("Received SIGINT. Stopping 2 workers...\n", text)
        self.assertTrue(text.endswith("All workers have stopped\n"))
        # Who reads sees one at a time.
        order = re.findall(r"\[Worker (\d) .*Lock (acquired|released)", text)
        self.assertEqual([what for _, what in order], ["acquired", "released"] * 2)
        self.assertEqual(order[0][0], order[1][0])
        self.assertEqual(order[2][0], order[3][0])

    def test_names_cannot_drive_a_terminal(self):
        base = free_base(1)
        process = self.start("demo", "--workers", "1", "--http-port", str(base), "--operations", "0")
        cluster = Cluster.__new__(Cluster)
        cluster.base = base
        while "HTTP server listening" not in process.stdout.readline():
            pass
        status, body = cluster.update(1, operationName="a\x1b[31mb\nc'd", duration=0)
        self.assertEqual((status, body["data"]["name"]), (200, "a\x1b[31mb\nc'd by Worker 1"))
        process.send_signal(signal.SIGTERM)
        text = process.stdout.read()
        self.assertIn("ms for: a?[31mb?c'd\n", text)
        self.assertNotIn("\033", text)


if __name__ == "__main__":
    main()
