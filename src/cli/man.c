/* man.c - man pages in mdoc, from the tables: dibs(1), dibs-VERB(1) and
 * dibs.yaml(5). Run by the build. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/print.h"
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Text as roff text: escapes are spelt out, and no line begins like a macro. A
 * sentence ends its line, as roff likes it. */
static void prose_n(dibsx_buf *out, const char *text, size_t len)
{
    bool line_begins = true;

    for (size_t i = 0; i < len; i++) {
        if (line_begins && (text[i] == '.' || text[i] == '\''))
            dibsx_buf_puts(out, "\\&");
        line_begins = false;
        if (text[i] == '\\') {
            dibsx_buf_puts(out, "\\e");
        } else if (text[i] == '-') {
            dibsx_buf_puts(out, "\\-");
        } else if (text[i] == ' ' && i > 0 && strchr(".?!", text[i - 1])) {
            dibsx_buf_putc(out, '\n');
            line_begins = true;
        } else {
            dibsx_buf_putc(out, text[i]);
        }
    }
    dibsx_buf_putc(out, '\n');
}

static void prose(dibsx_buf *out, const char *text)
{
    prose_n(out, text, strlen(text));
}

static void paragraphs(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;
    bool first = true;

    while (dibs__next_line(&text, &line, &len)) {
        if (!first)
            dibsx_buf_puts(out, ".Pp\n");
        first = false;
        prose_n(out, line, len);
    }
}

/* The day of the build; SOURCE_DATE_EPOCH makes it repeatable. */
static void
head(dibsx_buf *out, const char *page, int section, const char *summary)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t now = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    struct tm tm;
    char month[16] = "January";

    gmtime_r(&now, &tm);
    strftime(month, sizeof(month), "%B", &tm);
    dibsx_buf_printf(out, ".Dd %s %d, %d\n.Dt ", month, tm.tm_mday,
                     tm.tm_year + 1900);
    for (const char *p = page; *p; p++)
        dibsx_buf_putc(out, (char)toupper((unsigned char)*p));
    dibsx_buf_printf(out, " %d\n.Os\n.Sh NAME\n.Nm %s\n.Nd ", section, page);
    prose(out, summary);
}

/* ".It Fl w , Fl -wait , Fl -timeout Ar DUR" */
static void option_item(dibsx_buf *out, const dibs__option *option)
{
    const char *alias = option->aliases;

    dibsx_buf_puts(out, ".It ");
    if (option->letter)
        dibsx_buf_printf(out, "Fl %c , ", option->letter);
    dibsx_buf_printf(out, "Fl \\-%s", option->name);
    while (alias) {
        size_t len = strcspn(alias, ",");

        dibsx_buf_printf(out, " , Fl \\-%.*s", (int)len, alias);
        alias = alias[len] ? alias + len + 1 : NULL;
    }
    if (option->metavar)
        dibsx_buf_printf(out, " Ar %s", option->metavar);
    dibsx_buf_putc(out, '\n');
    prose(out, option->help);
    if (option->choices)
        dibsx_buf_printf(out, "One of %s.\n", option->choices);
    if (option->otherwise || option->initial) {
        dibsx_buf_puts(out, "Default: ");
        prose(out, option->otherwise ? option->otherwise : option->initial);
    }
}

static void options(dibsx_buf *out, const char *verb, bool global)
{
    bool any = false;

    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        if (option->hidden || dibs__option_global(option) != global ||
            !dibs__option_has_verb(option, verb))
            continue;
        if (!any)
            dibsx_buf_puts(out, ".Bl -tag -width Ds\n");
        any = true;
        option_item(out, option);
    }
    if (any)
        dibsx_buf_puts(out, ".El\n");
}

/* The verbs whose option has the variable: others have one of that name without it. */
static void variable_readers(dibsx_buf *out, const dibs__option *option)
{
    const char *before = "of ";

    for (size_t v = 0; v < dibs__verb_count; v++) {
        const char *verb = dibs__verbs[v]->name;

        if (!dibs__option_has_verb(option, verb))
            continue;
        dibsx_buf_printf(out, "%s%s", before, verb);
        before = ",\n";
    }
    dibsx_buf_puts(out, ".\n");
}

static void
variable_item(dibsx_buf *out, const dibs__option *option, const char *verb)
{
    bool plain = verb || dibs__option_global(option);

    dibsx_buf_printf(out, ".It Ev %s\nThe default of\n.Fl \\-%s%s\n",
                     option->env, option->name, plain ? " ." : "");
    if (!plain)
        variable_readers(out, option);
}

/* Only what the verb reads; NULL for all. */
static void environment(dibsx_buf *out, const char *verb)
{
    dibsx_buf_puts(out, ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n");
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        if (option->env && (!verb || dibs__option_has_verb(option, verb)))
            variable_item(out, option, verb);
    }
    dibsx_buf_puts(out, ".It Ev NO_COLOR\nIf it is not empty, colour is off by "
                        "default.\n.El\n");
}

static void exit_items(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;

    while (dibs__next_line(&text, &line, &len)) {
        size_t code = strcspn(line, " ");

        dibsx_buf_printf(out, ".It %.*s\n", (int)code, line);
        prose_n(out, line + code + 1, len - code - 1);
    }
}

static void exits(dibsx_buf *out, const dibs__verb *verb)
{
    dibsx_buf text;

    dibsx_buf_init(&text, DIBS__DOC_MAX);
    dibs__verb_exits(&text, verb);
    dibsx_buf_puts(out, ".Sh EXIT STATUS\n.Bl -tag -width 0\\-255 -compact\n");
    exit_items(out, dibsx_buf_text(&text));
    dibsx_buf_puts(out, ".El\n");
    dibsx_buf_fini(&text);
}

/* Lines to type go into literal blocks, the rest is prose. */
static void examples(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;
    bool literal = false, first = true;

    while (dibs__next_line(&text, &line, &len)) {
        bool typed = len > 2 && memcmp(line, "  ", 2) == 0;

        if (literal && !typed)
            dibsx_buf_puts(out, ".Ed\n.Pp\n");
        if (!literal && typed)
            dibsx_buf_puts(out, ".Bd -literal -offset indent\n");
        if (typed)
            dibsx_buf_printf(out, "%.*s\n", (int)len - 2, line + 2);
        else
            prose_n(out, line, len);
        literal = typed;
        first = false;
    }
    if (literal && !first)
        dibsx_buf_puts(out, ".Ed\n");
}

static void page_name(char *out, size_t size, const dibs__verb *verb)
{
    snprintf(out, size, "dibs-%s", verb->name);
    for (char *p = out; *p; p++) {
        if (*p == ' ')
            *p = '-';
    }
}

static void verb_item(dibsx_buf *out, const dibs__verb *verb)
{
    char page[64];

    page_name(page, sizeof(page), verb);
    dibsx_buf_printf(out, ".It Xr %s 1\n", page);
    prose(out, verb->summary);
}

/* A list of the verbs in a group, such as state, with their pages. */
static void group_items(dibsx_buf *out, const char *group)
{
    dibsx_buf_puts(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (dibs__verb_is_in(dibs__verbs[i], group))
            verb_item(out, dibs__verbs[i]);
    }
    dibsx_buf_puts(out, ".El\n");
}

/* All others, a list under each heading. */
static void verb_items(dibsx_buf *out)
{
    const char *last = "";

    for (size_t i = 0; i < dibs__verb_count; i++) {
        const char *heading = dibs__verb_heading(i);

        if (!dibs__verb_is_in(dibs__verbs[i], ""))
            continue;
        if (strcmp(heading, last) != 0)
            dibsx_buf_printf(out, "%s.Ss %s\n.Bl -tag -width Ds\n",
                             *last ? ".El\n" : "", heading);
        last = heading;
        verb_item(out, dibs__verbs[i]);
    }
    dibsx_buf_puts(out, ".El\n");
}

static void synopsis(dibsx_buf *out, const dibs__verb *verb)
{
    dibsx_buf_printf(out, ".Sh SYNOPSIS\n.Nm dibs %s\n", verb->name);
    if (verb->run)
        dibsx_buf_puts(out, ".Op Ar OPTIONS\n");
    if (verb->operands) {
        dibsx_buf_puts(out, ".Ar ");
        for (const char *p = verb->operands; *p; p++)
            dibsx_buf_printf(out, *p == '|' ? " \\*(Ba " : "%c", *p);
        dibsx_buf_putc(out, '\n');
    }
}

static void verb_page(dibsx_buf *out, const dibs__verb *verb)
{
    char page[64];

    page_name(page, sizeof(page), verb);
    head(out, page, 1, verb->summary);
    synopsis(out, verb);
    dibsx_buf_puts(out, ".Sh DESCRIPTION\n");
    if (verb->about)
        paragraphs(out, verb->about);
    else
        dibsx_buf_printf(out, "See\n.Xr dibs 1\nfor the terms.\n");
    if (!verb->run) {
        group_items(out, verb->name);
        dibsx_buf_puts(out, ".Sh SEE ALSO\n.Xr dibs 1\n");
        return;
    }
    dibsx_buf_puts(out, ".Pp\nThe options are:\n");
    options(out, verb->name, false);
    dibsx_buf_puts(out, ".Pp\nEvery verb has these:\n");
    options(out, verb->name, true);
    environment(out, verb->name);
    exits(out, verb);
    if (verb->examples) {
        dibsx_buf_puts(out, ".Sh EXAMPLES\n");
        examples(out, verb->examples);
    }
    dibsx_buf_puts(out, ".Sh SEE ALSO\n.Xr dibs 1 ,\n.Xr dibs.yaml 5\n");
}

static void files(dibsx_buf *out)
{
    dibsx_buf_puts(out,
                   ".Sh FILES\n.Bl -tag -width Ds\n.It Pa " DIBS__CONFIG_SYSTEM
                   "\nThe configuration of the machine.\n.It Pa "
                   "$XDG_CONFIG_HOME/" DIBS__CONFIG_USER
                   "\nThe configuration of the user, which wins; under\n"
                   ".Pa ~/.config\nwhen the variable is not set.\n.El\n");
}

static void main_page(dibsx_buf *out)
{
    head(out, "dibs", 1,
         "locks and shared state for many processes on many machines");
    dibsx_buf_puts(out, ".Sh SYNOPSIS\n.Nm dibs\n.Op Ar OPTIONS\n.Ar VERB\n"
                        ".Op Ar OPTIONS\n.Op Ar OPERANDS\n.Sh DESCRIPTION\n");
    paragraphs(
        out,
        "A lock is a name that one process holds at a time. It is held as a "
        "lease: for a time, its ttl, and renewed while its holder lives. When "
        "the holder dies, the lease runs out and the next in the queue is "
        "served.\n"
        "Each grant has a fence, also called fencing token: a number that only "
        "rises. Hand it to what is being guarded and let that refuse a smaller "
        "one: then a late write by a former holder does no harm.\n"
        "Locks and values live in a store, which --url names. Without one it "
        "is an embedded store, good for the processes of one machine.\n"
        "Durations are written 500ms, 30s, 2m, 1h or 1h30m; a bare number is "
        "seconds. Data goes to standard output, talk to standard error.\n");
    dibsx_buf_puts(out,
                   ".Pp\nThe verbs are listed below, each with its page.\n");
    verb_items(out);
    dibsx_buf_puts(out, ".Ss Options of every verb\n"
                        "They may also stand before the verb.\n");
    options(out, "", true);
    environment(out, NULL);
    files(out);
    dibsx_buf_puts(out, ".Sh EXIT STATUS\nThe pages of the verbs tell theirs.\n"
                        "Common to all are:\n.Pp\n"
                        ".Bl -tag -width 64 -compact\n.It 0\nsuccess\n");
    exit_items(out, dibs__common_exits);
    dibsx_buf_puts(out, ".El\n.Sh EXAMPLES\nRun a command in one of many "
                        "processes:\n.Bd -literal -offset indent\n"
                        "dibs run nightly-backup -- ./backup.sh\n.Ed\n"
                        ".Sh SEE ALSO\n.Xr dibs-run 1 ,\n.Xr dibs.yaml 5\n");
}

static void yaml_page(dibsx_buf *out)
{
    head(out, "dibs.yaml", 5, "configuration of dibs");
    dibsx_buf_puts(out, ".Sh DESCRIPTION\n");
    paragraphs(out,
               "One mapping of keys to values. A flag wins over a DIBS_* "
               "variable, a variable over the user's file, that over the "
               "machine's file, and that over the default. An unknown or "
               "repeated key, an anchor, an alias or a tag is an error. A key "
               "without a value counts as not given.\n"
               "Programs whose client is opened without a URL read the same "
               "variables and files; see dibs_open in libdibs(3). A setuid "
               "program reads the machine's file only.\n");
    dibsx_buf_puts(out, ".Pp\nThe keys are:\n.Bl -tag -width Ds\n");
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        if (!option->key)
            continue;
        dibsx_buf_printf(out, ".It Ic %s\n", option->key);
        prose(out, option->help);
        dibsx_buf_puts(out, "Default: ");
        prose(out, option->otherwise ? option->otherwise : option->initial);
    }
    dibsx_buf_puts(out, ".El\n");
    files(out);
    dibsx_buf_puts(
        out,
        ".Sh EXAMPLES\n.Bd -literal\n"
        "url: sqlite:/var/lib/dibs/locks.db\n"
        "prefix: 'billing:'\nttl: 1m\nretries: 3\n.Ed\n"
        ".Sh SEE ALSO\n.Xr dibs 1 ,\n.Xr dibs-config 1 ,\n.Xr libdibs 3\n");
}

static int
write_page(dibsx_buf *out, const char *folder, const char *page, int section)
{
    char path[PATH_MAX];
    FILE *file;
    int code = DIBS__EXIT_INTERNAL;

    snprintf(path, sizeof(path), "%s/%s.%d", folder, page, section);
    file = dibsx_buf_ok(out) ? fopen(path, "w") : NULL;
    if (file) {
        fputs(dibsx_buf_text(out), file);
        if (fclose(file) == 0)
            code = 0;
    }
    if (code)
        dibs__cli_say("cannot write %s: %s", path, strerror(errno));
    dibsx_buf_reset(out);
    return code;
}

int dibs__man_write(const char *folder)
{
    char page[64];
    dibsx_buf out;
    int code;

    dibsx_buf_init(&out, DIBS__DOC_MAX);
    main_page(&out);
    code = write_page(&out, folder, "dibs", 1);
    for (size_t i = 0; i < dibs__verb_count && !code; i++) {
        verb_page(&out, dibs__verbs[i]);
        page_name(page, sizeof(page), dibs__verbs[i]);
        code = write_page(&out, folder, page, 1);
    }
    if (!code) {
        yaml_page(&out);
        code = write_page(&out, folder, "dibs.yaml", 5);
    }
    dibsx_buf_fini(&out);
    return code;
}
