"""What the tests of the other verbs share, on top of runtools."""
# SPDX-License-Identifier: MIT
import errno
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from runtools import DIBS, PATIENCE, ROOT, NotInTime, RunCase, in_time, main, span, wait_until

__all__ = ["DIBS", "PATIENCE", "ROOT", "Case", "Screen", "in_time", "main", "span", "wait_until"]

TOKEN = re.compile(r"[0-9a-f]{32}:[1-9][0-9]*")


class Screen:
    """A command on a terminal of its own, which draws on it again and again."""

    def __init__(self, case, *args, rows=24, columns=80, env=None):
        self.main, self.side = pty.openpty()
        case.addCleanup(os.close, self.main)
        case.addCleanup(os.close, self.side)
        self.before = termios.tcgetattr(self.side)
        self.shown = b""
        self.resize(rows, columns)
        # A group of its own, which can be stopped.
        self.process = subprocess.Popen(
            [DIBS, *args], stdin=self.side, stdout=self.side, stderr=self.side, cwd=case.folder,
            env={**(env or case.env), "TERM": "xterm", "NO_COLOR": "1"}, process_group=0
        )
        case.addCleanup(case.finish, self.process)

    def resize(self, rows, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.main, keys)

    def hang_up(self):
        """The terminal goes away."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self.main)
        os.close(null)

    def restored(self):
        """The terminal is as it was before."""
        return termios.tcgetattr(self.side) == self.before

    def read_until(self, found, what):
        """Reads on until the answer of `found`, which is given all bytes so far, is true."""
        end = time.monotonic() + PATIENCE
        while not found(self.shown):
            if not select.select([self.main], [], [], max(0, end - time.monotonic()))[0]:
                raise NotInTime(f"waited in vain for {what}: {self.shown[-2000:]!r}")
            self.shown += os.read(self.main, 65536)
        return found(self.shown)

    def frame(self, found, what):
        """The lines of the first drawing from now on of which `found` is true; what was before is dropped."""

        def drawn(shown):
            for text in re.findall(r"\033\[H(.*?)\033\[K\033\[J", shown.decode(errors="replace"), re.DOTALL):
                lines = text.replace("\033[K", "").split("\r\n")
                if found(lines):
                    return lines
            return None

        lines = self.read_until(drawn, what)
        self.shown = b""
        return lines


class Case(RunCase):
    """Each test has a store of its own and no configuration but what it makes."""

    def ok(self, *args, **kwargs):
        """Runs to success and gives standard output."""
        result = self.dibs(*args, **kwargs)
        self.assertEqual(result.returncode, 0, (args, result.stderr))
        return result.stdout

    def fails(self, code, *args, **kwargs):
        """Runs to this exit code and gives standard error."""
        result = self.dibs(*args, **kwargs)
        self.assertEqual(result.returncode, code, (args, result.stdout, result.stderr))
        return result.stderr

    def json(self, *args, code=0):
        """Runs and gives standard output, which must be one JSON object of schema 1."""
        result = self.dibs(*args)
        self.assertEqual(result.returncode, code, (args, result.stderr))
        value = json.loads(result.stdout)
        self.assertEqual(value["schema"], 1)
        return value

    def acquire(self, name, *options):
        """Takes a lock and gives its token."""
        token = self.ok("acquire", name, *options).rstrip("\n")
        self.assertRegex(token, TOKEN)
        return token

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def on_terminal(self, *args, answer=b"", env=None):
        """Runs with a terminal for all three streams: the exit code, and what it showed."""
        main, side = pty.openpty()
        process = subprocess.Popen(
            [DIBS, *args], stdin=side, stdout=side, stderr=side, env=env or self.env, cwd=self.folder
        )
        self.addCleanup(self.finish, process)
        os.close(side)
        if answer:
            os.write(main, answer)
        shown = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError as error:
                # Linux says so when the last user of the other side has gone.
                self.assertEqual(error.errno, errno.EIO)
                part = b""
            if not part:
                break
            shown += part
        os.close(main)
        return process.wait(PATIENCE), shown.decode()
