#!/usr/bin/env python3
"""check-language.py - holds the rules of language in CONTRIBUTING.md that a machine can hold.

  noun     a message of an error has a verb: "cannot open the pipe: ...", not "the pipe".
           A new verb is added to VERBS below.
  opener   no sentence begins with Who, What, Whoever, Those or Of
  phrase   no "nobody but", "is told", "is had", "is put out", "not ... unless"
  oneword  no static function of one word has that name in three files or more
  long     no sentence of the public headers, the examples and the manual pages of the library
           (LONG below) has more than 25 words

tests/tree/language_debt.txt has what is left of older texts, as `rule file count`. A file with
more breaches than that fails, and so does one with fewer: lower the debt in the same commit.
Without the file there is no debt.

  tools/check-language.py [ROOT]            prints the breaches beyond the debt
  tools/check-language.py --all [ROOT]      prints every breach
  tools/check-language.py --lower [ROOT]    writes the debt anew, when no rule has more than before
"""
# SPDX-License-Identifier: MIT
import collections
import glob
import os
import re
import sys

DEBT = "tests/tree/language_debt.txt"
LONG = ["include/dibs/*.h", "include/dibs/*.hpp", "examples/*.c", "docs/man/*.3"]
WORDS_MAX = 25

# The functions that take a message, and which of their arguments it is.
MESSAGES = {"dibsx_fail": 2, "dibsx_fail_at": 3, "dibs__round_fail": 2, "dibs__http_refuse": 2, "dibs__cli_say": 0}

# Forms that are nothing but a verb count anywhere. Those that are nouns as well count where
# no article or preposition is before them, and commands where they begin a clause.
VERBS = set("""
    am are be been can cannot could did do does had has have is may might must shall should was were will would
    acknowledged added answered asked became becomes began begins belongs broke came changed closed comes differs
    ended exceeds exists expired failed forgot gave gives goes got granted grants jumped keeps know knows lacks makes
    means opened passed ran refers refused refuses released requires said says sent serves skipped speaks started
    stopped takes took voted wants went wrote
""".split())
NOUNS_TOO = set("answers asks breaks changes closes costs ends expires fails helps holds matches moves names needs "
                "passes refer runs serve starts stops tells uses waits works".split())
COMMANDS = set("add ask choose free give install look name open raise read remove run set start stop try use wait "
               "write ending killing running waiting".split())
BEFORE_NOUNS = set("a an the no of this that these those its than to in for by with and or".split())

OPENERS = r"(?:Whoever|Whom|Whose|Who|Whatever|What|Those|Of)\b"
# The beginning of a text, or what follows the end of a sentence.
BEGINS = re.compile(r"(?:^|[.!?][)\"'*_]*\s+)[(\"'*_]*(" + OPENERS + ")")
PHRASES = re.compile(
    r"\b(?:nobody but|(?:is|are|was|were|be|been|being) (?:told|had|put out))\b|\bnot\b[^.;:|]*\bunless\b", re.I)

TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.S)
STATIC = re.compile(r"^static\s[^;{}=()]*?\b([a-z][a-z0-9]*)\(", re.M)


class Breaches:
    def __init__(self):
        self.lines = collections.defaultdict(list)  # (rule, file): what was found, with its line

    def add(self, rule, file, line, text):
        self.lines[rule, file].append(f"{file}:{line}: {rule}: {text}")

    def counts(self):
        return {key: len(lines) for key, lines in self.lines.items()}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def arguments(text, start):
    """The arguments of a call whose parenthesis ends before `start`, each with its literals."""
    depth, here, argument = 1, start, ""
    while depth and here < len(text):
        token = TOKENS.match(text, here)
        if token:
            argument += token.group() if token.group()[0] == '"' else " "
            here = token.end()
            continue
        if text[here] in "([{":
            depth += 1
        elif text[here] in ")]}":
            depth -= 1
        if text[here] == "," and depth == 1:
            yield argument
            argument = ""
        elif depth:
            argument += text[here]
        here += 1
    yield argument


def messages_in(argument):
    """The texts of an argument: adjacent literals are one, the two sides of ?: are two."""
    message, last = None, 0
    for literal in re.finditer(r"\"((?:[^\"\\]|\\.)*)\"", argument):
        if message is not None and re.search("[?:]", argument[last:literal.start()]):
            yield message
            message = None
        # A conversion whose letters are in a macro, such as PRIu64, is completed.
        message = (message or "") + re.sub(r"(?<!%)%$", "%d", literal.group(1))
        last = literal.end()
    if message is not None:
        yield message


def has_verb(clause, first):
    words = re.findall(r"[a-z][a-z0-9_/.]*(?:-[a-z]+)*", clause.lower())
    if words and first in COMMANDS:
        return True
    for before, word in zip(["the"] + words, words):
        if word in VERBS or (word in NOUNS_TOO and before not in BEFORE_NOUNS):
            return True
    return False


def is_noun(message):
    """No word before the remedy is a verb. A message without words has them from elsewhere."""
    plain = re.sub(r"%[-+ #0]*[0-9*]*(?:\.[0-9*]+)?(?:hh|h|ll|l|z|j|t)?([a-zA-Z])",
                   lambda match: " Text " if match.group(1) == "s" else " the ", message)
    if not re.search(r"[A-Za-z]", re.sub(r" (?:Text|the) ", "", plain)):
        return False
    failed = re.split(r";|\.\s", plain)[0]
    clauses = [clause.split() for clause in re.split(r"[:,(]", failed) if clause.split()]
    return not any(has_verb(" ".join(words), words[0].lower()) for words in clauses)


def check_messages(file, text, found):
    for call in re.finditer(r"\b(" + "|".join(MESSAGES) + r")\s*\(", text):
        given = list(arguments(text, call.end()))
        if len(given) <= MESSAGES[call.group(1)]:
            continue
        for message in messages_in(given[MESSAGES[call.group(1)]]):
            if is_noun(message):
                found.add("noun", file, line_of(text, call.start()), f'"{message}" has no verb')


def check_prose(file, line, text, found):
    """One paragraph, comment or message."""
    text = " ".join(text.split())
    for match in BEGINS.finditer(text):
        found.add("opener", file, line, f"a sentence begins with {match.group(1)}: {text[match.start(1):][:50]}")
    for match in PHRASES.finditer(text):
        found.add("phrase", file, line, match.group() if len(match.group()) < 60 else "not ... unless")


def check_length(file, line, text, found):
    """One paragraph, item of a list or line of code."""
    for sentence in re.split(r"(?<=[^.][.!?]) +", " ".join(text.split())):
        words = len(sentence.split())
        if words > WORDS_MAX:
            found.add("long", file, line, f"{words} words, more than {WORDS_MAX}: {sentence[:50]}")


def prose_of_c(text):
    """Comments by their paragraphs, and literals, adjacent ones as one."""
    pending, begun, last = "", 0, 0
    for token in TOKENS.finditer(text):
        kind = token.group()[:1]
        if pending and (kind != '"' or re.search(r"[^\s\w]", text[last:token.start()])):
            yield begun, pending
            pending = ""
        if kind == '"':
            begun = begun if pending else line_of(text, token.start())
            pending += token.group()[1:-1].replace("\\n", " ").replace('\\"', "'")
            last = token.end()
        elif kind == "/":
            yield from paragraphs(comment_body(token.group()), line_of(text, token.start()))
    if pending:
        yield begun, pending


def comment_body(comment):
    return re.sub(r"^[ \t]*\*", "", re.sub(r"^/[*/]+<?|\*/$", "", comment), flags=re.M)


def comments_of_c(text):
    """Comments by their paragraphs. An indented line is an item of a list, or code, and stands alone."""
    for token in TOKENS.finditer(text):
        if token.group().startswith("/"):
            body = re.sub(r"^(  .*)$", r"\n\1\n", comment_body(token.group()), flags=re.M)
            for _, paragraph in paragraphs(body, 1):
                yield line_of(text, token.start()), paragraph


def paragraphs(body, line):
    """Texts between empty lines; an item of a list is one too."""
    kept, begun = [], line
    for number, row in enumerate(body.split("\n"), line):
        item = re.match(r"\s*(?:[-*]|\d+\.)\s+(.*)", row)
        if kept and (item or not row.strip()):
            yield begun, " ".join(kept)
            kept = []
        if row.strip():
            begun = begun if kept else number
            kept.append(item.group(1) if item else row)
    if kept:
        yield begun, " ".join(kept)


def prose_of_script(text, mark):
    """Comment lines of Lua and SQL."""
    body = "\n".join(m.group(1) if (m := re.search(mark + r"+(.*)", row)) else "" for row in text.split("\n"))
    yield from paragraphs(body, 1)


def prose_of_markdown(text):
    """Headings, cells of tables, items and paragraphs, without code."""
    text = re.sub(r"^[ \t]*```.*?^[ \t]*```", lambda m: "\n" * m.group().count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    text = re.sub(r"`[^`\n]+`", "`code`", text)
    rows = []
    for number, row in enumerate(text.split("\n"), 1):
        if row.startswith("#"):
            yield number, row.lstrip("# ")
            row = ""
        elif row.lstrip().startswith("|"):
            for cell in row.split("|"):
                yield number, cell.strip()
            row = ""
        rows.append(row)
    yield from paragraphs("\n".join(rows), 1)


def prose_of_man(text):
    """mdoc, from its description on, without displays and references: some requests part paragraphs, others have words of them."""
    rows, described, listed, shown = [], False, False, False
    for row in text.split("\n"):
        described = described or row.startswith(".Sh DESCRIPTION")
        listed = row.startswith(".Sh SEE ALSO") or (listed and not row.startswith(".Sh"))
        shown = row.startswith(".Bd") or (shown and not row.startswith(".Ed"))
        if shown or listed or not (described or row.startswith(".Nd")):
            row = ""
        elif row.startswith('.\\"') or re.match(r"\.(?:Pp|It|Sh|Ss|Bl|El|Ed|D1)\b", row):
            row = ""
        else:
            row = re.sub(r" ([.,;:])(?= |$)", r"\1", re.sub(r"^\.[A-Z][a-z] ", "", row))
        rows.append(row)
    yield from paragraphs("\n".join(rows), 1)


def check_onewords(texts, found):
    places = collections.defaultdict(dict)
    for file, text in texts.items():
        for match in STATIC.finditer(text):
            places[match.group(1)].setdefault(file, line_of(text, match.start()))
    for name, files in places.items():
        if len(files) > 2:
            for file, line in files.items():
                found.add("oneword", file, line, f"{name}() is in {len(files)} files; name it verb_object")


def read(file):
    with open(file, encoding="utf-8") as stream:
        return stream.read()


def tree(*patterns):
    """Files of the tree by pattern, as opposed to what was built from it."""
    names = {os.path.normpath(name) for pattern in patterns for name in glob.glob(pattern, recursive=True)}
    return sorted(name for name in names if not name.startswith("build"))


def look():
    found = Breaches()
    sources = {}
    for file in tree("src/**/*.[ch]", "include/**/*.h", "include/**/*.hpp", "examples/**/*.[ch]", "bench/**/*.[ch]"):
        text = read(file)
        for line, prose in prose_of_c(text):
            check_prose(file, line, prose, found)
        if file.startswith("src/"):
            check_messages(file, text, found)
            sources[file] = text
    check_onewords(sources, found)
    for file in tree("src/**/*.lua", "src/**/*.sql"):
        for line, prose in prose_of_script(read(file), "--"):
            check_prose(file, line, prose, found)
    for file in tree("*.md", "*/**/*.md"):
        for line, prose in prose_of_markdown(read(file)):
            check_prose(file, line, prose, found)
    for file in tree("docs/man/*"):
        for line, prose in prose_of_man(read(file)):
            check_prose(file, line, prose, found)
    for file in tree(*LONG):
        for line, prose in (prose_of_man if file.startswith("docs/man/") else comments_of_c)(read(file)):
            check_length(file, line, prose, found)
    return found


def read_debt():
    debt = {}
    if os.path.exists(DEBT):
        for row in read(DEBT).split("\n"):
            if row and not row.startswith("#"):
                rule, file, count = row.split()
                debt[rule, file] = int(count)
    return debt


def totals(counts):
    sums = collections.Counter()
    for (rule, _), count in counts.items():
        sums[rule] += count
    return sums


def lower(counts, debt):
    before, now = totals(debt), totals(counts)
    grown = [rule for rule in sorted(now) if now[rule] > before[rule]]
    if grown and os.path.exists(DEBT):
        print("\n".join(f"{rule}: {now[rule]} breaches, {before[rule]} before" for rule in grown))
        return 1
    if not counts:
        if os.path.exists(DEBT):
            os.remove(DEBT)
        return 0
    with open(DEBT, "w", encoding="utf-8") as stream:
        stream.write("# Breaches of the rules of language that are left: rule file count.\n"
                     "# tools/check-language.py --lower writes this file; it may only shrink.\n")
        stream.writelines(f"{rule} {file} {count}\n" for (rule, file), count in sorted(counts.items()))
    return 0


def judge(found, counts, debt):
    bad = 0
    for rule, file in sorted(set(counts) | set(debt)):
        now, before = counts.get((rule, file), 0), debt.get((rule, file), 0)
        if now > before:
            print("\n".join(found.lines[rule, file]))
            print(f"{file}: {now} breaches of the rule {rule}, where {before} are left: mend what is new")
        elif now < before:
            print(f"{file}: {now} breaches of the rule {rule}, not {before}: run tools/check-language.py --lower")
        bad += now != before
    if not bad:
        left = ", ".join(f"{rule} {count}" for rule, count in sorted(totals(counts).items()))
        print(f"the texts hold to CONTRIBUTING.md; debt: {left or 'none'}")
    return 1 if bad else 0


def main(words):
    flags = [word for word in words if word.startswith("--")]
    roots = [word for word in words if not word.startswith("--")]
    os.chdir(roots[0] if roots else os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found, debt = look(), read_debt()
    if flags == ["--all"]:
        for key in sorted(found.lines):
            print("\n".join(found.lines[key]))
        return 0
    if flags == ["--lower"]:
        return lower(found.counts(), debt)
    if flags:
        print(__doc__)
        return 2
    return judge(found, found.counts(), debt)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
