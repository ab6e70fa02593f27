"""examples/deploy: the servers that the files describe hold locks, and survive the loss of a machine.

Servers run the very commands and configurations, on loopback addresses and free ports; nothing is fetched.
"""
# SPDX-License-Identifier: MIT
import shutil
import time
import unittest

from machines import Deployment
from runtools import PACE
from support import Case, in_time, main, wait_until

# So many that each master of a cluster serves some.
NAMES = [f"name-{i}" for i in range(12)]
HELD_S = 60  # the longest that a quorum allows


def machine(name):
    return int(name.split("-")[1])


@unittest.skipUnless(shutil.which("redis-server"), "needs redis-server")
class Machines(Case):
    def takes(self, name):
        ttl_s = min(5 * PACE, HELD_S)
        return self.dibs("run", name, "-n", "--ttl", f"{round(1000 * ttl_s)}ms", "--", "true").returncode == 0

    def begin(self, deployment):
        """The job's environment; then every name can be had, and one is held."""
        self.env.update(deployment.environment())
        for name in NAMES:
            wait_until(lambda name=name: self.takes(name), "the first lock of " + name)
        self.began = time.monotonic()
        token = self.acquire("nightly", "--ttl", f"{HELD_S}s")
        self.fails(75, "run", "nightly", "-n", "--", "true")
        found = self.ok("doctor")
        self.assertNotIn("danger", found)
        return token, found

    def survives(self, deployment, lost, token):
        """Without that machine every name can be had, but for the one that is held."""
        self.assertGreater(len(deployment.lose(lost)), 0)
        for name in NAMES:
            wait_until(lambda name=name: self.takes(name), f"a lock of {name} without machine {lost}")
        code = self.dibs("run", "nightly", "-n", "--", "true").returncode
        in_time(time.monotonic() - self.began, HELD_S, "the loss of a machine")
        self.assertEqual(code, 75)
        self.ok("release", "nightly", "--token", token)
        wait_until(lambda: self.takes("nightly"), "the lock after its release")

    def test_sentinel(self):
        # Each machine has a server and a sentinel.
        deployment = Deployment(self, "sentinel", machine)
        deployment.start_all()
        token, found = self.begin(deployment)
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always$")
        self.assertRegex(found, r"(?m)^fine +sentinels: 3 of 3 answer")
        self.assertNotRegex(found, "(?m)^caution +(isolation|failover)")
        self.survives(deployment, 1, token)
        self.assertRegex(self.ok("doctor"), "(?m)^caution +failover: min-replicas-to-write 1")

    def all_known(self):
        found = self.ok("doctor")
        return "3 masters, 6 replicas" in found and found

    def test_cluster(self):
        # Nine servers on three machines, of which the URL names one each.
        deployment = Deployment(self, "cluster", lambda name: (machine(name) - 1) % 3 + 1)
        deployment.start_all()
        deployment.run("create")
        self.env.update(deployment.environment())
        token, _ = self.begin(deployment)
        found = wait_until(self.all_known, "all replicas to be known")
        self.assertRegex(found, r"(?m)^fine +coverage:")
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always")
        self.assertNotRegex(found, "(?m)^caution +(replicas|failover)")
        self.survives(deployment, 1, token)
        self.assertRegex(self.ok("doctor"), "(?m)^caution +failover: min-replicas-to-write 1")

    def test_redlock(self):
        deployment = Deployment(self, "redlock", machine)
        deployment.start_all()
        for server in deployment.servers:
            # They have never granted anything, so that they need not sit out.
            server.ask("HSET", "dibs:node", "run", "-", "durable", "1")
        token, found = self.begin(deployment)
        self.assertRegex(found, r"(?m)^fine +quorum: 5 of 5 nodes vote")
        self.survives(deployment, 1, token)

    def test_one_server(self):
        # A restart, which compose does by itself, forgets nothing.
        deployment = Deployment(self, "redis", lambda name: 1)
        deployment.start_all()
        token, found = self.begin(deployment)
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always$")
        (server,) = deployment.lose(1)
        self.fails(69, "run", "nightly", "-n", "--store-timeout", "1s", "--", "true")
        deployment.start(server)
        self.fails(75, "run", "nightly", "-n", "--", "true")
        self.ok("release", "nightly", "--token", token)


if __name__ == "__main__":
    main()
