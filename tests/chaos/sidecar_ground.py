#!/usr/bin/env python3
"""The ground of sessions: clients hold locks through daemons that are killed, stopped and drained, and die themselves.

    sidecar_ground [--on sqlite|redis] [--faults A,B] [--seconds N] [--seed N] [--clients N] FOLDER

Faults are kill, stop and drain of a daemon, and client-kill and client-stop.

Each client writes down when it begins to believe in a lock, until when it may, and when it ends that; all on the boot
clock of the machine. Nobody breaks a lock here. Violations are: two clients that believed in one lock at the same time;
a fence that is not higher than that of the holder before; and a client that is told of a loss before the time that it was
told to have. On a slow machine (pace.h) all takes longer. The last line has the counts, for chaos.sh. After a
violation FOLDER keeps the history.
"""
# SPDX-License-Identifier: MIT
import argparse
import glob
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from pace import MISSED, PACE  # noqa: E402

DIBS = os.environ.get("DIBS_BIN") or os.path.join("build", "dibs")
NAMES = ("red", "green", "blue", "cyan", "pink", "grey")
SESSION_MS, LEASE_MS = round(2000 * PACE), round(3000 * PACE)
BEAT_S = SESSION_MS / 3000
WAIT_S = 20 * PACE  # for a daemon or a server to answer


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


# ---- a client


class Client:
    """One lock at a time, by the rule of docs/serve.md: valid_ms counts from before the request was sent."""

    def __init__(self, folder, number, seed, ports, token):
        self.random = random.Random(seed)
        self.ports, self.token = ports, token
        self.out = os.open(f"{folder}/client-{number}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.session = self.name = self.id = self.lease = None
        self.fence, self.until = 0, 0

    def note(self, what, *words):
        """One line is one write, so that a killed client leaves whole lines."""
        os.write(self.out, (" ".join(map(str, (what, self.name, self.fence, *words))) + "\n").encode())

    def ask(self, method, path, body):
        head = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        if path == "/v1/sessions":
            head["Idempotency-Key"] = f"{self.id}-{self.fence}"
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=BEAT_S)
        t0 = now()
        try:
            connection.request(method, path, json.dumps(body), head)
            got = connection.getresponse()
            return t0, got.status, json.loads(got.read() or b"{}")
        except (OSError, ValueError, http.client.HTTPException):
            return t0, 0, {}
        finally:
            connection.close()

    def learn(self, t0, state):
        """False: the lease is over."""
        if state["state"] in ("held", "suspect"):
            until = t0 + state["valid_ms"] / 1000
            begins = not self.fence
            self.fence, self.lease = state["fence"], state.get("token", self.lease)
            if until > self.until:
                self.until = until
                self.note("begin" if begins else "until", f"{now():.6f}", f"{until:.6f}")
        if state["state"] == "lost":
            self.note("lost", f"{now():.6f}", f"{self.until:.6f}", state.get("why", "-"))
            return False
        if state["state"] == "freed":
            self.session = None
        return True

    def lose_daemon(self):
        self.session = None
        self.ports.append(self.ports.pop(0))

    def beat(self):
        """Keeps the session; without one, makes it, and takes over the lease. False: the lease is over."""
        if self.session:
            t0, status, got = self.ask("POST", f"/v1/sessions/{self.session}/beat", {})
        else:
            adopt = [{"id": self.id, "name": self.name, "ttl_ms": LEASE_MS, "token": self.lease}] if self.lease else []
            t0, status, got = self.ask("POST", "/v1/sessions", {"name": "ground", "ttl_ms": SESSION_MS, "adopt": adopt})
            if adopt and status == 201:
                self.note("adopted", f"{now():.6f}", got["leases"].get(self.id, {}).get("state"))
        if status not in (200, 201):
            self.lose_daemon()
            return True
        self.session = got.get("session", self.session)
        return self.learn(t0, got["leases"][self.id]) if self.id in got["leases"] else True

    def acquire(self):
        self.name, self.id = self.random.choice(NAMES), uuid.uuid4().hex
        self.fence, self.until, self.lease = 0, 0, None
        while not self.fence:
            if not self.session:
                self.beat()
            if self.session:
                t0, status, got = self.ask("PUT", f"/v1/sessions/{self.session}/leases/{self.id}?wait_ms={int(BEAT_S * 500)}",
                                           {"name": self.name, "ttl_ms": LEASE_MS, "wait_ms": 600000})
                if status == 201:
                    self.learn(t0, got)
                elif status == 202:
                    self.beat()
                else:
                    self.lose_daemon()
            if not self.session:
                time.sleep(0.05)

    def hold(self):
        """Beats while it works; belief ends by the own clock, whatever a request waits for."""
        end = now() + self.random.choice((0.02, 0.1, 0.5, 3, 8))
        due = now() + BEAT_S
        while now() < min(end, self.until):
            if now() >= due or not self.session:
                if not self.beat():
                    return
                due = now() + BEAT_S
            time.sleep(0.01)
        # Belief ends before the request is sent.
        self.note("end", f"{min(now(), self.until):.6f}")
        self.until = 0
        if self.session:
            self.ask("DELETE", f"/v1/sessions/{self.session}/leases/{self.id}", {})
            if self.random.random() < 0.3:
                self.ask("DELETE", f"/v1/sessions/{self.session}", {})
                self.session = None

    def run(self):
        while True:
            self.acquire()
            self.hold()


# ---- the ground


class Ground:
    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.stop = threading.Event()
        self.faults = 0
        self.deaths = {}  # pid of a client: when it was dead for sure
        self.env = {**os.environ, "HOME": args.folder, "XDG_STATE_HOME": args.folder}
        self.server = None
        self.env["DIBS_URL"] = self.start_store()
        self.tokens = f"{args.folder}/tokens"
        self.token = subprocess.run([DIBS, "access", "add", "ground", "--role", "operate", "--tokens", self.tokens], check=True,
                                    env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60).stdout.strip()
        self.ports = [free_port() for _ in range(2)]
        self.daemons = [self.start_daemon(i) for i in range(2)]
        for port in self.ports:
            await_port(port)
        self.clients = [self.start_client(i) for i in range(args.clients)]

    def start_store(self):
        if self.args.on == "sqlite":
            return f"sqlite:{self.args.folder}/store.db"
        port = free_port()
        self.server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                                        self.args.folder], stdout=subprocess.DEVNULL)
        await_port(port)
        return f"redis://127.0.0.1:{port}"

    def start_daemon(self, i):
        with open(f"{self.args.folder}/daemon-{i}.log", "ab") as log:
            return subprocess.Popen([DIBS, "serve", "--listen", f"127.0.0.1:{self.ports[i]}", "--tokens", self.tokens,
                                     "--access-log", "none", "--token-rate", "0"], env=self.env, stdout=log, stderr=log)

    def start_client(self, number):
        return subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "--client", str(number), "--seed",
                                 str(self.random.randrange(1 << 30)), "--ports", ",".join(map(str, self.ports)), self.args.folder],
                                env={**self.env, "DIBS_SERVE_TOKEN": self.token})

    def hurt_daemon(self, lot, how):
        i = lot.randrange(2)
        daemon = self.daemons[i]
        if how == "stop":
            daemon.send_signal(signal.SIGSTOP)
            self.stop.wait(lot.choice((0.05, 0.2, 1, 3)))
            daemon.send_signal(signal.SIGCONT)
            return
        daemon.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        if how == "drain" and lot.random() < 0.5:
            self.stop.wait(0.05)
            daemon.send_signal(signal.SIGKILL)
        daemon.wait(WAIT_S)
        self.stop.wait(lot.choice((0, 0, 0.3, 1)))
        self.daemons[i] = self.start_daemon(i)

    def hurt_client(self, lot, how):
        i = lot.randrange(len(self.clients))
        client = self.clients[i]
        client.send_signal(signal.SIGSTOP if how == "client-stop" else signal.SIGKILL)
        if how == "client-stop":
            self.stop.wait(lot.choice((0.3, 1, 3)))
            client.send_signal(signal.SIGCONT)
            return
        client.wait()
        self.deaths[client.pid] = now()
        self.clients[i] = self.start_client(i)

    def hurt(self, lot, hurt, hows, pause, end):
        """One thread for daemons and one for clients: their faults come together too."""
        while now() < end:
            self.stop.wait(lot.uniform(*pause) * PACE)
            self.faults += 1
            hurt(lot, lot.choice(hows))

    def chosen(self, *faults):
        return [fault for fault in faults if not self.args.faults or fault in self.args.faults.split(",")]

    def run(self):
        end = now() + self.args.seconds * PACE
        threads = [threading.Thread(target=self.hurt, args=(random.Random(f"{self.args.seed} {hows}"), hurt, hows, pause, end))
                   for hurt, hows, pause in ((self.hurt_daemon, self.chosen("kill", "kill", "kill", "stop", "drain"), (0.2, 2)),
                                             (self.hurt_client, self.chosen("client-stop", "client-kill"), (0.5, 4))) if hows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.stop.wait(1)

    def end(self):
        for client in self.clients:
            client.kill()
            client.wait()
            self.deaths[client.pid] = now()
        for process in (*self.daemons, *([self.server] if self.server else [])):
            process.kill()
            process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port):
    end = now() + WAIT_S
    while now() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


# ---- the check


class Check:
    """Reads what the clients wrote. A belief is (begin, end, first fence, last fence, client)."""

    def __init__(self, deaths):
        self.deaths = deaths
        self.beliefs = {name: [] for name in NAMES}
        self.violations = []
        self.counts = {"adopted": 0, "operations": 0, "lost": 0}

    def read(self, path):
        open_one = None  # [begin, until, first, last]
        name = None
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file if line.endswith("\n")]
        for what, own, fence, *rest in lines:
            self.counts["operations"] += 1
            name = own
            if what == "begin":
                open_one = [float(rest[0]), float(rest[1]), int(fence), int(fence)]
            elif what == "until":
                open_one[1], open_one[3] = max(open_one[1], float(rest[1])), int(fence)
            elif what == "adopted":
                self.counts["adopted"] += 1
            elif what == "lost":
                self.note_loss(path, own, fence, rest)
                open_one = self.close(path, own, open_one, float(rest[0]))
            elif what == "end":
                open_one = self.close(path, own, open_one, float(rest[0]))
        pid = int(path.rsplit("-", 1)[1])
        self.close(path, name, open_one, self.deaths.get(pid, now()))

    def note_loss(self, path, name, fence, rest):
        self.counts["lost"] += 1
        if float(rest[0]) < float(rest[1]):
            self.violations.append(f"{path}: {name} with fence {fence} was lost at {rest[0]}, before {rest[1]}: {rest[2]}")

    def close(self, path, name, belief, at):
        """An answer that came after its own time, as to a client that was stopped, was never believed."""
        if belief and belief[0] < belief[1]:
            self.beliefs[name].append((belief[0], min(belief[1], at), belief[2], belief[3], path))

    def judge(self):
        for name, beliefs in self.beliefs.items():
            beliefs.sort()
            latest = None
            for belief in beliefs:
                if latest and belief[0] < latest[1]:
                    self.violations.append(f"{name}: {belief} while {latest}")
                if latest and belief[2] <= latest[3]:
                    self.violations.append(f"{name}: the fence of {belief} is not above that of {latest}")
                latest = belief if not latest or belief[1] > latest[1] else latest
        return self.violations


def report(ground):
    check = Check(ground.deaths)
    for path in sorted(glob.glob(f"{ground.args.folder}/client-*")):
        check.read(path)
    violations = check.judge()
    for text in violations[:20]:
        print("violation:", text)
    holds = sum(map(len, check.beliefs.values()))
    print(f"taken over {check.counts['adopted']}, losses told {check.counts['lost']}")
    if not holds:
        print("no client got a lock")
    print(f"operations {check.counts['operations']} holds {holds} faults {ground.faults} violations {len(violations)} "
          "not promised 0", flush=True)
    return 1 if violations else 0 if holds else MISSED


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--on", choices=("sqlite", "redis"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--faults")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("folder", type=os.path.abspath)
    args = parser.parse_args()
    if args.client is not None:
        ports = [int(port) for port in args.ports.split(",")]
        random.Random(args.seed).shuffle(ports)
        Client(args.folder, args.client, args.seed, ports, os.environ["DIBS_SERVE_TOKEN"]).run()
    ground = Ground(args)
    try:
        ground.run()
    finally:
        ground.end()
    return report(ground)


if __name__ == "__main__":
    sys.exit(main())
