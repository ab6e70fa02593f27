/* verbs.h - the one list of verbs, and that of their options.
 *
 * Dispatch, help, man pages and completion read it. A verb's row stands beside its
 * code, in verb_*.c; the list in verbs.c names it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_VERBS_H
#define DIBS_CLI_VERBS_H

#include "cli/command.h"
#include "cli/options.h"

/* The operands that a shell can offer. */
typedef enum dibs__operand_kind {
    DIBS__NOTHING,
    DIBS__LOCKS,   /* names of locks in use */
    DIBS__COMMAND, /* a name of a lock, then a command */
    DIBS__KEYS,    /* keys of values */
    DIBS__QUEUES,  /* names of queues; then a command if `tail` is set */
    DIBS__TOPICS,  /* names of topics with events */
    DIBS__VERBS,
    DIBS__SHELLS,
    DIBS__FILES /* paths, all operands */
} dibs__operand_kind;

typedef struct dibs__verb {
    const char *name;     /* "run"; "state get" is a verb of the group state */
    const char *also;     /* another last word for it, or NULL */
    const char *operands; /* as in a synopsis: "NAME [--] COMMAND..." */
    const char *summary;  /* one line, no full stop */
    const char *about;    /* paragraphs, each one line, or NULL */
    const char *examples; /* lines; two spaces before what is typed */
    const char *exits;    /* lines: a code, a space, its meaning */
    const char *options;  /* "json,ttl": shared options that it has, besides
                           * those whose rows name it; or NULL */
    int min_operands;
    int max_operands; /* -1: without limit */
    dibs__operand_kind kind;
    bool tail;          /* a command follows, whose options are not ours */
    int names;          /* of a tail: operands before it; 0: one */
    bool plain;         /* needs no configuration: works when that is broken */
    dibs__verb_fn *run; /* NULL for a group */
} dibs__verb;

/* Parts of the rows of verbs that run a command: its operands, and exit codes. */
/* clang-format off */
#define DIBS__TAKES_COMMAND                                                    \
    .max_operands = -1, .kind = DIBS__COMMAND, .tail = true
#define DIBS__COMMAND_EXITS                                                    \
    "125 dibs itself failed around the command\n"                              \
    "126 the command could not be run\n"                                       \
    "127 there is no such command\n"                                           \
    "128+N ended by signal N\n"
/* clang-format on */

extern const dibs__verb *const dibs__verbs[];
extern const size_t dibs__verb_count;

/* Every group of options; see cli/options.h. */
extern const dibs__option_rows *const dibs__option_groups[];
extern const size_t dibs__option_group_count;

/* The heading in help of verb `i`. Verbs of one heading stand together. */
const char *dibs__verb_heading(size_t i);

/* By its whole name; NULL when there is none. */
const dibs__verb *dibs__verb_find(const char *name);

/* The verb `word` of `group` ("" for the top), or NULL. */
const dibs__verb *dibs__verb_in(const char *group, const char *word);

/* The last word of the name: "get" for "state get". */
const char *dibs__verb_word(const dibs__verb *verb);

/* The operands before the command of a tail. */
int dibs__verb_names(const dibs__verb *verb);

/* True when `verb` is directly in `group` ("" for the top). */
bool dibs__verb_is_in(const dibs__verb *verb, const char *group);

/* Exit codes that every verb may give, in the form of `exits`. */
extern const char dibs__common_exits[];

#endif
