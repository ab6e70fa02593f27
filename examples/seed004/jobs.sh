#!/usr/bin/env bash
# jobs.sh - jobs that know of each other: singleton, dependencies, batch, leader,
# semaphore, rate limit, progress.
#
#   examples/seed004/jobs.sh [DIBS]     DIBS is the command, "dibs" when not given
set -euo pipefail
dibs=${1:-dibs}
file=$(dirname "$0")/jobs.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DIBS_URL="sqlite:$work/dibs.db" # jobs on several machines: a server

# A singleton job: while one run lives, on any server, another is refused.
"$dibs" job load -q "$file"
backup=$("$dibs" job start data-backup)
code=0
"$dibs" job start data-backup 2>/dev/null || code=$?
[ "$code" -eq 75 ]

# A node executes the jobs; start it on as many machines as you like.
"$dibs" work -q --look-every 50ms "$file" &
node=$!
trap 'kill "$node" && wait; rm -rf "$work"' EXIT
"$dibs" job wait "$backup"
"$dibs" job logs "$backup"

# Dependencies: the load begins after the extraction and the transformation.
etl=$("$dibs" job start etl)
"$dibs" job wait "$etl"
"$dibs" job logs "$etl/load"

# A job barrier: the results are processed when all jobs of the batch have ended.
results=$("$dibs" job start results -p batch=42)
for part in 1 2 3; do
    "$dibs" job start -q convert -p part="$part" --batch 42 >/dev/null
done
"$dibs" job wait --batch 42 --of 3 # any program can wait for it, too
"$dibs" job wait "$results"
"$dibs" job logs "$results/process"

# Leader tasks: they end before another instance can lead.
# shellcheck disable=SC2016  # expands in the command
"$dibs" elect job-scheduler -- sh -c 'echo "leader tasks under term $DIBS_TERM"'

# A semaphore: three downloads at once, anywhere. A rate limit: so many per second.
"$dibs" run --permits 3 downloads -- echo "download: one of three"
"$dibs" limit mail-gateway --rate 100/s -w 10s -- echo "mail: within 100/s"

# Shared state: a set is a publish to all that watch the key.
"$dibs" state watch progress:42 --count 2 --with-version >"$work/seen" &
watch=$!
until [ -s "$work/seen" ]; do sleep 0.05; done
"$dibs" state set progress:42 80 >"$work/version"
wait "$watch"
echo "progress: $(tail -n 1 "$work/seen" | cut -d ' ' -f 2) %"
