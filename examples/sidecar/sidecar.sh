#!/bin/sh
# sidecar.sh - runs a command while `dibs serve` keeps a lock for it. Needs curl and setsid.
# SPDX-License-Identifier: MIT
#
#     DIBS_SERVE_TOKEN=dibs_... sh sidecar.sh NAME COMMAND [ARGUMENT...]
#
# DIBS_SERVE has the addresses of daemons of one store, with spaces between them. The
# command has the fencing token in DIBS_FENCE, and a session of its own. Its process group
# is killed when it ends, when the client may no longer believe in the lock (exit status
# 75), and when the client is refused (1) or has HUP, INT or TERM; only SIGKILL leaves it
# behind. A child that leaves the group goes on: `dibs run` ends such children as well.
# NAME has neither quotes nor backslashes.
set -u
for tool in curl setsid; do
    command -v "$tool" >/dev/null || { echo "sidecar.sh: $tool is not installed" >&2; exit 127; }
done
[ $# -ge 2 ] || { echo "usage: sidecar.sh NAME COMMAND [ARGUMENT...]" >&2; exit 64; }
: "${DIBS_SERVE_TOKEN:?is not set; dibs access add prints a token}"
name=$1
shift
ttl_ms=${DIBS_SESSION_TTL_MS:-15000}
beat_ms=$((ttl_ms / 3))
wait_ms=$((beat_ms / 2)) # for the lock, in one request: a daemon takes 25 s at most
[ "$wait_ms" -le 25000 ] || wait_ms=25000
urls=${DIBS_SERVE:-http://127.0.0.1:3427}
id=$(cat /proc/sys/kernel/random/uuid)
# The lease outlasts a daemon that dies: the next beat moves it to another.
body="\"name\":\"$name\",\"ttl_ms\":$((2 * ttl_ms)),\"wait_ms\":3600000"
path='' token='' fence='' work=''
stop='' # the exit status that a signal asks for
until_ms=0 # belief: the lock is ours until this moment

# The clock that counts suspend, in hundredths of a second.
clock() { IFS=' .' read -r s h _ </proc/uptime && now_ms=$((s * 1000 + ${h#0} * 10)); }
# Milliseconds as seconds.
span() { printf '%d.%03d' "$(($1 / 1000))" "$(($1 % 1000))"; }
# The text or number of a member that is in $got once.
member() { printf %s "$got" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# Sends a request: $t0_ms is the moment before, $status and $got are the answer. The
# token is not among the arguments, which others on the machine can read.
ask() {
    clock && t0_ms=$now_ms limit_ms=$beat_ms
    # A request must not outlast the belief, or the command would.
    [ "$work" ] && [ "$((until_ms - now_ms - 600))" -lt "$limit_ms" ] && limit_ms=$((until_ms - now_ms - 600))
    [ "$limit_ms" -gt 0 ] || limit_ms=1
    got=$(printf 'header = "Authorization: Bearer %s"\n' "$DIBS_SERVE_TOKEN" |
        curl -qsK - -m "$(span "$limit_ms")" -w '\n%{http_code}' -X "$1" \
            -H 'Content-Type: application/json' -H "Idempotency-Key: $id-$fence" \
            ${3:+-d "$3"} "${urls%% *}$2")
    status=${got##*
} got=${got%
*}
    case $status in 400 | 401 | 403 | 409 | 410 | 501)
        printf 'dibs serve: %s\n' "$(printf %s "$got" |
            sed -n 's/.*"detail":"\(\([^"\\]\|\\.\)*\)".*/\1/p' | sed 's/\\\(.\)/\1/g')" >&2
        exit 1
        ;;
    esac
}

# The rule: valid_ms counts from the moment before the request was sent. $1 is the
# part of the answer that is about the lease.
learn() {
    got=$1
    case $(member state) in
    held | suspect)
        end_ms=$((t0_ms + $(member valid_ms)))
        [ "$end_ms" -gt "$until_ms" ] && until_ms=$end_ms
        token=$(member token | grep . || printf %s "$token")
        fence=$(member fence)
        ;;
    lost) until_ms=0 ;;
    freed) path='' ;; # it could not be taken over just now: try again
    esac
}

# Keeps the session; without one, makes it, and takes over what there is.
beat() {
    if [ "$path" ]; then
        ask POST "$path/beat" '{}'
    else
        ask POST /v1/sessions "{\"name\":\"sidecar.sh\",\"ttl_ms\":$ttl_ms,\"adopt\":[${token:+{$body,\"id\":\"$id\",\"token\":\"$token\"\}}]}"
    fi
    if [ "$status" != 200 ] && [ "$status" != 201 ]; then
        path='' urls="${urls#* } ${urls%% *}" # gone, or ending: the next daemon
        return
    fi
    [ "$path" ] || path=/v1/sessions/$(member session)
    learn "${got##*\""$id"\":}"
}

# There is no group yet if the command has only just been begun.
end_work() { kill -9 -"$work" 2>/dev/null || kill -9 "$work"; }

# Runs the command, which must not outlive the lock, whatever ends the client.
run() {
    exec 3<&0 # a shell gives commands in the background no input
    DIBS_FENCE=$fence setsid "$@" <&3 3<&- &
    work=$!
    trap 'end_work; wait "$work"' EXIT
    clock && due_ms=$((now_ms + beat_ms))
    while kill -0 "$work" 2>/dev/null; do
        # Counted by the clock: on a busy machine a turn takes longer than its sleep.
        clock && [ "$now_ms" -ge "$due_ms" ] && due_ms=$((now_ms + beat_ms)) && beat
        [ "$path" ] || due_ms=0 # no session: ask the next daemon at once
        clock
        [ "$stop" ] && until_ms=0
        [ "$((now_ms + 500))" -ge "$until_ms" ] && end_work && until_ms=0
        sleep 0.1
    done
    wait "$work"
    status_of_work=$?
    kill -9 -"$work" 2>/dev/null
    trap - EXIT
    work=''
}

trap 'stop=129' HUP
trap 'stop=130' INT
trap 'stop=143' TERM
trap '' TSTP # ^Z would stop the client, and not the command
while [ ! "$token" ] && [ ! "$stop" ]; do
    beat
    [ "$path" ] && ask PUT "$path/leases/$id?wait_ms=$wait_ms" "{$body}" && learn "$got"
    [ "$status" = 000 ] && sleep 0.1
done
[ "$stop" ] || run "$@"
clock
[ "$now_ms" -ge "$until_ms" ] && status_of_work=75
[ "$path" ] && ask DELETE "$path"
exit "${stop:-$status_of_work}"
