# man-pages.awk - the manual pages of the library: what docs/man/*.3 say, and what the
# public headers say of each function and type.
#
#   awk -v out=DIR -f tools/man-pages.awk include/dibs/*.h docs/man/*.3
#
# A page asks for parts of headers, each request on a line of its own:
#   .\" @names lock.h       functions and macros, for NAME
#   .\" @synopsis lock.h    their declarations
#   .\" @functions lock.h   their comments
#   .\" @types lock.h       types and constants, as they stand in the header
# A page may name several headers. Each name becomes a link to the page that has it in
# its NAME, so that man(1) finds it.

# base(FILE): the file without its folder.
function base(file) {
    sub(/.*\//, "", file)
    return file
}

FNR == 1 {
    file = base(FILENAME)
    is_header = file ~ /\.h$/
    in_comment = in_type = in_function = in_macro = 0
    comment = shown = ""
    if (!is_header) {
        page = file
        pages[page] = 1
    }
}

# --- headers ---

# Text of a comment without its marks.
function uncomment(text) {
    sub(/^\/\* ?/, "", text)
    sub(/^ \* ?/, "", text)
    sub(/ *\*\/$/, "", text)
    return text == " " ? "" : text
}

# Keeps a function or a macro with the comment that no other has used.
function keep(kind, name, type, args) {
    n = ++count[file]
    kind_of[file, n] = kind
    name_of[file, n] = name
    type_of[file, n] = type
    args_of[file, n] = args
    comment_of[file, n] = comment
    comment = ""
}

# "const char *dibs_url(const dibs_client *client);"
function keep_function(text,    at, head) {
    gsub(/DIBS_API |DIBS_MUST_CHECK /, "", text)
    gsub(/[ \t]+/, " ", text)
    at = index(text, "(")
    head = substr(text, 1, at - 1)
    text = substr(text, at + 1)
    sub(/\) *;.*/, "", text)
    sub(/^ /, "", text)
    match(head, /[A-Za-z0-9_]+ *$/)
    keep("function", substr(head, RSTART), substr(head, 1, RSTART - 1), text)
}

function keep_macro(line,    name) {
    sub(/^#define /, "", line)
    name = line
    sub(/\(.*/, "", name)
    sub(/^[^(]*\(/, "", line)
    sub(/\).*/, "", line)
    keep("macro", name, "", line)
}

# Adds to what @types shows, a blank line and the comment before each part.
function show(text) {
    types[file] = types[file] (types[file] == "" ? "" : "\n") shown text
    shown = ""
}

# "typedef struct dibs_lock dibs_lock;", "} dibs_lock_opts;", "... dibs_lock_fn(...);"
function note_type(text) {
    if (text !~ /^typedef/)
        return
    if (text !~ /[{]/)
        sub(/\(.*/, ";", text)
    match(text, /[a-z_]+;\n?$/)
    text = substr(text, RSTART)
    sub(/;.*/, "", text)
    type_names[file] = type_names[file] " " text
}

# Before it stands what the header as a whole is about.
is_header && /^\/\* SPDX/ { comment = shown = ""; next }

is_header && /^\/\*/ {
    in_comment = 1
    comment = shown = ""
}

is_header && in_comment {
    comment = comment uncomment($0) "\n"
    shown = shown $0 "\n"
    if ($0 ~ /\*\/$/)
        in_comment = 0
    next
}

is_header && /^DIBS_API/ { in_function = 1; declaration = "" }

is_header && in_function {
    declaration = declaration $0 " "
    if ($0 ~ /;$/) {
        keep_function(declaration)
        in_function = 0
        shown = ""
    }
    next
}

is_header && /^#define DIBS_[A-Z_]+\(/ { keep_macro($0); shown = ""; next }
is_header && /^#define DIBS_VERSION_M|^#define DIBS_VERSION_P/ { next }
is_header && /^#define DIBS_[A-Z_]+ +[0-9U(]/ { show($0 "\n"); next }

is_header && /^(typedef|enum) / { in_type = 1; type = ""; braces = 0 }

is_header && in_type {
    type = type $0 "\n"
    braces += gsub(/[{]/, "{") - gsub(/[}]/, "}")
    if (braces == 0 && $0 ~ /;$/) {
        note_type(type)
        show(type)
        in_type = 0
    }
    next
}

is_header { next }

# --- pages ---

# A line of text that troff takes for text.
function put_line(line) {
    gsub(/\\/, "\\e", line)
    while (match(line, /`[^`]+`/))
        line = substr(line, 1, RSTART - 1) "\\fI" substr(line, RSTART + 1, RLENGTH - 2) "\\fP" \
            substr(line, RSTART + RLENGTH)
    if (line ~ /^[.']/)
        line = "\\&" line
    print line > target
}

# Filled text, a sentence on a line.
function put_text(    i, lines, total) {
    if (text == "")
        return
    gsub(/\. +/, ".\n", text)
    total = split(text, lines, "\n")
    for (i = 1; i <= total; i++)
        put_line(lines[i])
    text = ""
}

function end_block() {
    put_text()
    if (block == "list")
        print ".El" > target
    if (block == "code")
        print ".Ed" > target
    block = ""
}

# "  DIBS_LOST  the lease has ended": an entry of a list.
function put_item(line,    tag) {
    if (block != "list") {
        end_block()
        print ".Bl -tag -width DIBS_UNSUPPORTED" > target
    }
    put_text()
    block = "list"
    sub(/^ +/, "", line)
    tag = line
    sub(/  .*/, "", tag)
    text = substr(line, length(tag) + 1)
    sub(/^ +/, "", text)
    gsub(/, /, " , ", tag)
    print ".It " (tag ~ /^DIBS_/ ? "Dv " : "") tag > target
}

function put_comment_line(line) {
    if (block == "code" && line !~ /^    / && line != "")
        end_block()
    if (line ~ /^  [A-Za-z_, ]*[A-Za-z_]  +[^ ]/ && block != "code") {
        put_item(line)
    } else if (block == "list" && line ~ /^   /) {
        sub(/^ +/, "", line)
        text = text " " line
    } else if (line ~ /^    / && block != "list") {
        if (block != "code") {
            end_block()
            print ".Bd -literal" > target
        }
        block = "code"
        put_line(substr(line, 5))
    } else if (line == "") {
        end_block()
        pause = 1
    } else {
        if (block != "")
            end_block()
        if (pause)
            print ".Pp" > target
        pause = 0
        text = text (text == "" ? "" : " ") line
    }
}

function put_comment(comment,    i, lines, total) {
    text = block = ""
    pause = 0
    sub(/\n+$/, "", comment)
    total = split(comment, lines, "\n")
    for (i = 1; i <= total; i++)
        put_comment_line(lines[i])
    end_block()
}

function put_synopsis(file,    i, j, args, total) {
    for (i = 1; i <= count[file]; i++) {
        if (kind_of[file, i] == "function") {
            sub(/ $/, "", type_of[file, i])
            print ".Ft " (type_of[file, i] ~ / / ? "\"" type_of[file, i] "\"" : type_of[file, i]) > target
        }
        print ".Fo " name_of[file, i] > target
        total = split(args_of[file, i], args, / *, */)
        for (j = 1; j <= total; j++)
            print ".Fa \"" args[j] "\"" > target
        print ".Fc" > target
    }
}

# Functions without a comment of their own share the one before.
function put_functions(file,    i, names) {
    for (i = 1; i <= count[file]; i++) {
        names = names (names == "" ? "" : ", ") name_of[file, i]
        if (i < count[file] && comment_of[file, i + 1] == "") {
            comment_of[file, i + 1] = comment_of[file, i]
            continue
        }
        print ".Ss " names > target
        put_comment(comment_of[file, i])
        names = ""
    }
}

function put_types(file,    i, lines, total) {
    total = split(types[file], lines, "\n")
    if (total < 2)
        return
    print ".Bd -literal" > target
    for (i = 1; i < total; i++) {
        gsub(/\\/, "\\e", lines[i])
        print lines[i] > target
    }
    print ".Ed" > target
}

function put_link(name) {
    if ((name ".3") in pages || name in linked)
        return
    linked[name] = 1
    print ".so man3/" page > (out "/" name ".3")
    close(out "/" name ".3")
}

function put_names(file, more,    i, names, total) {
    for (i = 1; i <= count[file]; i++) {
        print ".Nm " name_of[file, i] (more || i < count[file] ? " ," : "") > target
        links[++link_count] = name_of[file, i] " " page
    }
    total = split(type_names[file], names, " ")
    for (i = 1; i <= total; i++)
        links[++link_count] = names[i] " " page
}

FNR == 1 { target = out "/" page }

/^\.\\" @/ {
    for (i = 3; i <= NF; i++) {
        if (!($i in count)) {
            print FILENAME ":" FNR ": there is no function in " $i > "/dev/stderr"
            exit 1
        }
        if ($2 == "@names")
            put_names($i, i < NF)
        else if ($2 == "@synopsis")
            put_synopsis($i)
        else if ($2 == "@functions")
            put_functions($i)
        else if ($2 == "@types")
            put_types($i)
        else {
            print FILENAME ":" FNR ": there is no request " $2 > "/dev/stderr"
            exit 1
        }
    }
    next
}

{ print > target }

# Links come last: by then every page is known.
END {
    for (i = 1; i <= link_count; i++) {
        split(links[i], pair, " ")
        page = pair[2]
        put_link(pair[1])
    }
}
