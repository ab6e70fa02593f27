"""A Redis server that is killed and comes back."""
# SPDX-License-Identifier: MIT
import signal
import subprocess

from demotools import LOCK, PATIENCE, Cluster, DemoCase, free_base, in_time, main, wait_until


class Away(DemoCase):
    def start_server(self):
        server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
             "--appendfsync", "always", "--dir", self.folder, "--logfile", self.path("redis.log")],
        )
        self.addCleanup(self.finish, server)
        wait_until(lambda: self.dibs("ping", "-q").returncode == 0, "the server")
        return server

    def setUp(self):
        super().setUp()
        self.port = free_base(1) + 1
        self.env["DIBS_URL"] = f"redis://127.0.0.1:{self.port}"
        self.server = self.start_server()

    def test_a_password_from_the_environment(self):
        subprocess.run(["redis-cli", "-p", str(self.port), "CONFIG", "SET", "requirepass", "pw"], check=True,
                       stdout=subprocess.DEVNULL)
        env = dict(self.env, DIBS_REDIS_PASSWORD="pw")
        cluster = Cluster(self, "--ttl", "3s", workers=1, env=env).await_ready()
        self.assertEqual(cluster.update(1, duration=0)[0], 200)
        cluster.stop()

    def test_killed_and_started_again(self):
        # As in the seed: host and port alone.
        env = dict(self.env, REDIS_HOST="127.0.0.1", REDIS_PORT=str(self.port), DIBS_URL="")
        cluster = Cluster(self, "--ttl", "3s", "--store-timeout", "2s", workers=2, env=env).await_ready()
        # The longest name, of characters that must not be cut in two.
        status, body = cluster.update(1, operationName="é" * 100, duration=0)
        self.assertEqual((status, body["data"]["name"]), (200, "é" * 100 + " by Worker 1"))
        self.assertEqual(cluster.update(1, operationName="Before", duration=0)[0], 200)
        thread, answers = cluster.in_background(2, operationName="Interrupted", duration=60000)
        cluster.await_events("lock_acquired", operation="Interrupted")
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()

        for worker in (1, 2):
            self.assertEqual(cluster.get(worker, "/health"),
                             (503, {"status": "unhealthy", "workerId": worker, "redis": "disconnected"}))
            self.assertEqual(cluster.get(worker, "/status")[0], 200)
            status, body = cluster.get(worker, "/ads")
            self.assertEqual((status, list(body), body["success"]), (503, ["success", "message"], False))
        status, body = cluster.update(1, duration=0)
        self.assertEqual((status, body["success"]), (503, False))
        # The holder learns in time that it must not rely on the lock any more.
        thread.join(PATIENCE)
        self.assertEqual(answers[0][0], 503)
        self.assertIn("lost", answers[0][1]["message"])

        self.server = self.start_server()
        for worker in (1, 2):
            wait_until(lambda: cluster.get(worker, "/health")[0] == 200, "the worker to be healthy")
        self.assertEqual(cluster.get(1, "/ads")[1]["data"]["name"], "Before by Worker 1")
        for worker in (1, 2):
            status, body = cluster.update(worker, operationName="After", duration=0)
            self.assertEqual((status, body["data"]["name"]), (200, f"After by Worker {worker}"))
        self.assertEqual(cluster.events("worker_died"), [])
        self.check_no_overlap(cluster)
        in_time(cluster.stop(), 5)

    def test_stopped_while_it_is_away(self):
        cluster = Cluster(self, "--ttl", "3s", workers=2).await_ready()
        cluster.in_background(1, operationName="Holder", duration=60000)
        cluster.await_events("lock_acquired", operation="Holder")
        cluster.in_background(2, duration=0)
        wait_until(lambda: self.waiters(LOCK) == 1, "the queue")
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()
        cluster.process.send_signal(signal.SIGTERM)
        self.assertEqual(cluster.process.wait(5), 0)


if __name__ == "__main__":
    main()
