#!/usr/bin/env bash
# loops.sh BUILD - on each store, a use of the library in which each call into the
# system fails in turn, in each way it may; RUNS=N makes it N of each kind of call.
# The topologies of Redis share its code and get a sample.
set -euo pipefail

build=$1
loops=("$build/tests/loops/loops")
sample=("${loops[@]}" --runs "${RUNS:-60}")
[ -z "${RUNS:-}" ] || loops+=(--runs "$RUNS")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo "== loops on memory"
"${loops[@]}" memory:loops
echo "== loops on sqlite"
"${loops[@]}" "sqlite:$folder/loops.db"
if [ -x "$build/tests/redis/with_redis" ]; then
    echo "== loops on redis"
    "$build/tests/redis/with_redis" -- "${loops[@]}"
    for topology in sentinel cluster; do
        echo "== loops on redis, $topology"
        "$build/tests/redis/with_redis" "--$topology" -- "${sample[@]}"
    done
    echo "== loops on a quorum"
    "$build/tests/redis/with_redlock" 3 longest_ttl=1h -- "${sample[@]}"
fi
if [ -x "$build/tests/postgres/with_postgres" ]; then
    echo "== loops on postgres"
    "$build/tests/postgres/with_postgres" -- "${loops[@]}"
fi
