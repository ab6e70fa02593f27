#!/usr/bin/env bash
# test_language.sh - the public headers, the examples and the manual pages of the
# library keep to the rules of language that a machine can hold: sentences have at
# most 25 words, do not begin with Who, What, Whoever, Those or Of, and avoid phrases
# that hide the actor. Prints one line per breach.
#
#   tests/tree/test_language.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- include/dibs/*.h include/dibs/*.hpp examples/*.c docs/man/*.3

# The prose of C comments, one line of it per line, an empty line between paragraphs.
# A line that is indented is an item of a list, or code, and stands alone.
prose_of_c() {
    awk '
    {
        for (rest = $0; rest != "";) {
            if (!inside) {
                start = index(rest, "/*")
                if (!start) break
                rest = substr(rest, start + 2)
                inside = 1
                print ""
            } else {
                sub(/^[ \t]*\*( |$)/, "", rest)
            }
            end = index(rest, "*/")
            text = end ? substr(rest, 1, end - 1) : rest
            if (text ~ /^  /) text = "\n" text "\n"
            print text
            inside = !end
            rest = end ? substr(rest, end + 2) : ""
        }
    }' "$1"
}

# The same for a page in mdoc, without its synopsis and its examples.
prose_of_mdoc() {
    awk '
    /^\.Sh DESCRIPTION/ { open = 1 }
    !open { next }
    /^\.Bd/ { shown = 1 }
    /^\.Ed/ { shown = 0 }
    shown || /^\.(Bl|El|Ed|Sh|Ss|Pp|It)/ { print ""; next }
    { sub(/^\.[A-Z][a-z] /, ""); print }' "$1" | sed -E 's/ ([.,;:])( |$)/\1\2/g'
}

# One sentence per line.
sentences() {
    awk '
    function flush() { if (text != "") print text; text = "" }
    /^[ \t]*$/ { flush(); next }
    { sub(/^[ \t]+/, ""); text = text (text == "" ? "" : " ") $0 }
    END { flush() }' | sed -E 's/([^.][.!?]) +/\1\n/g'
}

rc=0
for file in "$@"; do
    case $file in
    *.3) prose_of_mdoc "$file" ;;
    *) prose_of_c "$file" ;;
    esac | sentences | awk -v file="$file" '
    NF > 25 { print file ": " NF " words, more than 25: " $0; bad = 1 }
    /^(Who|What|Whoever|Those|Of) / { print file ": begins with " $1 ": " $0; bad = 1 }
    match(tolower($0), /nobody but|(is|are|was|were) (told|had|put out)( |[.,;:]|$)|not [^.;:]* unless /) {
        print file ": \"" substr($0, RSTART, RLENGTH) "\": " $0
        bad = 1
    }
    END { exit bad }' || rc=1
done
[ $rc -ne 0 ] || echo "$# files keep to the rules of language"
exit $rc
