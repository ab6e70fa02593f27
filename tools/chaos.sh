#!/usr/bin/env bash
# chaos.sh BUILD MINUTES - puts every store through every fault (tests/chaos), and
# queues, events, jobs, clients of `dibs serve` and `dibs run` with its tree through their own, simulates, does what is
# promised by number (failovers, moves of slots, ways to a server), and prints one table.
# The faults take about so many minutes, the rest about twenty.
#
# ITEMS=N goes on with each queue until so many items have been pushed, however long that
# takes. TICKS=N is for jobs: so many ticks on each store, 20 each second. They run beside
# all others, since they take half an hour.
#
# Each run is shown with its seed while it goes on; SEED=N repeats them. A history
# in which a promise was broken stays in CHAOS_FOLDER (build/chaos), to be looked
# at by `check`.
set -uo pipefail

build=$1
minutes=$(($2 < 40 ? $2 : 40))
seed=${SEED:-$((RANDOM + 1))}
folder=${CHAOS_FOLDER:-build/chaos}
programs=$build/tests/chaos
redis=$build/tests/redis
with_postgres=$build/tests/postgres/with_postgres

# One row each: its name, and what is run where and how. With "--lossy" the store
# also loses what it had answered, and less is promised.
rows=(
    "sqlite|chaos --on sqlite"
    "redis|chaos --on redis"
    "redis, writes lost|chaos --on redis --lossy"
    "sentinel async|chaos --on sentinel-async --split"
    "sentinel wait:1|chaos --on sentinel-wait --lossy"
    "sentinel wait:1, split|chaos --on sentinel-wait --split"
    "cluster|chaos --on cluster"
    "cluster, writes lost|chaos --on cluster --split"
    "redlock of 5|chaos --on redlock"
    "redlock of 3|chaos --on redlock3"
    "redlock, writes lost|chaos --on redlock --lossy"
    "postgres|chaos --on postgres"
    "postgres, writes lost|chaos --on postgres-standby --lossy"
    "postgres, synchronous standby|chaos --on postgres-sync"
    "queues on sqlite|queue_ground --on sqlite"
    "queues on redis|queue_ground --on redis"
    "queues on a cluster|queue_ground --on cluster"
    "queues on postgres|queue_ground --on postgres"
    "queues, synchronous standby|queue_ground --on postgres-sync"
    "queues on redis, writes lost|queue_ground --lossy --on redis"
    "queues on sentinel async|queue_ground --lossy --on sentinel-async"
    "queues on postgres, writes lost|queue_ground --lossy --on postgres-standby"
    "batches on sqlite|queue_ground --steps --on sqlite"
    "batches on redis|queue_ground --steps --on redis"
    "batches on postgres|queue_ground --steps --on postgres"
    "events on sqlite|event_ground --on sqlite"
    "events on redis|event_ground --on redis"
    "events on a cluster|event_ground --on cluster"
    "events on postgres|event_ground --on postgres"
    "sidecars on sqlite|sidecar_ground --on sqlite"
    "sidecars on redis|sidecar_ground --on redis"
    "run, by its cgroup|run_ground --in cgroup"
    "run, by /proc|run_ground --in proc"
    "run, in strange places|run_ground --in strange"
)

# An hour later is late to hear that one was not built.
for row in "${rows[@]}"; do
    read -ra words <<<"${row#*|}"
    [ -x "$programs/${words[0]}" ] ||
        { echo "chaos: there is no $programs/${words[0]}; build it, as make chaos does" >&2; exit 1; }
done

# Starting, calming down and checking take about half a minute each.
simulation=$((minutes * 5))
span=$(((minutes * 60 - simulation) / ${#rows[@]} - 30))
[ "$span" -ge 5 ] || span=5
seeds=$((minutes * 300 < 10000 ? minutes * 300 : 10000))

mkdir -p "$folder"
table=$(mktemp)
trap 'rm -f "$table"; kill $(jobs -p) 2>/dev/null' EXIT
bad=0

# field NAME LINE: the number after the name.
field() {
    sed -nE "s/.*$1 ([0-9]+).*/\1/p" <<<"$2"
}

# add_row NAME OPERATIONS HOLDS FAULTS VIOLATIONS NOT_PROMISED
add_row() {
    printf '%-32s %10s %9s %7s %10s %12s\n' "$@" >>"$table"
}

# end_run NAME FOLDER CODE WORDS...: a row for a run of a ground, whose log is beside its folder.
end_run() {
    local name=$1 run=$2 code=$3 last
    shift 3
    if [ "$code" -eq 0 ]; then
        rm -rf "$run"
    else
        bad=$((bad + 1))
        echo "not as promised: $*; the history is in $run"
    fi
    last=$(tail -n 1 "$run.log")
    add_row "$name" "$(field operations "$last")" "$(field holds "$last")" \
        "$(field faults "$last")" "$(field violations "$last")" "$(field 'not promised' "$last")"
}

ticks=${TICKS:-$((minutes * 1200 < 36000 ? minutes * 1200 : 36000))}
declare -A job_runs
for store in sqlite redis postgres; do
    run=$folder/jobson$store
    rm -rf "$run"
    mkdir -p "$run"
    "$programs/job_ground" --on "$store" --ticks "$ticks" --seed "$seed" "$run" >"$run.log" 2>&1 &
    job_runs[$store]=$!
done

add_row store operations holds faults violations "not promised"
for row in "${rows[@]}"; do
    name=${row%%|*}
    read -ra words <<<"${row#*|}"
    words+=(--seconds "$span" --seed "$seed")
    [ -z "${ITEMS:-}" ] || [ "${words[0]}" != queue_ground ] || words+=(--items "$ITEMS" --seconds 0)
    run=$folder/${name//[^a-z0-9]/}
    rm -rf "$run"
    mkdir -p "$run"
    echo "== $name"
    "$programs/${words[0]}" "${words[@]:1}" "$run" 2>&1 | tee "$run.log"
    end_run "$name" "$run" "${PIPESTATUS[0]}" "${words[@]}"
done
for name in sim sim_quorum; do
    echo "== $name, $seeds seeds"
    if last=$("$build/tests/sim/$name" "$seeds" "$seed"); then
        add_row "$name" "" "$(sed -nE 's/.* ([0-9]+) leases.*/\1/p' <<<"$last")" "$seeds seeds" 0 ""
    else
        bad=$((bad + 1))
        add_row "$name" "" "" "$seeds seeds" FAILED ""
    fi
    echo "$last"
done

# count NAME WHAT COMMAND...: a row for a program that says what it found.
count() {
    local name=$1 what=$2
    shift 2
    echo "== $name, $what"
    if "$@"; then
        add_row "$name" "" "" "$what" 0 ""
    else
        bad=$((bad + 1))
        add_row "$name" "" "" "$what" FAILED ""
    fi
}

# Fails when an acquire takes longer than a node may, and a little.
# shellcheck disable=SC2317 # count calls it
quorum_in_time() {
    local said
    said=$("$redis/test_quorum_faults" 2>&1) || { echo "$said"; return 1; }
    awk '/^acquire with/ { print }
        match($0, /p99 [0-9]+ us/) { p99 = substr($0, RSTART + 4) + 0 }
        match($0, /may take [0-9]+ ms/) { limit = substr($0, RSTART + 9) + 0
            if (p99 > (limit + 10) * 1000) { print "slower than a node may be"; bad = 1 } }
        END { exit bad }' <<<"$said"
}

failovers=$((minutes < 20 ? minutes : 20))
if [ -x "$redis/failovers" ]; then
    for durability in async wait:1; do
        count "sentinel $durability" "$failovers failovers" \
            "$redis/failovers" "$failovers" "$durability" "$seed"
    done
    count cluster "$((failovers / 2)) crashes, $((failovers * 5)) moves" \
        "$redis/cluster_load" "$((failovers / 2))" "$((failovers * 5))"
    count quorum "nodes gone" quorum_in_time
fi
if [ -x "$with_postgres" ]; then
    for way in --unix --tls --plain --bouncer --durable; do
        count postgres "contract $way" "$with_postgres" "$way" -- \
            "$build/tests/contract/contract"
    done
    # It judges the longest time without a grant, and how many connections there are.
    count postgres "200 contenders, some killed" "$build/tests/judge" contend \
        "$build/tests/postgres/test_postgres_contend" 200 "$((minutes * 6 + 20))"
fi
count "every store" "each call fails" "$(dirname "$0")/loops.sh" "$build"
for store in sqlite redis postgres; do
    echo "== jobs on $store, $ticks ticks"
    wait "${job_runs[$store]}"
    code=$?
    cat "$folder/jobson$store.log"
    end_run "jobs on $store" "$folder/jobson$store" "$code" job_ground --on "$store" --ticks "$ticks" --seed "$seed"
done
printf '\nseed %s, %s s of faults on each store, %s s in all\n\n' "$seed" "$span" "$SECONDS"
cat "$table"
exit $((bad > 0))
