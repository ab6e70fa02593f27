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

# An example has time enough on a machine that is not stopped. What it says when it had
# not is "not in time" (75), and the judge of the tests repeats it where that was so.
run() {
    local rc=0
    "$program" ${url:+"$url"} >"$work/out" 2>"$work/err" || rc=$?
    cat "$work/out"
    cat "$work/err" >&2
    [ $rc -ne 0 ] || return 0
    ! grep -qE '\b(LOST|TIMEOUT|UNAVAIL|UNKNOWN)\b' "$work/err" || exit 75
    exit $rc
}

[ -n "$url" ] || run
run
grep -qE "$pattern" "$work/out" || { echo "expected: $pattern" >&2; exit 1; }
