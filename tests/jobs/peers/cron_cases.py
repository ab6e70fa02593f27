"""cron_cases.py - made-up cron expressions of every form, most of them where clocks change.

A case is an expression, a zone and the moment after which its times are asked for. The same seed makes the same cases, on
machines with the same zones.
"""
# SPDX-License-Identifier: MIT
import functools
import random
from collections import namedtuple
from datetime import datetime, timezone
from zoneinfo import ZoneInfo, available_timezones

Case = namedtuple("Case", "kind text zone after")
Change = namedtuple("Change", "at before now")  # a moment, and the offsets on both sides of it

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
NICKNAMES = "@hourly @daily @midnight @weekly @monthly @yearly @annually".split()
YEARS = (1990, 2037)
STRIDE = 6 * 3600  # no two changes of a zone are closer


@functools.lru_cache(None)
def get_zone(name):
    return ZoneInfo(name)


def read_offset(zone, at):
    return int(datetime.fromtimestamp(at, get_zone(zone)).utcoffset().total_seconds())


def find_changes(zone, first, last):
    """The changes of a zone in (first, last]."""
    found = []
    for start in range(first, last, STRIDE):
        low, high = start, min(start + STRIDE, last)
        before, now = read_offset(zone, low), read_offset(zone, high)
        if before == now:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if read_offset(zone, middle) == before:
                low = middle
            else:
                high = middle
        found.append(Change(high, before, now))
    return found


def start_of(year):
    return int(datetime(year, 1, 1, tzinfo=timezone.utc).timestamp())


class Maker:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.zones = sorted(name for name in available_timezones() if "/" in name or name == "UTC")

    def make_value(self, low, names):
        """A number, or the name that stands for it."""
        def write(value):
            if names and self.dice.random() < 0.4:
                name = names[(value - low) % len(names)]
                return name if self.dice.random() < 0.7 else name.lower()
            return str(value)
        return write

    def make_item(self, low, high, names=(), wraps=True):
        write, size = self.make_value(low, names), high - low + 1
        first, last = self.dice.randint(low, high), self.dice.randint(low, high)
        step = self.dice.randint(1, max(2, size // 4))
        form = self.dice.choice("nnn--/s")
        if form == "n":
            return write(first)
        if form == "s":
            return f"{first}/{step}"
        if not wraps or self.dice.random() < 0.7:
            first, last = min(first, last), max(first, last)
        return f"{write(first)}-{write(last)}" + (f"/{step}" if form == "/" else "")

    def make_field(self, low, high, names=(), stars=0.4, wraps=True):
        roll = self.dice.random()
        if roll < stars:
            return "*"
        if roll < stars + 0.15:
            return f"*/{self.dice.randint(1, max(2, (high - low + 1) // 3))}"
        return ",".join(self.make_item(low, high, names, wraps) for _ in range(self.dice.choice((1, 1, 1, 2, 3))))

    def make_day(self):
        day = self.dice.randint(1, 31)
        return self.dice.choice(("L", f"L-{self.dice.randint(1, 30)}", f"{day}W", "LW", f"{day},L", "?", "*",
                                 self.make_field(1, 31)))

    def make_weekday(self):
        day = self.dice.choice((self.dice.choice(WEEKDAYS), str(self.dice.randint(0, 7))))
        return self.dice.choice((f"{day}#{self.dice.randint(1, 5)}", f"{day}L", f"{day}#L", "7", "5-7", "?", "*",
                                 self.make_field(0, 6, WEEKDAYS)))

    def make_five(self, hours=None, days=False):
        hour = self.make_field(0, 23)
        if hours and self.dice.random() < 0.8:
            hour = self.dice.choice((str(hours[0]), str(hours[1]), f"{min(hours)}-{max(hours)}", f"{hours[0]},{hours[1]}", "*"))
        return [self.make_field(0, 59, stars=0.25), hour,
                self.make_day() if days else self.make_field(1, 31, stars=0.7),
                self.make_field(1, 12, MONTHS, stars=0.75),
                self.make_weekday() if days else self.make_field(0, 6, WEEKDAYS, stars=0.7)]

    def make_text(self, kind, hours):
        if kind == "nickname":
            return self.dice.choice(NICKNAMES)
        fields = self.make_five(hours, kind == "days")
        if kind == "seconds" or kind == "change" and self.dice.random() < 0.2:
            fields.insert(0, self.make_field(0, 59))
            if kind == "seconds" and self.dice.random() < 0.4:
                fields.append(self.dice.choice(("*", "2024/4", "2030", self.make_field(2020, 2040, wraps=False))))
        return " ".join(fields)

    def make_case(self):
        kind = self.dice.choices(("change", "plain", "days", "seconds", "nickname"), (50, 20, 17, 10, 3))[0]
        zone, year = self.dice.choice(self.zones), self.dice.randint(*YEARS)
        after, hours = start_of(year) + self.dice.randrange(365 * 86400), None
        changes = find_changes(zone, start_of(year), start_of(year + 1)) if kind == "change" else []
        if changes:
            change = self.dice.choice(changes)
            after = change.at - self.dice.choice((1, 61, self.dice.randrange(1, 7200), self.dice.randrange(1, 36 * 3600)))
            hours = [(change.at + offset) // 3600 % 24 for offset in (change.before, change.now)]
        return Case(kind, self.make_text(kind, hours), zone, after)
