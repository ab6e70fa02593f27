"""bench_jobs.py - nodes of the job engine on a Redis that nothing else uses.

  bench_jobs.py DIBS PORT late SECONDS       20 jobs a second: ticks per second, lateness p50 p95 p99 in us
  bench_jobs.py DIBS PORT idle JOBS SECONDS  3 nodes, JOBS definitions, nothing due: requests per second
  bench_jobs.py DIBS PORT load JOBS          seconds to load JOBS definitions, and to list them; bytes of the server each
"""
# SPDX-License-Identifier: MIT
import calendar
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

DIBS, PORT = sys.argv[1:3]
ENV = {**os.environ, "DIBS_URL": f"redis://127.0.0.1:{PORT}"}
JOBS = 20


def dibs(*args):
    return subprocess.run([DIBS, *args], env=ENV, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def nodes(count, file, *args):
    """So many nodes that have joined."""
    started = [subprocess.Popen([DIBS, "work", file, *args], env=ENV, stderr=subprocess.PIPE, text=True)
               for _ in range(count)]
    try:
        for node in started:
            while " joined " not in node.stderr.readline():
                pass
        yield
    finally:
        for node in started:
            node.terminate()
        for node in started:
            node.communicate()


def redis(*words):
    return subprocess.run(["redis-cli", "-p", PORT, *words], check=True, capture_output=True, text=True).stdout


def requests():
    """How many steps the server has done. Each is a script, whose own commands are not counted."""
    info = redis("INFO", "commandstats")
    return sum(int(calls) for calls in re.findall(r"^cmdstat_eval(?:sha)?:calls=(\d+)", info, re.MULTILINE))


def lateness(run):
    """From its tick to the moment, on the store's clock, at which a node made it and claimed it."""
    tick = calendar.timegm(time.strptime(run["tick"], "%Y-%m-%dT%H:%M:%SZ"))
    return run["started_us"] - tick * 1000000


def measure_late(folder, seconds):
    file = os.path.join(folder, "late.yaml")
    with open(file, "w", encoding="utf-8") as out:
        out.write("board: late\ndefaults: {history: {ok: 1000}}\njobs:\n")
        out.writelines(f"  j{i}: {{schedule: '* * * * * *', run: ['true']}}\n" for i in range(JOBS))
    with nodes(1, file, "-j", str(2 * JOBS)):
        time.sleep(seconds)
    late = sorted(lateness(run) for i in range(JOBS)
                  for run in json.loads(dibs("job", "runs", f"j{i}", "--board", "late", "-n", "1000", "--json"))["runs"]
                  if run["started_us"])
    print(f"{len(late) / seconds:.0f}", *(late[min(len(late) - 1, int(len(late) * part))] for part in (0.5, 0.95, 0.99)))


def rare_jobs(folder, board, jobs):
    """A file of jobs that are not due for long."""
    file = os.path.join(folder, board + ".yaml")
    with open(file, "w", encoding="utf-8") as out:
        out.write(f"board: {board}\njobs:\n")
        out.writelines(f"  j{i}: {{schedule: '0 0 29 2 *', run: ['true']}}\n" for i in range(jobs))
    return file


def seconds_of(*args):
    began = time.monotonic()
    dibs(*args)
    return time.monotonic() - began


def memory():
    return int(re.search(r"^used_memory:(\d+)", redis("INFO", "memory"), re.MULTILINE)[1])


def measure_load(folder, jobs):
    file = rare_jobs(folder, "load", jobs)
    before = memory()
    load = seconds_of("job", "load", file)
    print(f"{load:.1f} {seconds_of('job', 'ls', '--board', 'load'):.1f} {(memory() - before) / jobs:.0f}")
    redis("FLUSHALL")  # what is measured next has the server for itself


def measure_idle(folder, jobs, seconds):
    file = rare_jobs(folder, "idle", jobs)
    dibs("job", "load", file)
    with nodes(3, file):
        time.sleep(5)
        before = requests()
        time.sleep(seconds)
        print(f"{(requests() - before) / seconds:.2f}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[3] == "late":
            measure_late(folder, int(sys.argv[4]))
        elif sys.argv[3] == "load":
            measure_load(folder, int(sys.argv[4]))
        else:
            measure_idle(folder, int(sys.argv[4]), int(sys.argv[5]))


main()
