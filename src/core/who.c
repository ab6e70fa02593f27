/* who.c - the line that says who holds or waits: written, and read again. */
/* SPDX-License-Identifier: MIT */
#include "core/who.h"

#include "core/lock/lock.h"
#include "core/names.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Marks a lease that is renewed by its program, if at all. */
#define BY_HAND "by-hand"

/* A text that was cut inside a character loses that character. */
static void mend_end(char *text, size_t end)
{
    while (end > 0 && ((unsigned char)text[end - 1] & 0xc0) == 0x80)
        end--;
    if (end > 0 && (unsigned char)text[end - 1] >= 0xc0)
        text[end - 1] = '\0';
}

/* Copies a text behind what is there, as far as `size` allows; returns the end. This
 * is on the way of every acquire, where the formatting of the library would show. */
static size_t add_text(char *out, size_t at, size_t size, const char *text)
{
    while (*text && at + 1 < size)
        out[at++] = *text++;
    out[at] = '\0';
    return at;
}

static size_t add_number(char *out, size_t at, size_t size, uint64_t number)
{
    char digits[24];
    size_t first = sizeof(digits) - 1;

    digits[first] = '\0';
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return add_text(out, at, size, digits + first);
}

/* The part before the first tab, which is cut if it has one byte too many. The main
 * thread has no identity of its own. */
static size_t write_plain(const dibs_lock *lock, char out[DIBS__WHO_MAX])
{
    enum { SIZE = DIBS__WHO_PLAIN + 1 };
    const dibs_client *cl = lock->cl;
    const char *label = lock->traits->label ? lock->traits->label : cl->label;
    size_t at = add_text(out, 0, SIZE, cl->host);

    at = add_text(out, at, SIZE, ":");
    at = add_number(out, at, SIZE, (uint64_t)cl->pid);
    if (lock->traits->identity) {
        at = add_text(out, at, SIZE, "/");
        at = add_text(out, at, SIZE, lock->traits->identity);
    } else if (lock->thread != cl->pid) {
        at = add_text(out, at, SIZE, "/#");
        at = add_number(out, at, SIZE, (uint64_t)lock->thread);
    }
    if (*label)
        at = add_text(out, at, SIZE, " ");
    at = add_text(out, at, SIZE, label);
    if (at < DIBS__WHO_PLAIN)
        return at;
    out[DIBS__WHO_PLAIN - 1] = '\0';
    mend_end(out, DIBS__WHO_PLAIN - 1);
    return strlen(out);
}

void dibs__who_text(const dibs_lock *lock, char out[DIBS__WHO_MAX])
{
    bool by_hand = (lock->traits->opts.flags & DIBS_LOCK_NO_RENEW) != 0;
    size_t at = write_plain(lock, out);

    if (by_hand)
        at = add_text(out, at, DIBS__WHO_MAX, "\t" BY_HAND);
    if (lock->traits->replicas > 0) {
        at = add_text(out, at, DIBS__WHO_MAX, "\tdurability=wait:");
        at = add_number(out, at, DIBS__WHO_MAX, lock->traits->replicas);
    }
    if (lock->traits->meta) {
        at = add_text(out, at, DIBS__WHO_MAX, "\t");
        (void)add_text(out, at, DIBS__WHO_MAX, lock->traits->meta);
    }
}

void dibs__who_plain(const dibs_client *cl, const char *label, char *out,
                     size_t size)
{
    const char *text = label ? label : cl->label;
    int len = snprintf(out, size, "%s:%ld%s%s", cl->host, (long)getpid(),
                       *text ? " " : "", text);

    if (len >= (int)size)
        mend_end(out, size - 1);
    dibs__text_clean(out);
}

/* Ends the part that begins here at any of the bytes of `stops`. *at moves on to
 * what follows, and what it was ended with is returned; NUL at the end. */
static char end_part(char **at, const char *stops)
{
    char stop;

    *at += strcspn(*at, stops);
    stop = **at;
    if (stop)
        *(*at)++ = '\0';
    return stop;
}

/* A line of other software may lack any part. */
void dibs__who_read(const char *text, dibs__who *out)
{
    size_t len = strlen(BY_HAND);
    char *at = out->text;
    char stop;

    *out = (dibs__who){.identity = "", .label = "", .meta = ""};
    snprintf(out->text, sizeof(out->text), "%s", text);
    out->host = at;
    if (end_part(&at, ":") != ':')
        return;
    out->pid = strtoimax(at, &at, 10);
    stop = end_part(&at, "/ \t");
    if (stop == '/') {
        out->identity = at;
        stop = end_part(&at, " \t");
    }
    if (stop == ' ') {
        out->label = at;
        stop = end_part(&at, "\t");
    }
    if (stop != '\t')
        return;
    out->meta = at;
    if (strncmp(at, BY_HAND, len) == 0 && (!at[len] || at[len] == '\t')) {
        out->by_hand = true;
        out->meta = at + len + (at[len] == '\t');
    }
}

const char *dibs__mode_name(dibs__mode mode)
{
    switch (mode) {
    case DIBS__EXCLUSIVE:
        return "exclusive";
    case DIBS__SHARED:
        return "shared";
    case DIBS__PERMITS:
        break;
    }
    return "permits";
}

void dibs__who_agent(const dibs__who *who, char out[DIBS__WHO_MAX])
{
    snprintf(out, DIBS__WHO_MAX, "%s:%" PRId64 "%s%s", who->host, who->pid,
             *who->identity ? "/" : "", who->identity);
}
