"""bench_load.py - `dibs serve` with many clients at once (`make load`): streams, sessions, a crowd of bad clients, a crash.

  bench_load.py BUILD [SECONDS [PART]]

Each row is what was asked of the daemon, what was seen, and what was aimed at. Leases that were lost end the run with an
error; the rest is for people to read, since it rests on the speed of the machine.
"""
# SPDX-License-Identifier: MIT
import contextlib
import http.client
import json
import os
import re
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from serve_ground import Daemon, add_tokens, daemon_on, redis, wait_until

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 30
PART = sys.argv[3] if len(sys.argv) > 3 else ""
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

STREAMS, CHANGES_S = 1000, 50
SESSIONS, LEASES, OF_A_TOKEN = 4096, 4, 256
MOVED = 1000
SLOW, ADDRESSES = 5000, 80
CONNECTIONS = ("--connections-max", "8192", "--streams-max", "4096")


def row(what, seen, aim):
    print(f"{what:44} {seen:44} {aim}", flush=True)


def quantile(values, part):
    values = sorted(values) or [float("inf")]
    return values[min(len(values) - 1, int(len(values) * part))]


class Usage:
    """Processor time and memory of a process, from here on."""

    def __init__(self, pid):
        self.pid, self.began = pid, time.monotonic()
        self.cpu, self.resident = self.look()

    def look(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return (int(words[11]) + int(words[12])) / TICK, int(file.read().split()[1]) * PAGE

    def so_far(self):
        """Parts of one core, and MiB more than at first."""
        cpu, resident = self.look()
        return (cpu - self.cpu) / (time.monotonic() - self.began), (resident - self.resident) / 2**20


class Caller:
    """Requests on one connection, with any token."""

    def __init__(self, daemon):
        self.link = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)

    def __call__(self, token, method, path, body=None):
        text = None if body is None else json.dumps(body)
        headers = {"Authorization": "Bearer " + token}
        if text is not None:
            headers["Content-Type"] = "application/json"
        try:
            self.link.request(method, path, text, headers)
            answer = self.link.getresponse()
        except (ConnectionError, http.client.HTTPException):  # it was idle, and had to make room
            self.link.close()
            self.link.request(method, path, text, headers)
            answer = self.link.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said else {}

    def must(self, *request):
        status, said = self(*request)
        if status >= 300:
            sys.exit(f"bench_load: {request[1:3]}: {status} {said}")
        return said


class Session:
    def __init__(self, call, token, number, leases, ttl_ms=15000):
        self.token, self.number, self.held = token, number, {}
        self.id = call.must(token, "POST", "/v1/sessions", {"name": f"s{number}", "ttl_ms": ttl_ms})["session"]
        for i in range(leases):
            self.take(call, f"s{number}-{i}")

    def path(self, rest=""):
        return f"/v1/sessions/{self.id}{rest}"

    def take(self, call, name):
        self.held[name] = call.must(self.token, "PUT", self.path("/leases/" + name), {"name": name})["token"]

    def drop(self, call, name):
        call.must(self.token, "DELETE", self.path("/leases/" + name))
        del self.held[name]

    def beat(self, call):
        """How many of its leases are lost."""
        said = call.must(self.token, "POST", self.path("/beat"), {})
        return sum(said["leases"].get(name, {}).get("state") != "held" for name in self.held)

    def adopt(self, call):
        """The same for a session at another daemon, which takes its leases over."""
        said = call.must(self.token, "POST", "/v1/sessions", {
            "name": f"s{self.number}", "adopt": [{"id": name, "name": name, "token": token} for name, token in self.held.items()]})
        self.id = said["session"]
        return sum(said["leases"].get(name, {}).get("state") != "held" for name in self.held)


def open_stream(daemon, query, number=0, small=False):
    address = f"127.0.{number // 200 + 1}.{number % 200 + 1}"
    sock = socket.create_connection(("127.0.0.1", daemon.port), 60, source_address=(address, 0))
    if small:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.sendall(f"GET /v1/events?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {daemon.tokens['read']}\r\n\r\n".encode())
    return sock


class Readers:
    """Streams, read by one thread: when each of them had each grant."""

    GRANT = re.compile(rb'"kind":"acquired","name":"load-(\d+)"')

    def __init__(self, socks):
        self.picker = selectors.DefaultSelector()
        self.seen, self.over = [], False
        for sock in socks:
            sock.setblocking(False)
            self.picker.register(sock, selectors.EVENT_READ, [b""])
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over:
            for key, _ in self.picker.select(0.2):
                part = key.fileobj.recv(1 << 20)
                if not part:
                    self.picker.unregister(key.fileobj)
                text = key.data[0] + part
                now, cut = time.monotonic(), text.rfind(b"\n") + 1
                key.data[0] = text[cut:]
                self.seen += [(int(number), now) for number in self.GRANT.findall(text, 0, cut)]

    def end(self):
        self.over = True
        self.thread.join()
        return self.seen


def measure_streams(url):
    with daemon_on(url, *CONNECTIONS) as daemon, contextlib.ExitStack() as stack:
        call = Caller(daemon)
        sessions = [Session(call, daemon.tokens["operate"], i, 0, 600000) for i in range(20)]
        before = Usage(daemon.process.pid)
        socks = [stack.enter_context(open_stream(daemon, "topics=feed&prefix=load-", i % ADDRESSES)) for i in range(STREAMS)]
        readers = Readers(socks)
        usage, told = Usage(daemon.process.pid), []
        while len(told) < SECONDS * CHANGES_S / 2:
            number = len(told)
            sessions[number % 20].take(call, f"load-{number}")
            told.append(time.monotonic())
            sessions[number % 20].drop(call, f"load-{number}")
            time.sleep(max(0, usage.began + (number + 1) * 2 / CHANGES_S - time.monotonic()))
        cpu, _ = usage.so_far()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: len(readers.seen) >= STREAMS * len(told), "the events", 10)
        late = [(at - told[number]) * 1000 for number, at in readers.end()]
        row(f"{STREAMS:,} streams, {CHANGES_S} changes a second", f"p50 {quantile(late, 0.5):.0f} ms, p99 {quantile(late, 0.99):.0f} ms, "
            f"{100 * len(late) / STREAMS / len(told):.1f} % told", "p99 <= 400 ms")
        row("", f"{100 * cpu:.0f} % of a core, {before.so_far()[1]:.0f} MiB more", "<= 25 %, <= 30 MiB")


def measure_sessions(url):
    with daemon_on(url) as daemon:
        call = Caller(daemon)
        tokens = add_tokens(daemon, SESSIONS // OF_A_TOKEN)
        # The first must live until the last is made.
        sessions = [Session(call, tokens[i % len(tokens)], i, LEASES, 120000) for i in range(SESSIONS)]
        lost = sum(session.beat(call) for session in sessions)
        usage, rounds = Usage(daemon.process.pid), 0
        while rounds * 5 < SECONDS:
            for i, session in enumerate(sessions):
                lost += session.beat(call)
                time.sleep(max(0, usage.began + rounds * 5 + 5 * (i + 1) / SESSIONS - time.monotonic()))
            rounds += 1
        cpu, more = usage.so_far()
        row(f"{SESSIONS:,} sessions of {LEASES} leases, a beat each 5 s", f"{100 * cpu:.0f} % of a core, {more:.0f} MiB more, {lost} lost",
            "<= 30 %, 0 lost")
        return lost


def slack_of(daemon):
    """Renewals by the part of the ttl that was left, up to each bound."""
    text = daemon.get("/metrics", role="read").text
    return {float(bound): float(count) for bound, count in re.findall(r'dibs_lock_renewal_slack_ratio_bucket{le="([\d.]+)"} (\S+)', text)}


class Renewer(threading.Thread):
    """A client that renews its lease over the API ten times a second, and how long each took."""

    def __init__(self, daemon):
        super().__init__()
        self.call, self.token, self.took_ms, self.over = Caller(daemon), daemon.tokens["operate"], [], threading.Event()
        self.lease = self.call.must(self.token, "POST", "/v1/leases/renewed", {"ttl_ms": 30000})["token"]

    def run(self):
        while not self.over.wait(0.1):
            began = time.monotonic()
            self.call.must(self.token, "POST", "/v1/leases/renewed/renew", {"token": self.lease})
            self.took_ms.append((time.monotonic() - began) * 1000)

    def end(self):
        self.over.set()
        self.join()
        return quantile(self.took_ms, 0.99)


def measure_crowd(url):
    """Renewals while all cores are busy with requests, and others are slow or do not read."""
    with daemon_on(url, *CONNECTIONS) as daemon, contextlib.ExitStack() as stack:
        call = Caller(daemon)
        sessions = [Session(call, daemon.tokens["operate"], i, 16, 600000) for i in range(64)]
        for i in range(SLOW):
            sock = socket.create_connection(("127.0.0.1", daemon.port), 60, source_address=(f"127.0.1.{i % ADDRESSES + 1}", 0))
            stack.callback(sock.close)
            with contextlib.suppress(OSError):
                sock.sendall(b"GET /livez HTTP/1.1\r\n")
        for i in range(STREAMS):
            stack.enter_context(open_stream(daemon, "", 200 + i % ADDRESSES, small=True))
        before, renewer = slack_of(daemon), Renewer(daemon)
        renewer.start()
        subprocess.run(["wrk", "-c", "64", "-t", str(os.cpu_count()), "-d", f"{SECONDS:.0f}s", f"http://127.0.0.1:{daemon.port}/livez"],
                       check=True, capture_output=True)
        late, after = renewer.end(), slack_of(daemon)
        lost = sum(session.beat(call) for session in sessions)
        less = [after[part] - before[part] for part in (0.5, 0.6)]
        row(f"1,024 leases, wrk, {SLOW:,} slow, {STREAMS:,} deaf", f"a renewal by the API: p99 {late:.1f} ms", "p99 <= 50 ms")
        row("", f"of the daemon's, {less[0]:.0f} with < 1/2 of the ttl left, {less[1]:.0f} with < 0.6; {lost} lost", "0, 0; 0 lost")
        return lost


def measure_crash(url):
    with contextlib.ExitStack() as stack:
        daemon = Daemon("--token-rate", "0", "--access-log", "errors", url=url)
        stack.callback(daemon.end)
        call = Caller(daemon)
        tokens = add_tokens(daemon, MOVED // 250)
        sessions = [Session(call, tokens[i % len(tokens)], i, LEASES, 600000) for i in range(MOVED)]
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        began = time.monotonic()
        heir = stack.enter_context(daemon_on(url))
        served = time.monotonic() - began
        shutil.copy(daemon.file, heir.file)
        heir.process.send_signal(signal.SIGHUP)
        heir.await_event("reloaded")
        call, began = Caller(heir), time.monotonic()
        lost = sum(session.adopt(call) for session in sessions)
        row(f"kill -9 with {MOVED:,} sessions of {LEASES} leases", f"ready after {served * 1000:.0f} ms, all adopted after "
            f"{time.monotonic() - began:.1f} s, {lost} lost", "<= 300 ms, <= 2 s, 0 lost")
        return lost


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parts = {"streams": measure_streams, "sessions": measure_sessions, "crowd": measure_crowd, "crash": measure_crash}
    lost = 0
    for part, measure in parts.items():
        if PART in ("", part):
            with redis() as url:
                lost += measure(url) or 0
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
