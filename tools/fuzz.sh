#!/usr/bin/env bash
# fuzz.sh - runs every fuzz target for SECONDS, beginning with the seeds in
# tests/fuzz/corpus/. New inputs and crashes stay in build/fuzz/corpus/.
#
#   tools/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/build.sh
seconds=${1:?seconds for each target}

targets=()
for source in tests/fuzz/fuzz_*.c; do
    targets+=("$(basename "$source" .c)")
done
build fuzz "${targets[@]}"
for target in "${targets[@]}"; do
    found="build/fuzz/corpus/$target"
    mkdir -p "$found"
    echo "$target: $seconds s"
    if ! "build/fuzz/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="$found/" -verbosity=0 -print_final_stats=1 \
        "$found" "tests/fuzz/corpus/${target#fuzz_}" >"$found.log" 2>&1; then
        cat "$found.log"
        exit 1
    fi
    grep -h 'number_of_executed_units' "$found.log" || true
done
