"""What the tests of the other verbs share, on top of runtools."""
# SPDX-License-Identifier: MIT
import errno
import json
import os
import pty
import re
import subprocess

from runtools import DIBS, PATIENCE, ROOT, RunCase, in_time, main, span, wait_until

__all__ = ["DIBS", "PATIENCE", "ROOT", "Case", "in_time", "main", "span", "wait_until"]

TOKEN = re.compile(r"[0-9a-f]{32}:[1-9][0-9]*")


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
