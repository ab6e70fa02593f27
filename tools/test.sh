#!/usr/bin/env bash
# test.sh - everything that must hold before a change lands (`make test`).
#
# One line per step, which on a terminal tells how far it is; the whole output of a
# step only when it fails, and in build/test/ in any case. A failing step does not hide
# the ones after it. At the end: what failed, and the command that repeats it alone.
#
#   --long   the tests that are otherwise left out for their time too
#   SEED=N   another plan of faults, other histories in the simulations (1)
#   STUTTER=MS   a bad machine: each test is stopped at random, for up to so long
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/build.sh
logs=build/test
mkdir -p "$logs"
: >"$logs/summary.txt"
failed=()
again=()
leave_out=(-LE '^long$')
long=
if [ "${1:-}" = --long ]; then
    long=1
    leave_out=()
    guarded_programs=long_guarded_programs
fi
reporter=

# Ends what still runs: each job is a group of processes (set -m, below).
end_jobs() {
    local job
    trap '' INT TERM HUP
    for job in $(jobs -p); do
        kill -TERM -- "-$job" "$job" 2>/dev/null
    done
    wait
}
trap end_jobs EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

DIBS_SEED=${SEED:-1}
export DIBS_JUDGE_STUTTER=${STUTTER:-0}
# One line for each try that the machine was too slow to judge (tests/judge.c).
export DIBS_JUDGE_LOG=$PWD/$logs/repeated.txt
: >"$DIBS_JUDGE_LOG"
asan_options=detect_stack_use_after_return=1:strict_string_checks=1
guarded='^(unit|contract|core|store|fault)$'

# How far a run of ctest is, by its log: "131 of 231 done, 0 failed".
how_far() {
    awk '/^ *[0-9]+\/[0-9]+ Test/ {
             split($1, n, "/"); done++; all = n[2]
             if (/\*\*\*(Failed|Timeout|Exception|Not Run)/) bad++
         }
         END { if (all) printf "%d of %d done, %d failed", done, all, bad }' "$1" 2>/dev/null
}

# Tells on the line of a step, a few times a minute, how far it is.
report() {
    local head=$1 start=$2
    shift 2
    while sleep 10; do
        printf '\r\033[K%s%d s' "$head" $((SECONDS - start))
        for log in "$@"; do
            printf '  %s' "$(how_far "$log")"
        done
    done
}

# step NAME WHAT COMMAND...
step() {
    local name=$1 what=$2 log="$logs/$1-${2//[^a-z]/}.log" start=$SECONDS rc closing head
    shift 2
    head=$(printf '%-9s %-44s .' "$name" "$what")
    head=${head%.}
    if [ -t 1 ]; then
        printf '%s' "$head"
        report "$head" "$start" "$log" ${beside:+"$beside"} &
        reporter=$!
    fi
    # Beside the shell, which heeds no signal while it waits for a command otherwise.
    "$@" >"$log" 2>&1 </dev/null &
    wait $!
    rc=$?
    if [ -n "$reporter" ]; then
        kill "$reporter"
        wait "$reporter" 2>/dev/null
        reporter=
        printf '\r\033[K'
    fi
    closing=$(grep 'tests passed' "$log" | tail -n 1)
    [ -z "$closing" ] || echo "$name: $closing" >>"$logs/summary.txt"
    if [ $rc -eq 0 ]; then
        echo "$head${closing:-ok} ($((SECONDS - start)) s)"
    else
        echo "${head}FAILED ($((SECONDS - start)) s)"
        grep -vE '^ *Start +[0-9]+: |   Passed  ' "$log"
        failed+=("$name: $what")
        note_failures "$name" "$log"
    fi
    return $rc
}

# The command that repeats each test that failed.
note_failures() {
    local test with
    use_preset "$1"
    while read -r test; do
        again+=("$(printf '%q ' "${with[@]}" ctest --test-dir "build/$1" --output-on-failure \
            -R "^$test\$")")
    done < <(sed -n '/The following tests FAILED/,$s/^[ \t]*[0-9]* - \([^ ]*\) .*/\1/p' "$2")
}

# Sets `with` to what ctest is run with. Thread sanitizer needs the usual layout of the
# address space, which some kernels randomise too widely for it.
use_preset() {
    with=(env "DIBS_SEED=$DIBS_SEED")
    case $1 in
        asan) with+=("ASAN_OPTIONS=$asan_options" UBSAN_OPTIONS=print_stacktrace=1) ;;
        tsan)
            with+=(TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1)
            ! setarch -R true 2>/dev/null || with+=(setarch -R)
            ;;
    esac
}

# Runs the tests of build/PRESET, as many at once as there are fifths of processors for
# (tests/CMakeLists.txt). The limit of a test is for one that hangs.
tests() {
    local preset=$1 with
    local -A fifths=([dev]=12 [asan]=7 [tsan]=6)
    shift
    use_preset "$preset"
    # What each test took: seconds of the clock, of its own code and of the system.
    export DIBS_JUDGE_COSTS=$PWD/$logs/costs-$preset.txt
    : >"$DIBS_JUDGE_COSTS"
    "${with[@]}" ctest --test-dir "build/$preset" -j"${fifths[$preset]}" --timeout 7200 --output-on-failure \
        --no-tests=error ${leave_out[@]+"${leave_out[@]}"} "$@"
}

# Tests mostly wait, and compilers do not: further presets are built meanwhile, with
# what they need of the processors last in turn. What fails here fails again, and is
# shown, when its step comes.
build_ahead() {
    renice -n 10 "$BASHPID" >/dev/null 2>&1
    build_warned asan >/dev/null 2>&1
    build_guarded tsan >/dev/null 2>&1
}

# lane NAME COMMAND: steps that run beside others. Their lines, and what failed in them,
# are kept for join_lane.
declare -A lanes=()
lane() {
    # shellcheck disable=SC2030 # join_lane takes them over
    (
        failed=() again=()
        "$2" >"$logs/$1.txt"
        {
            [ ${#failed[@]} -eq 0 ] || printf 'failed+=(%q)\n' "${failed[@]}"
            [ ${#again[@]} -eq 0 ] || printf 'again+=(%q)\n' "${again[@]}"
        } >"$logs/$1.failed"
    ) &
    lanes[$1]=$!
}

join_lane() {
    # shellcheck disable=SC2031 # as above
    wait "${lanes[$1]}" || failed+=("$1: it did not end")
    cat "$logs/$1.txt"
    # shellcheck disable=SC1090 # made by lane
    . "$logs/$1.failed"
}

guard_asan() {
    step asan "build with clang, warnings as errors" build_warned asan &&
        step asan "unit, contract, core, store, fault tests" tests asan -L "$guarded"
}

look_at_the_rest() {
    step fuzz "each target for a moment" env SEED="$DIBS_SEED" tools/fuzz.sh 1 500
    step bench "short form, to see that it works" bench/run.sh build/dev --quick
    if [ -n "$long" ]; then
        step bench "build optimised" build bench bench dibs_docs &&
            step bench "what is installed is hardened" tests/tree/test_hardened.sh build/bench
    fi
}

beside=
step packages "what the tests need" tools/install-packages.sh build test || exit 1
# From here on a job has a group of processes of its own. The step above has not: it may
# ask for a password on the terminal.
set -m
step dev "build with gcc, warnings as errors" build dev
dev=$?
build_ahead &
ahead=$!
[ $dev -ne 0 ] || step dev "all tests" tests dev
# Last in turn it would take long beside other work: the steps below build the rest.
kill -TERM -- "-$ahead" 2>/dev/null
# The shell would say that it was terminated.
{ wait "$ahead"; } 2>/dev/null
# Three lanes side by side; the first is shown as it goes, the others after it.
lane asan guard_asan
lane rest look_at_the_rest
beside=$logs/asan-unitcontractcorestorefaulttests.log
step tsan "build with gcc, warnings as errors" build_guarded tsan &&
    step tsan "unit, contract, core, store, fault tests" tests tsan -L "$guarded"
beside=
join_lane rest
join_lane asan

# The closing lines of all runs and, when nothing went wrong, their sum.
if [ ${#failed[@]} -gt 0 ]; then
    closing=$(printf 'FAILED: %s\n' "${failed[@]}")
else
    closing=$(awk '{ sub(/.* failed out of /, ""); sum += $1 }
        END { printf "100%% tests passed, 0 tests failed out of %d", sum }' "$logs/summary.txt")
fi
echo "$closing" >>"$logs/summary.txt"
printf '\n%d s in all, with SEED=%s\n' "$SECONDS" "$DIBS_SEED"
if [ -s "$DIBS_JUDGE_LOG" ]; then
    echo "repeated, for the machine was too slow to judge them:"
    sed 's/^/  /' "$DIBS_JUDGE_LOG"
fi
cat "$logs/summary.txt"
# shellcheck disable=SC2031 # as above
if [ ${#again[@]} -gt 0 ]; then
    printf 'again, each alone:\n'
    printf '  %s\n' "${again[@]}"
fi
[ ${#failed[@]} -eq 0 ]
