#!/usr/bin/env python3
"""api-fuzz.py - feeds made-up requests to every route of `dibs serve`, by its own OpenAPI document.

    tools/api-fuzz.py FOLDER    (DIBS_BIN: the program; EXAMPLES: requests of each kind, 40)

schemathesis makes the requests, and holds each answer against the document: no 5xx that is not listed, no status, type or
shape that the document does not have. It is installed from PyPI into FOLDER/api-fuzz, once. Exit codes: 0 nothing found,
1 something found, 77 schemathesis cannot be installed.
"""
# SPDX-License-Identifier: MIT
import os
import subprocess
import sys

from pypi import install_package

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VERSION = "schemathesis>=4,<5"
# Streams, whose single events schemathesis holds against the schema of the whole.
LEFT_OUT = ("/v1/events", "/v1/sessions/{session}/stream", "/v1/topics/{name}/events", "/v1/runs/{run}/output")


def fuzz(program, daemon, examples):
    args = [program, "run", f"http://127.0.0.1:{daemon.port}/openapi.json", "--header",
            "Authorization: Bearer " + daemon.tokens["admin"], "--phases", "examples,coverage,fuzzing",
            "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            "--max-examples", examples, "--request-timeout", "90", "--generation-database", "none",
            "--suppress-health-check", "filter_too_much"]
    for path in LEFT_OUT:
        args += ["--exclude-path", path]
    return subprocess.run(args, cwd=daemon.folder, check=False).returncode


def main():
    folder = os.path.join(os.path.abspath(sys.argv[1]), "api-fuzz")
    why = install_package(folder, VERSION)
    if why:
        print(why, file=sys.stderr)
        return 77
    os.environ.setdefault("DIBS_BIN", os.path.join(ROOT, "build", "dibs"))
    sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
    from servetools import Daemon

    daemon = Daemon("--token-rate", "0", "--access-log", "none")
    try:
        found = fuzz(os.path.join(folder, "bin", "schemathesis"), daemon, os.environ.get("EXAMPLES", "40"))
        alive = daemon.process.poll() is None
    finally:
        code = daemon.end()
    if not alive or code:
        print(f"the daemon ended with {code}:\n{daemon.last_log[-4000:]}", file=sys.stderr)
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
