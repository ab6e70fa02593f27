#!/usr/bin/env bash
# expect.sh - runs an example and looks for a line in what it prints.
#
#   examples/expect.sh PATTERN PROGRAM [URL]   "sqlite:" means a temporary file
#
# Without a URL it runs twice on the store in the default place: the first must have
# left nothing behind that is in the way of the second.
set -euo pipefail
pattern=$1 program=$2 url=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$url" != sqlite: ] || url="sqlite:$work/dibs.db"

export XDG_STATE_HOME=$work # where the default place is
[ -n "$url" ] || "$program"
"$program" ${url:+"$url"} | tee "$work/out"
grep -qE "$pattern" "$work/out" || { echo "expected: $pattern" >&2; exit 1; }
