#!/usr/bin/env python3
"""cron_peers.py - made-up cron expressions through dibs, croniter and robfig/cron: other times need a reason.

    tests/jobs/peers/cron_peers.py BUILD [CASES]    (DIBS_BIN: the program, BUILD/dibs; SEED: other cases)

The table of libraries in docs/cron.md has the versions, and the reasons that each may have: a column with 0 is none. croniter
is installed from PyPI and robfig/cron by go, below BUILD/cron-peers. A peer that cannot be had is named and left out. Exit codes:
0 all differences have a reason, 1 some have none, 77 no peer can be had.
"""
# SPDX-License-Identifier: MIT
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timezone

from cron_cases import Maker
from cron_dialects import write_croniter, write_robfig
from cron_reasons import COUNT, explain

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from pypi import install_package  # noqa: E402
COLUMNS = ("same", "gap", "overlap", "star", "refused", "wrong")
# What is wrong of a peer.
WRONG = {"croniter": {"days"}, "robfig/cron": {"change", "month", "hangs"}}
PATIENCE = 3600


def read_table():
    """Of each library in docs/cron.md its version, and how many of its answers are in each column."""
    with open(os.path.join(ROOT, "docs", "cron.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| (\S+) (\d[\d.]*) \| (\d[^|]*(?:\| [\d-]+ )+)\|$", file.read(), re.M)
    return {name: (version, dict(zip(COLUMNS, (int(n) for n in cells.replace("-", "0").split("|")))))
            for name, version, cells in rows}


def write_time(at):
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Refused(Exception):
    """dibs refuses an expression."""


class Dibs:
    def __init__(self, program):
        self.program = program
        self.known = {}

    def ask(self, case):
        if case not in self.known:
            done = subprocess.run([self.program, "cron", "next", case.text, "--zone", case.zone, "--after",
                                   write_time(case.after), "-n", str(COUNT), "--json"], capture_output=True, text=True, check=False, timeout=PATIENCE)
            if done.returncode not in (0, 1):
                raise Refused(done.stderr)
            self.known[case] = [int(datetime.fromisoformat(at["instant"]).timestamp()) for at in json.loads(done.stdout)["times"]]
        return self.known[case]


def make_cases(seed, count, dibs):
    """Cases that dibs accepts. It may refuse what never comes, and nothing else."""
    maker, cases, never = Maker(seed), [], 0
    while len(cases) < count:
        case = maker.make_case()
        try:
            dibs.ask(case)
            cases.append(case)
        except Refused as refusal:
            if "never fires" not in str(refusal):
                sys.exit(f"{case.text} in {case.zone} is refused: {refusal}")
            never += 1
    return cases, never


def install_croniter(folder, version):
    return install_package(folder, f"croniter=={version}")


def install_robfig(folder, version):
    if os.path.exists(os.path.join(folder, "robfig")):
        return None
    if not shutil.which("go"):
        return "go is not installed"
    shutil.copytree(os.path.join(HERE, "robfig"), folder, dirs_exist_ok=True)
    cache = os.path.join(folder, "cache")
    with open(os.path.join(folder, "go.mod"), encoding="utf-8") as file:
        if f" v{version}\n" not in file.read():
            return f"its go.mod does not name the version of docs/cron.md, {version}"
    done = subprocess.run(["go", "build", "-o", "robfig", "."], cwd=folder, check=False, env=dict(
        os.environ, GOPATH=cache, GOMODCACHE=os.path.join(cache, "mod"), GOCACHE=os.path.join(cache, "build"),
        GOFLAGS="-mod=mod -modcacherw -buildvcs=false"))
    return None if done.returncode == 0 else "go cannot build it"


# What installs a peer, the command that has its times, and what writes an expression in its words.
PEERS = {
    "croniter": (install_croniter, ("bin/python", "-B", os.path.join(HERE, "croniter_times.py")), write_croniter),
    "robfig/cron": (install_robfig, ("robfig",), write_robfig),
}


def ask_peer(command, write, cases):
    """The answers of a peer by the number of the case: a list of times, or why there is none."""
    lines = "".join(f"{number}\t{write(case.text)}\t{case.zone}\t{case.after}\n" for number, case in enumerate(cases)
                    if write(case.text))
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    answers = (line.split("\t") for line in done.stdout.splitlines())
    return {int(number): times if re.match("[a-z]", times) else [int(at) for at in times.split(",") if at]
            for number, times in answers}


def print_times(name, times):
    if isinstance(times, list):
        times = " ".join(map(write_time, times)) or "none"
    print(f"  {name:12} {times}")


def compare(peer, table, cases, answers, dibs):
    """Counts the answers by column, and prints what has no reason that this peer may have."""
    allowed = {column for column in COLUMNS[1:-1] if table[column]} | WRONG[peer]
    sums = Counter()
    for number, theirs in answers.items():
        case, ours = cases[number], dibs.ask(cases[number])
        reasons = explain(case, ours, theirs, dibs.ask) if ours != theirs else {"same"}
        if ours != theirs and not reasons or not reasons <= allowed | {"same"}:
            print(f"no reason: '{case.text}' in {case.zone} after {write_time(case.after)} {' '.join(sorted(reasons))}")
            print_times("dibs", ours)
            print_times(peer, theirs)
            reasons = {"no reason"}
        sums.update({"wrong" if reason in WRONG[peer] else reason for reason in reasons})
    print(f"{peer:12} {len(answers):6}" + "".join(f"{sums[column]:10}" for column in (*COLUMNS, "no reason")))
    return sums["no reason"]


def main():
    build = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(os.environ.get("SEED") or time.time())
    os.environ.pop("TZDIR", None)  # for dibs alone there could be other zones
    dibs = Dibs(os.environ.get("DIBS_BIN") or os.path.join(build, "dibs"))
    table, ready, unexplained = read_table(), {}, 0
    for peer, (install, command, write) in PEERS.items():
        version, row = table[peer]
        folder = os.path.join(build, "cron-peers", f"{peer.split('/')[0]}-{version}")
        why = install(folder, version)
        if why:
            print(f"{peer} is left out: {why}", file=sys.stderr)
        else:
            ready[peer] = ([os.path.join(folder, command[0]), *command[1:]], write, row)
    if not ready:
        return 77
    cases, never = make_cases(seed, count, dibs)
    print(f"SEED={seed}: {count} expressions; {never} more never fire")
    print(f"{'':12} {'asked':>6}" + "".join(f"{column:>10}" for column in (*COLUMNS, "no reason")))
    for peer, (command, write, row) in ready.items():
        unexplained += compare(peer, row, cases, ask_peer(command, write, cases), dibs)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
