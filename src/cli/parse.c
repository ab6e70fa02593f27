/* parse.c - the command line. Pure but for the memory of the operands, and for
 * secrets, which are taken out of argv. */
/* SPDX-License-Identifier: MIT */
#include "cli/parse.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/url.h"
#include "cli/synonyms.h"
#include <stdio.h>
#include <string.h>

/* A word that has this may have a password in it, and is not repeated. */
#define URL_SIGN "://"

/* Takes the secret out of a word of the command line, which others can read as
 * long as we run. */
static void hide(char *word)
{
    char shown[DIBSX_URL_MAX + 1];
    size_t len = strlen(word);

    dibsx_url_redact(word, shown, sizeof(shown));
    if (strcmp(word, shown) == 0)
        return;
    explicit_bzero(word, len);
    memcpy(word, shown, strnlen(shown, len));
}

/* Where in argv we are. */
typedef struct parser {
    dibs__command *cmd;
    int argc;
    char *const *argv;
    int at; /* the next word */
    bool options_over;
    dibs_error *err;
} parser;

static const char *verb_name(const parser *ps)
{
    return ps->cmd->verb ? ps->cmd->verb->name : "";
}

/* Says why an option is not known: it is another verb's, has another name here, is
 * misspelt, or neither. */
static dibs_status unknown_long(const parser *ps, const char *name, size_t len)
{
    const char *verb = verb_name(ps);
    dibsx_suggest sg = {.typed = name, .len = len};
    const char *meant = dibs__option_meant(verb, name, len);

    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        if (option->hidden)
            continue;
        if (strlen(option->name) == len && memcmp(option->name, name, len) == 0)
            return dibsx_fail(ps->err, DIBS_INVALID,
                              *verb ? "--%.*s is not an option of %s"
                                    : "--%.*s goes after the verb%s",
                              (int)len, name, verb);
        if (dibs__option_has_verb(option, verb))
            dibsx_suggest_offer(&sg, option->name);
    }
    if (!meant)
        meant = sg.best;
    if (meant)
        return dibsx_fail(ps->err, DIBS_INVALID,
                          "there is no option --%.*s; did you mean --%s?",
                          (int)len, name, meant);
    return dibsx_fail(ps->err, DIBS_INVALID, "there is no option --%.*s",
                      (int)len, name);
}

static dibs_status
take_value(parser *ps, const dibs__option *option, char *text, const char *name)
{
    dibs_status rc =
        dibs__option_value_put(ps->cmd, option, text, DIBS__FROM_FLAG, name,
                               NULL, ps->err);

    if (option->secret)
        hide(text);
    return rc;
}

/* The word after the option is its value, whatever it looks like. */
static dibs_status
take_next(parser *ps, const dibs__option *option, const char *name)
{
    if (ps->at >= ps->argc)
        return dibsx_fail(ps->err, DIBS_INVALID, "%s needs a value, %s", name,
                          option->metavar);
    return take_value(ps, option, ps->argv[ps->at++], name);
}

static dibs_status take_long(parser *ps, char *word)
{
    char *name = word + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const dibs__option *option = dibs__option_find(verb_name(ps), name, len);
    char shown[64];

    if (!option)
        return unknown_long(ps, name, len);
    snprintf(shown, sizeof(shown), "--%.*s", (int)len, name);
    if (option->type == DIBS__FLAG && equals)
        return dibsx_fail(ps->err, DIBS_INVALID, "%s takes no value", shown);
    if (option->type != DIBS__FLAG && !equals)
        return take_next(ps, option, shown);
    if (equals)
        return take_value(ps, option, equals + 1, shown);
    return dibs__option_value_put(ps->cmd, option, "yes", DIBS__FROM_FLAG,
                                  shown, NULL, ps->err);
}

/* "-nq", "-w5s", "-w 5s". */
static dibs_status take_cluster(parser *ps, char *word)
{
    dibs_status rc = DIBS_OK;

    for (char *p = word + 1; *p && rc == DIBS_OK; p++) {
        const dibs__option *option = dibs__option_letter(verb_name(ps), *p);
        char shown[3] = {'-', *p, '\0'};

        if (!option)
            return dibsx_fail(ps->err, DIBS_INVALID, "there is no option -%.1s",
                              p);
        if (option->type == DIBS__FLAG) {
            rc = dibs__option_value_put(ps->cmd, option, "yes", DIBS__FROM_FLAG,
                                        shown, NULL, ps->err);
            continue;
        }
        if (p[1])
            return take_value(ps, option, p + 1, shown);
        return take_next(ps, option, shown);
    }
    return rc;
}

/* The whole name of the verb of the group that is spelt most like the word, by its own
 * name or by one that people try; NULL: none is. */
static const char *nearest_verb(const char *group, const char *word)
{
    dibsx_suggest sg = {.typed = word};
    const dibs__verb *verb;

    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (dibs__verb_is_in(dibs__verbs[i], group))
            dibsx_suggest_offer(&sg, dibs__verb_word(dibs__verbs[i]));
    }
    for (size_t i = 0; i < dibs__verb_synonym_count; i++) {
        const char *tried = dibs__synonym_word(&dibs__verb_synonyms[i], group);

        if (tried)
            dibsx_suggest_offer(&sg, tried);
    }
    if (!sg.best)
        return NULL;
    verb = dibs__verb_in(group, sg.best);
    return verb ? verb->name : dibs__verb_meant(group, sg.best);
}

dibs_status
dibs__refuse_verb(const char *group, const char *word, dibs_error *err)
{
    const char *space = *group ? " " : "";
    const char *meant = dibs__verb_meant(group, word);

    if (strstr(word, URL_SIGN))
        return dibsx_fail(err, DIBS_INVALID,
                          "a URL is no verb; did you mean --url URL?");
    if (!meant)
        meant = nearest_verb(group, word);
    if (meant)
        return dibsx_fail(err, DIBS_INVALID,
                          "there is no verb '%s%s%.60s'; did you mean '%s'?",
                          group, space, word, meant);
    return dibsx_fail(err, DIBS_INVALID, "there is no verb '%s%s%.60s'", group,
                      space, word);
}

static bool needs_verb(const parser *ps)
{
    return !ps->cmd->verb || !ps->cmd->verb->run;
}

static dibs_status take_verb(parser *ps, const char *word)
{
    const dibs__verb *verb = dibs__verb_in(verb_name(ps), word);

    if (!verb)
        return dibs__refuse_verb(verb_name(ps), word, ps->err);
    ps->cmd->verb = verb;
    return DIBS_OK;
}

/* In a tail the first word of the command ends our options for good, and so
 * does "--" before it. */
static dibs_status take_operand(parser *ps, char *word)
{
    dibs__command *cmd = ps->cmd;

    if (needs_verb(ps))
        return take_verb(ps, word);
    if (cmd->verb->tail && cmd->operand_count == dibs__verb_names(cmd->verb))
        ps->options_over = true;
    cmd->operands[cmd->operand_count++] = word;
    return DIBS_OK;
}

/* "job resume -- RUN BOOKMARK": a verb that needs no command, and no word is left for one. */
static bool only_names_follow(const parser *ps, int missing)
{
    const dibs__verb *verb = ps->cmd->verb;

    return verb->min_operands == dibs__verb_names(verb) &&
           !dibs__option_find(verb->name, "command", 7) &&
           ps->at + missing == ps->argc;
}

/* "run -- backup.sh all" would take backup.sh for the name and run all. A second
 * "--" says that the word between them is the name: "run -- -odd -- backup.sh". */
static bool name_missing(const parser *ps)
{
    const dibs__command *cmd = ps->cmd;
    int missing = dibs__verb_names(cmd->verb) - cmd->operand_count;

    return cmd->verb->tail && missing > 0 &&
           !(dibs__option_find(cmd->verb->name, "command", 7) &&
             dibs__opt_given(cmd, "command")) &&
           !only_names_follow(ps, missing) &&
           (ps->at + missing >= ps->argc ||
            strcmp(ps->argv[ps->at + missing], "--") != 0);
}

/* Takes the "--" that ends the options. */
static dibs_status end_options(parser *ps)
{
    if (needs_verb(ps))
        return dibsx_fail(ps->err, DIBS_INVALID, "a verb must come before --");
    if (name_missing(ps))
        return dibsx_fail(ps->err, DIBS_INVALID,
                          "%s: the name is missing before --; write: dibs %s "
                          "%s -- COMMAND",
                          verb_name(ps), verb_name(ps),
                          ps->cmd->verb->names > 1 ? "RUN BOOKMARK" : "NAME");
    ps->options_over = true;
    return DIBS_OK;
}

static dibs_status take_word(parser *ps)
{
    char *word = ps->argv[ps->at++];
    bool command_next =
        !needs_verb(ps) && ps->cmd->verb->tail &&
        ps->cmd->operand_count == dibs__verb_names(ps->cmd->verb);

    if (strcmp(word, "--") == 0 && (!ps->options_over || command_next))
        return end_options(ps);
    if (ps->options_over || word[0] != '-' || word[1] == '\0' ||
        (word[1] >= '0' && word[1] <= '9'))
        return take_operand(ps, word);
    return word[1] == '-' ? take_long(ps, word) : take_cluster(ps, word);
}

dibs_status
dibs__parse(dibs__command *cmd, int argc, char *const *argv, dibs_error *err)
{
    parser ps = {.cmd = cmd, .argc = argc, .argv = argv, .at = 1, .err = err};
    dibs_status rc = DIBS_OK;

    cmd->operands = dibsx_zalloc_n((size_t)argc + 1, sizeof(char *));
    if (!cmd->operands)
        return dibsx_nomem(err, "the command line");
    while (ps.at < argc && rc == DIBS_OK)
        rc = take_word(&ps);
    return rc;
}

dibs_status dibs__parse_operands(const dibs__command *cmd, dibs_error *err)
{
    const dibs__verb *verb = cmd->verb;
    const char *word;

    if (!verb->run)
        return dibsx_fail(err, DIBS_INVALID, "%s needs a verb after it",
                          verb->name);
    if (cmd->operand_count < verb->min_operands)
        return dibsx_fail(err, DIBS_INVALID, "%s needs %s", verb->name,
                          verb->operands);
    if (verb->max_operands < 0 || cmd->operand_count <= verb->max_operands)
        return DIBS_OK;
    word = cmd->operands[verb->max_operands];
    if (strstr(word, URL_SIGN))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s takes fewer words, and a URL is none; did you "
                          "mean --url URL?",
                          verb->name);
    return dibsx_fail(err, DIBS_INVALID,
                      "%s takes fewer words: '%.60s' is too many", verb->name,
                      word);
}
