#!/usr/bin/env bash
# monitor.sh - statistics, active locks, stale locks, contention, health.
#
#   examples/seed004/monitor.sh [DIBS]     DIBS is the command, "dibs" when not given
set -euo pipefail
dibs=${1:-dibs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DIBS_URL="sqlite:$work/dibs.db"

"$dibs" run --share-stats bulk-email-job -- true
token=$("$dibs" acquire order:7 --ttl 5m)

echo "active locks:"
"$dibs" ls

echo "statistics and contention: waits of each lock"
"$dibs" stats

echo "stale locks, whose holder is gone, are released:"
"$dibs" break --stale --yes --reason "clean-up"

"$dibs" release order:7 --token "$token"
"$dibs" wait -n order:7 && echo "order:7 is free"

# Exit code 0 healthy, 1 degraded (here nobody leads), 69 and more unhealthy.
code=0
"$dibs" health --slow 1m --election job-scheduler || code=$?
echo "health check: $code"
[ "$code" -eq 1 ]
