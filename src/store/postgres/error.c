/* error.c - what an error of libpq or of the server means for the caller. Pure.
 *
 * The promise to keep: DIBS_UNAVAIL only when nothing can have changed. A step is
 * one statement, which is a transaction of its own: when the server answers it
 * with an error it was rolled back. Not so when the connection ends, be it with a
 * word of the server: the statement may have been committed just before. Nor when a
 * pooler says that its own connection to the server has ended. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/error.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { STATE_LEN = 5, SHOWN = 150 };

typedef struct meaning {
    const char *state; /* of the SQLSTATE, as much as counts */
    dibs_status status;
    const char
        *text; /* what it is and what to do; NULL: what the server says */
} meaning;

static const meaning meanings[] = {
    {"08", DIBS_UNKNOWN, NULL},
    {"28", DIBS_DENIED, NULL},
    {"42501", DIBS_DENIED, NULL},
    {"3D000", DIBS_INVALID, NULL},
    {"42P01", DIBS_REFUSED,
     "the schema is not set up in this database; run `dibs store init`"},
    {"3F000", DIBS_REFUSED,
     "the schema is not set up in this database; run `dibs store init`"},
    {"42883", DIBS_REFUSED,
     "the schema lacks a function; run `dibs store upgrade`"},
    {"25006", DIBS_UNAVAIL,
     "the server is read-only, a standby perhaps; connect to its primary"},
    {"40001", DIBS_UNAVAIL, "others were faster each time; try again"},
    {"40P01", DIBS_UNAVAIL, "the server ended a deadlock; try again"},
    {"55P03", DIBS_UNAVAIL, "the server waited too long for a lock"},
    {"57014", DIBS_UNAVAIL, "the server cancelled it, as it took too long"},
    {"57P03", DIBS_UNAVAIL, "the server is starting, stopping or recovering"},
    {"53", DIBS_UNAVAIL, NULL},
    {"58", DIBS_UNAVAIL, NULL},
    {"22003", DIBS_INTERNAL, "the fences of this name are used up"},
    {"22021", DIBS_INVALID, "a name or text is not UTF-8"},
    {"22P05", DIBS_INVALID,
     "a name or text has a character that the database lacks; make one with "
     "ENCODING 'UTF8'"},
    {"54000", DIBS_UNAVAIL, NULL}, /* the queue of notifications is full */
};

static const meaning *meaning_of(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strncmp(sqlstate, meanings[i].state, strlen(meanings[i].state)) ==
            0)
            return &meanings[i];
    return NULL;
}

dibs_status dibs__pg_fail(const char *sqlstate, const char *message, bool fatal,
                          dibs_error *err)
{
    const meaning *m = meaning_of(sqlstate);
    const char *text = m && m->text ? m->text : message;

    if (fatal || !m)
        return dibsx_fail_at(err, fatal ? DIBS_UNKNOWN : DIBS_INTERNAL,
                             sqlstate, "the server answered: %.*s", SHOWN,
                             message);
    return dibsx_fail_at(err, m->status, sqlstate, "%.*s", SHOWN, text);
}

bool dibs__pg_again(const char *sqlstate)
{
    return strcmp(sqlstate, "40001") == 0 || strcmp(sqlstate, "40P01") == 0;
}

bool dibs__pg_stale(const char *sqlstate)
{
    return strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0 ||
           strcmp(sqlstate, "0A000") == 0;
}

/* Finds "FATAL:  28P01: ..." in any language; NULL when the server said nothing. */
static const char *find_state(const char *message)
{
    const char *at = message;

    while ((at = strstr(at, ":  ")) != NULL) {
        at += 3;
        if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == STATE_LEN &&
            at[STATE_LEN] == ':')
            return at;
    }
    return NULL;
}

/* The status for an error that libpq found, by its words. */
static dibs_status judge_words(const char *message, bool tried)
{
    static const struct {
        const char *words;
        dibs_status status;
    } known[] = {
        {"does not support SSL", DIBS_REFUSED},
        {"certificate", DIBS_DENIED},
        {"SSL error", DIBS_DENIED},
        {"host name", DIBS_UNAVAIL},
        {"no password supplied", DIBS_DENIED},
        {"out of memory", DIBS_NOMEM},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(message, known[i].words))
            return known[i].status;
    return tried ? DIBS_UNAVAIL : DIBS_INVALID;
}

dibs_status
dibs__pg_fail_connect(const char *message, bool tried, dibs_error *err)
{
    const char *state = find_state(message);
    const meaning *m;
    char code[STATE_LEN + 1];

    if (message[0] == '\0')
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "libpq could not connect, and does not say why; it "
                          "may be short of memory or of open files");
    if (!state)
        return dibsx_fail(err, judge_words(message, tried), "%.*s",
                          (int)strcspn(message, "\n"), message);
    snprintf(code, sizeof(code), "%.*s", STATE_LEN, state);
    m = meaning_of(code);
    if (m && m->status == DIBS_UNKNOWN)
        m = NULL; /* nothing was sent */
    return dibsx_fail_at(err, m ? m->status : DIBS_UNAVAIL, code, "%.*s",
                         (int)strcspn(state + STATE_LEN + 2, "\n"),
                         state + STATE_LEN + 2);
}
