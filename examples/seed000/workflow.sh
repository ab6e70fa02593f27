#!/usr/bin/env bash
# workflow.sh - a workflow whose retries, timeouts and waits survive the nodes: two nodes
# on one board, and four sweeps that are locks like any other.
#
#   examples/seed000/workflow.sh [DIBS]     DIBS is the command, "dibs" when not given
set -euo pipefail
dibs=${1:-dibs}
file=$(dirname "$0")/workflow.yaml
work=$(mktemp -d)
export DIBS_URL="sqlite:$work/dibs.db" # nodes on several machines: a server

"$dibs" job load -q "$file"
"$dibs" work -q --look-every 50ms "$file" &
first=$!
"$dibs" work -q --look-every 50ms "$file" &
second=$!
trap 'kill "$first" "$second" && wait; rm -rf "$work"' EXIT

# The first attempt fails; a bookmark waits for a person.
run=$("$dibs" job start order -p id=7)
until "$dibs" job resume "$run" approval --data yes 2>/dev/null; do sleep 0.05; done
"$dibs" job wait "$run"
"$dibs" job logs "$run"

# A command that hangs is ended, with all that it started: exit code 124.
code=0
"$dibs" job start hung --wait >/dev/null || code=$?
echo "hung: exit code $code"

# While another program has the lock of a sweep, the nodes leave that sweep alone.
"$dibs" run workflow:cleanup-scheduler -- echo "cleanup is done by hand now"
