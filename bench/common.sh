#!/usr/bin/env bash
# common.sh - sourced by the scripts of benchmarks, which set `work` to a folder of their own:
# redis-servers that write nothing to disk, on free ports of this machine, medians, and rows.
# The script calls servers_stop when it ends.
servers=()
: "${work:?}" "${repeats:=1}"
quick='' json=''

# options [--quick] [--json]: into `quick` and `json`; the latter makes a line of JSON of each row.
# shellcheck disable=SC2034 # the scripts read it
options() {
    local option
    for option in "$@"; do
        case $option in
            --quick) quick=1 ;;
            --json) json=1 ;;
            *)
                echo "bench: there is no option $option; there are --quick and --json" >&2
                exit 2
                ;;
        esac
    done
}

# Starts a server on `port`, with the id `server`. One that found its port taken ends at
# once, and another is tried. It has a session of its own, as a service does: Linux shares
# the processors out among sessions, and in ours it would be one thread of many.
server_start() {
    local try
    for try in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        mkdir -p "$work/redis"
        setsid redis-server --port "$port" --bind 127.0.0.1 --unixsocket "$work/redis/$port" --save '' --appendonly no \
            --dir "$work/redis" >"$work/redis/log" 2>&1 &
        server=$!
        servers+=("$server")
        while kill -0 "$server" 2>/dev/null; do
            if [ "$(redis-cli -p "$port" INFO server 2>/dev/null |
                sed -n 's/^process_id:\([0-9]*\).*/\1/p')" = "$server" ]; then
                return
            fi
            sleep 0.05
        done
    done
    echo "bench: redis-server did not start in $try attempts:" >&2
    cat "$work/redis/log" >&2
    exit 1
}

servers_stop() {
    # A server that a failed benchmark has left stopped heeds no TERM.
    [ ${#servers[@]} -eq 0 ] || kill -CONT "${servers[@]}" 2>/dev/null || true
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    [ ${#servers[@]} -eq 0 ] || wait "${servers[@]}" || true
    servers=()
}

# nodes_start: five servers that have never granted a lock and so vote at once, with `nodes`
# as their ports and `node_pids` as their ids.
nodes_start() {
    local run
    nodes=() node_pids=()
    for _ in 1 2 3 4 5; do
        server_start
        run=$(redis-cli -p "$port" INFO server | sed -n 's/^run_id:\([0-9a-f]*\).*/\1/p')
        redis-cli -p "$port" HSET dibs:node run "$run" >/dev/null
        nodes+=("$port") node_pids+=("$server")
    done
}

# medians FILE: the median of each column over the rows.
medians() {
    awk '{ for (c = 1; c <= NF; c++) cell[NR, c] = $c; columns = NF }
         END {
             for (c = 1; c <= columns; c++) {
                 for (i = 1; i <= NR; i++) v[i] = cell[i, c]
                 for (i = 2; i <= NR; i++)
                     for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
                 printf "%s%s", v[int((NR + 1) / 2)], c < columns ? " " : "\n"
             }
         }' "$1"
}

# repeated COMMAND...: the median of each column over as many runs as `repeats` says.
repeated() {
    local i
    for ((i = 0; i < repeats; i++)); do
        rm -rf "$work"/dibs.db*
        "$@"
    done >"$work/rows"
    medians "$work/rows"
}

# once COMMAND...: one run alone, which has no spread.
once() {
    repeats=1 repeated "$@"
}

# spread MEDIAN: the least and the greatest of the repeats that it is the median of.
spread() {
    [ -s "$work/rows" ] || return 0
    awk -v median="$1" '
        { for (c = 1; c <= NF; c++) cell[NR, c] = $c; columns = NF }
        END {
            for (c = 1; c <= columns && NR > 1; c++) {
                least = most = cell[1, c]
                for (i = found = 0; ++i <= NR;) {
                    found = found || cell[i, c] == median
                    if (cell[i, c] + 0 < least + 0) least = cell[i, c]
                    if (cell[i, c] + 0 > most + 0) most = cell[i, c]
                }
                if (found) { print least "-" most; exit }
            }
        }' "$work/rows"
}

# row WHAT PER_SECOND P50 P95 P99 MEASURED LIMIT TARGET: times in microseconds, or what the
# heading says. Without a TARGET there is none to meet, and one with >= is to be reached. The
# spread is that of MEASURED, without a target that of the first figure.
row() {
    local verdict='' figure=$6 range
    [ -n "$8" ] || figure=${3:-$2}
    range=$(spread "$figure")
    [ -z "$8" ] || verdict=$(awk -v m="$6" -v t="$7" -v least="${8%%[!>]*}" '
        BEGIN { print (least ? m >= t : m <= t) ? "met" : "missed" }')
    if [ -n "$json" ]; then
        json_row "$1" "$verdict" "$8" "$range" "${@:2:4}"
        return
    fi
    printf '%-34s %10s %9s %9s %9s  %15s  %-14s %s\n' "$1" "$2" "$3" "$4" "$5" "$range" "$8" "$verdict"
}

# json_row WHAT VERDICT TARGET SPREAD FIGURE...: a figure has the name of its column.
json_row() {
    local at=0 figure
    printf '{"work":"%s"' "$1"
    for figure in "${@:5}"; do
        [ -z "$figure" ] || printf ',"%s":%s' "${columns[at]// /_}" "$figure"
        at=$((at + 1))
    done
    [ -z "$4" ] || printf ',"least":%s,"most":%s' "${4%-*}" "${4#*-}"
    [ -z "$3" ] || printf ',"target":"%s","met":%s' "$3" "$([ "$2" = met ] && echo true || echo false)"
    echo '}'
}

# heading COLUMN...: above rows.
heading() {
    columns=("$@" "" "" "")
    [ -n "$json" ] ||
        printf '\n%-34s %10s %9s %9s %9s  %15s  %-14s\n' "" "${columns[@]:0:4}" spread target
}
times() {
    heading "per second" "p50 us" "p95 us" "p99 us"
}
