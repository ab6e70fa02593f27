"""`dibs serve`: start, probes, tokens and roles, requests that are refused, reload, drain."""
# SPDX-License-Identifier: MIT
import concurrent.futures
import contextlib
import json
import os
import pty
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest

from runtools import DIBS, PATIENCE, UNAVAIL, NotInTime, main, span, wait_until
from servetools import Daemon, ServeCase

PROBES = ("/livez", "/readyz", "/healthz", "/version", "/openapi.json", "/problems")


class Answers(ServeCase):
    def test_probes_need_no_token(self):
        for path in PROBES:
            with self.subTest(path):
                answer = self.daemon.get(path, role=None)
                self.assertEqual(answer.status, 200, answer.text)
                self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
                self.assertRegex(answer.headers["Dibs-Epoch"], "^[0-9a-f]{8}$")
                self.assertIsNone(answer.headers["Set-Cookie"])
                self.assertEqual(self.daemon.ask("HEAD", path, role=None).text, "")
        self.assertEqual(self.daemon.get("/healthz", role=None).json, {"status": "healthy"})
        self.assertIn("lock", [check["name"] for check in self.daemon.get("/healthz").json["checks"]])
        self.assertNotIn("store", self.daemon.get("/version", role=None).json)
        self.assertIn("store", self.daemon.get("/version", role="read").json)

    def test_every_route_wants_its_role(self):
        document = self.daemon.get("/openapi.json", role=None).json
        order = ["none", "read", "operate", "admin"]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                need = order.index(operation["x-role"])
                for role in ("none", "dibs_" + "x" * 43, "read", "operate"):
                    has = order.index(role) if role in order else 0
                    if role == "none" and need == 0 or has >= need and role in order:
                        continue
                    with self.subTest((method, path, role)):
                        answer = self.daemon.ask(method.upper(), self.pattern(path), role=None if role == "none" else role)
                        # Ten unknown tokens are as many as an address may send in a minute.
                        self.assertIn(answer.status, (403,) if has else (401, 429), answer.text)
                        self.assertEqual(answer.json["code"], {401: "token", 403: "role", 429: "limit"}[answer.status])

    def test_every_route_refuses_a_query_that_it_does_not_read(self):
        """A misspelt filter must not show, or change, more than was meant. The first that passes it on ends the test: it may be a stream."""
        for path, methods in self.daemon.get("/openapi.json", role=None).json["paths"].items():
            for method, operation in methods.items():
                answer = self.daemon.ask(method.upper(), self.pattern(path), query={"lmit": "1"})
                if operation["x-role"] == "none":
                    self.assertNotEqual(answer.status, 400, path)
                else:
                    self.assertEqual((method, path, answer.status), (method, path, 400))
                    self.assertIn("?lmit=", answer.json["detail"])
        self.assertIn("may have: prefix limit", self.daemon.get("/v1/waits", query={"prefx": "a"}).json["detail"])

    def test_problems(self):
        self.assert_problem(self.daemon.get("/nothing"), 404, "notfound")
        self.assert_problem(self.daemon.get("/v1/whoami", role=None), 401, "token")
        self.assertTrue(self.daemon.get("/v1/whoami", role=None).headers["WWW-Authenticate"].startswith("Bearer"))
        self.assert_problem(self.daemon.post("/livez"), 405, "method")
        self.assert_problem(self.daemon.get("/livez", headers={"Host": "rebound.example"}), 421, "host")
        self.assert_problem(self.daemon.get("/livez", headers={"Origin": "http://evil.example"}), 403, "origin")
        self.assert_problem(self.daemon.get("/livez", headers={"Sec-Fetch-Site": "cross-site"}), 403, "origin")
        self.assert_problem(self.daemon.get("/v1/whoami", query={"token": "x"}), 400, "invalid")
        page = self.daemon.get("/problems", role=None)
        for code in ("notfound", "token", "busy", "unavail"):
            self.assertIn(f'id="{code}"', page.text)

    def test_who_am_i(self):
        answer = self.daemon.get("/v1/whoami", role="operate")
        self.assertEqual((answer.json["name"], answer.json["role"]), ("operate", "operate"))

    def test_tokens(self):
        answer = self.daemon.get("/v1/tokens")
        self.assertEqual(answer.json["items"], [{"name": role, "role": role, "expires_at": None}
                                                for role in ("read", "operate", "admin")])
        self.assertNotIn("sha256", answer.text)

    def test_traceparent_is_in_the_log(self):
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

        def logged():
            self.daemon.get("/v1/whoami", headers={"X-Request-Id": "not-traced", "traceparent": parent + "-more"})
            self.daemon.get("/v1/whoami", headers={"X-Request-Id": "traced", "traceparent": parent})
            lines = {line.get("request"): line for line in self.daemon.log()}
            return lines if {"traced", "not-traced"} <= set(lines) else None

        lines = wait_until(logged, "the lines of both requests")
        self.assertEqual(lines["traced"]["traceparent"], parent)
        self.assertNotIn("traceparent", lines["not-traced"])

    def test_request_ids_and_log(self):
        def logged():
            # Lines beyond a hundred a second are dropped, and other tests make many.
            answer = self.daemon.get("/v1/whoami", role="read", headers={"X-Request-Id": "my-request.7"})
            self.assertEqual(answer.headers["X-Request-Id"], "my-request.7")
            return [line for line in self.daemon.log() if line.get("request") == "my-request.7"]

        self.daemon.get("/v1/whoami", query={"secret": "in-a-query"}, headers={"X-Request-Id": "bad id\x7f"})
        line = wait_until(logged, "the line of a request")[0]
        self.assertEqual((line["route"], line["status"], line["who"], line["from"]),
                         ("/v1/whoami", 200, "read", "127.0.0.1"))
        self.assertNotIn("traceparent", line)
        text = self.daemon.log_text()
        self.assertNotIn("in-a-query", text)
        for token in self.daemon.tokens.values():
            self.assertNotIn(token, text)
            self.assertNotIn(token[5:20], text)


class Lives(unittest.TestCase):
    def start(self, *args, **more):
        daemon = Daemon(*args, **more)
        self.addCleanup(daemon.end)
        return daemon

    def test_a_store_that_is_kept_busy_at_the_start(self):
        """The daemon says so and tries again, as long as it waits for a store on a network."""
        folder = tempfile.mkdtemp(prefix="dibs-busy-")
        self.addCleanup(shutil.rmtree, folder)
        env = {"HOME": folder, "XDG_STATE_HOME": folder, "DIBS_URL": f"sqlite:{folder}/store.db"}
        words = [DIBS, "serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--store-timeout", "200ms"]
        with contextlib.closing(sqlite3.connect(f"{folder}/store.db", timeout=PATIENCE)) as other:
            other.execute("BEGIN EXCLUSIVE")
            given_up = subprocess.run([*words, "--start-wait", "1ms"], capture_output=True, text=True, env=env, check=False,
                                      timeout=PATIENCE)
            self.assertEqual(given_up.returncode, UNAVAIL, given_up.stderr)
            self.assertIn("kept the database locked", given_up.stderr)
            with subprocess.Popen([*words, "--start-wait", "1h"], stderr=subprocess.PIPE, text=True, env=env) as process:
                events = (json.loads(line) for line in process.stderr if line.startswith("{"))
                self.addCleanup(process.kill)
                said = next(event for event in events if event["event"] == "store_not_open")
                self.assertIn("kept the database locked", said["message"])
                other.rollback()
                next(event for event in events if event["event"] == "ready")
                process.terminate()
        self.assertEqual(process.returncode, 0)

    def test_wrong_tokens_are_limited(self):
        daemon = self.start()
        statuses = [daemon.get("/v1/whoami", role="dibs_wrong").status for _ in range(12)]
        self.assertEqual(statuses, [401] * 10 + [429] * 2)
        # One of them is in the log and in the trail, without the token.
        def refused():
            return daemon.get("/v1/audit", query={"action": "token-refused"}).json["items"]

        entry = wait_until(refused, "the entry")[0]
        self.assertEqual([entry[key] for key in ("name", "who", "role", "from", "route", "result")],
                         ["/v1/whoami", "", "none", "127.0.0.1", "/v1/whoami", "DENIED"])
        self.assertEqual(len(refused()), 1)
        self.assertEqual(daemon.await_event("token_refused")["from"], "127.0.0.1")
        self.assertNotIn("dibs_wrong", daemon.log_text() + str(refused()))
        # A token that is known passes all the same.
        self.assertEqual(daemon.get("/v1/whoami", role="read").status, 200)

    def test_reload(self):
        daemon = self.start()
        daemon.tokens["late"] = daemon.dibs("access", "add", "late", "--role", "read", "--tokens", daemon.file).stdout.strip()
        self.assertEqual(daemon.get("/v1/whoami", role="late").status, 401)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded")
        self.assertEqual(daemon.get("/v1/whoami", role="late").json["name"], "late")
        daemon.dibs("access", "rm", "late", "--tokens", daemon.file)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded", 2)
        self.assertEqual(daemon.get("/v1/whoami", role="late").status, 401)
        # A file with a fault changes nothing.
        with open(daemon.file, "a", encoding="utf-8") as file:
            file.write("evil admin nonsense\n")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("tokens:4:", daemon.await_event("reload_failed")["message"])
        self.assertEqual(daemon.get("/v1/whoami", role="admin").status, 200)

    def test_reload_of_settings(self):
        """Hosts, rates and the level of the log; a flag still wins, and one fault changes nothing."""
        folder = tempfile.mkdtemp(prefix="dibs-reload-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = folder + "/serve.yaml"

        def write(text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

        def status(host):
            return daemon.get("/v1/whoami", headers={"Host": host}).status

        write("serve:\n  hosts: one.example\n  token_rate: 0\n")
        daemon = self.start("--config", path, "--address-connections", "7")
        self.assertEqual((status("one.example"), status("two.example")), (200, 421))
        write("log_level: trace\nserve:\n  hosts: two.example\n  token_rate: 1\n  address_connections: 1\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded")
        self.assertEqual(daemon.get("/v1/log-level").json["level"], "trace")
        self.assertEqual((status("one.example"), status("two.example")), (421, 200))
        wait_until(lambda: daemon.get("/v1/whoami", role="read").status == 429, "the limit")
        # One fault: nothing of the file counts, nor of the token file.
        daemon.tokens["late"] = daemon.dibs("access", "add", "late", "--role", "admin", "--tokens", daemon.file).stdout.strip()
        write("serve:\n  hosts: one.example\n  token_rate: many\n")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("serve.yaml:3:", daemon.await_event("reload_failed")["message"])
        self.assertEqual(daemon.get("/v1/whoami", role="late").status, 401)
        self.assertEqual((status("one.example"), status("two.example")), (421, 200))
        # What the file does not say any more is as it was by default.
        write("log_level: info\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.await_event("reloaded", 2)
        self.assertEqual((status("two.example"), daemon.get("/v1/log-level", role="late").json["level"]), (421, "info"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can write the file of another user")
    def test_root_leaves_the_file_to_its_user(self):
        daemon = self.start()
        os.chown(daemon.file, 65534, 65534)
        with open(daemon.folder + "/private", "w", encoding="utf-8") as file:
            file.write("of root\n")
        os.link(daemon.folder + "/private", daemon.file + ".new")
        for args in (["add", "late"], ["rm", "late"]):
            daemon.dibs("access", *args, "--tokens", daemon.file)
            state = os.stat(daemon.file)
            self.assertEqual((state.st_uid, state.st_gid, state.st_mode & 0o777), (65534, 65534, 0o600))
        state = os.stat(daemon.folder + "/private")
        self.assertEqual((state.st_uid, state.st_size), (0, 8))

    def test_stop(self):
        daemon = Daemon("--base-path", "/dibs/")
        self.assertEqual(daemon.get("/dibs/livez", role=None).status, 200)
        self.assertEqual(daemon.get("/dibs/none", role=None).json["type"], "/dibs/problems#notfound")
        self.assertEqual(daemon.get("/livez", role=None).status, 200)
        self.assertEqual(daemon.end(), 0)

    def test_drain_and_second_signal(self):
        daemon = self.start("--drain-delay", "60s")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.await_event("draining")
        answer = daemon.get("/readyz", role=None)
        self.assertEqual((answer.status, answer.text), (503, "draining\n"))
        self.assertEqual(daemon.get("/livez", role=None).status, 200)
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(PATIENCE), -signal.SIGTERM)

    def test_many_ask_for_health_at_once(self):
        """One checks the store. The others wait for it: there is no answer from before."""
        daemon = self.start()
        store = sqlite3.connect(daemon.url.removeprefix("sqlite:"), isolation_level=None)
        self.addCleanup(store.close)
        store.execute("BEGIN IMMEDIATE")
        from_s = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(daemon.get, "/healthz", role=None) for _ in range(4)]
            early = concurrent.futures.wait(asked, 0.5, concurrent.futures.FIRST_COMPLETED).done
            store.execute("ROLLBACK")
            took_s = time.monotonic() - from_s
            answers = [done.result(PATIENCE).status for done in asked]
        if took_s > 0.9:
            raise NotInTime(f"the file was locked for {took_s:.1f} s")
        self.assertEqual((len(early), answers), (0, [200] * 4))

    def test_without_a_store(self):
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            url = f"redis://127.0.0.1:{sock.getsockname()[1]}"
            daemon = self.start("--start-wait", "0s", "--store-timeout", "1s", url=url)
            self.assertEqual(daemon.get("/livez", role=None).status, 200)
            self.assertEqual(daemon.get("/readyz", role=None).status, 200)
            answer = daemon.get("/healthz", role=None)
            self.assertEqual((answer.status, answer.json), (503, {"status": "unhealthy"}))
            answer = daemon.get("/v1/locks/some")
            self.assertEqual((answer.status, answer.json["code"]), (503, "unavail"))
            self.assertTrue(answer.json["retriable"])
            self.assertEqual(answer.headers["Retry-After"], "1")
            self.assertEqual(daemon.get("/v1/locks").status, 503)
            over = daemon.get("/v1/overview").json
            self.assertEqual((over["store"]["up"], over["attention"][0]["kind"]), (False, "store"))
            self.assertIn("dibs_backend_up 0\n", daemon.get("/metrics").text)
            wait_until(lambda: 'dibs_backend_op_errors_total{op="look",status="UNAVAIL"}' in daemon.get("/metrics").text, "looks that failed")

    def test_limits(self):
        daemon = self.start("--streams-max", "1", "--sessions-max", "2", "--session-leases", "1")
        stream = daemon.connect()
        self.addCleanup(stream.close)
        stream.request("GET", "/v1/events", headers={"Authorization": "Bearer " + daemon.tokens["read"]})
        self.assertEqual(stream.getresponse().status, 200)
        self.assertEqual(daemon.get("/v1/events").status, 503)
        made = [daemon.post("/v1/sessions", {"name": "one", "ttl_ms": 600000}) for _ in range(3)]
        self.assertEqual([answer.status for answer in made], [201, 201, 429])
        path = "/v1/sessions/" + made[0].json["session"] + "/leases/"
        statuses = [daemon.ask("PUT", path + name, {"name": name}).status for name in ("a", "b")]
        self.assertEqual(statuses, [201, 429])
        self.assertEqual(daemon.post("/v1/sessions", {"name": "two", "adopt": [
            {"id": name, "name": name, "token": "0" * 32 + ":1"} for name in ("a", "b")]}).status, 429)

    def test_ready_needs_store(self):
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            url = f"redis://127.0.0.1:{sock.getsockname()[1]}"
            daemon = self.start("--start-wait", "0s", "--store-timeout", "1s", "--ready-needs-store", "yes", url=url)
            answer = daemon.get("/readyz", role=None)
            self.assertEqual((answer.status, answer.text), (503, "store\n"))
            answer = daemon.get("/readyz", role="read", query={"verbose": ""})
            self.assertEqual((answer.status, answer.text.splitlines()[-1]), (503, "store"))
            self.assertEqual(daemon.get("/livez", role=None).status, 200)
        daemon = self.start("--ready-needs-store", "yes")
        wait_until(lambda: daemon.get("/readyz", role=None).status == 200, "the store to answer")

    def faulty(self, step, fault):
        """A daemon with a fault in the steps of one kind, and the environment of commands that have none."""
        folder = tempfile.mkdtemp(prefix="dibs-bulk-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        store = f"sqlite:{folder}/store.db"
        return self.start(url=f"fault+{store}?step={step}&{fault}"), {"DIBS_URL": store, "PATH": os.environ["PATH"], "HOME": folder}

    @staticmethod
    def load_three_jobs(env):
        with open(env["HOME"] + "/jobs.yaml", "w", encoding="utf-8") as file:
            file.write("jobs: {one: {run: [x]}, two: {run: [x]}, three: {run: [x]}}\n")
        subprocess.run([DIBS, "job", "load", file.name], env=env, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)

    def test_ready_with_its_jobs(self):
        """A job of the daemon's own files can be run as soon as it is ready, however long the store takes to load them."""
        folder = tempfile.mkdtemp(prefix="dibs-jobs-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with open(f"{folder}/jobs.yaml", "w", encoding="utf-8") as file:
            file.write("jobs: {one: {run: [echo, done]}}\n")
        options = ("--jobs", file.name)
        daemon = self.start(*options, url=f"fault+sqlite:{folder}/store.db?step=commit&delay_ms=1000")
        answer = daemon.get("/v1/jobs/one")
        self.assertEqual((answer.status, answer.text.count('"one"') > 0), (200, True), answer.text)
        # It does not wait for ever.
        daemon = self.start(*options, "--start-wait", "0s", url=f"fault+sqlite:{folder}/other.db?step=commit&fault=fail")
        self.assertIn("ready, but ", daemon.await_event("ready")["message"])

    def test_a_change_of_many_is_bounded(self):
        """A request ends after two seconds and says what is left; sent again, it goes on."""
        daemon, env = self.faulty("purge", "delay_ms=2100")
        subprocess.run([DIBS, "queue", "push", "mail", "--lines"], input="x\n" * 2001, text=True, env=env, check=True,
                       timeout=PATIENCE, stdout=subprocess.DEVNULL)
        answers = [daemon.post("/v1/queues/mail/purge", {"states": ["ready"], "reason": "old"}).json for _ in range(3)]
        self.assertEqual(answers, [{"purged": 1000, "left": 1001}, {"purged": 1000, "left": 1}, {"purged": 1, "left": 0}])
        daemon, env = self.faulty("commit", "delay_ms=2100")
        self.load_three_jobs(env)
        left = []
        for _ in range(3):
            answer = wait_until(lambda: (lambda got: got if got["jobs"] else None)(
                daemon.post("/v1/jobs/pause", {"match": "*"}).json), "a job that was paused")
            self.assertEqual(len(answer["jobs"]), 1)
            left.append(answer["left"])
            # The next request matches what the daemon has seen.
            wait_until(lambda: len(daemon.get("/v1/jobs", query={"status": "paused"}).json["items"]) == len(left), "it to be seen")
        self.assertEqual(left, [2, 1, 0])

    def test_a_redrive_whose_rest_is_not_counted(self):
        """An error would say that nothing changed."""
        daemon, env = self.faulty("stats", "fault=fail")
        subprocess.run([DIBS, "queue", "push", "mail", "--lines"], input="x\n" * 3, text=True, env=env, check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)
        session = daemon.post("/v1/sessions", {"ttl_ms": 600000}).json["session"]
        for item in daemon.post("/v1/queues/mail/reserve", {"session": session, "count": 3}).json["items"]:
            daemon.post("/v1/queues/mail/settle", {"session": session, "delivery": item["delivery"], "how": "dead"})
        dead = [item["id"] for item in daemon.get("/v1/queues/mail/messages", query={"state": "dead"}).json["items"]]
        answer = daemon.post("/v1/queues/mail/redrive", {"ids": dead[:2]})
        self.assertEqual((answer.status, answer.json), (200, {"redriven": 2, "left": None}), answer.text)

    def test_a_failure_after_the_first_stale_lease(self):
        daemon, env = self.faulty("revoke", "fault=fail&every=2")
        holders = [subprocess.Popen([DIBS, "run", name, "--ttl", span(9), "--", "sh", "-c", "echo held; exec cat"], env=env,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in ("a", "b")]
        for holder in holders:
            with holder:
                self.assertEqual(holder.stdout.readline(), b"held\n")
                holder.kill()

        def sweep(dry):
            answer = daemon.post("/v1/locks/break-stale", {"dry_run": dry})
            self.assertEqual(answer.status, 200, answer.text)
            if not dry and not answer.json["broken"]:
                raise NotInTime("a lease has ended by itself")
            return len(answer.json["broken"]), answer.json["complete"]

        wait_until(lambda: sweep(True) == (2, True), "two stale leases")
        self.assertEqual([sweep(False), sweep(False)], [(1, False), (1, True)])

    def test_a_failure_after_the_first_job(self):
        daemon, env = self.faulty("commit", "fault=fail&every=2")
        self.load_three_jobs(env)
        left = []
        for _ in range(3):
            wait_until(lambda: len(daemon.get("/v1/jobs", query={"status": "paused"}).json["items"]) == len(left), "it to be seen")
            answer = daemon.post("/v1/jobs/pause", {"match": "*"})
            self.assertEqual((answer.status, len(answer.json["jobs"])), (200, 1), answer.text)
            left.append(answer.json["left"])
        self.assertEqual(left, [2, 1, 0])

    def test_no_entry_no_change(self):
        """An admin changes nothing that the trail does not keep; what an operator did stays done, and is counted."""
        daemon = self.start()
        daemon.dibs("queue", "push", "mail", "item")
        with contextlib.closing(sqlite3.connect(daemon.url[len("sqlite:"):], timeout=PATIENCE)) as store:
            store.execute("CREATE TRIGGER no_trail BEFORE INSERT ON log WHEN NEW.topic LIKE '%dibs.trail' "
                          "BEGIN SELECT RAISE(ABORT, 'no trail'); END")
            store.commit()
            refused = daemon.post("/v1/queues/mail/purge", {"states": ["ready"], "reason": "old"})
            self.assertEqual((refused.status, refused.json["code"]), (503, "unavail"), refused.text)
            self.assertEqual(daemon.get("/v1/queues/mail").json["ready"], 1)
            self.assertEqual(daemon.post("/v1/queues/mail/pause").status, 204)
            self.assertTrue(daemon.get("/v1/queues/mail").json["paused"])
            self.assertIn("dibs_audit_failures_total 2\n", daemon.get("/metrics").text)
            self.assertEqual(daemon.await_event("audit_failed", 2)["action"], "queue-pause")
            store.execute("DROP TRIGGER no_trail")
            store.commit()
        purged = daemon.post("/v1/queues/mail/purge", {"states": ["ready"], "reason": "old"})
        self.assertEqual((purged.status, purged.json["purged"]), (200, 1), purged.text)
        self.assertEqual(daemon.post("/v1/queues/none/purge", {"states": ["ready"]}).status, 404)
        entries = daemon.get("/v1/audit").json["items"]
        self.assertEqual([(entry["action"], entry["name"], entry["reason"], entry["result"]) for entry in entries],
                         [("queue-purge-failed", "none", "NOTFOUND", "NOTFOUND"), ("queue-purge", "none", "", "begun"),
                          ("queue-purge", "mail", "old", "begun")])
        self.assertEqual({(entry["role"], entry["route"]) for entry in entries}, {("admin", "/v1/queues/{name}/purge")})

    def test_a_purge_that_fails_midway_has_its_number_in_the_trail(self):
        """A store that refuses the second piece."""
        daemon = self.start()
        subprocess.run([DIBS, "queue", "push", "mail", "--lines"], input="x\n" * 1500, text=True, check=True, timeout=PATIENCE,
                       env={**os.environ, "DIBS_URL": daemon.url}, stdout=subprocess.DEVNULL)
        with contextlib.closing(sqlite3.connect(daemon.url[len("sqlite:"):], timeout=PATIENCE)) as store:
            store.execute("CREATE TRIGGER full BEFORE DELETE ON item WHEN (SELECT count(*) FROM item) <= 500 "
                          "BEGIN SELECT RAISE(ABORT, 'planted'); END")
            store.commit()
        purged = daemon.post("/v1/queues/mail/purge", {"states": ["ready"], "reason": "old"})
        self.assertEqual((purged.status, purged.json["code"], purged.json["purged"]), (500, "internal", 1000), purged.text)
        last, first = daemon.get("/v1/audit").json["items"]
        self.assertEqual([(entry["action"], entry["name"]) for entry in (first, last)],
                         [("queue-purge", "mail"), ("queue-purge-partly", "mail")])
        self.assertRegex(last["reason"], "^[A-Z]+ after 1000 items$")

    def test_a_change_in_part_is_not_unavail(self):
        """The store is away for the second piece of a purge, and for the second letter of a redrive."""
        daemon, env = self.faulty("purge", "fault=fail&every=2")
        subprocess.run([DIBS, "queue", "push", "mail", "--lines"], input="x\n" * 1500, text=True, check=True, timeout=PATIENCE,
                       env=env, stdout=subprocess.DEVNULL)
        purged = daemon.post("/v1/queues/mail/purge", {"states": ["ready"]})
        self.assertEqual((purged.status, purged.json["code"], purged.json["purged"]), (504, "unknown", 1000), purged.text)
        daemon, _ = self.faulty("redrive", "fault=fail&every=2")
        session = daemon.post("/v1/sessions", {}).json["session"]
        ids = [daemon.post("/v1/queues/mail", {"data": "x"}).json["id"] for _ in range(2)]
        for item in daemon.post("/v1/queues/mail/reserve", {"session": session, "count": 2}).json["items"]:
            settled = daemon.post("/v1/queues/mail/settle", {"session": session, "delivery": item["delivery"], "how": "dead"})
            self.assertEqual(settled.status, 204, settled.text)
        redriven = daemon.post("/v1/queues/mail/redrive", {"ids": ids})
        self.assertEqual((redriven.status, redriven.json["code"], redriven.json["redriven"]), (504, "unknown", 1), redriven.text)
        left = daemon.post("/v1/queues/mail/redrive", {"ids": ids[1:]})
        self.assertEqual((left.status, left.json["redriven"]), (200, 1), left.text)

    def test_few_files(self):
        daemon = self.start("--connections-max", "500", wrap=["sh", "-c", 'ulimit -n 300; exec "$@"', "sh"])
        self.assertEqual(daemon.await_event("few_files")["limit"], 300)
        daemon = self.start("--connections-max", "100", wrap=["sh", "-c", 'ulimit -S -n 100; exec "$@"', "sh"])
        self.assertNotIn("few_files", daemon.log_text())
        with open(f"/proc/{daemon.process.pid}/limits", encoding="utf-8") as file:
            self.assertRegex(file.read(), r"Max open files\s+228 ")

    def test_service_manager(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            name = f"dibs-test-{os.getpid()}"
            manager.bind("\0" + name)
            manager.settimeout(PATIENCE)
            daemon = Daemon(env={"NOTIFY_SOCKET": "@" + name})
            self.assertIn(b"READY=1", manager.recv(4096))
            daemon.process.send_signal(signal.SIGHUP)
            self.assertRegex(manager.recv(4096), rb"RELOADING=1\nMONOTONIC_USEC=\d+")
            self.assertEqual(manager.recv(4096), b"READY=1")
            self.assertEqual(daemon.end(), 0)
            self.assertEqual(manager.recv(4096), b"STOPPING=1")

    def test_a_reload_before_it_is_ready(self):
        """The end of a reload would say that it is."""
        daemon, name = self.start(), f"dibs-early-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket() as nobody:
            manager.bind("\0" + name)
            nobody.bind(("127.0.0.1", 0))
            env = {**daemon.env, "NOTIFY_SOCKET": "@" + name, "DIBS_URL": f"redis://127.0.0.1:{nobody.getsockname()[1]}"}
            log = daemon.folder + "/early.log"
            with open(log, "wb") as out:
                early = subprocess.Popen([DIBS, "serve", "--listen", "127.0.0.1:0", "--tokens", daemon.file, "--start-wait", "10m"],
                                         stderr=out, env=env)
            self.addCleanup(early.wait)
            self.addCleanup(early.kill)

            def said(event):
                with open(log, encoding="utf-8") as file:
                    return file.read().count("event=" + event)

            wait_until(lambda: said("listening"), "the start")
            for count in (1, 2):
                early.send_signal(signal.SIGHUP)
                wait_until(lambda count=count: said("reloaded") == count, "the reload")
            with self.assertRaises(BlockingIOError):
                manager.recv(4096, socket.MSG_DONTWAIT)

    def test_log_level(self):
        """A trace on demand: of what happens from then on, until it is set back or the time is over."""
        daemon = self.start()

        def traced(name):
            self.assertEqual(daemon.post("/v1/leases/" + name, {"ttl_ms": 60000}).status, 201)
            # The line of the request comes after those of the acquire.
            wait_until(lambda: sum(line.get("route") == "/v1/leases/{name}" for line in daemon.log()) == traced.count, "the line")
            traced.count += 1
            return [line["event"] for line in daemon.log() if line["level"] == "trace" and name in line["message"]]

        traced.count = 1
        self.assertEqual(traced("lease-a"), [])
        answer = daemon.post("/v1/log-level", {"level": "trace", "reason": "it is slow"})
        self.assertEqual((answer.status, answer.json), (200, {"level": "trace"}))
        self.assertIn("granted", traced("lease-b"))
        entry = daemon.get("/v1/audit", query={"action": "log-level"}).json["items"][0]
        self.assertEqual((entry["name"], entry["who"], entry["reason"]), ("trace", "admin", "it is slow"))
        self.assertEqual(daemon.post("/v1/log-level", {"level": "usual"}).json, {"level": "warn"})
        self.assertEqual(traced("lease-c"), [])
        self.assertEqual(daemon.post("/v1/log-level", {"level": "debug", "for_ms": 3600000}).json["level"], "debug")
        self.assertLessEqual(daemon.get("/v1/log-level").json["left_ms"], 3600000)
        # The first event behind the end ends it.
        daemon.post("/v1/log-level", {"level": "trace", "for_ms": 1})
        wait_until(lambda: daemon.get("/v1/log-level").json == {"level": "warn"}, "the end of the trace")
        self.assertEqual(traced("lease-d"), [])
        for body in ({}, {"level": "loud"}, {"level": "trace", "for_ms": 0}, {"level": "trace", "until": 1}):
            self.assertEqual(daemon.post("/v1/log-level", body).status, 400, body)

    def test_watchdog(self):
        """The loop, the look and the keeper answer: the daemon says so in time."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            name = f"dibs-watchdog-{os.getpid()}"
            manager.bind("\0" + name)
            manager.settimeout(PATIENCE)
            daemon = self.start(env={"NOTIFY_SOCKET": "@" + name, "WATCHDOG_USEC": "100000"})
            # A lease that is waited for has the keeper run.
            self.assertEqual(daemon.post("/v1/leases/some", {"ttl_ms": 60000}).status, 201)
            heard = [manager.recv(4096) for _ in range(6)]
            self.assertGreaterEqual(heard.count(b"WATCHDOG=1"), 4, heard)
            self.assertEqual(daemon.get("/livez", role=None).status, 200)
            self.assertNotIn("stuck", daemon.log_text())

    def check(self, daemon, *args):
        result = subprocess.run([DIBS, "serve", "--check", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=daemon.env, check=False, timeout=PATIENCE)
        return result.returncode, result.stderr

    def test_check(self):
        daemon = self.start()
        self.assertEqual(self.check(daemon, "--tokens", daemon.file), (0, ""))
        # The first start makes the default file.
        self.assertEqual(self.check(daemon), (0, ""))
        for args, why in [
            (["--listen", "0.0.0.0:1"], "others could read the tokens"),
            (["--listen", "0.0.0.0:1", "--insecure-plaintext", "behind-proxy"], "without a token file"),
            (["--listen", "0.0.0.0:1", "--insecure-plaintext", "behind-proxy", "--tokens", daemon.file], "--trusted-proxies"),
            (["--listen", "127.0.0.1:1,[::]:1"], "others could read the tokens"),
            (["--listen", "unix:serve.sock"], "the whole path"),
            (["--listen", ","], "1 to 15"),
            (["--metrics-listen", "0.0.0.0:1"], "--metrics-open yes"),
            (["--trusted-proxies", "proxy.example"], "is no network"),
            (["--tls-key", daemon.file], "without --tls-cert"),
            (["--tls-cert", daemon.file], "cannot use the certificate"),
            (["--tls-cert", daemon.folder + "/none"], "No such file"),
            (["--listen", "nowhere"], "not an address and a port"),
            (["--base-path", "dibs"], "is not valid"),
            (["--tokens", daemon.folder + "/none"], "dibs access add"),
            (["--tokens", "/dev/null"], "chmod 600"),
        ]:
            with self.subTest(args):
                code, text = self.check(daemon, *args)
                self.assertEqual(code, 78, text)
                self.assertIn(why, text)
        self.assertEqual(self.check(daemon, "--listen", "0.0.0.0:1", "--insecure-plaintext", "behind-proxy", "--tokens",
                                    daemon.file, "--trusted-proxies", "10.0.0.7"), (0, ""))
        os.chmod(daemon.file, 0o640)
        code, text = self.check(daemon, "--tokens", daemon.file)
        self.assertEqual((code, "chmod 600" in text), (78, True), text)

    def test_a_token_file_that_is_missing(self):
        daemon = self.start()
        result = daemon.dibs("serve", "--listen", "127.0.0.1:0", "--tokens", daemon.folder + "/none", check=False)
        self.assertEqual((result.returncode, "dibs access add" in result.stderr), (78, True), result)

    def test_tokens_that_cannot_be(self):
        daemon = self.start()
        for args, why in [(["John Doe"], "the name 'John Doe' is not valid"),
                          (["a read sha256:00\nb"], "is not valid"),
                          (["x", "--expires", "tomorrow"], "--expires 'tomorrow' is not a moment"),
                          (["x", "--expires", "2020-01-01T00:00:00Z"], "has passed")]:
            result = daemon.dibs("access", "add", *args, "--tokens", daemon.folder + "/others", check=False)
            self.assertEqual((result.returncode, why in result.stderr), (64, True), result)
        self.assertFalse(os.path.exists(daemon.folder + "/others"))

    def test_configuration_file(self):
        daemon = self.start()
        path = daemon.folder + "/serve.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("prefix: 'x:'\nserve:\n  tokens: " + daemon.file + "\n  listen: '127.0.0.1:9'\n  look_every: 2s\n")
        self.assertEqual(self.check(daemon, "--config", path), (0, ""))
        values = json.loads(daemon.dibs("config", "--json", "--config", path).stdout)
        self.assertIn("127.0.0.1:9", json.dumps(values))
        for text, why in [("serve:\n  lisen: a\n", "there is no key 'lisen'; did you mean 'listen'?"),
                          ("serve: 7\n", "'serve' has settings of its own below it"),
                          ("serve.listen: a\n", "write a line 'serve:' and, indented below it, 'listen: ...'"),
                          ("listen: a\n", "there is no key 'listen'")]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            code, said = self.check(daemon, "--config", path)
            self.assertEqual((code, why in said), (78, True), said)

    def test_a_drain_does_not_wait_for_a_look(self):
        """The store hangs for longer than anybody waits: requests have the time that they are promised, from the signal on."""
        folder = tempfile.mkdtemp(prefix="dibs-hung-")
        self.addCleanup(shutil.rmtree, folder)
        daemon = self.start("--start-wait", "0s", "--store-timeout", "10m",
                            url=f"fault+sqlite:{folder}/store.db?step=list&delay_ms=600000")
        daemon.process.terminate()

        def refused():
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", daemon.port)) != 0

        wait_until(refused, "the end of new connections")
        daemon.process.kill()
        daemon.process.wait()

    def test_first_start(self):
        daemon = self.start()
        log = daemon.folder + "/first.log"
        with open(log, "wb") as out:
            first = subprocess.Popen([DIBS, "serve", "--listen", "127.0.0.1:0"], stderr=out, env=daemon.env)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)

        def said():
            with open(log, encoding="utf-8") as file:
                return file.read()

        wait_until(lambda: "event=ready" in said(), "the first start")
        path = daemon.folder + "/dibs/serve.token"
        with open(path, encoding="utf-8") as file:
            token = file.read().strip()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertNotIn(token, said())
        port = int(said().split("port=")[1].split()[0])
        daemon.port, daemon.tokens["first"] = port, token
        self.assertEqual(daemon.get("/v1/whoami", role="first").json["role"], "admin")

    def test_first_start_on_a_terminal(self):
        """It shows the address that signs in, once. The log, which may be kept, has no token."""
        folder = tempfile.mkdtemp(prefix="dibs-first-")
        self.addCleanup(shutil.rmtree, folder)
        words = [DIBS, "serve", "--listen", "127.0.0.1:0", "--base-path", "/dibs", "--look-every", "100ms"]
        env = {"HOME": folder, "XDG_STATE_HOME": folder, "DIBS_URL": f"sqlite:{folder}/store.db"}
        starts = []
        for _ in range(2):
            terminal, side = pty.openpty()
            self.addCleanup(os.close, terminal)
            process = subprocess.Popen(words, stderr=side, env=env)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            os.close(side)
            shown = ""
            while "event=ready" not in shown:
                self.assertTrue(select.select([terminal], [], [], PATIENCE)[0], shown)
                shown += os.read(terminal, 4096).decode()
            process.terminate()
            process.wait(PATIENCE)
            starts.append(shown)
        with open(folder + "/dibs/serve.token", encoding="utf-8") as file:
            token = file.read().strip()
        port = starts[0].split("port=")[1].split()[0]
        self.assertEqual([line for line in starts[0].splitlines() if token in line],
                         [f"dibs: the dashboard, signed in as admin: http://127.0.0.1:{port}/dibs/#token={token}"])
        self.assertNotIn("#token", starts[1])


if __name__ == "__main__":
    main()
