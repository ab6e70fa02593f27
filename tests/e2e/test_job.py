"""job check: jobs files are checked without a store, and those of the documents are good."""
# SPDX-License-Identifier: MIT
import os
import re

from support import ROOT, Case, main

GOOD = "jobs: {a: {schedule: '@daily', run: [x]}}\n"


class Check(Case):
    def setUp(self):
        super().setUp()
        # The zones of the tests, and a store that nothing may look for.
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")
        self.env["DIBS_URL"] = "redis://127.0.0.1:1"

    def check(self, text, *args):
        return self.dibs("job", "check", self.write("jobs.yaml", text), *args)

    def test_a_good_file_prints_nothing(self):
        result = self.check(GOOD)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_mistakes_have_line_and_column(self):
        result = self.check("jobs:\n  a:\n    scedule: x\n    schedule: '0 25 * * *'\n    run: [x]\n")
        path = self.path("jobs.yaml")
        self.assertEqual((result.returncode, result.stdout), (78, ""))
        self.assertEqual(result.stderr, f"dibs: {path}:3:5: a job has no key 'scedule'; did you mean 'schedule'?\n"
                                        f"dibs: {path}:4:18: schedule: hour 25 is not within 0 to 23\n")
        self.assertEqual(self.check("x", "-q").stderr, "")

    def test_twenty_mistakes_are_shown(self):
        lines = "".join(f"  job-{i}: {{}}\n" for i in range(30))
        shown = self.check("jobs:\n" + lines).stderr.splitlines()
        self.assertEqual(len(shown), 21)
        self.assertIn("has 30 mistakes in all", shown[-1])

    def test_control_characters_are_not_printed(self):
        self.assertNotIn("\033", self.check('jobs: {"\\e[31m": {run: [x]}}').stderr)

    def test_warnings_are_no_mistakes(self):
        result = self.check("jobs: {a: {schedule: 0 0 2 * * 2, run: [x]}}")
        self.assertEqual(result.returncode, 0)
        self.assertIn(":1:22: warning: a weekday is a number here", result.stderr)

    def test_json(self):
        path = self.write("good.yaml", "version: 3\n" + GOOD)
        (file,) = self.json("job", "check", path, "--json")["files"]
        self.assertEqual((file["ok"], file["set"], file["board"], file["version"]), (True, "good", "main", 3))
        (job,) = file["jobs"]
        self.assertEqual((job["name"], job["schedule"], job["zone"]), ("a", ["@daily"], "UTC"))
        self.assertRegex(job["hash"], r"^[0-9a-f]{16}$")
        path = self.write("bad.yaml", "jobs: {a: {runn: [x]}}")
        answer = self.json("job", "check", path, "--json", code=78)
        self.assertFalse(answer["ok"])
        (file,) = answer["files"]
        self.assertEqual(file["mistakes"][1], {
            "line": 1, "column": 12, "message": "a job has no key 'runn'; did you mean 'run'?"})
        self.assertEqual((file["mistake_count"], file["warnings"]), (2, []))

    def test_files_are_compared(self):
        one, two = self.write("one.yaml", GOOD), self.write("two.yaml", GOOD)
        self.assertEqual(self.fails(78, "job", "check", one, two),
                         f"dibs: {two}: the job 'a' is in {one} too; rename one of them\n")
        other = self.write("other.yaml", "board: b\nset: one\n" + GOOD)
        self.ok("job", "check", one, other)
        same = self.write("same.yaml", "set: one\njobs: {}\n")
        self.assertIn("the set 'one' is in", self.fails(78, "job", "check", one, same))

    def test_a_lock_of_two_files_is_a_warning(self):
        job = "{run: [x], lock: {key: k}}"
        one, two = self.write("one.yaml", f"jobs: {{a: {job}}}"), self.write("two.yaml", f"jobs: {{b: {job}}}")
        result = self.dibs("job", "check", one, two)
        self.assertEqual((result.returncode, result.stderr), (
            0, f"dibs: {two}: warning: the lock 'k' is in {one} too; only one of these jobs runs at a time\n"))

    def test_a_file_that_is_not_there(self):
        self.assertIn("cannot open", self.fails(1, "job", "check", self.path("none")))

    def test_cron_check_points_here(self):
        path = self.write("jobs.yaml", GOOD)
        self.assertIn("dibs job check", self.fails(64, "cron", "check", path))

    def test_an_imported_crontab_is_good(self):
        tab = ("MAILTO=me\nSHELL=/bin/bash\nDIBS_URL=redis://x\nPATH = \"/usr/bin:/bin\"\n# dibs: nightly\n"
               "30 2 * * *  backup 'it' # now\nCRON_TZ=Europe/Berlin\n@every 90m\tdate\n@reboot x\n"
               "0 3 * * * mail -s '5\\% off ${HOME}' x%Hello%100\\%%\n*/5 * * * 1-5 echo gr\u00fcn \"${param}\"\n")
        jobs = self.dibs("cron", "import", self.write("tab", tab), "--zone", "America/Havana").stdout
        self.assertEqual(self.ok("job", "check", self.write("tab.yaml", jobs)), "")
        nothing = self.ok("cron", "import", self.write("empty", ""), "--zone", "UTC")
        self.ok("job", "check", self.write("empty.yaml", nothing))

    def test_standard_input(self):
        with open(self.write("good.yaml", GOOD), encoding="utf-8") as file:
            self.ok("job", "check", "-", stdin=file)
        with open(self.write("bad.yaml", "jobs: 1"), encoding="utf-8") as file:
            self.assertIn("standard input:1:7: ", self.fails(78, "job", "check", "-", stdin=file))


class Documents(Case):
    def setUp(self):
        super().setUp()
        self.env.pop("TZDIR", None)

    def test_examples_of_the_document_are_good(self):
        with open(os.path.join(ROOT, "docs/jobs.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?ms)^```yaml\n(.*?)^```$", file.read())
        self.assertGreater(len(blocks), 4)
        for number, block in enumerate(blocks):
            with self.subTest(block):
                result = self.dibs("job", "check", self.write(f"block{number}.yaml", block))
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_the_report_of_the_document_is_true(self):
        with open(os.path.join(ROOT, "docs/jobs.md"), encoding="utf-8") as file:
            shown = re.search(r"(?ms)^```yml\n(.*?)^```$.*?^[$] dibs job check jobs.yaml\n(.*?)^```$", file.read())
        self.write("jobs.yaml", shown[1])
        self.assertEqual(self.fails(78, "job", "check", "jobs.yaml"), shown[2])

    def test_the_example_is_good(self):
        self.assertEqual(self.ok("job", "check", os.path.join(ROOT, "examples/jobs.yaml")), "")


if __name__ == "__main__":
    main()
