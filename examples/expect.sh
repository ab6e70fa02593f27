#!/usr/bin/env bash
# expect.sh - runs an example and looks for a line in what it prints.
#
#   examples/expect.sh PATTERN PROGRAM [URL]   "sqlite:" means a temporary file
set -euo pipefail
pattern=$1 program=$2 url=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$url" != sqlite: ] || url="sqlite:$work/dibs.db"

"$program" "$url" | tee "$work/out"
grep -qE "$pattern" "$work/out" || { echo "expected: $pattern" >&2; exit 1; }
