#!/usr/bin/env bash
# bench_run.sh - wall time of `dibs run k -- true` beside `flock FILE true`.
#
#   bench/bench_run.sh DIBS BLOCKS
#
# Blocks of ten are interleaved, so that both meet the same machine. Prints
# "RUNS DIBS_US FLOCK_US RATIO": medians, and the median of the blocks' ratios.
set -euo pipefail
dibs=${1:?the dibs command}
blocks=${2:?how many blocks}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DIBS_URL="sqlite:$work/dibs.db"

# block FILE COMMAND...: ten runs, one time in microseconds per line.
block() {
    local file=$1 i before after
    shift
    for ((i = 0; i < 10; i++)); do
        before=${EPOCHREALTIME/[.,]/}
        "$@"
        after=${EPOCHREALTIME/[.,]/}
        echo $((after - before))
    done | tee -a "$work/$file.all" >"$work/$file"
}

median() { # FILE
    sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

"$dibs" run warm -- true
for ((b = 0; b < blocks; b++)); do
    block flock flock "$work/file" true
    block dibs "$dibs" run bench -- true
    echo "$(median "$work/dibs") $(median "$work/flock")" |
        awk '{ printf "%.3f\n", $1 / $2 }' >>"$work/ratios"
done
echo "$((blocks * 10)) $(median "$work/dibs.all") $(median "$work/flock.all") $(median "$work/ratios")"
