"""sidecar.py - runs a command while `dibs serve` keeps a lock for it.

    DIBS_SERVE_TOKEN=dibs_... python3 sidecar.py NAME COMMAND [ARGUMENT...]

DIBS_SERVE has the addresses of daemons of one store, with spaces between them. The
command has the fencing token in DIBS_FENCE, and a session of its own. Its process group
is killed when it ends, when the client may no longer believe in the lock (exit status
75), and when the client is refused (1) or has HUP, INT or TERM; only SIGKILL leaves it
behind. A child that leaves the group goes on: `dibs run` ends such children as well."""
# SPDX-License-Identifier: MIT
import contextlib, json, os, signal, subprocess, sys, threading, time, uuid
from http import client
from urllib import error, request

TTL_MS = int(os.environ.get("DIBS_SESSION_TTL_MS", "15000"))
BEAT_S = TTL_MS / 3000
WAIT_MS = min(BEAT_S * 500, 25000)  # for the lock, in one request: the most a daemon takes


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)  # counts suspend


class Sidecar:
    def __init__(self, name):
        self.urls = os.environ.get("DIBS_SERVE", "http://127.0.0.1:3427").split()
        # The lease outlasts a daemon that dies: the next beat moves it to another.
        self.id, self.body = uuid.uuid4().hex, {"name": name, "ttl_ms": 2 * TTL_MS, "wait_ms": 3600000}
        self.path = self.token = self.fence = None
        self.until = 0  # belief: the lock is ours until this moment
        self.stop = None  # the exit status that a signal asks for

    def ask(self, method, path, body=None):
        """Sends a request; returns the moment before, the status, and the answer."""
        head = {"Authorization": "Bearer " + os.environ["DIBS_SERVE_TOKEN"],
                "Content-Type": "application/json", "Idempotency-Key": "%s-%s" % (self.id, self.fence)}
        sent = request.Request(self.urls[0] + path, json.dumps(body or {}).encode(), head, method=method)
        t0 = now()
        try:
            try:
                got = request.urlopen(sent, timeout=BEAT_S)
            except error.HTTPError as refusal:
                got = refusal
            with got:
                return t0, got.code, json.loads(got.read() or b"{}")
        except (OSError, ValueError, client.HTTPException):  # also what a proxy says in HTML
            return t0, 0, {}

    def learn(self, t0, lease):
        """The rule: valid_ms counts from the moment before the request was sent."""
        if lease["state"] in ("held", "suspect"):
            self.until = max(self.until, t0 + lease["valid_ms"] / 1000)
            self.token, self.fence = lease.get("token", self.token), lease["fence"]
        self.until = 0 if lease["state"] == "lost" else self.until
        if lease["state"] == "freed":
            self.path = None  # it could not be taken over just now: try again

    def beat(self):
        """Keeps the session; without one, makes it, and takes over what there is."""
        adopt = [dict(self.body, id=self.id, token=self.token)] if self.token else []
        begin = {} if self.path else {"name": "sidecar.py", "ttl_ms": TTL_MS, "adopt": adopt}
        t0, status, got = self.ask("POST", self.path + "/beat" if self.path else "/v1/sessions", begin)
        if status in (400, 401, 403, 501):
            sys.exit("dibs serve: " + got.get("detail", str(status)))
        if status not in (200, 201):  # gone, or ending: the lease stands at the store
            self.path = None
            self.urls.append(self.urls.pop(0))
            return
        self.path = "/v1/sessions/" + got["session"] if begin else self.path
        if self.id in got["leases"]:
            self.learn(t0, got["leases"][self.id])

    def acquire(self):
        while not self.token and not self.stop:
            self.beat()
            where = "%s/leases/%s?wait_ms=%d" % (self.path, self.id, WAIT_MS)
            t0, status, got = self.ask("PUT", where, self.body) if self.path else (0, 0, {})
            if status == 201:
                self.learn(t0, got)
            elif status not in (0, 202, 404, 429, 503):
                sys.exit("dibs serve: " + got.get("detail", str(status)))
            time.sleep(0 if status else 0.1)

    def guard(self, work, over):
        """Belief ends by the own clock, whatever a request waits for."""
        while self.until > now() and not self.stop:
            if over.wait(min(0.2, max(0.001, self.until - now()))):
                return  # the number of the group may be another's by now
        self.kill(work)

    @staticmethod
    def kill(work):
        with contextlib.suppress(ProcessLookupError):  # nothing is left of the group
            os.killpg(work.pid, signal.SIGKILL)

    def run(self, command):
        """Runs the command, which must not outlive the lock, whatever ends the client."""
        try:
            work = subprocess.Popen(command, env=dict(os.environ, DIBS_FENCE=str(self.fence)), start_new_session=True)
        except OSError as wrong:
            print("sidecar.py: %s" % wrong, file=sys.stderr)
            return 127
        over = threading.Event()
        try:
            threading.Thread(target=self.guard, args=(work, over), daemon=True).start()
            while True:
                try:
                    return work.wait(BEAT_S if self.path else 0.1)
                except subprocess.TimeoutExpired:
                    self.beat()
        finally:
            over.set()
            self.kill(work)
            work.wait()


def main(name, command):
    car = Sidecar(name)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, _: setattr(car, "stop", 128 + number))
    signal.signal(signal.SIGTSTP, lambda *_: None)  # ^Z would stop the client, and not the command
    car.acquire()
    status = None if car.stop else car.run(command)
    kept, car.until = car.until > now(), 0  # belief ends before the request is sent
    car.ask("DELETE", car.path or "/v1/sessions/none")
    return car.stop or (status if kept else 75)


if len(sys.argv) < 3 or not os.environ.get("DIBS_SERVE_TOKEN"):
    sys.exit(__doc__)
sys.exit(main(sys.argv[1], sys.argv[2:]))
