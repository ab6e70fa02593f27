"""serve_ground.py - what the benchmarks of `dibs serve` share: a redis-server, a daemon on it with many tokens, and an end
for both."""
# SPDX-License-Identifier: MIT
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile

# Before the modules of the tests are loaded, which look for the program at once.
BUILD = os.path.abspath(sys.argv[1])
os.environ["DIBS_BIN"] = os.path.join(BUILD, "dibs")
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", part) for part in ("e2e", "")]

from runtools import wait_until  # noqa: E402
from servetools import Daemon  # noqa: E402

__all__ = ["BUILD", "Daemon", "add_tokens", "daemon_on", "redis", "started", "wait_until"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def started(*command, **more):
    """A process that ends with the block."""
    process = subprocess.Popen(command, text=True, **more)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def redis():
    """The URL of a server that keeps nothing."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, started(
            "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, stdout=subprocess.DEVNULL):
        wait_until(lambda: answers(port), "redis-server")
        yield f"redis://127.0.0.1:{port}"


@contextlib.contextmanager
def daemon_on(url, *options):
    daemon = Daemon("--token-rate", "0", "--access-log", "errors", "--look-every", "1s", *options, url=url)
    try:
        yield daemon
    finally:
        daemon.end()


def add_tokens(daemon, count):
    """Tokens of the role operate, for a token has so many sessions."""
    tokens = [daemon.dibs("access", "add", f"t{i}", "--role", "operate", "--tokens", daemon.file).stdout.strip() for i in range(count)]
    daemon.process.send_signal(signal.SIGHUP)
    daemon.await_event("reloaded")
    return tokens
