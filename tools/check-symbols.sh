#!/usr/bin/env bash
# check-symbols.sh - what a build shows to the outside: libdibs.so exports the
# DIBS_API functions of the public headers and nothing else, libdibs.a defines no
# global name without our prefix, and neither needs more than the C library at
# start-up (drivers are opened when a store asks for them). And it finds functions of
# src that no code of src uses.
#
#   tools/check-symbols.sh BUILD [ROOT]
set -euo pipefail
build=${1:?build folder}
root=${2:-$(dirname "$0")/..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rc=0

# The name before the first parenthesis after each DIBS_API.
awk '
    /^[ \t]*#/ { next }
    { text = text " " $0 }
    END {
        while (match(text, /DIBS_API/)) {
            text = substr(text, RSTART + RLENGTH)
            match(text, /[A-Za-z0-9_]+[ \t]*\(/)
            name = substr(text, RSTART, RLENGTH - 1)
            gsub(/[ \t]/, "", name)
            print name
        }
    }' "$root"/include/dibs/*.h | sort >"$work/declared"
nm -D --defined-only "$build/libdibs.so" | awk '{ print $NF }' | sort >"$work/exported"
if ! diff "$work/declared" "$work/exported" >"$work/diff"; then
    sed -n -e 's/^< \(.*\)/\1: declared with DIBS_API, not exported/p' \
        -e 's/^> \(.*\)/\1: exported, not in a public header/p' "$work/diff"
    rc=1
fi

nm -g --defined-only "$build/libdibs.a" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^dibsx?_/ { print $3 ": a global name without our prefix" }' >"$work/foreign"
if [ -s "$work/foreign" ]; then
    cat "$work/foreign"
    rc=1
fi

for file in libdibs.so dibs; do
    readelf -d "$build/$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc\.so|ld-linux)' >"$work/needed" || continue
    sed "s/^/$file needs at start-up: /" "$work/needed"
    rc=1
done

# Functions across files that are declared and defined, and that is all. What is left of
# them is for tests: checks of invariants, faults, and looks at the inside of a machine.
for_tests='dibs__(breaker|session)_check|dibs__consumer_(believes|rung)|dibs__election_renews|
    dibs__executor_running|dibs__ring_behind|dibs__serve_problem_status|dibs__zone_read|
    dibsx_alloc_(count|fail_at)'
# The tables of lease steps put these names together.
steps='dibs__(redis|sqlite)_(acquire|acquire_all|release|renew|convert|revoke|yield)'
find "$build/src" -name '*.o' -exec nm -A -P {} + 2>/dev/null |
    awk '$3 == "T" { defined[$2] } $3 == "U" { used[$2] }
         END { for (name in defined) if (!(name in used)) print name }' |
    grep -E '^dibs(x|_)_' | grep -vxE "${for_tests//[[:space:]]/}|$steps" | sort >"$work/unused"
find "$root/src" -name '*.[ch]' -exec grep -hoE '\<dibs(x|_)_[a-z0-9_]+' {} + |
    sort | uniq -c | awk '$1 <= 2 { print $2 }' | sort >"$work/rare"
if comm -12 "$work/unused" "$work/rare" | grep . >"$work/dead"; then
    sed 's/$/: no code of src uses this function/' "$work/dead"
    rc=1
fi

[ $rc -ne 0 ] || echo "$(wc -l <"$work/declared") functions declared and exported"
exit $rc
