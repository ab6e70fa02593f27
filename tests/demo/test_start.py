"""Starting: settings, the warm-up guard, what can go wrong, a terminal, and the dashboard."""
# SPDX-License-Identifier: MIT
import errno
import fcntl
import http.client
import json
import os
import pty
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import termios
import threading
import time

from demotools import DIBS, LOCK, PATIENCE, Cluster, DemoCase, alive, free_base, in_time, main, wait_until


class Settings(DemoCase):
    def test_the_variables_of_the_seed(self):
        base = free_base(2)
        self.env.update(NUM_WORKERS="2", HTTP_PORT=str(base))
        process = self.start("demo", "--operations", "0")
        ports = set()
        while len(ports) < 2:
            if found := re.search(r"localhost:(\d+)", process.stdout.readline()):
                ports.add(int(found[1]))
        self.assertEqual(ports, {base + 1, base + 2})
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_what_they_may_not_be(self):
        for name, value, message in (
            ("NUM_WORKERS", "0", "NUM_WORKERS: '0' is not a whole number between 1 and 64"),
            ("NUM_WORKERS", "four", "NUM_WORKERS: 'four'"), ("HTTP_PORT", "-1", "HTTP_PORT: '-1'"),
            ("HTTP_PORT", "65534", "there is no port above 65535"),
        ):
            env = dict(self.env, **{name: value})
            self.assertIn(message, self.fails(78, "demo", env=env))
            # They are of no concern to other verbs.
            self.ok("ping", env=env)
        self.fails(64, "demo", "--workers", "65")

    def test_a_port_in_use(self):
        base = free_base(4)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", base + 3))
            taken.listen()
            said = self.fails(75, "demo", "--http-port", str(base))
        self.assertIn(f"port {base + 3} is in use; workers need the ports {base + 1} to {base + 4}", said)

    def test_a_store_that_is_not_there(self):
        port = free_base(1) + 1
        base = free_base(4)
        env = dict(self.env, REDIS_HOST="127.0.0.1", REDIS_PORT=str(port))
        self.assertIn(f"127.0.0.1:{port}", self.fails(69, "demo", "--http-port", str(base), env=env))
        # A flag wins.
        self.assertIn("nowhere", self.fails(78, "demo", "--http-port", str(base), "--url", "sqlite:/proc/nowhere/x.db", env=env))


    def test_a_store_that_is_slow_at_first(self):
        """It has its whole time limit, though looks at it later must be short."""
        other = sqlite3.connect(self.path("locks.db"), isolation_level=None, check_same_thread=False)
        self.addCleanup(other.close)
        other.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(2.5, other.rollback)
        release.start()
        self.addCleanup(release.join)
        Cluster(self, "--store-timeout", "60s", workers=1).await_ready().stop()


class Every(DemoCase):
    def test_operations_go_on(self):
        """Also after those of the start, and they contend; an end does not wait for the next."""
        cluster = Cluster(self, "--every", "50ms", "--duration", "5ms", workers=2, operations=1)
        for worker in (1, 2):
            done = cluster.await_events("lock_released", 4, worker=worker)
            self.assertEqual([line["operation"] for line in done[:4]], [f"Cache Update Operation {i}" for i in (1, 2, 3, 4)])
        cluster.stop()
        self.check_no_overlap(cluster)
        cluster = Cluster(self, "--every", "1d", workers=1).await_ready()
        in_time(cluster.stop(), 5)


class WarmUp(DemoCase):
    def start_late_enough(self):
        """The whole of it happens within one minute."""
        if time.time() % 60 > 50:
            time.sleep(60.1 - time.time() % 60)

    def test_once_a_minute_whoever_starts(self):
        self.start_late_enough()
        first = Cluster(self, workers=6).await_ready()
        self.assertEqual(len(first.events("value_created")), 1)
        self.assertEqual(len(first.events("warmup_set")), 1)
        self.assertEqual(len(first.events("warmup_skipped")), 5)
        stamp = first.events("warmup_set")[0]["value"]
        self.assertEqual(self.ok("state", "get", "WARMUP_LAST_SUCCESSFUL"), stamp + "\n")
        self.assertEqual(first.update(3, operationName="Kept", duration=0)[0], 200)
        first.stop()
        # What is there is used, also by those who start later in that minute.
        second = Cluster(self, workers=2).await_ready()
        self.assertEqual(second.events("value_created"), [])
        self.assertEqual(second.get(1, "/ads")[1]["data"]["name"], "Kept by Worker 3")
        second.stop()
        self.assertEqual(set(self.keys()), {"ADS_REDLOCK", "WARMUP_LAST_SUCCESSFUL"})
        # Another minute, or a guard without its value: both are initialised.
        self.ok("state", "set", "WARMUP_LAST_SUCCESSFUL", "2026-01-21T00:00:00.000Z")
        third = Cluster(self, workers=2).await_ready()
        self.assertEqual(len(third.events("value_created")), 1)
        self.assertEqual(len(third.events("value_old")), 1)
        self.assertRegex(third.get(1, "/ads")[1]["data"]["name"], "^Initial Worker [12]$")
        third.stop()
        self.ok("state", "del", "ADS_REDLOCK")
        fourth = Cluster(self, workers=2).await_ready()
        self.assertEqual(len(fourth.events("value_missing")), 1)
        fourth.stop()


class Terminal(DemoCase):
    def read_until(self, main, pattern, shown=""):
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, shown, re.S):
            in_time(time.monotonic(), end, repr(shown))
            try:
                shown += os.read(main, 65536).decode(errors="replace")
            except OSError as error:
                self.assertEqual(error.errno, errno.EIO)
                self.fail(repr(shown))
        return shown

    def run_on_terminal(self, *options, columns=100):
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.env["TERM"] = "xterm"
        base = free_base(3)
        process = subprocess.Popen(
            [DIBS, "demo", "--workers", "3", "--http-port", str(base), *options],
            stdin=side, stdout=side, stderr=side, env=self.env, cwd=self.folder,
        )
        os.close(side)
        self.addCleanup(os.close, main)
        self.addCleanup(self.finish, process)
        return process, main

    def test_colours_and_the_status_line(self):
        process, main = self.run_on_terminal("--operations", "1", "--duration", "700ms")
        shown = self.read_until(main, r"held by worker-\d for \S+ \(fence \d+\) \| 2 waiting: worker-\d, worker-\d")
        shown = self.read_until(main, r"(✓ Lock released.*){3}lock: free \| 0 waiting", shown)
        process.send_signal(signal.SIGINT)
        shown = self.read_until(main, r"All workers have stopped\r\n$", shown)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertRegex(shown, r"\033\[3\dm\[Worker 1 \(PID: \d+\)\]\033\[0m \033\[32m✓ Lock acquired")
        # The line never takes more than the width, and is gone in the end.
        for line in re.findall(r"\033\[7m(.*?)\033\[0m", shown):
            self.assertLess(len(line), 100)
        self.assertTrue(re.search(r"\r\033\[KAll workers have stopped\r\n$|\nAll workers have stopped\r\n$", shown), repr(shown[-300:]))

    def test_without_colours(self):
        self.env["NO_COLOR"] = "1"
        process, main = self.run_on_terminal("--operations", "0", columns=40)
        shown = self.read_until(main, r"lock: free \| 0 waiting")
        process.send_signal(signal.SIGINT)
        shown = self.read_until(main, r"All workers have stopped\r\n$", shown)
        self.assertNotIn("\033[3", shown)
        self.assertNotIn("\033[7m", shown)

    def test_a_terminal_that_is_stopped(self):
        """Nobody reads, and it stops in time all the same."""
        process, main = self.run_on_terminal("--operations", "1000", "--duration", "0s")
        self.read_until(main, "Lock released")
        wait_until(lambda: self.show(LOCK), "the lock in use")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        in_time(time.monotonic() - began, 6)
        self.assertIsNone(self.show(LOCK))


class Dashboard(DemoCase):
    def look(self, ready):
        """(port, token) of the address in that line, and nothing else is in it."""
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)", ready["url"])
        self.assertEqual(ready["message"], f"Dashboard: {ready['url']}")
        return int(found[1]), found[2]

    def ask(self, port, path, token=None, method="GET", body=None):
        """The answer, of which the body is not read yet."""
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.addCleanup(conn.close)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body:
            headers["Content-Type"] = "application/json"
        conn.request(method, path, body, headers)
        return conn.getresponse()

    def test_the_address_leads_to_the_lock(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            busy = taken.getsockname()[1]
            cluster = Cluster(self, "--dashboard", str(busy), "--wait", "1h", workers=2)
            port, token = self.look(cluster.await_events("dashboard_ready")[0])
        moved = cluster.events("dashboard_moved", port=port)
        self.assertEqual([line["message"] for line in moved], [f"Port {busy} is in use; the dashboard takes port {port}"])
        # Not before: a worker that is still to warm up would wait for them.
        cluster.await_ready()
        for worker in (1, 2):
            cluster.in_background(worker, duration=60000)

        page = self.ask(port, "/")
        self.assertEqual((page.status, page.headers.get_content_type()), (200, "text/html"))
        self.assertIn(b"<title>", page.read())
        self.assertEqual(self.ask(port, "/v1/locks").status, 401)

        def people():
            items = json.load(self.ask(port, "/v1/locks", token))["items"]
            return [sorted(who["label"] for who in item["holders"] + item["waiters"]) for item in items if item["name"] == LOCK]

        wait_until(lambda: people() == [["worker-1", "worker-2"]], "the holder and the waiter on the dashboard")
        # The token in the address may only look.
        broken = self.ask(port, f"/v1/locks/{LOCK}/break", token, "POST", '{"fence": 0, "reason": "a test"}')
        self.assertEqual(broken.status, 403)
        # A browser that follows the events does not hold the end up.
        self.assertEqual(self.ask(port, "/v1/events", token).status, 200)
        in_time(cluster.stop(signal.SIGINT), 5)
        with socket.socket() as closed:
            self.assertEqual(closed.connect_ex(("127.0.0.1", port)), errno.ECONNREFUSED)

    def test_the_workers_go_on_without_it(self):
        cluster = Cluster(self, "--dashboard", "0", workers=1).await_ready()
        os.kill(cluster.await_events("dashboard_ready")[0]["daemon_pid"], signal.SIGKILL)
        ended = cluster.await_events("dashboard_ended")[0]
        self.assertEqual(ended["message"], "There is no dashboard: killed by signal 9 (Killed). The workers go on")
        self.assertEqual(cluster.update(1, duration=0)[0], 200)
        cluster.stop()

    def test_a_terminal_ends_it_once(self):
        """^C reaches a whole group of processes, of which the daemon is none: its primary ends it."""
        process = subprocess.Popen(
            [DIBS, "demo", "--dashboard", "0", "--workers", "1", "--operations", "0", "--http-port", str(free_base(1)),
             "--log-format", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env, cwd=self.folder, start_new_session=True,
        )
        self.addCleanup(self.finish, process)
        line = {"event": None}
        while line["event"] != "dashboard_ready":
            line = json.loads(process.stdout.readline())
        self.assertNotEqual(os.getpgid(line["daemon_pid"]), process.pid)
        os.killpg(process.pid, signal.SIGINT)
        events = [json.loads(line)["event"] for line in process.stdout]
        self.assertEqual(process.wait(PATIENCE), 0, events)
        self.assertNotIn("dashboard_ended", events)
        self.assertEqual(events[-1], "primary_stopped")
        self.assertFalse(alive(line["daemon_pid"]))

    def test_a_port_of_a_worker(self):
        self.assertIn("port 3002 is of a worker", self.fails(78, "demo", "--dashboard", "3002", "--http-port", "3000"))


if __name__ == "__main__":
    main()
