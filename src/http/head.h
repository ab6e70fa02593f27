/* head.h - the head of a request: its line and its headers, read strictly. Pure.
 *
 * A head that two readers could take for different things is refused, not mended: a
 * line that ends otherwise than in CR LF, a folded header, a space before a colon, a
 * length that is no number, a coding other than "chunked", and any of this given
 * twice. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_HEAD_H
#define DIBS_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DIBS__HTTP_FIELDS_MAX = 100 };

typedef struct dibs__http_field {
    const char *name;
    const char *value; /* without the space around it */
} dibs__http_field;

typedef struct dibs__http_head {
    const char *method;
    const char *target;
    dibs__http_field fields[DIBS__HTTP_FIELDS_MAX];
    size_t field_count;
    bool old;      /* HTTP/1.0 */
    bool last;     /* the connection is to be closed after the answer */
    bool expects;  /* waits to be asked for the body */
    bool chunked;  /* the body comes in chunks, else ... */
    bool measured; /* ... its length was given */
    uint64_t length;
} dibs__http_head;

/* How long the head is that the bytes begin with; 0: its end has not come yet; -1:
 * this is none, whatever comes. *seen, 0 at first, is how far a call before has
 * looked. */
ssize_t dibs__http_head_end(const char *bytes, size_t len, size_t *seen);

/* Takes a whole head apart; `text` is changed, and pointed to. 0, or the status of
 * the refusal with *why: where the request ends is not known then. */
int dibs__http_head_read(char *text, size_t len, dibs__http_head *head,
                         const char **why);

/* The value of a header, or NULL. */
const char *dibs__http_head_get(const dibs__http_head *head, const char *name);

#endif
