#!/usr/bin/env bash
# peers_locks.sh - locks of dibs beside the limit and those of others, on the same Redis servers.
#
#   bench/peers_locks.sh BUILD [--quick]
#
# For each kind of work all sides take turns; the table has the medians of the repeats. The
# limit is a bare C program that does the least that a lock can cost. A peer that cannot be
# installed is left out with the reason. One that grants no lock, or one lock twice, is a
# failure. bench/peers/locks.mjs says how the work of the peers is done.
set -euo pipefail
build=$(cd "${1:?build folder}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
repeats=5 pairs=2000 quorum_pairs=1000 crew_pairs=25600 turns=60 blocks=20 quorum_blocks=10 crew_blocks=5
if [ "${2:-}" = --quick ]; then
    repeats=1 pairs=200 quorum_pairs=100 crew_pairs=640 turns=10 blocks=2 quorum_blocks=2 crew_blocks=1
fi
peers=$build/peers
work=$(mktemp -d)
# shellcheck source=bench/common.sh
. "$here/common.sh"
# shellcheck source=bench/peers/install.sh
. "$here/peers/install.sh"
trap 'servers_stop; rm -rf "$work"' EXIT

# Name, language, whether it has Redlock, the manifest and its line that has the version.
all=(
    'redlock4 node quorum package.json redlock4'
    'redlock5 node quorum package.json redlock5'
    'redis-semaphore node quorum package.json redis-semaphore'
    'redlock-universal node quorum package.json redlock-universal'
    'redis-py python - requirements.txt redis=='
    'redsync go quorum go/go.mod go-redsync/'
    'rueidislock go - go/go.mod redis/rueidis'
    'redislock go - go/go.mod bsm/redislock'
    'rslock rust quorum rust/Cargo.toml rslock'
    'redisson java - java/pom.xml <artifactId>redisson'
)
works=(pair quorum crew handoff)
chosen=() sides=(limit dibs dibs-threads)
declare -A label=([limit]="limit: bare C" [dibs]="dibs" [dibs-threads]="dibs, a thread each")

# choose_peers: those of which the language could be installed. Tried once for each language.
choose_peers() {
    local entry name language manifest line version
    declare -A missing=()
    for entry in "${all[@]}"; do
        read -r name language _ manifest line <<<"$entry"
        if [ -z "${missing[$language]+tried}" ]; then
            missing[$language]=$(language_install "$language")
        fi
        if [ -n "${missing[$language]}" ]; then
            echo "bench-peers: $name is left out: ${missing[$language]}"
            continue
        fi
        version=$(grep -A1 -e "$line" "$here/peers/$manifest" | grep -oE '[0-9]+\.[0-9]+\.[0-9]+[-.a-z0-9]*' | head -n 1)
        label[$name]="$name $version ($language)"
        chosen+=("$entry")
        sides+=("$name")
    done
}

# note WORK SIDE FIGURE...: one repeat.
note() {
    mkdir -p "$work/$1"
    echo "${@:3}" >>"$work/$1/$2"
}

# ours WORK: a repeat of the limit and of dibs, which take turns in short blocks.
ours() {
    local -a f
    case $1 in
    pair) read -ra f < <("$build/bench/bench_redis" "$one" pair "$blocks") ;;
    quorum) read -ra f < <("$build/bench/bench_quorum" "$quorum_blocks" "${nodes[@]}") ;;
    crew) read -ra f < <("$build/bench/bench_redis" "$one" async "$crew_blocks") ;;
    handoff) read -ra f < <("$build/bench/bench_handoff" "$one" 8 1) ;;
    esac
    case $1 in
    pair | quorum) note "$1" limit "${f[1]}" && note "$1" dibs "${f[5]}" ;;
    crew)
        note crew limit "${f[0]}" && note crew dibs "${f[1]}"
        read -ra f < <("$build/bench/bench_redis" "$one" crew "$crew_blocks")
        note crew dibs-threads "${f[1]}"
        ;;
    handoff) note handoff limit "${f[@]:0:2}" && note handoff dibs "${f[@]:3:2}" ;;
    esac
}

# theirs WORK NAME LANGUAGE QUORUM: a repeat of a peer.
theirs() {
    local figures words
    case $1 in
    pair) words=(pair "$pairs" "$one") ;;
    quorum)
        [ "$4" = quorum ] || return 0
        words=(pair "$quorum_pairs" "${nodes[@]}")
        ;;
    crew) words=(crew "$crew_pairs" "$one") ;;
    handoff) words=(handoff "$turns" "$one") ;;
    esac
    if figures=$(language_drive "$3" "$2" "${words[@]}" 2>"$work/failure") && [ -n "$figures" ]; then
        # P50 and P99 of a hand-off are two figures.
        # shellcheck disable=SC2086
        note "$1" "$2" $figures
    else
        echo "bench-peers: $2 failed at $1:" >&2
        cat "$work/failure" >&2
        mkdir -p "$work/failed/$1" && touch "$work/failed/$1/$2"
    fi
}

measure() {
    local kind entry name language quorum i
    for kind in "${works[@]}"; do
        for ((i = 0; i < repeats; i++)); do
            ours "$kind"
            for entry in "${chosen[@]}"; do
                read -r name language quorum _ <<<"$entry"
                theirs "$kind" "$name" "$language" "$quorum"
            done
        done
    done
}

# cell WORK SIDE COLUMN: the median, and how many times better dibs is than that.
cell() {
    [ ! -f "$work/failed/$1/$2" ] || { printf '%18s' failed && return; }
    [ -f "$work/$1/$2" ] || { printf '%18s' - && return; }
    awk -v c="$3" -v rate="$([ "$1" != crew ] || echo 1)" '
        FNR == NR { ours = $c; next }
        {
            times = rate ? ours / $c : $c / ours
            printf "%9." (rate ? 0 : 1) "f %6." (times < 10 ? 2 : times < 100) "f x", $c, times
        }' \
        <(medians "$work/$1/dibs") <(medians "$work/$1/$2")
}

print_table() {
    local side
    printf '%-34s%18s%18s%18s%18s%18s\n' "" "pair" "quorum of 5" "64 lockers" "hand-off, 8 wait" "the same" \
        "" "p50 us" "p50 us" "pairs/s" "p50 us" "p99 us"
    for side in "${sides[@]}"; do
        printf '%-34s%s%s%s%s%s\n' "${label[$side]}" "$(cell pair "$side" 1)" "$(cell quorum "$side" 1)" \
            "$(cell crew "$side" 1)" "$(cell handoff "$side" 1)" "$(cell handoff "$side" 2)"
    done
    echo "N x: dibs is N times as good as that side."
}

for tool in redis-server redis-cli "$build/bench/bench_redis"; do
    command -v "$tool" >/dev/null || { echo "bench-peers: $tool is missing; locks are left out"; exit 0; }
done
mkdir -p "$peers"
choose_peers
server_start
one=$port
nodes_start
measure
print_table
[ ! -d "$work/failed" ]
