"""cron_reasons.py - why another program has other times for an expression.

A reason has to explain every time that one of both has and the other lacks. If some have none, one of both is wrong, and
somebody has to look. The reasons:

    gap       times in a gap: we have one, at its end; the other has none, or others
    overlap   times that come twice: the other has both where we have one, or another one than we
    star      the other does not count */2 in a day field as a star
    refused   the other refuses an expression of which no month has the day, next to weekdays
    days      beside MON#1 or FRIL the day of the month counts for nothing, or has to match too
    change    the other has lost or moved a time on the day of a change, or the first one after it
    month     the other begins a month late, after a change at the beginning of a month
    hangs     the other looks for ever, near a day that does not occur
"""
# SPDX-License-Identifier: MIT
import re
from datetime import datetime, timezone

from cron_cases import find_changes
from cron_dialects import DAY, MONTH, WEEKDAY, find_word, follows_real_time, has_all_hours, restrict_stars

COUNT = 5  # times of an expression that are compared
DAY_S = 86400
DAYS_OF_MONTH = dict(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))


def explain_gap(case, change, ours, lacks, extra):
    jump = change.now - change.before
    if has_all_hours(case.text) or change.at not in ours:
        return set()
    return {at for at in lacks if at == change.at} | {at for at in extra if abs(at - change.at) <= jump}


def explain_overlap(case, change, ours, lacks, extra):
    """Rule 2 of docs/cron.md decides whether the second pass counts."""
    span = change.before - change.now
    first = {at for at in lacks if change.at - span <= at < change.at}
    if follows_real_time(case.text):
        return first | {at for at in lacks if change.at <= at < change.at + span}
    return first | {at for at in extra if change.at <= at < change.at + span and
                    (at - span in ours or at - span <= case.after)}


def first_after(moment, times):
    return min((at for at in times if at > moment), default=None)


def begins_month_late(at, change):
    """A change has taken the first midnight of a month, and the time is as early on the first day of a later one."""
    local, gone = (datetime.fromtimestamp(moment, timezone.utc)
                   for moment in (at + change.now, change.at + change.before))
    since = (local.hour * 60 + local.minute) * 60 + local.second
    return local.day == gone.day == 1 and gone.hour == 0 and at > change.at and since < abs(change.now - change.before) + 3600


def explain_by_clocks(case, ours, theirs):
    """The reasons for all differences; None: some have none."""
    ends = [times[-1] for times in (ours, theirs) if len(times) == COUNT]
    ours, theirs = ({at for at in times if not ends or at <= min(ends)} for times in (ours, theirs))
    lacks, extra = ours - theirs, theirs - ours
    left, reasons = lacks | extra, set()
    if not left:
        return None  # one of both ends too early
    for change in find_changes(case.zone, case.after - 2 * DAY_S, max(left) + 2 * DAY_S):
        for reason, found in (
                ("gap", explain_gap(case, change, ours, lacks, extra) if change.now > change.before else ()),
                ("overlap", explain_overlap(case, change, ours, lacks, extra) if change.now < change.before else ()),
                ("change", {at for at in left if abs(at - change.at) <= DAY_S or at == first_after(change.at, ours)}),
                ("month", {at for at in lacks if begins_month_late(at, change)})):
            if left.intersection(found):
                reasons.add(reason)
                left.difference_update(found)
    return None if left else reasons


def never_comes(case):
    """No month of the expression has a day that it names."""
    days, months = (re.fullmatch(r"\d+(,\d+)*", find_word(case.text, field)) for field in (DAY, MONTH))
    return days and months and min(map(int, days[0].split(","))) > max(DAYS_OF_MONTH[int(n)] for n in months[0].split(","))


def ignores_days(case, theirs, ask):
    """All of its times are times of ours."""
    return re.search("[#L]", find_word(case.text, WEEKDAY)) and not re.match("[*?]", find_word(case.text, DAY)) and \
        all(ask(case._replace(after=at - 1))[0] == at for at in theirs)


def is_near_lost_day(case, ours):
    return any(change.now - change.before >= DAY_S // 2
               for change in find_changes(case.zone, case.after - 8 * DAY_S, (ours or [case.after])[-1] + 8 * DAY_S))


def explain(case, ours, theirs, ask):
    """The reasons for another answer than ours; none: there is none. `ask` asks dibs for the times of a case."""
    if theirs == "hangs":
        return {"hangs"} if is_near_lost_day(case, ours) else set()
    if isinstance(theirs, str):
        return {"refused"} if never_comes(case) else set()
    if ignores_days(case, theirs, ask):
        return {"days"}
    reasons = explain_by_clocks(case, ours, theirs)
    if reasons is None and restrict_stars(case.text) != case.text:
        restricted = case._replace(text=restrict_stars(case.text))
        ours = ask(restricted)
        reasons = {"star"} if ours == theirs else {"star"} | (explain_by_clocks(restricted, ours, theirs) or {"none"})
    return reasons or set()
