"""queue push, pop, ack, nack, extend, run."""
# SPDX-License-Identifier: MIT
import itertools
import os
import re
import signal
import subprocess

from runtools import NotInTime, alive, below
from support import DIBS, PATIENCE, ROOT, Case, main, span, wait_until


class QueueCase(Case):
    def push(self, *args):
        return int(self.ok("queue", "push", "q", *args))

    def stats(self, *keys):
        shown = self.json("queue", "stats", "q", "--json")
        return [shown[key] for key in keys]

    def items(self, place="ready"):
        return self.json("queue", "peek", "q", "--place", place, "--json")["items"]

    def data(self, place="ready"):
        return [item["data"] for item in self.items(place)]


class Push(QueueCase):
    def test_data(self):
        first = self.push("one")
        with open(self.write("data", "two\nlines\n"), encoding="utf-8") as file:
            second = int(self.ok("queue", "push", "q", stdin=file))
        self.push("-")
        self.assertLess(first, second)
        self.assertEqual(self.data(), ["one", "two\nlines\n", ""])

    def test_lines(self):
        with open(self.write("lines", "".join(f"{i}\n" for i in range(300)) + "last"), encoding="utf-8") as file:
            ids = self.ok("queue", "push", "q", "--lines", stdin=file).split()
        self.assertEqual((len(ids), sorted(ids)), (301, ids))
        shown = self.json("queue", "peek", "q", "--json", "-n", "1", "--skip", "300")["items"]
        self.assertEqual([(item["id"], item["data"]) for item in shown], [(int(ids[300]), "last")])

    def test_lines_go_as_they_come(self):
        read, write = os.pipe()
        pusher = self.start("queue", "push", "q", "--lines", stdin=read)
        os.close(read)
        os.write(write, b"one\ntw")
        self.assertTrue(pusher.stdout.readline().strip().isdigit())
        self.assertEqual(self.data(), ["one"])
        os.write(write, b"o\n")
        self.assertTrue(pusher.stdout.readline().strip().isdigit())
        os.close(write)
        self.assertEqual(pusher.wait(PATIENCE), 0)
        self.assertEqual(self.data(), ["one", "two"])

    def test_order(self):
        self.push("plain")
        self.push("urgent", "--priority", "5")
        self.push("idle", "--priority", "-5")
        self.push("late", "--delay", "1h")
        self.assertEqual(self.data(), ["urgent", "plain", "idle"])
        self.assertEqual(self.data("later"), ["late"])
        self.assertGreater(self.items("later")[0]["due_ms"], 0)

    def test_a_duplicate_is_told(self):
        first = self.push("one", "--id", "order-1")
        self.assertEqual(self.ok("queue", "push", "q", "--id", "order-1", "two"), f"{first} duplicate\n")
        shown = self.json("queue", "push", "q", "--id", "order-1", "two", "--fail-duplicate", "--json", code=1)
        self.assertEqual((shown["id"], shown["duplicate"]), (first, True))
        self.assertEqual(self.items()[0]["dedup_id"], "order-1")
        self.ok("queue", "pop", "q", "--ack")
        second = self.push("three", "--id", "order-1", "--window", "1h")
        self.ok("queue", "pop", "q", "--ack")
        self.assertEqual(self.ok("queue", "push", "q", "--id", "order-1", "two"), f"{second} duplicate\n")
        self.assertEqual(self.data(), [])

    def test_headers_and_address(self):
        self.push("one", "--header", "trace=a=b", "--header", "kind=mail", "--to", "w1", "--tries", "2")
        item = self.items()[0]
        self.assertEqual((item["headers"], item["to"]), ({"trace": "a=b", "kind": "mail"}, "w1"))
        shown = self.json("queue", "pop", "q", "--as", "w1", "--json")
        self.assertEqual((shown["headers"], shown["data"]), ({"trace": "a=b", "kind": "mail"}, "one"))

    def test_a_full_queue(self):
        self.ok("queue", "set", "q", "--cap", "1")
        self.push("one")
        self.fails(75, "queue", "push", "q", "two")
        waits = self.start("queue", "push", "q", "three", "-w", "1h")
        self.ok("queue", "pop", "q", "--ack")
        self.assertEqual(waits.wait(PATIENCE), 0)
        self.assertEqual(self.data(), ["three"])

    def test_lines_that_have_no_room_at_once(self):
        def lines(count):
            return "".join(f"{i}\n" for i in range(count))

        self.ok("queue", "set", "q", "--cap", "5")
        with open(self.write("lines", lines(20)), encoding="utf-8") as file:
            pusher = self.start("queue", "push", "q", "--lines", "-w", "1h", stdin=file)
        shown = [self.ok("queue", "pop", "q", "--ack", "-w", span(60)) for _ in range(20)]
        self.assertEqual("".join(shown), lines(20))
        self.assertEqual(pusher.wait(PATIENCE), 0)
        self.push("first")
        with open(self.write("lines", lines(20)), encoding="utf-8") as file:
            err = self.fails(75, "queue", "push", "q", "--lines", stdin=file)
        self.assertIn("it has pushed 4 lines", err)
        self.assertEqual(self.data(), ["first", "0", "1", "2", "3"])

    def test_usage(self):
        self.assertIn("give no DATA", self.fails(64, "queue", "push", "q", "x", "--lines"))
        self.assertIn("--id is of one", self.fails(64, "queue", "push", "q", "--lines", "--id", "x"))
        self.assertIn("give --id too", self.fails(64, "queue", "push", "q", "x", "--window", "1m"))
        self.assertIn("key=value", self.fails(64, "queue", "push", "q", "x", "--header", "novalue"))
        with open(self.write("long", "x" * (256 * 1024 + 1)), encoding="utf-8") as file:
            self.assertIn("standard input has more", self.fails(64, "queue", "push", "q", stdin=file))
        with open(self.write("longline", "short\n" + "x" * (256 * 1024 + 1)), encoding="utf-8") as file:
            err = self.fails(64, "queue", "push", "q", "--lines", stdin=file)
        self.assertIn("line 2 has more", err)
        self.assertIn("it has pushed 1 line", err)
        self.assertEqual(self.data(), ["short"])


class Pop(QueueCase):
    def pop(self, *args):
        return self.json("queue", "pop", "q", "-n", "--json", "--ttl", span(60), *args)

    def test_by_hand(self):
        self.push("one")
        self.assertEqual(self.ok("queue", "pop", "q", "--token-file", "t", "--ttl", span(60)), "one\n")
        self.assertEqual(os.stat(self.path("t")).st_mode & 0o777, 0o600)
        self.assertEqual(self.stats("ready", "out"), [0, 1])
        self.ok("queue", "extend", "q", "--token-file", "t", "--ttl", span(60))
        self.ok("queue", "ack", "q", "--token-file", "t")
        self.assertEqual(self.stats("ready", "out", "acked"), [0, 0, 1])
        self.assertTrue(self.dibs("queue", "ack", "q", "--token-file", "t").returncode == 122)

    def test_a_token_that_nobody_gets(self):
        self.push("one")
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([DIBS, "queue", "pop", "q", "--json"], stdout=full, stderr=subprocess.PIPE, text=True,
                                    env=self.env, check=False)
        self.assertEqual(result.returncode, 70, result.stderr)
        self.assertEqual(self.stats("ready", "out"), [1, 0])
        self.fails(64, "queue", "pop", "q", "--token-file", self.folder)
        self.assertEqual(self.stats("ready", "out"), [1, 0])

    def test_a_signal_leaves_no_draft(self):
        self.push("makes the queue")
        self.ok("queue", "pop", "q", "--ack")
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start("queue", "pop", "q", "--token-file", self.path("token"))
            wait_until(lambda: self.stats("waiting") == [1], "a pop that waits")
            process.send_signal(number)
            self.assertEqual(process.wait(PATIENCE), -number)
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("token")], [])
        self.push("one")
        self.assertEqual(self.stats("ready", "out"), [1, 0])

    def test_nothing_there(self):
        self.fails(75, "queue", "pop", "q", "-n", "--ack")
        self.fails(7, "queue", "pop", "q", "-w", "10ms", "--ack", "-E", "7")
        skipped = self.dibs("queue", "pop", "q", "-n", "--ack", "-E", "0")
        self.assertEqual((skipped.returncode, skipped.stderr), (0, ""))

    def test_nack(self):
        self.push("one", "--tries", "2")
        item = self.pop()
        self.ok("queue", "nack", "q", item["token"], "--delay", "0", "--reason", "no such host")
        self.assertEqual([(i["attempts"], i["reason"]) for i in self.items()], [(1, "no such host")])
        item = self.pop()
        self.assertEqual(item["attempt"], 2)
        self.ok("queue", "nack", "q", item["token"], "--reason", "again")
        dead = self.json("queue", "dead", "q", "--json")["items"]
        self.assertEqual([(i["data"], i["attempts"], i["reason"]) for i in dead], [("one", 2, "again")])
        self.assertIn("again", self.ok("queue", "dead", "q"))
        self.assertEqual(self.ok("queue", "redrive", "q", str(dead[0]["id"]), "--yes"), "1\n")
        item = self.pop()
        self.assertEqual(item["attempt"], 1)
        self.ok("queue", "nack", "q", item["token"], "--dead")
        self.assertEqual(self.stats("ready", "later", "out", "dead"), [0, 0, 0, 1])
        self.assertEqual(self.ok("queue", "purge", "q", "--dead", "--yes"), "1\n")

    def test_json_tells_what_became_of_the_item(self):
        self.push("one")
        for words, outcome in ((["extend", "--ttl", span(60)], "extended"), (["nack", "--delay", "0"], "nacked"),
                               (["nack", "--dead"], "dead"), (["ack"], "acked")):
            if outcome == "acked":
                self.ok("queue", "redrive", "q", "--yes")
            item = self.pop() if outcome != "nacked" else item
            told = self.json("queue", words[0], "q", item["token"], *words[1:], "--json")
            self.assertEqual([told[key] for key in ("name", "id", "attempt", "outcome")],
                             ["q", item["id"], item["attempt"], outcome])
        self.assertEqual(self.dibs("queue", "ack", "q", item["token"], "--json").stdout, "")

    def test_backoff(self):
        self.push("one")
        self.ok("queue", "nack", "q", self.pop()["token"])
        self.assertGreater(self.items("later")[0]["due_ms"], 0)

    def test_a_token_that_is_over(self):
        self.push("one")
        token = self.pop()["token"]
        self.assertEqual(self.ok("queue", "purge", "q", "--all", "--yes"), "1\n")
        for verb in ("nack", "ack", "extend"):
            result = self.dibs("queue", verb, "q", token)
            self.assertTrue(result.returncode == 122, (verb, result))

    def test_bytes(self):
        with open(self.path("data"), "wb") as file:
            file.write(b"\xff\x00\n")
        with open(self.path("data"), "rb") as file:
            self.ok("queue", "push", "q", stdin=file)
        self.assertEqual(self.items()[0]["data_base64"], "/wAK")
        out = subprocess.run([DIBS, "queue", "pop", "q", "--ack", "--raw"], stdout=subprocess.PIPE, env=self.env, check=True)
        self.assertEqual(out.stdout, b"\xff\x00\n")

    def test_usage(self):
        self.assertIn("give --token-file FILE, --json or --ack", self.fails(64, "queue", "pop", "q"))
        self.fails(64, "queue", "pop", "q", "--ack", "--token-file", "t")
        self.assertIn("give one of them", self.fails(64, "queue", "pop", "q", "--ack", "-n", "-w", "1s"))
        self.assertIn("give TOKEN", self.fails(64, "queue", "ack", "q"))
        self.assertIn("not both", self.fails(64, "queue", "ack", "q", "1-2", "--token-file", "t"))
        self.fails(64, "queue", "ack", "q", "nonsense")
        self.assertIn("leave out -j", self.fails(64, "queue", "run", "q", "--once", "-j", "4", "--", "true"))
        self.assertIn("give one of them", self.fails(64, "queue", "nack", "q", "1", "--dead", "--delay", "1s"))


class Run(QueueCase):
    def run_all(self, script, *options):
        out = self.ok("queue", "run", "q", "-w", "0", *options, "--", "sh", "-c", script)
        if self.stats("lost") != [0]:
            raise NotInTime("an item was lost, as its worker was too slow to renew it")
        return out

    def test_each_item(self):
        for word in ("one", "two", "three"):
            self.push(word, "--header", f"word={word}")
        out = self.run_all('echo "$(cat) $DIBS_QUEUE $DIBS_ITEM_ATTEMPT $DIBS_ITEM_LOST $DIBS_ITEM_HEADERS"')
        self.assertEqual(out, "".join(f"{word} q 1 0 word={word}\n" for word in ("one", "two", "three")))
        self.assertEqual(self.stats("ready", "out", "acked"), [0, 0, 3])

    def test_numbers(self):
        number = self.push("one")
        out = self.run_all('echo "$DIBS_ITEM_ID $DIBS_ITEM_FENCE $DIBS_ITEM_TOKEN"')
        fence = out.split()[1]
        self.assertEqual(out, f"{number} {fence} {number}-{fence}-1\n")
        for verb in ("ack", "nack", "extend"):
            told = self.fails(64, "queue", verb, "q", out.split()[2])
            self.assertIn("is DIBS_ITEM_TOKEN of queue run", told)
        self.assertIn("no token of an item", self.fails(64, "queue", "ack", "q", "1-2"))
        self.assertIn("no token of an item", self.fails(64, "queue", "ack", "q", "1-2-3-4-5"))

    def test_exit_codes_decide(self):
        for code in ("0", "65", "75", "3"):
            self.push(code)
        self.push("kill")
        self.run_all('read -r code; [ "$code" != kill ] || kill -9 $$; exit "$code"', "--delay", "1h")
        self.assertEqual(self.stats("acked", "dead", "later", "out"), [1, 1, 3, 0])
        self.assertEqual(
            {item["data"]: item["reason"] for item in self.items("later") + self.items("dead")},
            {"65": "exit code 65", "75": "exit code 75", "3": "exit code 3", "kill": "killed by signal 9"},
        )

    def test_tries(self):
        self.push("one", "--tries", "3")
        self.assertEqual(self.run_all("echo $DIBS_ITEM_ATTEMPT; exit 1", "--delay", "0"), "1\n2\n3\n")
        self.assertEqual(self.stats("dead", "nacked"), [1, 3])

    def test_in_file(self):
        self.push("one")
        out = self.run_all('cat; cat "$DIBS_ITEM_FILE"; echo; echo "$DIBS_ITEM_FILE"', "--in-file")
        data, path = out.split()
        self.assertEqual(data, "one")
        self.assertFalse(os.path.exists(path))

    def test_the_command_tells_its_result(self):
        self.ok("queue", "set", "q", "--keep-done", "10")
        for data in ("0 done", "65 no such user", "3 busy", "0", "4", "kill it"):
            self.push(data)
        self.run_all('read -r code told; [ -z "$told" ] || echo "$told" >"$DIBS_ITEM_RESULT"; '
                     '[ "$code" != kill ] || kill -9 $$; exit "$code"', "--delay", "1h")
        self.assertEqual([item["reason"] for item in self.items("dead")], ["no such user"])
        self.assertEqual({item["data"]: item["reason"] for item in self.items("later")},
                         {"3 busy": "busy", "4": "exit code 4", "kill it": "killed by signal 9"})
        self.assertIn("no such user", self.ok("queue", "dead", "q"))
        self.assertEqual(sorted(item["result"] or "" for item in self.items("done")), ["", "done"])

    def test_a_result_that_is_no_text_to_keep(self):
        """The work was done: the item is acked."""
        self.ok("queue", "set", "q", "--keep-done", "10")
        for data in ("head -c 5000 /dev/zero | tr '\\0' x >$DIBS_ITEM_RESULT", "ln -sf /etc/passwd $DIBS_ITEM_RESULT",
                     "rm $DIBS_ITEM_RESULT"):
            self.push(data)
        self.run_all('eval "$(cat)"')
        self.assertEqual(sorted(item["result"] or "" for item in self.items("done")), ["", "", 1023 * "x"])
        self.push("one")
        self.env["TMPDIR"] = self.path("nowhere")
        self.assertEqual(self.run_all('cat; echo "$DIBS_ITEM_RESULT"'), "one\n")

    def test_a_file_of_a_worker_that_was_killed_goes(self):
        self.push("one")
        self.env["TMPDIR"] = self.path("tmp")
        os.mkdir(self.env["TMPDIR"])
        worker = self.start("queue", "run", "q", "--ttl", span(1), "--in-file", "--", "sh", "-c",
                            'echo "$DIBS_ITEM_FILE"; exec sleep 1000')
        path = worker.stdout.readline().strip()
        used = self.start("queue", "run", "other", "--in-file", "--", "sh", "-c", 'echo "$DIBS_ITEM_FILE"; exec sleep 1000')
        self.ok("queue", "push", "other", "two")
        in_use = used.stdout.readline().strip()
        worker.kill()
        worker.wait()

        def gone():
            self.ok("queue", "run", "nothing", "-w", "0", "--", "true")
            return not os.path.exists(os.path.dirname(path))

        self.assertEqual(self.text(path), "one")
        wait_until(gone, "the end of the file")
        self.assertEqual(self.text(in_use), "two")

    def test_once(self):
        self.fails(75, "queue", "run", "q", "--once", "-w", "0", "--", "true")
        self.fails(0, "queue", "run", "q", "--once", "-w", "0", "-E", "0", "--", "true")
        self.push("one")
        self.push("two")
        self.fails(7, "queue", "run", "q", "--once", "--", "sh", "-c", "exit 7")
        self.fails(0, "queue", "run", "q", "--once", "--", "true")
        self.assertEqual(self.stats("acked", "nacked"), [1, 1])

    def test_without_a_command(self):
        """No item pays for a command that cannot be run."""
        self.push("one")
        self.fails(127, "queue", "run", "q", "--", "./nothing")
        self.assertEqual([item["attempts"] for item in self.items()], [0])

    def test_the_limit_ends_the_tree(self):
        self.push("one")
        script = "sleep 1000 & echo $! >pid; sleep 1000"
        self.assertIn("--limit is over", self.fails(124, "queue", "run", "q", "--once", "--limit", span(0.2), "--stop",
                                                    "0", "--", "sh", "-c", script))
        if not self.text("pid"):
            raise NotInTime("the command did not begin within --limit")
        self.wait_dead([int(self.text("pid"))])
        self.assertEqual(self.items("later")[0]["reason"], "it took longer than --limit")

    def test_several_at_a_time(self):
        for word in "abcd":
            self.push(word)
        script = 'touch "in-$(cat)"; while [ "$(ls in-* | wc -l)" -lt 4 ]; do sleep 0.01; done'
        self.run_all(script, "-j", "4")
        self.assertEqual(self.stats("ready", "acked"), [0, 4])

    def test_workers_use_the_store_of_the_option(self):
        there = "sqlite:" + self.path("there.db")
        self.push("here")
        self.ok("queue", "push", "q", "there", "--url", there)
        self.assertEqual(self.ok("queue", "run", "q", "-w", "0", "-j", "2", "--url", there, "--", "cat"), "there")
        self.assertEqual(self.data(), ["here"])

    def test_many_items_take_no_more_files_than_one(self):
        for number in range(40):
            self.push(str(number))
        run = subprocess.run(["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", DIBS, "queue", "run", "q", "-w", "0", "--", "true"],
                             env=self.env, cwd=self.folder, timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual((run.returncode, self.stats("acked")), (0, [40]), run.stderr)

    def test_term_lets_the_item_finish(self):
        for word in ("one", "two"):
            self.push(word)
        for jobs in ("1", "2"):
            with self.subTest(jobs=jobs):
                self.ok("queue", "set", "q", "--serial", "yes")
                worker = self.start("queue", "run", "q", "-j", jobs, "--", "sh", "-c",
                                    "touch begun; while [ ! -e go ]; do sleep 0.01; done; rm begun go")
                wait_until(lambda: os.path.exists(self.path("begun")), "the command")
                worker.send_signal(signal.SIGTERM)
                self.assertIn("the worker stops when the command has ended", worker.stderr.readline())
                self.write("go", "")
                self.assertEqual(worker.wait(PATIENCE), 0)
        self.assertEqual(self.stats("ready", "acked", "out"), [0, 2, 0])

    def test_term_while_it_waits(self):
        for jobs in ("1", "3"):
            worker = self.start("queue", "run", "q", "-j", jobs, "--", "true")
            wait_until(lambda n=jobs: self.dibs("queue", "stats", "q", "--json").stdout.count(f'"waiting":{n}'), "a waiter")
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.wait(PATIENCE), 0)

    def test_a_second_signal_ends_the_command(self):
        self.push("one")
        # One is killed by it, the other makes as if all were well.
        ways = ("echo $$; exec sleep 1000", "trap 'exit 0' TERM; echo $$; while :; do sleep 0.01; done")
        for jobs, way in itertools.product(("1", "2"), ways):
            with self.subTest(jobs=jobs, way=way):
                worker = self.start("queue", "run", "q", "-j", jobs, "--", "sh", "-c", way)
                pid = int(worker.stdout.readline())

                def pressed(worker=worker, pid=pid):
                    worker.send_signal(signal.SIGTERM)
                    return not alive(pid)

                wait_until(pressed, "the end of the command")
                self.assertEqual(worker.wait(PATIENCE), 128 + signal.SIGTERM, "its item was not done")
                self.assertEqual([item["attempts"] for item in self.items()], [0], "it was not its fault")

    def test_a_signal_for_commands_stops_no_worker(self):
        script = "trap 'echo again' USR1; echo $$; while ! test -e go; do sleep 0.01; done"
        for jobs, parent in (("2", "pool"), ("1", "worker")):
            with self.subTest(parent=parent):
                self.push("one")
                process = self.start("queue", "run", "q", "-j", jobs, "--ttl", span(60), "--", "sh", "-c", script)
                process.stdout.readline()
                process.send_signal(signal.SIGUSR1)
                self.assertEqual(process.stdout.readline(), "again\n")
                self.write("go", "")
                wait_until(lambda: self.stats("ready", "out") == [0, 0], "the ack")
                # Idle now, it hears of the signal in its wait.
                process.send_signal(signal.SIGUSR1)
                self.push("two")
                process.stdout.readline()
                wait_until(lambda: self.stats("ready", "out") == [0, 0], "the second ack")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), 0)
                os.unlink(self.path("go"))

    def test_a_worker_that_dies(self):
        """Its command is dead before another has the item; the pool starts another worker."""
        self.push("one")
        script = 'if [ "$DIBS_ITEM_ATTEMPT" = 1 ]; then echo $$; exec sleep 1000; fi; echo "$DIBS_ITEM_LOST"'
        pool = self.start("queue", "run", "q", "-j", "2", "--ttl", span(1), "--", "sh", "-c", script)
        command = int(pool.stdout.readline())
        worker = next(pid for pid in below(pool.pid) if command in below(pid))
        os.kill(worker, signal.SIGKILL)
        lost = int(pool.stdout.readline())
        if lost > 1:
            raise NotInTime("the second worker was too slow to renew the item")
        self.assertEqual(lost, 1)
        self.assertFalse(alive(command))
        self.assertIn("another one is started", pool.stderr.readline())
        wait_until(lambda: self.stats("acked") == [1], "the ack")
        pool.send_signal(signal.SIGTERM)
        self.assertEqual(pool.wait(PATIENCE), 0)

    def test_an_item_that_is_lost(self):
        """The command of a worker that does not run is dead before another has the item."""
        self.push("one")
        worker = self.start("queue", "run", "q", "--once", "--ttl", span(1), "--", "sh", "-c", "echo $$; exec sleep 1000")
        command = int(worker.stdout.readline())
        worker.send_signal(signal.SIGSTOP)
        self.assertEqual(self.ok("queue", "pop", "q", "--ack"), "one\n")
        self.assertFalse(alive(command))
        worker.send_signal(signal.SIGCONT)
        self.assertTrue(worker.wait(PATIENCE) == 122)
        self.assertIn("was lost", worker.stderr.read())

    def test_as_a_worker(self):
        self.push("common")
        self.push("mine", "--to", "w1")
        self.push("other", "--to", "w2")
        self.assertEqual(self.run_all("cat; echo", "--as", "w1"), "common\nmine\nother\n")


class Docs(QueueCase):
    def test_commands_of_the_guide(self):
        """Each block of docs/queues.md that a shell reads is run, one after the other."""
        with open(os.path.join(ROOT, "docs", "queues.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?ms)^```sh\n(.*?)^```$", file.read())
        self.assertGreater(len(blocks), 8)
        for name in ("send", "work"):
            os.chmod(self.write(name, "#!/bin/sh\nexec cat >/dev/null\n"), 0o755)
        self.env["PATH"] = os.path.dirname(DIBS) + os.pathsep + self.env["PATH"]
        for block in blocks:
            with self.subTest(block):
                done = subprocess.run(["sh", "-euc", block], capture_output=True, text=True, env=self.env, cwd=self.folder,
                                      stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("dibs: ", done.stderr)


if __name__ == "__main__":
    main()
