#!/usr/bin/env bash
# peers.sh - locks and queues of dibs beside those of others, on Redis servers of this machine.
#
#   bench/peers.sh BUILD [--quick]
#
# Installs the others below BUILD/peers. It says which of them cannot be installed, and goes on.
set -euo pipefail
here=$(dirname "$0")
status=0
"$here/peers_locks.sh" "$@" || status=$?
echo
"$here/peers_queues.sh" "$@" || status=$?
exit "$status"
