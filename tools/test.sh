#!/usr/bin/env bash
# test.sh - everything that must hold before a change lands (`make test`).
#
# One line per step; the whole output of a step only when it fails, and in
# build/test/ in any case. A failing step does not hide the ones after it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/build.sh
logs=build/test
mkdir -p "$logs"
: >"$logs/summary.txt"
failed=()

# step NAME WHAT COMMAND...
step() {
    local name=$1 what=$2 log="$logs/$1-${2//[^a-z]/}.log" start=$SECONDS rc closing
    shift 2
    printf '%-9s %-44s ' "$name" "$what"
    "$@" >"$log" 2>&1
    rc=$?
    closing=$(grep 'tests passed' "$log" | tail -n 1)
    [ -z "$closing" ] || echo "$name: $closing" >>"$logs/summary.txt"
    if [ $rc -eq 0 ]; then
        echo "${closing:-ok} ($((SECONDS - start)) s)"
    else
        echo "FAILED ($((SECONDS - start)) s)"
        cat "$log"
        failed+=("$name: $what")
    fi
    return $rc
}

# Runs the tests of build/PRESET. Thread sanitizer needs the usual layout of the
# address space, which some kernels randomise too widely for it.
tests() {
    local preset=$1 jobs=5 fixed=()
    shift
    [[ $preset != [at]san ]] || jobs=3
    if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then
        fixed=(setarch -R)
    fi
    ${fixed[@]+"${fixed[@]}"} ctest --test-dir "build/$preset" -j$jobs --timeout 180 \
        --output-on-failure --no-tests=error "$@"
}

# Tests mostly wait, and compilers do not: further presets are built meanwhile, with
# what they need of the processors last in turn. What fails here fails again, and is
# shown, when its step comes.
build_ahead() {
    local preset
    renice -n 10 "$BASHPID" >/dev/null 2>&1
    for preset in "$@"; do
        build "$preset" >/dev/null 2>&1
    done
}

export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
guarded='^(unit|contract|core|store|fault)$'

step packages "what the tests need" tools/install-packages.sh build test || exit 1
step dev "build with gcc, warnings as errors" build dev
dev=$?
build_ahead clang asan tsan &
[ $dev -ne 0 ] || step dev "all tests" tests dev
wait
step clang "build with clang, warnings as errors" build clang &&
    step clang "unit tests" tests clang -L '^unit$'
# These two side by side, and the first is shown after the second.
asan=
if step asan "build with address and undefined sanitizers" build asan; then
    step asan "unit, contract, core, store, fault tests" tests asan -L "$guarded" \
        >"$logs/asan.txt" &
    asan=$!
fi
step tsan "build with the thread sanitizer" build tsan &&
    step tsan "unit, contract, core, store, fault tests" tests tsan -L "$guarded"
if [ -n "$asan" ]; then
    wait "$asan" || failed+=("asan: tests")
    cat "$logs/asan.txt"
fi
step fuzz "each target for a few seconds" tools/fuzz.sh 3
step bench "build optimised" build bench bench dibs_docs &&
    step bench "short form, to see that it works" bench/run.sh build/bench --quick
step bench "what is installed is hardened" tests/tree/test_hardened.sh build/bench

# The closing lines of all runs and, when nothing went wrong, their sum.
if [ ${#failed[@]} -gt 0 ]; then
    closing=$(printf 'FAILED: %s\n' "${failed[@]}")
else
    closing=$(awk '{ sub(/.* failed out of /, ""); sum += $1 }
        END { printf "100%% tests passed, 0 tests failed out of %d", sum }' "$logs/summary.txt")
fi
echo "$closing" >>"$logs/summary.txt"
printf '\n%d s in all\n' "$SECONDS"
cat "$logs/summary.txt"
[ ${#failed[@]} -eq 0 ]
