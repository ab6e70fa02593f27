/* heir.c - the part of `dibs elect` in a transfer of the lead. */
/* SPDX-License-Identifier: MIT */
#include "cli/heir.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

/* How often to look while something is under way, and how long to rest otherwise. */
enum { LOOK_MS = 20, REST_MS = 1000 };

typedef struct search {
    const char *member;
    size_t place;
} search;

/* The member is the first of the metadata. */
static bool find_member(const dibs_lease_info *info, void *arg)
{
    static const char key[] = "member=";
    search *sr = arg;
    size_t len = strlen(sr->member);

    for (size_t i = 0; i < info->waiter_count && sr->place == SIZE_MAX; i++) {
        const char *meta = info->waiters[i].meta;

        if (strncmp(meta, key, sizeof(key) - 1) != 0)
            continue;
        meta += sizeof(key) - 1;
        if (strncmp(meta, sr->member, len) == 0 &&
            (meta[len] == '\0' || meta[len] == '\t'))
            sr->place = i;
    }
    return false;
}

dibs_status dibs__heir_place(dibs_client *cl, const char *name,
                             const char *member, size_t *place, dibs_error *err)
{
    search sr = {.member = member, .place = SIZE_MAX};
    dibs_status rc = dibs_lease_show(cl, name, find_member, &sr, err);

    *place = sr.place;
    return rc;
}

void dibs__heir_key(const char *name, char out[DIBS__HEIR_KEY_SIZE])
{
    (void)snprintf(out, DIBS__HEIR_KEY_SIZE, "dibs.heir/%s", name);
}

static bool is_named(const dibs__heir_watch *hw, const dibs_value *value)
{
    return value->data && strcmp(value->data, hw->heir) == 0;
}

static void hear_change(dibs__heir_watch *hw, const dibs_value *value)
{
    (void)snprintf(hw->heir, sizeof(hw->heir), "%s",
                   value->data ? (const char *)value->data : "");
    pthread_mutex_lock(&hw->mutex);
    hw->urged = strcmp(hw->heir, hw->member) == 0 &&
                hw->phase != DIBS__HEIR_ASKS_FIRST &&
                hw->phase != DIBS__HEIR_LEADS;
    pthread_mutex_unlock(&hw->mutex);
}

/* The heir is the next, and the transfer is still wanted. If the store does not
 * answer, the leader leads on. */
static bool is_heir_next(dibs__heir_watch *hw)
{
    dibs_value value = {0};
    size_t place;
    bool wanted =
        dibs__heir_place(hw->cl, hw->name, hw->heir, &place, NULL) == DIBS_OK &&
        place == 0 &&
        dibs_state_get(hw->cl, hw->key, &value, NULL) == DIBS_OK &&
        is_named(hw, &value);

    dibs_value_free(&value);
    return wanted;
}

/* Locks: hw->mutex, let go meanwhile. */
static void serve_heir(dibs__heir_watch *hw)
{
    bool next;

    if (hw->urged && hw->phase == DIBS__HEIR_ASKS)
        dibs__lock_or_set_cancel(hw->locks);
    if (hw->phase != DIBS__HEIR_LEADS || hw->called || !hw->heir[0] ||
        strcmp(hw->heir, hw->member) == 0)
        return;
    pthread_mutex_unlock(&hw->mutex);
    next = is_heir_next(hw);
    pthread_mutex_lock(&hw->mutex);
    if (next && hw->phase == DIBS__HEIR_LEADS && !hw->called) {
        hw->called = true;
        dibs__run_inputs_yield(NULL, hw->inputs);
    }
}

/* Locks: hw->mutex. */
static int64_t rest_of(const dibs__heir_watch *hw)
{
    if (hw->urged)
        return LOOK_MS;
    if (!hw->heir[0])
        return -1;
    return hw->phase == DIBS__HEIR_LEADS && !hw->called ? LOOK_MS : REST_MS;
}

static void *watch_heirs(void *arg)
{
    dibs__heir_watch *hw = arg;

    pthread_mutex_lock(&hw->mutex);
    while (!hw->ending) {
        int64_t rest_ms = rest_of(hw);
        dibs_change change;
        dibs_status rc;

        pthread_mutex_unlock(&hw->mutex);
        rc = dibs_watch_next(hw->watch, rest_ms, &change, NULL);
        if (rc == DIBS_OK)
            hear_change(hw, &change.value);
        dibs_value_free(&change.value);
        pthread_mutex_lock(&hw->mutex);
        if (rc == DIBS_OK || rc == DIBS_TIMEOUT)
            serve_heir(hw);
        else if (!hw->ending)
            dibsx_cond_wait(&hw->cond, &hw->mutex,
                            dibsx_after_ms(dibsx_now(), REST_MS));
    }
    hw->over = true;
    pthread_cond_broadcast(&hw->cond);
    pthread_mutex_unlock(&hw->mutex);
    return NULL;
}

static dibs_status start_thread(dibs__heir_watch *hw, dibs_error *err)
{
    int number;

    if (!dibsx_cond_init(&hw->cond))
        return dibsx_nomem(err, "a condition variable");
    pthread_mutex_init(&hw->mutex, NULL);
    number = pthread_create(&hw->thread, NULL, watch_heirs, hw);
    if (number == 0)
        return DIBS_OK;
    pthread_cond_destroy(&hw->cond);
    pthread_mutex_destroy(&hw->mutex);
    return dibsx_fail_at(err, DIBS_NOMEM, dibsx_errno_name(number),
                         "cannot start a thread: %s", strerror(number));
}

dibs_status
dibs__heir_watch_init(dibs__heir_watch *hw, dibs_client *cl, const char *name,
                      const char *member, dibs__lock_or_set *locks,
                      dibs__run_inputs *inputs, dibs_error *err)
{
    dibs_status rc;

    *hw = (dibs__heir_watch){.cl = cl,
                             .name = name,
                             .member = member,
                             .locks = locks,
                             .inputs = inputs};
    dibs__heir_key(name, hw->key);
    rc = dibs_state_watch(cl, hw->key, &hw->watch, err);
    if (rc == DIBS_UNSUPPORTED)
        return DIBS_OK;
    if (rc == DIBS_OK)
        rc = start_thread(hw, err);
    if (rc != DIBS_OK) {
        dibs_watch_free(hw->watch);
        hw->watch = NULL;
    }
    return rc;
}

void dibs__heir_watch_fini(dibs__heir_watch *hw)
{
    if (!hw->watch)
        return;
    pthread_mutex_lock(&hw->mutex);
    hw->ending = true;
    pthread_cond_broadcast(&hw->cond);
    while (!hw->over) {
        dibs_watch_cancel(hw->watch);
        dibsx_cond_wait(&hw->cond, &hw->mutex,
                        dibsx_after_ms(dibsx_now(), LOOK_MS));
    }
    pthread_mutex_unlock(&hw->mutex);
    pthread_join(hw->thread, NULL);
    pthread_cond_destroy(&hw->cond);
    pthread_mutex_destroy(&hw->mutex);
    dibs_watch_free(hw->watch);
    hw->watch = NULL;
}

void dibs__heir_watch_enter(dibs__heir_watch *hw, dibs__heir_phase phase)
{
    if (!hw->watch)
        return;
    pthread_mutex_lock(&hw->mutex);
    hw->phase = phase;
    if (phase == DIBS__HEIR_LEADS) {
        hw->urged = hw->called = false;
        (void)dibs__run_inputs_take(&hw->inputs->yield_fd);
    }
    pthread_mutex_unlock(&hw->mutex);
}

bool dibs__heir_watch_urged(dibs__heir_watch *hw)
{
    bool urged;

    if (!hw->watch)
        return false;
    pthread_mutex_lock(&hw->mutex);
    urged = hw->urged;
    hw->urged = false;
    pthread_mutex_unlock(&hw->mutex);
    return urged;
}
