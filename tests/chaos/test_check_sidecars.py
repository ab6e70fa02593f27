#!/usr/bin/env python3
"""What sidecar_ground.py finds in histories that are made up: sound ones, and one for each violation."""
# SPDX-License-Identifier: MIT
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from sidecar_ground import Check  # noqa: E402 pylint: disable=wrong-import-position

DEAD_AT = 100.0


class Histories(unittest.TestCase):
    def judge(self, *histories):
        check = Check({number: DEAD_AT for number in range(len(histories))})
        with tempfile.TemporaryDirectory() as folder:
            for number, lines in enumerate(histories):
                with open(f"{folder}/client-0-{number}", "w", encoding="ascii") as file:
                    file.write("\n".join(lines) + "\n")
                check.read(f"{folder}/client-0-{number}")
        return check.judge()

    def test_one_after_the_other(self):
        self.assertEqual(self.judge(["begin red 1 10 12", "until red 2 11 14", "end red 2 13"], ["begin red 3 13 15", "end red 3 15"]), [])

    def test_other_names_do_not_matter(self):
        self.assertEqual(self.judge(["begin red 1 10 12"], ["begin blue 1 11 13"]), [])

    def test_two_at_a_time(self):
        self.assertEqual(len(self.judge(["begin red 1 10 12", "end red 1 12"], ["begin red 2 11.9 13", "end red 2 13"])), 1)

    def test_belief_goes_on_without_a_word(self):
        """A client that was stopped, or whose end was not written, believes as long as it was told."""
        self.assertEqual(len(self.judge(["begin red 1 10 12"], ["begin red 2 11.9 13"])), 1)
        self.assertEqual(self.judge(["begin red 1 10 12"], ["begin red 2 12 13"]), [])

    def test_the_dead_believe_nothing(self):
        self.assertEqual(self.judge(["begin red 1 99 120"], ["begin red 2 100 101"]), [])

    def test_an_answer_that_came_too_late_is_not_believed(self):
        self.assertEqual(self.judge(["begin red 1 13 12", "end red 1 12"], ["begin red 2 12.5 15", "end red 2 15"]), [])

    def test_fences_rise(self):
        self.assertEqual(len(self.judge(["begin red 1 10 12", "until red 4 11 12", "end red 4 12"], ["begin red 3 13 15"])), 1)

    def test_a_loss_before_its_time(self):
        self.assertEqual(len(self.judge(["begin red 1 10 12", "lost red 1 11 12 expired"])), 1)
        self.assertEqual(self.judge(["begin red 1 10 12", "lost red 1 12.5 12 expired"]), [])


if __name__ == "__main__":
    unittest.main()
