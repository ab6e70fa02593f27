/* fault.c - a store around another that fails, loses answers and is late, as a test
 * or its URL chooses.
 *
 * A handle owns the handle of the store within. Everything runs on the thread
 * of the caller; all handles share the faults that a test has set. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "store/fault/step.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static dibs_status
fault_acquire(dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
              dibs__answer *ans, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_ACQUIRE, deadline, &after, err);

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->acquire(fs->within, ask, deadline, ans,
                                             err);
    if (!after)
        return rc;
    memset(ans, 0, sizeof(*ans));
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_renew(dibs__store *st, dibs__renewal *items, size_t count,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_RENEW, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->renew(fs->within, items, count, deadline,
                                           err);
    if (!after)
        return rc;
    for (size_t i = 0; i < count; i++) {
        items[i].rc = DIBS_UNKNOWN;
        items[i].left_ms = 0;
        items[i].wanted = false;
    }
    return dibs__fault_lose_answer(err);
}

static dibs_status fault_release(dibs__store *st, const dibs__leave *leave,
                                 dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_RELEASE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->release(fs->within, leave, deadline, err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_acquire_all(dibs__store *st, const dibs__ask *asks, size_t count,
                  dibsx_nsec deadline, dibs__answer *answers, size_t *blocked,
                  dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    const dibs__lease_ops *lease = fs->within->ops->lease;
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_ACQUIRE_ALL, deadline, &after, err);

    *blocked = 0;
    memset(answers, 0, count * sizeof(*answers));
    if (rc == DIBS_OK && !lease->acquire_all)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "this store takes one name at a time");
    if (rc == DIBS_OK)
        rc = lease->acquire_all(fs->within, asks, count, deadline, answers,
                                blocked, err);
    if (!after)
        return rc;
    *blocked = 0;
    memset(answers, 0, count * sizeof(*answers));
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_convert(dibs__store *st, const dibs__conversion *conversion,
              dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_CONVERT, deadline, &after, err);

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->convert(fs->within, conversion, deadline,
                                             ans, err);
    if (!after)
        return rc;
    memset(ans, 0, sizeof(*ans));
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_yield(dibs__store *st, const char *name, uint64_t fence,
            dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_YIELD, deadline, &after, err);

    *asked = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->yield(fs->within, name, fence, deadline,
                                           asked, err);
    if (!after)
        return rc;
    *asked = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_inspect(dibs__store *st, const char *name, dibsx_nsec deadline,
              dibs__entries_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_INSPECT, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->lease->inspect(fs->within, name, deadline, each,
                                           arg, err);
}

static dibs_status
fault_list(dibs__store *st, const char *begins, dibsx_nsec deadline,
           dibs__entries_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_LIST, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->lease->list(fs->within, begins, deadline, each, arg,
                                        err);
}

static dibs_status
fault_revoke(dibs__store *st, const char *name, uint64_t fence,
             dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_REVOKE, deadline, &after, err);

    *broken = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->revoke(fs->within, name, fence, deadline,
                                            broken, err);
    if (!after)
        return rc;
    *broken = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_get(dibs__store *st, const char *key, dibsx_nsec deadline,
          dibs_value *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_GET, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->get(fs->within, key, deadline, out, err);
}

static dibs_status
fault_heads(dibs__store *st, const char *const *keys, size_t count,
            dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_HEADS, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->heads(fs->within, keys, count, deadline, out,
                                         err);
}

static dibs_status
fault_put(dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
          uint64_t *version, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_PUT, deadline, &after, err);

    *version = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->value->put(fs->within, put, deadline, version,
                                         err);
    if (!after)
        return rc;
    *version = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status fault_add(dibs__store *st, const char *key, int64_t delta,
                             dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_ADD, deadline, &after, err);

    *sum = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->value->add(fs->within, key, delta, deadline, sum,
                                         err);
    if (!after)
        return rc;
    *sum = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_del(dibs__store *st, const char *key, uint64_t expected,
          dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_DEL, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->value->del(fs->within, key, expected, deadline,
                                         err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_scan(dibs__store *st, const char *begins, dibsx_nsec deadline,
           dibs_state_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_SCAN, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->list(fs->within, begins, deadline, each, arg,
                                        err);
}

static dibs_status
fault_append(dibs__store *st, const dibs__append *what, dibsx_nsec deadline,
             uint64_t *position, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_APPEND, deadline, &after, err);

    *position = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->log->append(fs->within, what, deadline, position,
                                          err);
    if (!after)
        return rc;
    *position = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_read(dibs__store *st, const char *topic, uint64_t position, size_t max,
           dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_READ, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->log->read(fs->within, topic, position, max,
                                      deadline, each, arg, err);
}

static dibs_status
fault_bounds(dibs__store *st, const char *topic, dibsx_nsec deadline,
             dibs__log_span *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_BOUNDS, deadline, err);

    *out = (dibs__log_span){0};
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->log->bounds(fs->within, topic, deadline, out, err);
}

static dibs_status
fault_trim(dibs__store *st, const char *topic, uint64_t through,
           dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_TRIM, deadline, &after, err);

    *gone = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->log->trim(fs->within, topic, through, deadline,
                                        gone, err);
    if (!after)
        return rc;
    *gone = 0;
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_logs(dibs__store *st, const dibs__log_query *query, dibsx_nsec deadline,
           dibs__log_row_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_LOGS, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->log->logs(fs->within, query, deadline, each, arg,
                                      err);
}

static dibs_status fault_ear(dibs__store *st, const char *topic, bool on,
                             dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_EAR, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->topic->ear(fs->within, topic, on, deadline, err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_tell(dibs__store *st, const char *topic, uint64_t number,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_TELL, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->topic->tell(fs->within, topic, number, deadline,
                                          err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_say(dibs__store *st, const char *topic, const void *data, size_t len,
          dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_SAY, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->topic->say(fs->within, topic, data, len, deadline,
                                         err);
    return after ? dibs__fault_lose_answer(err) : rc;
}

static dibs_status
fault_meter(dibs__store *st, const dibs__meter *report, dibsx_nsec deadline,
            dibs__sums *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_METER, deadline, &after, err);

    *out = (dibs__sums){.expires_ms = -1};
    if (rc == DIBS_OK)
        rc = fs->within->ops->meter->meter(fs->within, report, deadline, out,
                                           err);
    if (!after)
        return rc;
    *out = (dibs__sums){.expires_ms = -1};
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_draw(dibs__store *st, const dibs__draw *draw, dibsx_nsec deadline,
           dibs__drawn *out, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_DRAW, deadline, &after, err);

    memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = fs->within->ops->rate->draw(fs->within, draw, deadline, out, err);
    if (!after)
        return rc;
    memset(out, 0, sizeof(*out));
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_rates(dibs__store *st, const dibs__rate_query *query, dibsx_nsec deadline,
            dibs__rate_fn *each, void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_RATES, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->rate->rates(fs->within, query, deadline, each, arg,
                                        err);
}

static dibs_status fault_meet(dibs__store *st, dibs__meet *items, size_t count,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    bool after;
    dibs_status rc =
        dibs__fault_begin(fs, DIBS__STEP_MEET, deadline, &after, err);

    dibs__meet_clear(items, count, rc);
    if (rc == DIBS_OK)
        rc = fs->within->ops->roster->meet(fs->within, items, count, deadline,
                                           err);
    if (!after)
        return rc;
    dibs__meet_clear(items, count, DIBS_UNKNOWN);
    return dibs__fault_lose_answer(err);
}

static dibs_status
fault_roll_call(dibs__store *st, const char *name, dibsx_nsec deadline,
                dibs__roster_head *out, dibs__seat_fn *each, void *arg,
                dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_ROLL_CALL, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->roster->roll_call(fs->within, name, deadline, out,
                                              each, arg, err);
}

static dibs_status
fault_rosters(dibs__store *st, const dibs__roster_query *query,
              dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
              dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_ROSTERS, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->roster->rosters(fs->within, query, deadline, each,
                                            arg, err);
}

static dibs_status fault_doorbell_open(dibs__store *st, dibsx_nsec deadline,
                                       int *fd, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_LISTEN, deadline, err);

    *fd = -1;
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->doorbell_open(fs->within, deadline, fd, err);
}

static void drop_notices(dibs__notice *notices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs__notice_drop(&notices[i]);
}

static size_t
fault_doorbell_read(dibs__store *st, dibs__notice *notices, size_t max)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    size_t heard = fs->within->ops->doorbell_read(fs->within, notices, max);
    bool after;

    if (heard == 0)
        return 0;
    if (dibs__fault_begin(fs, DIBS__STEP_BELL, DIBSX_NEVER, &after, NULL) !=
        DIBS_OK) {
        drop_notices(notices, heard);
        return 0;
    }
    if (!after)
        return heard;
    drop_notices(notices, heard);
    notices[0] = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
    return 1;
}

static dibs_status fault_now(dibs__store *st, dibsx_nsec deadline,
                             int64_t *store_wall_us, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_NOW, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->now(fs->within, deadline, store_wall_us, err);
}

static dibs_status
fault_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
            void *arg, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc =
        dibs__fault_begin_read(fs, DIBS__STEP_AUDIT, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->audit(fs->within, deadline, each, arg, err);
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *out <= INT64_MAX;
}

#define STEP_NAME(step, STEP) #STEP,

/* Letters of a list may be in capitals, those of a word may not. */
static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name(const char *word, const char *name)
{
    while (*word && *word == to_lower(*name)) {
        word++;
        name++;
    }
    return *word == '\0' && *name == '\0';
}

/* The index of the word in the list, or -1. */
static int find_word(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_name(word, words[i]))
            return (int)i;
    return -1;
}

/* Reads one parameter; *known is false when it is for the store within. */
static dibs_status
read_param(dibs__fault_store *fs, const dibsx_url_param *param, bool *known,
           dibs_error *err)
{
    static const char *const kinds[] = {"none", "fail", "drop_before",
                                        "drop_after"};
    static const char *const steps[] = {DIBS__FAULT_STEPS(STEP_NAME)};
    dibs__fault_rule *rule = &fs->rule;
    uint64_t number = 0;
    bool good = true;
    int index;

    *known = true;
    if (strcmp(param->key, "fault") == 0) {
        index = find_word(param->value, kinds, sizeof(kinds) / sizeof(*kinds));
        good = index >= 0;
        rule->fault.kind = good ? (dibs__fault_kind)index : DIBS__FAULT_NONE;
    } else if (strcmp(param->key, "step") == 0) {
        index = find_word(param->value, steps, DIBS__STEP_COUNT);
        good = index >= 0;
        rule->step = good ? (dibs__step)index : DIBS__STEP_COUNT;
    } else if (strcmp(param->key, "delay_ms") == 0) {
        good = read_number(param->value, &number);
        rule->fault.delay_ms = (int64_t)number;
    } else if (strcmp(param->key, "every") == 0) {
        good = read_number(param->value, &rule->every) && rule->every > 0;
    } else if (strcmp(param->key, "seed") == 0) {
        good = read_number(param->value, &fs->prng.state);
        rule->by_chance = true;
    } else {
        *known = false;
    }
    if (good)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID, "%s=%.80s: there is no such fault",
                      param->key, param->value);
}

/* Makes the URL of the store within: `inner` borrows from `url`. */
static dibs_status read_url(dibs__fault_store *fs, const dibsx_url *url,
                            dibsx_url *inner, dibs_error *err)
{
    *inner = *url;
    inner->scheme += strlen(DIBS__FAULT_PREFIX);
    inner->param_count = 0;
    fs->rule.step = DIBS__STEP_COUNT;
    fs->rule.every = 1;
    for (size_t i = 0; i < url->param_count; i++) {
        bool known;
        dibs_status rc = read_param(fs, &url->params[i], &known, err);

        if (rc != DIBS_OK)
            return rc;
        if (!known)
            inner->params[inner->param_count++] = url->params[i];
    }
    return DIBS_OK;
}

static void fault_close(dibs__store *st)
{
    dibs__fault_store *fs = dibs__fault_of(st);

    if (fs->within)
        fs->within->ops->close(fs->within);
    pthread_mutex_destroy(&fs->mutex);
    dibsx_free(fs);
}

static dibs_status fault_open(const dibsx_url *url, dibsx_nsec deadline,
                              dibs__store **out, dibs_error *err)
{
    dibs__fault_store *fs = dibsx_zalloc(sizeof(*fs));
    dibsx_url inner;
    dibs_status rc;

    *out = NULL;
    if (!fs)
        return dibsx_nomem(err, "a store");
    fs->base.ops = &dibs__fault_ops;
    pthread_mutex_init(&fs->mutex, NULL);
    rc = read_url(fs, url, &inner, err);
    if (rc != DIBS_OK)
        goto out;
    rc = dibs__store_make_url(&inner, deadline, &fs->within, err);
    if (rc != DIBS_OK)
        goto out;
    *out = &fs->base;
    fs = NULL;
out:
    if (fs)
        fault_close(&fs->base);
    return rc;
}

static dibs_status
fault_reach(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    dibs__fault_store *fs = dibs__fault_of(st);
    dibs_status rc = dibs__fault_begin_read(fs, DIBS__STEP_OPEN, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return dibs__store_reach(fs->within, deadline, err);
}

static bool fault_alarm(dibs__store *st, dibs_error *out)
{
    dibs__store *within = dibs__fault_of(st)->within;

    return within->ops->alarm && within->ops->alarm(within, out);
}

static const char *fault_cannot(const dibs__store *st, dibs__ability what)
{
    return dibs__store_cannot(
        ((const dibs__fault_store *)(const void *)st)->within, what);
}

#define MEMBER(step, STEP) .step = fault_##step,

static const dibs__lease_ops fault_lease = {DIBS__LEASE_STEPS(MEMBER)};

static const dibs__value_ops fault_value = {
    .get = fault_get,
    .heads = fault_heads,
    .put = fault_put,
    .add = fault_add,
    .del = fault_del,
    .list = fault_scan,
};

static const dibs__log_ops fault_log = {DIBS__LOG_STEPS(MEMBER)};

static const dibs__topic_ops fault_topic = {DIBS__TOPIC_STEPS(MEMBER)};

static const dibs__rate_ops fault_rate = {DIBS__RATE_STEPS(MEMBER)};

static const dibs__meter_ops fault_meter_ops = {DIBS__METER_STEPS(MEMBER)};
static const dibs__roster_ops fault_roster = {DIBS__ROSTER_STEPS(MEMBER)};
const dibs__store_ops dibs__fault_ops = {
    .scheme = "fault",
    .open = fault_open,
    .reach = fault_reach,
    .close = fault_close,
    .lease = &fault_lease,
    .value = &fault_value,
    .log = &fault_log,
    .topic = &fault_topic,
    .rate = &fault_rate,
    .meter = &fault_meter_ops,
    .roster = &fault_roster,
    .queue = &dibs__fault_queue_ops,
    .queue_admin = &dibs__fault_queue_admin_ops,
    .commit = &dibs__fault_commit_ops,
    .doorbell_open = fault_doorbell_open,
    .doorbell_read = fault_doorbell_read,
    .now = fault_now,
    .alarm = fault_alarm,
    .cannot = fault_cannot,
    .audit = fault_audit,
};
