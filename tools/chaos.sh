#!/usr/bin/env bash
# chaos.sh BUILD HOLDS - histories on each store: sixteen processes, eight keys,
# holders killed and stopped at random, and a checker of what they relied on.
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
fi
"$(dirname "$0")/loops.sh" "$build"
