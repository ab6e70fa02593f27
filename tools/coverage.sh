#!/usr/bin/env bash
# coverage.sh - which lines of src/core and src/store the tests reach. Fails when
# that is less than 85 % of either, or when a test fails. A page per file goes to
# build/coverage/report/.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/build.sh
least=85
report=build/coverage/report
rc=0

mkdir -p "$report"
find build/coverage -name '*.gcda' -delete
build coverage
ctest --test-dir build/coverage -j2 --timeout 180 --output-on-failure --no-tests=error \
    -LE '^(tree|examples)$' >"$report/tests.log" 2>&1 || rc=1
grep -A 100 'tests passed' "$report/tests.log" | grep -E 'tests passed|^[[:space:]]+[0-9]+ - '

gcovr --root . --object-directory build/coverage --filter 'src/(core|store)/' \
    --html-details "$report/index.html" build/coverage
for folder in src/core src/store; do
    echo
    gcovr --root . --object-directory build/coverage --filter "$folder/" \
        --fail-under-line "$least" build/coverage | grep -vE '^(-+|=+|File|Directory:.*| +GCC.*)$' ||
        { echo "$folder: less than $least % of the lines"; rc=1; }
done
exit $rc
