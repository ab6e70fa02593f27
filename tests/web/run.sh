#!/usr/bin/env bash
# run.sh - every test of the dashboard (`make web`).
#
#   tests/web/run.sh BUILD
#
# axe-core comes from the registry of npm, into BUILD; without it that test is skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
axe=$build/axe/node_modules/axe-core/axe.min.js
if [ ! -f "$axe" ] && command -v npm >/dev/null; then
    timeout 120 npm install --silent --no-audit --no-fund --prefix "$build/axe" axe-core@4 >/dev/null 2>&1 ||
        echo "axe-core: skipped, the registry of npm is not reached"
fi
export DIBS_BIN=$build/dibs DIBS_TWO_LOCKS=$build/tests/e2e/two_locks
[ ! -f "$axe" ] || export DIBS_AXE=$axe
python3 -B "$here/test_pages.py"
python3 -B "$here/test_nouns.py"
python3 -B "$here/test_acts.py"
python3 -B "$here/test_origins.py"
python3 -B "$here/test_jobs.py"
python3 -B "$here/test_states.py"
python3 -B "$here/test_xss.py"
python3 -B "$here/test_whole.py"
