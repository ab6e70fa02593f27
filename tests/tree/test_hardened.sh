#!/usr/bin/env bash
# test_hardened.sh - what protects an installed build against memory errors, read
# off the files themselves and not off the flags that should have made them.
#
#   tests/tree/test_hardened.sh BUILD
#
# Every program of the build folder is looked at as well, for what the loader can
# see; only what is installed must be free of a path to its libraries.
set -euo pipefail
build=${1:?build folder}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rc=0

breach() {
    echo "$1: $2"
    rc=1
}

kept() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

# Position independent, read-only after relocation, all symbols bound at the
# start, no executable stack, nothing both writable and executable, code apart from
# data.
check_loaded() {
    local file=$1 what
    while IFS= read -r what; do
        breach "$file" "$what"
    done < <(readelf -hldW "$file" | awk '
        /^ *Type: +DYN/ { moves = 1 }
        /GNU_RELRO/ { relro = 1 }
        /\(FLAGS(_1)?\).*(BIND_NOW|NOW)/ { now = 1 }
        /GNU_STACK.* RW +/ { still = 1 }
        /^ +LOAD.* (RWE|W?E?W E) / { both = 1 }
        /^ +LOAD/ && !loads++ { apart = / R +0x/ }
        /\(TEXTREL\)/ { text = 1 }
        END {
            if (!moves) print "not position independent"
            if (!relro) print "no RELRO"
            if (!now) print "symbols are bound late"
            if (!still) print "the stack may be executable"
            if (both) print "writable code"
            if (!apart) print "headers lie in executable pages"
            if (text) print "relocations in code"
        }')
}

# What the compiler put in: canaries, probes of large frames, landing places of
# jumps, and checked string functions where it optimises.
check_compiled() {
    local file=$1 symbols
    symbols=$(readelf --dyn-syms -W "$file")
    grep -q '__stack_chk_fail' <<<"$symbols" || breach "$file" "no stack canaries"
    if [[ $(kept CMAKE_BUILD_TYPE) == *Rel* ]]; then
        grep -qE '__(v?snprintf|memcpy|read|recv|poll)_chk' <<<"$symbols" || breach "$file" "no checked string functions"
    fi
    [ "$(uname -m)" = x86_64 ] || return 0
    objdump -d --no-show-raw-insn "$file" >"$work/code"
    # A frame of more than a page is touched page by page.
    awk 'page && /(or|mov)q? +[$]0x0,(0x0)?\(%rsp\)/ { probed = 1 }
         { page = /sub +[$]0x1000,%rsp/ }
         END { exit !probed }' "$work/code" || breach "$file" "large frames are not probed"
    awk '/^[0-9a-f]+ <(dibs_[a-z][a-z0-9_]*|main)>:$/ { name = $2; next }
         name { if ($2 != "endbr64") print name; name = "" }' "$work/code" >"$work/bare"
    [ ! -s "$work/bare" ] || breach "$file" "no landing place: $(head -n 3 "$work/bare" | tr '\n' ' ')"
}

check_installed() {
    local file=$1
    check_loaded "$file"
    check_compiled "$file"
    ! readelf -dW "$file" | grep -qE '\((RPATH|RUNPATH)\)' || breach "$file" "a path to its libraries is built in"
}

DESTDIR="$work/root" cmake --install "$build" >"$work/log" || { cat "$work/log"; exit 1; }
placed="$work/root$(kept CMAKE_INSTALL_PREFIX)"
library=$(find "$placed" -name 'libdibs.so.*' -type f)
check_installed "$placed/bin/dibs"
check_installed "$library"
readelf -dW "$placed/bin/dibs" | grep -qE '\(FLAGS_1\).*PIE' || breach "$placed/bin/dibs" "not a position independent program"
readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $4 ~ /FUNC|OBJECT/ && $8 !~ /^dibs_[a-z]/ { print $8 }' >"$work/foreign"
[ ! -s "$work/foreign" ] || breach "$library" "exports $(tr '\n' ' ' <"$work/foreign")"

count=0
while IFS= read -r file; do
    magic=
    IFS= read -r -N 4 magic <"$file" || true
    [ "$magic" = $'\x7fELF' ] || continue
    check_loaded "$file"
    count=$((count + 1))
done < <(find "$build" -path '*/CMakeFiles' -prune -o -type f -perm -u+x -print)
[ "$count" -gt 0 ] || breach "$build" "has no programs"
[ $rc -ne 0 ] || echo "$count programs are hardened"
exit $rc
