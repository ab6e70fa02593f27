/* health.c - the health of the store. Any thread that may block. */
/* SPDX-License-Identifier: MIT */
#include "serve/health.h"
#include "base/cond.h"
#include <stdio.h>
#include <string.h>

enum { KEEP_MS = 5000, WAIT_MS = 1000 };

void dibs__serve_health_init(dibs__serve_health *health)
{
    *health = (dibs__serve_health){.checked_at = 0};
    health->can_wait = dibsx_cond_init(&health->checked);
    pthread_mutex_init(&health->mutex, NULL);
}

void dibs__serve_health_fini(dibs__serve_health *health)
{
    pthread_mutex_destroy(&health->mutex);
    if (health->can_wait)
        pthread_cond_destroy(&health->checked);
}

typedef struct check {
    dibs__serve_part parts[DIBS__SERVE_PARTS_MAX];
    size_t count;
} check;

static void add_part(const dibs_health_part *part, void *arg)
{
    check *c = arg;
    dibs__serve_part *own;

    if (c->count == DIBS__SERVE_PARTS_MAX)
        return;
    own = &c->parts[c->count++];
    *own = (dibs__serve_part){.ok = part->result != DIBS_PART_FAILED,
                              .took_us = part->took_us};
    snprintf(own->name, sizeof(own->name), "%s", part->name);
}

static dibs_status check_data(dibs_client *data, check *c)
{
    const dibsx_nsec begun_at = dibsx_now();
    dibs_status rc = dibs_health_check(data, NULL, NULL, NULL);
    const dibs_health_part part = {.name = "data",
                                   .result = rc == DIBS_OK ? DIBS_PART_OK
                                                           : DIBS_PART_FAILED,
                                   .took_us = (dibsx_now() - begun_at) / 1000};

    add_part(&part, c);
    return rc;
}

/* Locks: mutex, let go meanwhile. */
static void
check_stores(dibs__serve_health *health, dibs_client *cl, dibs_client *data)
{
    check c = {.count = 0};
    dibs_status rc;

    health->checking = true;
    pthread_mutex_unlock(&health->mutex);
    rc = dibs_health_check(cl, DIBS_HEALTH_OPTS(.each = add_part, .arg = &c),
                           NULL, NULL);
    if (data != cl && check_data(data, &c) != DIBS_OK)
        rc = DIBS_UNAVAIL;
    pthread_mutex_lock(&health->mutex);
    memcpy(health->parts, c.parts, sizeof(c.parts));
    health->count = c.count;
    health->healthy = rc == DIBS_OK;
    health->checked_at = dibsx_now();
    health->checking = false;
    if (health->can_wait)
        pthread_cond_broadcast(&health->checked);
}

/* Locks: mutex. */
static bool is_old(const dibs__serve_health *health)
{
    return !health->checked_at ||
           dibsx_now() >= dibsx_after_ms(health->checked_at, KEEP_MS);
}

/* Another thread checks. Locks: mutex, let go meanwhile. */
static void await_check(dibs__serve_health *health)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), WAIT_MS);

    while (health->can_wait && health->checking && dibsx_now() < until)
        dibsx_cond_wait(&health->checked, &health->mutex, until);
}

bool dibs__serve_health_ask(dibs__serve_health *health, dibs_client *cl,
                            dibs_client *data)
{
    bool healthy;

    pthread_mutex_lock(&health->mutex);
    if (is_old(health) && health->checking)
        await_check(health);
    else if (is_old(health))
        check_stores(health, cl, data);
    healthy = health->healthy;
    pthread_mutex_unlock(&health->mutex);
    return healthy;
}

void dibs__serve_health_json(dibs__serve_health *health, dibsx_json *js)
{
    dibsx_json_key(js, "checks");
    dibsx_json_open(js, '[');
    pthread_mutex_lock(&health->mutex);
    for (size_t i = 0; i < health->count; i++) {
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "name", health->parts[i].name);
        dibsx_json_pair_bool(js, "ok", health->parts[i].ok);
        dibsx_json_pair_int(js, "took_us", health->parts[i].took_us);
        dibsx_json_close(js, '}');
    }
    pthread_mutex_unlock(&health->mutex);
    dibsx_json_close(js, ']');
}
