#!/usr/bin/env bash
# install-packages.sh - installs the Debian packages that are missing.
#
#   tools/install-packages.sh build          what `make` needs
#   tools/install-packages.sh build test     what `make test` needs as well
#
# Asks dpkg first and touches neither apt nor the network when all is there.
set -euo pipefail
list="$(dirname "$0")/packages.txt"

# Lines of the sections asked for, without comments.
wanted() {
    awk -v sections=" $* " '
        { sub(/#.*/, ""); gsub(/^[ \t]+|[ \t]+$/, "") }
        /^\[.*\]$/ { on = index(sections, " " substr($0, 2, length($0) - 2) " "); next }
        on && NF' "$list"
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# "a | b" is there when one of them is.
satisfied() {
    local name
    for name in ${1//|/ }; do
        if installed "$name"; then return 0; fi
    done
    return 1
}

# The first of "a | b" that this release has.
available() {
    local name
    for name in ${1//|/ }; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    echo "${1%% *}"
}

give_up() {
    {
        echo "dibs: $1"
        echo "dibs: missing: ${missing[*]}"
        echo "dibs: as root, run: apt-get install ${missing[*]//|*/}"
    } >&2
    exit 1
}

if ! command -v dpkg-query >/dev/null; then
    {
        echo "dibs: this is not a Debian system; it needs what these packages hold:"
        wanted "$@" | sed 's/^/    /'
    } >&2
    exit 0
fi

missing=()
while read -r line; do
    satisfied "$line" || missing+=("$line")
done < <(wanted "$@")
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || give_up "packages are missing and there is no apt-get"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "packages are missing, and this is neither root nor is there sudo"
    # Without a terminal nobody could type a password.
    if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
        give_up "packages are missing and sudo asks for a password"
    fi
    as_root=(sudo)
fi
apt() {
    ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
}

echo "installing: ${missing[*]}"
apt update >/dev/null || echo "dibs: apt-get update failed; trying with the lists there are" >&2
names=()
for line in "${missing[@]}"; do
    names+=("$(available "$line")")
done
apt install --no-install-recommends "${names[@]}" >/dev/null || give_up "apt-get could not install them"
