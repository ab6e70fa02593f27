#!/usr/bin/env bash
# test_circles.sh - the objects of a folder refer to each other without a circle, and
# never from a lower part of the folder to a higher one.
#
#   tests/tree/test_circles.sh FOLDER OBJECTS [TABLE]
#
# FOLDER is a source folder ("src/core"); OBJECTS are paths of object files with ;
# between them, of which those that were built from below FOLDER count. TABLE says
# which parts there are: lines "PART > PART..." name what a part may refer to beside
# itself, lines "FILE PART" say where a file belongs. A file in a subfolder is part of
# that subfolder and needs no line.
set -euo pipefail
folder=${1:?source folder}
IFS=';' read -ra objects <<<"${2:?object files}"
table=${3:-/dev/null}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rc=0

# "def SYMBOL FILE" and "use SYMBOL FILE", FILE from below the folder.
for object in "${objects[@]}"; do
    source=${object/CMakeFiles\/*.dir\//}
    source=${source//\/.\//\/}
    [[ $source == *"/$folder/"* ]] || continue
    file=${source##*"/$folder/"}
    nm -P "$object" | awk -v file="${file%.o}" '
        $2 == "U" { print "use", $1, file }
        $2 ~ /^[A-TV-Z]$/ { print "def", $1, file }'
done >"$work/symbols"

# "USER DEFINER SYMBOL" for every reference inside the folder.
awk '$1 == "def" { at[$2] = $3 }
     $1 == "use" { users[$2] = users[$2] " " $3 }
     END {
         for (symbol in users) {
             count = split(users[symbol], user, " ")
             for (i = 1; i <= count; i++)
                 if (symbol in at && at[symbol] != user[i]) print user[i], at[symbol], symbol
         }
     }' "$work/symbols" | sort >"$work/references"
[ -s "$work/references" ] || { echo "$folder: no references among ${#objects[@]} objects"; exit 1; }

cut -d ' ' -f 1,2 "$work/references" | uniq >"$work/edges"
if ! tsort "$work/edges" >/dev/null 2>"$work/loops"; then
    echo "$folder: objects refer to each other in a circle:"
    # A line of tsort names a file of the circle, after its own name.
    sed -nE 's/^tsort: ([^ ]+\.c)$/\1/p' "$work/loops" | sort -u >"$work/members"
    awk 'NR == FNR { member[$1]; next } $1 in member && $2 in member' "$work/members" "$work/references"
    rc=1
fi

# Every file is in a part, and refers to what that part may.
awk -v folder="$folder" '
    function part(file) {
        return file ~ /\// ? substr(file, 1, index(file, "/") - 1) : part_of[file]
    }
    FILENAME == ARGV[1] && /^#/ { next }
    FILENAME == ARGV[1] && $2 == ">" { for (i = 3; i <= NF; i++) may[$1, $i]; parted = 1; next }
    FILENAME == ARGV[1] { part_of[$1] = $2; unseen[$1]; next }
    !parted { exit }
    FILENAME == ARGV[2] {
        delete unseen[$3]
        if (part($3) == "" && !($3 in lost)) print folder "/" $3 ": the table has no part for it"
        if (part($3) == "") lost[$3]
        next
    }
    part($1) != part($2) && !((part($1), part($2)) in may) {
        print folder "/" $1 " (" part($1) ") refers to " $3 " of " $2 " (" part($2) ")"
        bad = 1
    }
    END {
        for (file in unseen) print folder "/" file ": is in the table, and not in the folder"
        for (file in unseen) bad = 1
        for (file in lost) bad = 1
        exit bad
    }' "$table" "$work/symbols" "$work/references" || rc=1

[ $rc -ne 0 ] || echo "$folder: $(wc -l <"$work/references") references without a circle"
exit $rc
