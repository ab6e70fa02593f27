#!/usr/bin/env python3
"""The ground of `dibs run`: a tree that writes under a lease, while those who watch over it are stopped and killed.

    run_ground [--in PLACE] [--faults A,B] [--seconds N] [--seed N] [--lanes N] FOLDER

A scene is one holder, whose tree writes into a file, a fault, and the next holder, which writes into the same file.
What the first writes after the second has begun is a violation, and so are a lock that does not move on and a process
that is left. Every fault comes once in the first kind of place, some in the others, and then all by lot until the time
is over. The last line has the counts, for chaos.sh. A scene that went wrong leaves its folder in FOLDER.
"""
# SPDX-License-Identifier: MIT
import argparse
import concurrent.futures
import glob
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.path.insert(0, os.path.dirname(HERE))

# pylint: disable=wrong-import-position
from pace import MISSED, PACE, span  # noqa: E402
from runtools import (DIBS, LOST, NO_CGROUP, NO_PROC, PATIENCE, POWERLESS, UNAVAIL, alive, inside, may_unshare,  # noqa: E402
                      read_stat, read_text)

TREE = os.environ["RUN_GROUND_TREE"]
KINDS = ("top", "group", "session", "orphan", "successor", "hasty")
TTL_S = 1.0
MARK = "RUN_GROUND"
WATCHERS = {"dibs": "dibs", "guard": "dibs-guard", "backstop": "dibs-backstop"}

# name: whom to stop, whom to kill. All are stopped before the first is killed, so that none acts on the end of another.
FAULTS = {
    "end": ((), ()),
    "starve": (("dibs",), ()),
    "stop-dibs": (("dibs",), ()),
    "stop-guard": (("guard",), ()),
    "stop-backstop": (("backstop",), ()),
    "stop-dibs-guard": (("guard", "dibs"), ()),
    "stop-dibs-backstop": (("backstop", "dibs"), ()),
    "stop-guard-backstop": (("guard", "backstop"), ()),
    "stop-all": (("guard", "backstop", "dibs"), ()),
    "kill-dibs": ((), ("dibs",)),
    "kill-guard": ((), ("guard",)),
    "kill-backstop": ((), ("backstop",)),
    "kill-dibs-guard": (("dibs", "guard"), ("guard", "dibs")),
    "kill-dibs-backstop": (("dibs", "backstop"), ("backstop", "dibs")),
    "kill-guard-backstop": (("guard", "backstop"), ("guard", "backstop")),
    "kill-backstop-stop-dibs": (("dibs",), ("backstop",)),
    "kill-guard-stop-dibs": (("dibs",), ("guard",)),
    "kill-dibs-stop-guard": (("guard",), ("dibs",)),
    "kill-dibs-stop-backstop": (("backstop",), ("dibs",)),
    "kill-guard-stop-backstop": (("backstop",), ("guard",)),
    "kill-backstop-stop-guard": (("guard",), ("backstop",)),
    "kill-all": (("dibs", "backstop", "guard"), ("guard", "backstop", "dibs")),
}
# Nobody is left to end the tree in time.
NOT_PROMISED = ("stop-all", "kill-all")
# Those that come first where another kind of place has had all of them.
ELSEWHERE = ("stop-dibs", "stop-dibs-guard", "kill-dibs")
LOOPS = 12

# A first process that outlives dibs: with it the kernel would end all of its PID namespace.
STAY = '"$@"; code=$?; while test -e "$RUN_GROUND_STAY"; do sleep 0.02; done; exit $code'
WITH_CGROUP = "mount -t cgroup2 none /sys/fs/cgroup\n"


def staying(setup, *more):
    return ["unshare", "-m", *more, "sh", "-c", setup + STAY, "sh"]


# kind of place: [(name, the words before dibs, it may refuse)]
PLACES = {
    "here": [("here", [], False)],
    "proc": [("no cgroup", inside(NO_CGROUP), False)],
    "cgroup": [("a cgroup", inside(WITH_CGROUP), False)],
    "strange": [
        ("no /proc", inside("umount -l /proc\n" + NO_CGROUP), True),
        ("/proc on tmpfs", inside(NO_PROC + NO_CGROUP), False),
        ("/proc on tmpfs, no rights", inside(NO_PROC + NO_CGROUP) + POWERLESS, True),
        ("another's /proc", staying(NO_CGROUP, "-p", "-f"), False),
        ("another's /proc, no rights", inside(NO_CGROUP, "-p", "-f") + POWERLESS, True),
    ],
}


class Wrong(Exception):
    """A promise was broken; the text says which."""


class Late(Wrong):
    """... by what a slow machine explains."""


class Skipped(Exception):
    """The scene did not come about, for a reason that is nobody's fault."""


def marked(mark):
    """{process number: name} of all that were started with that mark and live."""
    found = {}
    word = f"{MARK}={mark}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if word not in file.read().split(b"\0"):
                    continue
        except OSError:
            continue
        if alive(entry):
            stat = read_stat(entry)
            if stat:
                found[int(entry)] = stat[0]
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def touch(path):
    with open(path, "ab"):
        pass


def reap_orphans():
    """Those that fell to this process; what it has started itself has other names. True when there were none."""
    none = True
    for path in glob.glob("/proc/self/task/*/children"):
        for pid in map(int, read_text(path).split()):
            stat = read_stat(pid)
            if stat and stat[0] in ("run_ground", "dibs-guard", "dibs-backstop"):
                none = False
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass
    return none


def await_true(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Scene:
    """One holder, one fault, the next holder."""

    def __init__(self, folder, number, fault, place, dice):
        self.name = f"{number:04d}-{fault}"
        self.fault, self.dice = fault, dice
        self.place, self.before, self.may_refuse = place
        self.home = os.path.join(folder, self.name)
        self.witness = os.path.join(self.home, "witness")
        # One for each: who is stopped in the middle of a transaction keeps others out of it.
        self.store = os.path.join(self.home, "locks.db")
        self.stay = self.witness + ".stay"
        self.holder = self.next = None
        self.stopped = []
        self.loops = []
        self.writes = self.holds = 0
        self.gap_us = None
        self.refused = False

    def start(self, role, before, *options):
        env = {k: v for k, v in os.environ.items() if not k.startswith("DIBS_")}
        env.update({"DIBS_URL": "sqlite:" + self.store, "DIBS_CONFIG": os.devnull,
                    "HOME": self.home, "XDG_STATE_HOME": self.home, MARK: f"{role}-{self.name}-{os.getpid()}",
                    "RUN_GROUND_STAY": self.stay})
        with open(self.witness + "." + role, "wb") as said:
            words = [*before, DIBS, "run", *options, "k", "--", TREE, role, self.witness]
            return subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def mark(self, role):
        return f"{role}-{self.name}-{os.getpid()}"

    def said(self, role):
        return read_text(self.witness + "." + role).strip()

    def lines(self):
        """What was written: (token, kind, microseconds). A writer may have been killed within its last line."""
        found = [line.split() for line in read_text(self.witness).splitlines()]
        return [(int(line[0]), line[1], int(line[2])) for line in found if len(line) == 3]

    def grown(self):
        return self.holder.poll() is not None or set(KINDS) <= {kind for _, kind, _ in self.lines()}

    def begin(self):
        """False: dibs has refused, and said why."""
        os.makedirs(self.home)
        touch(self.witness)
        touch(self.stay)
        self.holder = self.start("tree", self.before, "--ttl=" + span(TTL_S), "-k", "400ms")
        if not await_true(self.grown, PATIENCE):
            raise Skipped("the tree did not grow: " + self.said("tree"))
        if self.holder.poll() is None:
            return True
        if self.lines() or self.holder.returncode == LOST or not self.may_refuse and self.holder.returncode == UNAVAIL:
            raise Skipped(f"exit code {self.holder.returncode} before the fault: {self.said('tree')}")
        if not self.may_refuse or not self.said("tree"):
            raise Wrong(f"refused, exit code {self.holder.returncode}: {self.said('tree') or 'without a word'}")
        self.refused = True
        return False

    def watchers(self):
        names = marked(self.mark("tree"))
        found = {who: [pid for pid, name in names.items() if name == comm] for who, comm in WATCHERS.items()}
        if any(len(pids) != 1 for pids in found.values()):
            raise Skipped(f"who watches over it was not found: {names}")
        return {who: pids[0] for who, pids in found.items()}

    def disturb(self):
        stop, kill = FAULTS[self.fault]
        who = self.watchers()
        if self.fault == "starve":
            self.loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS)]
        time.sleep(self.dice.uniform(0, TTL_S / 2) * PACE)
        for name in stop:
            self.stopped.append(who[name])
            send(who[name], signal.SIGSTOP)
        if stop and kill:
            await_true(lambda: all((read_stat(who[name]) or "  Z")[1] in "TZX" for name in stop), PATIENCE)
        for name in kill:
            send(who[name], signal.SIGKILL)
        if self.fault == "stop-backstop":
            # The lease goes on, until the command has ended.
            time.sleep(TTL_S * PACE)
        if self.fault in ("end", "stop-backstop"):
            touch(self.witness + ".end")

    def judge(self):
        """The order of the lines in the file is the order of the writes."""
        lines = self.lines()
        tokens = [token for token, _, _ in lines]
        self.writes, self.holds = len(lines), len(set(tokens))
        newest = max(tokens)
        first = tokens.index(newest)
        late = [line for line in lines[first:] if line[0] != newest]
        if late:
            kinds = ", ".join(sorted({kind for _, kind, _ in late}))
            by_s = (late[-1][2] - lines[first][2]) / 1e6
            # More than the margin can be is not lateness.
            raise (Late if by_s < TTL_S * PACE / 5 else Wrong)(
                f"{len(late)} writes by {kinds} after the next holder began, the last {1000 * by_s:.1f} ms after it")
        self.gap_us = lines[first][2] - lines[first - 1][2]

    def play(self):
        if not self.begin():
            return
        self.next = self.start("next", [], "--ttl=" + span(10), "-w", f"{PATIENCE:.0f}s")
        self.disturb()
        try:
            code = self.next.wait(2 * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Wrong("the lock did not move on") from None
        if code != 0:
            raise Skipped(f"the next holder ended with exit code {code}: {self.said('next')}")
        self.judge()
        self.heal()
        if self.fault == "kill-all":
            return
        if not await_true(lambda: self.holder.poll() is not None, PATIENCE):
            raise Wrong("dibs did not end after it was continued")
        if not await_true(lambda: not marked(self.mark("tree")), PATIENCE):
            raise Wrong(f"left behind: {marked(self.mark('tree'))}")

    def heal(self):
        for pid in self.stopped:
            if marked(self.mark("tree")).get(pid):
                send(pid, signal.SIGCONT)
        self.stopped = []
        if os.path.exists(self.stay):
            os.remove(self.stay)

    @staticmethod
    def killed(mark):
        left = marked(mark)
        for pid in left:
            send(pid, signal.SIGKILL)
        return not left

    def clear(self, keep):
        """Ends whatever is left of it."""
        for loop in self.loops:
            loop.kill()
            loop.wait()
        self.heal()
        # A succession is faster than a search for it: it is told.
        touch(self.witness + ".stop")
        for process, role in ((self.holder, "tree"), (self.next, "next")):
            if process:
                await_true(lambda mark=self.mark(role): self.killed(mark), PATIENCE)
                process.wait()
        reap_orphans()
        if not keep:
            shutil.rmtree(self.home)


class Ground:
    """Lanes of scenes, and what they came to."""

    def __init__(self, args):
        self.args = args
        self.dice = random.Random(args.seed)
        self.guard = threading.Lock()
        self.todo = queue.Queue()
        self.number = 0
        self.count = dict.fromkeys(("operations", "holds", "faults", "violations", "not promised", "refused", "skipped",
                                    "late"), 0)
        self.gaps = []
        self.end_at = time.monotonic() + args.seconds
        self.plan = [(fault, place) for kind in args.places for place in PLACES[kind] for fault in args.faults]
        first = [item for item in self.plan
                 if args.chosen or item[1] in PLACES[args.places[0]] or item[0] in ELSEWHERE]
        self.dice.shuffle(first)
        for item in first:
            self.todo.put(item)

    def draw(self):
        with self.guard:
            try:
                item = self.todo.get_nowait()
            except queue.Empty:
                if time.monotonic() >= self.end_at:
                    return None
                item = self.dice.choice(self.plan)
            self.number += 1
            return Scene(self.args.folder, self.number, *item, random.Random(self.dice.random()))

    def note(self, scene, wrong):
        promised = scene.fault not in NOT_PROMISED
        with self.guard:
            self.count["operations"] += scene.writes
            self.count["holds"] += scene.holds
            self.count["refused"] += scene.refused
            self.count["faults"] += not scene.refused and not isinstance(wrong, Skipped)
            if scene.gap_us is not None and promised:
                self.gaps.append(scene.gap_us)
            if isinstance(wrong, Skipped):
                self.count["skipped"] += 1
            elif wrong:
                self.count["violations" if promised else "not promised"] += 1
                self.count["late"] += promised and isinstance(wrong, Late)
            if wrong:
                print(f"{scene.name} ({scene.place}): {wrong}" + ("" if promised else " (not promised)"), flush=True)

    def lane(self):
        while (scene := self.draw()) is not None:
            wrong = None
            try:
                scene.play()
            except (Wrong, Skipped) as err:
                wrong = err
            finally:
                scene.clear(isinstance(wrong, Wrong) and scene.fault not in NOT_PROMISED)
            self.note(scene, wrong)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.args.lanes) as lanes:
            for lane in [lanes.submit(self.lane) for _ in range(self.args.lanes)]:
                lane.result()
        await_true(reap_orphans, PATIENCE)
        return self.report()

    def report(self):
        count = self.count
        if self.gaps:
            print(f"the next holder began {min(self.gaps) / 1000:.1f} ms or more after the last write of the one before")
        print(f"{count['refused']} refused, {count['skipped']} did not come about")
        print(" ".join(f"{name} {count[name]}" for name in ("operations", "holds", "faults", "violations",
                                                           "not promised")), flush=True)
        if count["violations"] or not count["operations"] + count["refused"]:
            return MISSED if count["late"] and count["late"] == count["violations"] else 1
        return MISSED if count["skipped"] * 2 > self.number else 0


def possible(kind):
    """Whether a tree can be run in that kind of place."""
    if kind == "here":
        return True
    if not may_unshare():
        return False
    if kind == "cgroup":
        ready = subprocess.run([*inside(WITH_CGROUP), DIBS, "run", "-v", "--url=memory:", "k", "--", "true"],
                               capture_output=True, text=True, check=False)
        return "one kill" in ready.stderr
    return True


def default_places():
    return [kind for kind in ("proc", "cgroup", "strange") if possible(kind)] or ["here"]


def read_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in", dest="places", default="", help="kinds of places: " + ", ".join(PLACES))
    parser.add_argument("--faults", dest="chosen", default="", help="of: " + ", ".join(FAULTS))
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("folder")
    args = parser.parse_args()
    args.folder = os.path.abspath(args.folder)
    args.places = args.places.split(",") if args.places else default_places()
    args.faults = args.chosen.split(",") if args.chosen else list(FAULTS)
    for given, known in ((args.places, PLACES), (args.faults, FAULTS)):
        for name in given:
            if name not in known:
                parser.error(f"there is no {name}; there are {', '.join(known)}")
    for kind in args.places[:]:
        if not possible(kind):
            print(f"left out, for want of root or of a cgroup: {kind}")
            args.places.remove(kind)
    return args


def main():
    args = read_args()
    if not args.places:
        print("operations 0 holds 0 faults 0 violations 0 not promised 0")
        return 0
    return Ground(args).run()


if __name__ == "__main__":
    sys.exit(main())
