#!/usr/bin/env bash
# step.sh - runs one step of a longer work: a line that says what it is and, when it
# has ended, how long it took. On a terminal the seconds are counted meanwhile.
#
#   tools/step.sh [-q] WHAT COMMAND...
#
# The command's output comes after the line; with -q, only when it failed.
set -uo pipefail
quiet=
if [ "${1:-}" = -q ]; then
    quiet=1
    shift
fi
head=$(printf '%-46s' "$1")
shift
start=$SECONDS
ticker=

stop_ticker() {
    [ -n "$ticker" ] || return 0
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null
    ticker=
    printf '\r\033[K%s' "$head"
}
trap stop_ticker EXIT

printf '%s' "$head"
if [ -t 1 ]; then
    # It does not outlive this script, whatever ended that.
    while sleep 1 && kill -0 $$; do
        printf '\r%s%d s' "$head" $((SECONDS - start))
    done 2>/dev/null &
    ticker=$!
fi
said=$("$@" 2>&1)
rc=$?
stop_ticker
if [ $rc -eq 0 ]; then
    echo "$((SECONDS - start)) s"
else
    echo "failed after $((SECONDS - start)) s"
fi
if [ -n "$said" ] && { [ -z "$quiet" ] || [ $rc -ne 0 ]; }; then
    echo "$said"
fi
exit $rc
