"""Stopping: in time, whatever goes on, and with nothing left behind."""
# SPDX-License-Identifier: MIT
import os
import signal

from demotools import LOCK, PATIENCE, Cluster, DemoCase, alive, below, free_base, in_time, main, wait_until


class Stop(DemoCase):
    def test_while_one_holds_and_others_wait(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number=number):
                cluster = Cluster(self).await_ready()
                runs = [cluster.in_background(worker, duration=60000) for worker in (1, 2, 3, 4, 1)]
                cluster.await_events("lock_acquired")
                cluster.await_events("lock_wanted", 5)
                in_time(cluster.stop(number), 5)
                for thread, answers in runs:
                    thread.join()
                    self.assertEqual(answers, [(503, {"success": False, "message": "The worker is shutting down. Please try again later."})])
                self.assertEqual(len(cluster.events("stopped")), 4)
                self.assertEqual(cluster.events("value_after"), [])

    def test_right_at_the_start(self):
        cluster = Cluster(self, operations=3)
        cluster.await_events("connected")
        in_time(cluster.stop(), 5)

    def test_a_reader_that_goes_away(self):
        """As in `dibs demo | head -1`: it ends as other programs do, without a word, and its workers with it."""
        process = self.start("demo", "--workers", "2", "--operations", "0", "--http-port", str(free_base(2)))
        self.assertIn("is running", process.stdout.readline())
        wait_until(lambda: len(below(process.pid)) == 2, "the workers")
        pids = below(process.pid)
        process.stdout.close()
        self.assertEqual((process.wait(PATIENCE), process.stderr.read()), (-signal.SIGPIPE, ""))
        self.assertFalse(any(alive(pid) for pid in pids))

    def test_a_worker_that_does_not_stop(self):
        """It is killed, and what it held is taken back."""
        cluster = Cluster(self, workers=2).await_ready()
        cluster.in_background(1, operationName="Stuck", duration=60000)
        pid = cluster.await_events("lock_acquired", operation="Stuck")[0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        in_time(cluster.stop(), 5)
        self.assertEqual(len(cluster.events("lock_swept", was_pid=pid)), 1)

    def test_what_a_worker_left_when_it_died(self):
        cluster = Cluster(self, workers=2).await_ready()
        cluster.in_background(2, operationName="Doomed", duration=60000)
        pid = cluster.await_events("lock_acquired", operation="Doomed")[0]["pid"]
        os.kill(pid, signal.SIGKILL)
        cluster.await_events("worker_restarted")
        in_time(cluster.stop(), 5)

    def test_a_primary_that_is_killed(self):
        """Its workers do not outlive it, and let go."""
        cluster = Cluster(self, workers=2).await_ready()
        cluster.in_background(1, duration=60000)
        cluster.await_events("lock_acquired")
        pids = below(cluster.process.pid)
        self.assertEqual(len(pids), 2)
        cluster.process.kill()
        wait_until(lambda: not any(alive(pid) for pid in pids), "the workers to end")
        self.assertIsNone(self.show(LOCK))

    def test_workers_that_keep_dying(self):
        """They are started again, with longer and longer pauses."""
        cluster = Cluster(self, workers=2).await_ready()
        for i in range(3):
            os.kill(cluster.await_events("http_started", i + 1, worker=2)[i]["pid"], signal.SIGUSR1 if i else signal.SIGKILL)
            cluster.await_events("worker_died", i + 1)
        died = cluster.events("worker_died")
        self.assertEqual([line["restart_ms"] for line in died], [250, 500, 1000])
        self.assertEqual(died[1]["cause"], "killed by signal 10 (User defined signal 1)")
        self.assertEqual(cluster.get(1, "/status")[0], 200)
        cluster.stop()


if __name__ == "__main__":
    main()
