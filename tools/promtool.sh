#!/usr/bin/env bash
# promtool.sh - prints the path of promtool.
#
#   tools/promtool.sh FOLDER
#
# Where it is not installed, the program is taken out of Debian's package prometheus into
# FOLDER/promtool, once. Nothing is installed: the package starts a server.
set -euo pipefail
folder=$(mkdir -p "$1/promtool" && cd "$1/promtool" && pwd)

if command -v promtool; then
    exit
fi
if [ ! -x "$folder/usr/bin/promtool" ]; then
    cd "$folder"
    if ! apt-get download prometheus >apt.log 2>&1; then
        cat apt.log >&2
        echo "promtool.sh: cannot download the package prometheus; if its lists are old, run: sudo apt-get update" >&2
        exit 1
    fi
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
    rm -f prometheus_*.deb
fi
echo "$folder/usr/bin/promtool"
