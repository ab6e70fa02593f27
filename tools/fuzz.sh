#!/usr/bin/env bash
# fuzz.sh - runs every fuzz target for SECONDS, or with RUNS inputs if that is sooner, as
# many at once as there are processors, beginning with the seeds in tests/fuzz/corpus/. New
# inputs and crashes stay in build/fuzz/corpus/. SEED=N makes the same inputs first; without
# it each run makes its own.
#
#   tools/fuzz.sh SECONDS [RUNS]
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/build.sh
seconds=${1:?seconds for each target}
export runs=${2:--1}
# An input that takes so long hangs; on a busy machine an ordinary one takes seconds.
export hang_s=120

targets=()
for source in tests/fuzz/fuzz_*.c; do
    targets+=("$(basename "$source" .c)")
done
build asan "${targets[@]}"

fuzz() {
    local target=$1 seconds=$2 found="build/fuzz/corpus/$1"
    mkdir -p "$found"
    if ! "build/asan/tests/fuzz/$target" -max_total_time="$seconds" -runs="$runs" -timeout="$hang_s" -rss_limit_mb=1024 -seed="${SEED:-0}" \
        -artifact_prefix="$found/" -verbosity=0 -print_final_stats=1 \
        "$found" "tests/fuzz/corpus/${target#fuzz_}" >"$found.log" 2>&1; then
        cat "$found.log"
        return 1
    fi
    echo "$target: $seconds s, $(grep -h 'number_of_executed_units' "$found.log" || true)"
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c "fuzz {} $seconds"
