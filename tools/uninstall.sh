#!/usr/bin/env bash
# uninstall.sh - removes what install.sh noted under DESTDIR and the prefix: its files, and
# the folders that it made if nothing else is in them.
#
#   [DESTDIR=FOLDER] tools/uninstall.sh PREFIX
set -euo pipefail
prefix=${1:?prefix}
destdir=${DESTDIR:-}
note=${prefix%/}/share/dibs/installed.txt

[ -e "$destdir$note" ] || {
    echo "dibs: cannot uninstall: there is no $destdir$note; give make the PREFIX and DESTDIR of make install" >&2
    exit 1
}
if grep -qvE '^/' "$destdir$note" || grep -qE '(^|/)\.\.(/|$)' "$destdir$note"; then
    echo "dibs: cannot uninstall: $destdir$note was not written by make install" >&2
    exit 1
fi

removed=0
left=0
while IFS= read -r path; do
    [ "$path" != "$note" ] || continue
    [ -e "$destdir$path" ] || [ -L "$destdir$path" ] || continue
    if rm -- "$destdir$path"; then
        removed=$((removed + 1))
    else
        left=$((left + 1))
    fi
done < <(grep -v '/$' "$destdir$note")
if [ $left -gt 0 ]; then
    echo "dibs: $left files could not be removed; run make uninstall again, with the rights that make install had" >&2
    exit 1
fi

mapfile -t folders < <(grep '/$' "$destdir$note" | sort -r)
rm -- "$destdir$note"
for folder in ${folders[@]+"${folders[@]}"}; do
    # Others may have put something there since.
    rmdir -- "$destdir$folder" 2>/dev/null || true
done
echo "dibs: removed $removed files under $destdir$prefix"
