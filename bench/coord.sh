#!/usr/bin/env bash
# coord.sh - measures latches, barriers, limits, breakers and elections beside the targets.
#
#   bench/coord.sh BUILD [--quick] [--json]
#
# Starts a redis-server and PostgreSQL clusters of its own, on free ports of this machine.
# bench/bench_coord.c, bench_crowd.c, bench_cost.c and bench_postgres.c say what a row is.
set -euo pipefail
build=${1:?build folder}
here=$(dirname "$0")
repeats=3 blocks=100 crew_blocks=20 rounds=50 wakes=10 terms=10 reports=20000
crowds=(100 1000 5000) parties=5000 pg_blocks=30 pg_crew_blocks=10 pg_options=('' --durable)
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
trap 'servers_stop; rm -rf "$work"' EXIT
options "${@:2}"
if [ -n "$quick" ]; then
    repeats=1 blocks=5 crew_blocks=2 rounds=10 wakes=3 terms=1 reports=1000
    crowds=(100 200) parties=200 pg_blocks=3 pg_crew_blocks=1 pg_options=('')
fi
if [ ! -x "$build/bench/bench_coord" ]; then
    echo "redis: not built" >&2
    exit
fi
server_start
url=redis://127.0.0.1:$port

on_coord() { repeated "$build/bench/bench_coord" "$port" "$@"; }

times
read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio < <(on_coord latch "$blocks")
row "redis: bare INCR" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "redis: count at a latch ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$our_p50" 40 "p50 < 40 us"

# Those who wait are in one process, then a hundred in each. A process hears once.
wake() {
    local what=$1 waiters=$2 processes=$3 where=
    [ "$processes" -eq 1 ] || where=", $processes processes"
    if ! read -r bare p50 ratio bare_heard heard rate commands \
        < <(once "$build/bench/bench_crowd" "$what" "$processes" "$waiters" "$wakes" "$url"); then
        echo "$what, $waiters$where: no figure" >&2
        return
    fi
    row "PUBLISH, $waiters threads$where" "" "$bare" "" "" 0 0 ""
    row "$what, $waiters$where ($ratio x)" "" "$p50" "" "" "$p50" $((waiters * 10)) "p50 < $((waiters / 100)) ms"
    if [ "$processes" -gt 1 ]; then
        row "PUBLISH to the last process" "" "$bare_heard" "" "" 0 0 ""
        row "$what to the last process" "" "$heard" "" "" "$heard" 1000 "p50 < 1 ms"
    fi
    if [ "$what" = barrier ]; then
        row "arrivals of $waiters$where" "$rate" "" "" "" "$rate" 30000 ">= 30,000/s"
        row "commands of $((waiters + 1)) parties" "$commands" "" "" "" "$commands" $((waiters + 2)) "<= n + 1"
    fi
}
for waiters in "${crowds[@]}"; do
    bare=$(once "$build/bench/bench_crowd" sockets 1 "$waiters" "$wakes" "$url")
    row "PUBLISH, sockets: $waiters" "" "$bare" "" "" 0 0 ""
    for what in latch barrier; do
        wake "$what" "$waiters" 1
        [ "$waiters" -le 100 ] || wake "$what" "$waiters" $((waiters / 100))
    done
done

read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio < <(on_coord limit "$blocks")
row "redis: bare INCR, EXPIRE" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "redis: token of a limit ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$our_rate" 40000 ">= 40,000/s"
read -r bare rate ratio < <(on_coord flying "$crew_blocks")
row "redis: 50 bare in flight" "$bare" "" "" "" 0 0 ""
row "redis: tokens, 50 threads ($ratio x)" "$rate" "" "" "" "$rate" 80000 ">= 80,000/s"

# local_row WHAT PART NS: without a call to the store.
local_row() {
    p50=$(on_coord "$2" "$crew_blocks" | awk '{ printf "%.4f", $1 / 1000 }')
    row "$1" "$(awk -v p="$p50" 'BEGIN { printf "%.0f", 1e6 / p }')" "$p50" "" "" \
        "$p50" "$(awk -v ns="$3" 'BEGIN { print ns / 1000 }')" "<= $3 ns"
}
local_row "token of a reservation" stock 20
local_row "enter a closed breaker" enter 10
local_row "the same, 4 threads" enter4 10
local_row "enter, and report the call" call 20
local_row "the same, 4 threads" call4 20
local_row "enter an open breaker" refused 60
local_row "the same, 4 threads" refused4 60

read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio < <(on_coord meter "$blocks")
row "redis: report of a breaker ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" 0 0 ""
read -r bare rate ratio < <(on_coord meters "$crew_blocks")
row "redis: reports, 50 threads ($ratio x)" "$rate" "" "" "" 0 0 ""
# Each client reports once a second.
us=$(repeated "$build/bench/bench_cost" "$port" report "$reports")
share=$(awk -v us="$us" 'BEGIN { printf "%.1f", 10000 * us / 1e6 * 100 }')
row "redis: report, us of the server" "" "$us" "" "" 0 0 ""
row "redis: 10,000 clients, % of a core" "$share" "" "" "" "$share" 25 "<= 25 %"
for clients in 1 100; do
    part=trips
    [ "$clients" -gt 1 ] || part=trip
    read -r bare p50 ratio half last < <(on_coord "$part" "$rounds")
    row "PUBLISH, sockets: $clients" "" "$bare" "" "" 0 0 ""
    row "open to half, clients: $clients" "" "$half" "" "" "$half" 1000 "p50 < 1 ms"
    row "open to the last" "" "$last" "" "" "$last" 1000 "p50 < 1 ms"
    row "bad call to the last ($ratio x)" "" "$p50" "" "" "$p50" 2000 "p50 < 2 ms"
done

read -r bare p50 ratio < <(on_coord leader "$rounds")
row "PUBLISH to a socket" "" "$bare" "" "" 0 0 ""
row "next leader, resigned ($ratio x)" "" "$p50" "" "" "$p50" 2000 "p50 < 2 ms"
read -r p50 last < <(repeats=1 on_coord kill "$terms")
row "next leader, killed, ttl 1 s" "" "$p50" "" "" 0 0 ""
row "the same, latest" "" "$last" "" "" "$last" 1250000 "<= ttl + 250 ms"
read -r p50 last < <(repeats=1 on_coord loss "$terms")
row "end of a term to on_lost" "" "$p50" "" "" 0 0 ""
row "the same, latest" "" "$last" "" "" "$last" 20000 "<= 20 ms"

if [ ! -x "$build/bench/bench_postgres" ]; then
    echo "postgres: not built" >&2
    exit
fi
for option in "${pg_options[@]}"; do
    on_postgres() { once "$build/tests/postgres/with_postgres" ${option:+"$option"} -- "$@"; }
    where='pg fsync=off'
    [ -z "$option" ] || where='pg fsync=on'
    read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
        < <(on_postgres "$build/bench/bench_postgres" draw "$pg_blocks")
    row "$where: bare UPDATE" "$rate" "$p50" "$p95" "$p99" 0 0 ""
    row "$where: token ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" 0 0 ""
    read -r bare rate ratio < <(on_postgres "$build/bench/bench_postgres" draws "$pg_crew_blocks")
    row "$where: 8 bare UPDATE" "$bare" "" "" "" 0 0 ""
    row "$where: tokens, 8 threads ($ratio x)" "$rate" "" "" "" "$rate" 8000 ">= 8,000/s"
    if ! read -r _ p50 _ _ _ rate _ \
        < <(on_postgres "$build/bench/bench_crowd" barrier 1 "$parties" "$((wakes / 3 + 1))"); then
        echo "$where: $parties arrivals: no figure" >&2
        continue
    fi
    took=$(awk -v n="$parties" -v r="$rate" 'BEGIN { printf "%.0f", n / r * 1e6 }')
    row "$where: $parties arrivals" "$rate" "$took" "" "" "$took" 2000000 "<= 2 s"
    row "$where: the last to all" "" "$p50" "" "" 0 0 ""
done
