#!/usr/bin/env bash
# busy.sh - `make test`, again and again, on a busy machine (`make test-busy`).
#
#   tools/busy.sh [RUNS [LOOPS]]     5 runs beside 4 busy loops; LOOPS 0: on an idle machine
#
# Each run is in a new clone of this checkout's HEAD, below a folder of mode 0700 with a path
# of more than 100 characters. Prints a line for each run; the whole output is in
# build/busy/RUN.log, and the clone of a run that failed stays. The loops are one session of
# their own, as those of another terminal are, and end with this script.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-5}
loops=${2:-4}
base=$PWD/build/busy
home=$base/a-private-folder-of-somebody/who-likes-long-names-for-folders/and-keeps-checkouts/here
loops_pid=

# shellcheck disable=SC2317 # called by the trap
end_loops() {
    [ -z "$loops_pid" ] || kill -- "-$loops_pid" 2>/dev/null || true
}
trap end_loops EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_loops() {
    # shellcheck disable=SC2016 # expanded there
    setsid bash -c 'for ((i = 0; i < $0; i++)); do while :; do :; done & done; wait' "$loops" &
    loops_pid=$!
}

clone_into() {
    rm -rf "$base/a-private-folder-of-somebody"
    mkdir -p "$home"
    chmod 0700 "$base/a-private-folder-of-somebody"
    git clone -q --no-hardlinks . "$home/$1"
}

mkdir -p "$base"
[ "$loops" -eq 0 ] || start_loops
failed=0
for ((run = 1; run <= runs; run++)); do
    start=$SECONDS
    clone_into "dibs-$run"
    printf 'run %d of %d: ' "$run" "$runs"
    if make -C "$home/dibs-$run" test >"$base/$run.log" 2>&1 </dev/null; then
        verdict=ok
    else
        verdict=FAILED
        failed=1
        mv "$home/dibs-$run" "$base/failed-$run"
    fi
    printf '%s, %s (%d s)\n' "$verdict" "$(grep 'tests passed' "$base/$run.log" | tail -n 1)" $((SECONDS - start))
done
exit $failed
