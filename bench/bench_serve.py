"""bench_serve.py - `dibs serve` under wrk, beside a bare server of libmicrohttpd (`make bench-serve`).

  bench_serve.py BUILD [SECONDS [ROUNDS]]

Each round asks both, one after the other; the medians of the rounds are printed, as requests per second and as parts of
the bare server's. The store is a redis-server of its own.
"""
# SPDX-License-Identifier: MIT
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from serve_ground import BUILD, add_tokens, daemon_on, redis, started, wait_until

SECONDS = sys.argv[2] if len(sys.argv) > 2 else "3"
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3

LINKS = 16
# A session may make 20 requests a second and 100 at once, and a token has 256 of them: the load is spread over many.
TOKENS, SESSIONS, LEASES = 6, 200, 10
REST_S = 5  # after which a session may make 100 at once again

# Each request is of the next session; threads begin at different ones.
SCRIPT = """
local ids, tokens, at, count, threads, lease = {%s}, {%s}, 0, 0, 0
function setup(thread) thread:set("start", threads); threads = threads + 1 end
function init() at, begun = start * #ids / 2, os.time() end
function ask(method, rest, body)
  local token = tokens[(at - 1) %% #tokens + 1]
  return wrk.format(method, "/v1/sessions/" .. ids[at] .. rest,
                    {["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json"}, body)
end
function request()
  count = count + 1
  %s
end
"""
BEAT = """at = at % #ids + 1
  return ask("POST", "/beat", "{}")"""
# Every second request gives back what was taken BEHIND requests ago, which is held by then: each link has one request under
# way. The id of a lease is used once, and a name in one run: the last of a run stay held.
BEHIND = 512
PAIR = f"""local old = count - {BEHIND} - 1
  if count % 2 == 0 and old > 0 then
    at = (old + 1) / 2 % #ids + 1
    return ask("DELETE", "/leases/p" .. begun .. "-" .. old)
  end
  at = math.floor((count + 1) / 2) % #ids + 1
  return ask("PUT", "/leases/p" .. begun .. "-" .. count, '{{"name":"p' .. begun .. "-" .. count .. '"}}')"""


class Wrk:
    """Asks with a token, in one thread if nothing else is said."""

    def __init__(self, folder, token):
        self.script = os.path.join(folder, "wrk.lua")
        self.token = token

    def __call__(self, port, path, links=LINKS, threads=1, script=""):
        """Requests per second and the 99th percentile in ms; every answer must be a good one."""
        with open(self.script, "w", encoding="utf-8") as out:
            out.write(script)
        said = subprocess.run(
            ["wrk", "-c", str(links), "-t", str(threads), "-d", SECONDS + "s", "--latency", "-s", self.script,
             "-H", "Authorization: Bearer " + self.token, "-H", "Content-Type: application/json",
             f"http://127.0.0.1:{port}{path}"], check=True, capture_output=True, text=True).stdout
        if "Non-2xx" in said or "Socket errors" in said:
            sys.exit(f"bench_serve: {path}: {said}")
        rate = float(re.search(r"Requests/sec: +([\d.]+)", said)[1])
        late, unit = re.search(r"99% +([\d.]+)(us|ms|s)", said).groups()
        return rate, float(late) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def take(daemon, link, token, session, lease):
    link.request("PUT", f"/v1/sessions/{session}/leases/l{lease}", json.dumps({"name": f"{session}-{lease}"}),
                 {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = link.getresponse()
    text = answer.read()
    if answer.status != 201:
        sys.exit(f"bench_serve: {text}")


def prepare(daemon, tokens):
    """Sessions with leases, which are listed too; that of each token in turn."""
    sessions = [daemon.post("/v1/sessions", {"name": f"s{i}", "ttl_ms": 600000}, role=tokens[i % TOKENS]).json["session"]
                for i in range(TOKENS * SESSIONS)]
    with contextlib.closing(daemon.connect()) as link:
        for lease in range(LEASES):
            for i, session in enumerate(sessions):
                take(daemon, link, tokens[i % TOKENS], session, lease)
    wait_until(lambda: len(daemon.get("/v1/locks?limit=100").json["items"]) == 100, "the names to be seen")
    return [", ".join(f'"{word}"' for word in words) for words in (sessions, tokens)]


def measure(wrk, daemon, bare, words):
    rows = {
        "GET /livez": ("/livez", {}, 1),
        f"beat of {LEASES} leases": ("/", {"script": SCRIPT % (*words, BEAT)}, 1),
        f"100 of {TOKENS * SESSIONS * LEASES:,} locks": ("/v1/locks?limit=100", {}, 1),
        "acquire and release": ("/", {"script": SCRIPT % (*words, PAIR)}, 2),
    }
    found = {what: [] for what in rows}
    for _ in range(ROUNDS):
        for what, (path, more, each) in rows.items():
            limit, _ = wrk(bare, path, **more)
            if "script" in more:
                time.sleep(REST_S)
            rate, late = wrk(daemon.port, path, **more)
            found[what].append((rate / each, limit / each, rate / limit, late))
    print(f"{'':28} {'a second':>10} {'bare':>10} {'part':>6} {'p99 ms':>8}")
    for what, seen in found.items():
        rate, limit, part, late = (statistics.median(column) for column in zip(*seen))
        print(f"{what:28} {rate:10,.0f} {limit:10,.0f} {part:6.2f} {late:8.2f}")


def main():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = stack.enter_context(redis())
        server = stack.enter_context(started(os.path.join(BUILD, "bare_http"), stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE))
        daemon = stack.enter_context(daemon_on(url))
        words = prepare(daemon, add_tokens(daemon, TOKENS))
        measure(Wrk(folder, daemon.tokens["admin"]), daemon, int(server.stdout.readline()), words)


if __name__ == "__main__":
    main()
