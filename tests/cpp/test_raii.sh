#!/usr/bin/env bash
# test_raii.sh - compiles and runs the tests of dibs.hpp and its example: with one C++
# compiler as the oldest standard, with the other as a new one.
#
#   tests/cpp/test_raii.sh BUILD [--all]    --all: with each as both
set -euo pipefail
build=$(cd "${1:?build folder}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
used=0

# compile OUT SOURCE
compile() {
    "$cxx" "-std=$standard" "${strict[@]}" -I "$root/include" -o "$1" "$2" \
        -L "$build" -ldibs -Wl,-rpath,"$build" -pthread -ldl
}

declare -A standards=([g++]=c++11 [clang++]=c++20)
[ "${2:-}" != --all ] || standards=([g++]='c++11 c++20' [clang++]='c++11 c++20')
for cxx in g++ clang++; do
    command -v "$cxx" >/dev/null || continue
    for standard in ${standards[$cxx]}; do
        compile "$work/test" "$here/raii.cpp"
        "$work/test" memory:
        echo "$cxx -std=$standard"
    done
    "$work/test" "sqlite:$work/$cxx.db"
    compile "$work/example" "$root/examples/raii.cpp"
    "$work/example" memory: | tee "$work/out"
    grep -q '^first: OK, second: BUSY$' "$work/out"
    used=1
done
[ $used = 1 ] || { echo "there is no C++ compiler" >&2; exit 77; }
