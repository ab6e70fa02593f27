/* contract_commit.h - what the tests of commits share: names of one slot, one commit at a
 * time, and all that is there as text. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONTRACT_COMMIT_H
#define DIBS_CONTRACT_COMMIT_H

#include "contract.h"

enum { CONTRACT_DUMP = 16384 };

/* A name of the test's own slot; a few at a time stay valid. */
const char *commit_name(const contract *t, const char *what);

/* Sends commits and frees nothing. */
dibs_status commit_send(contract *t, size_t handle, dibs__commit *items,
                        size_t count, dibs_error *err);

/* Sends one, and returns its rc; what it found is freed by the caller. */
dibs_status commit_one(contract *t, size_t handle, dibs__commit *item);

/* Makes changes without a check, and returns the version. */
uint64_t
commit_changes(contract *t, dibs__change *changes, size_t change_count);

#define COMMIT(t, ...)                                                         \
    commit_changes((t), (dibs__change[]){__VA_ARGS__},                         \
                   sizeof((dibs__change[]){__VA_ARGS__}) /                     \
                       sizeof(dibs__change))
/* `text` is used twice. */
#define PUT(name, text)                                                        \
    {                                                                          \
        .verb = DIBS__CHANGE_PUT, .key = (name), .data = (text),               \
        .len = strlen(text)                                                    \
    }
#define DELETE(name)                                                           \
    {                                                                          \
        .verb = DIBS__CHANGE_DELETE, .key = (name)                             \
    }
#define ENTER(index, who, number)                                              \
    {                                                                          \
        .verb = DIBS__CHANGE_ENTER, .key = (index), .member = (who),           \
        .at = (number)                                                         \
    }
#define LEAVE(index, who)                                                      \
    {                                                                          \
        .verb = DIBS__CHANGE_LEAVE, .key = (index), .member = (who)            \
    }
#define TELL(topic, what)                                                      \
    {                                                                          \
        .verb = DIBS__CHANGE_TELL, .key = (topic), .number = (what)            \
    }

/* Looks at one index; the entries become "member@number " in order. */
void index_text(contract *t, dibs__index_look *look, char *out, size_t size);

/* All of an index as text. */
const char *index_all(contract *t, const char *index);

/* The values and indexes as text, with versions, to see that nothing changed. */
void commit_dump(contract *t, const char *const *keys, size_t key_count,
                 const char *const *indexes, size_t index_count,
                 char out[CONTRACT_DUMP]);

#endif
