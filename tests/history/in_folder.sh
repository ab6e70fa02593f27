#!/bin/sh
# in_folder.sh FOLDER COMMAND... - runs a command with that folder empty before it,
# and removes it after a success.
set -eu

folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
"$@"
rm -rf "$folder"
