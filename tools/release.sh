#!/usr/bin/env bash
# release.sh - `make run` and `make test` on a fresh Debian of another release.
#
#   tools/release.sh RELEASE [PASS...]     trixie or bookworm
#
# Makes a root of that release below build/RELEASE with debootstrap, once, clones this
# checkout's HEAD into it, below a folder of mode 0700 with a long path, and runs there
#
#   run      what `make run` does, for a few seconds
#   test     `make test`, as root
#   user     both, as a user who has sudo
#   valkey   the contract, core, fault and chaos tests with Valkey for Redis
#
# all of them, where that release has them, or those that are named. Needs root: directly,
# by sudo, or in a user namespace (mmdebstrap), where tests that need more are skipped.
# All it starts is in a namespace of its own, and gone when it ends.
set -euo pipefail
cd "$(dirname "$0")/.."
release=${1:?a release of Debian: trixie or bookworm}
shift
passes=("$@")
top=$PWD
base=$top/build/$release
root=$base/root
home=srv/tester/a-private-folder-of-somebody/who-likes-long-names-for-folders/and-keeps-checkouts/here

say() {
    echo "release: $*" >&2
}

give_up() {
    say "$@"
    exit 1
}

# The mirror that this machine uses, if it is a Debian.
mirror() {
    # shellcheck disable=SC2016 # expanded by apt
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n '/\/debian\/*$/{p;q}'
}

# As root in namespaces of our own: "$0 --inside" goes on there.
enter() {
    if [ "$(id -u)" -eq 0 ]; then
        exec unshare --mount --pid --fork --kill-child "$0" "$release" --inside "$@"
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        exec sudo -- "$0" "$release" "$@"
    elif command -v mmdebstrap >/dev/null && grep -q "^$(id -un):" /etc/subuid 2>/dev/null; then
        exec mmdebstrap --unshare-helper "$0" "$release" --inside "$@"
    fi
    give_up "this is not root, there is no sudo, and for a user namespace it takes mmdebstrap and" \
        "a line for $(id -un) in /etc/subuid; as root, run: tools/release.sh $release"
}

make_root() {
    [ ! -e "$base/made" ] || return 0
    say "making a root of $release in $root"
    rm -rf "$root"
    mkdir -p "$root"
    if command -v debootstrap >/dev/null; then
        debootstrap --variant=minbase "$release" "$root" "$(mirror)" >"$base/debootstrap.log" 2>&1 ||
            { tail -n 20 "$base/debootstrap.log" >&2; give_up "debootstrap failed"; }
    else
        give_up "debootstrap is not installed; as root, run: apt-get install debootstrap"
    fi
    touch "$base/made"
}

mount_root() {
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/tmp"
    mount -t tmpfs tmpfs "$root/run"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
    [ ! -d /etc/apt/apt.conf.d ] || grep -rhi '^acquire::.*proxy' /etc/apt/apt.conf.d /etc/apt/apt.conf \
        >"$root/etc/apt/apt.conf.d/99proxy" 2>/dev/null || true
}

# in_root COMMAND...: there, with an environment like that after a login.
in_root() {
    chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${SEED:+SEED="$SEED"} "$@"
}

install() {
    in_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@" \
        >>"$base/packages.log" 2>&1 || { tail -n 20 "$base/packages.log" >&2; give_up "cannot install $*"; }
}

# What somebody has who is about to type `make run`.
prepare() {
    : >"$base/packages.log"
    in_root apt-get -q update >>"$base/packages.log" 2>&1 || give_up "apt-get update failed in $root"
    install make sudo git
    in_root id tester >/dev/null 2>&1 || in_root useradd --create-home --home-dir /srv/tester --shell /bin/bash tester
    echo 'tester ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/tester"
    chmod 0440 "$root/etc/sudoers.d/tester"
}

# A clean clone for this user, at a path of more than 100 characters.
clone_for() {
    local user=$1
    rm -rf "$root/srv/tester/a-private-folder-of-somebody"
    mkdir -p "$root/$home"
    git clone -q --no-hardlinks "$top" "$root/$home/dibs"
    in_root chown -R "$user:" /srv/tester
    chmod 0700 "$root/srv/tester" "$root/srv/tester/a-private-folder-of-somebody"
}

# as USER COMMAND...: in the clone.
as() {
    local user=$1
    shift
    # shellcheck disable=SC2016 # expanded there
    in_root sudo -H -u "$user" --preserve-env=SEED,PATH sh -c 'cd "$0" && exec "$@"' "/$home/dibs" "$@"
}

# `make run` until the workers have taken turns, then ^C. No other dibs is in this
# namespace of processes.
run_for() {
    # shellcheck disable=SC2016 # expanded there
    as "$1" bash -c '
        : >run.log
        make run >>run.log 2>&1 &
        while kill -0 $! 2>/dev/null && [ "$(grep -c "Lock released" run.log)" -lt 2 ]; do sleep 1; done
        pkill -INT -x dibs
        wait $!
        rc=$?
        cat run.log
        grep -q "Dashboard: http://127.0.0.1:" run.log && grep -q "All workers have stopped" run.log && exit $rc'
}

# The same tests with other servers behind the names that they start.
test_valkey() {
    if ! in_root apt-cache show valkey-server >/dev/null 2>&1; then
        say "$release has no Valkey: left out"
        return 0
    fi
    install valkey-server valkey-tools
    mkdir -p "$root/opt/valkey"
    for name in server cli sentinel benchmark; do
        ln -sf "/usr/bin/valkey-$name" "$root/opt/valkey/redis-$name"
    done
    [ -d "$root/$home/dibs/build/dev" ] || { clone_for root; as root tools/install-packages.sh build test; }
    # shellcheck disable=SC2016 # expanded there
    as root env PATH="/opt/valkey:/usr/sbin:/usr/bin:/sbin:/bin" bash -c '
        redis-server --version && . tools/build.sh && build dev && ctest --test-dir build/dev -j5 \
            --timeout 7200 --output-on-failure -L "^(contract|core|fault|store|chaos|redis)$" -R "red|sentinel|cluster"'
}

do_pass() {
    case $1 in
        run) clone_for root && run_for root ;;
        test) clone_for root && as root make test ;;
        user) clone_for tester && run_for tester && as tester make test ;;
        valkey) test_valkey ;;
        *) give_up "there is no pass \"$1\"" ;;
    esac
}

run_pass() {
    local pass=$1 log="$base/$1.log" start=$SECONDS
    printf '%-9s %-9s ' "$release" "$pass"
    if do_pass "$pass" >"$log" 2>&1; then
        echo "ok: $(grep -hE 'tests passed|left out' "$log" | tail -n 1) ($((SECONDS - start)) s)"
    else
        echo "FAILED ($((SECONDS - start)) s); $log:"
        tail -n 200 "$log"
        return 1
    fi
}

if [ "${1:-}" != --inside ]; then
    enter "$@"
fi
passes=("${@:2}")
[ ${#passes[@]} -gt 0 ] || passes=(run test valkey user)
mkdir -p "$base"
make_root
mount_root
prepare
failed=0
for pass in "${passes[@]}"; do
    run_pass "$pass" || failed=1
done
exit $failed
