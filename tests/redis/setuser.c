/* setuser.c - see setuser.h. */
/* SPDX-License-Identifier: MIT */
#include "setuser.h"

#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGINS "ACL SETUSER dibs "
#define PREFIX "workflow:"

enum { LINE_MAX_BYTES = 1024, WORDS_MAX = 64 };

/* The line with the prefix in place; false when it does not fit. */
static bool
put_prefix(const char *text, const char *prefix, char out[LINE_MAX_BYTES])
{
    const char *at;
    size_t len = 0;

    out[0] = '\0';
    while ((at = strstr(text, PREFIX)) != NULL) {
        len += (size_t)snprintf(out + len, LINE_MAX_BYTES - len, "%.*s%s",
                                (int)(at - text), text, prefix);
        if (len >= LINE_MAX_BYTES)
            return false;
        text = at + strlen(PREFIX);
    }
    len += (size_t)snprintf(out + len, LINE_MAX_BYTES - len, "%s", text);
    return len < LINE_MAX_BYTES;
}

static bool run_line(const asker *as, char *text)
{
    const char *words[WORDS_MAX + 1];
    size_t count = 0;
    char *reply = NULL;
    bool ok;

    while (count < WORDS_MAX && (words[count] = strsep(&text, " ")) != NULL)
        count++;
    words[count] = NULL;
    if (asker_send(as, words))
        reply = asker_read(as);
    ok = reply && strcmp(reply, "OK") == 0;
    if (!ok)
        fprintf(stderr, "ACL SETUSER: %s\n", reply ? reply : "no reply");
    free(reply);
    return ok;
}

bool setuser(const server *sv, const char *file, const char *prefix)
{
    char text[LINE_MAX_BYTES], ready[LINE_MAX_BYTES];
    FILE *in = fopen(file, "r");
    size_t count = 0;
    bool ok = in != NULL;
    asker as;

    if (!in)
        fprintf(stderr, "%s cannot be read\n", file);
    ok = asker_open(&as, sv->socket) && ok;
    while (ok && fgets(text, sizeof(text), in)) {
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, BEGINS, strlen(BEGINS)) != 0)
            continue;
        ok = put_prefix(text, prefix, ready) && run_line(&as, ready);
        count++;
    }
    if (in)
        fclose(in);
    asker_close(&as);
    return ok && count > 0;
}
