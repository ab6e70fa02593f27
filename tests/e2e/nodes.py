"""Nodes with a file of jobs, for the tests of `dibs work`."""
# SPDX-License-Identifier: MIT
import re
import signal

from runtools import NotInTime
from support import PATIENCE, Case, wait_until

FILE = """
version: 1
set: shop
defaults: {kill_after: 100ms}
jobs:
  good: {shell: 'echo "hello $DIBS_PARAM_NAME"', params: {name: {default: you}}, then: {ok: [after]}}
  after: {shell: 'echo $DIBS_JOB >>after'}
  bad: {shell: 'exit 3'}
  slow:
    timeout: 300ms
    shell: 'setsid sh -c "echo \\$\\$ >pid; exec sleep 1000" & sleep 1000'
  long: {shell: 'echo $$ >pid; exec sleep 1000'}
  drained: {shell: 'echo $$ >pid; while ! test -e go; do sleep 0.02; done; echo end'}
  alone: {shell: 'true', lock: {key: mine}}
  order:
    steps:
      first: {shell: 'echo one; printf 7 >"$DIBS_RESULT"'}
      second: {shell: 'echo "got $DIBS_NEEDS_FIRST"; test $DIBS_ATTEMPT = 2', needs: [first], retry: {attempts: 2, delay: 10ms}}
      approve: {wait: {bookmark: ok}, needs: [second]}
      nap: {sleep: 20ms, needs: [approve]}
      last: {run: [cat, '/dev/null'], needs: [nap]}
  parent: {steps: {kid: {job: good, with: {name: child}}}}
  parent-of-long: {steps: {kid: {job: long}}}
  parent-of-little-time: {run_timeout: 300ms, steps: {kid: {job: long}}}
  elsewhere: {shell: 'echo $DIBS_STEP >>placed', runs_on: eu}
"""

UNAVAIL = 69  # the store did not answer in time


class Work(Case):
    def setUp(self):
        super().setUp()
        self.file = self.write("shop.yaml", FILE)

    def node(self, *args, file=None, ttl="30s"):
        """A node, once it has joined. It hardly looks by itself: numbers of indexes and rings have to wake it."""
        with open(self.path("log"), "a", encoding="utf-8") as log:
            known = self.joined()
            process = self.start("work", file or self.file, "--look-every", "1h", "--ttl", ttl, *args, stderr=log)
        wait_until(lambda: self.joined() > known or process.poll() is not None, "a node to join")
        if process.poll() == UNAVAIL:
            raise NotInTime(self.text("log"))
        self.assertIsNone(process.poll(), self.text("log"))
        return process

    def joined(self):
        return len(re.findall(" joined ", self.text("log") or ""))

    def stop(self, *nodes):
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            self.assertEqual(node.wait(PATIENCE), 0, self.text("log"))

    def run_of(self, run):
        return self.json("job", "show", run, "--json")["runs"][0]

    def begin(self, *args):
        return self.ok("job", "start", *args).rstrip("\n")

    def lines(self, name):
        return self.text(name).splitlines()

    def pid(self):
        return int(wait_until(lambda: self.text("pid").endswith("\n") and self.text("pid"), "a command"))

    def waits(self, run, step):
        wait_until(lambda: {one["name"]: one for one in self.run_of(run)["steps"]}[step]["state"] == "WAITING",
                   f"{step} of {run} to wait")
