#!/bin/sh
# test_track_record.sh - every test that docs/track-record.md names is in the tree,
# and runs: in C it is defined and listed, in Python it is a method of a test. The
# backticks are those of Markdown.
# shellcheck disable=SC2016
set -eu

document=docs/track-record.md
bad=0
count=0
tests=$(grep -o '`tests/[^`]*: [a-z0-9_]*`' "$document" | tr -d '`' | sort -u)
while IFS=' ' read -r file name; do
    file=${file%:}
    count=$((count + 1))
    case $file in
    *.py) wanted="^ *def $name(self" ;;
    *) wanted="^\(static \)\{0,1\}void $name(void \*\*[a-z]*)" ;;
    esac
    if ! grep -q "$wanted" "$file"; then
        echo "$file has no test $name"
        bad=1
    elif [ "${file##*.}" = c ] && ! grep -Eq "[( ]${name}[,)]" "$file"; then
        echo "$file does not run $name"
        bad=1
    fi
done <<END
$tests
END
rows=$(grep '^|' "$document" | grep -v '^| report ' | grep -vc '^|---')
if [ "$count" -eq 0 ] || [ "$rows" -ne "$(grep -c '^|.*`tests/' "$document")" ]; then
    echo "a row names no test"
    bad=1
fi
echo "$count tests in $rows rows"
exit "$bad"
