#!/usr/bin/env bash
# chaos.sh BUILD MINUTES - puts every store through every fault (tests/chaos), then
# simulates, and prints one table. Takes about so many minutes, and at most 60.
#
# Each run is shown with its seed while it goes on; SEED=N repeats them. A history
# in which a promise was broken stays in CHAOS_FOLDER (build/chaos), to be looked
# at by `check`.
set -uo pipefail

build=$1
minutes=$(($2 < 60 ? $2 : 60))
seed=${SEED:-$((RANDOM + 1))}
folder=${CHAOS_FOLDER:-build/chaos}
chaos=$build/tests/chaos/chaos

# One row each: its name, and where and how it is run. With "--lossy" the store
# also loses what it had answered, and less is promised.
rows=(
    "sqlite|--on sqlite"
    "redis|--on redis"
    "redis, writes lost|--on redis --lossy"
    "sentinel async|--on sentinel-async --split"
    "sentinel wait:1|--on sentinel-wait --lossy"
    "sentinel wait:1, split|--on sentinel-wait --split"
    "cluster|--on cluster"
    "cluster, writes lost|--on cluster --split"
    "redlock of 5|--on redlock"
    "redlock of 3|--on redlock3"
    "redlock, writes lost|--on redlock --lossy"
)

# Starting, calming down and checking take about half a minute each.
simulation=$((minutes * 5))
span=$(((minutes * 60 - simulation) / ${#rows[@]} - 30))
[ "$span" -ge 5 ] || span=5
seeds=$((minutes * 250 < 10000 ? minutes * 250 : 10000))

mkdir -p "$folder"
table=$(mktemp)
trap 'rm -f "$table"' EXIT
bad=0

# field NAME LINE: the number after the name.
field() {
    sed -nE "s/.*$1 ([0-9]+).*/\1/p" <<<"$2"
}

# add_row NAME OPERATIONS HOLDS FAULTS VIOLATIONS NOT_PROMISED
add_row() {
    printf '%-22s %10s %9s %7s %10s %12s\n' "$@" >>"$table"
}

add_row store operations holds faults violations "not promised"
for row in "${rows[@]}"; do
    name=${row%%|*}
    read -ra words <<<"${row#*|}"
    run=$folder/${name//[^a-z0-9]/}
    rm -rf "$run"
    mkdir -p "$run"
    echo "== $name"
    "$chaos" "${words[@]}" --seconds "$span" --seed "$seed" "$run" 2>&1 | tee "$run.log"
    if [ "${PIPESTATUS[0]}" -eq 0 ]; then
        rm -rf "$run"
    else
        bad=$((bad + 1))
        echo "not as promised: chaos ${words[*]} --seconds $span --seed $seed; the history is in $run"
    fi
    last=$(tail -n 1 "$run.log")
    add_row "$name" "$(field operations "$last")" "$(field holds "$last")" \
        "$(field faults "$last")" "$(field violations "$last")" "$(field 'not promised' "$last")"
done
for name in sim sim_quorum; do
    echo "== $name, $seeds seeds"
    if last=$("$build/tests/sim/$name" "$seeds" "$seed"); then
        add_row "$name" "" "$(sed -nE 's/.* ([0-9]+) leases.*/\1/p' <<<"$last")" "$seeds seeds" 0 ""
    else
        bad=$((bad + 1))
        add_row "$name" "" "" "$seeds seeds" FAILED ""
    fi
    echo "$last"
done
printf '\nseed %s, %s s of faults on each store, %s s in all\n\n' "$seed" "$span" "$SECONDS"
cat "$table"
exit $((bad > 0))
