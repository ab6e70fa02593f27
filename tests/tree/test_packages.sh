#!/usr/bin/env bash
# test_packages.sh - tools/install-packages.sh against a made-up Debian: installs
# what is missing and no more, and says what to do where it cannot.
# What the fakes expand is not for this shell.
# shellcheck disable=SC2016
set -euo pipefail
# shellcheck source=tests/tree/fakes.sh
. "$(dirname "$0")/fakes.sh"

# A machine where the user is root, apt works and nothing is installed.
machine() {
    local tool
    rm -rf "$FAKE"
    mkdir -p "$FAKE/bin"
    touch "$FAKE/installed" "$FAKE/log"
    for tool in awk sed dirname env bash cat grep; do
        ln -s "$(command -v "$tool")" "$FAKE/bin/$tool"
    done
    fake id <<<'echo 0'
    fake dpkg-query <<<'grep -qx -- "${!#}" "$FAKE/installed" && printf installed'
    fake apt-cache <<<'[ "$2" != absent-in-this-release ]'
    fake apt-get <<'END'
echo "$*" >>"$FAKE/log"
while [ $# -gt 0 ] && [ "$1" != --no-install-recommends ]; do shift; done
[ $# -eq 0 ] || printf '%s\n' "${@:2}" >>"$FAKE/installed"
END
    mkdir "$FAKE/tools"
    cp "$root/tools/install-packages.sh" "$root/tools/step.sh" "$FAKE/tools/"
    printf '%s\n' '# list' '[build]' 'one' 'two # why' '' '[test]' \
        'absent-in-this-release | three' >"$FAKE/tools/packages.txt"
}

# install RC SECTION...: runs the script, expects that exit code.
install() {
    local expected=$1 rc=0
    shift
    PATH="$FAKE/bin" "$FAKE/tools/install-packages.sh" "$@" >"$work/said" 2>&1 </dev/null || rc=$?
    [ "$rc" -eq "$expected" ] || fail "exit $rc, not $expected: $(cat "$work/said")"
}

fail() {
    echo "line ${BASH_LINENO[0]}: $*"
    failures=$((failures + 1))
}

said_line() { grep -qE -- "^$1\$" "$work/said" || fail "did not say the line: $1"; }
said() { grep -qF -- "$1" "$work/said" || fail "did not say: $1"; }
called() { grep -qF -- "$1" "$FAKE/log" || fail "did not call: $1"; }
not_called() { [ ! -s "$FAKE/log" ] || fail "called apt: $(cat "$FAKE/log")"; }

machine
install 0 build test
called "update"
called "install --no-install-recommends one two three"
said_line 'packages that are missing: one two absent-in-this-release \| three'
said_line 'reading the lists of packages +[0-9]+ s'
said_line 'installing 3 packages +[0-9]+ s'
: >"$FAKE/log"
install 0 build test
not_called
[ ! -s "$work/said" ] || fail "spoke though nothing was missing"

machine
echo one >"$FAKE/installed"
install 0 build
called "install --no-install-recommends two"

machine
printf '%s\n' one two three >"$FAKE/installed"
rm "$FAKE/bin/apt-get"
install 0 build test

machine
rm "$FAKE/bin/apt-get"
install 1 build
said "there is no apt-get"
said "apt-get install one two"

machine
fake id <<<'echo 1000'
install 1 build test
said "neither root nor is there sudo"
said "missing: one two absent-in-this-release | three"
not_called

machine
fake id <<<'echo 1000'
fake sudo <<<'exit 1'
install 1 build
said "sudo asks for a password"
not_called

machine
fake id <<<'echo 1000'
fake sudo <<<'[ "$1" != -n ] || shift; [ "$1" != true ] || exit 0; exec "$@"'
install 0 build
called "install --no-install-recommends one two"

machine
fake apt-get <<<'echo "no space left"; exit 100'
install 1 build
said_line 'installing 2 packages +failed after [0-9]+ s'
said "no space left"
said "could not install"

machine
rm "$FAKE/bin/dpkg-query"
install 0 build
said "not a Debian system"
install 1 --name "cannot build" build
said "dibs: cannot build"
said "not a Debian system"

# It names the command, and installs nothing.
machine
echo one >"$FAKE/installed"
install 1 --name "cannot build" build test
said "dibs: cannot build"
said "as root, run: apt-get install two absent-in-this-release; or make run"
not_called

machine
printf '%s\n' one two >"$FAKE/installed"
install 1 --name "cannot build" build
said_line "dibs: cannot build"

[ "$failures" -eq 0 ] || exit 1
echo "packages are installed when they are missing, and only then"
