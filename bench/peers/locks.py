#!/usr/bin/env python3
"""locks.py - one figure of the lock of redis-py on a Redis server of this machine.

  python3 locks.py redis-py WORK COUNT PORT

bench/peers/locks.mjs says what WORK is. The lockers are threads with one client, whose pool has a
connection for each. PYTHONPATH is where bench/peers_locks.sh has installed the peer.
"""
# SPDX-License-Identifier: MIT
import sys
import threading
import time

import redis

TTL = 30  # seconds
WARM = 500
WARM_TURNS = 16
CREW = 64
WAITERS = 8
HOLD = 0.005  # seconds
PREFIX = f"peer-{time.monotonic_ns()}"


def ensure(is_so, text):
    if not is_so:
        raise SystemExit(f"redis-py: {text}")


def lock_new(client, name):
    return client.lock(f"{PREFIX}-{name}", timeout=TTL)


def do_pair(lock):
    ensure(lock.acquire() is True, "no lock")
    lock.release()  # raises an exception where the lock was lost


def prove_lock(client):
    """A lock is at the server, excludes another locker, and is gone when it was released."""
    lock = lock_new(client, "proof")
    ensure(lock.acquire() is True, "no lock")
    ensure(client.exists(lock.name), "the server does not have the lock")
    ensure(not lock_new(client, "proof").acquire(blocking=False), "two lockers have one lock")
    lock.release()
    ensure(not client.exists(lock.name), "the server still has a lock that was released")


def run_threads(function, arguments):
    failures = []

    def guarded(argument):
        try:
            function(argument)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(a,), daemon=True) for a in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not failures:
            thread.join(0.1)
    ensure(not failures, failures)


def quantile(times_ns, part):
    times_ns = sorted(times_ns)
    return f"{times_ns[min(len(times_ns) - 1, int(len(times_ns) * part))] / 1e3:.1f}"


def measure_pair(client, count):
    lock, times = lock_new(client, "one"), []
    for _ in range(WARM + count):
        begin = time.monotonic_ns()
        do_pair(lock)
        times.append(time.monotonic_ns() - begin)
    return quantile(times[WARM:], 0.5)


def measure_crew(client, count):
    each = -(-count // CREW)
    locks = [lock_new(client, number) for number in range(CREW)]

    def pairs(many):
        run_threads(lambda lock: [do_pair(lock) for _ in range(many)], locks)

    pairs(each // 4 + 1)
    begin = time.monotonic()
    pairs(each)
    return f"{CREW * each / (time.monotonic() - begin):.0f}"


class Turns:
    """What the lockers of a hand-off share. The condition is notified at each grant."""

    def __init__(self, total):
        self.total, self.times, self.grants = total, [], 0
        self.released = None
        self.held = threading.Lock()
        self.granted = threading.Condition()

    def take(self, lock):
        while len(self.times) < self.total:
            ensure(lock.acquire() is True, "no lock")
            at = time.monotonic_ns()
            ensure(self.held.acquire(blocking=False), "two lockers have one lock")
            with self.granted:
                if self.released:
                    self.times.append(at - self.released)
                self.grants += 1
                mine = self.grants
                self.granted.notify_all()
            time.sleep(HOLD)
            self.held.release()
            self.released = time.monotonic_ns()
            lock.release()
            with self.granted:
                self.granted.wait_for(lambda: self.grants > mine or len(self.times) >= self.total)


def measure_handoff(client, count):
    turns = Turns(WARM_TURNS + count)
    run_threads(turns.take, [lock_new(client, "turn") for _ in range(WAITERS)])
    times = turns.times[WARM_TURNS:WARM_TURNS + count]
    return f"{quantile(times, 0.5)} {quantile(times, 0.99)}"


def main():
    _, work, count, port = sys.argv[1:]
    client = redis.Redis(host="127.0.0.1", port=int(port), max_connections=CREW)
    works = {"pair": measure_pair, "crew": measure_crew, "handoff": measure_handoff}
    prove_lock(client)
    print(works[work](client, int(count)))


if __name__ == "__main__":
    main()
