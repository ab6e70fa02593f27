"""`dibs run` on a terminal: whose it is, stopping and going on, the waiting line."""
# SPDX-License-Identifier: MIT
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import termios
import time
import unittest

from runtools import DIBS, PATIENCE, NotInTime, RunCase, alive, below, guard_of, main, read_stat, span, wait_until


# A command that reads the terminal again and again, and only notes that it is hung up.
HANGS_ON = """
import os, signal
def note(number, frame):
    with open("hups", "a") as file:
        file.write("hup\\n")
signal.signal(signal.SIGHUP, note)
with open("pid", "w") as file:
    file.write(str(os.getpid()))
tty = os.open("/dev/tty", os.O_RDONLY)
while True:
    os.read(tty, 1)
"""


class Terminal:
    """A program that leads a session of its own on a new terminal."""

    def __init__(self, argv, env, folder):
        self.seen = ""
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                os.execvpe(argv[0], argv, env)
            finally:
                os._exit(99)

    def type(self, text):
        os.write(self.fd, text.encode())

    def more(self, patience):
        if not select.select([self.fd], [], [], patience)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:
            return False  # the other side is closed
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def expect(self, pattern):
        """Reads until the pattern has come; what was before it is forgotten."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found
            left = end - time.monotonic()
            if left <= 0:
                raise NotInTime(f"{pattern!r} did not come, but: {self.seen!r}")
            if not self.more(left) and time.monotonic() < end:
                raise AssertionError(f"{pattern!r} did not come, but: {self.seen!r}")

    def end(self):
        """Reads on until the program has ended; its status as subprocess has it."""
        while self.status is None:
            self.more(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        while self.more(0):
            pass
        return self.status

    def close(self):
        if self.status is None:
            for pid in [self.pid] + below(self.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class TermCase(RunCase):
    def term(self, *argv):
        terminal = Terminal(argv, self.env, self.folder)
        self.addCleanup(terminal.close)
        return terminal

    def shell(self, script):
        return self.term("sh", "-c", script)


class HandOver(TermCase):
    def test_the_command_reads_the_terminal(self):
        term = self.shell(f"{DIBS} run k -- sh -c 'echo ready; read x; echo got $x';"
                          " echo back; read y; echo then $y")
        term.expect("ready\n")
        term.type("hello\n")
        term.expect("got hello\n")
        # The shell around it, in the group of dibs, has the terminal again.
        term.expect("back\n")
        term.type("world\n")
        term.expect("then world\n")
        self.assertEqual(term.end(), 0)

    def test_the_group_of_the_command_is_in_the_foreground(self):
        term = self.term(DIBS, "run", "k", "--", "sh", "-c", "echo me $$; read x")
        child = int(term.expect(r"me (\d+)\n").group(1))
        self.assertEqual(os.tcgetpgrp(term.fd), child)
        self.assertEqual(read_stat(child)[3], child)
        self.assertEqual(read_stat(guard_of(term.pid))[4], read_stat(child)[4])
        term.type("\n")
        self.assertEqual(term.end(), 0)

    def test_what_cannot_start_gives_it_back(self):
        term = self.shell(f"{DIBS} run k -- ./nosuch; echo $?; read y; echo then $y")
        term.expect("127\n")
        term.type("world\n")
        term.expect("then world\n")

    def test_interrupt_reaches_the_command_and_the_script(self):
        term = self.shell(f"{DIBS} run k -- sh -c 'echo ready; exec sleep 1000'; echo survived")
        term.expect("ready\n")
        term.type("\x03")
        self.assertEqual(term.end(), -signal.SIGINT)
        self.assertNotIn("survived", term.seen)

    def test_interrupt_that_the_command_takes_is_its_own(self):
        term = self.shell(f"{DIBS} run k -- sh -c 'trap \"echo caught; exit 4\" INT; echo ready;"
                          " while :; do sleep 0.01; done'; echo code $?")
        term.expect("ready\n")
        term.type("\x03")
        term.expect("caught\n")
        term.expect("code 4\n")
        self.assertEqual(term.end(), 0)

    def test_resize_is_told(self):
        term = self.term(DIBS, "run", "k", "--", "sh", "-c",
                         "trap 'echo resized; exit 0' WINCH; echo ready; while :; do sleep 0.01; done")
        term.expect("ready\n")
        fcntl.ioctl(term.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        term.expect("resized\n")
        self.assertEqual(term.end(), 0)

    def test_foreground_needs_no_hand_over(self):
        term = self.shell(f"{DIBS} run --foreground k -- sh -c 'echo ready; read x; echo got $x;"
                          " trap \"echo caught; exit 4\" INT; echo go; while :; do sleep 0.01; done';"
                          " echo code $?")
        term.expect("ready\n")
        term.type("hello\n")
        term.expect("got hello\ngo\n")
        term.type("\x03")
        term.expect("caught\n")
        self.assertEqual(term.end(), -signal.SIGINT)
        self.assertNotIn("caught", term.seen)

    def test_null_stdin_leaves_the_terminal(self):
        term = self.term(DIBS, "run", "--stdin=null", "k", "--", "sh", "-c", "echo ready; exec sleep 1000")
        term.expect("ready\n")
        self.assertEqual(os.tcgetpgrp(term.fd), term.pid)
        term.type("\x03")
        self.assertEqual(term.end(), 130)


@unittest.skipUnless(shutil.which("bash"), "needs a shell that goes by how its command ended")
class OtherVerbs(TermCase):
    """^C at the command of another verb ends the script around it as well, as with run."""

    def interrupt(self, *verb):
        term = self.term("bash", "-c", f"{DIBS} {' '.join(verb)} -- sh -c 'echo ready; exec sleep 1000'; echo survived")
        term.expect("ready\n")
        term.type("\x03")
        self.assertEqual(term.end(), -signal.SIGINT)
        self.assertNotIn("survived", term.seen)

    def take(self, *verb):
        term = self.term("bash", "-c", f"{DIBS} {' '.join(verb)} -- sh -c 'trap \"exit 4\" INT; echo ready;"
                                       " while :; do sleep 0.01; done'; echo code $?")
        term.expect("ready\n")
        # A shell that does not wait for its command yet dies of ^C at once, if it shares the group of that.
        wait_until(lambda: read_stat(term.pid)[1] == "S", "the shell to wait")
        term.type("\x03")
        term.expect("code 4\n")

    def test_elect(self):
        self.interrupt("elect", "e")
        self.take("elect", "e")

    def test_join(self):
        self.interrupt("join", "g")
        self.take("join", "g")

    def test_breaker_run(self):
        self.interrupt("breaker", "run", "b")
        self.take("breaker", "run", "b")


class Pipeline(TermCase):
    def test_the_other_end_keeps_the_keyboard(self):
        term = self.shell(f"cat | {DIBS} run k -- sh -c 'echo ready; cat'")
        term.expect("ready\n")
        term.type("hello\n")
        term.expect("hello\n")  # the echo
        term.expect("hello\n")
        term.type("\x04")
        self.assertEqual(term.end(), 0)

    def test_the_command_gets_it_when_it_asks(self):
        term = self.shell(f"{DIBS} run k -- sh -c 'echo ready; read x </dev/tty; echo got $x' | cat")
        term.expect("ready\n")
        term.type("hello\n")
        term.expect("got hello\n")
        self.assertEqual(term.end(), 0)

    def test_interrupt_is_forwarded(self):
        term = self.shell(f"{DIBS} run k -- sh -c 'echo ready; exec sleep 1000' | cat; echo survived")
        term.expect("ready\n")
        term.type("\x03")
        self.assertEqual(term.end(), -signal.SIGINT)


@unittest.skipUnless(shutil.which("bash"), "needs a shell with job control")
class JobControl(TermCase):
    def interactive(self):
        self.env["PS1"] = "> "
        self.env["TERM"] = "dumb"
        term = self.term("bash", "--norc", "--noprofile", "--noediting", "-i")
        term.expect("> ")
        return term

    def test_stop_and_go_on(self):
        term = self.interactive()
        term.type(f"{DIBS} run k -- sh -c 'echo ready; read x; echo got $x; exit 5'\n")
        term.expect("\nready\n")
        term.type("\x1a")
        term.expect("stopped: unless continued within")
        term.expect("Stopped")
        term.expect("> ")
        term.type("fg\n")
        term.expect("fg\n")
        term.type("hello\n")
        term.expect("got hello\n")
        term.expect("> ")
        term.type("echo code $?\n")
        term.expect("code 5\n")

    def test_stopped_for_too_long(self):
        term = self.interactive()
        term.type(f"{DIBS} run --ttl={span(0.5)} k -- sh -c 'echo $$ >pid; echo ready; read x'\n")
        term.expect("\nready\n")
        term.type("\x1a")
        term.expect("Stopped")
        child = int(self.text("pid"))
        self.assertEqual(self.dibs("run", "k", "--", "true").returncode, 0)
        if read_stat(child):
            raise NotInTime("the command outlived its lease")
        term.type("fg\n")
        term.expect("the lease on k was lost")
        term.type("echo code $?\n")
        term.expect("code 122\n")

    def test_background(self):
        term = self.interactive()
        term.type(f"{DIBS} run k -- sh -c 'read x; echo got $x' &\n")

        def asked():
            term.type("\n")  # a shell tells of its jobs before each prompt
            term.more(0.1)
            return "Stopped" in term.seen

        wait_until(asked, "the command to want the terminal")
        term.type("fg\n")
        term.expect("\n.*run k")  # the shell repeats the command
        term.type("hello\n")
        term.expect("got hello\n")

    def end_command(self):
        """Of a run that is below no process of the test."""
        pid = self.text("pid")
        if pid and alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)

    def test_a_stop_that_is_out_of_date(self):
        """The command has the terminal by the time that its stop for the want of it is heard of."""
        term = self.interactive()
        term.type(f"{DIBS} run k -- sh -c 'echo $$ >pid; echo ready; read x; echo got $x'\n")
        term.expect("\nready\n")
        os.kill(int(self.text("pid")), signal.SIGTTIN)
        term.type("hello\n")
        term.expect("got hello\n")
        self.assertNotIn("Stopped", term.seen)

    def test_wants_the_terminal_when_nobody_can_give_it(self):
        # The shell between them has ended, so that no process could continue dibs.
        self.addCleanup(self.end_command)
        term = self.interactive()
        term.type(f"(({DIBS} run k -- sh -c 'echo $$ >pid; read x </dev/tty' 2>said; echo $? >code) &)\n")
        wait_until(lambda: self.text("code"), "the command to end")
        self.assertEqual(int(self.text("code")), 128 + signal.SIGHUP)
        self.assertIn("wants the terminal", self.text("said"))

    def test_hangs_up_once(self):
        self.addCleanup(self.end_command)
        self.write("stubborn.py", HANGS_ON)
        term = self.interactive()
        term.type(f"({DIBS} run k -- python3 stubborn.py 2>said &)\n")
        wait_until(lambda: self.text("hups"), "the command to be hung up")
        child = int(self.text("pid"))
        wait_until(lambda: read_stat(child)[1] == "T", "the command to stop again")
        self.assertIsNotNone(self.show("k"))
        self.assertEqual(self.text("hups"), "hup\n")
        self.assertEqual(read_stat(child)[1], "T")
        self.end_command()
        wait_until(lambda: self.show("k") is None, "the lock to be free")

    def test_stop_of_a_pipeline(self):
        # The command does nothing but wait: a shell that is about to start another
        # program cannot be stopped half-way.
        os.mkfifo(self.path("go"))
        term = self.interactive()
        term.type(f"{DIBS} run k -- sh -c 'echo ready; exec cat go' | cat\n")
        term.expect("\nready\n")
        term.type("\x1a")
        term.expect("Stopped")
        term.type("fg\n")
        term.expect("fg\n")
        with open(self.path("go"), "w", encoding="utf-8") as fifo:
            fifo.write("on\n")
        term.expect("\non\n")

    def test_stop_while_waiting(self):
        holder = self.hold("k")
        term = self.interactive()
        term.type(f"{DIBS} run k -- echo through\n")
        wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
        term.type("\x1a")
        term.expect("Stopped")
        term.type("fg\n")
        wait_until(lambda: self.waiters("k") == 1, "the waiter to be back")
        self.let_go(holder)
        term.expect("\nthrough\n")

    def test_stop_without_a_shell_is_not_for_ever(self):
        term = self.term(DIBS, "run", "k", "--", "sh", "-c", "echo ready; read x; echo got $x")
        term.expect("ready\n")
        term.type("\x1a")
        term.type("hello\n")
        term.expect("got hello\n")
        self.assertEqual(term.end(), 0)


class WaitingLine(TermCase):
    def test_says_who_holds_it(self):
        holder = self.hold("nightly backup")
        term = self.term(DIBS, "run", "nightly backup", "--", "echo", "ran")
        found = term.expect(r"dibs: waiting for nightly backup: held by (\S+) pid (\d+) for \S+\n")
        self.assertEqual(found.group(1), socket.gethostname())
        self.assertEqual(int(found.group(2)), holder.pid)
        self.let_go(holder)
        term.expect("ran\n")
        self.assertEqual(term.end(), 0)

    def test_says_how_many_are_ahead(self):
        holder = self.hold("k", "--owner=web")
        first = self.start("run", "k", "--", "true")
        wait_until(lambda: self.waiters("k") == 1, "the first waiter")
        term = self.term(DIBS, "run", "k", "--", "true")
        term.expect(r"held by web on \S+ pid \d+ for \S+, 1 ahead\n")
        self.let_go(holder)
        self.assertEqual(first.wait(PATIENCE), 0)
        self.assertEqual(term.end(), 0)

    def test_quiet(self):
        holder = self.hold("k")
        term = self.term(DIBS, "run", "-q", "-w", "1300ms", "k", "--", "true")
        self.assertEqual(term.end(), 75)
        self.assertEqual(term.seen, "")
        self.let_go(holder)

    def test_interrupt_while_waiting(self):
        holder = self.hold("k")
        term = self.term(DIBS, "run", "k", "--", "true")
        wait_until(lambda: self.waiters("k") == 1, "the waiter to queue")
        term.type("\x03")
        self.assertEqual(term.end(), -signal.SIGINT)
        self.assertEqual(self.waiters("k"), 0)
        self.let_go(holder)


if __name__ == "__main__":
    main()
