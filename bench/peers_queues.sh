#!/usr/bin/env bash
# peers_queues.sh - queues of dibs beside BullMQ, on one Redis server of this machine, in turn.
#
#   bench/peers_queues.sh BUILD [--quick]
#
# Installs BullMQ with npm below BUILD/peers. Where npm or the network is missing, it says
# so and ends well: the figures of dibs alone are in bench/run.sh.
set -euo pipefail
build=$(cd "${1:?build folder}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
jobs=2000 blocks=50 rounds=300 queued=20000
[ "${2:-}" != --quick ] || { jobs=300 blocks=5 rounds=30 queued=2000; }
peers=$build/peers
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
trap 'servers_stop; rm -rf "$work"' EXIT

leave_out() {
    echo "bench-peers: $1; BullMQ is left out"
    exit 0
}

for tool in node npm redis-server redis-cli; do
    command -v "$tool" >/dev/null || leave_out "$tool is not installed"
done
[ -x "$build/bench/bench_queue" ] || leave_out "bench_queue is not built, for which both drivers are needed"
mkdir -p "$peers"
if [ ! -d "$peers/node_modules/ioredis" ]; then
    (cd "$peers" && npm install --cache "$peers/npm" --no-audit --no-fund --ignore-scripts bullmq ioredis) >"$peers/npm.log" 2>&1 ||
        leave_out "npm cannot install it (see $peers/npm.log)"
fi

server_start
url=redis://127.0.0.1:$port

bullmq() { (cd "$peers" && node "$here/peers/bullmq.mjs" "$@" "$port"); }
ours() { "$build/bench/bench_queue" "$1" "$2" "$url"; }
used() { redis-cli -p "$port" INFO memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p'; }

# row WHAT OURS THEIRS RATIO
row() { printf '%-34s %12s %12s %9s\n' "$1" "$2" "$3" "$4"; }
more() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f x", a / b }'; }
version=$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$peers/node_modules/bullmq/package.json")
row "items of 100 bytes" dibs "BullMQ" ""
row "" "" "$version" ""

pair() { # WHAT PART FIELD BLOCKS JOBS
    local us them
    us=$(ours "$2" "$4" | awk -v f="$3" '{ printf "%.0f", $f }')
    them=$(bullmq "$2" "$5")
    row "$1" "$us" "$them" "$(more "$us" "$them")"
}
pair "push/s, one by one" push 5 "$blocks" "$jobs"
pair "push/s, 32 on the way" push32 2 "$blocks" "$jobs"
pair "push/s, 16 in a request" pushes 2 "$blocks" "$((jobs / 16 + 1))"
pair "ack and next/s, 1 consumer" take 5 "$blocks" "$jobs"
pair "ack and next/s, 32 consumers" take32 2 "$blocks" "$jobs"

read -r _ _ p50 _ p99 < <("$build/bench/bench_flow" item "$rounds" "$url")
read -r their50 their99 < <(bullmq wake "$rounds")
row "wake of a consumer, p50 us" "$p50" "$their50" "$(more "$their50" "$p50")"
row "wake of a consumer, p99 us" "$p99" "$their99" "$(more "$their99" "$p99")"

us=$(ours memory "$queued" | awk '{ printf "%.0f", $2 }')
before=$(used)
bullmq fill "$queued"
them=$((($(used) - before) / queued))
row "bytes of an item, of $queued" "$us" "$them" "$(more "$them" "$us")"
