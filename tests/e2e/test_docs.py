"""What is made from the tables: man pages, completions, docs/config.md."""
# SPDX-License-Identifier: MIT
import glob
import os
import pty
import re
import select
import shutil
import subprocess
import unittest

from support import DIBS, PATIENCE, ROOT, Case, main


class Security(unittest.TestCase):
    def test_every_test_that_it_names_is_there(self):
        with open(os.path.join(ROOT, "docs", "security.md"), encoding="utf-8") as file:
            rows = [line for line in file if line.startswith("| ")][2:]
        texts = {}
        for folder in ("e2e", "unit", "web"):
            for path in glob.glob(os.path.join(ROOT, "tests", folder, "test_*")):
                with open(path, encoding="utf-8") as file:
                    texts[os.path.basename(path)] = file.read()
        self.assertGreater(len(rows), 15)
        for row in rows:
            tests = row.split(" | ")[2].rstrip(" |\n")
            text = None
            if tests.startswith("none:"):
                continue
            for name in re.findall(r"`([^`]+)`", tests):
                if ": " in name:
                    path, name = name.split(": ")
                    text = texts[path]
                self.assertRegex(text, rf"\b{name}\b", row)


class Examples(unittest.TestCase):
    """The retold examples: the front page leads to each, and their tables name what there is."""

    @staticmethod
    def read(*path):
        with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
            return file.read()

    def test_names_and_links_of_the_retold_examples_are_there(self):
        known = self.read("docs", "config.md") + self.read("docs", "metrics.md")
        known += "".join(self.read("include", "dibs", name) for name in os.listdir(os.path.join(ROOT, "include", "dibs")))
        front = self.read("README.md")
        pages = glob.glob("examples/seed*/README.md", root_dir=ROOT)
        self.assertGreater(len(pages), 3)
        for page in pages:
            text = self.read(page)
            self.assertIn(f"({page})", front)
            for name in re.findall(r"\bdibs_\w+|\bDIBS_\w+", text):
                self.assertRegex(known, rf"\b{name}\b", page)
            for link in re.findall(r"\]\(([^)#]+)", text):
                self.assertTrue(os.path.exists(os.path.join(ROOT, os.path.dirname(page), link)), f"{page}: {link}")


class ManPages(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("man"))
        self.ok("help", "--man", self.path("man"))
        self.pages = sorted(glob.glob(self.path("man/*")))

    def test_there_is_one_for_each_verb(self):
        names = {os.path.basename(page) for page in self.pages}
        for line in self.ok("completion", "fish").splitlines():
            if line.startswith("set -g __dibs_verbs "):
                verbs = line.split()[3:]
        self.assertGreater(len(verbs), 10)
        for name in ["dibs.1", "dibs.yaml.5", "dibs-state-get.1"] + [f"dibs-{v}.1" for v in verbs]:
            self.assertIn(name, names)

    def test_verbs_are_grouped_as_in_help(self):
        shown = re.findall(r"(?m)^(\w+):\n((?:  \w+ .*\n)+)", self.ok("help").partition("\nTry ")[0])
        listed = re.findall(r"(?m)^\.Ss (\w+)\n((?:(?!\.Ss).*\n)+?)\.El\n", self.text("man/dibs.1"))
        self.assertGreater(len(shown), 3)
        self.assertEqual(
            [(name, re.findall(r"\.It Xr dibs-(\S+) 1", items)) for name, items in listed],
            [(name, [line.split()[0] for line in lines.splitlines()]) for name, lines in shown],
        )

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_has_nothing_to_say(self):
        result = subprocess.run(
            ["mandoc", "-Tlint", "-W", "warning", *self.pages], stdout=subprocess.PIPE, text=True, check=False
        )
        self.assertEqual((result.stdout, result.returncode), ("", 0))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_they_say_what_help_says(self):
        out = subprocess.run(
            ["mandoc", "-Tascii", self.path("man/dibs-run.1")], stdout=subprocess.PIPE, check=True
        ).stdout
        text = re.sub(b".\x08", b"", out)  # bold is a letter printed twice
        for part in (b"--on-lost POLICY", b"EXIT STATUS", b"128+N", b"-w, --wait, --timeout DUR", b"-p, --permits N",
                     b"DIBS_LOCK_FENCE_1", b"DIBS_PROGRESS_FD", b"sticky"):
            self.assertIn(part, text)

    def test_variables_have_their_verbs(self):
        items = dict(re.findall(r"\.It Ev (DIBS_\w+)\nThe default of\n\.Fl ((?:(?!\.It|\.El).*\n)+)", self.text("man/dibs.1")))
        self.assertEqual(items["DIBS_URL"], "\\-url .\n")
        self.assertEqual(items["DIBS_WAIT"], "\\-wait\nof run,\nacquire.\n")
        self.assertEqual(items["DIBS_SERVE_BOARD"], "\\-board\nof serve.\n")

    def test_they_can_be_made_again(self):
        self.env["SOURCE_DATE_EPOCH"] = "0"
        self.ok("help", "--man", self.path("man"))
        self.assertIn(".Dd January 1, 1970\n", self.text("man/dibs.1"))

    def test_a_folder_that_is_not_there(self):
        self.assertIn("none/dibs.1", self.fails(70, "help", "--man", self.path("none")))


class ConfigDoc(Case):
    def test_is_current(self):
        with open(os.path.join(ROOT, "docs", "config.md"), encoding="utf-8") as file:
            self.assertEqual(self.ok("config", "--doc"), file.read(), "run: dibs config --doc >docs/config.md")


class Completion(Case):
    def script(self, shell):
        path = self.path("completion." + shell)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.ok("completion", shell))
        return path

    def shell(self, *argv):
        self.env["PATH"] = os.path.dirname(DIBS) + os.pathsep + self.env["PATH"]
        result = subprocess.run(argv, capture_output=True, text=True, env=self.env, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""), argv)
        return result.stdout.splitlines()

    def bash(self, line):
        """What bash offers at the end of a line."""
        code = (
            'source "$1"; COMP_LINE=$2 COMP_POINT=${#2}; COMP_WORDBREAKS=$\' \\t\\n"\\\'><=;|&(:\'; '
            '_dibs; ((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; true'
        )
        return self.shell("bash", "-c", code, "bash", self.script("bash"), line)

    def test_bash_words(self):
        self.assertEqual(self.bash("dibs acq"), ["acquire"])
        self.assertEqual(self.bash("dibs --url memory: pi"), ["ping"])
        self.assertEqual(self.bash("dibs state c"), ["cas"])
        self.assertEqual(self.bash("dibs completion z"), ["zsh"])
        file = self.write("jobs.yaml", "")
        for verb in "job check", "job check a.yaml", "cron import":
            self.assertEqual(self.bash(f"dibs {verb} {file[:-3]}"), [file])
        self.assertEqual(self.bash("dibs help doc"), ["doctor"])
        self.assertEqual(self.bash("dibs run --on"), ["--on-unavailable", "--once", "--once-after", "--on-lost", "--on-yield"])
        self.assertEqual(self.bash("dibs run --once-after s"), ["start", "success"])
        self.assertEqual(self.bash("dibs ls --on"), [])
        self.assertEqual(self.bash("dibs ls --st"), ["--store-timeout", "--stale"])
        self.assertEqual(self.bash("dibs tra"), ["trail"])
        self.assertEqual(self.bash("dibs ls --log-level=t"), ["trace"])
        self.assertEqual(self.bash("dibs ls --color "), ["auto", "always", "never"])
        self.assertEqual(self.bash("dibs ls --color=al"), ["always"])
        self.assertEqual(self.bash("dibs run --on-lost k"), ["kill"])
        self.assertEqual(self.bash("dibs run --on-lost=e"), ["exec:"])
        self.assertEqual(self.bash("dibs run --on-lost signal:U"), ["USR1", "USR2"])
        self.assertEqual(self.bash("dibs run --on-yield ex"), ["exit"])
        self.assertEqual(self.bash("dibs run --once "), ["minute", "hour", "day"])
        self.assertEqual(self.bash("dibs run --signal I"), ["INT"])
        self.assertEqual(self.bash("dibs acquire --durability wa"), ["wait:1", "wait:2"])
        self.assertEqual(self.bash("dibs --url post"), ["postgres://"])
        self.assertEqual(self.bash("dibs run name -- print"), self.bash("dibs run name print"))
        self.assertIn("printf", self.bash("dibs run --ttl 5s name -- print"))

    def test_bash_names(self):
        self.acquire("job:one")
        self.acquire("job:two")
        self.acquire("other thing")
        self.ok("state", "set", "key:one", "v")
        self.assertEqual(self.bash("dibs show oth"), ["other\\ thing"])
        self.assertEqual(self.bash("dibs show job:"), ["one", "two"])
        self.assertEqual(self.bash("dibs run job:t"), ["two"])
        self.assertEqual(self.bash("dibs run a --also job:t"), ["two"])
        self.assertEqual(self.bash("dibs deadlocks job:t"), ["two"])
        self.assertEqual(self.bash("dibs state get ke"), ["key:one"])
        self.ok("queue", "pause", "mail")
        self.assertEqual(self.bash("dibs queue stats ma"), ["mail"])
        self.assertEqual(self.bash("dibs queue run ma"), ["mail"])
        self.assertIn("printf", self.bash("dibs queue run -j 4 mail -- print"))
        url = "sqlite:" + self.path("locks.db")
        self.env["DIBS_URL"] = "sqlite:" + self.path("another.db")
        self.assertEqual(self.bash("dibs show oth"), [])
        self.assertEqual(self.bash(f"dibs --url {url} show oth"), ["other\\ thing"])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_loads(self):
        code = 'autoload -Uz compinit && compinit -u -d "$2"; source "$1"; print ${_comps[dibs]}'
        self.assertEqual(
            self.shell("zsh", "-fc", code, "zsh", self.script("zsh"), self.path("dump")), ["_dibs"]
        )

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_values(self):
        """On a terminal: zsh completes nowhere else. ^D lists what it offers."""
        self.acquire("job:one")
        self.env["PATH"] = os.path.dirname(DIBS) + os.pathsep + self.env["PATH"]
        terminal, side = pty.openpty()
        process = subprocess.Popen(
            ["zsh", "-fi"], stdin=side, stdout=side, stderr=side, env={**self.env, "TERM": "dumb"},
            start_new_session=True,
        )
        self.addCleanup(os.close, terminal)
        self.addCleanup(self.finish, process)
        os.close(side)

        def type_in(text, *wanted):
            """Types it and reads until all that is wanted is shown."""
            os.write(terminal, text.encode())
            shown = ""
            while not all(word in shown for word in wanted):
                if not select.select([terminal], [], [], PATIENCE)[0]:
                    self.fail(f"{text!r} shows {shown!r}, not {wanted}")
                shown += os.read(terminal, 4096).decode(errors="replace")

        # The prompt is shown when the line editor has the terminal.
        type_in(
            f"autoload -Uz compinit; compinit -u -d {self.path('dump')}; source {self.script('zsh')}; PS1=rea''dy\n",
            "ready",
        )
        for line, wanted in (
            ("dibs run --on-lost ", "kill ignore signal:HUP exec:"),
            ("dibs ls --color ", "auto always never"),
            ("dibs run --once ", "minute hour day"),
            ("dibs --url ", "sqlite: redis:// postgres://"),
            ("dibs show j", "job:one"),
        ):
            type_in(f"{line}\x04", *wanted.split())
            os.write(terminal, b"\x15")  # takes the line away

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_words(self):
        self.acquire("job:one")
        script = self.script("fish")

        def fish(line):
            out = self.shell("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
            words = [word.split("\t")[0] for word in out]
            # From version 4 on, fish adds words that have the letters somewhere.
            return [word for word in words if word.startswith(line.split()[-1])]

        self.assertEqual(fish("dibs acq"), ["acquire"])
        self.assertEqual(fish("dibs state c"), ["cas"])
        self.assertEqual(fish("dibs run --on-l"), ["--on-lost"])
        self.assertEqual(fish("dibs run x --also job"), ["job:one"])
        self.assertEqual(fish("dibs ls --on-"), [])
        self.assertEqual(fish("dibs show job"), ["job:one"])
        self.assertEqual(fish("dibs ls --color al"), ["always"])
        self.assertEqual(fish("dibs run --on-lost signal:U"), ["signal:USR1", "signal:USR2"])
        self.assertEqual(fish("dibs run --once h"), ["hour"])
        self.assertEqual(fish("dibs --url redl"), ["redlock://"])


class Scripts(Case):
    def test_keys_md_names_them_all(self):
        """Those that are run are in the table, the parts of others below it."""
        with open(os.path.join(ROOT, "src", "store", "redis", "script.h"), encoding="utf-8") as file:
            run = set(re.findall(r"X\((\w+)\)", file.read())) - {"name"}
        there = {os.path.basename(path)[:-4] for path in glob.glob(os.path.join(ROOT, "src/store/redis/lua/*.lua"))}
        with open(os.path.join(ROOT, "docs", "keys.md"), encoding="utf-8") as file:
            chapter = re.search(r"(?ms)^## Scripts\n(.*?)^## ", file.read()).group(1)
        rows = re.findall(r"(?m)^\| ((?:`\w+` ?)+)\|", chapter)
        self.assertEqual({name for row in rows for name in re.findall(r"\w+", row)}, run)
        self.assertEqual(set(re.findall(r"`(\w+)\.lua`", chapter)), there - run)


if __name__ == "__main__":
    main()
