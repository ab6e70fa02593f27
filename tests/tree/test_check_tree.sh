#!/usr/bin/env bash
# test_check_tree.sh - tools/check-tree.sh sees what it is there to see: plants
# one breach at a time in a copy of the tree and expects it to be named.
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

# caught FILE EXPECTED: FILE holds the breach planted on stdin. The checker must
# name it, for that reason.
caught() {
    local file=$1 expected=$2 said
    mkdir -p "$(dirname "$file")"
    cat >"$file"
    if said=$("$root/tools/check-tree.sh" "$PWD") || ! grep -qF "$file" <<<"$said" ||
        ! grep -F "$file" <<<"$said" | grep -qF "$expected"; then
        echo "not caught in $file: $expected"
        failures=$((failures + 1))
    fi
    rm -f "$file"
}

# passes FILE: what is on stdin breaks no rule.
passes() {
    mkdir -p "$(dirname "$1")"
    cat >"$1"
    if "$root/tools/check-tree.sh" "$PWD" | grep -F "$1"; then
        echo "caught without reason in $1"
        failures=$((failures + 1))
    fi
    rm -f "$1"
}

lines() { # COUNT
    local i
    for ((i = 0; i < $1; i++)); do echo "    ;"; done
}

caught src/base/planted.c 'may not include "core/client.h"' <<<"$head#include \"core/client.h\""
caught src/base/planted.c 'may not include <dibs/lock.h>' <<<"$head#include <dibs/lock.h>"
caught src/core/planted.c 'may not include "store/grant.h"' <<<"$head#include \"store/grant.h\""
caught src/core/planted.c 'may not include "../base/buf.h"' <<<"$head#include \"../base/buf.h\""
caught src/store/sqlite/planted.c 'may not include "core/client.h"' <<<"$head#include \"core/client.h\""
caught src/store/redis/planted.c 'may not include "store/sqlite/conn.h"' <<<"$head#include \"store/sqlite/conn.h\""
caught src/store/redis/wire/planted.c 'may not include "store/redis/pipe/planted.h"' <<<"$head#include \"store/redis/pipe/planted.h\""
caught src/store/redis/cluster/planted.c 'may not include "store/redis/bell/planted.h"' <<<"$head#include \"store/redis/bell/planted.h\""
caught src/store/redis/bell/planted.c 'may not include "store/redis/keys.h"' <<<"$head#include \"store/redis/keys.h\""
caught src/store/redis/bell/planted.c 'may not include "store/sqlite/conn.h"' <<<"$head#include \"store/sqlite/conn.h\""
caught src/cli/planted.c 'may not include "store/store.h"' <<<"$head#include \"store/store.h\""
caught src/serve/planted.c 'may not include "cli/command.h"' <<<"$head#include \"cli/command.h\""
caught src/demo/planted.c 'may not include "http/inside.h"' <<<"$head#include \"http/inside.h\""
caught src/demo/planted.c 'may not include "cli/command.h"' <<<"$head#include \"cli/command.h\""
caught src/http/planted.c 'may not include "demo/demo.h"' <<<"$head#include \"demo/demo.h\""
caught tests/contract/planted.c 'may not include "core/machine/lease.h"' <<<"$head#include \"core/machine/lease.h\""
caught examples/planted.c 'may not include "base/buf.h"' <<<"$head#include \"base/buf.h\""
caught include/dibs/planted.h 'may not include <pthread.h>' <<<"${head/planted.c/planted.h}#include <pthread.h>"
caught src/core/planted.c 'is for src/store/sqlite alone' <<<"$head#include <sqlite3.h>"
caught src/store/sqlite/planted.c 'is for src/config alone' <<<"$head#include <yaml.h>"

caught src/base/planted.c 'strcpy() is not used here' <<<"${head}void f(char *a) { strcpy(a, \"b\"); }"
caught tests/unit/planted.c 'system() is not used here' <<<"${head}int f(void) { return system (\"ls\"); }"
caught src/base/planted.c 'the function has 84 lines' <<<"${head}int f(void)
{
$(lines 81)
}"
caught src/base/planted.c 'lines, more than 1000' <<<"$head$(lines 1000)"
caught src/base/planted.h 'a private header of 152 lines' <<<"${head/planted.c/planted.h}$(lines 150)"
caught examples/planted.c 'an example of 62 lines' <<<"$head$(lines 60)"
caught src/base/planted.c 'does not begin with' <<<'/* SPDX-License-Identifier: MIT */'
caught src/base/planted.c 'has no SPDX' <<<'/* planted.c - no licence. */'
caught docs/planted.md 'names a path of one machine' <<<"see $(printf '/%s/me/x' home)"
caught docs/planted.md 'belongs into an issue' <<<"$(printf 'TO%s' DO): finish"

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

[ "$failures" -eq 0 ] || exit 1
echo "every planted breach was caught"
