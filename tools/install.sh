#!/usr/bin/env bash
# install.sh - installs a build under DESTDIR and its prefix, and notes there every file
# and folder that it made, for uninstall.sh.
#
#   [DESTDIR=FOLDER] tools/install.sh BUILD PREFIX
set -euo pipefail
build=${1:?build folder}
prefix=${2:?prefix}
destdir=${DESTDIR:-}
[[ $prefix == /* ]] || { echo "dibs: PREFIX is $prefix; give an absolute path" >&2; exit 1; }
note=${prefix%/}/share/dibs/installed.txt

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A first copy tells what there will be: which folders are missing is known only before.
DESTDIR="$work/copy" cmake --install "$build" >"$work/log" || { cat "$work/log"; exit 1; }
{ cat "$build/install_manifest.txt"; echo; echo "$note"; } | sed '/^$/d' >"$work/files"
awk '{ while (sub(/\/[^\/]*$/, "") && $0 != "") print }' "$work/files" | sort -u >"$work/folders"
while IFS= read -r folder; do
    [ -d "$destdir$folder" ] || echo "$folder/"
done <"$work/folders" >"$work/made"
if [ -n "$destdir" ] && [ ! -d "$destdir" ]; then
    echo / >>"$work/made"
fi

DESTDIR="$destdir" cmake --install "$build"
# What an earlier install made is still to be removed one day.
if [ -e "$destdir$note" ]; then
    cat "$destdir$note" >>"$work/made"
fi
mkdir -p "$destdir${note%/*}"
sort -u "$work/files" "$work/made" >"$work/note"
cp "$work/note" "$destdir$note"
chmod 644 "$destdir$note"
echo "dibs: make uninstall removes what $destdir$note lists"
