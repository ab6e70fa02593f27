#!/usr/bin/env python3
"""Which differences between two programs have a reason, and which have none."""
# SPDX-License-Identifier: MIT
import os
import unittest
import zoneinfo
from datetime import datetime

from cron_cases import Case
from cron_dialects import restrict_stars, write_croniter, write_robfig
from cron_reasons import explain

zoneinfo.reset_tzpath([os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "zoneinfo")])

SPRING = "2027-03-27T12:00:00Z"  # the day before clocks change in Berlin
AUTUMN = "2027-10-30T12:00:00Z"


def read_times(*texts):
    return [int(datetime.fromisoformat(text).timestamp()) for text in texts]


def refuse_to_ask(case):
    raise AssertionError(f"dibs is asked for {case.text}")


class Reasons(unittest.TestCase):
    def check(self, expected, text, after, ours, theirs, ask=refuse_to_ask):
        case = Case("test", text, "Europe/Berlin", *read_times(after))
        theirs = theirs if isinstance(theirs, str) else read_times(*theirs)
        self.assertEqual(explain(case, read_times(*ours), theirs, ask), set(expected.split()))

    def test_a_time_in_a_gap_may_be_skipped_or_later(self):
        ours = ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z", "2027-03-30T00:30:00Z"]
        self.check("gap", "30 2 * 3 *", SPRING, ours, ours[1:])
        self.check("gap", "30 2 * 3 *", SPRING, ours, ["2027-03-28T01:30:00Z", *ours[1:]])
        self.check("gap change", "30 2 * 3 *", SPRING, ours, ["2027-03-28T04:30:00Z", *ours[1:]])
        # A job of every hour has no such time.
        self.check("change", "0 * * * *", SPRING, ours, ours[1:])

    def test_a_time_that_comes_twice_may_be_twice(self):
        ours = ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"]
        self.check("overlap", "30 2 * * *", AUTUMN, ours, [ours[0], "2027-10-31T01:30:00Z", ours[1]])
        self.check("overlap", "30 2 * * *", AUTUMN, ours, ["2027-10-31T01:30:00Z", ours[1]])
        # Every half hour comes twice with us, too: whoever has it once more is wrong.
        self.check("change", "*/30 2 * * *", AUTUMN, ours, [ours[0], "2027-10-31T01:30:00Z", ours[1]])

    def test_far_from_changes_nothing_may_differ(self):
        ours = ["2027-06-01T00:30:00Z", "2027-06-02T00:30:00Z", "2027-06-03T00:30:00Z"]
        for theirs in (ours[:2], ours[1:], [*ours, "2027-06-03T00:31:00Z"], [], "refused: no", "hangs"):
            self.check("", "30 2 1-3 6 ?", "2027-05-31T12:00:00Z", ours, theirs)

    def test_a_star_with_a_step_may_be_none(self):
        ours, theirs = ["2027-06-07T00:00:00Z"], ["2027-06-01T00:00:00Z"]
        self.check("star", "0 2 */2 6 MON", "2027-05-31T12:00:00Z", ours, theirs, lambda case: read_times(*theirs))
        self.check("star none", "0 2 */2 6 MON", "2027-05-31T12:00:00Z", ours, theirs, lambda case: read_times(*ours))

    def test_the_day_of_the_month_may_be_ignored(self):
        ours = ["2027-06-05T00:00:00Z", "2027-06-06T22:00:00Z"]
        self.check("days", "0 2 5 * MON#1", "2027-05-31T12:00:00Z", ours, ours[1:], lambda case: [case.after + 1])
        self.check("", "0 2 5 * MON#1", "2027-05-31T12:00:00Z", ours, ["2027-06-06T23:00:00Z"], lambda case: [case.after + 2])

    def test_what_no_month_has_may_be_refused(self):
        self.check("refused", "0 0 31 4,6 MON", SPRING, ["2027-04-05T00:00:00Z"], "refused: no such day")
        self.check("", "0 0 31 4,7 MON", SPRING, ["2027-04-05T00:00:00Z"], "refused: no such day")


class Dialects(unittest.TestCase):
    def check(self, text, croniter, robfig):
        self.assertEqual((write_croniter(text), write_robfig(text)), (croniter, robfig), text)

    def test_what_others_have_is_said_in_their_words(self):
        self.check("@daily", "@daily", "@daily")
        self.check("5/20 * 1 * ? 1-5", "5/20 * 1 * * 1-5", "5/20 * 1 * ? 1-5")
        self.check("0 22-2 * nov-feb 5-7", "0 22-2 * nov-feb 5-7", "0 22,23,0,1,2 * 11,12,1,2 5,6,0")
        self.check("58-4/3 9-9/6 20/30 * 7", "58,1,4 9 20 * 0", "58,1,4 9 20 * 0")

    def test_what_a_program_lacks_it_is_not_asked(self):
        self.check("0 0 15W * *", None, None)
        self.check("0 0 L-3 * *", None, None)
        self.check("0 0 L * FRI#L", "0 0 L * L5", None)
        self.check("0 0 0 29 2 * 2024/4", "0 0 0 29 2 * 2024/4", None)

    def test_stars_of_days_can_be_restricted(self):
        self.assertEqual(restrict_stars("*/5 */2 */3 */4 */1"), "*/5 */2 1-31/3 */4 */1")
        self.assertEqual(restrict_stars("@daily"), "@daily")


if __name__ == "__main__":
    unittest.main()
