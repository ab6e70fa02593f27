"""cron_dialects.py - the fields of our expressions, and the same in the words of croniter and robfig/cron."""
# SPDX-License-Identifier: MIT
import re
from collections import namedtuple

from cron_cases import MONTHS, WEEKDAYS

Field = namedtuple("Field", "low high names")

SIXTY, HOUR, DAY, MONTH, WEEKDAY, YEAR = (Field(0, 59, ()), Field(0, 23, ()), Field(1, 31, ()), Field(1, 12, MONTHS),
                                          Field(0, 6, WEEKDAYS), Field(1970, 2199, ()))
FIVE = [SIXTY, HOUR, DAY, MONTH, WEEKDAY]
FIELDS = {5: FIVE, 6: [SIXTY, *FIVE], 7: [SIXTY, *FIVE, YEAR]}


def split_text(text):
    """The words of an expression; those of a nickname such as @daily are none of anybody's fields."""
    return [] if text.startswith("@") else text.split()


def find_word(text, field):
    words = split_text(text)
    return words[FIELDS[len(words)].index(field)] if words else ""


def read_value(word, field):
    return field.low + field.names.index(word.upper()) if word.upper() in field.names else int(word)


def read_item(item, field):
    """First value, last value or None, and step or None; None: it has another form, such as a star or 15W."""
    found = re.fullmatch(r"(\d+|[A-Za-z]{3})(?:-(\d+|[A-Za-z]{3}))?(?:/(\d+))?", item)
    if not found:
        return None
    first, last = (read_value(word, field) if word else None for word in found.group(1, 2))
    return first, last, int(found[3]) if found[3] else None


def spread_range(first, last, step, field):
    size = field.high - field.low + 1
    return [field.low + (first - field.low + i) % size for i in range(0, (last - first) % size + 1, step or 1)]


def has_all_hours(text):
    """Times of such an expression follow real time when clocks change, and so do those with a star for the minute."""
    hours = set()
    for item in find_word(text, HOUR).split(","):
        if item in ("*", "*/1", ""):
            return item != "" or text == "@hourly"
        if read_item(item, HOUR):
            first, last, step = read_item(item, HOUR)
            hours.update(spread_range(first, (HOUR.high if step else first) if last is None else last, step, HOUR))
    return len(hours) == 24


def follows_real_time(text):
    return has_all_hours(text) or text.startswith("*")


def write_item(item, field, has_wraps):
    """A range of one value as that, and one that goes round the end as its values. Sunday is 0."""
    found = read_item(item, field)
    if not found or item.isalpha():
        return item
    first, last, step = found
    if last is None:
        return item if step and first + step <= field.high else str(first % 7 if field is WEEKDAY else first)
    if first < last <= field.high or has_wraps and not step and first != last:
        return item
    return ",".join(str(value) for value in spread_range(first, last, step, field))


def write_items(words, has_wraps):
    return " ".join(",".join(write_item(item, field, has_wraps) for item in word.split(","))
                    for word, field in zip(words, FIELDS[len(words)]))


def write_croniter(text):
    """It takes ranges that go round the end, but gets those with a step wrong, and those of one value. None: it has no word."""
    words = split_text(text)
    if not words or re.search("W|L-", find_word(text, DAY)):
        return text if not words else None
    place = FIELDS[len(words)].index(WEEKDAY)
    last = re.fullmatch(r"(\d|[A-Za-z]{3})#?L", words[place])
    if last:
        words[place] = f"L{read_value(last[1], WEEKDAY) % 7}"
    return write_items(["*" if word == "?" else word for word in words], True)


def write_robfig(text):
    words = split_text(text)
    if len(words) == 7 or re.search("[LW]", find_word(text, DAY)) or re.search("#|L$", find_word(text, WEEKDAY)):
        return None
    return write_items(words, False) if words else text


def restrict_stars(text):
    """The expression in which a day field such as */2 does not count as a star."""
    words = split_text(text)
    for place, field in enumerate(FIELDS[len(words)] if words else ()):
        if field in (DAY, WEEKDAY):
            words[place] = re.sub(r"^\*(?=/(?!1$))", f"{field.low}-{field.high}", words[place])
    return " ".join(words) or text
