#!/usr/bin/env bash
# test_unit.sh - the systemd units among the examples: understood by systemd, and
# exposed no more than 1.5 of 10 by its own measure.
#
#   tests/tree/test_unit.sh DIBS
set -euo pipefail
dibs=$(readlink -f "${1:?the command}")
here=$(cd "$(dirname "$0")/../../examples" && pwd)
command -v systemd-analyze >/dev/null || exit 77
systemd-analyze --help | grep -- --offline >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$dibs" "$work/dibs" # a word, wherever the checkout is

for unit in "$here"/*.service; do
    name=${unit##*/}
    # Verified with programs that are there.
    sed "s|^ExecStart=dibs |ExecStart=$work/dibs |; s|/usr/bin/report|$(command -v true)|" "$unit" >"$work/$name"
    systemd-analyze verify --man=no "$work/$name" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    ! grep -F "$name" "$work/log" || exit 1
    # The threshold is in tenths, and what is equal passes.
    systemd-analyze security --offline=true --no-pager --threshold=15 "$work/$name" >"$work/log" 2>&1 || {
        cat "$work/log"
        exit 1
    }
    tail -n 1 "$work/log"

    # What it runs is a command line that dibs takes, up to the URL of the store.
    read -ra words < <(sed -n 's|^ExecStart=[^ ]* ||p' "$work/$name")
    for i in "${!words[@]}"; do
        [ "${words[i]}" != --url ] || words[i + 1]="sqlite:$work/store.db"
    done
    # A daemon would not end.
    [ "${words[0]}" != serve ] || words+=(--check)
    "$dibs" "${words[@]}" </dev/null || { echo "$name: ${words[*]} failed"; exit 1; }
done
