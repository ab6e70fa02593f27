"""What the tests of `dibs run` share: a store of their own, holders, process trees."""
# SPDX-License-Identifier: MIT
import atexit
import contextlib
import fcntl
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from pace import PACE, NotInTime, in_time, main, span  # noqa: E402

__all__ = ["DIBS", "LOST", "NO_CGROUP", "PACE", "PATIENCE", "POWERLESS", "ROOT", "UNAVAIL", "NotInTime", "RunCase", "alive",
           "below", "free_base", "guard_of", "in_time", "inside", "main", "may_unshare", "read_stat", "read_text", "signal_all",
           "span", "wait_until"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIBS = os.environ.get("DIBS_BIN") or os.path.join(ROOT, "build", "dibs")
if not os.access(DIBS, os.X_OK):
    raise RuntimeError(f"{DIBS} is not there: build it, or set DIBS_BIN")
if shlex.quote(DIBS) != DIBS:
    # Scripts in the tests have the program as a word, wherever the checkout is.
    LINKS = tempfile.mkdtemp(prefix="dibs-link-")
    atexit.register(shutil.rmtree, LINKS, ignore_errors=True)
    os.symlink(DIBS, os.path.join(LINKS, "dibs"))
    DIBS = os.path.join(LINKS, "dibs")
PATIENCE = 60.0 * max(1.0, PACE / 8)  # seconds until a condition counts as never coming

# Exit codes of `dibs`: no answer of the store in time; a lease that was lost.
UNAVAIL, LOST = 69, 122

# A store that all tests of a file share, instead of one of their own each.
URL = os.environ.get("DIBS_TEST_URL")


def wait_until(condition, what="a condition", patience=PATIENCE):
    """Returns the condition's value once it is true. It asks less often the longer it waits: many conditions run a command."""
    end = time.monotonic() + patience
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise NotInTime("waited in vain for " + what)
        time.sleep(pause)
        pause = min(pause * 1.3, 0.02)


def read_stat(pid):
    """(name, state, parent, group, session) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            text = file.read()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    rest = text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[1]), int(rest[2]), int(rest[3])


def alive(pid):
    stat = read_stat(pid)
    return stat is not None and stat[1] not in "ZX"


def below(root):
    """The process numbers of all that descends from root."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = read_stat(entry)
            if stat:
                parents[int(entry)] = stat[2]
    found, todo = [], [root]
    while todo:
        parent = todo.pop()
        for pid, its_parent in parents.items():
            if its_parent == parent:
                found.append(pid)
                todo.append(pid)
    return found


def signal_all(pids, number):
    """A process that has ended meanwhile needs no signal."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def open_ports():
    """The file in which tests reserve ports, as in tests/hosting.c; None when it cannot be had."""
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR):
        try:
            fd = os.open("/tmp/dibs-test-ports", flags, 0o666)
        except OSError:
            continue
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o666)
        return fd
    return None


PORTS_FD = open_ports()


def free_base(count):
    """A port with so many free ones after it, below those that the kernel picks."""
    for _ in range(1000):
        base = random.randrange(10000, 30000 - count)
        try:
            if PORTS_FD is not None:
                fcntl.lockf(PORTS_FD, fcntl.LOCK_EX | fcntl.LOCK_NB, count, base + 1)
            for port in range(base + 1, base + count + 1):
                with socket.socket() as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise AssertionError("there are no free ports")


def guard_of(pid):
    """The guard process of a running dibs."""
    for child in below(pid):
        stat = read_stat(child)
        if stat and stat[0] == "dibs-guard":
            return child
    return None


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


# All that an embedded store reads of /proc, on a file system that has no processes. The
# search for leaks of a sanitizer, which reads its options there too, would need them.
NO_PROC = """
boot=$(cat /proc/sys/kernel/random/boot_id)
time=$(readlink /proc/self/ns/time)
umount -l /proc
mount -t tmpfs none /proc
mkdir -p /proc/sys/kernel/random /proc/self/ns
echo "$boot" >/proc/sys/kernel/random/boot_id
ln -s "$time" /proc/self/ns/time
printf 'ASAN_OPTIONS=detect_leaks=0\\0' >/proc/self/environ
"""

NO_CGROUP = "mount -t tmpfs none /sys/fs/cgroup\n"
POWERLESS = ["setpriv", "--bounding-set", "-all"]


def may_unshare():
    """Mounts and PID namespaces of its own can be had."""
    if os.geteuid() != 0:
        return False
    made = subprocess.run(["unshare", "-m", "-p", "-f", *POWERLESS, "true"], capture_output=True, check=False)
    return made.returncode == 0


def inside(setup, *more):
    """The words that run a command after `setup`, with mounts of its own."""
    return ["unshare", "-m", *more, "sh", "-c", setup + 'exec "$@"', "sh"]


class RunCase(unittest.TestCase):
    """A folder, a store in it, and an environment without settings from outside."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dibs-run-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("DIBS_")}
        self.env["DIBS_URL"] = URL or "sqlite:" + self.path("locks.db")
        if URL:
            self.env["DIBS_PREFIX"] = os.path.basename(self.folder) + ":"
        self.env["DIBS_CONFIG"] = os.devnull
        self.env["HOME"] = self.env["XDG_STATE_HOME"] = self.folder
        self.env.pop("SHELL", None)

    def assertEqual(self, first, second, msg=None):
        """An exit code that a slow machine explains, where another was expected, is lateness."""
        if type(first) is type(second) is int and first != second and first in (UNAVAIL, LOST):
            raise NotInTime(f"exit code {first}, not {second}: {msg}")
        super().assertEqual(first, second, msg)

    def assertIn(self, member, container, msg=None):
        """The same of one among several exit codes."""
        if type(member) is int and member in (UNAVAIL, LOST) and member not in container:
            raise NotInTime(f"exit code {member}, not one of {container}: {msg}")
        super().assertIn(member, container, msg)

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        return read_text(self.path(name))

    def dibs(self, *args, program=DIBS, before=(), patience=PATIENCE, **kwargs):
        """Runs the command to its end; the result has returncode, stdout, stderr."""
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("env", self.env)
        return subprocess.run(
            [*before, program, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=patience,
            cwd=self.folder,
            check=False,
            **kwargs,
        )

    def start(self, *args, program=DIBS, before=(), **kwargs):
        """Starts the command, with the words of `before` before it; it is killed at the end of the test."""
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("env", self.env)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [*before, program, *args], stdout=subprocess.PIPE, text=True, cwd=self.folder, **kwargs
        )
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def hold(self, name, *options):
        """A `dibs run` that holds the name until its standard input is closed."""
        process = self.start(
            "run", *options, name, "--", "sh", "-c", "echo held; exec cat", stdin=subprocess.PIPE
        )
        self.assertEqual(process.stdout.readline(), "held\n", process.args)
        return process

    def let_go(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE), 0)

    def show(self, name):
        """What `dibs show --json` tells of a name; None when nobody uses it."""
        result = self.dibs("show", "--json", name)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def waiters(self, name):
        shown = self.show(name)
        return len(shown["waiters"]) if shown else 0

    def break_lock(self, name):
        result = self.dibs("break", name, "--force", "--yes")
        if result.returncode == 1:
            raise NotInTime("the lease ended before it was broken: " + result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def succeed(self, name="k"):
        """A second holder of the name, which says in the witness that it has begun and goes on for a while."""
        self.write("second.sh", "echo second >>witness; sleep 0.3; echo second >>witness")
        result = self.dibs("run", name, "--", "sh", "second.sh")
        self.assertEqual(result.returncode, 0, result.stderr)

    def late_writes(self):
        """What the first holder's tree wrote into the witness after the second holder began."""
        lines = self.text("witness").splitlines()
        self.assertIn("first", lines)
        return lines[lines.index("second"):].count("first")

    @staticmethod
    def reap(pid, stat):
        """Ends what a failed test left, if it is still the same process. Who watches over a tree ends by itself."""
        if stat and alive(pid) and read_stat(pid)[0] == stat[0]:
            os.kill(pid, signal.SIGCONT if stat[0].startswith("dibs-") else signal.SIGKILL)

    def wait_dead(self, pids, what="the tree to be dead"):
        wait_until(lambda: not any(alive(pid) for pid in pids), what)
