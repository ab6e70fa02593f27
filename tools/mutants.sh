#!/usr/bin/env bash
# mutants.sh - plants one mistake after the other and shows what catches it.
#
#   tools/mutants.sh               all of tests/mutants (`make mutants`), in two shares
#                                  side by side (SHARES=2): most runs wait
#   tools/mutants.sh NAME...       those only, without a look at the sound code
#   tools/mutants.sh --check       whether the patches still fit; builds nothing
#
# Works on a copy of the tree in build/mutants, built without assertions, as it is
# released, so that tests have to catch it. The sound code must pass every run first. A mistake is caught when one of its runs fails or does not
# end; one that passes them all, does not fit or does not build is a failure here.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
top=$PWD
patches=tests/mutants
work=$top/build/mutants${SHARE:+/$SHARE}
tree=$work/tree
build=$work/build
limit=90 # seconds for one run
test_failed='[  FAILED  ] '
seeds=2000 # in which the simulated quorum must miss a rule that is left out
declare -A program=()
bad=0

# header KEY PATCH: what is said under that key, a line each.
header() {
    sed -n "/^--- /q; s/^$1: //p" "$2"
}

check() {
    local patch key head readme failed=0 count=0
    readme=$(<"$patches/README.md")
    for patch in "$patches"/*.patch; do
        count=$((count + 1))
        head=$(<"$patch")
        head=$'\n'${head%%--- *}
        for key in Mistake Area Seen Run; do
            [[ $head == *$'\n'"$key: "* ]] || { echo "$patch has no \"$key:\""; failed=1; }
        done
        key=${patch##*/}
        [[ $readme == *$'\n'"| ${key%.patch} |"* ]] || { echo "$patch is not in $patches/README.md"; failed=1; }
        patch -p1 --dry-run --force --silent --reject-file=- <"$patch" ||
            { echo "$patch does not fit any more"; failed=1; }
    done
    echo "$count patches"
    return $failed
}

# Files that differ are copied with a new time, so that what was built from a
# mistake that an interrupted run left behind is built anew.
copy_tree() {
    local file
    mkdir -p "$tree"
    find . \( -path ./.git -o -path './build*' \) -prune -o -type f -print | while read -r file; do
        cmp -s "$file" "$tree/$file" && continue
        mkdir -p "$tree/${file%/*}"
        cp "$file" "$tree/$file" || exit 1
        chmod --reference="$file" "$tree/$file"
    done
}

# targets LINE...: the programs that are named in runs, as @NAME.
targets() {
    grep -oE '@[a-z_0-9]+' <<<"$*" | tr -d @ | sort -u
}

make_targets() {
    local names
    mapfile -t names < <(targets "$@")
    ninja -C "$build" --quiet "${names[@]}"
}

# path_of TARGET: into $path.
path_of() {
    if [ -z "${program[$1]:-}" ]; then
        program[$1]=$(find "$build" -type f -name "$1" -perm -u+x -print -quit)
    fi
    path=${program[$1]}
}

# run LINE LOG: one run in an empty folder, which is its current one. It is over
# with the first test that fails.
run() {
    local word words=() rc folder=$2.ground path pid
    for word in $1; do
        if [[ $word == @* ]]; then
            path_of "${word#@}"
            word=$path
        fi
        words+=("$word")
    done
    rm -rf "$folder"
    mkdir -p "$folder/run"
    : >"$2"
    exec 3>&2 2>/dev/null # where the shell says that a program was aborted
    (cd "$folder" && exec timeout -k 5 "$limit" "${words[@]}") >"$2" 2>&1 </dev/null &
    pid=$!
    while kill -0 $pid; do
        if grep -aqF "$test_failed" "$2"; then
            kill $pid
            break
        fi
        sleep 0.1
    done
    wait $pid
    rc=$?
    exec 2>&3 3>&-
    rm -rf "$folder"
    return $rc
}

# In tenths of a second.
now() {
    echo $((${EPOCHREALTIME/[.,]/} / 100000))
}

# seconds TENTHS
seconds() {
    echo "$(($1 / 10)).$(($1 % 10))"
}

# reason STATUS LOG: what the run complained of, in a few words.
reason() {
    local said
    if [ "$1" -eq 124 ] || [ "$1" -eq 137 ]; then
        echo "did not end in $limit s"
        return
    fi
    said=$(grep -aoE -m 1 '\[  FAILED  \] [a-zA-Z_0-9]+' "$2" | head -n 1 | cut -c 14-)
    [ -n "$said" ] || said=$(grep -aE '^[a-z]+: [0-9]+ breach' "$2" | paste -sd , | sed 's/,/, /g')
    [ -n "$said" ] || said=$(grep -aE -m 1 '^seed [0-9]+, ' "$2")
    [ -n "$said" ] || said=$(grep -av '^ *$' "$2" | tail -n 1)
    echo "${said:0:90}"
}

# row NAME RUN SECONDS WHAT
row() {
    local run=${2//@/}
    run=${run% --seconds*}
    printf '%-33s %-34s %7s  %s\n' "$1" "${run/ "$4"/}" "$3" "$4"
}

# pass LINE LOG: the sound code must, with a second chance on a busy machine.
pass() {
    run "$1" "$2" || run "$1" "$2" ||
        echo "the sound code does not pass ${1//@/}: $(reason $? "$2"), see $2" >>"$work/unsound"
}

# sound LINE...: a few at a time, as most of them wait; each line once.
sound() {
    local line number=0
    rm -f "$work/unsound"
    while read -r line; do
        while [ "$(jobs -rp | wc -l)" -ge 3 ]; do
            sleep 0.1
        done
        number=$((number + 1))
        pass "$line" "$work/sound-$number.log" &
    done < <(printf '%s\n' "$@" | sort -u)
    wait
    [ ! -f "$work/unsound" ] || { cat "$work/unsound"; return 1; }
}

restore() {
    local file
    sed -nE 's|^\+\+\+ b/([^\t]*).*|\1|p' "$1" | while read -r file; do
        cp "$file" "$tree/$file"
    done
}

# plant PATCH: one row.
plant() {
    local patch=$1 name line lines start spent=0 rc
    name=$(basename "$patch" .patch)
    mapfile -t lines < <(header Run "$patch")
    if ! patch -p1 -d "$tree" --force --silent <"$patch" >"$work/$name.log" 2>&1; then
        row "$name" - - "THE PATCH DOES NOT FIT"
        restore "$patch"
        return 1
    fi
    for line in "${lines[@]}"; do
        if ! make_targets "$line" >"$work/$name.log" 2>&1; then
            row "$name" - - "DOES NOT BUILD, see $work/$name.log"
            restore "$patch"
            return 1
        fi
        start=$(now)
        run "$line" "$work/$name.log"
        rc=$?
        spent=$((spent + $(now) - start))
        if [ $rc -eq 126 ] || [ $rc -eq 127 ]; then
            row "$name" "$line" - "CANNOT BE RUN"
            break
        fi
        if [ $rc -ne 0 ]; then
            row "$name" "$line" "$(seconds $spent)" "$(reason $rc "$work/$name.log")"
            restore "$patch"
            return 0
        fi
    done
    row "$name" - "$(seconds $spent)" "NOT CAUGHT"
    restore "$patch"
    return 1
}

# The simulated quorum leaves rules out by itself.
left_out() {
    local rule start log=$work/rule.log
    for rule in 1 2 3 4 5 6 7 8; do
        start=$(now)
        if run "@sim_quorum --mutant $rule $seeds" "$log"; then
            row "quorum rule $rule left out" "sim_quorum --mutant $rule" "$(seconds $(($(now) - start)))" \
                "$(sed -n 's/^mutant [0-9]*, //p' "$log")"
        else
            row "quorum rule $rule left out" - - "NOT CAUGHT"
            bad=$((bad + 1))
        fi
    done
}

# in_shares PATCH...: each share has a tree of its own; its rows are shown when it is done.
in_shares() {
    local shares=${SHARES:-2} share pids=() i
    for ((share = 1; share <= shares; share++)); do
        local part=()
        for ((i = share; i <= $#; i += shares)); do
            part+=("${!i}")
        done
        SHARE=$share tools/mutants.sh "${part[@]}" >"$work/share-$share.txt" 2>&1 &
        pids+=($!)
    done
    for ((share = 1; share <= shares; share++)); do
        wait "${pids[share - 1]}" || bad=$((bad + 1))
        cat "$work/share-$share.txt"
    done
}

if [ "${1:-}" = --check ]; then
    check
    exit
fi

list=()
for name in "$@"; do
    list+=("$patches/$(basename "$name" .patch).patch")
done
[ $# -gt 0 ] || list=("$patches"/*.patch)
for patch in "${list[@]}"; do
    [ -f "$patch" ] || { echo "there is no $patch"; exit 1; }
done

copy_tree || exit 1
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" --log-level=WARNING >"$work/cmake.log" || exit 1
runs=$(for patch in "${list[@]}"; do header Run "$patch"; done)
[ $# -gt 0 ] || runs+=$'\n@sim_quorum 20'
make_targets "$runs" || exit 1
if [ $# -eq 0 ]; then
    mapfile -t lines <<<"$runs"
    sound "${lines[@]}" || exit 1
    echo "the sound code passes all runs ($SECONDS s)"
    left_out
    in_shares "${list[@]}"
    echo "${#list[@]} mistakes planted, 8 rules left out ($SECONDS s)"
    exit $((bad > 0))
fi
row mistake "caught by" seconds what
for patch in "${list[@]}"; do
    plant "$patch" || bad=$((bad + 1))
done
echo "${#list[@]} mistakes planted, $bad not caught ($SECONDS s)"
[ $bad -eq 0 ]
