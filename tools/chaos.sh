#!/usr/bin/env bash
# chaos.sh BUILD HOLDS [PART...] - the full counts of what the tests do in short.
#
#   history   on each store: sixteen processes, eight keys, holders killed and
#             stopped at random, and a checker of what they relied on
#   sentinel  lossy failovers (FAILOVERS, 20) with async, and as many with wait:1
#   cluster   masters that crash (CRASHES, 10) and slots that move (MOVES, 100)
#   quorum    histories and locks on nodes that are stopped, cut off, killed,
#             emptied and have their clocks set; and simulated seeds (SEEDS, 3000)
#   postgres  a history, and the contract on every way to the server
#
# All parts, or those that are named. Prints the seed of each run; SEED=N repeats
# one.
set -euo pipefail

build=$1
holds=$2
shift 2
seed=${SEED:-$RANDOM}
redis=$build/tests/redis
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# history NAME HOLDS [COMMAND...]: the history, as the last words of the command.
history() {
    local name=$1 count=$2
    shift 2
    mkdir "$folder/$name"
    echo "== history on $name"
    "$@" "$build/tests/history/history" "$folder/$name" "$count" "$seed" \
        ${url:+"$url"}
    rm -rf "${folder:?}/$name"
}

chaos_history() {
    url="sqlite:$folder/sqlite/history.db" history sqlite "$holds"
    history redis "$holds" "$redis/with_redis" --
    history cluster "$((holds / 4))" "$redis/with_redis" --cluster --
}

chaos_sentinel() {
    local durability
    for durability in async wait:1; do
        echo "== sentinel, lossy failovers, $durability"
        "$redis/failovers" "${FAILOVERS:-20}" "$durability" "$seed"
    done
}

chaos_cluster() {
    echo "== cluster, masters crash and slots move"
    "$redis/cluster_load" "${CRASHES:-10}" "${MOVES:-100}"
}

# Fails when an acquire takes longer than a node may, and a little.
chaos_quorum() {
    local nodes
    for nodes in 5 3; do
        history "redlock-$nodes" "$((holds / 5))" "$redis/with_redlock" \
            --chaos "$seed" "$nodes" longest_ttl=1s --
    done
    echo "== quorum, simulated"
    "$build/tests/sim/sim_quorum" "${SEEDS:-3000}" "$seed"
    echo "== quorum, nodes gone"
    if ! "$redis/test_quorum_slots" >"$folder/said" 2>&1 ||
        ! "$redis/test_quorum_faults" >>"$folder/said" 2>&1; then
        cat "$folder/said"
        return 1
    fi
    awk '/^acquire with/ { print }
        match($0, /p99 [0-9]+ us/) { p99 = substr($0, RSTART + 4) + 0 }
        match($0, /may take [0-9]+ ms/) { limit = substr($0, RSTART + 9) + 0
            if (p99 > (limit + 10) * 1000) { print "slower than a node may be"; bad = 1 } }
        END { exit bad }' "$folder/said"
}

# The contract on every way to the server; `make test` runs some of them.
chaos_postgres() {
    local with=$build/tests/postgres/with_postgres way
    [ -x "$with" ] || return 0
    history postgres "$holds" "$with" --
    for way in --unix --tls --plain --bouncer --durable; do
        echo "== postgres, the contract $way"
        "$with" "$way" -- "$build/tests/contract/contract"
    done
}

if [ ! -x "$redis/with_redis" ]; then
    url="sqlite:$folder/sqlite/history.db" history sqlite "$holds"
    exit
fi
for part in "${@:-history sentinel cluster quorum postgres}"; do
    for name in $part; do
        "chaos_$name"
    done
done
