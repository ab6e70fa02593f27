#!/usr/bin/env bash
# build.sh - sourced by the other scripts: building a preset, quietly.

# build PRESET [TARGET...]: configures once, builds into build/PRESET.
build() {
    local preset=$1 targets=()
    shift
    [ $# -eq 0 ] || targets=(--target "$@")
    if [ ! -f "build/$preset/build.ninja" ]; then
        cmake --preset "$preset" --log-level=WARNING >/dev/null || return
    fi
    cmake --build "build/$preset" ${targets[@]+"${targets[@]}"} -- --quiet
}
