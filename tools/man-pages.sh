#!/bin/sh
# man-pages.sh - makes the manual pages of the library anew: the build calls it when a
# public header or a page of docs/man has changed.
#
#   tools/man-pages.sh FOLDER
set -eu
out=${1:?folder}
root=$(dirname "$0")/..

# A function that is gone leaves no link behind.
rm -f "$out"/*.3
awk -v out="$out" -f "$root/tools/man-pages.awk" "$root"/include/dibs/*.h "$root"/docs/man/*.3 ||
    { rm -f "$out"/*.3; exit 1; }
