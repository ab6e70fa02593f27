#!/usr/bin/env bash
# fakes.sh - made-up commands, for tests of scripts; to be sourced. $FAKE is the machine
# that they make up, and is gone with the test.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FAKE=$work/fake
failures=0
# Read by the test that sources this.
: "$root" "$failures"

# fake NAME: a command of that name, its body on stdin.
fake() {
    { echo '#!/bin/bash'; cat; } >"$FAKE/bin/$1"
    chmod +x "$FAKE/bin/$1"
}
