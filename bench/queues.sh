#!/usr/bin/env bash
# queues.sh - measures queues by the public calls, beside the targets. bench/run.sh has their
# steps and their memory.
#
#   bench/queues.sh BUILD [--quick] [--json]
#
# Starts a redis-server of its own. bench/bench_queue_calls.c says what a row is.
set -euo pipefail
build=${1:?build folder}
here=$(dirname "$0")
repeats=3 calls=20000 calls32=5000 wakes=1000 waiting=(100 100000 1000000) held=10000 lanes=1000 pg_blocks=5
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
trap 'servers_stop; rm -rf "$work"' EXIT
options "${@:2}"
if [ -n "$quick" ]; then
    repeats=1 calls=200 calls32=64 wakes=20 waiting=(100 1000 5000) held=100 lanes=20 pg_blocks=1
fi
if [ ! -x "$build/bench/bench_queue_calls" ]; then
    echo "queues: not built" >&2
    exit
fi
server_start
url=redis://127.0.0.1:$port

on_queue() { repeated "$build/bench/bench_queue_calls" "$@" "$url"; }

# rate WHAT BARE PART THREADS COUNT LIMIT: a row for each side.
rate() {
    read -r bare ours ratio < <(on_queue "$3" "$4" "$5")
    row "redis: $2" "$bare" "" "" "" 0 0 ""
    row "redis: $1 ($ratio x)" "$ours" "" "" "" "$ratio" "$6" ">= $6 x bare"
}

times
rate "push" "bare LPUSH" push 1 "$calls" 0.6
rate "push, 32 threads" "32 XADD in flight" push 32 "$calls32" 1
rate "reserve and ack" "bare RPOPLPUSH, LREM" work 1 "$calls" 1
rate "the same, 32 threads" "XREADGROUP of 16" work 32 "$calls32" 0.9
read -r bare50 ours50 ratio50 bare99 ours99 ratio99 < <(on_queue wake "$wakes")
row "redis: BRPOPLPUSH" "" "$bare50" "" "$bare99" 0 0 ""
row "redis: wake-up p50 ($ratio50 x)" "" "$ours50" "" "" "$ratio50" 2.5 "<= 2.5 x bare"
row "redis: wake-up p99 ($ratio99 x)" "" "" "" "$ours99" "$ratio99" 4 "<= 4 x bare"

# A call does not cost more because many items wait: at most twice what it costs with a few.
first=
for count in "${waiting[@]}"; do
    read -r push taken < <(on_queue grow "$count")
    if [ -z "$first" ]; then
        first=1 least=$push least_taken=$taken limit=
    else
        limit="<= 2 x few"
    fi
    row "redis: push, $count wait" "" "$push" "" "" "$push" $((least * 2)) "$limit"
    row "redis: reserve, ack, $count wait" "" "$taken" "" "" "$taken" $((least_taken * 2)) "$limit"
done

# What a client has in hand is kept with one request for all; of those that die it comes back at once.
heading "a third"
tends=$(repeated "$build/bench/bench_hold" "$port" tend "$held")
row "redis: $held in hand, requests" "$tends" "" "" "" "$tends" 1 "<= 1"
[ -x "$build/bench/bench_queue" ] || exit 0
heading ms
ms=$(repeated "$build/bench/bench_queue" dead "$lanes" "$url")
row "redis: $lanes that die, 10 items each" "$ms" "" "" "" "$ms" 60 "<= 60"

# Workers of one queue do not wait for each other, which they did where its row was locked.
durable() { repeated "$build/tests/postgres/with_postgres" --durable -- "$build/bench/bench_queue" "$@"; }
times
read -r bare one ratio < <(durable take8 "$pg_blocks")
row "pg fsync=on: 8 DELETE in turn" "$bare" "" "" "" 0 0 ""
row "pg fsync=on: ack and next, 8 lanes ($ratio x)" "$one" "" "" "" "$ratio" 1.5 ">= 1.5 x bare"
read -r _ many _ < <(durable batch8 "$pg_blocks")
ratio=$(awk -v many="$many" -v one="$one" 'BEGIN { printf "%.2f", many / one }')
row "the same in batches of 16 ($ratio x)" "$many" "" "" "" "$ratio" 8 ">= 8 x one"
