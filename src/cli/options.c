/* options.c - the options of every verb, those that many verbs ask for, and looking
 * things up among all. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/options.h"
#include "cli/verbs.h"
#include "config/settings.h"

#include <assert.h>
#include <string.h>

static const dibs__option every_verb[] = {
    {DIBS__SETTING_URL, .metavar = "URL", .offers = DIBS__URLS "|file:",
     .otherwise =
         "an embedded store of this user's own, under $XDG_STATE_HOME/dibs or "
         "~/.local/state/dibs (root: /var/lib/dibs)",
     .help = "The store to use, such as sqlite:/var/lib/dibs/locks.db; sqlite: "
             "alone is the default. A path that begins with /, ./ or ../ is a "
             "file of the embedded store. file:PATH reads the URL from a file, "
             "to keep passwords out of command lines and environments."},
    {DIBS__SETTING_PREFIX, .metavar = "TEXT", .otherwise = "none",
     .help = "Text put before every name in the store, of locks, values, "
             "queues, topics and all others, such as workflow:. Names are "
             "shown without it."},
    {DIBS__SETTING_STORE_TIMEOUT, .metavar = "DUR",
     .help = "The time limit of one operation in the store."},
    {DIBS__SETTING_CONFIG, .metavar = "FILE",
     .otherwise = "/etc/dibs/dibs.yaml, then $XDG_CONFIG_HOME/dibs/config.yaml",
     .help = "Read this configuration file instead of the usual ones."},
    {DIBS__SETTING_COLOR, .aliases = "colour", .metavar = "WHEN",
     .help = "Whether to use colour: auto uses it on a terminal, except when "
             "NO_COLOR is set or TERM is dumb."},
    {.name = "quiet",
     .letter = 'q',
     .help = "Say nothing on standard error; the exit code tells."},
    {.name = "verbose",
     .letter = 'v',
     .help = "Say on standard error what is being done; twice for more."},
    {DIBS__SETTING_LOG_LEVEL, .metavar = "LEVEL",
     .help = "How much the library says on standard error. -v is info and -vv "
             "is debug; trace shows every event in the life of a lease, with "
             "its time."},
    {.name = "help", .letter = 'h', .help = "Show help and stop."},
    {.name = "version", .letter = 'V', .help = "Show the version and stop."},
};

const dibs__option_rows dibs__options_every =
    DIBS__OPTION_ROWS("*", every_verb);

/* Options that many verbs have: each names those that it has in its own row. */
static const dibs__option looking[] = {
    {.name = "json", .help = "Print JSON, with \"schema\":1 to tell its form."},
    {.name = "yes",
     .letter = 'y',
     .help = "Do not ask; needed when there is no terminal."},
    {.name = "names", .help = "Print only the names, one on a line."},
    {DIBS__ROW_TEXT("reason", "TEXT"),
     .help = "Why, for the trail of the store (dibs trail)."},
    {DIBS__ROW_INTERVAL, .initial = "1s",
     .help = "How often to look; what comes and goes between two looks is not "
             "seen."},
    {DIBS__ROW_INTERVAL, .initial = "250ms", .verbs = "wait",
     .help = "The longest pause between two looks. They come sooner at first, "
             "and when a lease ends."},
    {DIBS__ROW_INTERVAL, .initial = "1s", .verbs = "trail",
     .help = "With --follow: how often to look for what was added."},
    {.name = "stale",
     .help = "Only leases whose holder seems to be gone: it has missed a "
             "renewal and its process is gone from this host, or it has "
             "missed two."},
};

const dibs__option_rows dibs__options_look = DIBS__SHARED_ROWS(NULL, looking);

size_t dibs__option_count(void)
{
    size_t count = 0;

    for (size_t g = 0; g < dibs__option_group_count; g++)
        count += dibs__option_groups[g]->count;
    assert(count <= DIBS__OPTION_MAX);
    return count;
}

const dibs__option *dibs__option_at(size_t i)
{
    size_t g = 0;

    while (i >= dibs__option_groups[g]->count)
        i -= dibs__option_groups[g++]->count;
    return &dibs__option_groups[g]->rows[i];
}

static bool is_among(const dibs__option *option, const dibs__option_rows *group)
{
    return option >= group->rows && option < group->rows + group->count;
}

/* The group that has this row. `before` (may be NULL) becomes the number of rows
 * that come before the group's. */
static const dibs__option_rows *
group_of(const dibs__option *option, size_t *before)
{
    const dibs__option_rows *const *group = dibs__option_groups;
    size_t count = 0;

    while (!is_among(option, *group))
        count += (*group++)->count;
    if (before)
        *before = count;
    return *group;
}

size_t dibs__option_index(const dibs__option *option)
{
    size_t before;
    const dibs__option_rows *group = group_of(option, &before);

    return before + (size_t)(option - group->rows);
}

/* The verbs that the row names, or else its group. */
static const char *verbs_of(const dibs__option *option)
{
    return option->verbs ? option->verbs : group_of(option, NULL)->verbs;
}

bool dibs__option_global(const dibs__option *option)
{
    const char *verbs = verbs_of(option);

    return verbs && verbs[0] == '*';
}

/* The verb's own row names it. */
static bool is_asked_for(const dibs__option *option, const char *verb)
{
    const dibs__verb *row = dibs__verb_find(verb);

    return row && !option->verbs && group_of(option, NULL)->shared &&
           dibs__list_has(row->options, ',', option->name,
                          strlen(option->name));
}

bool dibs__option_has_verb(const dibs__option *option, const char *verb)
{
    return dibs__option_global(option) ||
           dibs__list_has(verbs_of(option), ',', verb, strlen(verb)) ||
           is_asked_for(option, verb);
}

static bool is_named(const dibs__option *option, const char *name, size_t len)
{
    return (strlen(option->name) == len &&
            memcmp(option->name, name, len) == 0) ||
           dibs__list_has(option->aliases, ',', name, len);
}

const dibs__option *
dibs__option_find(const char *verb, const char *name, size_t len)
{
    for (size_t i = 0, count = dibs__option_count(); i < count; i++) {
        const dibs__option *option = dibs__option_at(i);

        if (is_named(option, name, len) && dibs__option_has_verb(option, verb))
            return option;
    }
    return NULL;
}

const dibs__option *dibs__option_letter(const char *verb, char letter)
{
    for (size_t i = 0, count = dibs__option_count(); i < count; i++) {
        const dibs__option *option = dibs__option_at(i);

        if (option->letter == letter && dibs__option_has_verb(option, verb))
            return option;
    }
    return NULL;
}
