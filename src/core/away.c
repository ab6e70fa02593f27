/* away.c - tells the log once that the store is away, and once that it is back.
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/away.h"

#include "core/log.h"

/* A shorter failure is not told: a reconnection, a server that restarts. */
enum { TELL_AFTER_MS = 200 };

/* Locks: cl->mutex, let go while logging. */
static void
tell_away(dibs_client *cl, const char *effect, const dibs_error *why)
{
    cl->away = true;
    pthread_mutex_unlock(&cl->mutex);
    dibs__log(cl, DIBS_LOG_WARN, "away", "%s: %s", effect, why->message);
    pthread_mutex_lock(&cl->mutex);
}

void dibs__away_failed(dibs_client *cl, dibsx_nsec sent_at,
                       const dibs_error *why)
{
    if (cl->failing_at == 0)
        cl->failing_at = sent_at;
    if (!cl->away &&
        dibsx_now() >= dibsx_after_ms(cl->failing_at, TELL_AFTER_MS))
        tell_away(cl, "waiting for the store", why);
}

void dibs__away_silent(dibs_client *cl)
{
    const dibs_error why = {.message = "it has not answered yet"};
    dibsx_nsec sent_at = cl->silent_at;

    cl->silent_at = 0;
    if (sent_at > 0)
        dibs__away_failed(cl, sent_at, &why);
}

void dibs__away_began(dibs_client *cl, const char *effect,
                      const dibs_error *why)
{
    if (cl->failing_at == 0)
        cl->failing_at = dibsx_now();
    if (!cl->away)
        tell_away(cl, effect, why);
}

void dibs__away_ended(dibs_client *cl)
{
    dibsx_nsec failing_at = cl->failing_at;
    char span[32];

    cl->failing_at = cl->silent_at = 0;
    if (!cl->away)
        return;
    cl->away = false;
    pthread_mutex_unlock(&cl->mutex);
    dibsx_duration_text((dibsx_now() - failing_at) / DIBSX_MS, span,
                        sizeof(span));
    dibs__log(cl, DIBS_LOG_WARN, "back", "the store is back after %s", span);
    pthread_mutex_lock(&cl->mutex);
}
