"""`dibs run`: progress, delay after a death, traces."""
# SPDX-License-Identifier: MIT
import re
import time

from support import DIBS, PATIENCE, Case, main, span


class Progress(Case):
    def test_a_command_that_tells_is_left_alone(self):
        # Unless it told, the last renewal would be after 2 s, and the end before 4 s.
        script = "for i in $(seq 50); do echo >&$DIBS_PROGRESS_FD; sleep 0.1; done"
        result = self.dibs("run", "--ttl=2s", "--progress=2s", "k", "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_command_that_hangs_is_ended(self):
        result = self.dibs("run", "--ttl=" + span(0.5), "--progress=" + span(0.1), "k", "--", "sleep", "1000")
        self.assertEqual(result.returncode, 122)
        self.assertIn("the lease on k was lost: the command has not told of progress", result.stderr)
        self.ok("run", "-n", "k", "--", "true")

    def test_one_digit_for_old_shells(self):
        self.assertRegex(self.ok("run", "--progress=1m", "k", "-c", "echo $DIBS_PROGRESS_FD"), r"^[3-9]\n$")

    def test_no_descriptor_without_it(self):
        self.assertEqual(self.ok("run", "k", "-c", "echo $DIBS_PROGRESS_FD; ls /proc/self/fd"),
                         "\n0\n1\n2\n3\n")

    def test_a_nested_run_tells_the_outer_one(self):
        self.assertEqual(
            self.ok("run", "--progress=1m", "k", "--", "sh", "-c",
                    'export OUTER=$DIBS_PROGRESS_FD; exec "$0" run --progress=1s k -- sh -c "$1"', DIBS,
                    "test $OUTER = $DIBS_PROGRESS_FD && echo >&$OUTER && echo told"),
            "told\n",
        )

    def test_for_one_name(self):
        self.assertIn("not with --also", self.fails(64, "run", "--progress=1s", "--also=b", "a", "--", "true"))


class LockDelay(Case):
    def test_after_a_death_others_wait_longer(self):
        holder = self.hold("k", "--ttl=" + span(0.5), "--lock-delay=2s")
        died_at = time.monotonic()
        holder.kill()
        holder.wait(PATIENCE)
        self.ok("run", "k", "--", "true")
        self.assertGreaterEqual(time.monotonic() - died_at, 2.0)

    def test_a_release_is_not_a_death(self):
        self.ok("run", "--ttl=1h", "--lock-delay=1h", "k", "--", "true")
        self.ok("run", "-n", "k", "--", "true")


class Trace(Case):
    def events(self, *args):
        result = self.dibs(*args, "run", "k", "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.findall(r"(?m)^dibs: \d{4}-\d\d-\d\dT[0-9:.]+Z ([a-z-]+): .*k", result.stderr)

    def test_events_of_a_lease(self):
        events = self.events("--log-level", "trace")
        self.assertIn("granted", events)
        self.assertIn("released", events)

    def test_by_variable(self):
        self.env["DIBS_LOG_LEVEL"] = "trace"
        self.assertTrue(self.events())
        self.assertFalse(self.events("-q"))
        self.assertFalse(self.events("--log-level", "warn"))

    def test_usage(self):
        self.assertIn("is not one of", self.fails(64, "ls", "--log-level", "loud"))


if __name__ == "__main__":
    main()
