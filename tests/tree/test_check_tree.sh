#!/usr/bin/env bash
# test_check_tree.sh - tools/check-tree.sh sees what it is there to see: plants
# breaches in a copy of the tree, each in a file of its own, and expects each to be named.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

mkdir "$work/tree"
tar -C "$root" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$work/tree" -xf -
cd "$work/tree"

head='/* planted.c - a file with one breach. */
/* SPDX-License-Identifier: MIT */
'

# plant FILE: FILE under a name of its own, from stdin, with that name in its first
# line; into `planted`.
count=0
plant() {
    count=$((count + 1))
    planted=${1/planted/planted_$count}
    mkdir -p "$(dirname "$planted")"
    sed "1s/planted/planted_$count/" >"$planted"
}

# caught FILE EXPECTED: the checker names the breach on stdin, for that reason.
declare -A expected=()
caught() {
    plant "$1"
    expected[$planted]=$2
}

# passes FILE: what is on stdin breaks no rule.
fine=()
passes() {
    plant "$1"
    fine+=("$planted")
}

# One look at all that was planted.
judge() {
    local said file
    said=$("$root/tools/check-tree.sh" "$PWD") || true
    for file in "${!expected[@]}"; do
        grep -F "$file" <<<"$said" | grep -qF -- "${expected[$file]}" && continue
        echo "not caught in $file: ${expected[$file]}"
        failures=$((failures + 1))
    done
    for file in "${fine[@]}"; do
        grep -F "$file" <<<"$said" || continue
        echo "caught without reason in $file"
        failures=$((failures + 1))
    done
}

lines() { # COUNT
    local i
    for ((i = 0; i < $1; i++)); do echo "    ;"; done
}

caught src/base/planted.c 'may not include "core/client.h"' <<<"$head#include \"core/client.h\""
caught src/base/planted.c 'may not include <dibs/lock.h>' <<<"$head#include <dibs/lock.h>"
caught src/core/planted.c 'may not include "store/grant.h"' <<<"$head#include \"store/grant.h\""
caught src/core/planted.c 'may not include "../base/buf.h"' <<<"$head#include \"../base/buf.h\""
caught src/coord/planted.c 'may not include "core/lock/lock.h"' <<<"$head#include \"core/lock/lock.h\""
caught src/coord/planted.c 'may not include "store/grant.h"' <<<"$head#include \"store/grant.h\""
caught src/store/sqlite/planted.c 'may not include "core/client.h"' <<<"$head#include \"core/client.h\""
caught src/store/redis/planted.c 'may not include "store/sqlite/conn.h"' <<<"$head#include \"store/sqlite/conn.h\""
caught src/store/redis/wire/planted.c 'may not include "store/redis/pipe/planted.h"' <<<"$head#include \"store/redis/pipe/planted.h\""
caught src/store/redis/cluster/planted.c 'may not include "store/redis/bell/planted.h"' <<<"$head#include \"store/redis/bell/planted.h\""
caught src/store/redis/bell/planted.c 'may not include "store/redis/keys.h"' <<<"$head#include \"store/redis/keys.h\""
caught src/store/redis/bell/planted.c 'may not include "store/sqlite/conn.h"' <<<"$head#include \"store/sqlite/conn.h\""
caught src/cli/planted.c 'may not include "store/store.h"' <<<"$head#include \"store/store.h\""
caught src/cli/planted.c 'may not include "jobs/zone_data.h"' <<<"$head#include \"jobs/zone_data.h\""
caught src/jobs/planted.c 'may not include "config/option.h"' <<<"$head#include \"config/option.h\""
caught src/serve/planted.c 'may not include "cli/command.h"' <<<"$head#include \"cli/command.h\""
caught src/demo/planted.c 'may not include "http/inside.h"' <<<"$head#include \"http/inside.h\""
caught src/demo/planted.c 'may not include "cli/command.h"' <<<"$head#include \"cli/command.h\""
caught src/http/planted.c 'may not include "demo/demo.h"' <<<"$head#include \"demo/demo.h\""
caught tests/contract/planted.c 'may not include "core/machine/lease.h"' <<<"$head#include \"core/machine/lease.h\""
caught examples/planted.c 'may not include "base/buf.h"' <<<"$head#include \"base/buf.h\""
caught include/dibs/planted.h 'may not include <pthread.h>' <<<"${head/planted.c/planted.h}#include <pthread.h>"
caught src/core/planted.c 'is for src/store/sqlite alone' <<<"$head#include <sqlite3.h>"
caught src/store/sqlite/planted.c 'is for src/base alone' <<<"$head#include <yaml.h>"

caught src/base/planted.c 'strcpy() is not used here' <<<"${head}void f(char *a) { strcpy(a, \"b\"); }"
caught tests/unit/planted.c 'system() is not used here' <<<"${head}int f(void) { return system (\"ls\"); }"
caught src/base/planted.c 'the function has 84 lines' <<<"${head}int f(void)
{
$(lines 81)
}"
caught src/base/planted.c 'lines, more than 1000' <<<"$head$(lines 1000)"
caught tests/e2e/planted.py ': more than 1000 lines' <<<"# planted.py
$(lines 1000)"
caught src/base/planted.h 'a private header of 152 lines' <<<"${head/planted.c/planted.h}$(lines 150)"
caught examples/planted.c 'an example of 62 lines' <<<"$head$(lines 60)"
caught src/base/planted.c 'does not begin with' <<<'/* SPDX-License-Identifier: MIT */'
caught src/base/planted.c 'has no SPDX' <<<'/* planted.c - no licence. */'
caught docs/planted.md 'names a path of one machine' <<<"see $(printf '/%s/me/x' home)"
caught docs/planted.md 'belongs into an issue' <<<"$(printf 'TO%s' DO): finish"
caught src/cli/planted.c.orig 'is left over' <<<"$head"
caught docs/planted.md.rej 'is left over' <<<'@@ -1 +1 @@'

passes src/base/planted.c <<END
$head#include "base/buf.h"
#include <dibs/types.h>
#include <string.h>

/* strcpy(a, b) in a comment, and sqlite3.h: #include <sqlite3.h> */
static const char *text = "sprintf(x) // not a comment \" atoi(y)";
int dibsx_rand(void); // gets(line) is only spoken of
END
passes src/store/redis/planted.c <<<"$head#include \"store/grant.h\"
#include \"store/redis/wire/conn.h\"
#include <hiredis/hiredis.h>"

passes src/store/redis/pipe/planted.c <<<"$head#include \"store/lane.h\"
#include \"base/buf.h\"
#include \"store/redis/pipe/planted.h\"
#include \"store/redis/sentinel/planted.h\"
#include \"store/redis/wire/planted.h\"
#include <hiredis/hiredis.h>"
passes src/store/redis/planted.c <<<"$head#include \"store/redis/bell/planted.h\"
#include \"store/redis/keys.h\""

judge
[ "$failures" -eq 0 ] || exit 1
echo "every planted breach was caught"
