"""state get, set, cas, del, add, ls, watch."""
# SPDX-License-Identifier: MIT
import base64
import json
import signal
import subprocess

from support import DIBS, Case, main, wait_until


class State(Case):
    def pipe(self, data, *args):
        """Runs with bytes as standard input; the result is in bytes too."""
        return subprocess.run(
            [DIBS, *args], input=data, capture_output=True, env=self.env, check=False
        )

    def test_set_and_get(self):
        self.fails(1, "state", "get", "k")
        self.assertEqual(self.ok("state", "set", "k", "v 1"), "")
        self.assertEqual(self.ok("state", "get", "k"), "v 1\n")
        self.assertEqual(self.ok("state", "get", "--raw", "k"), "v 1")
        self.ok("state", "set", "k", "")
        self.assertEqual(self.ok("state", "get", "k"), "\n")

    def test_values_like_options(self):
        self.ok("state", "set", "k", "--", "--json")
        self.assertEqual(self.ok("state", "get", "k"), "--json\n")
        self.ok("state", "set", "k", "-5")
        self.assertEqual(self.ok("state", "add", "k", "-1"), "-6\n")

    def test_versions(self):
        first = self.json("state", "set", "--json", "k", "a")["version"]
        shown = self.json("state", "get", "--json", "k")
        self.assertEqual((shown["value"], shown["version"], shown["expires_ms"]), ("a", first, None))
        self.assertEqual(self.ok("state", "get", "--with-version", "k"), f"{first} a\n")
        self.assertGreater(self.json("state", "set", "--json", "k", "a")["version"], first)

    def test_cas(self):
        answer = self.json("state", "cas", "--json", "k", "0", "a")
        self.assertTrue(answer["written"])
        found = self.json("state", "cas", "--json", "k", "0", "b", code=1)
        self.assertEqual((found["written"], found["version"]), (False, answer["version"]))
        self.assertEqual(self.ok("state", "get", "k"), "a\n")
        self.ok("state", "cas", "k", str(answer["version"]), "b")
        self.assertEqual(self.ok("state", "get", "k"), "b\n")
        self.assertIn("k", self.fails(1, "state", "cas", "k", str(answer["version"]), "c"))

    def test_del(self):
        version = self.json("state", "set", "--json", "k", "a")["version"]
        self.fails(1, "state", "del", "k", "--if-version", str(version + 1))
        self.assertEqual(self.ok("state", "get", "k"), "a\n")
        self.ok("state", "del", "k", "--if-version", str(version))
        self.fails(1, "state", "del", "k")

    def test_add(self):
        self.assertEqual(self.ok("state", "add", "n"), "1\n")
        self.assertEqual(self.ok("state", "add", "n", "41"), "42\n")
        self.assertEqual(self.json("state", "add", "--json", "n", "-2")["sum"], 40)
        self.ok("state", "set", "n", "9223372036854775807")
        self.fails(64, "state", "add", "n")
        self.ok("state", "set", "n", "words")
        self.fails(64, "state", "add", "n")
        self.assertEqual(self.ok("state", "get", "n"), "words\n")

    def test_expiry(self):
        self.ok("state", "set", "--expires", "10m", "k", "v")
        self.assertTrue(590000 < self.json("state", "get", "--json", "k")["expires_ms"] <= 600000)
        self.ok("state", "set", "k", "v", "--expires", "20ms")
        wait_until(lambda: self.dibs("state", "get", "k").returncode == 1, "the expiry")
        self.assertEqual(self.ok("state", "ls", "--names"), "")

    def test_standard_input_is_taken_as_it_is(self):
        data = bytes(range(256)) + b"\n\n"
        self.assertEqual(self.pipe(data, "state", "set", "k", "-").returncode, 0)
        self.assertEqual(self.pipe(b"", "state", "get", "--raw", "k").stdout, data)
        shown = self.json("state", "get", "--json", "k")
        self.assertEqual(base64.b64decode(shown["value_base64"]), data)
        self.assertNotIn("value", shown)

    def test_text_is_text_in_json(self):
        for text in ("", "gr\u00fc\u00dfe \U0001f511", 'quote " and \\ and \t'):
            with self.subTest(text=text):
                self.pipe(text.encode(), "state", "set", "k", "-")
                self.assertEqual(self.json("state", "get", "--json", "k")["value"], text)

    def test_bytes_that_are_almost_text(self):
        for data in (b"\xc3", b"a\x80", b"\xff", b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe0\x80\x80",
                     b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80"):
            with self.subTest(data=data):
                self.pipe(data, "state", "set", "k", "-")
                shown = self.json("state", "get", "--json", "k")
                self.assertEqual(base64.b64decode(shown["value_base64"]), data)

    def test_the_largest_value(self):
        largest = 1024 * 1024
        self.assertEqual(self.pipe(b"x" * largest, "state", "set", "k", "-").returncode, 0)
        result = self.pipe(b"y" * (largest + 1), "state", "set", "k", "-")
        self.assertEqual(result.returncode, 64)
        self.assertIn(b"1048576 bytes", result.stderr)
        self.assertEqual(self.pipe(b"", "state", "get", "--raw", "k").stdout, b"x" * largest)

    def test_ls(self):
        self.assertEqual(self.json("state", "ls", "--json")["values"], [])
        for key in ("b", "a:1", "a:2"):
            self.ok("state", "set", key, "four")
        self.assertEqual(self.ok("state", "ls", "--names"), "a:1\na:2\nb\n")
        self.assertEqual(self.ok("state", "ls", "--names", "a:"), "a:1\na:2\n")
        table = self.ok("state", "ls", "a:").splitlines()
        self.assertEqual(table[0].split(), ["KEY", "BYTES", "VERSION", "EXPIRES"])
        self.assertRegex(table[1], r"^a:1  4      [0-9]+  never$")
        items = self.json("state", "ls", "--json", "b")["values"]
        self.assertEqual([(i["key"], i["bytes"], i["expires_ms"]) for i in items], [("b", 4, None)])

    def test_watch(self):
        self.ok("state", "set", "k", "one")
        process = self.start("state", "watch", "--json", "--count", "4", "k")
        first = json.loads(process.stdout.readline())
        self.assertEqual((first["key"], first["value"], first["merged"]), ("k", "one", False))
        self.pipe(b"\xff", "state", "set", "k", "-")
        second = json.loads(process.stdout.readline())
        self.assertEqual(base64.b64decode(second["value_base64"]), b"\xff")
        self.assertGreater(second["version"], first["version"])
        self.ok("state", "del", "k")
        gone = json.loads(process.stdout.readline())
        self.assertEqual((gone["value"], gone["version"], gone["expires_ms"]), (None, 0, None))
        self.assertTrue(gone["merged"])
        self.ok("state", "set", "--expires", "10m", "k", "two")
        last = json.loads(process.stdout.readline())
        self.assertEqual((last["value"], last["back"]), ("two", False))
        self.assertGreater(last["expires_ms"], 0)
        self.assertEqual(process.wait(), 0)

    def test_watch_as_text(self):
        version = self.json("state", "set", "--json", "k", "v")["version"]
        self.assertEqual(self.ok("state", "watch", "--count", "1", "k"), "v\n")
        self.assertEqual(self.ok("state", "watch", "--count", "1", "--with-version", "k"), f"{version} v\n")
        self.assertEqual(self.ok("state", "watch", "--count", "1", "nothing"), "\n")
        late = self.dibs("state", "watch", "-w", "10ms", "k")
        self.assertEqual((late.returncode, late.stdout), (75, "v\n"))
        self.fails(64, "state", "watch", "--count", "-1", "k")

    def test_watch_that_looks_once(self):
        self.assertEqual(self.fails(1, "state", "watch", "-n", "0", "k"), "dibs: there is no value k\n")
        self.assertEqual(self.dibs("state", "watch", "-n", "0", "k").stdout, "")
        self.assertIsNone(self.json("state", "watch", "-n", "0", "--json", "k", code=1)["value"])
        self.ok("state", "set", "k", "v")
        self.assertEqual(self.ok("state", "watch", "-n", "0", "k"), "v\n")
        self.assertEqual(self.json("state", "watch", "--count", "0", "--json", "k")["value"], "v")

    def test_watch_ends_with_its_reader(self):
        self.ok("state", "set", "k", "v")
        process = self.start("state", "watch", "k")
        self.assertEqual(process.stdout.readline(), "v\n")
        process.stdout.close()
        self.assertEqual(process.wait(), 128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
