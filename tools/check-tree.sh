#!/usr/bin/env bash
# check-tree.sh - holds the rules of CONTRIBUTING.md that a machine can hold:
# direction of includes, drivers, banned functions, sizes, file heads, words and
# paths that have no place in the tree. Prints one line per breach.
#
#   tools/check-tree.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mapfile -t sources < <(find include src tests examples bench -name '*.[ch]' | sort)

# Every line of code as FILE:LINE:TEXT, with comments gone and literals empty.
# Include lines keep theirs.
code_of() {
    awk '
    FNR == 1 { inside = 0 }
    {
        out = ""
        include = !inside && $0 ~ /^[ \t]*#[ \t]*include/
        for (rest = $0; rest != "";) {
            if (inside) {
                end = index(rest, "*/")
                if (!end) break
                rest = substr(rest, end + 2)
                inside = 0
            } else if (match(rest, /\/\*|\/\/|"([^"\\]|\\.)*"|'\''([^'\''\\]|\\.)*'\''/)) {
                out = out substr(rest, 1, RSTART - 1)
                token = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (token == "//") break
                if (token == "/*") inside = 1
                else out = out (include ? token : "\"\"")
            } else {
                out = out rest
                break
            }
        }
        if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
    }' "$@"
}
code_of "${sources[@]}" >"$work/code"

# The layers of the Redis store: each may include those before it.
layers='wire sentinel pipe cluster bell'

# is_below FOLDER HEADER: whether a file of a layer may include it.
is_below() {
    local own=${1#src/store/redis/} other=${2#\"store/redis/}
    [[ $other == */* && " ${layers%%"$own"*}$own " == *" ${other%%/*} "* ]]
}

# may_include FOLDER HEADER FILE: HEADER with its quotes or brackets.
may_include() {
    case "$1 $2" in
    include/dibs\ \<dibs/*) ;;
    include/dibs\ \<std*.h\> | include/dibs\ \<inttypes.h\> | include/dibs\ \<limits.h\>) ;;
    include/dibs\ *) return 1 ;;

    src/base\ \<dibs/types.h\> | src/base\ \"base/*) ;;
    src/base\ \<dibs/* | src/base\ \"*) return 1 ;;

    src/core*\ \"store/store.h\" | src/core*\ \"store/lease.h\" | src/core*\ \"store/value.h\" | src/core*\ \"store/log.h\" | src/core*\ \"store/topic.h\" | src/core*\ \"store/rate.h\" | src/core*\ \"store/roster.h\" | src/core*\ \"store/meter.h\" | src/core*\ \"store/queue.h\" | src/core*\ \"store/queue_admin.h\" | src/core*\ \"store/commit.h\" | src/core*\ \"store/check_url.h\") ;;
    src/core*\ \"base/* | src/core*\ \"config/* | src/core*\ \"core/*) ;;
    src/core*\ \"*) return 1 ;;

    # Coordination is beside the locks and above what all of core uses.
    src/coord\ \"store/store.h\" | src/coord\ \"store/value.h\" | src/coord\ \"store/log.h\" | src/coord\ \"store/topic.h\" | src/coord\ \"store/rate.h\" | src/coord\ \"store/roster.h\" | src/coord\ \"store/meter.h\" | src/coord\ \"store/queue.h\" | src/coord\ \"store/queue_admin.h\" | src/coord\ \"store/commit.h\") ;;
    src/coord\ \"core/client.h\" | src/coord\ \"core/names.h\" | src/coord\ \"core/log.h\" | src/coord\ \"core/timer.h\") ;;
    src/coord\ \"core/worker.h\" | src/coord\ \"core/runner.h\" | src/coord\ \"core/attach.h\" | src/coord\ \"core/notices.h\" | src/coord\ \"core/reach.h\") ;;
    src/coord\ \"core/lock/term.h\" | src/coord\ \"core/durability.h\" | src/coord\ \"core/who.h\" | src/coord\ \"core/lease_event.h\") ;;
    src/coord\ \"base/* | src/coord\ \"coord/*) ;;
    src/coord\ \"*) return 1 ;;

    # The Redis store has layers, and its steps on top of them.
    src/store/redis/*\ \"store/redis/*) is_below "$1" "$2" ;;

    # The table of stores names each of them.
    src/store\ \"store/*/*) [ "$3" = src/store/store.c ] ;;
    src/store\ \"store/* | src/store\ \"base/* | src/store\ \"config/path_url.h\") ;;
    src/store/*\ \"store/*/*) [[ $2 == "\"store/${1#src/store/}/"* ]] ;;
    src/store/*\ \"store/* | src/store/*\ \"base/*) ;;
    src/store*\ \"*) return 1 ;;

    # Programs know the library by its public face.
    src/*\ \"base/*) ;;
    src/exec\ \"exec/* | src/config\ \"config/*) ;;
    src/cli*\ \"jobs/*) [ "$2" != '"jobs/zone_data.h"' ] && [ "$2" != '"jobs/zone_rule.h"' ] ;;
    src/cli*\ \"serve/serve.h\" | src/cli*\ \"demo/demo.h\" | src/cli*\ \"exec/* | src/cli*\ \"config/*) ;;
    src/cli*\ \"node/node.h\" | src/node\ \"jobs/*) ;;
    src/node\ \"exec/*) [ "$3" = src/node/node_command.c ] ;;
    src/serve\ \"exec/* | src/serve\ \"config/* | src/serve\ \"show/* | src/serve\ \"node/node.h\" | src/cli*\ \"show/*) ;;
    src/serve\ \"jobs/*) [ "$2" != '"jobs/zone_data.h"' ] && [ "$2" != '"jobs/zone_rule.h"' ] ;;
    src/cli/*\ \"cli/*) ;;
    src/demo\ \"http/* | src/serve\ \"http/*) [ "$2" != '"http/inside.h"' ] && [ "$2" != '"http/driver.h"' ] ;;
    src/*\ \"*) [[ $2 == "\"${1#src/}/"* ]] ;;

    tests/contract\ \"store/store.h\" | tests/contract\ \"store/lease.h\") ;;
    tests/contract\ \"store/value.h\" | tests/contract\ \"store/log.h\" | tests/contract\ \"store/topic.h\" | tests/contract\ \"store/rate.h\" | tests/contract\ \"store/roster.h\" | tests/contract\ \"store/meter.h\" | tests/contract\ \"store/queue.h\" | tests/contract\ \"store/queue_admin.h\" | tests/contract\ \"store/commit.h\" | tests/contract\ \"base/*) ;;
    tests/contract\ \"store/* | tests/contract\ \"core/* | tests/contract\ \"cli/*) return 1 ;;

    bench\ \"bench/* | bench\ \"store/store.h\") ;;
    examples\ \"* | bench\ \"*) return 1 ;;
    esac
}

# The one folder from which a driver's header is seen, into `owner`; tests are
# free, and so are benchmarks, which measure beside a bare driver.
find_owner() {
    case "$1" in
    \<sqlite3*) owner=src/store/sqlite ;;
    \<hiredis* | \<openssl/*) owner=src/store/redis ;; # and src/http: see below
    \<libpq* | \<postgresql/*) owner=src/store/postgres ;;
    \<yaml.h\>) owner=src/base ;;
    *) owner= ;;
    esac
}

check_includes() {
    local place file folder header owner
    while read -r place header; do
        file=${place%%:*}
        folder=${file%/*}
        may_include "$folder" "$header" "$file" || echo "$place: $folder may not include $header"
        find_owner "$header"
        [[ $folder != src/http || $header != \<openssl/* ]] || owner=
        if [[ -n $owner && $folder != "$owner" && $folder != "$owner"/* && $folder != tests/* && $folder != bench ]]; then
            echo "$place: $header is for $owner alone"
        fi
    done < <(sed -nE 's/^([^:]+:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]*[>"]).*/\1 \2/p' "$work/code")
}

banned='strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|localtime|gmtime'
banned+='|ctime|asctime|rand|srand|random|alloca|system|popen|tmpnam|tempnam|mktemp'

check_banned() {
    grep -E "(^|[^A-Za-z0-9_])($banned)[[:space:]]*\(" "$work/code" |
        sed -E "s/^([^:]+:[0-9]+):(.*[^A-Za-z0-9_])?($banned)[[:space:]]*\(.*/\1: \3() is not used here/" || true
}

check_sizes() {
    awk '
    FNR == 1 { size(file, lines); file = FILENAME }
    { lines = FNR }
    /^{/ { begin = FNR - 1 }
    /^}/ && begin {
        if (FNR - begin + 1 > 80)
            print file ":" begin ": the function has " FNR - begin + 1 " lines, more than 80"
        begin = 0
    }
    END { size(file, lines) }
    function size(name, count) {
        if (count > 1000) print name ": " count " lines, more than 1000"
        if (name ~ /^src\/.*\.h$/ && count > 150) print name ": a private header of " count " lines, more than 150"
        if (name ~ /^examples\// && count > 60) print name ": an example of " count " lines, more than 60"
    }' "${sources[@]}"
}

# In other languages; a file that others wrote has what it has.
check_lengths() {
    find src tests tools bench web examples spec -path web/vendor -prune -o -type f \
        -regex '.*\.\(py\|sh\|js\|css\|lua\|sql\|hpp\|cpp\|pml\|cmake\)' -exec awk '
        FNR > 1000 { print FILENAME ": more than 1000 lines"; nextfile }' {} +
}

# Half of the functions of src/ under 18 lines, half of its files under 300.
check_medians() {
    local functions files
    functions=$(find src -name '*.c' -exec awk '
        /^{/ { begin = FNR - 1 }
        /^}/ && begin { print FNR - begin + 1; begin = 0 }' {} + | median)
    files=$(find src -name '*.c' -exec grep -c '' {} + | sed 's/.*://' | median)
    [ "$functions" -lt 18 ] || echo "src: half of the functions have $functions lines or more, not under 18"
    [ "$files" -lt 300 ] || echo "src: half of the files have $files lines or more, not under 300"
}

median() {
    sort -n | awk '{ size[NR] = $1 } END { print NR ? size[int((NR + 1) / 2)] : 0 }'
}

check_heads() {
    awk '
    FNR == 1 {
        name = FILENAME
        sub(/.*\//, "", name)
        if (index($0, "/* " name " - ") != 1) print FILENAME ":1: does not begin with /* " name " - what it is for"
        if (file != "" && !tagged) print file ":1: has no SPDX-License-Identifier"
        file = FILENAME
        tagged = 0
    }
    /SPDX-License-Identifier: MIT/ { tagged = 1 }
    END { if (file != "" && !tagged) print file ":1: has no SPDX-License-Identifier" }' "${sources[@]}"
}

# Text files of the tree, as opposed to what was built from it.
texts() {
    find . \( -name .git -o -name 'build*' -type d -o -name __pycache__ \) -prune -o -type f -print0
}

check_words() {
    texts | xargs -0 grep -nIE '(^|[^A-Za-z0-9_.-])/(work|root|home)/' |
        sed -E 's/^(\.\/)?([^:]+:[0-9]+):.*/\2: names a path of one machine/'
    texts | xargs -0 grep -nIwE 'TO[D]O|FIX[M]E|X[X]X|HA[C]K' |
        sed -E 's/^(\.\/)?([^:]+:[0-9]+):.*/\2: belongs into an issue/'
}

# What a merge or a patch leaves behind: an old or a refused form of a file.
check_leftovers() {
    texts | tr '\0' '\n' | sed -nE 's|^(\./)?(.*\.(orig\|rej))$|\2: is left over from a merge or a patch; remove it|p'
}

{
    check_includes
    check_banned
    check_sizes
    check_lengths
    check_medians
    check_heads
    check_words || true
    check_leftovers
} >"$work/breaches"
if [ -s "$work/breaches" ]; then
    cat "$work/breaches"
    echo "$(wc -l <"$work/breaches") breaches of CONTRIBUTING.md"
    exit 1
fi
echo "${#sources[@]} files hold to CONTRIBUTING.md"
