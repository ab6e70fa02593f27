"""What the store can tell of its locks: statistics, deadlocks, stale holders, the trail."""
# SPDX-License-Identifier: MIT
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import unittest
from urllib.parse import urlsplit

from support import DIBS, PATIENCE, Case, NotInTime, Screen, main, span, wait_until

TWO_LOCKS = os.environ.get("DIBS_TWO_LOCKS")


def may_rename():
    """A host name of its own can be had."""
    return shutil.which("unshare") and subprocess.run(
        ["unshare", "-u", "hostname", "x"], capture_output=True, check=False).returncode == 0


class Shown(Case):
    """ls, show and watch."""

    def test_metadata_and_priority(self):
        holder = self.hold("k", "--meta", "build=17", "--meta", "why=a test = yes", "--label", "me")
        waiter = self.start("run", "--priority", "3", "--meta", "n=1", "k", "--", "true")
        shown = wait_until(lambda: (lambda s: s if s["waiters"] else None)(self.show("k")), "a waiter")
        self.assertEqual(shown["holders"][0]["meta"], {"build": "17", "why": "a test = yes"})
        self.assertEqual(shown["holders"][0]["label"], "me")
        self.assertEqual((shown["waiters"][0]["meta"], shown["waiters"][0]["priority"]), ({"n": "1"}, 3))
        self.assertIsNone(shown["holders"][0]["stale"])
        text = self.ok("show", "k")
        for part in ("meta      build=17", "meta      why=a test = yes", "waiter 1", "priority  3"):
            self.assertIn(part, text)
        self.let_go(holder)
        self.assertEqual(waiter.wait(PATIENCE), 0)

    @unittest.skipUnless(may_rename(), "this user may not rename the host in a namespace")
    def test_hosts_with_long_names_differ(self):
        hosts = []
        for zone in ("1", "2"):
            name = f"ip-10-0-0-1.eu-central-{zone}.compute.internal"
            before = ["unshare", "-u", "sh", "-c", f'hostname {name}; exec "$@"', "sh"]
            holder = self.start("run", zone, "--", "sh", "-c", "echo held; exec cat", before=before, stdin=subprocess.PIPE)
            self.assertEqual(holder.stdout.readline(), "held\n")
            hosts.append(self.show(zone)["holders"][0]["host"])
            self.let_go(holder)
            result = self.dibs("elect", zone, "--", "sh", "-c", 'exec "$1" leader "$2"', "sh", DIBS, zone, before=before)
            self.assertTrue(result.stdout.startswith(hosts[-1] + ":"), result)
        self.assertEqual([host.split("~")[0] for host in hosts], ["ip-10-0-0-1.eu-central-1", "ip-10-0-0-1.eu-central-2"])
        self.assertEqual([len(host) for host in hosts], [31, 31])

    def test_waiters_in_the_order_of_service(self):
        holder = self.hold("k")
        waiters = []
        for count, priority in enumerate((0, 5, 0), 1):
            waiters.append(self.start("run", f"--priority={priority}", "k", "--", "true"))
            wait_until(lambda count=count: self.waiters("k") == count, "a waiter")
        order = [waiter["pid"] for waiter in self.show("k")["waiters"]]
        self.assertEqual(order, [waiters[i].pid for i in (1, 0, 2)])
        self.let_go(holder)
        self.assertEqual([waiter.wait(PATIENCE) for waiter in waiters], [0] * 3)

    def test_watch_tells_the_mode(self):
        holder = self.hold("k", "-p", "3", "--take", "2")
        watch = self.start("watch", "--interval", "20ms")
        self.assertRegex(watch.stdout.readline(), r"held      k  2 of 3  ")
        watch.terminate()
        watch.wait(PATIENCE)
        watch = self.start("watch", "--json", "--interval", "20ms")
        event = json.loads(watch.stdout.readline())
        self.assertEqual((event["mode"], event["permits"], event["capacity"]), ("permits", 2, 3))
        self.let_go(holder)


class Stale(Case):
    def holder(self, name):
        holders = (self.show(name) or {"holders": []})["holders"]
        if not holders:
            raise NotInTime("the lease ended before it was looked at")
        return holders[0]

    def abandon(self, name, watch=None):
        """A lease whose holder was killed, once that shows; after a watch has told of it."""
        holder = self.hold(name, "--ttl", span(9))
        if watch:
            self.assertIn(json.loads(watch.stdout.readline())["event"], ("held", "granted"))
        holder.kill()
        holder.wait(PATIENCE)
        wait_until(lambda: self.holder(name)["stale"], "the mark")

    def test_is_shown(self):
        self.ok("run", "fresh", "--", "true")
        other = self.hold("other")
        watch = self.start("watch", "--json", "--interval", "20ms", "k")
        self.abandon("k", watch)
        self.assertIn("stale: its process is gone", self.ok("ls"))
        self.assertIn("its process is gone", self.ok("show", "k"))
        self.assertEqual(self.ok("ls", "--stale", "--names"), "k\n")
        self.assertEqual([lock["name"] for lock in self.json("ls", "--stale", "--json")["locks"]], ["k"])
        self.assertEqual(len(self.ok("ls", "--stale").splitlines()), 2)
        self.assertEqual(json.loads(watch.stdout.readline())["event"], "stale")
        self.let_go(other)

    def test_break(self):
        self.assertIn("--yes is needed", self.fails(64, "break", "--stale"))
        for args in (["--force"], ["--if-token", "1"], ["--ask"]):
            self.assertIn("--stale takes", self.fails(64, "break", "--stale", "--yes", *args))
        other = self.hold("other")
        self.assertEqual(self.json("break", "--stale", "--yes", "--json")["broken"], 0)
        self.abandon("k")
        self.assertEqual(self.json("break", "--stale", "--yes", "--json", "x")["broken"], 0)
        self.assertEqual(self.json("break", "--stale", "--yes", "--json", "--reason", "swept")["broken"], 1)
        self.ok("run", "-n", "k", "--", "true")
        self.let_go(other)
        entry = self.json("trail", "--json")["trail"][-1]
        self.assertEqual((entry["action"], entry["name"], entry["reason"]), ("break-stale", "k", "swept"))

    def test_break_asks_on_a_terminal(self):
        code, shown = self.on_terminal("break", "--stale")
        self.assertEqual(code, 0, shown)
        self.assertNotIn("[y/N]", shown)
        self.abandon("k")
        code, shown = self.on_terminal("break", "--stale", answer=b"n\n")
        self.assertEqual(code, 1, shown)
        self.assertIn("its process is gone", shown)
        code, shown = self.on_terminal("break", "--stale", answer=b"y\n")
        self.assertEqual(code, 0, shown)
        self.ok("run", "-n", "k", "--", "true")

    def test_what_acquire_left_is_not(self):
        self.acquire("k", "--ttl", "2s")
        wait_until(lambda: self.holder("k")["left_ms"] < 600, "most of the lease to be over")
        self.assertEqual(self.ok("ls", "--stale", "--names"), "")


class Stats(Case):
    def test_live(self):
        holder = self.hold("k")
        waiter = self.start("run", "k", "--", "true")
        wait_until(lambda: self.waiters("k") == 1, "a waiter")
        live = self.json("stats", "--json")["live"]
        self.assertEqual([(s["name"], s["holders"], s["waiters"]) for s in live], [("k", 1, 1)])
        result = self.dibs("stats")
        self.assertRegex(result.stdout, r"NAME +HOLDERS +WAITERS +LONGEST-WAIT\nk +1 +1 +\d")
        self.assertIn("--share-stats", result.stderr)
        self.assertEqual(self.dibs("stats", "-q", "other").stdout, "")
        self.assertEqual(self.dibs("stats", "-q").stderr, "")
        self.let_go(holder)
        self.assertEqual(waiter.wait(PATIENCE), 0)

    def shared(self, name):
        found = [s for s in self.json("stats", "--json")["names"] if s["name"] == name]
        return found[0] if found else None

    def test_shared(self):
        holder = self.hold("k", "--share-stats")
        waiter = self.start("run", "--share-stats", "k", "--", "true")
        wait_until(lambda: self.waiters("k") == 1, "a waiter")
        self.env["DIBS_SHARE_STATS"] = "yes"
        self.fails(75, "run", "-n", "k", "--", "true")
        self.let_go(holder)
        self.assertEqual(waiter.wait(PATIENCE), 0)
        self.ok("run", "calm", "--", "true")
        self.acquire("calm")
        del self.env["DIBS_SHARE_STATS"]
        self.ok("run", "silent", "--", "true")

        k = wait_until(lambda: (lambda s: s if s and s["released"] == 2 else None)(self.shared("k")), "statistics")
        self.assertEqual((k["attempts"], k["acquired"], k["busy"], k["contended"]), (3, 2, 1, 2))
        self.assertEqual((k["lost"], k["failed"], k["wait"]["count"], k["hold"]["count"]), (0, 0, 2, 2))
        self.assertLessEqual(k["wait"]["p50_us"], k["wait"]["max_us"])
        self.assertTrue(0 < k["wait"]["mean_us"] < k["wait"]["max_us"], k["wait"])
        self.assertEqual(self.shared("calm")["acquired"], 2)
        self.assertIsNone(self.shared("silent"))
        lines = self.ok("stats").split("\n\n")[-1].splitlines()
        self.assertEqual(lines[0].split()[:7], "NAME ATTEMPTS ACQUIRED BUSY LOST FAILED CONTENDED".split())
        self.assertEqual(lines[1].split()[:7], "k 3 2 1 0 0 66%".split())
        self.assertEqual(lines[2].split()[0], "calm", "the most contended is first")
        self.assertEqual([s["name"] for s in self.json("stats", "--json", "ca")["names"]], ["calm"])


@unittest.skipUnless(TWO_LOCKS, "the program of the build is not there")
class Deadlocks(Case):
    def program(self, first, second):
        process = subprocess.Popen(
            [TWO_LOCKS, self.env["DIBS_URL"], self.env.get("DIBS_PREFIX", ""), first, second],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env,
        )
        self.addCleanup(self.finish, process)
        self.assertEqual(process.stdout.readline(), "first\n")
        return process

    def circle(self):
        """Two programs, each with what the other wants."""
        pair = self.program("a", "b"), self.program("b", "a")
        for process in pair:
            process.stdin.write("go\n")
            process.stdin.flush()
        wait_until(lambda: self.waiters("a") == 1 and self.waiters("b") == 1, "the deadlock")
        return pair

    def test_none(self):
        holder = self.hold("k")
        self.assertEqual(self.ok("deadlocks"), "no deadlock\n")
        self.assertEqual(self.json("deadlocks", "--json")["deadlocks"], [])
        self.let_go(holder)

    def test_a_circle_is_found_named_and_broken(self):
        watch = self.start("deadlocks", "--watch", "--interval", "20ms", "--json")
        pair = self.circle()
        # The watch has begun, and seen it, before it is broken.
        self.assertEqual(len(json.loads(watch.stdout.readline())["deadlocks"]), 1)
        links = self.json("deadlocks", "--json", code=1)["deadlocks"][0]["links"]
        self.assertEqual({(link["holds"], link["wants"]) for link in links}, {("a", "b"), ("b", "a")})
        self.assertEqual({link["fence"] for link in links},
                         {self.show(name)["holders"][0]["fence"] for name in "ab"})
        result = self.dibs("deadlocks")
        self.assertEqual(result.returncode, 1)
        for process, has, wants in ((pair[0], "a", "b"), (pair[1], "b", "a")):
            self.assertRegex(result.stdout, rf":{process.pid}\b.* holds {has} \(fence \d+\) and waits "
                                            rf"[0-9.a-z]+ for {wants}, held by ")
        self.assertEqual(self.ok("deadlocks", "other"), "no deadlock\n")

        fence = next(link["fence"] for link in links if link["holds"] == "b")
        self.ok("break", "b", "--if-token", str(fence), "--yes")
        self.assertEqual(pair[0].stdout.readline(), "second\n")
        self.assertEqual(self.ok("deadlocks"), "no deadlock\n")
        self.assertEqual(json.loads(watch.stdout.readline())["deadlocks"], [])
        watch.terminate()
        self.assertEqual(watch.wait(PATIENCE), -signal.SIGTERM)

    def nested(self, outer, inner, *between):
        """A run that holds `outer`; told to go on, its command waits for `inner` in a run of its own."""
        words = [DIBS, "run", inner, "--", "true"]
        for name in reversed(between):
            words = [DIBS, "run", name, "--", *words]
        process = self.start("run", outer, "--", "sh", "-c", 'echo held; read go; exec "$@"', "sh", *words,
                             stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    def test_nested_runs(self):
        """The only circle that the command line can make: crosswise, one of them two deep."""
        pair = self.nested("a", "b"), self.nested("b", "a", "between")
        for process in pair:
            process.stdin.write("go\n")
            process.stdin.flush()
        wait_until(lambda: self.waiters("a") == 1 and self.waiters("b") == 1, "the deadlock")
        links = self.json("deadlocks", "--json", code=1)["deadlocks"][0]["links"]
        self.assertEqual({(link["holds"], link["wants"]) for link in links}, {("a", "b"), ("b", "a")})
        self.assertEqual({link["who"].split(":")[-1] for link in links}, {str(process.pid) for process in pair})
        shown = self.show("a")
        self.assertNotIn("within", shown["holders"][0]["meta"])
        self.assertEqual(shown["waiters"][0]["meta"]["within"].split(",")[-1],
                         self.show("b")["holders"][0]["owner"][:16])
        fence = next(link["fence"] for link in links if link["holds"] == "b")
        self.ok("break", "b", "--if-fence", str(fence), "--yes")
        self.assertEqual(pair[0].wait(PATIENCE), 0)
        self.assertEqual(self.ok("deadlocks"), "no deadlock\n")

    def test_a_wait_inside_a_run_is_no_circle(self):
        holder = self.hold("b")
        process = self.nested("a", "b")
        process.stdin.write("go\n")
        process.stdin.flush()
        wait_until(lambda: self.waiters("b") == 1, "a waiter")
        self.assertEqual(self.ok("deadlocks"), "no deadlock\n")
        self.let_go(holder)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_long_metadata_leaves_no_room(self):
        """Then the lease is granted all the same."""
        long = "note=" + "x" * 190
        script = f"{DIBS} run --meta {long} inner -- {DIBS} show --json inner"
        shown = json.loads(self.ok("run", "outer", "-c", script))
        self.assertEqual(list(shown["holders"][0]["meta"]), ["note"])


class Trail(Case):
    def test_an_ask_is_in_the_trail(self):
        self.acquire("k")
        self.fails(1, "break", "--ask", "k", "--reason", "urgent")
        entry = self.json("trail", "--json")["trail"][-1]
        self.assertEqual((entry["action"], entry["name"]), ("yield", "k"))
        self.assertIn("urgent", entry["reason"])

    def test_a_break_is_kept(self):
        self.assertEqual(self.json("trail", "--json")["trail"], [])
        self.assertEqual(self.ok("trail").split(), "TIME ACTION NAME FENCE HOLDER BY REASON".split())
        fence = int(self.acquire("x", "--owner", "victim").split(":")[1])
        self.ok("break", "x", "--yes", "--force", "--reason", "it hung\nfor hours", "--owner", "operator")
        self.acquire("y")
        self.ok("break", "y", "--yes", "--force")
        trail = self.json("trail", "--json")["trail"]
        self.assertEqual([(e["action"], e["name"]) for e in trail], [("break", "x"), ("break", "y")])
        self.assertEqual((trail[0]["fence"], trail[0]["reason"], trail[1]["reason"]), (fence, "it hung\nfor hours", ""))
        self.assertIn("victim", trail[0]["holder"])
        self.assertIn("operator", trail[0]["by"])
        self.assertRegex(trail[0]["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertLess(trail[0]["position"], trail[1]["position"])
        lines = self.ok("trail", "x").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("it hung?for hours", lines[1])
        self.assertEqual(len(self.json("trail", "--json", "z")["trail"]), 0)

    def test_follow(self):
        self.acquire("x")
        self.ok("break", "x", "--yes", "--force", "--reason", "first")
        text = self.start("trail", "-f", "--interval", "20ms")
        json_lines = self.start("trail", "--follow", "--json", "--interval", "20ms")
        self.assertIn("first", text.stdout.readline())
        self.assertEqual(json.loads(json_lines.stdout.readline())["reason"], "first")
        self.acquire("x")
        self.ok("break", "x", "--yes", "--force", "--reason", "second")
        self.assertRegex(text.stdout.readline(), r"Z  break  x  fence \d+  from .*  by .*: second\n$")
        self.assertEqual(json.loads(json_lines.stdout.readline())["reason"], "second")
        text.send_signal(signal.SIGINT)
        self.assertEqual(text.wait(PATIENCE), -signal.SIGINT)


class Asking(Case):
    def test_who_does_not_listen(self):
        holder = self.hold("k", "-n")
        self.assertIn("cannot hear", self.fails(1, "break", "k", "--ask"))
        self.assertEqual(self.json("break", "k", "--ask", "--json", code=1)["asked"], 0)
        self.fails(1, "break", "nobody", "--ask")
        self.let_go(holder)

    def test_signal(self):
        script = "trap 'echo asked; exit 3' USR1; echo held; while :; do sleep 0.01; done"
        holder = self.start("run", "--on-yield=signal:USR1", "k", "--", "sh", "-c", script)
        self.assertEqual(holder.stdout.readline(), "held\n")
        fence = self.show("k")["holders"][0]["fence"]
        self.fails(1, "break", "k", "--ask", "--if-token", str(fence + 1))
        result = self.dibs("break", "k", "--ask", "--if-token", str(fence))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 can hear", result.stderr)
        self.assertEqual(holder.wait(PATIENCE), 3)
        self.assertEqual(holder.stdout.read(), "asked\n")

    def test_exit(self):
        reader, writer = os.pipe()
        holder = self.start("run", "--on-yield=exit", f"--status-fd={writer}", "k", "--", "sh", "-c",
                            "echo held; exec sleep 1000", pass_fds=[writer])
        os.close(writer)
        self.assertEqual(holder.stdout.readline(), "held\n")
        self.assertEqual(self.json("break", "k", "--ask", "--json")["asked"], 1)
        self.assertEqual(holder.wait(PATIENCE), 128 + signal.SIGTERM)
        self.assertIn("asked for", holder.stderr.read())
        with os.fdopen(reader) as stream:
            self.assertTrue(json.loads(stream.read())["yielded"])
        self.ok("run", "-n", "k", "--", "true")

    def test_one_of_several(self):
        holder = self.hold("a", "--also", "b", "--on-yield=exit")
        self.assertEqual(self.json("break", "b", "--ask", "--json")["asked"], 1)
        self.assertNotEqual(holder.wait(PATIENCE), 0)

    def test_usage(self):
        self.assertIn("--on-yield is", self.fails(64, "run", "--on-yield=no", "k", "--", "true"))
        self.assertIn("needs a signal", self.fails(64, "run", "--on-yield=signal:X", "k", "--", "true"))
        self.assertIn("not both", self.fails(64, "break", "k", "--ask", "--force"))


class Relay:
    """Passes connections on to a server, and can cut all of them."""

    def __init__(self, case, url):
        self.server, self.port, self.links = urlsplit(url), 0, []
        self.open()
        case.addCleanup(self.cut)

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=[self.listener], daemon=True).start()

    def cut(self):
        for link in [self.listener, *self.links]:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was first
            link.close()
        self.links = []

    def accept(self, listener):
        while True:
            try:
                near = listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection((self.server.hostname, self.server.port))
            self.links += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    @staticmethod
    def pass_on(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # cut


@unittest.skipUnless(os.environ.get("DIBS_TEST_URL", "").startswith("redis:"), "needs a server behind a relay")
class Away(Case):
    def test_top_goes_on(self):
        self.acquire("x", "--ttl", "1h")
        relay = Relay(self, self.env["DIBS_URL"])
        url = self.env["DIBS_URL"].replace(f":{relay.server.port}", f":{relay.port}")
        screen = Screen(self, "top", "-d", "20ms", "--url", url)
        screen.frame(lambda lines: "1 held" in lines[0], "a holder")
        relay.cut()
        screen.frame(lambda lines: lines[1] and "0 held" in lines[0], "a message")
        relay.open()
        screen.frame(lambda lines: not lines[1] and "1 held" in lines[0], "the holder again")
        screen.press(b"q")
        self.assertEqual(screen.process.wait(PATIENCE), 0)

    def test_wait_tells_once_that_the_store_is_away(self):
        token = self.acquire("x", "--ttl", "1h")
        relay = Relay(self, self.env["DIBS_URL"])
        url = self.env["DIBS_URL"].replace(f":{relay.server.port}", f":{relay.port}")
        waiting = self.start("wait", "-v", "--interval", "10ms", "--url", url, "x")
        self.assertIn("waiting: x is held by", waiting.stderr.readline())
        relay.cut()
        told = [waiting.stderr.readline()]
        self.ok("release", "x", "--token", token)
        # A wait that took the silence of the store for a free name would have ended.
        self.assertIsNone(waiting.poll())
        relay.open()
        self.assertEqual(waiting.wait(PATIENCE), 0)
        told += waiting.stderr.readlines()
        # A slow machine may have more outages than one, each with its end.
        ends = ["the store answers again, after" in line for line in told]
        self.assertEqual(ends, [False, True] * (len(told) // 2), told)


if __name__ == "__main__":
    main()
