"""cron: expressions are checked, explained and laid out in time, without a store."""
# SPDX-License-Identifier: MIT
import datetime
import os

import yaml

from support import ROOT, Case, main

BERLIN = ("--zone", "Europe/Berlin")


class Cron(Case):
    def setUp(self):
        super().setUp()
        # The zones of the tests, and a store that nothing may look for.
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")
        self.env["DIBS_URL"] = "redis://127.0.0.1:1"
        self.env["TZ"] = "America/Havana"

    def times(self, *args):
        return self.json("cron", "next", *args, "--json")["times"]

    def instants(self, *args):
        return [time["instant"] for time in self.times(*args)]

    def test_next_prints_a_table(self):
        out = self.ok("cron", "next", "30 2 * * *", *BERLIN, "-n", "3", "--after", "2027-03-27").splitlines()
        self.assertEqual([line.split()[:3] for line in out], [
            ["DAY", "LOCAL", "UTC"],
            ["Sat", "2027-03-27T02:30:00+01:00", "2027-03-27T01:30:00Z"],
            ["Sun", "2027-03-28T03:00:00+02:00", "2027-03-28T01:00:00Z"],
            ["Mon", "2027-03-29T02:30:00+02:00", "2027-03-29T00:30:00Z"],
        ])
        self.assertIn("in a gap", out[2])

    def test_json_names_the_rule(self):
        gap = self.times("30 2 * * *", *BERLIN, "-n", "1", "--after", "2027-03-28")
        self.assertEqual(gap, [{"instant": "2027-03-28T01:00:00Z", "local": "2027-03-28T03:00:00",
                                "offset": "+02:00", "rule": "gap"}])
        twice = self.times("30 2 * * *", *BERLIN, "-n", "2", "--after", "2027-10-31")
        self.assertEqual([(time["instant"], time["rule"]) for time in twice],
                         [("2027-10-31T00:30:00Z", "first pass"), ("2027-11-01T01:30:00Z", None)])
        head = self.json("cron", "next", "@daily", *BERLIN, "--json")
        self.assertEqual((head["expression"], head["zone"], head["tzdata"]), ("@daily", "Europe/Berlin", "2025b"))

    def test_times_after_a_time(self):
        want = ["2027-01-01T12:00:00Z"]
        for after in ("2027-01-01T11:59:59Z", "2027-01-01T12:59:59+01:00", "2027-01-01 12:59:59", "2027-01-01T12:30"):
            self.assertEqual(self.instants("0 13 * * *", *BERLIN, "-n", "1", "--after", after), want)
        # Not that time itself.
        self.assertEqual(self.instants("0 13 * * *", *BERLIN, "-n", "1", "--from", want[0]), ["2027-01-02T12:00:00Z"])
        self.assertIn("is no time", self.fails(64, "cron", "next", "@daily", "--after", "tomorrow"))

    def test_without_a_zone_it_is_utc_and_without_a_time_it_is_now(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        first = datetime.datetime.fromisoformat(self.instants("0 0 * * *")[0].replace("Z", "+00:00"))
        self.assertEqual((first.hour, first.minute), (0, 0))
        self.assertTrue(datetime.timedelta(hours=-1) < first - now < datetime.timedelta(hours=25), (first, now))

    def test_explain_says_it_in_words(self):
        out = self.ok("cron", "explain", "30 8 * * MON#1", *BERLIN, "-n", "1", "--after", "2027-01-01")
        self.assertTrue(out.startswith("At 08:30 on the first Monday of the month, in the zone Europe/Berlin.\n"), out)
        self.assertIn("2027-01-04T08:30:00+01:00", out)
        every = self.json("cron", "explain", "@every 90m", "--after", "2027-01-01", "--json")
        self.assertEqual(every["words"], "every 1h30m")
        self.assertEqual(every["times"][0]["instant"], "2027-01-01T01:30:00Z")
        self.assertIn("real time", every["clock_changes"])

    def test_a_mistake_has_its_column(self):
        self.assertEqual(self.fails(78, "cron", "check", "0 0 * FOO *"),
                         "dibs: the cron expression is wrong at column 7: 'FOO' is not a month\n"
                         "  0 0 * FOO *\n"
                         "        ^\n")
        for verb in ("check", "next", "explain"):
            self.assertIn("column 1: it never fires", self.fails(78, "cron", verb, "0 0 30 2 *"))
            self.assertEqual(self.fails(78, "cron", verb, "-q", "* * * *"), "")
        answer = self.json("cron", "check", "*/90 * * * *", "--json", code=78)
        self.assertEqual((answer["ok"], answer["column"]), (False, 3))
        self.assertIn("@every", answer["message"])
        self.assertNotIn("\033", self.fails(78, "cron", "check", "\033[31m * * * *"))

    def test_a_good_expression_is_silent(self):
        self.assertEqual(self.ok("cron", "check", "0 2 * * MON-FRI"), "")
        self.assertEqual(self.json("cron", "check", "@daily", "--json")["warnings"], [])
        # Quartz counts weekdays from another day.
        doubtful = self.dibs("cron", "check", "0 0 2 * * 2")
        self.assertEqual((doubtful.returncode, doubtful.stdout), (0, ""))
        self.assertIn("Quartz", doubtful.stderr)
        self.assertIn("Quartz", self.json("cron", "check", "0 0 2 * * 2", "--json")["warnings"][0])

    def test_an_expression_without_quotes(self):
        self.assertIn("quote it", self.fails(64, "cron", "next", "0", "2", "*", "*", "*"))

    def test_zones_that_are_not_there(self):
        self.assertIn("tzdata", self.fails(78, "cron", "next", "@daily", "--zone", "Europe/Nowhere"))
        self.assertIn("is no name", self.fails(78, "cron", "next", "@daily", "--zone", "../../etc/passwd"))
        self.env["TZDIR"] = self.path("none")
        self.ok("cron", "next", "@daily")

    def test_years_that_are_over(self):
        gone = self.dibs("cron", "next", "0 0 0 1 1 * 2020")
        self.assertEqual((gone.returncode, gone.stdout), (1, ""))
        self.assertIn("there is no time after", gone.stderr)
        self.assertEqual(len(self.instants("0 0 0 1 1 * 2098-2099", "-n", "9")), 2)


class Import(Case):
    def setUp(self):
        super().setUp()
        self.env["TZDIR"] = os.path.join(ROOT, "tests/jobs/zoneinfo")

    def convert(self, path, *options, zone="America/Havana"):
        return self.dibs("cron", "import", path, "--zone", zone, *options)

    def jobs(self, text, *options, zone="America/Havana"):
        result = self.convert(self.write("tab", text), *options, zone=zone)
        self.assertEqual(result.returncode, 0, result.stderr)
        return yaml.safe_load(result.stdout)["jobs"]

    def test_the_zone_is_that_of_the_machine(self):
        """The daemon of cron has no TZ of the caller."""
        for name in ("TZ", "TZDIR"):
            self.env.pop(name, None)
        path = self.write("tab", "HOME=/srv\n@daily x\n")
        alone = self.dibs("cron", "import", path)
        if alone.returncode:
            self.skipTest("the zone of this machine is not known")
        (job,) = yaml.safe_load(alone.stdout)["jobs"].values()
        for same in (job["zone"], ":" + job["zone"], "/etc/localtime", ":/etc/localtime"):
            self.env["TZ"] = same
            self.assertEqual(self.dibs("cron", "import", path).stderr, "", same)
        self.env["TZ"] = "Asia/Tokyo" if job["zone"] != "Asia/Tokyo" else "Europe/Berlin"
        result = self.dibs("cron", "import", path)
        self.assertEqual(result.stdout, alone.stdout)
        self.assertEqual(result.stderr, f"dibs: {path}: cron has no TZ of the caller ({self.env['TZ']}); jobs without CRON_TZ have "
                                        f"the zone of this machine, {job['zone']}; give --zone for another\n")
        self.assertEqual(self.dibs("cron", "import", "-q", path).stderr, "")
        self.assertEqual(self.dibs("cron", "import", path, "--zone", "UTC").stderr, "")
        own = self.write("own", "HOME=/srv\nCRON_TZ=UTC\n@daily x\n")
        self.assertEqual(self.dibs("cron", "import", own).stderr, "")

    def test_lines_become_jobs(self):
        jobs = self.jobs("SHELL=/bin/bash\nPATH = \"/usr/bin:/bin\"\n# dibs: nightly\n30 2 * * *  backup 'it' # now\n\n"
                         "CRON_TZ=Europe/Berlin\nPATH=/bin\n@every 90m\tdate\n")
        env = {"SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"}
        self.assertEqual(jobs.pop("nightly"),
                         {"schedule": "30 2 * * *", "zone": "America/Havana", "env": env,
                          "run": ["/bin/bash", "-c", "backup 'it' # now"]})
        ((name, other),) = jobs.items()
        self.assertRegex(name, r"^cron-[0-9a-f]{8}$")
        self.assertEqual(other, {"schedule": "@every 90m", "zone": "Europe/Berlin", "env": {**env, "PATH": "/bin"},
                                 "run": ["/bin/bash", "-c", "date"]})

    def test_the_shell_of_the_crontab(self):
        text = "echo ${A:-'x'} $B ${C}"
        (job,) = self.jobs(f"@daily {text}\n").values()
        self.assertEqual(job["shell"], text)
        (job,) = self.jobs(f"SHELL=/bin/sh\n@daily {text}\n").values()
        self.assertEqual(job["shell"], text)
        # References of dibs stand for values in words, and for nothing in a shell.
        tab = self.convert(self.write("tab", f"SHELL=/bin/bash\n@daily {text}\n")).stdout
        (job,) = yaml.safe_load(tab)["jobs"].values()
        self.assertEqual(job["run"], ["/bin/bash", "-c", "echo $${A:-'x'} $B $${C}"])
        self.ok("job", "check", self.write("tab.yaml", tab))

    def test_the_folder_of_commands(self):
        note = "cron starts commands in the home of their user"
        path = self.write("tab", "@daily x\n@hourly x\n")
        self.assertEqual(self.convert(path).stderr.count(note), 1)
        self.assertEqual(self.convert(path, "-q").stderr, "")
        result = self.convert(self.write("tab", "HOME=/srv\n@daily x\n"))
        self.assertEqual(result.stderr, "")
        (job,) = yaml.safe_load(result.stdout)["jobs"].values()
        self.assertEqual(job["dir"], "/srv")

    def test_names_are_the_same_at_every_import(self):
        line = "0 3 * * 1 echo gr\u00fcn\n"
        first = list(self.jobs(line))
        self.assertEqual(list(self.jobs("# a comment\nA=b\n" + line)), first)
        self.assertEqual(list(self.jobs(line + line)), first + [first[0] + "-2"])
        self.assertNotEqual(list(self.jobs("0 4 * * 1 echo gr\u00fcn\n")), first)

    def test_percent_signs(self):
        (job,) = self.jobs("0 3 * * * mail -s '5\\% off' x%Hello%100\\%%\n").values()
        self.assertEqual((job["shell"], job["stdin"]), ("mail -s '5% off' x", "Hello\n100%\n"))
        (job,) = self.jobs("0 3 * * * cat%one line\n").values()
        self.assertEqual(job["stdin"], "one line\n")

    def test_users_and_seconds(self):
        (job,) = self.jobs("17 * * * * root cd / && run-parts /etc/cron.hourly\r\n", "--system").values()
        self.assertEqual((job["user"], job["shell"]), ("root", "cd / && run-parts /etc/cron.hourly"))
        (job,) = self.jobs("*/10 * * * * * date\n", "--fields", "6", zone="UTC").values()
        self.assertEqual((job["schedule"], job["zone"]), ("*/10 * * * * *", "UTC"))

    def test_what_is_left_out_is_reported(self):
        path = self.write("tab", "MAILTO=me\n@reboot x\n")
        result = self.convert(path)
        self.assertEqual((result.returncode, yaml.safe_load(result.stdout)), (0, {"jobs": {}}))
        self.assertEqual(result.stderr, f"dibs: {path}:1: MAILTO is left out: dibs sends no mail\n"
                                        f"dibs: {path}:2: @reboot is left out: no job starts with a machine\n")

    def test_mistakes_have_line_and_column(self):
        path = self.write("tab", "0 1 * * * fine\n  61 * * * * x\n* * * * *\n# dibs: a b\nCRON_TZ=Nowhere\n0 0 2 * * * x\n"
                                 "# dibs: twice\n@daily x\n# dibs: twice\n@daily y\n@daily %input\n")
        result = self.convert(path)
        self.assertEqual((result.returncode, result.stdout), (78, ""))
        places = [line.split(": ")[1].removeprefix(path) for line in result.stderr.splitlines()]
        self.assertEqual(places, [":2:3", ":3:10", ":4:9", ":5:9", ":6:11", ":10:1", ":11:8"])
        many = self.fails(78, "cron", "import", self.write("many", "x\n" * 30), "-z", "UTC")
        self.assertEqual(len(many.splitlines()), 21)
        self.assertIn("30 mistakes", many)
        self.assertEqual(self.dibs("cron", "import", self.path("none")).returncode, 1)


if __name__ == "__main__":
    main()
