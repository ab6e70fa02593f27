#!/usr/bin/env bash
# install.sh - sourced by the scripts of peers: installs and builds the drivers of one language
# each, and asynq's, below the folder `peers`; nothing goes to the tree or to the home of the user.
: "${peers:?}"
here_install=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Each is called in the folder of its language, with the sources in it.
install_node() {
    npm install --cache "$PWD/cache" --no-audit --no-fund --ignore-scripts
}
install_python() {
    python3 -m pip install --no-cache-dir --upgrade --target "$PWD/lib" -r requirements.txt
}
build_go() {
    GOPATH=$PWD/cache GOMODCACHE=$PWD/cache/mod GOCACHE=$PWD/cache/build \
        GOFLAGS='-mod=mod -modcacherw -buildvcs=false' go build -o "$1" .
}
install_go() {
    build_go locks
}
install_asynq() {
    build_go asynq
}
# The settings of the user say where packages come from.
install_rust() {
    local settings=${CARGO_HOME:-$HOME/.cargo}/config.toml
    mkdir -p cargo
    [ ! -f "$settings" ] || ln -sf "$settings" cargo/config.toml
    CARGO_HOME=$PWD/cargo cargo build --release --target-dir target
}
install_java() {
    mvn -q -B "-Dmaven.repo.local=$PWD/repository" dependency:copy-dependencies "-DoutputDirectory=$PWD/lib" &&
        javac -cp 'lib/*' -d classes Locks.java
}

language_tools() {
    case $1 in
    node) echo node npm ;;
    python) echo python3 ;;
    go | asynq) echo go ;;
    rust) echo cargo ;;
    java) echo java javac mvn ;;
    esac
}
language_sources() {
    case $1 in
    node) echo package.json locks.mjs ;;
    python) echo requirements.txt locks.py ;;
    go) echo go/go.mod go/locks.go go/peers.go ;;
    asynq) echo asynq/go.mod asynq/asynq.go ;;
    rust) echo rust/Cargo.toml rust/src ;;
    java) echo java/pom.xml java/Locks.java ;;
    esac
}

# language_install LANGUAGE: once for each form of its sources. Prints why it cannot be done.
language_install() {
    local language=$1 into=$peers/$1 tool sources
    for tool in $(language_tools "$language"); do
        command -v "$tool" >/dev/null || { echo "$tool is not installed" && return; }
    done
    read -ra sources < <(language_sources "$language")
    rm -rf "$into/new"
    mkdir -p "$into/new"
    (cd "$here_install" && cp -r "${sources[@]}" "$into/new")
    if diff -r "$into/new" "$into/installed" >/dev/null 2>&1; then return; fi
    cp -r "$into/new/." "$into"
    if ! (cd "$into" && "install_$language") >"$into/log" 2>&1; then
        echo "it cannot be installed (see $into/log)"
        return
    fi
    rm -rf "$into/installed" && mv "$into/new" "$into/installed"
}

# language_drive LANGUAGE PEER WORK COUNT PORT...
language_drive() {
    local language=$1 into=$peers/$1
    shift
    case $language in
    node) (cd "$into" && timeout 120 node locks.mjs "$@") ;;
    python) PYTHONPATH=$into/lib timeout 120 python3 -B "$into/locks.py" "$@" ;;
    go) timeout 120 "$into/locks" "$@" ;;
    rust) timeout 120 "$into/target/release/locks" "$@" ;;
    java) timeout 120 java -cp "$into/classes:$into/lib/*" Locks "$@" ;;
    esac
}
