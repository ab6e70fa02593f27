"""dibs store: the schema of a store, looked at, made, upgraded."""
# SPDX-License-Identifier: MIT
import os
import shutil
import stat
import subprocess
import unittest

from runtools import PATIENCE, inside, may_unshare, wait_until
from support import DIBS, Case, main

SERVER = os.environ.get("DIBS_TEST_URL", "")


class NoSchema(Case):
    @unittest.skipIf(SERVER, "of stores that need none")
    def test_nothing_is_needed(self):
        for verb in ("status", "init", "upgrade"):
            self.assertIn("needs no schema", self.ok("store", verb))
            state = self.json("store", verb, "--json")
            self.assertFalse(state["needed"])
            self.assertFalse(state["changed"])

    def test_usage(self):
        self.assertIn("store needs a verb", self.fails(64, "store"))
        self.assertIn("did you mean 'store init'?", self.fails(64, "store", "inti"))


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@unittest.skipIf(SERVER, "of the embedded store")
class Users(Case):
    """One store for each user, and one for several."""

    NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        # The checkout may be where others cannot go, as below a home of mode 0700.
        self.program = shutil.copy(DIBS, self.path("program"))
        os.chmod(self.program, 0o755)

    def share(self, *more, url=None, group=os.getgid()):
        where = ["--url", url or "sqlite:" + self.path("shared/dibs.db")]
        return *where, "store", "share", f"--group={group}", *more

    def test_files_are_open_to_the_group_whatever_the_umask(self):
        for _ in range(2):
            self.assertIn("url: sqlite:" + self.path("shared/dibs.db"), self.ok(*self.share(), umask=0o077))
        self.env["DIBS_URL"] = "sqlite:" + self.path("shared/dibs.db")
        for name in ("dibs.db-wal", "dibs.db-shm"):
            os.remove(self.path("shared/" + name))
        holder = self.hold("k")
        waiter = self.start("run", "k", "--", "true", umask=0o077)
        wait_until(lambda: self.waiters("k"), "a waiter")
        bells = self.path("shared/dibs.db.bells")
        wait_until(lambda: any(mode_of(os.path.join(bells, name)) == 0o660 for name in os.listdir(bells)), "a doorbell")
        self.assertEqual(mode_of(bells), 0o2770)
        self.assertEqual(mode_of(self.path("shared")), 0o2770)
        for name in ("dibs.db", "dibs.db-wal", "dibs.db-shm"):
            self.assertEqual(mode_of(self.path("shared/" + name)), 0o660, name)
        self.let_go(holder)
        self.assertEqual(waiter.wait(PATIENCE), 0)
        told = self.json(*self.share("--json"))
        self.assertEqual((told["file"], told["url"]), (self.path("shared/dibs.db"), self.env["DIBS_URL"]))

    def test_only_a_store_of_its_own_is_shared(self):
        for args, code, why in (
            (["store", "share"], 64, "--group is missing"),
            (["store", "share", "--group=no-such-group"], 64, "no such group"),
            (self.share(url="memory:x"), 64, "sqlite:"),
            (self.share(url="sqlite:relative/dibs.db"), 64, "whole path"),
            (self.share(url="sqlite:" + self.path("dibs.db")), 78, "has other files, such as"),
        ):
            self.assertIn(why, self.fails(code, *args))
        self.assertEqual(mode_of(self.folder), 0o755)
        os.mkdir(self.path("foreign"))
        self.write("foreign/dibs.db", "this is not a database\n" * 100)
        os.chmod(self.path("foreign/dibs.db"), 0o600)
        self.fails(78, *self.share(url="sqlite:" + self.path("foreign/dibs.db")))
        self.assertEqual(mode_of(self.path("foreign/dibs.db")), 0o600)
        os.mkdir(self.path("home"), 0o700)
        closed = self.fails(78, *self.share(url="sqlite:" + self.path("home/locks/dibs.db"), group=65533))
        self.assertIn(f"the folder {self.path('home')} is closed", closed)
        os.mkdir(self.path("links"))
        os.symlink(self.path("program"), self.path("links/dibs.db-wal"))
        self.dibs(*self.share(url="sqlite:" + self.path("links/dibs.db")))
        self.assertEqual(mode_of(self.path("program")), 0o755)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_two_users_exclude_each_other(self):
        url = "sqlite:" + self.path("shared/dibs.db")
        self.env["DIBS_URL"] = url
        os.mkdir(self.path("shared"))
        self.ok("ping")
        os.chmod(self.path("shared"), 0o777)
        refused = self.dibs("run", "k", "--", "true", program=self.program, **self.NOBODY)
        self.assertEqual(refused.returncode, 77)
        self.assertIn("dibs store share", refused.stderr)
        holder = self.hold("other")  # What is held stays held.
        self.ok(*self.share(group=65534), umask=0o077)
        for mine, yours in (({}, self.NOBODY), (self.NOBODY, {})):
            before = self.start("run", "k", "--", "sh", "-c", "echo held; exec cat", program=self.program,
                                stdin=subprocess.PIPE, umask=0o077, **mine)
            self.assertEqual(before.stdout.readline(), "held\n")
            busy = self.dibs("run", "-n", "k", "--", "true", program=self.program, umask=0o077, **yours)
            self.assertEqual(busy.returncode, 75, busy.stderr)
            after = self.start("run", "k", "--", "echo", "got it", program=self.program, umask=0o077, **yours)
            wait_until(lambda: self.waiters("k"), "a waiter")
            self.let_go(before)
            self.assertEqual(after.wait(PATIENCE), 0)
            self.assertEqual((after.stdout.read(), after.stderr.read()), ("got it\n", ""))
        self.assertEqual(self.dibs("run", "-n", "other", "--", "true", program=self.program, **self.NOBODY).returncode, 75)
        self.let_go(holder)
        stranger = {**self.NOBODY, "group": 65533}
        refused = self.dibs("run", "k", "--", "true", program=self.program, **stranger)
        self.assertEqual(refused.returncode, 77)
        self.assertIn("join the group", refused.stderr)

    def test_a_store_of_ones_own_is_told_once(self):
        own = "no store is configured, so this user has one of its own, " + self.path("dibs/dibs.db")
        self.assertEqual(self.dibs("run", "k", "--", "true").stderr, "")
        del self.env["DIBS_URL"]
        self.assertEqual(self.ok("-q", "run", "k", "--", "true"), "")
        first = self.dibs("run", "k", "--", "true")
        self.assertIn(own, first.stderr)
        self.assertIn("dibs help store share", first.stderr)
        self.assertEqual(len(first.stderr.splitlines()), 1)
        for verb in (["run", "k", "--", "true"], ["ls"]):
            self.assertEqual(self.dibs(*verb).stderr, "")

    def test_a_variable_that_names_a_store_in_vain_is_told(self):
        self.env["DIBS_STORE"] = "redis://127.0.0.1:1"
        self.assertEqual(self.dibs("run", "k", "--", "true").stderr, "")
        del self.env["DIBS_URL"]
        self.dibs("run", "k", "--", "true")
        again = self.dibs("run", "k", "--", "true")
        self.assertEqual(again.returncode, 0)
        self.assertIn("DIBS_STORE is set, which dibs does not read, so that " + self.path("dibs/dibs.db"), again.stderr)
        self.assertIn("DIBS_URL", again.stderr)
        self.assertNotIn("127.0.0.1:1", again.stderr)
        self.assertEqual(self.dibs("-q", "ls").stderr, "")

    @unittest.skipUnless(may_unshare(), "only root can have a /var/lib of its own")
    def test_the_store_of_the_machine(self):
        del self.env["DIBS_URL"], self.env["XDG_STATE_HOME"]
        os.mkdir(self.path("home"))
        os.chown(self.path("home"), 65534, 65534)
        self.write("nobody.sh", 'HOME=$PWD/home exec setpriv --reuid=65534 --regid=65534 --clear-groups ./program "$@"\n')
        self.write("users.sh", """
            ./program run k -- true 2>root
            sh nobody.sh run k -- true 2>other
            ./program run k -- sh nobody.sh run -n k -- touch home/apart
            ./program store share --group 65534 || exit 9
            rm /var/lib/dibs/dibs.db.told
            ./program ls 2>shared
            export DIBS_URL=sqlite:/var/lib/dibs/dibs.db
            ./program run k -- env -u DIBS_LOCK_CHAIN sh nobody.sh run -n k -- touch home/together
        """)
        made = subprocess.run([*inside("mount -t tmpfs -o mode=755 none /var/lib\n"), "sh", "users.sh"],
                              env=self.env, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 75, made.stderr)
        self.assertIn("this user has one of its own, /var/lib/dibs/dibs.db; locks of other users do", self.text("root"))
        self.assertIn(self.path("home/.local/state/dibs/dibs.db"), self.text("other"))
        self.assertIn("such as root's in /var/lib/dibs,", self.text("other"))
        self.assertEqual(self.text("shared"), "")
        self.assertEqual(sorted(os.listdir(self.path("home"))), [".local", "apart"])


@unittest.skipUnless(SERVER.startswith("postgres"), "on a PostgreSQL server")
class Schema(Case):
    def on(self, schema, *args):
        between = "&" if "?" in SERVER else "?"
        return ("--url", f"{SERVER}{between}schema={schema}", *args)

    def test_it_is_made_once(self):
        self.assertIn("not set up", self.dibs(*self.on("once", "store", "status")).stdout)
        self.assertEqual(self.dibs(*self.on("once", "store", "status")).returncode, 1)
        self.assertIn("dibs store init", self.fails(78, *self.on("once", "ls")))
        self.assertIn("dibs store init", self.fails(78, *self.on("once", "store", "upgrade")))
        self.assertTrue(self.json(*self.on("once", "store", "init", "--json"))["changed"])
        self.assertFalse(self.json(*self.on("once", "store", "init", "--json"))["changed"])
        self.assertFalse(self.json(*self.on("once", "store", "upgrade", "--json"))["changed"])
        self.assertIn("ready", self.ok(*self.on("once", "store", "status")))
        self.assertEqual(self.ok(*self.on("once", "run", "x", "--", "echo", "hi")), "hi\n")

    def test_doctor(self):
        text = self.dibs("--url", SERVER, "doctor").stdout
        for subject in ("version", "schema", "role", "durability", "user", "clock", "transport"):
            self.assertIn(f"{subject}: ", text)

    def test_libpq_is_loaded_for_it_alone(self):
        env = {**os.environ, "LD_DEBUG": "files"}
        for url, loaded in ((SERVER, True), ("memory:", False)):
            result = subprocess.run([DIBS, "--url", url, "ping"], env=env, capture_output=True, text=True, check=True)
            self.assertEqual("libpq.so" in result.stderr, loaded, url)


if __name__ == "__main__":
    main()
