#!/usr/bin/env bash
# test_kinds.sh - the table of tests in CONTRIBUTING.md has each kind that
# tests/CMakeLists.txt builds, and no other. The backticks are those of Markdown.
# shellcheck disable=SC2016
set -euo pipefail

kinds=$(sed -nE 's/^ *(set|list)\((APPEND )?kinds ([a-z0-9 ]+)\)$/\3/p' tests/CMakeLists.txt | tr ' ' '\n' | sort)
rows=$(sed -nE '/^## Tests$/,/^## W/s/^\| `([a-z0-9]+)` \|.*/\1/p' CONTRIBUTING.md | sort)
if ! diff <(echo "$kinds") <(echo "$rows"); then
    echo "CONTRIBUTING.md has other kinds of tests (>) than tests/CMakeLists.txt (<)"
    exit 1
fi
echo "$(wc -l <<<"$kinds") kinds of tests"
