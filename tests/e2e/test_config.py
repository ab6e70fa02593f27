"""Configuration: precedence, files, messages with line and column, secrets."""
# SPDX-License-Identifier: MIT
import os
import re
import shutil
import subprocess
import unittest

from support import DIBS, PATIENCE, Case, main, wait_until

# A program that opens a client with the URL and the prefix that it is given.
TWO_LOCKS = os.environ.get("DIBS_TWO_LOCKS")


class Configuration(Case):
    def setUp(self):
        super().setUp()
        self.env.pop("DIBS_CONFIG")
        self.env.pop("DIBS_URL")
        self.env["XDG_CONFIG_HOME"] = self.path("etc")

    def user_file(self, text):
        return self.write("etc/dibs/config.yaml", text)

    def setting(self, name, *args):
        for item in self.json("config", "--json", *args)["settings"]:
            if item["name"] == name:
                return item["value"], item["source"]
        raise AssertionError(name)

    def store(self, *args):
        shown = self.json("config", "--json", *args)["store"]
        self.assertRegex(self.ok("config", *args), rf"(?m)^\(store\) +{re.escape(shown['url'])} +{shown['source']}$")
        return shown["url"], shown["source"]

    def test_the_store_in_force(self):
        self.env["XDG_STATE_HOME"] = self.path("state")
        default = f"sqlite:{self.path('state/dibs/dibs.db')}"
        self.assertEqual(self.store(), (default, "default"))
        self.assertFalse(os.path.exists(self.path("state")))  # a look makes nothing
        path = self.user_file("url: redis://me:5ecre7@h:1/0?password_file=/f\n")
        self.assertEqual(self.store(), ("redis://me:***@h:1/0?password_file=/f", path + ":1:6"))
        self.env["DIBS_URL"] = "sqlite:"
        self.assertEqual(self.store(), (default, "DIBS_URL"))
        self.assertEqual(self.store("--url", "./a.db"), ("sqlite:./a.db", "--url"))
        secret = self.write("secret", "redis://:5ecre7@h2\n")
        self.assertEqual(self.store("--url", "file:" + secret), ("redis://:***@h2", f"--url, file:{secret}"))
        self.env["DIBS_URL"] = "redis:"
        self.assertEqual(self.store(), ("redis://localhost:6379", "DIBS_URL, default"))
        self.env.update(REDIS_HOST="h3", REDIS_PORT="7")
        self.assertEqual(self.store(), ("redis://h3:7", "DIBS_URL, REDIS_HOST, REDIS_PORT"))
        self.env["REDIS_URL"] = "redis://:5ecre7@h4"
        self.assertEqual(self.store(), ("redis://:***@h4", "DIBS_URL, REDIS_URL"))

    def test_config_refuses_what_the_verbs_refuse(self):
        self.env["DIBS_URL"] = "memory:"
        for text in ("wait", "wait:0", "wait:10", "sync"):
            self.env["DIBS_DURABILITY"] = text
            for args in (["config"], ["run", "k", "--", "true"]):
                self.assertIn(f"DIBS_DURABILITY: '{text}' is neither async nor wait:K", self.fails(78, *args))
        self.env["DIBS_DURABILITY"] = "wait:2"
        self.assertEqual(self.setting("durability"), ("wait:2", "DIBS_DURABILITY"))

    def test_precedence(self):
        self.assertEqual(self.setting("ttl"), ("30s", "default"))
        path = self.user_file("ttl: 1m\n")
        self.assertEqual(self.setting("ttl"), ("1m", path + ":1:6"))
        self.env["DIBS_TTL"] = "2m"
        self.assertEqual(self.setting("ttl"), ("2m", "DIBS_TTL"))
        self.assertEqual(self.setting("url", "--url", "memory:"), ("memory:", "--url"))
        self.env["DIBS_TTL"] = ""
        self.assertEqual(self.setting("ttl")[0], "1m")

    def test_flags_win_in_use(self):
        self.user_file(f"url: sqlite:{self.path('u.db')}\nttl: 1m\nowner: from file\n")
        self.acquire("a")
        self.env["DIBS_OWNER"] = "from variable"
        self.acquire("b")
        self.acquire("c", "--owner", "from flag", "--ttl", "7s")
        holders = {l["name"]: l["holders"][0] for l in self.json("ls", "--json")["locks"]}
        self.assertEqual([holders[n]["label"] for n in "abc"], ["from file", "from variable", "from flag"])
        self.assertEqual([holders[n]["ttl_ms"] for n in "abc"], [60000, 60000, 7000])

    def test_enabled_or_not(self):
        """Without a lock and a store, but with all else that run does."""
        self.env["DIBS_URL"] = "nonsense://x"
        script = "echo ran ${DIBS_LOCK_NAME-without}; exit 7"
        self.fails(64, "run", "k", "-c", script)
        path = self.user_file("enabled: false\n")
        result = self.dibs("run", "--once", "day", "k", "-c", script)
        self.assertEqual((result.returncode, result.stdout), (7, "ran without\n"))
        self.assertEqual(result.stderr, f"dibs: k: running without a lock: enabled is no ({path}:1:10)\n")
        self.assertEqual(self.dibs("run", "-q", "k", "--", "true").stderr, "")
        self.fails(64, "run", "--enabled", "k", "--", "true")
        self.env["DIBS_ENABLED"] = "yes"
        self.fails(64, "run", "k", "--", "true")
        self.env["DIBS_ENABLED"] = "0"
        self.assertIn("enabled is no (DIBS_ENABLED)", self.dibs("run", "k", "--", "true").stderr)
        self.env["DIBS_ENABLED"] = "perhaps"
        self.assertIn("DIBS_ENABLED: 'perhaps' is not yes, no, true or false", self.fails(78, "run", "k", "--", "true"))

    def test_a_lock_around_a_run_without_one_stays(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("e.db")
        inner = f"echo $DIBS_LOCK_NAME; {DIBS} ls --names"
        self.assertEqual(
            self.ok("run", "outer", "--", "env", "DIBS_ENABLED=no", DIBS, "run", "-q", "inner", "-c", inner),
            "outer\nouter\n",
        )

    def test_redis_enabled(self):
        self.env.update(XDG_STATE_HOME=self.path("state"), REDIS_ENABLED="true", REDIS_HOST="h")
        self.assertEqual(self.store(), ("redis://h:6379", "REDIS_ENABLED, REDIS_HOST"))
        self.env["REDIS_ENABLED"] = "True"
        self.assertEqual(self.store()[0], "redis://h:6379")
        for text in ("false", "0", "NO", "False", ""):
            self.env["REDIS_ENABLED"] = text
            self.assertEqual(self.store()[1], "default")
        self.env["REDIS_ENABLED"] = "perhaps"
        self.assertIn("REDIS_ENABLED: 'perhaps' is not yes, no, true or false", self.fails(78, "config"))
        self.user_file("url: 'memory:'\n")
        self.assertEqual(self.store()[0], "memory:")  # what is meant for dibs wins

    def test_wait_by_variable_and_file(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("w.db")
        self.user_file("wait: 0\n")
        command = self.hold("k")
        self.fails(75, "run", "k", "--", "true")
        self.fails(75, "acquire", "k")
        self.env["DIBS_WAIT"] = "20ms"
        self.fails(75, "run", "k", "--", "true")
        self.env["DIBS_WAIT"] = "1h"
        self.fails(75, "run", "-n", "k", "--", "true")
        self.fails(75, "run", "-w", "0", "k", "--", "true")
        waiter = self.start("run", "-w", "1h", "k", "--", "true")
        wait_until(lambda: self.waiters("k"), "a waiter")
        self.let_go(command)
        self.assertEqual(waiter.wait(PATIENCE), 0)
        self.env["DIBS_WAIT"] = "soon"
        self.assertIn("DIBS_WAIT: 'soon' is not a duration", self.fails(78, "ping"))

    def test_when_to_renew(self):
        self.env["DIBS_URL"] = "memory:"
        self.user_file("ttl: 1h\nrenew_every: 20ms\n")
        for options in ([], ["--renew-every", "30ms"]):
            process = self.start(
                "run", "--log-level", "trace", *options, "k", "--", "cat", stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
            while "renewed: k" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.communicate(timeout=PATIENCE)
        self.assertIn("a third of --ttl", self.fails(64, "run", "--ttl", "60ms", "--renew-every", "21ms", "k", "--", "true"))
        self.env["DIBS_RENEW_EVERY"] = "10m"
        self.ok("run", "--ttl", "30s", "k", "--", "true")  # for every ttl: it is cut
        self.env["DIBS_RENEW_EVERY"] = "1ms"
        self.assertIn("'1ms' is not between 10ms and 8h", self.fails(78, "config"))

    def test_a_time_that_cannot_be_meant(self):
        self.env["DIBS_STORE_TIMEOUT"] = "2000"
        self.assertIn("'2000' is not between 1ms and 10m; a number without a unit is seconds", self.fails(78, "config"))

    def test_asked_for_file_replaces_the_usual(self):
        self.user_file("ttl: 1m\nretries: 5\n")
        path = self.write("mine.yaml", "retries: 7\n")
        self.assertEqual(self.setting("retries", "--config", path), ("7", path + ":1:10"))
        self.assertEqual(self.setting("ttl", "--config", path), ("30s", "default"))
        self.env["DIBS_CONFIG"] = path
        self.assertEqual(self.setting("retries")[0], "7")
        self.env["DIBS_CONFIG"] = self.path("absent.yaml")
        self.assertIn("absent.yaml", self.fails(78, "config"))

    def test_home_without_xdg(self):
        del self.env["XDG_CONFIG_HOME"]
        self.write(".config/dibs/config.yaml", "prefix: 'home:'\n")
        self.assertEqual(self.setting("prefix")[0], "home:")
        self.env["XDG_CONFIG_HOME"] = "relative"
        self.assertEqual(self.setting("prefix")[0], "home:")

    @unittest.skipUnless(shutil.which("unshare"), "unshare is not installed")
    def test_a_home_that_is_no_folder(self):
        self.env.pop("XDG_CONFIG_HOME")
        self.env["HOME"] = "/dev/null"
        self.env["DIBS_URL"] = "memory:"
        self.assertEqual(self.setting("ttl"), ("30s", "default"))
        self.ok("run", "k", "--", "true")
        self.assertIn("there is no configuration file", self.fails(78, "config", "--config", "/dev/null/x"))

    def test_the_machine_s_file(self):
        script = (
            'mount -t tmpfs none /etc && mkdir /etc/dibs && printf "ttl: 3m\\nretries: 3\\nshare_stats: yes\\n" '
            '>/etc/dibs/dibs.yaml && "$0" run k -- true && "$0" config && exec "$0" stats'
        )
        probe = subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL, check=False)
        if probe.returncode:
            self.skipTest("namespaces are not permitted here")
        path = self.user_file("ttl: 1m\nshare_stats: no\n")
        result = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, DIBS], env=self.env, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=True,
        )
        out = result.stdout
        self.assertRegex(out, rf"(?m)^ttl +1m +{path}:1:6$")
        self.assertRegex(out, r"(?m)^retries +3 +/etc/dibs/dibs.yaml:2:10$")
        self.assertRegex(out, rf"(?m)^share-stats +no +{path}:2:14$")
        self.assertIn("no statistics are shared", result.stderr)

    def test_errors_name_the_place(self):
        for text, place, message in [
            ("ttl: 1m\ntlt: 2m\n", "2:1", "there is no key 'tlt'; did you mean 'ttl'?"),
            ("frobnicate: 1\n", "1:1", "there is no key 'frobnicate'"),
            ("ttl: soon\n", "1:6", "ttl: 'soon' is not a duration"),
            ("url: 'memory:'\nretries:   many\n", "2:12", "retries: 'many' is not a whole number"),
            ("color: pink\n", "1:8", "color: 'pink' is not one of auto|always|never"),
            ("ttl: 1m\nttl: 2m\n", "2:1", "given before"),
            ("ttl: &a 1m\n", "1:6", "anchors are not supported"),
            ("ttl: *a\n", "1:6", "aliases are not supported"),
            ("ttl: !!str 1m\n", "1:6", "tags are not supported"),
            ("ttl: [1m]\n", "1:6", "ttl takes one value"),
            ("prefix: workflow:\n", "1:17", "put a value that has a colon in it in quotes, such as 'workflow:'"),
            ("prefix:\n  workflow:\n", "2:3", "prefix takes one value; put text with a colon in it in quotes"),
            ("owner: @me\n", "1:8", "put a value that begins with this character in quotes"),
            ("- ttl\n", "1:1", "write lines of the form 'key: value'"),
            ("just words\n", "1:1", "write lines of the form 'key: value'"),
            ("ttl: 1m\n---\nttl: 2m\n", "2:1", "second document"),
            ("? [a]\n: b\n", "1:3", "a key must be plain text"),
            ("ttl: '1m\n", "2:1", "found unexpected end of stream"),
            ("owner: \"a\\0b\"\n", "1:8", "a zero byte"),
            ("a: " + "[" * 40 + "\n", "1:19", "nested too deeply"),
        ]:
            with self.subTest(text=text):
                path = self.user_file(text)
                self.assertIn(f"{path}:{place}: ", self.fails(78, "ls"))
                self.assertIn(message, self.fails(78, "config"))

    def test_bad_settings_fail_every_verb(self):
        self.user_file("kill_after: never\n")
        self.fails(78, "ls")
        self.env["DIBS_RETRIES"] = "-1"
        self.assertIn("DIBS_RETRIES: '-1' is not between 0 and", self.fails(78, "ping"))

    def test_what_is_not_there_counts_as_not_given(self):
        for text in ("", "# nothing\n", "---\n", "ttl:\nowner: ~\nprefix: null\n", "~\n"):
            with self.subTest(text=text):
                self.user_file(text)
                self.assertEqual(self.setting("ttl"), ("30s", "default"))
        self.user_file("owner: 'null'\n")
        self.assertEqual(self.setting("owner")[0], "null")

    def test_a_file_too_large(self):
        self.user_file("# " + "x" * (1024 * 1024) + "\n")
        self.assertIn("more than", self.fails(78, "config"))

    def test_a_folder_in_place_of_the_file(self):
        os.makedirs(self.path("etc/dibs/config.yaml"))
        self.assertIn("config.yaml", self.fails(78, "config"))

    def test_secrets_are_hidden(self):
        url = "redis://me:5ecre7@host/0"
        self.user_file(f"url: {url}\n")
        for args in (["config"], ["config", "--json"], ["ping"]):
            result = self.dibs(*args)
            self.assertNotIn("5ecre7", result.stdout + result.stderr)
        self.assertIn("redis://me:***@host/0", self.ok("config"))

    def test_secrets_from_files(self):
        secret = self.write("secret", f"sqlite:{self.path('s.db')}\n")
        self.env["DIBS_URL"] = "file:" + secret
        self.ok("state", "set", "k", "v")
        self.assertTrue(os.path.exists(self.path("s.db")))
        self.env["DIBS_URL"] = "file:" + self.path("absent")
        err = self.fails(78, "ping")
        self.assertIn("DIBS_URL: ", err)
        self.assertIn("absent", err)
        for text in ("", "\n", f"\nsqlite:{self.path('s.db')}\n"):
            self.env["DIBS_URL"] = "file:" + self.write("empty", text)
            self.assertIn("empty", self.fails(78, "ping"))
        self.user_file(f"url: file:{self.path('absent')}\n")
        self.env["DIBS_URL"] = "file:" + secret
        self.ok("ping")  # what is overridden is not read

    def test_an_empty_url(self):
        """A script whose variable is not set must not use the store of this machine alone."""
        for verb in (["config"], ["ping"], ["run", "k", "--", "true"], ["store", "status"]):
            with self.subTest(verb):
                self.assertIn("--url: the value is empty", self.fails(64, "--url", "", *verb))
        self.user_file('url: ""\n')
        self.assertIn("the value is empty", self.fails(78, "ping"))
        self.env["DIBS_URL"] = f"sqlite:{self.path('s.db')}"
        self.ok("ping")  # it is overridden

    def test_prefix(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("p.db")
        self.env["DIBS_PREFIX"] = "billing:"
        self.ok("state", "set", "k", "v")
        self.acquire("x")
        self.assertEqual(self.ok("ls", "--names"), "x\n")
        del self.env["DIBS_PREFIX"]
        self.assertEqual(self.ok("ls", "--names"), "billing:x\n")
        self.assertEqual(self.ok("state", "ls", "--names"), "billing:k\n")


@unittest.skipUnless(TWO_LOCKS, "the program of the build is not there")
class NoUrl(Case):
    """A program that opens a client without a URL has the configuration of the command."""

    def setUp(self):
        super().setUp()
        self.env.pop("DIBS_CONFIG")
        self.env.pop("DIBS_URL")
        self.env["XDG_CONFIG_HOME"] = self.path("etc")

    def program(self, prefix="", program=TWO_LOCKS, **kwargs):
        process = subprocess.Popen(
            [program, "", prefix, "job", "other"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.folder, **kwargs
        )
        self.addCleanup(self.finish, process)
        return process

    def holder(self, **kwargs):
        process = self.program(**kwargs)
        self.assertEqual(process.stdout.readline(), "first\n")
        return process

    def refused(self, **kwargs):
        """Why the program could not open its client."""
        out, err = self.program(**kwargs).communicate(timeout=PATIENCE)
        self.assertEqual(out, "")
        return err

    def exclude_each_other(self, file):
        program = self.holder()
        self.assertTrue(os.path.exists(self.path(file)))
        self.fails(75, "run", "-n", "job", "--", "true")
        program.communicate("go\n\n", timeout=PATIENCE)
        command = self.hold("job")
        program = self.program()
        wait_until(lambda: self.json("show", "job", "--json")["waiters"], "the program to wait")
        self.let_go(command)
        self.assertEqual(program.stdout.readline(), "first\n")

    def test_by_variable(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("variable.db")
        self.exclude_each_other("variable.db")

    def test_by_file(self):
        self.write("etc/dibs/config.yaml", f"url: sqlite:{self.path('file.db')}\nprefix: 'team:'\n")
        self.exclude_each_other("file.db")

    def test_by_a_file_that_is_named(self):
        self.env["DIBS_CONFIG"] = self.write("mine.yaml", f"url: sqlite:{self.path('named.db')}\nprefix: 'team:'\n")
        self.exclude_each_other("named.db")


    def test_what_a_client_takes(self):
        self.env["DIBS_URL"] = "sqlite:" + self.path("all.db")
        self.write("etc/dibs/config.yaml", "ttl: 47s\nprefix: 'team:'\nstore_timeout: 9s\nkill_after: 3s\n")
        self.holder()
        self.assertEqual(self.json("show", "job", "--json")["holders"][0]["ttl_ms"], 47000)
        self.env["DIBS_TTL"] = "48s"
        self.holder(prefix="mine:")  # what the program says wins
        shown = self.json("show", "job", "--json", "--prefix", "mine:")
        self.assertEqual(shown["holders"][0]["ttl_ms"], 48000)

    def test_errors_are_the_command_s(self):
        for text, message in [
            ("ttl: 1m\ntlt: 2m\n", "config.yaml:2:1: there is no key 'tlt'; did you mean 'ttl'?"),
            ("kill_after: never\n", "config.yaml:1:13: kill_after: 'never' is not a duration"),
        ]:
            self.write("etc/dibs/config.yaml", text)
            self.assertIn(message, self.refused())
            self.assertIn(message, self.fails(78, "ping"))
        self.env["DIBS_TTL"] = "soon"
        self.assertIn("DIBS_TTL: 'soon' is not a duration", self.refused())
        del self.env["DIBS_TTL"]
        self.env["DIBS_CONFIG"] = self.path("absent.yaml")
        self.assertIn("absent.yaml", self.refused())

    def test_the_embedded_store_by_name(self):
        """`sqlite:` without a path, whatever the file says; the command without a URL means it too."""
        self.env["XDG_STATE_HOME"] = self.path("state")
        self.write("etc/dibs/config.yaml", "url: nonsense://x\n")
        self.env["DIBS_URL"] = "sqlite:"
        self.holder()
        self.assertTrue(os.path.exists(self.path("state/dibs/dibs.db")))
        self.fails(75, "run", "-n", "job", "--", "true")
        del self.env["DIBS_URL"]
        self.assertIn("nonsense", self.fails(64, "ping"))
        self.fails(75, "run", "-n", "--config", self.write("empty.yaml", ""), "job", "--", "true")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make such a program")
    def test_a_program_with_rights_of_its_own_ignores_the_environment(self):
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("programs have no rights of their own here")
        program = shutil.copy(TWO_LOCKS, self.path("setgid"))
        os.chmod(self.folder, 0o755)
        os.chown(program, 0, 65534)
        os.chmod(program, 0o2755)
        self.env["DIBS_URL"] = "nonsense://x"
        self.env["HOME"] = self.path("home")
        self.assertIn("nonsense", self.refused(program=TWO_LOCKS))
        err = self.refused(program=program, user=65534, group=100, extra_groups=[])
        self.assertNotIn("nonsense", err)
        self.assertIn("HOME is not set", err)


class Startup(Case):
    def test_libraries_are_loaded_when_needed(self):
        def loaded(*args):
            """What the dynamic linker tells of the files that it opened."""
            env = {**self.env, "LD_DEBUG": "files"}
            return subprocess.run(
                [DIBS, *args], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
            ).stderr.decode()

        self.env.pop("DIBS_CONFIG")
        self.assertIn("libc.so", loaded("config"))
        self.assertNotIn("libyaml", loaded("config"))
        self.assertNotIn("libsqlite", loaded("config"))
        self.assertIn("libyaml", loaded("config", "--config", self.write("c.yaml", "ttl: 1m\n")))
        self.assertIn("libsqlite", loaded("ping"))


if __name__ == "__main__":
    main()
