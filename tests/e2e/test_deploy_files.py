"""examples/deploy and the Dockerfile, where there is nobody to run them: what they name is there, what they say is read.

Scripts and commands run as processes of this machine; images, charts and manifests are linted alone.
"""
# SPDX-License-Identifier: MIT
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import unittest

import yaml
from machines import DEPLOY, read
from support import DIBS, PATIENCE, ROOT, Case, main, wait_until

SERVER = os.environ.get("DIBS_TEST_URL", "")
VALUES = {
    "redis": lambda v: v["commonConfiguration"],
    "sentinel": lambda v: v["commonConfiguration"],
    "cluster": lambda v: v["redis"]["configmap"],
    "redlock": lambda v: v["commonConfiguration"],
}
# The keys of a service, of those that the Compose Specification has.
SERVICE = {"build", "command", "depends_on", "deploy", "entrypoint", "environment", "healthcheck", "hostname", "image",
           "networks", "ports", "restart", "secrets", "volumes"}
INSTRUCTIONS = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "CMD"}


class Strict(yaml.SafeLoader):
    """Refuses a key that is given twice, of which others take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        if len(keys) != len(set(keys)):
            raise yaml.constructor.ConstructorError(None, None, "a key is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def documents(path):
    with open(path, encoding="utf-8") as file:
        # The loader is a safe one.
        return list(yaml.load_all(file, Loader=Strict))


def compose_files():
    return sorted(glob.glob(os.path.join(DEPLOY, "*", "compose.yaml")))


def manifests():
    return [doc for path in sorted(glob.glob(os.path.join(DEPLOY, "kubernetes", "*.yaml"))) for doc in documents(path)]


def pod_of(doc):
    """The specification of the pods that an object makes; None for one that makes none."""
    spec = doc.get("spec", {})
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    return template and template["spec"]


def services():
    """(file, name, service) of every compose file."""
    for path in compose_files():
        for name, service in documents(path)[0]["services"].items():
            yield path, name, service


def containers():
    for doc in manifests():
        for container in (pod_of(doc) or {}).get("containers", []):
            yield doc["kind"] + "/" + doc["metadata"]["name"], container


def command_lines():
    """(where, words) of everything that is to be run."""
    for path, name, service in services():
        for key in ("command", "entrypoint"):
            if key in service:
                yield f"{path}: {name}", service[key]
        if "healthcheck" in service:
            yield f"{path}: {name}", service["healthcheck"]["test"][1:]
    for where, container in containers():
        yield where, container["command"]
        if "exec" in container.get("readinessProbe", {}):
            yield where, container["readinessProbe"]["exec"]["command"]
    for path in glob.glob(os.path.join(DEPLOY, "systemd", "*.service")):
        for line in re.findall(r"(?m)^ExecStart=(.*)", read("systemd", os.path.basename(path))):
            yield path, shlex.split(line)
    (command,) = re.findall(r"(?m)^CMD (.*)", dockerfile())
    yield "Dockerfile", yaml.safe_load(command)


def environments():
    """(where, the variables of dibs) of everything that has some."""
    for path, name, service in services():
        yield f"{path}: {name}", service.get("environment", {})
    for where, container in containers():
        yield where, {item["name"]: item.get("value", "a-name") for item in container.get("env", [])}


def dockerfile():
    """Its instructions, one to a line."""
    with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as file:
        return re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", file.read()))


class Files(unittest.TestCase):
    def test_every_folder_is_explained(self):
        text = read("README.md")
        for name in os.listdir(DEPLOY):
            if os.path.isdir(os.path.join(DEPLOY, name)):
                self.assertIn(f"| `{name}/` |", text)

    def test_yaml_is_read(self):
        paths = glob.glob(os.path.join(DEPLOY, "*", "*.yaml"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            self.assertNotIn(None, documents(path), path)

    def test_compose_files_name_what_they_have(self):
        for path in compose_files():
            (compose,) = documents(path)
            folder = os.path.dirname(path)
            made = re.findall(r">(\S+)$", "\n".join(re.findall(r"(?m)^# .*", read(os.path.relpath(path, DEPLOY)))), re.M)
            for name, service in compose["services"].items():
                self.assertLessEqual(set(service), SERVICE, (path, name))
                self.assertIn("restart", service, (path, name))
                for other in service.get("depends_on", []):
                    self.assertIn(other, compose["services"], (path, name))
                for volume in service.get("volumes", []):
                    source = volume.split(":")[0]
                    if source.startswith("./"):
                        self.assertTrue(os.path.exists(os.path.join(folder, source)), source)
                    else:
                        self.assertIn(source, compose["volumes"], (path, name))
                for secret in service.get("secrets", []):
                    self.assertIn(os.path.basename(compose["secrets"][secret]["file"]), made, (path, name))
                if "build" in service:
                    self.assertTrue(os.path.samefile(os.path.join(folder, service["build"]), ROOT), (path, name))

    def test_servers_that_write_keep_what_they_wrote(self):
        for path, name, service in services():
            if service["image"].startswith(("redis:", "postgres:")) and service["restart"] == "unless-stopped":
                self.assertRegex(" ".join(service["volumes"]), ":/(data|var/lib/postgresql/data)$", (path, name))

    def test_urls_name_services(self):
        for path in compose_files():
            (compose,) = documents(path)
            hosts = set(compose["services"]) | {
                service["networks"]["redis"]["ipv4_address"] for service in compose["services"].values()
                if isinstance(service.get("networks"), dict)
            }
            url = compose["services"]["job"]["environment"]["DIBS_URL"]
            if url.startswith("file:"):
                url = re.search(r'"(postgres://[^"]*)"', read(os.path.relpath(path, DEPLOY)))[1]
            for host in re.search(r"//(?:[^@]*@)?([^/?]*)", url)[1].split(","):
                self.assertIn(host.split(":")[0], hosts, path)

    def test_values_ask_for_what_locks_need(self):
        for kind, text_of in VALUES.items():
            lines = text_of(documents(os.path.join(DEPLOY, kind, "values.yaml"))[0]).split("\n")
            conf = read(kind, "redis.conf").split("\n")
            self.assertIn("maxmemory-policy noeviction", lines, kind)
            for line in lines:
                self.assertIn(line, conf, kind)

    def test_values_have_a_replica_to_spare(self):
        for kind, count in (("sentinel", lambda v: v["replica"]["replicaCount"] - 1),
                            ("cluster", lambda v: v["cluster"]["replicas"])):
            (values,) = documents(os.path.join(DEPLOY, kind, "values.yaml"))
            needed = int(re.search(r"min-replicas-to-write (\d+)", VALUES[kind](values))[1])
            self.assertGreater(count(values), needed, kind)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd")
    def test_units_are_well_formed(self):
        folder = os.path.join(DEPLOY, "systemd")
        units = sorted(os.listdir(folder))
        self.assertIn("nightly.service", units)
        result = subprocess.run(
            ["systemd-analyze", "verify", *(os.path.join(folder, unit) for unit in units)],
            capture_output=True, text=True, check=False,
        )
        # Complaints about other units, and about programs that are not installed here, do not count.
        bad = [
            line for line in result.stderr.splitlines()
            if os.path.basename(line.split(":")[0]) in units
            and not re.search(r"is not executable|Failed to (open|load)|not found", line)
        ]
        self.assertEqual(bad, [])


class Manifests(unittest.TestCase):
    def test_there_are_a_server_a_job_and_a_sidecar(self):
        kinds = {doc["kind"]: doc for doc in manifests()}
        self.assertLessEqual({"StatefulSet", "Service", "CronJob", "Deployment"}, set(kinds))
        self.assertEqual(len(pod_of(kinds["Deployment"])["containers"]), 2)

    def test_objects_have_names_and_find_their_pods(self):
        labels = [doc["spec"]["template"]["metadata"]["labels"] for doc in manifests()
                  if doc["kind"] in ("StatefulSet", "Deployment")]
        for doc in manifests():
            self.assertRegex(doc["metadata"]["name"], r"^[a-z]([a-z0-9-]*[a-z0-9])?$")
            self.assertRegex(doc["apiVersion"], r"^(v1|apps/v1|batch/v1)$")
            selector = doc.get("spec", {}).get("selector")
            if selector:
                self.assertIn(selector.get("matchLabels", selector), labels, doc["metadata"])

    def test_what_is_mounted_is_there(self):
        conf = {doc["metadata"]["name"] for doc in manifests() if doc["kind"] == "ConfigMap"}
        for doc in manifests():
            pod = pod_of(doc)
            if not pod:
                continue
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            volumes.update({claim["metadata"]["name"]: {} for claim in doc["spec"].get("volumeClaimTemplates", [])})
            mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
            self.assertEqual(mounted, set(volumes), doc["metadata"])
            for volume in volumes.values():
                if "configMap" in volume:
                    self.assertIn(volume["configMap"]["name"], conf)
                if "secret" in volume:
                    self.assertIn("create secret generic " + volume["secret"]["secretName"],
                                  read("kubernetes", "redis.yaml"))

    def test_nothing_has_more_rights_than_it_needs(self):
        for doc in manifests():
            pod = pod_of(doc)
            if not pod:
                continue
            self.assertTrue(pod["securityContext"]["runAsNonRoot"], doc["metadata"])
            self.assertFalse(pod["automountServiceAccountToken"], doc["metadata"])
            for container in pod["containers"]:
                rights = container["securityContext"]
                self.assertFalse(rights["allowPrivilegeEscalation"], container["name"])
                self.assertTrue(rights["readOnlyRootFilesystem"], container["name"])
                self.assertEqual(rights["capabilities"], {"drop": ["ALL"]}, container["name"])
                self.assertIn("requests", container["resources"], container["name"])

    def test_the_user_is_that_of_the_image(self):
        (user,) = re.findall(r"(?m)^USER (\d+)$", dockerfile())
        for where, container in containers():
            if container["image"].startswith("dibs:"):
                pods = [pod_of(doc) for doc in manifests() if f"{doc['kind']}/{doc['metadata']['name']}" == where]
                self.assertEqual([pod["securityContext"]["runAsUser"] for pod in pods], [int(user)], where)


class Image(unittest.TestCase):
    def setUp(self):
        self.stages = re.split(r"(?m)^(?=FROM )", dockerfile().strip())[1:]

    def test_it_is_made_in_two_stages_of_known_instructions(self):
        self.assertEqual(len(self.stages), 2)
        for line in filter(None, "\n".join(self.stages).split("\n")):
            self.assertIn(line.split()[0], INSTRUCTIONS, line)
        for stage in self.stages:
            self.assertRegex(stage, r"^FROM [a-z]+:[a-z-]+( AS [a-z]+)?\n")

    def test_it_is_small_and_not_roots(self):
        last = self.stages[-1]
        for word in ("--no-install-recommends", "rm -rf /var/lib/apt/lists"):
            self.assertIn(word, last)
        self.assertNotRegex(last, r"-dev\b|\bgcc\b|\bcmake\b")
        (user,) = re.findall(r"(?m)^USER (\d+)$", last)
        self.assertIn(f"--uid {user}", last)
        self.assertNotEqual(int(user), 0)

    def test_what_is_copied_is_there(self):
        for line in re.findall(r"(?m)^COPY (.*)", self.stages[0]):
            for source in line.split()[:-1]:
                self.assertTrue(os.path.exists(os.path.join(ROOT, source)), line)
        # The script needs those that it calls, too.
        with open(os.path.join(ROOT, "tools", "install-packages.sh"), encoding="utf-8") as file:
            for name in re.findall(r"\$tools/([\w.-]+)", file.read()):
                self.assertRegex(self.stages[0], rf"(?m)^COPY .*\btools/{re.escape(name)} .*tools/$")
        (target, prefix) = re.search(r"make install DESTDIR=(\S+) PREFIX=(\S+)", self.stages[0]).groups()
        (source, _) = re.search(r"COPY --from=build (\S+) (\S+)", self.stages[1]).groups()
        self.assertEqual(source, f"{target}{prefix}/bin/dibs")

    def test_what_is_left_out_is_not_needed(self):
        with open(os.path.join(ROOT, ".dockerignore"), encoding="utf-8") as file:
            left_out = file.read().split()
        self.assertLessEqual({".git", "build", "examples/deploy"}, set(left_out))
        for source in ("src", "include", "cmake", "docs", "tools", "Makefile", "CMakeLists.txt", "CMakePresets.json"):
            self.assertNotIn(source, left_out)
            self.assertTrue(os.path.exists(os.path.join(ROOT, source)), source)

    def test_it_has_the_libraries_that_dibs_loads(self):
        with open(DIBS, "rb") as file:
            names = {name.decode() for name in re.findall(rb"\0(lib[a-z0-9-]+\.so\.[0-9.]+)\0", file.read())}
        names.discard("libc.so.6")
        self.assertGreaterEqual(len(names), 4)
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        with open(os.path.join(ROOT, "tools", "packages.txt"), encoding="utf-8") as file:
            alternatives = [set(re.split(r"\s*\|\s*", line.strip())) for line in file]
        wanted = set(re.search(r"--no-install-recommends (.*?) &&", self.stages[1])[1].split())
        for name in names:
            path = re.search(rf"^\t{re.escape(name)} .*=> (\S+)", cache, re.M)[1]
            found = subprocess.run(["dpkg-query", "-S", os.path.realpath(path)], capture_output=True, text=True, check=False)
            package = found.stdout.split(":")[0]
            same = next((names for names in alternatives if package in names), {package})
            self.assertTrue(same & wanted, (name, package))


class Commands(Case):
    def test_programs_are_there(self):
        ours = os.path.dirname(DIBS)
        for where, words in command_lines():
            found = shutil.which(words[0], path=ours + os.pathsep + os.environ["PATH"])
            self.assertTrue(found, (where, words[0]))

    def test_options_are_read(self):
        count = 0
        for where, words in command_lines():
            if words[0] != "dibs":
                continue
            words = words[1:]
            if "--" in words:
                words = [*words[:words.index("--")], "--", "true"]
            result = self.dibs(*words)
            self.assertEqual(result.returncode, 0, (where, words, result.stderr))
            count += 1
        self.assertGreater(count, 7)

    def test_settings_are_read(self):
        for where, variables in environments():
            ours = {name: value for name, value in variables.items() if name.startswith("DIBS_")}
            url = ours.get("DIBS_URL", "")
            if url.startswith("file:"):
                self.write("store-url", "postgres://dibs:secret@127.0.0.1:1/dibs\n")
                ours["DIBS_URL"] = "file:" + self.path("store-url")
            shown = self.ok("config", env={**self.env, **ours})
            for name in ours:
                self.assertRegex(shown, rf"(?m) {name}(, file:.*)?$", where)

    def test_urls_are_read(self):
        """A store that is away is away, and its URL is none that is wrong."""
        self.write("password", "secret\n")
        for where, variables in environments():
            url = variables.get("DIBS_URL", "")
            if url and not url.startswith("file:"):
                hosts = re.search(r"//([^/?]*)", url)[1]
                here = ",".join(f"127.0.0.1:{port}" for port, _ in enumerate(hosts.split(","), 1))
                url = url.replace(hosts, here, 1).replace("/etc/dibs/password", self.path("password"))
                result = self.dibs("--url", url, "ping", "--store-timeout", "200ms")
                self.assertIn(result.returncode, (69,), (where, url, result.stderr))

    def test_the_url_of_postgres_is_read_from_its_file(self):
        lines = re.findall(r"(?m)^#   (.*)", read("postgres", "compose.yaml"))
        self.assertEqual(len(lines), 2)
        subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=self.folder, check=True)
        shown = self.ok("config", env={**self.env, "DIBS_URL": "file:" + self.path("store-url")})
        self.assertNotIn(self.text("password").strip(), shown)
        self.assertRegex(self.text("store-url"), r"^postgres://dibs:[0-9a-f]{32}@postgres/dibs\n$")


class Scripts(Case):
    """The shell of the manifests, on this machine."""

    def script(self, kind, container, folder):
        (words,) = [
            item["command"] for doc in manifests() if doc["kind"] == kind
            for item in pod_of(doc)["containers"] if item["name"] == container
        ]
        self.assertEqual(words[:2], ["sh", "-c"])
        for path in ("/lock", "/etc/redis", "/etc/dibs"):
            words = [word.replace(path, folder) for word in words]
        env = {**self.env, "PATH": os.path.dirname(DIBS) + os.pathsep + self.env["PATH"]}
        process = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """With all that it has started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def fence(self, pod):
        return int(self.text(pod + "/fence") or 0)

    def test_a_sidecar_has_the_lock_for_the_program_beside_it(self):
        pods = ("pod-1", "pod-2")
        for pod in pods:
            os.mkdir(self.path(pod))
            # Left by a container that was killed.
            self.write(pod + "/fence", "1\n")
        sidecars = {pod: self.script("Deployment", "dibs", self.path(pod)) for pod in pods}
        wait_until(lambda: any(self.fence(pod) > 1 for pod in pods) and self.waiters("report") == 1, "a holder")
        (holder,) = [pod for pod in pods if self.fence(pod) > 1]
        (other,) = [pod for pod in pods if pod != holder]
        self.assertEqual(self.fence(other), 0)
        before = self.fence(holder)

        sidecars[holder].send_signal(signal.SIGTERM)
        self.assertEqual(sidecars[holder].wait(PATIENCE), 0)
        self.assertEqual(self.fence(holder), 0)
        wait_until(lambda: self.fence(other) > before, "the next holder")

        # A lease that is lost takes the file with it, and is waited for anew.
        before = self.fence(other)
        next_one = self.start("run", "report", "--", "sh", "-c", "echo held; exec cat", stdin=subprocess.PIPE)
        wait_until(lambda: self.waiters("report") == 1, "a waiter")
        self.break_lock("report")
        self.assertEqual(next_one.stdout.readline(), "held\n")
        wait_until(lambda: self.fence(other) == 0, "the file to be gone")
        self.let_go(next_one)
        wait_until(lambda: self.fence(other) > before, "the lock again")

    @unittest.skipUnless(shutil.which("redis-server"), "needs redis-server")
    def test_the_server_of_kubernetes_wants_its_password(self):
        (conf,) = [doc["data"]["redis.conf"] for doc in manifests() if doc["kind"] == "ConfigMap"]
        self.write("redis.conf", conf + f"port 0\nunixsocket {self.path('socket')}\n")
        self.write("password", "secret\n")
        process = self.script("StatefulSet", "redis", self.folder)
        url = f"redis+unix://{self.path('socket')}"
        wait_until(lambda: self.dibs("--url", f"{url}?password_file={self.path('password')}", "ping").returncode == 0,
                   "the server")
        self.assertEqual(self.dibs("--url", url, "ping").returncode, 77)
        found = self.ok("--url", f"{url}?password_file={self.path('password')}", "doctor")
        self.assertRegex(found, r"(?m)^fine +persistence: append-only file, always$")
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            self.assertNotIn(b"secret", file.read())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)


@unittest.skipUnless(SERVER.startswith("postgres"), "on a PostgreSQL server")
class Postgres(Case):
    def test_the_services_do_what_they_say(self):
        """init makes the schema, and again is no error; then the job runs."""
        self.env["DIBS_URL"] = f"{SERVER}{'&' if '?' in SERVER else '?'}schema=deployed"
        lines = {name: service["command"] for path, name, service in services()
                 if os.path.dirname(path).endswith("postgres") and "command" in service}
        self.fails(78, *lines["job"][1:-3], "true")
        for _ in range(2):
            self.ok(*lines["init"][1:])
        self.ok(*lines["job"][1:-3], "true")


if __name__ == "__main__":
    main()
