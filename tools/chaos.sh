#!/usr/bin/env bash
# chaos.sh BUILD HOLDS - histories on each store: sixteen processes, eight keys,
# holders killed and stopped at random, and a checker of what they relied on; then
# a cluster whose masters crash and whose slots move under load.
#
# Then FAILOVERS lossy failovers behind sentinels (20), for each durability.
#
# Prints the seed of each run; SEED=N repeats one.
set -euo pipefail

build=$1
holds=$2
seed=${SEED:-$RANDOM}
history=$build/tests/history/history
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() {
    local name=$1
    shift
    mkdir "$folder/$name"
    echo "== $name"
    "$@"
    rm -rf "${folder:?}/$name"
}

run sqlite "$history" "$folder/sqlite" "$holds" "$seed" \
    "sqlite:$folder/sqlite/history.db"
if [ -x "$build/tests/redis/with_redis" ]; then
    run redis "$build/tests/redis/with_redis" -- \
        "$history" "$folder/redis" "$holds" "$seed"
    for durability in async wait:1; do
        run "sentinel_${durability/:/}" "$build/tests/redis/failovers" \
            "${FAILOVERS:-20}" "$durability" "$seed"
    done
    run cluster "$build/tests/redis/with_redis" --cluster -- \
        "$history" "$folder/cluster" "$((holds / 4))" "$seed"
    echo "== cluster, masters crash and slots move"
    "$build/tests/redis/cluster_load" 10 100
    for nodes in 5 3; do
        run "redlock-$nodes" "$build/tests/redis/with_redlock" --chaos "$seed" "$nodes" longest_ttl=1s -- \
            "$history" "$folder/redlock-$nodes" "$((holds / 5))" "$seed"
    done
    echo "== quorum, simulated"
    "$build/tests/sim/sim_quorum" 3000 "$seed"
    echo "== quorum with nodes gone"
    "$build/tests/redis/test_quorum_faults" 2>/dev/null |
        awk '/^acquire with/ { print }
            match($0, /p99 [0-9]+ us/) { p99 = substr($0, RSTART + 4) + 0 }
            match($0, /may take [0-9]+ ms/) { limit = substr($0, RSTART + 9) + 0
                if (p99 > (limit + 10) * 1000) { print "slower than a node may be"; bad = 1 } }
            END { exit bad }'
fi
