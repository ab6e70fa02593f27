#!/usr/bin/env bash
# test_acl_lines.sh - the rights in the documentation are those that the scripts
# and the client use, no more and no less.
#
#   test_acl_lines.sh DOCUMENT FOLDER-OF-SCRIPTS
set -euo pipefail

# What the client sends beside scripts.
outside="evalsha eval time ping select client|setname client|info subscribe unsubscribe ssubscribe sunsubscribe wait role xrange info config|get acl|whoami cluster|slots cluster|nodes asking"

granted() {
    grep '^ACL SETUSER dibs ' "$1" | tr ' ' '\n' | sed -n 's/^+//p' | sort
}

used() {
    {
        grep -ohE "call\('[A-Z]+'(, '[A-Z]*NUMSUB')?" "$1"/*.lua |
            sed -E "s/.*\('([A-Z]+)'(, '([A-Z]+)')?/\1|\3/; s/\|$//" | tr '[:upper:]' '[:lower:]'
        tr ' ' '\n' <<<"$outside"
    } | sort -u
}

if ! diff <(granted "$1") <(used "$2"); then
    echo "$1 grants what is marked <, the scripts and the client use what is marked >" >&2
    exit 1
fi
[ "$(used "$2" | wc -l)" -gt 20 ]
