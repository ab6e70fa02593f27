#!/usr/bin/env bash
# test_zdump.sh - the reader of zones finds the same offsets and shifts as zdump.
#
#   tests/jobs/test_zdump.sh READER FROM,TO [ZONE...]
#
# Without zones: all of this machine's zone database.
set -euo pipefail
reader=${1:?the program zdump_reader}
years=${2:?years}
shift 2
folder=${TZDIR:-/usr/share/zoneinfo}
[ -d "$folder" ] || { echo "there is no $folder: the package tzdata is missing"; exit 1; }
if [ $# -eq 0 ]; then
    # Files of the database whose content says what they are.
    mapfile -t all < <(cd "$folder" && find . -type f ! -path './right/*' ! -path './posix/*' |
        sed 's|^\./||' | LC_ALL=C grep -E '^[A-Z][A-Za-z0-9_+/-]*$' | sort)
    for zone in "${all[@]}"; do
        [ "$(head -c 4 "$folder/$zone" | tr -d '\0')" != TZif ] || set -- "$@" "$zone"
    done
fi
zdump -v -c "$years" "$@" | "$reader" "$years" $#
