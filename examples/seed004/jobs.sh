#!/usr/bin/env bash
# jobs.sh - jobs that know of each other: singleton, leader, batch, dependencies,
# semaphore, rate limit, progress.
#
#   examples/seed004/jobs.sh [DIBS]     DIBS is the command, "dibs" when not given
set -euo pipefail
dibs=${1:-dibs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DIBS_URL="sqlite:$work/dibs.db" # jobs on several machines: a server

# A singleton job: on all servers together, one instance runs it.
"$dibs" run -n data-backup -- echo "backup: runs here only"

# Leader tasks: they end before another instance can lead.
# shellcheck disable=SC2016  # expands in the command
"$dibs" elect job-scheduler -- sh -c 'echo "leader tasks under term $DIBS_TERM"'

# A job barrier: each job counts down with its id; the results wait for all.
"$dibs" latch wait batch:42 -n 3 -w 1h &
results=$!
for job in 1 2 3; do
    "$dibs" latch count-down -q batch:42 -n 3 --id "$job"
done
wait "$results" && echo "batch 42: all jobs completed"

# Dependencies: the load waits for the extraction and the transformation.
"$dibs" latch count-down -q etl:7 -n 2 --id extraction
"$dibs" latch count-down -q etl:7 -n 2 --id transformation
"$dibs" latch wait etl:7 -n 2 -w 1h && echo "load: after both"

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
