#!/usr/bin/env bash
# order.sh - an order waits for its approval, which two callers give at the same time.
#
#   RESUME=PROGRAM examples/seed001/order.sh [DIBS]     PROGRAM is resume.c, compiled
set -euo pipefail
dibs=${1:-dibs} resume=${RESUME:?the program of resume.c}
file=$(dirname "$0")/order.yaml
work=$(mktemp -d)
export DIBS_URL="sqlite:$work/dibs.db" # nodes on several machines: a server

"$dibs" job load -q "$file"
"$dibs" work -q --look-every 50ms "$file" &
node=$!
trap 'kill "$node" && wait; rm -rf "$work"' EXIT

run=$("$dibs" job start order -p id=7)
until "$dibs" job show "$run" | grep -q WAITING; do sleep 0.05; done
"$resume" "$DIBS_URL" "$run"
"$dibs" job wait "$run"
"$dibs" job logs "$run/ship"
