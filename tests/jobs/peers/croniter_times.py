"""croniter_times.py - the times of croniter for expressions: lines as robfig/robfig.go reads and writes them."""
# SPDX-License-Identifier: MIT
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import CroniterBadCronError, CroniterBadDateError, croniter

COUNT = 5


def find_times(text, zone, after):
    times = []
    try:
        found = croniter(text, datetime.fromtimestamp(int(after), ZoneInfo(zone)), second_at_beginning=True,
                         implement_cron_bug=True, max_years_between_matches=60)
        while len(times) < COUNT:
            times.append(int(found.get_next(datetime).timestamp()))
    except CroniterBadDateError:
        pass  # there are no more
    except CroniterBadCronError as err:
        return f"refused: {err}"
    return ",".join(map(str, times))


for line in sys.stdin:
    number, *words = line.rstrip("\n").split("\t")
    print(number, find_times(*words), sep="\t", flush=True)
