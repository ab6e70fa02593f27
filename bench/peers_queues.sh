#!/usr/bin/env bash
# peers_queues.sh - queues of dibs beside BullMQ and asynq, on one Redis server of this machine,
# in turn.
#
#   bench/peers_queues.sh BUILD [--quick]
#
# Installs BullMQ with npm and asynq with go below BUILD/peers. A peer that cannot be had is
# named and left out: the figures of dibs alone are in bench/run.sh.
set -euo pipefail
build=$(cd "${1:?build folder}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
jobs=2000 blocks=50 rounds=300 queued=20000 polls=20
[ "${2:-}" != --quick ] || { jobs=300 blocks=5 rounds=30 queued=2000 polls=3; }
peers=$build/peers
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
# shellcheck source=bench/peers/install.sh
. "$here/peers/install.sh"
trap 'servers_stop; rm -rf "$work"' EXIT

leave_out() {
    echo "bench-peers: $1; $2 left out"
}

for tool in redis-server redis-cli; do
    command -v "$tool" >/dev/null || { leave_out "$tool is not installed" "queues are" && exit 0; }
done
[ -x "$build/bench/bench_queue" ] ||
    { leave_out "bench_queue is not built, for which both drivers are needed" "queues are" && exit 0; }

# Why BullMQ cannot be had, if so.
install_bullmq() {
    local tool
    for tool in node npm; do
        command -v "$tool" >/dev/null || { echo "$tool is not installed" && return; }
    done
    mkdir -p "$peers"
    [ -d "$peers/node_modules/ioredis" ] ||
        (cd "$peers" && npm install --cache "$peers/npm" --no-audit --no-fund --ignore-scripts bullmq ioredis) \
            >"$peers/npm.log" 2>&1 || echo "npm cannot install it (see $peers/npm.log)"
}
no_bullmq=$(install_bullmq)
[ -z "$no_bullmq" ] || leave_out "$no_bullmq" "BullMQ is"
no_asynq=$(language_install asynq)
[ -z "$no_asynq" ] || leave_out "$no_asynq" "asynq is"
[ -z "$no_bullmq" ] || [ -z "$no_asynq" ] || exit 0

server_start
url=redis://127.0.0.1:$port

# PART COUNT: the figure of each, or nothing of one that is left out.
ours() { "$build/bench/bench_queue" "$1" "$2" "$url"; }
bullmq() { [ -n "$no_bullmq" ] || (cd "$peers" && timeout 600 node "$here/peers/bullmq.mjs" "$@" "$port"); }
asynq() { [ -n "$no_asynq" ] || timeout 600 "$peers/asynq/asynq" "$@" "$port"; }
used() { redis-cli -p "$port" INFO memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p'; }

# row WHAT OURS BULLMQ RATIO ASYNQ RATIO
row() { printf '%-34s %12s %12s %9s %12s %9s\n' "$@"; }
# times A B: how many times B goes into A.
times() { [ -z "$1" ] || [ -z "$2" ] || awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f x", a / b }'; }
rate() { row "$1" "$2" "$3" "$(times "$2" "$3")" "$4" "$(times "$2" "$4")"; }
cost() { row "$1" "$2" "$3" "$(times "$3" "$2")" "$4" "$(times "$4" "$2")"; }

version=$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$peers/node_modules/bullmq/package.json" 2>/dev/null || true)
row "items of 100 bytes" dibs BullMQ "" asynq ""
row "" "" "$version" "" "$(sed -n 's/.*asynq v//p' "$here/peers/asynq/go.mod")" ""

pair() { # WHAT PART FIELD BLOCKS JOBS
    local us
    us=$(ours "$2" "$4" | awk -v f="$3" '{ printf "%.0f", $f }')
    # asynq has no batches.
    rate "$1" "$us" "$(bullmq "$2" "$5")" "$([ "$2" = pushes ] || asynq "$2" "$((jobs * 5))")"
}
pair "push/s, one by one" push 5 "$blocks" "$jobs"
pair "push/s, 32 on the way" push32 2 "$blocks" "$jobs"
pair "push/s, 16 in a request" pushes 2 "$blocks" "$((jobs / 16 + 1))"
pair "ack and next/s, 1 consumer" take 5 "$blocks" "$jobs"
pair "ack and next/s, 32 consumers" take32 2 "$blocks" "$jobs"

# asynq looks for tasks once a second while it has none.
read -r _ _ p50 _ p99 < <("$build/bench/bench_flow" item "$rounds" "$url")
read -r their50 their99 < <(bullmq wake "$rounds") || true
read -r other50 other99 < <(asynq wake "$polls") || true
cost "wake of a consumer, p50 us" "$p50" "${their50:-}" "${other50:-}"
cost "wake of a consumer, p99 us" "$p99" "${their99:-}" "${other99:-}"

# PEER: the bytes that its items take, each.
fill() {
    local before
    before=$(used)
    "$1" fill "$queued"
    echo $((($(used) - before) / queued))
}
us=$(ours memory "$queued" | awk '{ printf "%.0f", $2 }')
cost "bytes of an item, of $queued" "$us" "$([ -n "$no_bullmq" ] || fill bullmq)" "$([ -n "$no_asynq" ] || fill asynq)"
