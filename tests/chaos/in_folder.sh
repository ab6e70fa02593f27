#!/bin/sh
# in_folder.sh FOLDER COMMAND... - runs a command with that folder, made empty
# before it, as its last argument, and removes it after a success.
set -eu

folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
"$@" "$folder"
rm -rf "$folder"
