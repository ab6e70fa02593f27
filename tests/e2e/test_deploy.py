"""examples/deploy: the files are well-formed, and the servers that they describe hold locks.

Servers are started with the very configurations, on free loopback ports; nothing is fetched.
"""
# SPDX-License-Identifier: MIT
import os
import re
import shutil
import socket
import subprocess
import unittest

import yaml
from support import ROOT, Case, main, wait_until

DEPLOY = os.path.join(ROOT, "examples", "deploy")
KINDS = ("sentinel", "cluster", "redlock")


def read(*parts):
    with open(os.path.join(DEPLOY, *parts), encoding="utf-8") as file:
        return file.read()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def ask(port, *words):
    return subprocess.run(
        ["redis-cli", "-p", str(port), *words], capture_output=True, text=True, check=False
    ).stdout


class Files(unittest.TestCase):
    def test_compose_files_name_what_they_have(self):
        for kind in KINDS:
            services = yaml.safe_load(read(kind, "compose.yaml"))["services"]
            for name, service in services.items():
                self.assertIn("image", service, (kind, name))
                for other in service.get("depends_on", []):
                    self.assertIn(other, services, (kind, name))
                for volume in service.get("volumes", []):
                    source = volume.split(":")[0]
                    if source.startswith("./"):
                        self.assertTrue(os.path.exists(os.path.join(DEPLOY, kind, source)), source)
            url = services["job"]["environment"]["DIBS_URL"]
            for host in re.search(r"//([^/?]*)", url)[1].split(","):
                self.assertTrue(host in services or host.startswith("172."), (kind, host))

    def test_values_ask_for_what_locks_need(self):
        texts = {
            "sentinel": lambda v: v["commonConfiguration"],
            "cluster": lambda v: v["redis"]["configmap"],
            "redlock": lambda v: v["commonConfiguration"],
        }
        for kind in KINDS:
            lines = texts[kind](yaml.safe_load(read(kind, "values.yaml"))).split("\n")
            conf = read(kind, "redis.conf").split("\n")
            self.assertIn("maxmemory-policy noeviction", lines, kind)
            for line in lines:
                self.assertIn(line, conf, kind)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd")
    def test_units_are_well_formed(self):
        folder = os.path.join(DEPLOY, "systemd")
        units = sorted(os.listdir(folder))
        self.assertIn("nightly.service", units)
        result = subprocess.run(
            ["systemd-analyze", "verify", *(os.path.join(folder, unit) for unit in units)],
            capture_output=True, text=True, check=False,
        )
        # What is not installed here, and units of the system that are not there, say nothing of these.
        bad = [
            line for line in result.stderr.splitlines()
            if os.path.basename(line.split(":")[0]) in units
            and not re.search(r"is not executable|Failed to (open|load)|not found", line)
        ]
        self.assertEqual(bad, [])


@unittest.skipUnless(shutil.which("redis-server"), "needs redis-server")
class Servers(Case):
    def start(self, *words):
        """A server in a folder of its own, ended with the test."""
        folder = self.path(f"server-{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        process = subprocess.Popen(
            list(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self.addCleanup(self.finish, process)

    def server(self, kind, *more):
        port = free_port()
        self.start("redis-server", os.path.join(DEPLOY, kind, "redis.conf"),
                   "--bind", "127.0.0.1", "--port", str(port), *more)
        wait_until(lambda: ask(port, "PING").startswith("PONG"), f"a server on {port}")
        return port

    def sentinel(self, primary):
        port = free_port()
        text = read("sentinel", "sentinel.conf").replace("redis-1 6379", f"127.0.0.1 {primary}")
        self.assertIn(f" {primary} ", text)
        path = self.write(f"sentinel-{port}.conf", text + f"\nbind 127.0.0.1\nport {port}\n")
        self.start("redis-server", path, "--sentinel")
        wait_until(lambda: ask(port, "PING").startswith("PONG"), f"a sentinel on {port}")
        return port

    def holds_locks(self, url, *options):
        self.env["DIBS_URL"] = url
        wait_until(
            lambda: self.dibs("run", "first", "-n", "--ttl", "5s", *options, "--", "true").returncode == 0,
            "the first lock at " + url,
        )
        token = self.acquire("nightly", "--ttl", "30s", *options)
        self.fails(75, "run", "nightly", "-n", *options, "--", "true")
        self.ok("release", "nightly", "--token", token)
        found = self.ok("doctor")
        self.assertNotIn("danger", found)
        return found

    def test_sentinel(self):
        primary = self.server("sentinel")
        replicas = [self.server("sentinel", "--replicaof", "127.0.0.1", str(primary)) for _ in range(2)]
        sentinels = ",".join(f"127.0.0.1:{self.sentinel(primary)}" for _ in range(3))
        for port in replicas:
            wait_until(lambda port=port: "master_link_status:up" in ask(port, "INFO", "replication"), "a replica")
        found = self.holds_locks(f"redis-sentinel://{sentinels}/mymaster", "--durability", "wait:1")
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always$")

    def test_cluster(self):
        ports = [self.server("cluster", "--cluster-port", str(free_port())) for _ in range(3)]
        # With one replica for each master as in the example, six servers; here the masters alone, which
        # therefore must not wait for replicas.
        bus = [ask(port, "CONFIG", "GET", "cluster-port").split()[1] for port in ports]
        for i, port in enumerate(ports):
            ask(port, "CONFIG", "SET", "min-replicas-to-write", "0")
            ask(port, "CLUSTER", "ADDSLOTSRANGE", str(i * 16384 // 3), str((i + 1) * 16384 // 3 - 1))
            ask(port, "CLUSTER", "SET-CONFIG-EPOCH", str(i + 1))
            ask(port, "CLUSTER", "MEET", "127.0.0.1", str(ports[0]), bus[0])
        for port in ports:
            wait_until(lambda port=port: "cluster_slots_ok:16384" in ask(port, "CLUSTER", "INFO"), "a cluster")
        found = self.holds_locks("redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports))
        self.assertRegex(found, r"(?m)^fine +coverage:")
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always")

    def test_redlock(self):
        ports = [self.server("redlock") for _ in range(5)]
        for port in ports:
            # They have never granted anything, so that they need not sit out.
            ask(port, "HSET", "dibs:node", "run", "-", "durable", "1")
        found = self.holds_locks(
            "redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports) + "?longest_ttl=60s"
        )
        self.assertRegex(found, r"(?m)^fine +quorum: 5 of 5 nodes vote")


if __name__ == "__main__":
    main()
