#!/usr/bin/env bash
# test_install.sh - installs a build into a temporary folder and uses it from
# there: the command, and a program compiled with pkg-config and with CMake's
# find_package. Then it uninstalls, and the folder is as it was.
#
#   tests/tree/test_install.sh BUILD CC
set -euo pipefail
build=${1:?build folder}
cc=${2:?C compiler}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
placed="$work/root$prefix"
tools=$here/../../tools
export DESTDIR="$work/root"

install() { "$tools/install.sh" "$build" "$prefix" >"$work/log" || { cat "$work/log"; fail "cannot install"; }; }
uninstall() { "$tools/uninstall.sh" "$prefix" >"$work/log" 2>&1; }
listed() { (cd "$work/root" && find . | sort); }

# What others have there: a file beside ours, and a folder that is empty.
mkdir -p "$placed/bin" "$placed/share/man/man3"
touch "$placed/bin/other"
listed >"$work/before"
install

"$placed/bin/dibs" version >/dev/null || fail "the installed command does not run"
library=$(find "$placed" -name libdibs.so.0)
[ -n "$library" ] || fail "libdibs.so.0 was not installed"
libdir=${library%/*}
readelf -d "$library" | grep -q 'soname: \[libdibs.so.0\]' || fail "the soname is not libdibs.so.0"
diff -r "$here/../../include/dibs" "$placed/include/dibs" || fail "headers differ"

page=$placed/share/man/man3/dibs_lock_acquire.3
[ -e "$page" ] || fail "man dibs_lock_acquire would find nothing"
if command -v man >/dev/null; then
    man -M "$placed/share/man" -w dibs_lock_acquire >/dev/null || fail "man dibs_lock_acquire finds nothing"
    # A link leads to a page beside it.
    shown=$(MANWIDTH=78 man -M "$placed/share/man" dibs_lock_acquire 2>&1)
    grep -q 'dibs_lock_acquire(dibs_lock \*lock' <<<"$shown" || fail "man dibs_lock_acquire does not show its declaration"
fi

# The sysroot stands for the final place that DESTDIR defers.
export PKG_CONFIG_SYSROOT_DIR="$work/root" PKG_CONFIG_PATH="$libdir/pkgconfig"
# Flags are words.
# shellcheck disable=SC2046
"$cc" -o "$work/consumer" "$here/consumer/main.c" $(pkg-config --cflags --libs dibs)
LD_LIBRARY_PATH="$libdir" "$work/consumer" || fail "the program made with pkg-config failed"

{
    cmake -S "$here/consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$placed" -DCMAKE_C_COMPILER="$cc"
    cmake --build "$work/cmake"
} >"$work/log" 2>&1 || { cat "$work/log"; fail "a CMake project cannot use it"; }
"$work/cmake/shared" || fail "the program made with find_package failed"
"$work/cmake/static" || fail "the program linked to the static library failed"

# Installed once more, as with a newer version, and then removed.
install
uninstall || { cat "$work/log"; fail "cannot uninstall"; }
listed | diff "$work/before" - || fail "uninstall left something, or removed too much"
if uninstall; then
    fail "it uninstalled what is not there"
fi
grep -q "give make the PREFIX and DESTDIR of make install" "$work/log" || fail "not told what to do: $(cat "$work/log")"
