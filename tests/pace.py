"""What is in time on this machine, for tests in Python: see pace.h."""
# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
import threading
import unittest

MISSED = 75  # the exit code that the judge knows
PACE = min(max(float(os.environ.get("DIBS_PACE") or 1), 1.0), 30.0)


class NotInTime(AssertionError):
    """What should have been in time was not, which a slow machine explains."""


def in_time(took, limit, what="it"):
    """For what only lateness can make false."""
    if took > limit:
        raise NotInTime(f"{what} took {took:.1f} s, not {limit} s at most")


def span(seconds):
    """As long for a machine that is as slow as this one, as `dibs` reads it."""
    return f"{round(1000 * seconds * PACE)}ms"


LATE = (NotInTime, subprocess.TimeoutExpired, TimeoutError)


class Result(unittest.TextTestResult):
    """Counts what failed for want of time apart."""

    late = 0
    late_threads = 0

    def startTest(self, test):
        self.late_threads = 0
        super().startTest(test)

    def note_thread(self, args):
        """A thread that the test began has ended by an exception, which the test itself does not see."""
        self.late_threads += issubclass(args.exc_type, LATE)
        threading.__excepthook__(args)

    def note(self, err):
        """The first that is late is the last: others may stumble over what it left, and the file is repeated anyway."""
        if self.late_threads or issubclass(err[0], LATE):
            self.late += 1
            self.stop()
            self.failfast = True  # no further subTest of this one either

    def addFailure(self, test, err):
        self.note(err)
        super().addFailure(test, err)

    def addError(self, test, err):
        self.note(err)
        super().addError(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(err)
        super().addSubTest(test, subtest, err)


def main():
    """unittest.main(), with an exit code of its own when nothing but time was wrong."""
    def begin(*args, **more):
        result = Result(*args, **more)
        threading.excepthook = result.note_thread
        return result

    runner = unittest.TextTestRunner(resultclass=begin)
    result = unittest.main(testRunner=runner, exit=False).result
    failed = len(result.failures) + len(result.errors)
    if failed and failed == result.late:
        sys.exit(MISSED)
    sys.exit(1 if failed or result.unexpectedSuccesses else 0)
