#!/usr/bin/env bash
# test_man.sh - the manual pages of the library are well formed, and every public
# function has its place in one of them.
#
#   tests/tree/test_man.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
rc=0

# The name before the first parenthesis after each DIBS_API.
exported() {
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
    }' include/dibs/*.h
}

for name in $(exported); do
    grep -qE "^\.(Fn|Fo) $name( |$)" docs/man/*.3 || { echo "$name: in no manual page"; rc=1; }
done
command -v mandoc >/dev/null || { echo "mandoc is not installed" >&2; exit 77; }
mandoc -Tlint -W warning docs/man/*.3 || rc=1
exit $rc
