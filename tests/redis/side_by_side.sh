#!/usr/bin/env bash
# side_by_side.sh PROGRAM... URL - runs suites on one store at the same time, as both
# mostly wait for leases to end. Shows what failed.
set -euo pipefail

url=${!#}
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
pids=()
for program in "${@:1:$#-1}"; do
    "$program" "$url" >"$said/${#pids[@]}" 2>&1 &
    pids+=($!)
done
code=0
for i in "${!pids[@]}"; do
    rc=0
    wait "${pids[$i]}" || rc=$?
    if [ "$rc" -ne 0 ]; then
        cat "$said/$i"
        # "Not in time" (75, pace.h) only when nothing worse is wrong.
        if [ "$code" -eq 0 ] || [ "$rc" -ne 75 ]; then code=$rc; fi
    fi
done
exit "$code"
