#!/usr/bin/env bash
# test_make.sh - `make` and `make run`, as a newcomer sees them: steps that are named
# before they run and have their time after, and the command that installs what is
# missing. The tools are made up; the Makefile and its scripts are not.
# The fakes expand their variables themselves.
# shellcheck disable=SC2016
set -euo pipefail
# shellcheck source=tests/tree/fakes.sh
. "$(dirname "$0")/fakes.sh"

# A machine with everything but what [build] lists, and a tree with the front door.
machine() {
    local tool
    rm -rf "$FAKE"
    mkdir -p "$FAKE/bin" "$FAKE/tree/tools"
    cp "$root/Makefile" "$FAKE/tree/"
    cp "$root"/tools/*.sh "$FAKE/tree/tools/"
    printf '%s\n' '[build]' cmake ninja-build >"$FAKE/tree/tools/packages.txt"
    for tool in awk sed dirname env bash sh cat grep make mkdir cp chmod touch mktemp sort rm rmdir; do
        ln -s "$(command -v "$tool")" "$FAKE/bin/$tool"
    done
    fake id <<<'echo 0'
    fake dpkg-query <<<'[ -e "$FAKE/bin/cmake" ] && printf installed'
    fake apt-cache <<<true
    fake apt-get <<'END'
[[ " $* " != *" install "* ]] || cp "$FAKE/cmake" "$FAKE/ninja" "$FAKE/bin/"
END
    # It keeps what was said so far.
    cat >"$FAKE/cmake" <<'END'
#!/bin/bash
if [ "$1" = --preset ]; then
    [ ! -e "$FAKE/broken" ] || { echo "no sqlite3.h" >&2; exit 1; }
    cp "$FAKE/said" "$FAKE/said-at-configure"
    mkdir -p build
    touch build/build.ninja
elif [ "$1" = --install ]; then
    mkdir -p "$DESTDIR/opt/bin"
    cp build/dibs "$DESTDIR/opt/bin/"
    printf /opt/bin/dibs >build/install_manifest.txt
else
    cp "$FAKE/said" "$FAKE/said-at-build"
    printf '%s\n' '#!/bin/bash' 'echo "the demo"' >build/dibs
    chmod +x build/dibs
fi
END
    printf '#!/bin/bash\n' >"$FAKE/ninja"
    chmod +x "$FAKE/cmake" "$FAKE/ninja"
}

# run RC TARGET: make, with that exit code.
run() {
    local rc=0
    (cd "$FAKE/tree" && PATH="$FAKE/bin" MAKEFLAGS='' make "$2") >"$FAKE/said" 2>&1 </dev/null || rc=$?
    [ "$rc" -eq "$1" ] || fail "make $2: exit $rc, not $1: $(cat "$FAKE/said")"
}

fail() {
    echo "line ${BASH_LINENO[0]}: $*"
    failures=$((failures + 1))
}

# said FILE PATTERN: a whole line.
said() { grep -qE -- "^$2\$" "$FAKE/$1" || fail "$1 has no line \"$2\": $(cat "$FAKE/$1")"; }

machine
run 0 run
said said 'reading the lists of packages +[0-9]+ s'
said said 'installing 2 packages +[0-9]+ s'
said said 'configuring build +[0-9]+ s'
said said 'building build/dibs and build/libdibs.so +[0-9]+ s'
said said 'the demo'
# The line of a step is there while it runs, and the one before has its time.
said said-at-configure 'configuring build +'
said said-at-build 'configuring build +[0-9]+ s'
said said-at-build 'building build/dibs and build/libdibs.so +'

machine
run 2 all
said said 'dibs: cannot build: cmake is not installed'
said said 'dibs: as root, run: apt-get install cmake ninja-build; or make run, which installs what is missing'

machine
cp "$FAKE/cmake" "$FAKE/bin/"
run 2 all
said said 'dibs: cannot build: ninja is not installed'

# A tree that cannot be configured says why.
machine
cp "$FAKE/cmake" "$FAKE/ninja" "$FAKE/bin/"
touch "$FAKE/broken"
run 2 all
said said 'configuring build +failed after [0-9]+ s'
said said 'no sqlite3.h'
said said 'dibs: build could not be configured'

# `make test` that is ended ends what it runs: the tests, and the builds ahead of them.
# The tests and one build last until they are ended.
lasting='echo $$ >"$FAKE/$name.new"; mv "$FAKE/$name.new" "$FAKE/$name"; exec sleep 600'
machine
for tool in mv sleep renice setarch tail printf rm sed flock mkdir; do
    [ -e "$FAKE/bin/$tool" ] || ln -s "$(command -v "$tool")" "$FAKE/bin/$tool"
done
mkdir -p "$FAKE/tree/build/dev" "$FAKE/tree/build/asan"
touch "$FAKE/tree/build/dev/build.ninja" "$FAKE/tree/build/asan/build.ninja"
fake cmake <<<'[ "$2" = build/asan ] || exit 0; name=build; '"$lasting"
fake ctest <<<"name=tests; $lasting"
fake ninja <<<'echo "one.c.o: C_COMPILER__one_Debug"'
(cd "$FAKE/tree" && PATH="$FAKE/bin" exec tools/test.sh) >"$FAKE/said" 2>&1 </dev/null &
script=$!
for _ in $(seq 1200); do
    [ ! -e "$FAKE/build" ] || [ ! -e "$FAKE/tests" ] || break
    sleep 0.05
done
kill -TERM "$script"
rc=0
wait "$script" || rc=$?
[ "$rc" -eq 143 ] || fail "test.sh ended by TERM: exit $rc: $(cat "$FAKE/said")"
# The signal is on its way to them when the script ends.
goes_on() { grep -q sleep "/proc/$1/cmdline" 2>/dev/null; }
for name in build tests; do
    [ -e "$FAKE/$name" ] || { fail "$name: not begun: $(cat "$FAKE/said")"; continue; }
    pid=$(cat "$FAKE/$name")
    for _ in $(seq 600); do
        goes_on "$pid" || continue 2
        sleep 0.05
    done
    fail "$name: goes on after test.sh"
    kill "$pid"
done

# What is installed can be removed, wherever it was put. What came there since stays.
machine
cp "$FAKE/cmake" "$FAKE/ninja" "$FAKE/bin/"
export DESTDIR="$FAKE/out" PREFIX=/opt
run 0 install
[ -x "$FAKE/out/opt/bin/dibs" ] || fail "make install puts no dibs below DESTDIR and PREFIX"
touch "$FAKE/out/opt/bin/mine"
run 0 uninstall
said said "dibs: removed 1 files under $FAKE/out/opt"
[ "$(find "$FAKE/out" -mindepth 1 -printf '%P ')" = "opt opt/bin opt/bin/mine " ] ||
    fail "make uninstall left $(find "$FAKE/out")"
rm -r "$FAKE/out"
run 0 install
run 0 uninstall
[ ! -e "$FAKE/out" ] || fail "make uninstall left $(find "$FAKE/out")"
run 2 uninstall
said said "dibs: cannot uninstall: there is no $FAKE/out/opt/share/dibs/installed.txt; give make the PREFIX and DESTDIR of make install"

[ "$failures" -eq 0 ] || exit 1
echo "make says what it does and what it lacks"
