#!/usr/bin/env bash
# test_check_language.sh - tools/check-language.py sees what it is there to see: plants
# breaches in a small tree, each in a file of its own, expects each to be named, and holds the debt
# to what is there, no more and no less.
set -euo pipefail
check=$(cd "$(dirname "$0")/../.." && pwd)/tools/check-language.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
mkdir -p "$work/src/core" "$work/src/store" "$work/docs/man" "$work/include/dibs" "$work/examples" \
    "$work/tests/tree"
cd "$work"
debt=tests/tree/language_debt.txt

fail() {
    echo "$*"
    failures=$((failures + 1))
}

# plant FILE: FILE under a name of its own, from stdin; into `planted`.
count=0
plant() {
    count=$((count + 1))
    planted=${1/planted/planted_$count}
    cat >"$planted"
}

# caught FILE EXPECTED: the checker names the breach on stdin.
declare -A expected=()
caught() {
    plant "$1"
    expected[$planted]=$2
}

# passes FILE: what is on stdin breaks no rule.
fine=()
passes() {
    plant "$1"
    fine+=("$planted")
}

# One look at all that was planted, which is gone afterwards.
judge() {
    local said file
    said=$("$check" "$work") && fail "nothing was caught"
    for file in "${!expected[@]}"; do
        grep -F "$file" <<<"$said" | grep -qF -- "${expected[$file]}" || fail "not caught in $file: ${expected[$file]}"
    done
    for file in "${fine[@]}"; do
        ! grep -F "$file" <<<"$said" || fail "caught without reason in $file"
    done
    rm -f "${!expected[@]}" "${fine[@]}"
}

message() { # TEXT: a file of C that fails with it
    printf 'static dibs_status f_g(void) { return dibsx_fail(err, DIBS_INVALID, "%s", x); }\n' "$1"
}

while read -r text; do
    caught src/core/planted.c 'has no verb' < <(message "$text")
done <<'END'
a link
slow
no majority
the name
a set of names
unknown flags 0x%x
more than %d names
signalfd: %s
out of memory; free some
not a plain file; name another (%s)
END
while read -r text; do
    passes src/core/planted.c < <(message "$text")
done <<'END'
the name is longer than %d bytes
cannot open a pipe: %s
nobody holds it
%s needs %s
the URL names no file; write sqlite:/path/file.db
write redis+unix:///path/to/socket
no sentinel answers in time
%s: %s
%s
END
caught src/core/planted.c 'has no verb' <<<'int f_g(void) { return dibsx_fail_at(err, rc, "EIO", "a pipe" " of %" PRIu64, n); }'
caught src/core/planted.c '"the other" has no verb' <<<'int f_g(void) { dibs__cli_say(x ? "this: it is" : "the other"); }'
passes src/core/planted.c <<<'int f_g(void) { return dibsx_fail(err, rc, "fence %" PRIu64 " is old", n); }'
passes src/core/planted.c <<<'int f_g(void) { return dibsx_nomem(err, "a link"); }'

caught src/core/planted.c 'begins with Who' <<<'/* Who asks first is served first. */'
caught src/core/planted.c 'begins with Those' <<<'// A line. Those that wait are next.'
caught include/dibs/planted.h 'begins with What' <<'END'
/* The first sentence is fine.
 * What follows is not. */
END
caught src/core/planted.c 'begins with Whoever' <<<'static const char *help = "Ends it. " "Whoever waits is next.";'
caught src/core/planted.lua 'begins with Of' <<<'-- Of two holders one wins.'
caught docs/planted.md 'begins with What' <<<'## What it is'
caught docs/planted.md 'begins with Who' <<<'| a | Who asks |'
caught docs/planted.md 'begins with Of' <<<'- Of these one is enough.'
caught docs/planted.md 'begins with Whoever' <<<'A line (in brackets). **Whoever** reads it stops.'
caught include/dibs/planted.hpp 'begins with Those' <<<'/* Those that wait. */'
caught docs/man/planted.3 'begins with What' <<<'.Sh DESCRIPTION
What it does.'
passes docs/planted.md <<'END'
The table says who holds what. `What` is code. Offers of help are welcome.

```
Who reads code blocks
```
END
passes src/core/planted.c <<<'static const char *s = "a /* What */ b"; /* see who asks: What? no. */'

caught docs/planted.md 'nobody but' <<<'It is for nobody but the holder.'
caught docs/planted.md 'is told' <<<'The holder is told in time.'
caught src/core/planted.c 'unless' <<<'/* It does not wait unless it must. */'
passes docs/planted.md <<<'The store tells the holder. It does not wait. Unless told otherwise, it ends.'

# Sentences of more than 25 words, where programs and their authors read.
words25='one two three four five six seven eight nine ten 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25'
for file in include/dibs/planted.h include/dibs/planted.hpp examples/planted.c; do
    caught "$file" '26 words, more than 25' <<<"/* Short. $words25 26. */"
    caught "$file" '26 words, more than 25' < <(printf '/* %s\n * more. */\n' "$words25")
    passes "$file" <<<"/* $words25. Short. */"
    passes "$file" < <(printf '/* %s:\n *   an item\n *\n * another paragraph */\n' "$words25")
    passes "$file" <<<"static const char *usage = \"$words25 26\";"
done
caught docs/man/planted.3 '26 words, more than 25' < <(printf '.Sh DESCRIPTION\n%s\n.Fn f .\n' "$words25")
passes docs/man/planted.3 < <(printf '.Sh SYNOPSIS\n%s 26\n.Sh DESCRIPTION\n%s.\n.Bd\n%s 26\n.Ed\nShort.\n' \
    "$words25" "$words25" "$words25")
passes docs/planted.md <<<"$words25 26."

judge

for file in src/core/a.c src/core/b.c src/store/c.c; do
    echo 'static int take(void)' >"$file"
done
said=$("$check" "$work") && fail "one word in three files was not caught"
grep -q 'src/store/c.c.*take() is in 3 files' <<<"$said" || fail "the three files are not named: $said"

# The debt: what is there passes; one more and one less do not.
"$check" --lower "$work" || fail "the first debt was not written"
"$check" "$work" >/dev/null || fail "the debt of the tree does not pass"
echo 'static void take(int x)' >src/core/planted.c
said=$("$check" "$work") && fail "one more than the debt was not caught"
grep -q 'take() is in 4 files' <<<"$said" || fail "the fourth file is not named: $said"
rm src/core/planted.c
rm src/store/c.c
said=$("$check" "$work") && fail "a debt that was paid was not asked for"
grep -q -- '--lower' <<<"$said" || fail "the remedy is not named: $said"
echo '/* What is new. */' >src/core/new.c
"$check" --lower "$work" >/dev/null && fail "a debt was raised"
rm src/core/new.c
"$check" --lower "$work" || fail "the debt was not lowered"
[ ! -e "$debt" ] || fail "a debt of nothing is still a file"
"$check" "$work" >/dev/null || fail "a tree without debt does not pass"

[ "$failures" -eq 0 ] || exit 1
echo "every planted breach was caught"
