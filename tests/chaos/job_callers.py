#!/usr/bin/env python3
# job_callers.py - starts runs that wait at a bookmark, and resumes each by 20 at a time.
#
#   job_callers.py DIBS FOLDER SECONDS
#
# FOLDER/told has a line for each answer: "RUN CALLER CODE". A caller hands on its number as
# the data of the bookmark. It ends when FOLDER/over is there and the last run is resumed.
import os
import subprocess
import sys
import time

CALLERS = 20
OK, SECOND, IN_PROGRESS = 0, 1, 75


def quiet(*args):
    return subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def waits(dibs, run):
    shown = subprocess.run([dibs, 'job', 'show', run, '--json'], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return '"WAITING"' in shown


def resume(dibs, run, told):
    """All callers at a time; true when one of them, or one before, was accepted."""
    callers = [subprocess.Popen([dibs, 'job', 'resume', run, 'ok', '--data', str(number)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for number in range(resume.first, resume.first + CALLERS)]
    codes = [caller.wait() for caller in callers]
    for number, code in enumerate(codes, resume.first):
        told.write(f'{run} {number} {code}\n')
    told.flush()
    resume.first += CALLERS
    return OK in codes or SECOND in codes


resume.first = 1


def main(dibs, folder, seconds):
    number = 0
    with open(f'{folder}/told', 'a', encoding='ascii') as told:
        while not os.path.exists(f'{folder}/over') or number == 0:
            number += 1
            run = f'approve.{number}'
            while quiet(dibs, 'job', 'start', 'approve', '--id', str(number)) != 0:
                time.sleep(0.2)
            while not waits(dibs, run):
                time.sleep(0.3)
            while not resume(dibs, run, told):
                time.sleep(0.2)
            time.sleep(seconds)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
