#!/usr/bin/env bash
# run.sh - runs every benchmark and prints a table beside the targets.
#
#   bench/run.sh BUILD [--quick]
#
# Repeats each and takes the median of the repeats. A target that is missed is
# shown and is no failure: the machine may be busy.
set -euo pipefail
build=${1:?build folder}
here=$(dirname "$0")
repeats=5 memory_pairs=100000 sqlite_pairs=20000 rounds=300 blocks=10
if [ "${2:-}" = --quick ]; then
    repeats=1 memory_pairs=5000 sqlite_pairs=1000 rounds=30 blocks=2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# repeated COMMAND...: the median of each column over the repeats.
repeated() {
    local i
    for ((i = 0; i < repeats; i++)); do
        rm -rf "$work"/dibs.db*
        "$@"
    done >"$work/rows"
    awk '{ for (c = 1; c <= NF; c++) cell[NR, c] = $c; columns = NF }
         END {
             for (c = 1; c <= columns; c++) {
                 for (i = 1; i <= NR; i++) v[i] = cell[i, c]
                 for (i = 2; i <= NR; i++)
                     for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
                 printf "%s%s", v[int((NR + 1) / 2)], c < columns ? " " : "\n"
             }
         }' "$work/rows"
}

# row WHAT PER_SECOND P50 P95 P99 MEASURED LIMIT TARGET: times in microseconds;
# without a TARGET there is none to meet.
row() {
    local verdict=
    [ -z "$8" ] || verdict=$(awk -v m="$6" -v t="$7" 'BEGIN { print (m <= t) ? "met" : "missed" }')
    printf '%-34s %10s %9s %9s %9s   %-14s %s\n' "$1" "$2" "$3" "$4" "$5" "$8" "$verdict"
}

printf '%-34s %10s %9s %9s %9s   %-14s\n' "" "per second" "p50 us" "p95 us" "p99 us" target
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" memory: "$memory_pairs")
row "memory: acquire and release" "$rate" "$p50" "$p95" "$p99" "$p50" 10 "p50 < 10 us"
read -r _ rate p50 p95 p99 < <(repeated "$build/bench/bench_lock" "sqlite:$work/dibs.db" "$sqlite_pairs")
row "sqlite: acquire and release" "$rate" "$p50" "$p95" "$p99" "$p50" 100 "p50 < 100 us"
read -r _ _ p50 p95 p99 < <(repeated "$build/bench/bench_wake" "sqlite:$work/dibs.db" "$rounds")
row "sqlite: wake in another process" "" "$p50" "$p95" "$p99" "$p99" 5000 "p99 < 5 ms"
read -r _ ours theirs ratio < <("$here/bench_run.sh" "$build/dibs" "$blocks")
row "flock file true" "" "$theirs" "" "" 0 0 ""
row "dibs run k -- true ($ratio x flock)" "" "$ours" "" "" "$ratio" 3 "<= 3 x flock"
