#!/usr/bin/env bash
# build.sh - sourced by the other scripts: building a preset, quietly.

# in_turn PRESET COMMAND...: two builds in one folder would write the same files, so that
# one waits for the other.
in_turn() {
    local preset=$1
    shift
    mkdir -p build
    flock "build/$preset.lock" "$@"
}

# configure PRESET: once.
configure() {
    [ -f "build/$1/build.ninja" ] ||
        in_turn "$1" cmake --preset "$1" --log-level=WARNING >/dev/null
}

# build PRESET [TARGET...]: builds into build/PRESET.
build() {
    local preset=$1 targets=()
    shift
    [ $# -eq 0 ] || targets=(--target "$@")
    configure "$preset" || return
    in_turn "$preset" cmake --build "build/$preset" ${targets[@]+"${targets[@]}"} -- --quiet
}

# build_guarded PRESET: the programs of the tests that run with a sanitizer, of which
# `guarded_programs` names the target.
guarded_programs=guarded_programs
build_guarded() {
    build "$1" "$guarded_programs"
}

# build_warned PRESET: the same; and of all other programs the objects, which have the
# compiler's warnings. To link them would add nothing.
build_warned() {
    local objects
    configure "$1" || return
    objects=$(ninja -C "build/$1" -t targets all | sed -n 's/^\(.*\.o\): C_COMPILER__.*/\1/p')
    [ -n "$objects" ] || {
        echo "build/$1: ninja names no objects; remove build/$1 and try again" >&2
        return 1
    }
    # Their paths are relative and have no spaces.
    # shellcheck disable=SC2086
    build "$1" "$guarded_programs" $objects
}
