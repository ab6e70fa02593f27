#!/usr/bin/env bash
# check.sh - searches the models of this folder with spin.
#
#   spec/check.sh                         everything in instances.txt (`make spec`)
#   spec/check.sh --quick                 its short form, part of `make test`
#   spec/check.sh MODEL [-DX...]          one instance, to the end
#   spec/check.sh MODEL -DNO_RULE_n --trail
#                                         the shortest way to what breaks, step by step
#
# A search that was cut off, by depth or by memory, is a failure: only one that
# has seen all states says that nothing breaks.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
memory_mb=4000
optimise=-O2

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is not installed (tools/install-packages.sh build test)" >&2
        exit 77
    fi
done

# search DEPTH_FIRST_OR_BREADTH_FIRST MODEL FLAGS...: into $work/out and, when
# something broke, $work/MODEL.pml.trail. Breadth first finds the shortest way to
# it; depth first needs less memory.
search() {
    local order=$1 model=$2 way=()
    shift 2
    [ "$order" = depth ] || way=(-DBFS)
    rm -f "$work"/*.trail
    cp "$here/$model.pml" "$work/"
    (
        cd "$work"
        spin "$@" -a "$model.pml" &&
            gcc "$optimise" -w -DSAFETY -DNOFAIR -DMEMLIM=$memory_mb ${way[@]+"${way[@]}"} -o pan pan.c &&
            nice -n 10 ./pan -n -m4000000
    ) >"$work/out" 2>&1 || true
}

states() { awk '/states, stored/ { print $1; exit }' "$work/out"; }

# What the search came to: all, broken, or cut.
result() {
    if grep -q 'errors: [1-9]' "$work/out"; then
        if grep -q 'assertion violated' "$work/out"; then echo broken; else echo stuck; fi
    elif grep -q 'errors: 0' "$work/out" &&
        ! grep -qE 'not completed|too small|out of memory|truncated' "$work/out"; then
        echo all
    else
        echo cut
    fi
}

# What broke, as the model has it.
broken() {
    grep -m1 'assertion violated' "$work/out" | sed 's/^pan:1: assertion violated *//; s/ (at depth.*//'
}

trail() {
    local model=$1
    shift
    search breadth "$model" "$@"
    if [ "$(result)" != broken ]; then
        echo "nothing breaks in $(states) states ($(result) seen)"
        return 1
    fi
    (cd "$work" && spin "$@" -DREAL_FENCES=1 -t -T "$model.pml") |
        sed -e '/^spin: trail ends/,$d' -e 's/^spin: text of failed assertion: /broken: /' -e '/^spin: /d'
}

one() {
    local model=$1
    shift
    search depth "$model" "$@"
    echo "$model $*: $(states) states, $(result) $(broken)"
    [ "$(result)" = all ]
}

# row STATES TIME RESULT MODEL INSTANCE...
row() { printf '%-8s %-66s %10s %6s  %s\n' "$4" "$5" "$1" "$2" "$3"; }

# Each line of instances.txt that is of the form asked for; then the table.
table() {
    local form=$1 failed=0 start when expect model flags order word
    while read -r when expect model flags; do
        case $when in '' | '#'*) continue ;; esac
        [ "$form" = full ] || [ "$when" = quick ] || continue
        order=depth
        [ "$expect" = holds ] || order=breadth
        [ ! -t 1 ] || printf '%s %s\r' "$model" "$flags"
        start=$(date +%s)
        # shellcheck disable=SC2086
        search $order "$model" $flags
        word=$(result)
        case $expect-$word in
        holds-all) word='holds in all states' ;;
        breaks-broken) word='counterexample' ;;
        *)
            word="FAILED: $word, expected: $expect"
            failed=1
            tail -n 20 "$work/out" >&2
            ;;
        esac
        row "$(states)" "$(($(date +%s) - start)) s" "$word" "$model" "${flags//-D/}" >>"$work/rows"
    done <"$here/instances.txt"
    row states time result model instance
    cat "$work/rows"
    return $failed
}

case "${1:-}" in
'') table full ;;
--quick)
    optimise=-O0
    table quick
    ;;
-*) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
*)
    flags=()
    show=one
    model=$(basename "$1" .pml)
    shift
    for word in "$@"; do
        if [ "$word" = --trail ]; then show=trail; else flags+=("$word"); fi
    done
    $show "$model" ${flags[@]+"${flags[@]}"}
    ;;
esac
