#!/bin/sh
# test_promises.sh CHECK DOCUMENT - the table in the document is the one in the
# code.
set -eu

table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$1" --promises >"$table"
awk 'NR == FNR { line[FNR] = $0; lines = FNR; next }
    $0 == line[at + 1] { at++; if (at == lines) found = 1; next }
    { at = 0 }
    END { if (!found) { print "the table of promises is not in " FILENAME; exit 1 } }' \
    "$table" "$2"
echo "the same $(wc -l <"$table") lines"
