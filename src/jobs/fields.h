/* fields.h - members of a struct as members of a JSON object, by a table. Pure.
 *
 * Members that are zero or empty are not written, and what is not there is zero. Keys
 * that the table lacks are passed over: a later version may have written them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_FIELDS_H
#define DIBS_JOBS_FIELDS_H

#include "base/json.h"
#include "base/json_read.h"
#include <stddef.h>

typedef enum dibs__field_kind {
    DIBS__FIELD_TEXT, /* char[] */
    DIBS__FIELD_BOOL,
    DIBS__FIELD_I32,
    DIBS__FIELD_U32,
    DIBS__FIELD_I64,
    DIBS__FIELD_U64, /* up to INT64_MAX */
    DIBS__FIELD_NAME /* an enum, by its name */
} dibs__field_kind;

typedef struct dibs__field {
    const char *key;
    dibs__field_kind kind;
    size_t offset;
    size_t size;              /* of TEXT, with its NUL; of NAME: how many */
    const char *const *names; /* of NAME */
} dibs__field;

/* Rows: a key, the type and the member. */
#define DIBS__TEXT(key_, type_, member_)                                       \
    {                                                                          \
        .key = (key_), .kind = DIBS__FIELD_TEXT,                               \
        .offset = offsetof(type_, member_),                                    \
        .size = sizeof(((type_ *)NULL)->member_)                               \
    }
#define DIBS__NUMBER(key_, kind_, type_, member_)                              \
    {                                                                          \
        .key = (key_), .kind = DIBS__FIELD_##kind_,                            \
        .offset = offsetof(type_, member_)                                     \
    }
#define DIBS__NAMED(key_, names_, count_, type_, member_)                      \
    {                                                                          \
        .key = (key_), .kind = DIBS__FIELD_NAME,                               \
        .offset = offsetof(type_, member_), .size = (count_),                  \
        .names = (names_)                                                      \
    }

/* Appends keys and values to an object that is open. */
void dibs__fields_write(dibsx_json *js, const dibs__field *fields, size_t count,
                        const void *from);

/* INVALID: a value has the wrong kind, or does not fit; `map` may be no object. */
DIBS_MUST_CHECK dibs_status dibs__fields_read(const dibsx_json_node *map,
                                              const dibs__field *fields,
                                              size_t count, void *into,
                                              dibs_error *err);

#endif
