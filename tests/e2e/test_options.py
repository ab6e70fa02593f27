"""The command line: forms, errors, suggestions, help, colour, output that cannot be written."""
# SPDX-License-Identifier: MIT
import os
import re
import signal
import subprocess

from support import DIBS, PATIENCE, Case, main, span

GROUPS = {
    "Locks": "run acquire release renew check break",
    "Look": "ls show top watch wait stats deadlocks trail",
    "Values": "state",
    "Coordination": "elect leader members join barrier latch publish subscribe events breaker limit",
    "Queues": "queue",
    "Jobs": "job work cron",
    "Store": "store ping health doctor",
    "Server": "serve access",
    "Others": "demo config completion help version",
}
VERBS = " ".join(GROUPS.values()).split()
STATE_VERBS = "get set cas del add ls".split()


class UsageErrors(Case):
    def usage(self, message, *args):
        result = self.dibs(*args)
        self.assertEqual(result.returncode, 64, (args, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertIn(message, result.stderr)

    def test_every_kind(self):
        for message, args in [
            ("there is no verb 'acquier'; did you mean 'acquire'?", ["acquier"]),
            ("there is no verb 'lok'; did you mean 'acquire'?", ["lok"]),
            ("there is no verb 'queue enque'; did you mean 'queue push'?", ["queue", "enque"]),
            ("there is no verb 'frobnicate'", ["frobnicate"]),
            ("there is no verb 'state gte'; did you mean 'state get'?", ["state", "gte"]),
            ("state needs a verb", ["state"]),
            ("a verb must come before --", ["--", "ls"]),
            ("there is no option --naems; did you mean --names?", ["ls", "--naems"]),
            ("there is no option --frobnicate", ["ls", "--frobnicate"]),
            ("there is no option -Z", ["ls", "-Z"]),
            ("--ttl is not an option of ls", ["ls", "--ttl", "3s"]),
            ("--ttl goes after the verb", ["--ttl", "3s", "ls"]),
            ("--json takes no value", ["ls", "--json=yes"]),
            ("--ttl needs a value, DUR", ["acquire", "x", "--ttl"]),
            ("-w needs a value, DUR", ["acquire", "x", "-nw"]),
            ("--ttl: 'soon' is not a duration", ["acquire", "x", "--ttl", "soon"]),
            ("-w: 'x' is not a duration", ["acquire", "n", "-wx"]),
            ("--ttl: '1ms' is not between 10ms and", ["acquire", "x", "--ttl=1ms"]),
            ("--retries: 'many' is not a whole number", ["acquire", "x", "--retries", "many"]),
            ("-E: '256' is not between 0 and 255", ["acquire", "x", "-E", "256"]),
            ("'99999999999999999999' is not between", ["acquire", "x", "-E", "9" * 20]),
            ("--color: 'pink' is not one of auto|always|never", ["ls", "--color", "pink"]),
            ("show needs NAME", ["show"]),
            ("run needs NAME", ["run"]),
            ("run: the name is missing before --; write: dibs run NAME --", ["run", "--", "true"]),
            ("run: the name is missing before --", ["run", "-n", "--", "echo", "hello"]),
            ("run: the name is missing before --", ["run", "--"]),
            ("run: -n does not wait and -w does; give one of them", ["run", "-n", "-w", "1s", "x", "true"]),
            ("acquire: -n does not wait and -w does", ["acquire", "-nw0", "x"]),
            ("state cas needs KEY VERSION VALUE", ["state", "cas", "k", "1"]),
            ("ls takes fewer words: 'b' is too many", ["ls", "a", "b"]),
            ("ping takes fewer words: 'x' is too many", ["ping", "x"]),
            ("no completion for 'tcsh'", ["completion", "tcsh"]),
            ("cannot show help: there is no verb 'nothing'", ["help", "nothing"]),
            ("cannot show help: there is no verb 'acquier'; did you mean 'acquire'?", ["help", "acquier"]),
            ("cannot show help: there is no verb 'state list'; did you mean 'state ls'?", ["help", "state", "list"]),
            ("--token or --token-file is needed", ["release", "x"]),
            ("--token or --token-file, not both", ["release", "x", "--token", "a", "--token-file", "b"]),
            ("not a token", ["release", "x", "--token", "12x"]),
            ("not a token", ["check", "x", "--token", "0" * 32 + ":0"]),
            ("'1x' is not a whole number", ["state", "add", "k", "1x"]),
            ("'x' is not a version", ["state", "cas", "k", "x", "v"]),
            ("break needs --if-fence FENCE or --force", ["break", "x", "--yes"]),
            ("not both", ["break", "x", "--yes", "--force", "--if-token", "1"]),
            ("break needs NAME, or --stale", ["break", "--yes", "--force"]),
            ("--yes is needed", ["break", "x", "--force"]),
            ("name", ["acquire", "", "-n"]),
            ("name", ["acquire", "n" * 300, "-n"]),
        ]:
            with self.subTest(args=args):
                self.usage(message, *args)

    def test_words_that_people_try(self):
        for tried in ("store", "redis", "server", "host", "backend", "db", "dsn", "uri", "port"):
            for args in ([f"--{tried}", "x", "ls"], ["ls", f"--{tried}=x"], ["run", "n", f"--{tried}", "x", "true"]):
                with self.subTest(args=args):
                    self.usage(f"there is no option --{tried}; did you mean --url?", *args)
        for message, args in [
            ("--port; did you mean --http-port?", ["demo", "--port", "80"]),
            ("--timeout; did you mean --store-timeout?", ["ls", "--timeout", "5s"]),
            ("--namespace; did you mean --prefix?", ["ls", "--namespace", "x"]),
            ("--no-wait; did you mean --nonblock?", ["run", "--no-wait", "n", "true"]),
            ("--expire; did you mean --ttl?", ["acquire", "n", "--expire", "5s"]),
            ("--expire; did you mean --expires?", ["state", "set", "k", "v", "--expire", "5s"]),
            ("--output; did you mean --json?", ["ls", "--output", "json"]),
            ("there is no option --output\n", ["release", "n", "--output", "json"]),
            ("there is no verb 'lock'; did you mean 'acquire'?", ["lock", "n"]),
            ("there is no verb 'unlock'; did you mean 'release'?", ["unlock", "n"]),
            ("there is no verb 'list'; did you mean 'ls'?", ["list"]),
            ("there is no verb 'status'; did you mean 'show'?", ["status"]),
            ("there is no verb 'set'; did you mean 'state set'?", ["set", "k", "v"]),
            ("there is no verb 'state rm'; did you mean 'state del'?", ["state", "rm", "k"]),
        ]:
            with self.subTest(args=args):
                self.usage(message, *args)

    def test_a_url_in_place_of_a_verb(self):
        for args in (["redis://me:5ecre7@host", "ls"], ["help", "redis://me:5ecre7@host"]):
            err = self.fails(64, *args)
            self.assertIn("did you mean --url URL?", err)
            self.assertNotIn("5ecre7", err)

    def test_the_message_says_where_help_is(self):
        self.assertIn("try 'dibs state get --help'", self.fails(64, "state", "get"))
        self.assertIn("try 'dibs --help'", self.fails(64, "--nothing"))

    def test_a_token_is_not_repeated(self):
        self.assertNotIn("5ecre7", self.fails(64, "release", "x", "--token", "5ecre7"))

    def test_nothing_at_all(self):
        result = self.dibs()
        self.assertEqual((result.returncode, result.stdout), (64, ""))
        self.assertIn("Usage: dibs", result.stderr)


class Forms(Case):
    def test_options_on_either_side_of_the_operand(self):
        for args in (["--ttl", "5s", "x"], ["x", "--ttl", "5s"], ["x", "--ttl=5s"]):
            with self.subTest(args=args):
                token = self.json("acquire", "--json", *args)["token"]
                holder = self.json("show", "--json", "x")["holders"][0]
                self.assertEqual(holder["ttl_ms"], 5000)
                self.ok("release", "x", "--token", token)

    def test_options_between_name_and_command(self):
        out = self.ok("run", "n", "--ttl", "300s", "--", "sh", "-c", "echo $DIBS_LOCK_TTL_MS")
        self.assertEqual(out, "300000\n")

    def test_the_command_keeps_its_options(self):
        self.assertEqual(self.ok("run", "n", "echo", "-n", "--", "--ttl"), "-- --ttl")

    def test_global_options_before_the_verb(self):
        url = "sqlite:" + self.path("other.db")
        self.ok("--url", url, "state", "set", "k", "v")
        self.assertEqual(self.ok("state", "get", "--url=" + url, "k"), "v\n")
        self.fails(1, "state", "get", "k")

    def test_a_path_as_a_url(self):
        """It is meant byte by byte: signs of URLs have no meaning in it."""
        for path in ("./one.db", "./a b%20c?d=e#f.db", self.path("two.db"), "/" + self.path("three.db")):
            with self.subTest(path=path):
                self.ok("--url", path, "state", "set", "k", path)
                self.assertTrue(os.path.isfile(os.path.join(self.folder, path)))
        self.assertEqual(self.ok("--url", "sqlite:" + self.path("one.db"), "state", "get", "k"), "./one.db\n")
        self.env["DIBS_URL"] = self.path("two.db")
        self.assertEqual(self.ok("state", "get", "k"), self.path("two.db") + "\n")
        for text in ("locks.db", "~/locks.db", "localhost"):
            err = self.fails(64, "--url", text, "ls")
            self.assertIn("redis://HOST for a server, sqlite:PATH for a file, or be a path such as ./locks.db", err)

    def test_aliases(self):
        self.acquire("x")
        self.fails(75, "acquire", "x", "--nb")
        self.fails(75, "acquire", "x", "--timeout", span(0.01))
        self.acquire("y", "--label", "mine")
        self.assertEqual(self.json("show", "--json", "y")["holders"][0]["label"], "mine")


class Help(Case):
    def test_overview(self):
        for args in (["help"], ["--help"], ["-h"]):
            out = self.ok(*args)
            for verb in VERBS:
                self.assertRegex(out, rf"(?m)^  {verb} ")
            self.assertIn("DIBS_STORE_TIMEOUT", out)

    def test_verbs_are_grouped(self):
        found = re.findall(r"(?m)^(\w+):\n((?:  \w+ .*\n)+)", self.ok("help").partition("\nTry ")[0])
        self.assertEqual({name: " ".join(line.split()[0] for line in lines.splitlines()) for name, lines in found}, GROUPS)
        self.assertEqual([name for name, _ in found], list(GROUPS))

    def test_each_verb(self):
        for words in [[verb] for verb in VERBS] + [["state", verb] for verb in STATE_VERBS]:
            with self.subTest(words=words):
                out = self.ok("help", *words)
                self.assertIn("Usage: dibs " + " ".join(words), out)
                self.assertEqual(self.ok(*words, "--help"), out)
                self.assertEqual(self.ok(*words, "-h"), out)
                self.assertLess(max(map(len, out.splitlines())), 100)

    def test_help_needs_no_configuration(self):
        self.env["DIBS_TTL"] = "broken"
        self.ok("help")
        self.ok("run", "--help")
        self.ok("version")
        self.ok("completion", "bash")
        self.fails(78, "ls")

    def test_version(self):
        self.assertRegex(self.ok("version"), r"\Adibs \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.ok("--version"), self.ok("version"))
        self.assertEqual(self.ok("-V"), self.ok("version"))
        self.assertEqual(self.ok("run", "-V"), self.ok("version"))
        self.assertEqual(self.ok("run", "--version"), self.ok("version"))
        self.assertEqual("dibs " + self.json("version", "--json")["version"] + "\n", self.ok("version"))


class Colour(Case):
    def listing(self, *args, **env):
        code, shown = self.on_terminal("ls", *args, env={**self.env, "TERM": "xterm", **env})
        self.assertEqual(code, 0)
        return "\033" in shown

    def setUp(self):
        super().setUp()
        for name in ("NO_COLOR", "DIBS_COLOR"):
            self.env.pop(name, None)
        self.acquire("x")

    def test_on_a_terminal(self):
        self.assertTrue(self.listing())
        self.assertTrue(self.listing(NO_COLOR=""))
        self.assertFalse(self.listing(NO_COLOR="1"))
        self.assertFalse(self.listing(TERM="dumb"))
        self.assertFalse(self.listing("--color=never"))
        self.assertFalse(self.listing(DIBS_COLOR="never"))

    def test_flag_wins_over_no_color(self):
        self.assertTrue(self.listing("--color", "always", NO_COLOR="1"))

    def test_not_in_a_pipe(self):
        self.assertNotIn("\033", self.ok("ls"))
        self.assertIn("\033", self.ok("ls", "--color=always"))

    def test_labels_cannot_drive_the_terminal(self):
        self.acquire("evil", "--owner", "\033[31mred\u009b7m\u00e9")
        for args in (["ls"], ["show", "evil"], ["check", "evil"]):
            out = self.ok(*args)
            self.assertNotIn("\033", out)
            self.assertNotIn("\u009b", out)
            self.assertIn("\u00e9", out)


class Output(Case):
    def test_a_full_disk_is_an_error(self):
        self.ok("state", "set", "k", "v")
        for args in (
            ["version"],
            ["version", "--json"],
            ["help"],
            ["ls"],
            ["ls", "--json"],
            ["config"],
            ["completion", "zsh"],
            ["state", "get", "k"],
            ["state", "ls", "--names"],
            ["ping"],
            ["doctor"],
            ["run", "--help"],
        ):
            with self.subTest(args=args), open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run(
                    [DIBS, *args], stdout=full, stderr=subprocess.PIPE, env=self.env, check=False
                )
                self.assertEqual(result.returncode, 70)
                self.assertIn(b"cannot write to standard output: No space left", result.stderr)

    def test_a_pipe_without_a_reader_is_none(self):
        """As with other tools: no message, and the end that SIGPIPE brings. The outer shell may ignore it."""
        self.ok("state", "set", "k", "v")
        for ignored in ("", "trap '' PIPE; "):
            for args in (["help"], ["ls", "--json"], ["state", "get", "k"], ["doctor"], ["watch"], ["acquire", "x"]):
                with self.subTest(ignored=ignored, args=args):
                    read, write = os.pipe()
                    os.close(read)
                    result = subprocess.run(
                        ["sh", "-c", ignored + 'exec "$0" "$@"', DIBS, *args],
                        stdout=write, stderr=subprocess.PIPE, env=self.env, timeout=PATIENCE, check=False,
                    )
                    os.close(write)
                    self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, b""))
        self.assertEqual(self.ok("ls", "--names"), "", "a lock whose token nobody has")

    def test_closed_output_is_an_error(self):
        result = subprocess.run(
            ["sh", "-c", '"$0" version >&-', DIBS], stderr=subprocess.PIPE, env=self.env, check=False
        )
        self.assertEqual(result.returncode, 70)
        self.assertIn(b"cannot write to standard output", result.stderr)

    def test_closed_streams_do_not_reach_the_store(self):
        script = '"$0" state set k v <&- >&- 2>&-; exec "$0" doctor'
        result = subprocess.run(
            ["sh", "-c", script, DIBS], stdout=subprocess.PIPE, env=self.env, check=False
        )
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.ok("state", "get", "k"), "v\n")

    def test_quiet(self):
        self.acquire("x")
        for code, args in (
            (75, ["acquire", "-qn", "x"]),
            (1, ["show", "-q", "nothing"]),
            (1, ["state", "get", "-q", "nothing"]),
            (1, ["check", "-q", "nothing"]),
            (0, ["check", "-q", "x"]),
            (0, ["ping", "-q"]),
            (127, ["run", "-q", "y", "--", "./nothing"]),
            (127, ["elect", "-q", "y", "--", "./nothing"]),
            (127, ["limit", "-q", "y", "--rate", "9/s", "--", "./nothing"]),
            (127, ["breaker", "run", "-q", "y", "--", "./nothing"]),
        ):
            with self.subTest(args=args):
                result = self.dibs(*args)
                self.assertEqual((result.returncode, result.stdout, result.stderr), (code, "", ""))


class ExitCodes(Case):
    def test_of_the_store(self):
        self.fails(64, "--url", "nonsense", "ls")
        self.fails(64, "--url", "gopher://x", "ls")
        self.write("text.db", "this is no database, but a text of some length " * 20)
        self.fails(78, "--url", "sqlite:" + self.path("text.db"), "ls")

    def test_a_url_error_shows_no_password(self):
        err = self.fails(64, "--url", "gopher://me:5ecre7@host/", "ping")
        self.assertNotIn("5ecre7", err)

    def test_ping_and_doctor(self):
        pong = self.json("ping", "--json")
        self.assertGreaterEqual(pong["took_us"], 0)
        self.assertTrue(pong["url"].startswith("sqlite:"))
        report = self.json("doctor", "--json")
        self.assertIn(report["worst"], ("fine", "note", "caution"))
        self.assertTrue(report["findings"])
        self.assertIn("sqlite:", self.ok("doctor"))


if __name__ == "__main__":
    main()
