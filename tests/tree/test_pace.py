#!/usr/bin/env python3
"""What pace.py tells the judge of a file of tests: that all passed, that one failed, or that want of time explains it."""
# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
import textwrap
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
HEAD = """
import sys, threading, unittest
sys.path.insert(0, sys.argv.pop())
import pace
class Test(unittest.TestCase):
    def beside(self, error):
        def run():
            raise error
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
"""


class ExitCodes(unittest.TestCase):
    def judge(self, *tests):
        text = HEAD + "".join(f"    def test_{number}(self):\n{textwrap.indent(test, ' ' * 8)}\n" for number, test in enumerate(tests))
        done = subprocess.run([sys.executable, "-B", "-", FOLDER], input=text + "pace.main()\n", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode

    def test_passed(self):
        self.assertEqual(self.judge("pass"), 0)

    def test_failed(self):
        self.assertEqual(self.judge("self.assertEqual(1, 2)"), 1)

    def test_late(self):
        self.assertEqual(self.judge("pace.in_time(2, 1)"), 75)
        self.assertEqual(self.judge("raise TimeoutError"), 75)

    def test_failed_and_late(self):
        self.assertEqual(self.judge("self.assertEqual(1, 2)", "pace.in_time(2, 1)"), 1)

    def test_the_first_that_is_late_is_the_last(self):
        self.assertEqual(self.judge("pace.in_time(2, 1)", "self.assertEqual(1, 2)"), 75)

    def test_a_thread_was_late(self):
        late = "self.beside(pace.NotInTime('it'))\n"
        self.assertEqual(self.judge(late + "self.assertEqual(1, 2)"), 75)
        self.assertEqual(self.judge(late + "pass", "self.assertEqual(1, 2)"), 1)

    def test_a_thread_failed(self):
        self.assertEqual(self.judge("self.beside(ValueError('it'))\nself.assertEqual(1, 2)"), 1)


if __name__ == "__main__":
    unittest.main()
