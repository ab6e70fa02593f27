/* wrong_tokens.c - requests with a token that is not known. See wrong_tokens.h.
 *
 * Owns its thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/wrong_tokens.h"
#include "base/cond.h"
#include "show/change_trail.h"
#include <string.h>

static void
write_item(const dibs__wrong_tokens *wrong, const dibs__wrong_token *item)
{
    const dibs__change change = {.action = "token-refused",
                                 .target = item->route,
                                 .cause = {.from = item->from,
                                           .request = item->request,
                                           .role = "none",
                                           .route = item->route,
                                           .result = "DENIED"}};
    dibs_error err = {0};

    if (dibs__change_add(wrong->cl, &change, &err) != DIBS_OK)
        dibs__serve_say(wrong->log, DIBS_LOG_WARN, "audit_failed",
                        DIBS__SERVE_FACTS({"action", change.action, 0},
                                          {"target", change.target, 0}),
                        "the trail did not take %s: %s", change.action,
                        err.message);
}

static void *write_main(void *arg)
{
    dibs__wrong_tokens *wrong = arg;
    dibs__wrong_token item;

    pthread_mutex_lock(&wrong->life.mutex);
    while (!wrong->life.stop) {
        if (wrong->count == 0) {
            dibsx_cond_wait(&wrong->life.cond, &wrong->life.mutex, DIBSX_NEVER);
            continue;
        }
        item = wrong->items[0];
        memmove(&wrong->items[0], &wrong->items[1],
                --wrong->count * sizeof(item));
        pthread_mutex_unlock(&wrong->life.mutex);
        write_item(wrong, &item);
        pthread_mutex_lock(&wrong->life.mutex);
    }
    pthread_mutex_unlock(&wrong->life.mutex);
    return NULL;
}

dibs_status dibs__wrong_tokens_init(dibs__wrong_tokens *wrong, dibs_client *cl,
                                    dibs__serve_log *log, dibs_error *err)
{
    static const char what[] = "the thread that writes wrong tokens down";
    dibs_status rc = dibs__life_init(&wrong->life, what, err);

    wrong->cl = cl;
    wrong->log = log;
    if (rc == DIBS_OK)
        rc = dibs__life_start(&wrong->life, write_main, wrong, what, err);
    return rc;
}

void dibs__wrong_tokens_fini(dibs__wrong_tokens *wrong)
{
    dibs__life_stop(&wrong->life);
    dibs__life_fini(&wrong->life);
}

void dibs__wrong_tokens_note(dibs__wrong_tokens *wrong,
                             const dibs__wrong_token *item, dibsx_nsec now)
{
    pthread_mutex_lock(&wrong->life.mutex);
    if (now >= wrong->until) {
        wrong->until = dibsx_after_ms(now, DIBS__WRONG_TOKENS_HOUR_MS);
        wrong->noted = 0;
    }
    if (wrong->noted < DIBS__WRONG_TOKENS_MAX &&
        wrong->count < DIBS__WRONG_TOKENS_MAX) {
        wrong->noted++;
        wrong->items[wrong->count++] = *item;
        pthread_cond_broadcast(&wrong->life.cond);
    }
    pthread_mutex_unlock(&wrong->life.mutex);
}
