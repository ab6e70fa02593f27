#!/usr/bin/env bash
# contend.sh - four workers want one key; watch them take turns.
#
#   examples/contend.sh [DIBS]     DIBS is the command, "dibs" when not given
#
# The proof does not come from the lock: each turn makes a folder that must not
# be there yet, and mkdir succeeds for one process only.
set -euo pipefail
dibs=${1:-dibs} workers=4 rounds=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DIBS_URL="sqlite:$work/dibs.db" work workers began=${EPOCHREALTIME/[.,]/}
touch "$work/turns" "$work/overlaps"

# say WORKER MARK TEXT: one line, with the mark in the worker's own lane.
say() {
    local lane line='' now=${EPOCHREALTIME/[.,]/}
    for ((lane = 1; lane <= workers; lane++)); do
        if [ "$lane" -eq "$1" ]; then line+=" $2 "; else line+='  .  '; fi
    done
    printf '%7d ms %s  %s\n' $(((now - began) / 1000)) "$line" "$3"
}

# What a worker does under the lock.
turn() {
    if ! mkdir "$work/inside" 2>/dev/null; then
        say "$1" '!!!' "TWO AT ONCE" | tee -a "$work/overlaps"
        return
    fi
    say "$1" '[=>' "worker $1 in, token $DIBS_LOCK_TOKEN"
    sleep 0.4
    say "$1" '<=]' "worker $1 out"
    rmdir "$work/inside"
    echo "$1" >>"$work/turns"
}

worker() {
    for ((round = 0; round < rounds; round++)); do
        # shellcheck disable=SC2016  # expands in the child
        "$dibs" run --wait 60s contended -- bash -c 'turn "$1"' turn "$1"
    done
}

export -f say turn
for ((n = 1; n <= workers; n++)); do
    worker "$n" &
done
failed=0
for ((n = 1; n <= workers; n++)); do
    wait -n || failed=1
done

turns=$(wc -l <"$work/turns")
if [ -s "$work/overlaps" ]; then
    echo "$turns turns, and $(wc -l <"$work/overlaps") times two at once"
    exit 1
fi
echo "$turns turns, never two at once"
[ "$failed" -eq 0 ] && [ "$turns" -eq $((workers * rounds)) ]
