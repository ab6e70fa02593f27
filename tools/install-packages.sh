#!/usr/bin/env bash
# install-packages.sh - installs the Debian packages that are missing.
#
#   tools/install-packages.sh build          what `make` needs
#   tools/install-packages.sh build test     what `make test` needs as well
#   tools/install-packages.sh --name WHY build
#                    installs nothing: says WHY it failed and what would install
#                    what is missing, and fails
#
# Asks dpkg first and touches neither apt nor the network when all is there.
set -euo pipefail
tools=$(dirname "$0")
list=$tools/packages.txt
why=
if [ "${1:-}" = --name ]; then
    why=$2
    shift 2
fi

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

# The command that installs what is missing, with the first name of "a | b".
remedy() {
    local names=() line
    for line in "${missing[@]}"; do
        names+=("${line%% *}")
    done
    echo "apt-get install ${names[*]}"
}

give_up() {
    {
        echo "dibs: $1"
        echo "dibs: missing: ${missing[*]}"
        echo "dibs: as root, run: $(remedy)"
    } >&2
    exit 1
}

if ! command -v dpkg-query >/dev/null; then
    {
        [ -z "$why" ] || echo "dibs: $why"
        echo "dibs: this is not a Debian system; it needs what these packages hold:"
        wanted "$@" | sed 's/^/    /'
    } >&2
    [ -z "$why" ]
    exit
fi

missing=()
while read -r line; do
    satisfied "$line" || missing+=("$line")
done < <(wanted "$@")
if [ -n "$why" ]; then
    echo "dibs: $why" >&2
    [ ${#missing[@]} -eq 0 ] || echo "dibs: as root, run: $(remedy); or make run, which installs what is missing" >&2
    exit 1
fi
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || give_up "packages are missing and there is no apt-get"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "packages are missing, and this is neither root nor is there sudo"
    # Without a terminal nobody could type a password.
    if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
        give_up "packages are missing and sudo asks for a password"
    fi
    # A password is asked for before the lines with the time begin.
    [ ! -t 0 ] || sudo -v || give_up "packages are missing and sudo refused"
    as_root=(sudo)
fi
# On a machine that has just started, its own upgrade may have the lock for a while.
apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600)

echo "packages that are missing: ${missing[*]}"
"$tools/step.sh" -q "reading the lists of packages" "${apt[@]}" update ||
    echo "dibs: apt-get update failed; trying with the lists there are" >&2
names=()
for line in "${missing[@]}"; do
    names+=("$(available "$line")")
done
"$tools/step.sh" -q "installing ${#names[@]} packages" "${apt[@]}" install --no-install-recommends "${names[@]}" ||
    give_up "apt-get could not install them"
