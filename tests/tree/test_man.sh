#!/usr/bin/env bash
# test_man.sh - the manual pages of the library are well formed, every public
# function is in the synopsis of one of them, and that page has each status which
# the header gives for the function. All statuses are in libdibs.3.
#
#   tests/tree/test_man.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
rc=0

statuses=$(sed -nE 's/^ +(DIBS_[A-Z]+) = [0-9]+.*/\1/p' include/dibs/types.h)

# "FUNCTION STATUS..." for each DIBS_API: the name before its first parenthesis,
# and the words DIBS_* of the comment that stands directly before it.
declared() {
    awk '
    /^[ \t]*#/ { next }
    /^\/\*/ { words = "" }
    /^\/\*/, /\*\// {
        text = $0
        while (match(text, /DIBS_[A-Z_]+/)) {
            words = words " " substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
        }
        next
    }
    /^DIBS_API/ { inside = 1; head = "" }
    inside {
        head = head " " $0
        if (match(head, /[A-Za-z0-9_]+[ \t]*\(/)) {
            name = substr(head, RSTART, RLENGTH - 1)
            gsub(/[ \t]/, "", name)
            print name words
            inside = 0
            words = ""
        }
        next
    }
    /^typedef .*;$/ { next }
    /^[^ \t]/ { words = "" }' include/dibs/*.h
}

# The page with the function in its synopsis.
page_of() {
    local page
    for page in docs/man/*.3; do
        if sed '/^\.Sh DESCRIPTION/,$d' "$page" | grep -qE "^\.(Fn|Fo) $1( |$)"; then
            echo "$page"
            return
        fi
    done
}

names=0
while read -r name words; do
    names=$((names + 1))
    page=$(page_of "$name")
    [ -n "$page" ] || { echo "$name: in no manual page"; rc=1; continue; }
    for word in $words; do
        grep -qx "$word" <<<"$statuses" || continue
        grep -qE "^\.(It )?Dv (.* )?$word( |$)" "$page" || { echo "$name: $page does not have $word"; rc=1; }
    done
done < <(declared)
for status in $statuses; do
    grep -qE "^\.It Dv $status$" docs/man/libdibs.3 || { echo "$status: not in libdibs.3"; rc=1; }
done
if [ "$names" -eq 0 ] || [ -z "$statuses" ]; then
    echo "nothing was found in include/dibs"
    rc=1
fi
command -v mandoc >/dev/null || { echo "mandoc is not installed" >&2; exit 77; }
mandoc -Tlint -W warning docs/man/*.3 || rc=1
[ $rc -ne 0 ] || echo "$names functions are documented"
exit $rc
