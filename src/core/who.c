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

static void write_who(dibs_lock *lock)
{
    const dibs_client *cl = lock->cl;
    const char *label = lock->label ? lock->label : cl->label;
    long pid = (long)getpid();
    bool main_thread = !lock->identity && lock->thread == pid;
    const char *identity = main_thread ? "" : lock->holder;
    int len =
        snprintf(lock->who, sizeof(lock->who), "%s:%ld%s%s%s%s", cl->host, pid,
                 *identity ? "/" : "", identity, *label ? " " : "", label);

    if (len >= (int)sizeof(lock->who))
        mend_end(lock->who, sizeof(lock->who) - 1);
}

const char *dibs__who_text(dibs_lock *lock, char room[DIBS__WHO_MAX])
{
    bool by_hand = (lock->opts.flags & DIBS_LOCK_NO_RENEW) != 0;
    char durable[32] = "";

    if (!lock->who[0])
        write_who(lock);
    if (!by_hand && !lock->meta && lock->replicas == 0)
        return lock->who;
    if (lock->replicas > 0)
        snprintf(durable, sizeof(durable), "\tdurability=wait:%u",
                 (unsigned)lock->replicas);
    snprintf(room, DIBS__WHO_MAX, "%s%s%s%s%s", lock->who,
             by_hand ? "\t" BY_HAND : "", durable, lock->meta ? "\t" : "",
             lock->meta ? lock->meta : "");
    return room;
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

void dibs__who_agent(const dibs__who *who, char out[DIBS__WHO_MAX])
{
    snprintf(out, DIBS__WHO_MAX, "%s:%" PRId64 "%s%s", who->host, who->pid,
             *who->identity ? "/" : "", who->identity);
}
