"""dibs store: the schema of a store, looked at, made, upgraded."""
# SPDX-License-Identifier: MIT
import os
import subprocess
import unittest

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
