#!/usr/bin/env bash
# common.sh - sourced by the scripts of benchmarks, which set `work` to a folder of their own:
# redis-servers that write nothing to disk, on free ports of this machine, medians, and rows.
# The script calls servers_stop when it ends.
servers=()
: "${work:?}" "${repeats:=1}"

# Starts a server on `port`, with the id `server`. One that found its port taken ends at
# once, and another is tried. It has a session of its own, as a service does: Linux shares
# the processors out among sessions, and in ours it would be one thread of many.
server_start() {
    local try
    for try in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        mkdir -p "$work/redis"
        setsid redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no \
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

# row WHAT PER_SECOND P50 P95 P99 MEASURED LIMIT TARGET: times in microseconds;
# without a TARGET there is none to meet, and one with >= is to be reached.
row() {
    local verdict=
    [ -z "$8" ] || verdict=$(awk -v m="$6" -v t="$7" -v least="${8%%[!>]*}" '
        BEGIN { print (least ? m >= t : m <= t) ? "met" : "missed" }')
    printf '%-34s %10s %9s %9s %9s   %-14s %s\n' "$1" "$2" "$3" "$4" "$5" "$8" "$verdict"
}

# heading: above the rows.
heading() {
    printf '%-34s %10s %9s %9s %9s   %-14s\n' "" "per second" "p50 us" "p95 us" "p99 us" target
}
