"""A deployment of examples/deploy as processes on loopback: its own commands and configurations, no container."""
# SPDX-License-Identifier: MIT
import os
import re
import subprocess

import yaml
from runtools import PATIENCE, ROOT, free_base, span, wait_until

DEPLOY = os.path.join(ROOT, "examples", "deploy")
PORT = r"(?:6379|26379)"  # of a server or a sentinel, as the files have it


def read(*parts):
    with open(os.path.join(DEPLOY, *parts), encoding="utf-8") as file:
        return file.read()


class Server:
    """A service of the compose file: a process at an address that stands for its machine."""

    def __init__(self, name, service, machine, port):
        self.name, self.service, self.machine, self.port = name, service, machine, port
        self.host = f"127.0.0.{machine}"
        networks = service.get("networks")
        self.known_as = networks["redis"]["ipv4_address"] if isinstance(networks, dict) else name
        self.process = None

    def ask(self, *words):
        """What redis-cli prints."""
        return subprocess.run(
            ["redis-cli", "-h", self.host, "-p", str(self.port), *words], capture_output=True, text=True, check=False
        ).stdout


class Deployment:
    """The servers of one folder. `machine_of` gives the number of a service's machine, from 1 on."""

    def __init__(self, case, kind, machine_of):
        self.case, self.kind = case, kind
        self.compose = yaml.safe_load(read(kind, "compose.yaml"))
        services = {n: s for n, s in self.compose["services"].items() if re.fullmatch(r"(redis|sentinel)(-\d+)?", n)}
        # A port for each server, and one more for the bus of a cluster.
        base = free_base(2 * len(services))
        self.servers = [
            Server(name, service, machine_of(name), base + 1 + i)
            for i, (name, service) in enumerate(services.items())
        ]
        self.bus = len(services)

    def here(self, text, with_port=False):
        """The text with the addresses of this machine; `with_port`: also where the file leaves a port to the default."""
        for server in self.servers:
            name = re.escape(server.known_as)
            text = re.sub(
                # Neither a part of a path nor the scheme of a URL.
                rf"(?<![\w.-])(?<![^/]/){name}(?!://)(?:([: \0]){PORT})?(?![\w.-])",
                lambda m, s=server: s.host + (
                    m[1] + str(s.port) if m[1] else f":{s.port}" if with_port else ""
                ),
                text,
            )
        return text

    def words(self, service, folder):
        """The command line of a service, with the folder for what a container would have mounted."""
        line = self.here("\0".join(service.get("entrypoint") or service["command"])).replace("$$", "$")
        return line.replace("/etc/redis/", folder + "/etc/").replace("/data/", folder + "/").split("\0")

    def start(self, server):
        """Starts a server, with what it has kept if it ran before."""
        folder = self.case.path(server.name)
        os.makedirs(os.path.join(folder, "etc"), exist_ok=True)
        # A server of a cluster learns the address of another from where its connection comes.
        place = ["--bind", server.host, "--bind-source-addr", server.host, "--port", str(server.port)]
        words = self.words(server.service, folder)
        for name in os.listdir(os.path.join(DEPLOY, self.kind)):
            if name.endswith(".conf"):
                self.case.write(f"{server.name}/etc/{name}", self.here(read(self.kind, name)))
        if server.name.startswith("sentinel"):
            with open(os.path.join(folder, "etc", "sentinel.conf"), "a", encoding="utf-8") as file:
                file.write(f"\nbind {server.host}\nport {server.port}\n")
            words = [word.replace("$(hostname)", server.host) for word in words]
        elif self.kind == "cluster":
            words += [*place, "--cluster-port", str(server.port + self.bus)]
        else:
            words += place
        server.process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self.case.addCleanup(self.case.finish, server.process)
        wait_until(lambda: server.ask("PING").startswith("PONG"), f"{server.name} at {server.host}:{server.port}")

    def start_all(self):
        for server in self.servers:
            self.start(server)

    def run(self, name):
        """Runs a service that does something once, until it succeeds, as `restart: on-failure` does."""
        service = self.compose["services"][name]
        self.case.assertEqual(service["restart"], "on-failure", name)
        # redis-cli takes the port of the bus behind an @ where it is not the usual one.
        words = [
            re.sub(r"(?<=[ \n])127\.0\.0\.\d+:(\d+)", lambda m: f"{m[0]}@{int(m[1]) + self.bus}", word)
            for word in self.words(service, self.case.folder)
        ]
        wait_until(
            lambda: subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0, name
        )

    def environment(self):
        """What the job has, for this machine."""
        found = dict(self.compose["services"]["job"]["environment"])
        found["DIBS_URL"] = self.here(found["DIBS_URL"], with_port=True)
        if found["DIBS_URL"].startswith("redlock:"):
            # As long as the default, where servers that sync each write share a slow disk.
            found["DIBS_URL"] += "&node_timeout=" + span(0.25)
        return found

    def lose(self, machine):
        """kill -9 of all that runs on a machine; it does not come back."""
        lost = [server for server in self.servers if server.machine == machine]
        for server in lost:
            server.process.kill()
        for server in lost:
            server.process.wait()
        return lost
