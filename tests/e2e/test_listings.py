"""Listings in docs/redis.md: the same commands, run on a server, print the same but for numbers and times."""
# SPDX-License-Identifier: MIT
import os
import re
import shlex
import shutil
import socket
import subprocess
import unittest
from urllib.parse import urlsplit

from support import PATIENCE, ROOT, Case, main, wait_until

# In this order, on both sides. The listings are of a host that is called vm.
UNLIKE = [
    (re.compile(r"\bValkey\b"), "Redis"),
    (re.compile(r"\b" + re.escape(socket.gethostname()) + r"\b"), "vm"),
    (re.compile(r"\b[0-9a-f]{8}…|\b[0-9a-f]{32}(?:[0-9a-f]{8})?\b"), "HEX"),
    (re.compile(r"\b[0-9.]+(?:ms|us|s|m)\b"), "SPAN"),
    (re.compile(r"[+-]?[0-9][0-9.]*"), "N"),
    (re.compile(r"\s+"), " "),
]


def alike(line):
    for pattern, word in UNLIKE:
        line = pattern.sub(word, line)
    return line.strip()


def listing(begins):
    """The lines of the block that begins like this, in the text."""
    with open(os.path.join(ROOT, "docs", "redis.md"), encoding="utf-8") as file:
        blocks = re.findall(r"(?ms)^```\n(.*?)^```$", file.read())
    [block] = [block for block in blocks if block.startswith(begins)]
    return block.splitlines()


@unittest.skipUnless(shutil.which("redis-cli"), "redis-cli is not installed")
class Listings(Case):
    def setUp(self):
        super().setUp()
        self.port = str(urlsplit(self.env["DIBS_URL"]).port)
        self.env.pop("DIBS_PREFIX", None)
        self.cli("FLUSHALL")

    def cli(self, *words):
        """As on a terminal, where redis-cli numbers what it prints."""
        return subprocess.run(
            ["redis-cli", "--no-raw", "-p", self.port, *words], stdout=subprocess.PIPE, timeout=PATIENCE, check=True,
            text=True,
        ).stdout

    def compare(self, shown, printed):
        """A line of the text may leave a part out, with an ellipsis."""
        shown, printed = [alike(line) for line in shown], [alike(line) for line in printed]
        fits = len(shown) == len(printed) and all(
            re.fullmatch(re.escape(line).replace("…", ".*"), real) for line, real in zip(shown, printed)
        )
        self.assertTrue(fits, "docs/redis.md: %s\nprinted: %s" % ("\n".join(shown), "\n".join(printed)))

    def run_line(self, line):
        words = shlex.split(line)
        return self.cli(*words[1:]) if words[0] == "redis-cli" else self.ok(*words[1:])

    def test_keys_and_holders(self):
        self.hold("workflow:retry-scheduler", "--ttl", "60s", "--owner", "pod-1")
        self.start("run", "--owner", "pod-2", "workflow:retry-scheduler", "true")
        self.hold("workflow:i-7:bookmark:b-1")
        wait_until(lambda: self.cli("ZCARD", "{workflow:retry-scheduler}~queue") == "(integer) 1\n", "the waiter")
        for begins in ("$ redis-cli KEYS 'workflow:*'\n1)", "$ dibs --prefix workflow: ls\n"):
            for part in re.split(r"(?m)^\$ ", "\n".join(listing(begins)))[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                printed = self.run_line(command).splitlines()
                if " KEYS " in command:  # in no order
                    shown, printed = sorted(shown, key=lambda s: s.split()[1]), sorted(printed, key=lambda s: s.split()[1])
                self.compare(shown, printed)

    def test_monitor(self):
        self.ok("--prefix", "workflow:", "run", "retry-scheduler", "true")  # the server has the scripts now
        monitor = subprocess.Popen(["redis-cli", "-p", self.port, "MONITOR"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, monitor)
        self.assertEqual(monitor.stdout.readline(), "OK\n")
        self.ok("--prefix", "workflow:", "run", "--owner", "pod-1", "retry-scheduler", "true")
        self.cli("ECHO", "over")
        printed = []
        for line in monitor.stdout:
            if '"over"' in line:
                break
            if " lua] " in line or '"EVALSHA"' in line:
                printed.append(line)
        self.compare(listing("$ redis-cli MONITOR\n")[1:], printed)

    def test_doctor(self):
        for setting in ("appendonly yes", "appendfsync always", "maxmemory-policy noeviction"):
            self.cli("CONFIG", "SET", *setting.split())
        self.env["DIBS_URL"] = f"redis://localhost:{self.port}"
        printed = self.ok("doctor").splitlines()
        shown = listing("redis://localhost:6379\n")
        # How this machine ends trees of processes is its own affair.
        self.assertRegex(shown[-1], "^fine +run: ")
        self.compare(shown[:-1], [line for line in printed if not re.match(r"\w+ +run: ", line)])

    def test_a_key_of_others(self):
        for line in listing("$ redis-cli HSET workflow:retry-scheduler"):
            if line.startswith("$ redis-cli"):
                self.cli(*shlex.split(line)[2:])
            elif line.startswith("$ dibs"):
                printed = self.fails(70, *shlex.split(line)[2:])
        self.compare([line], printed.splitlines())


if __name__ == "__main__":
    main()
