#!/usr/bin/env bash
# run.sh - runs every benchmark and prints a table beside the targets.
#
#   bench/run.sh BUILD [--quick] [--json]
#
# Repeats each and takes the median of the repeats; "spread" is the range of what the target
# is about. With --json each row is an object on a line of its own. A target that is missed is
# shown and is no failure: the machine may be busy. Starts a PostgreSQL cluster and
# redis-servers of its own, which write nothing to disk, on free ports of this
# machine.
set -euo pipefail
build=${1:?build folder}
here=$(dirname "$0")
repeats=5 memory_pairs=100000 sqlite_pairs=20000 rounds=300 blocks=10
redis_blocks=100 crew_blocks=20 redis_locks=10000 pg_blocks=30 pg_crew_blocks=5
queued=100000 tick_seconds=30 definitions=10000 idle_seconds=60
calls=5000 bursts=("1000 1" "10000 2") loaded=100000
renewed=(10000 100000) beside=(100000 1000000) handed=20000 lease_repeats=3 handoff_blocks=10
# WAITERS HOLD_US [processes]
lines=("8 0" "100 0" "8 1000" "8 0 processes" "8 1000 processes" "100 0 processes")
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
trap 'servers_stop; rm -rf "$work"' EXIT
options "${@:2}"
if [ -n "$quick" ]; then
    repeats=1 memory_pairs=5000 sqlite_pairs=1000 rounds=30 blocks=2
    redis_blocks=5 crew_blocks=2 redis_locks=500 pg_blocks=3 pg_crew_blocks=1
    renewed=(1000) beside=(10000) handed=2000 lease_repeats=1 handoff_blocks=1 lines=("8 0" "8 0 processes")
    queued=5000 tick_seconds=3 definitions=100 idle_seconds=3
    calls=200 bursts=("100 1") loaded=1000
fi

times
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" memory: "$memory_pairs")
row "memory: acquire and release" "$rate" "$p50" "$p95" "$p99" "$p50" 10 "p50 < 10 us"
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" "sqlite:$work/dibs.db" "$sqlite_pairs")
row "sqlite: acquire and release" "$rate" "$p50" "$p95" "$p99" "$p50" 100 "p50 < 100 us"
read -r _ _ p50 p95 p99 < <(repeated "$build/bench/bench_wake" "sqlite:$work/dibs.db" "$rounds")
row "sqlite: wake in another process" "" "$p50" "$p95" "$p99" "$p99" 5000 "p99 < 5 ms"
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" "sqlite:$work/dibs.db" "$memory_pairs" sticky)
row "sticky: acquire and release" "$rate" "$p50" "$p95" "$p99" "$p50" 1 "p50 < 1 us"
read -r _ _ p50 p95 p99 < <(repeated "$build/bench/bench_wake" "sqlite:$work/dibs.db" "$rounds" sticky)
row "sqlite: idle sticky holder yields" "" "$p50" "$p95" "$p99" "$p99" 5000 "p99 < 5 ms"
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" memory: 1000 check)
row "check of a held lock" "$rate" "$p50" "$p95" "$p99" "$p50" 0.1 "p50 < 0.1 us"
read -r _ ours theirs ratio < <(once "$here/bench_run.sh" "$build/dibs" "$blocks")
row "flock file true" "" "$theirs" "" "" 0 0 ""
row "dibs run k -- true ($ratio x flock)" "" "$ours" "" "" "$ratio" 3 "<= 3 x flock"

# With fsync=off, as the Redis below, which is where a step can be held against an
# advisory lock, which is not written down; and with fsync=on, where what threads
# ask for together is written together. synchronous_commit is on in both.
on_postgres() {
    local option=$1
    shift
    repeated "$build/tests/postgres/with_postgres" ${option:+"$option"} -- "$build/bench/bench_postgres" "$@"
}
if [ -x "$build/bench/bench_postgres" ]; then
    for option in '' --durable; do
        where='pg fsync=off' pair_target='<= 2 x bare' crew_target=''
        if [ -n "$option" ]; then
            where='pg fsync=on' pair_target='' crew_target='>= 5 x one'
        fi
        read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
            < <(on_postgres "$option" pair "$pg_blocks")
        row "$where: bare advisory, prepared" "$rate" "$p50" "$p95" "$p99" 0 0 ""
        row "$where: pair ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" 2 "$pair_target"
        read -r _ rate multiple < <(on_postgres "$option" crew "$pg_crew_blocks")
        row "$where: 32 threads ($multiple x)" "$rate" "" "" "" "$multiple" 5 "$crew_target"
    done
else
    echo "postgres: not built" >&2
fi

# The steps of queues, beside a bare driver that keeps items in a table, a list, a
# stream. "queue_pair WHERE WHAT BARE PART BLOCKS LIMIT TARGET" has one request on the way;
# queue_crew 32, or 4 of 16 items.
queue_pair() {
    read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio < <(repeated "${queue_on[@]}" "$4" "$5" ${queue_url:+"$queue_url"})
    row "$1: $3" "$rate" "$p50" "$p95" "$p99" 0 0 ""
    row "$1: $2 ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" "$6" "$7"
}
queue_crew() {
    read -r bare rate ratio < <(repeated "${queue_on[@]}" "$4" "$5" ${queue_url:+"$queue_url"})
    row "$1: $3" "$bare" "" "" "" 0 0 ""
    row "$1: $2 ($ratio x)" "$rate" "" "" "" "$ratio" "$6" "$7"
}
queue_bytes() {
    read -r bare bytes ratio < <(once "${queue_on[@]}" memory "$queued" ${queue_url:+"$queue_url"})
    row "$1: $2 of 100 bytes" "$bare" "" "" "" 0 0 ""
    row "$1: item of 100 bytes ($ratio x)" "$bytes" "" "" "" "$bytes" "$3" "$4"
}
if [ -x "$build/bench/bench_queue" ]; then
    queue_on=("$build/tests/postgres/with_postgres" -- "$build/bench/bench_queue")
    queue_url=
    # The short form starts one server for them.
    if [ "$repeats" -gt 1 ]; then
        queue_pair "pg fsync=off" "push" "bare INSERT" push "$pg_blocks" 0 ""
        queue_pair "pg fsync=off" "ack and next" "bare DELETE SKIP LOCKED" take "$pg_blocks" 0 ""
        queue_crew "pg fsync=off" "push, 32 lanes" "32 bare INSERT" push32 "$pg_crew_blocks" 0 ""
        queue_crew "pg fsync=off" "the same, batches of 16" "bare DELETE of 16" batch "$pg_crew_blocks" 0 ""
        queue_bytes "pg" "row" 0 ""
    fi
    queue_crew "pg fsync=off" "ack and next, 32 lanes" "32 bare DELETE" take32 "$pg_crew_blocks" 0 ""
fi

if [ ! -x "$build/bench/bench_redis" ]; then
    echo "redis: not built" >&2
    exit
fi
server_start
read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
    < <(repeated "$build/bench/bench_redis" "$port" pair "$redis_blocks")
row "redis: bare hiredis pair" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "redis: acquire, release ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" 1.2 "<= 1.2 x bare"
read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
    < <(repeated "$build/bench/bench_redis" "$port" unix "$redis_blocks")
row "redis, unix socket: bare pair" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "redis, unix socket: pair ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" 1.2 "<= 1.2 x bare"
read -r _ _ _ _ rate p50 p95 p99 ratio < <(repeated "$build/bench/bench_redis" "$port" unawaited "$redis_blocks")
row "redis: release not awaited ($ratio x)" "$rate" "$p50" "$p95" "$p99" "$ratio" 0.75 "<= 0.75 x awaited"
read -r _ rate multiple < <(repeated "$build/bench/bench_redis" "$port" crew "$crew_blocks")
row "redis: 64 threads ($multiple x)" "$rate" "" "" "" "$multiple" 3.5 ">= 3.5 x bare"
read -r bare rate ratio < <(repeated "$build/bench/bench_redis" "$port" async "$crew_blocks")
row "redis: bare, 16 on the way" "$bare" "" "" "" 0 0 ""
row "redis: 64 lockers, async ($ratio x)" "$rate" "" "" "" "$ratio" 0.8 ">= 0.8 x bare"
read -r _ _ p50 p95 p99 < <(repeated "$build/bench/bench_wake" "redis://127.0.0.1:$port" "$rounds")
row "redis: wake in another process" "" "$p50" "$p95" "$p99" 0 0 ""
read -r _ _ p50 p95 p99 < <(repeated "$build/bench/bench_wake" "redis://127.0.0.1:$port" "$rounds" sticky)
row "redis: idle sticky holder yields" "" "$p50" "$p95" "$p99" "$p99" 5000 "p99 < 5 ms"

# A consumer and a reader of events that are blocked, beside a bare BRPOPLPUSH.
flow() { repeated "$build/bench/bench_flow" "$1" "$rounds" "redis://127.0.0.1:$port"; }
read -r _ _ bare p95 p99 < <(flow bare)
row "redis: wake of a bare BRPOPLPUSH" "" "$bare" "$p95" "$p99" 0 0 ""
read -r _ _ p50 p95 p99 < <(flow item)
ratio=$(awk -v ours="$p50" -v bare="$bare" 'BEGIN { printf "%.2f", ours / bare }')
row "redis: wake of a consumer ($ratio x)" "" "$p50" "$p95" "$p99" "$ratio" 2.5 "<= 2.5 x bare"
read -r _ _ p50 p95 p99 < <(flow event)
row "redis: wake of a reader of events" "" "$p50" "$p95" "$p99" 0 0 ""
read -r _ rate p50 p95 p99 < <(flow append)
row "redis: append an event" "$rate" "$p50" "$p95" "$p99" 0 0 ""

if [ -x "$build/bench/bench_queue" ]; then
    queue_on=("$build/bench/bench_queue")
    queue_url=redis://127.0.0.1:$port
    queue_pair redis "push" "bare LPUSH" push "$redis_blocks" 1.67 "<= 1.67 x bare"
    queue_pair redis "ack and next" "bare RPOPLPUSH, LREM" take "$redis_blocks" 1 "<= 1 x bare"
    queue_crew redis "push, 32 lanes" "32 bare LPUSH" push32 "$crew_blocks" 0 ""
    queue_crew redis "push of 16" "bare LPUSH of 16" pushes "$crew_blocks" 0 ""
    queue_crew redis "ack and next, 32 lanes" "32 bare RPOPLPUSH, LREM" take32 "$crew_blocks" 0 ""
    queue_crew redis "ack and next, 32 lanes" "32 XREADGROUP, XACK, XDEL" group32 "$crew_blocks" 0.7 ">= 0.7 x bare"
    queue_crew redis "the same, batches of 16" "bare XREADGROUP of 16" batch "$crew_blocks" 0.86 ">= 0.86 x bare"
fi
one=$port
nodes_start
read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
    < <(repeated "$build/bench/bench_quorum" "$crew_blocks" "${nodes[@]}")
row "quorum of 5: bare, a majority" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "quorum of 5: pair ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" 1.3 "<= 1.3 x bare"
read -r rate p50 p95 p99 our_rate our_p50 our_p95 our_p99 ratio \
    < <(repeated "$build/bench/bench_quorum" "$crew_blocks" stop "${node_pids[@]:0:2}" "${nodes[@]}")
row "quorum, 2 stopped: bare" "$rate" "$p50" "$p95" "$p99" 0 0 ""
row "quorum, 2 stopped: pair ($ratio x)" "$our_rate" "$our_p50" "$our_p95" "$our_p99" "$ratio" 1.3 "<= 1.3 x bare"
port=$one
read -r rate p50 p95 p99 < <(once python3 -B "$here/bench_jobs.py" "$build/dibs" "$port" late "$tick_seconds")
row "redis: lateness of a tick" "$rate" "$p50" "$p95" "$p99" "$p99" 50000 "p99 < 50 ms"
rate=$(once python3 -B "$here/bench_jobs.py" "$build/dibs" "$port" idle "$definitions" "$idle_seconds")
row "redis: 3 idle nodes, $definitions jobs" "$rate" "" "" "" "$rate" 1 "<= 1 request/s"
read -r started rate < <(repeated "$build/bench/bench_calls" "redis://127.0.0.1:$port" flow "$calls")
row "redis: runs started" "$started" "" "" "" 0 0 ""
row "redis: runs of a function, 1 node" "$rate" "" "" "" "$rate" 2000 ">= 2000"
for burst in "${bursts[@]}"; do
    read -r jobs count <<<"$burst"
    read -r rate p50 p95 p99 last \
        < <(once "$build/bench/bench_calls" "redis://127.0.0.1:$port" burst "$jobs" "$count")
    row "redis: $jobs jobs at once, nodes: $count" "$rate" "$p50" "$p95" "$p99" "$last" 5000000 "last <= 5 s"
done
heading "load s" "list s" "bytes each"
read -r load list bytes < <(once python3 -B "$here/bench_jobs.py" "$build/dibs" "$port" load "$loaded")
row "redis: $loaded jobs" "$load" "$list" "$bytes" "" "$load" 60 "load <= 60 s"

# Very many leases of one client. A round of renewals takes ten seconds and more.
on_leases() { repeats=$lease_repeats repeated "$build/bench/bench_leases" "$port" "$@"; }
for count in "${beside[@]}"; do
    read -r alone p50 ratio < <(on_leases grow "$count")
    row "redis: pair of an empty client" "" "$alone" "" "" 0 0 ""
    row "redis: beside $count leases ($ratio x)" "" "$p50" "" "" "$ratio" 1.2 "<= 1.2 x alone"
done
heading ms
read -r bare ours ratio < <(on_leases list "${beside[0]}")
row "redis: SCAN, HGETALL of ${beside[0]}" "$bare" "" "" "" 0 0 ""
row "redis: ls of ${beside[0]} ($ratio x)" "$ours" "" "" "" 0 0 ""
times
commands=$(on_leases handoff "$handed")
row "redis: hand-off, 8 wait: commands" "$commands" "" "" "" "$commands" 2.1 "<= 2.1"
heading ratio "p50 us" "server us" "p99 us"
for line in "${lines[@]}"; do
    read -r waiters held_us kind <<<"$line"
    read -r bare bare_p99 bare_cpu p50 p99 cpu ratio commands jain longest \
        < <(repeated "$build/bench/bench_handoff" "$port" "$waiters" "$handoff_blocks" "$held_us" ${kind:+"$kind"})
    who="$waiters ${kind:-threads}"
    [ "$held_us" -eq 0 ] || who+=", $((held_us / 1000)) ms"
    row "redis: bare, $who" "" "$bare" "$bare_cpu" "$bare_p99" 0 0 ""
    row "redis: hand-off, $who" "$ratio" "$p50" "$cpu" "$p99" "$ratio" 1.5 "<= 1.5 x bare"
    row "redis: commands a hand-off" "$commands" "" "" "" "$commands" 2.1 "<= 2.1"
    row "redis: Jain, the longest wait" "$jain" "" "" "$longest" "$jain" 0.99 ">= 0.99"
done
heading "client ms" commands "a command"
for count in "${renewed[@]}"; do
    read -r scripts pipelined client ratio commands leases < <(on_leases renew "$count")
    row "redis: $count, bare scripts of 100" "$scripts" "" "" "" 0 0 ""
    row "redis: $count, bare, pipelined" "$pipelined" "" "" "" 0 0 ""
    row "redis: renew $count ($ratio x)" "$client" "$commands" "$leases" "" "$leases" 60 ">= 60 a command"
done
# A client that looks for its answer before it sleeps takes more of a processor than its times tell.
heading "client us"
on_client() {
    read -r bare ours ratio < <(repeated "$build/bench/bench_redis" "$port" "$3" "$crew_blocks")
    row "redis: CPU of $2" "$bare" "" "" "" 0 0 ""
    row "redis: CPU of $1 ($ratio x)" "$ours" "" "" "" 0 0 ""
}
on_client "a pair" "a bare pair" cpu
on_client "one of 64 threads" "one of bare, 16 on the way" cpu-crew
on_client "one of 64, async" "one of bare, 16 on the way" cpu-async
# What docs/performance.md calculates with.
heading "server us"
on_server() { row "redis: $1" "$(repeats=$lease_repeats repeated "$build/bench/bench_cost" "$port" "$2" "$3")" "" "" "" 0 0 ""; }
on_server "a pair" pair "$handed"
on_server "a turn of 8 who wait" turn "$handed"
on_server "the renewal of a lease" renew "$redis_locks"
on_server "a second of a waiter" wait "$redis_locks"
read -r keys all client < <(once "$build/bench/bench_redis" "$port" memory "$redis_locks")
heading bytes
row "redis: keys of a held lock" "$keys" "" "" "" 0 0 ""
row "redis: server for a held lock" "$all" "" "" "" "$all" 400 "<= 400"
row "redis: client for a held lock" "$client" "" "" "" 0 0 ""
[ ! -x "$build/bench/bench_queue" ] || queue_bytes redis "entry of a list" 125 "<= 125"
"$here/coord.sh" "$@"
"$here/queues.sh" "$@"
