/* help.c - help from the tables. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, OPTION_COLUMN = 26 };

void dibs__wrap(dibsx_buf *out, const char *text, size_t indent, size_t at)
{
    bool first = true;

    while (*text) {
        size_t len = strcspn(text, " ");

        if (!first && at + 1 + len > WIDTH) {
            dibsx_buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            dibsx_buf_putc(out, ' ');
            at++;
        }
        dibsx_buf_add(out, text, len);
        at += len;
        text += len;
        text += strspn(text, " ");
        first = false;
    }
    dibsx_buf_putc(out, '\n');
}

bool dibs__next_line(const char **text, const char **line, size_t *len)
{
    if (!*text || !**text)
        return false;
    *line = *text;
    *len = strcspn(*text, "\n");
    *text += *len;
    if (**text)
        ++*text;
    return true;
}

static void
heading(dibsx_buf *out, const char *text, const dibs__colours *colours)
{
    dibsx_buf_printf(out, "\n%s%s:%s\n", colours->bold, text, colours->off);
}

/* "-w, --wait, --timeout DUR" */
static void option_forms(char *out, size_t size, const dibs__option *option)
{
    const char *alias = option->aliases;
    int at =
        snprintf(out, size, option->letter ? "-%c, " : "    ", option->letter);

    at += snprintf(out + at, size - (size_t)at, "--%s", option->name);
    while (alias) {
        size_t len = strcspn(alias, ",");

        at +=
            snprintf(out + at, size - (size_t)at, ", --%.*s", (int)len, alias);
        alias = alias[len] ? alias + len + 1 : NULL;
    }
    if (option->metavar)
        snprintf(out + at, size - (size_t)at, " %s", option->metavar);
}

static void option_help(dibsx_buf *out, const dibs__option *option)
{
    char forms[128], text[640];
    size_t at;
    const char *initial =
        option->otherwise ? option->otherwise : option->initial;
    int len = snprintf(text, sizeof(text), "%s", option->help);

    if (initial && option->type != DIBS__FLAG)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        " (default: %s)", initial);
    if (option->env)
        snprintf(text + len, sizeof(text) - (size_t)len, " [%s]", option->env);
    option_forms(forms, sizeof(forms), option);
    dibsx_buf_printf(out, "  %s", forms);
    at = strlen(forms) + 2;
    if (at + 2 > OPTION_COLUMN)
        dibsx_buf_printf(out, "\n%*s", OPTION_COLUMN, "");
    else
        dibsx_buf_printf(out, "%*s", OPTION_COLUMN - (int)at, "");
    dibs__wrap(out, text, OPTION_COLUMN, OPTION_COLUMN);
}

static void options_help(dibsx_buf *out, const char *verb, bool global,
                         const dibs__colours *colours)
{
    bool any = false;

    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        if (option->hidden || dibs__option_global(option) != global ||
            !dibs__option_has_verb(option, verb))
            continue;
        if (!any)
            heading(out, global ? "Options of every verb" : "Options", colours);
        any = true;
        option_help(out, option);
    }
}

static void verb_line(dibsx_buf *out, const dibs__verb *verb)
{
    dibsx_buf_printf(out, "  %-12s%s\n", dibs__verb_word(verb), verb->summary);
}

/* The verbs of a group, such as state. */
static void
group_help(dibsx_buf *out, const char *group, const dibs__colours *colours)
{
    heading(out, "Verbs", colours);
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (dibs__verb_is_in(dibs__verbs[i], group))
            verb_line(out, dibs__verbs[i]);
    }
}

/* All others, under their headings. */
static void verbs_help(dibsx_buf *out, const dibs__colours *colours)
{
    const char *last = "";

    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (!dibs__verb_is_in(dibs__verbs[i], ""))
            continue;
        if (strcmp(dibs__verb_heading(i), last) != 0)
            heading(out, dibs__verb_heading(i), colours);
        last = dibs__verb_heading(i);
        verb_line(out, dibs__verbs[i]);
    }
}

void dibs__help_brief(dibsx_buf *out, const dibs__colours *colours)
{
    dibsx_buf_printf(out,
                     "%sdibs%s - locks and shared state for many processes on "
                     "many machines\n\n"
                     "Usage: dibs [OPTIONS] VERB [OPTIONS] [OPERANDS]\n",
                     colours->bold, colours->off);
    verbs_help(out, colours);
    dibsx_buf_puts(out,
                   "\nTry 'dibs run NAME -- COMMAND', and 'dibs help VERB' "
                   "for more.\n");
}

void dibs__help_overview(dibsx_buf *out, const dibs__colours *colours)
{
    dibs__help_brief(out, colours);
    options_help(out, "", true, colours);
}

static void paragraphs(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;
    char one[1024];

    while (dibs__next_line(&text, &line, &len)) {
        snprintf(one, sizeof(one), "%.*s", (int)len, line);
        dibsx_buf_putc(out, '\n');
        dibs__wrap(out, one, 0, 0);
    }
}

/* The line of an exit code, which is the first word; NULL: there is none. */
static const char *
find_exit(const char *text, const char *code, size_t code_len, size_t *len)
{
    const char *line;

    while (dibs__next_line(&text, &line, len))
        if (strcspn(line, " ") == code_len &&
            strncmp(line, code, code_len) == 0)
            return line + code_len + 1;
    return NULL;
}

void dibs__verb_exits(dibsx_buf *out, const dibs__verb *verb)
{
    const char *text = verb->exits, *line, *other;
    size_t len, other_len;

    while (dibs__next_line(&text, &line, &len)) {
        size_t code = strcspn(line, " ");

        dibsx_buf_add(out, line, len);
        other = find_exit(dibs__common_exits, line, code, &other_len);
        other_len -= other ? code + 1 : 0;
        if (other && strncmp(line + code + 1, other, other_len) != 0)
            dibsx_buf_printf(out, "; or %.*s", (int)other_len, other);
        dibsx_buf_putc(out, '\n');
    }
    text = dibs__common_exits;
    while (dibs__next_line(&text, &line, &len))
        if (!find_exit(verb->exits, line, strcspn(line, " "), &other_len))
            dibsx_buf_printf(out, "%.*s\n", (int)len, line);
}

static void exits_help(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;
    char one[512];

    while (dibs__next_line(&text, &line, &len)) {
        size_t code = strcspn(line, " ");

        dibsx_buf_printf(out, "  %-7.*s", (int)code, line);
        snprintf(one, sizeof(one), "%.*s", (int)(len - code - 1),
                 line + code + 1);
        dibs__wrap(out, one, 9, 9);
    }
}

static void examples_help(dibsx_buf *out, const char *text)
{
    const char *line;
    size_t len;

    while (dibs__next_line(&text, &line, &len))
        dibsx_buf_printf(out, "  %.*s\n", (int)len, line);
}

void dibs__help_verb(dibsx_buf *out, const dibs__verb *verb,
                     const dibs__colours *colours)
{
    dibsx_buf exits;

    dibsx_buf_printf(out, "%sdibs %s%s - %s\n\n", colours->bold, verb->name,
                     colours->off, verb->summary);
    dibsx_buf_printf(out, "Usage: dibs %s%s%s%s\n", verb->name,
                     verb->run ? " [OPTIONS]" : "", verb->operands ? " " : "",
                     verb->operands ? verb->operands : "");
    paragraphs(out, verb->about);
    if (!verb->run) {
        group_help(out, verb->name, colours);
        dibsx_buf_printf(out, "\nTry 'dibs help %s VERB'.\n", verb->name);
        return;
    }
    options_help(out, verb->name, false, colours);
    dibsx_buf_puts(out, "\n");
    dibs__wrap(out,
               "Every verb also has the options that 'dibs help' shows: --url, "
               "-q, -v and others.",
               0, 0);
    if (verb->examples) {
        heading(out, "Examples", colours);
        examples_help(out, verb->examples);
    }
    heading(out, "Exit codes", colours);
    dibsx_buf_init(&exits, DIBS__DOC_MAX);
    dibs__verb_exits(&exits, verb);
    exits_help(out, dibsx_buf_text(&exits));
    dibsx_buf_fini(&exits);
}

int dibs__doc_print(dibsx_buf *out)
{
    int code = DIBS__EXIT_INTERNAL;

    if (dibsx_buf_ok(out)) {
        dibs__out(out->data, out->len);
        code = dibs__out_done();
    } else {
        code = dibs__cli_nomem("the text");
    }
    dibsx_buf_fini(out);
    return code;
}
