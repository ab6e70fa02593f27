#!/usr/bin/env bash
# check-scripts.sh - runs shellcheck over every shell script of the tree.
# Without shellcheck the check is skipped (exit 77).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v shellcheck >/dev/null || { echo "shellcheck is not installed" >&2; exit 77; }

mapfile -d '' scripts < <(find . \( -name .git -o -name 'build*' -type d \) -prune -o -type f -print0 |
    xargs -0 awk 'FNR == 1 && /^#!.*[\/ ](ba|da)?sh$/ { printf "%s%c", FILENAME, 0 }')
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts"
