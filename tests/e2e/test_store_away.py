"""A store that is not up yet, or refuses for a while: waited for as the options say, and told once."""
# SPDX-License-Identifier: MIT
import shutil
import signal
import socket
import subprocess
import unittest

from runtools import NotInTime, free_base
from support import PATIENCE, Case, main, span, wait_until

AWAY = "dibs: away: waiting for the store: "
BACK = r"\Adibs: back: the store is back after [0-9.]+(ms|s|m([0-9]+s)?)\n\Z"


@unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-cli"), "Redis is not installed")
class Away(Case):
    def setUp(self):
        super().setUp()
        self.port = free_base(3) + 1
        self.env["DIBS_URL"] = f"redis://127.0.0.1:{self.port}"

    def tell(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True,
                              check=False).stdout

    def start_server(self, more=0):
        server = self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port + more), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder,
             "--logfile", self.path("redis.log")])
        self.addCleanup(self.finish, server)

    def start_told(self, *args):
        """Starts a command and waits until it has told that it waits for the store, and why."""
        process = self.start(*args)
        told = process.stderr.readline()
        self.assertTrue(told.startswith(AWAY), told)
        return process, told

    def ends_well(self, process, output):
        """It ends with this output, after one more line that has the time."""
        out, told = process.communicate()
        self.assertEqual(process.returncode, 0, told)
        self.assertEqual(out, output)
        self.assertRegex(told, BACK)

    def test_a_node_waits_for_its_store(self):
        file = self.write("jobs.yaml", "jobs: {one: {run: ['true']}}\n")
        self.fails(69, "work", file, "--once")
        for args in ([file], []):
            stopped = self.start("work", *args)
            wait_until(lambda process=stopped: "cannot join the board yet" in process.stderr.readline(), "the message")
            stopped.terminate()
            self.assertEqual(stopped.wait(PATIENCE), 0)
        node = self.start("work", file)
        wait_until(lambda: "cannot join the board yet" in node.stderr.readline(), "the message")
        self.start_server()
        wait_until(lambda: " joined " in node.stderr.readline(), "the node to join")
        self.ok("job", "start", "one", "--wait")
        node.terminate()
        self.assertEqual(node.wait(PATIENCE), 0)

    def test_a_store_that_is_not_up_yet(self):
        run, _ = self.start_told("run", "-w", "10m", "k", "--", "echo", "done")
        several, _ = self.start_told("run", "--retries", "100000", "--also", "l", "m", "--", "echo", "done")
        once, _ = self.start_told("run", "-w", "10m", "--once", "day", "n", "--", "echo", "done")
        acquire, _ = self.start_told("acquire", "-w", "10m", "--json", "o")
        ping, _ = self.start_told("ping", "--wait", "10m", "--json")
        latch, _ = self.start_told("latch", "wait", "-n", "1", "-w", "10m", "--json", "p")
        self.start_server()
        for process in (run, several, once):
            self.ends_well(process, "done\n")
        self.ok("latch", "count-down", "-n", "1", "p")
        for process in (acquire, ping, latch):
            out, told = process.communicate()
            self.assertEqual(process.returncode, 0, told)
            self.assertIn('"schema":1', out)
            self.assertRegex(told, BACK)
        self.assertEqual(self.show("k"), None)
        self.assertEqual(self.dibs("run", "-n", "--once", "day", "n", "--", "echo", "again").stdout, "")

    def test_a_connection_string_that_does_not_abort(self):
        self.env["DIBS_URL"] = f"127.0.0.1:{self.port},abortConnect=True"
        self.assertEqual(self.fails(69, "run", "k", "--", "echo", "done").count("\n"), 1)
        self.env["DIBS_URL"] = f"127.0.0.1:{self.port},abortConnect=False"
        self.assertEqual(self.fails(69, "run", "-n", "k", "--", "echo", "done").count("\n"), 1)
        run, _ = self.start_told("run", "k", "--", "echo", "done")
        self.start_server()
        self.ends_well(run, "done\n")

    def test_a_server_that_lacks_replicas(self):
        self.start_server()
        wait_until(lambda: self.tell("CONFIG", "SET", "min-replicas-to-write", "1") == "OK\n", "the server")
        run, told = self.start_told("run", "-w", "10m", "k", "--", "echo", "done")
        self.assertIn("too few replicas", told)
        self.tell("CONFIG", "SET", "min-replicas-to-write", "0")
        self.ends_well(run, "done\n")

    def test_a_new_quorum(self):
        """Its nodes vote when the longest ttl has passed."""
        longest = span(2)
        hosts = ",".join(f"127.0.0.1:{self.port + i}" for i in range(3))
        self.env["DIBS_URL"] = f"redlock://{hosts}?longest_ttl={longest}"
        run, told = self.start_told("run", "-w", "10m", "--ttl", longest, "k", "--", "echo", "done")
        self.assertIn("no majority", told)
        for i in range(3):
            self.start_server(i)
        self.ends_well(run, "done\n")

    def test_output_is_followed_when_the_store_is_back(self):
        self.start_server()
        wait_until(lambda: self.tell("PING") == "PONG\n", "the server")
        file = self.write("jobs.yaml", "jobs: {one: {run: [echo, it is done]}}\n")
        self.ok("job", "load", file)
        run = self.ok("job", "start", "one").strip()
        follower = self.start("--store-timeout", "1s", "job", "logs", "-f", run)
        wait_until(lambda: "follow/" + run in self.tell("KEYS", "*follow/*"), "the follower's first look")
        self.server.send_signal(signal.SIGSTOP)
        told = follower.stderr.readline()
        self.server.send_signal(signal.SIGCONT)
        self.assertTrue(told.startswith("dibs: "), told)
        self.ok("work", file, "--once")
        out, _ = follower.communicate()
        self.assertEqual((follower.returncode, out), (0, "it is done\n"))

    def test_a_dry_run(self):
        for policy, why in (("open", "without a lock"), ("local", "with locks of this machine")):
            run = "run", "--dry-run", "--on-unavailable", policy
            self.assertIn("lock: k was not seen\n", self.ok(*run, "k", "--", "true"))
            told = self.json(*run, "--json", "k", "--", "true")
            self.assertEqual((told["would"], told["why"]), ("start", f"the store is away: {why}"))
            self.fails(127, *run, "k", "--", "./nothing-here")
            self.fails(69, *run, "--once", "day", "k", "--", "true")
        self.fails(69, "run", "--dry-run", "k", "--", "true")

    def test_a_wait_that_ends_first(self):
        for options in (["-w", "300ms"], ["--retries", "3"], ["-w", "300ms", "--also", "l"]):
            told = self.fails(69, "run", *options, "k", "--", "true").splitlines()
            self.assertLessEqual(len(told), 2, told)
            self.assertIn("cannot connect", told[-1])
        self.assertIn("cannot connect", self.fails(69, "ping", "--wait", "300ms"))
        self.assertEqual(self.fails(69, "-q", "run", "-w", "300ms", "k", "--", "true"), "")

    def test_no_wait_is_asked_for(self):
        for args in (["run", "k", "--", "true"], ["run", "-n", "k", "--", "true"], ["acquire", "k"], ["ping"]):
            self.assertEqual(self.fails(69, *args).count("\n"), 1, args)

    def test_a_store_that_goes_away_is_told_once(self):
        """By what waits for a change, at once; and it goes on when the store is back."""
        self.start_server()
        wait_until(lambda: self.tell("PING") == "PONG\n", "the server")
        latch = self.start("latch", "wait", "w", "-n", "1")
        watch = self.start("state", "watch", "k", "--count", "2", "--with-version")
        leader = self.start("leader", "-l", "e")
        channels = "dibs:roster:{w}", "dibs:value:k", "dibs:value:dibs.leader/e"
        wait_until(lambda: self.tell("PUBSUB", "NUMSUB", *channels).split()[1::2] == ["1"] * 3, "all to listen")
        # That there is no value is the first of the two; else what it sees first may be the one that is set below.
        self.assertTrue(watch.stdout.readline().startswith("0"))
        self.finish(self.server)
        for process in (latch, watch, leader):
            self.assertIn("and will try again: ", process.stderr.readline())
        self.start_server()
        wait_until(lambda: self.tell("PING") == "PONG\n", "the server")
        self.ok("state", "set", "k", "v")
        self.ok("latch", "count-down", "w", "-n", "1")
        for process in (latch, watch):
            self.assertEqual((process.wait(), process.stderr.read()), (0, ""))
        leader.terminate()
        leader.wait()
        self.assertEqual(leader.stderr.read(), "")

    def test_a_signal_ends_the_wait(self):
        run, _ = self.start_told("run", "-w", "10m", "k", "--", "true")
        run.terminate()
        self.assertEqual(run.wait(), -15)

    def test_a_signal_during_an_open_that_fails(self):
        """The command dies of it, as it would with a store that answers."""
        self.env["DIBS_STORE_TIMEOUT"] = span(1)
        for verb in (["run", "k", "--", "true"], ["elect", "--once", "k", "--", "true"], ["join", "k", "--", "true"],
                     ["queue", "run", "k", "--", "true"], ["breaker", "run", "k", "--", "true"], ["acquire", "k"],
                     ["barrier", "k", "-n", "2"], ["watch"], ["wait", "k"], ["job", "resume", "1", "b", "--", "true"]):
            with self.subTest(verb), socket.create_server(("127.0.0.1", self.port)) as server:
                process = self.start(*verb)
                server.settimeout(PATIENCE)
                silent = server.accept()[0]
                process.terminate()
                code = process.wait(PATIENCE)
                if code == 0:
                    raise NotInTime(f"{verb} had begun without a store before it was told to end")
                self.assertEqual(code, -signal.SIGTERM, process.stderr.read())
                silent.close()


if __name__ == "__main__":
    main()
