#!/usr/bin/env bash
# test_headers.sh - each public header compiles alone, as C99 and as C++11.
#
#   tests/tree/test_headers.sh CC CXX
set -euo pipefail
cc=${1:?C compiler}
cxx=${2:?C++ compiler}
root=$(cd "$(dirname "$0")/../.." && pwd)
strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$root/include")

for header in "$root"/include/dibs/*.h; do
    name=dibs/${header##*/}
    # Twice, so that a missing guard shows.
    text=$(printf '#include <%s>\n' "$name" "$name")
    "$cc" -std=c99 "${strict[@]}" -x c - <<<"$text" || { echo "$name: not C99"; exit 1; }
    "$cxx" -std=c++11 "${strict[@]}" -x c++ - <<<"$text" || { echo "$name: not C++11"; exit 1; }
    echo "$name: C99 and C++11"
done
