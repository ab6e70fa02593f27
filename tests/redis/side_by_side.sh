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
    if ! wait "${pids[$i]}"; then
        cat "$said/$i"
        code=1
    fi
done
exit "$code"
