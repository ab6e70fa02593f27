#!/usr/bin/env bash
# test_man.sh - the manual pages of the library: man(1) finds a page by the name of every
# public function, with its declaration, and with each status that the header gives for
# it. A changed header changes the pages. All statuses are in libdibs.3.
#
#   tests/tree/test_man.sh PAGES
set -euo pipefail
cd "$(dirname "$0")/../.."
pages=$(cd "${1:?folder of the made pages}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rc=0

statuses=$(sed -nE 's/^ +(DIBS_[A-Z]+) = [0-9]+.*/\1/p' include/dibs/types.h)

# "FUNCTION STATUS..." for each DIBS_API: the name before its first parenthesis,
# and the words DIBS_* of the comment that stands directly before it.
declared() {
    awk '
    /^[ \t]*#/ { next }
    /^\/\*/ { words = "" }
    /^\/\*/, /\*\// {
        text = $0
        while (match(text, /DIBS_[A-Z_]+/)) {
            words = words " " substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
        }
        next
    }
    /^DIBS_API/ { inside = 1; head = "" }
    inside {
        head = head " " $0
        if (match(head, /[A-Za-z0-9_]+[ \t]*\(/)) {
            name = substr(head, RSTART, RLENGTH - 1)
            gsub(/[ \t]/, "", name)
            print name words
            inside = 0
            words = ""
        }
        next
    }
    /^typedef .*;$/ { next }
    /^[^ \t]/ { words = "" }' include/dibs/*.h
}

# page_of FOLDER NAME: the page that man shows for a name.
page_of() {
    local page="$1/$2.3" link
    [ -e "$page" ] || return 0
    read -r link <"$page"
    [[ $link != .so\ * ]] || page=$1/${link##*/}
    echo "$page"
}

# shows PAGE NAME: has it in NAME and in SYNOPSIS.
shows() {
    # grep reads to the end: sed must not meet a closed pipe.
    sed '/^\.Nd /,$d' "$1" | grep -E "^\.Nm $2( ,)?$" >/dev/null &&
        sed '/^\.Sh DESCRIPTION/,$d' "$1" | grep -E "^\.(Fn|Fo) $2( |$)" >/dev/null
}

names=0
while read -r name words; do
    names=$((names + 1))
    page=$(page_of "$pages" "$name")
    [ -n "$page" ] || { echo "man finds no $name"; rc=1; continue; }
    shows "$page" "$name" || { echo "$name: not in $page"; rc=1; continue; }
    for word in $words; do
        grep -qx "$word" <<<"$statuses" || continue
        grep -qE "^\.(It )?Dv (.* )?$word( |$)" "docs/man/${page##*/}" || { echo "$name: $page does not have $word"; rc=1; }
    done
done < <(declared)
for status in $statuses; do
    grep -qE "^\.It Dv $status$" docs/man/libdibs.3 || { echo "$status: not in libdibs.3"; rc=1; }
done
if [ "$names" -eq 0 ] || [ -z "$statuses" ]; then
    echo "nothing was found in include/dibs"
    rc=1
fi

# Pages follow their header: a new function has one, one that is gone leaves none.
cp -r include docs tools "$work/"
mkdir "$work/pages"
cat >"$work/include/dibs/guard.h" <<'END'
/* Counts. `n` may be 0.
 *   DIBS_BUSY, DIBS_LOST  as ever, and
 *                         more
 * .Then back\slash. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_guard_planted(
    const char *const *texts, size_t n);
DIBS_API const char *dibs_guard_second(void);
END
touch "$work/pages/dibs_guard_admit.3"
"$work/tools/man-pages.sh" "$work/pages" || rc=1
[ ! -e "$work/pages/dibs_guard_admit.3" ] || { echo "a function that is gone has a page"; rc=1; }
for name in dibs_guard_planted dibs_guard_second; do
    [ -s "$work/pages/$name.3" ] || { echo "man would not find $name"; rc=1; }
    shows "$work/pages/dibs_guard.3" "$name" || { echo "dibs_guard.3 does not show $name"; rc=1; }
done
diff <(sed -n '/^\.Sh FUNCTIONS/,/^\.Sh TYPES/p' "$work/pages/dibs_guard.3") - <<'END' || { echo "a comment is not what it was"; rc=1; }
.Sh FUNCTIONS
.Ss dibs_guard_planted, dibs_guard_second
Counts.
\fIn\fP may be 0.
.Bl -tag -width DIBS_UNSUPPORTED
.It Dv DIBS_BUSY , DIBS_LOST
as ever, and more
.El
\&.Then back\eslash.
.Sh TYPES
END
grep -A1 -x '\.Fo dibs_guard_planted' "$work/pages/dibs_guard.3" | grep -qx '\.Fa "const char \*const \*texts"' ||
    { echo "a declaration is not what it was"; rc=1; }

command -v mandoc >/dev/null || { echo "mandoc is not installed" >&2; exit 77; }
for page in docs/man/*.3; do
    mandoc -Tlint -W warning "$pages/${page##*/}" || rc=1
done
[ $rc -ne 0 ] || echo "$names functions are documented"
exit $rc
