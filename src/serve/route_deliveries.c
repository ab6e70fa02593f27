/* route_deliveries.c - messages in the hands of a session: reserving and settling them.
 *
 * A session has one handle for each queue, with all that it has reserved. Its end gives
 * back what is not settled. Threads of the server, and one for each reserve that
 * waits. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/json_data.h"
#include "http/lasting.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "show/data_json.h"
#include <dibs/queue.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    COUNT_MAX = 64,    /* of one reserve */
    IN_HAND_MAX = 256, /* of one session and queue */
    SETTLED_KEPT = 64, /* that a repeated request finds */
    WAIT_MAX_MS = 25000,
    BEYOND_MS = 60000, /* for the store, after the wait */
    DELIVERY_SIZE = 64,
    KEY_MAX = 64,
    DAY_MS = 24 * 3600 * 1000
};

/* A message in hand. */
typedef struct delivery {
    struct delivery *next;
    dibs_item *item;
    char token[DELIVERY_SIZE];
    char key[KEY_MAX + 1]; /* Idempotency-Key of its reserve; "": none */
    uint64_t number;       /* of its reserve */
    bool busy;             /* a request settles it */
} delivery;

/* A session's part in a queue. All but the handle is under the table's mutex. */
typedef struct part {
    dibs__bound bound; /* first */
    dibs_queue *queue;
    delivery *first;
    size_t count, asked;       /* in hand; that reserves may still bring */
    struct reserve *under_way; /* those with a key that still wait */
    uint64_t numbers;          /* that reserves were given */
    char settled[SETTLED_KEPT][DELIVERY_SIZE + 8]; /* "TOKEN how" */
    size_t settled_next;
} part;

static void cancel_part(dibs__bound *bound)
{
    dibs_queue_cancel(((part *)bound)->queue);
}

static void free_delivery(delivery *de)
{
    dibs_item_free(de->item);
    dibsx_free(de);
}

static void free_deliveries(delivery *first)
{
    while (first) {
        delivery *de = first;

        first = de->next;
        free_delivery(de);
    }
}

/* Items that are not settled come back at once. */
static void free_part(dibs__bound *bound)
{
    part *pt = (part *)bound;

    free_deliveries(pt->first);
    dibs_queue_free(pt->queue);
    dibsx_free(pt);
}

static const dibs__bound_kind part_kind = {cancel_part, free_part};

/* As dibs__bound_make_fn. */
static dibs__bound *make_part(dibs__serve_bounds *table, const char *name,
                              const void *arg, dibs_error *err)
{
    part *pt = dibsx_zalloc(sizeof(*pt));

    (void)arg;
    if (!pt) {
        (void)dibsx_nomem(err, "a part in a queue");
        return NULL;
    }
    pt->bound.kind = &part_kind;
    if (dibs_queue_new(table->client, name, DIBS_QUEUE_OPTS(), &pt->queue,
                       err) == DIBS_OK)
        return &pt->bound;
    dibsx_free(pt);
    return NULL;
}

/* -- Reserving. */

/* A reserve under way. The thread and its requests share it; the last one frees it. */
typedef struct reserve {
    struct reserve *next; /* in the part's list */
    part *pt;
    uint64_t number;
    size_t want, users;
    int64_t wait_ms;
    char key[KEY_MAX + 1];
    bool done, gone; /* the thread has its answer; a request has ended */
    bool told;       /* the client knows what is in hand */
    dibs_error err;
} reserve;

/* Locks: the table's mutex. */
static void drop_reserve(reserve *rv)
{
    if (--rv->users == 0)
        dibsx_free(rv);
}

/* A request that comes again while the first still waits. Locks: the table's mutex. */
static reserve *find_under_way(const part *pt, const char *key)
{
    reserve *rv = *key ? pt->under_way : NULL;

    while (rv && strcmp(rv->key, key) != 0)
        rv = rv->next;
    return rv;
}

/* Locks: the table's mutex. */
static void end_under_way(part *pt, const reserve *rv)
{
    reserve **at = &pt->under_way;

    while (*at && *at != rv)
        at = &(*at)->next;
    if (*at)
        *at = rv->next;
}

/* Locks: the table's mutex. */
static void add_delivery(part *pt, delivery *de)
{
    delivery **at = &pt->first;

    while (*at)
        at = &(*at)->next;
    *at = de;
    pt->count++;
}

/* Locks: the table's mutex. */
static void remove_delivery(part *pt, delivery *de)
{
    delivery **at = &pt->first;

    while (*at && *at != de)
        at = &(*at)->next;
    if (*at) {
        *at = de->next;
        pt->count--;
    }
}

/* It came back by its limit, or its lease was lost: another consumer may have it. */
static bool is_back(const delivery *de)
{
    return !de->busy && dibs_item_check(de->item) != DIBS_OK;
}

/* Takes those out that are not in hand any more; the caller frees them, without the
 * mutex. Locks: the table's mutex. */
static delivery *take_back(part *pt)
{
    delivery *back = NULL, **at = &pt->first;

    while (*at) {
        delivery *de = *at;

        if (!is_back(de)) {
            at = &de->next;
            continue;
        }
        *at = de->next;
        pt->count--;
        de->next = back;
        back = de;
    }
    return back;
}

static delivery *make_delivery(dibs_item *item, const reserve *rv)
{
    delivery *de = dibsx_zalloc(sizeof(*de));

    if (!de) {
        dibs_item_free(item);
        return NULL;
    }
    de->item = item;
    de->number = rv->number;
    snprintf(de->token, sizeof(de->token), "%" PRIu64 ".%" PRIu64 ".%u",
             dibs_item_id(item), dibs_item_fence(item),
             dibs_item_attempt(item));
    snprintf(de->key, sizeof(de->key), "%s", rv->key);
    return de;
}

/* The deliveries that a reserve has brought and that are still in hand, by its number or by its key.
 * Locks: the table's mutex. */
static size_t find_brought(const part *pt, uint64_t number, const char *key,
                           delivery *got[COUNT_MAX])
{
    size_t count = 0;

    for (delivery *de = pt->first; de && count < COUNT_MAX; de = de->next)
        if (!de->busy &&
            (de->number == number || (*key && strcmp(de->key, key) == 0)))
            got[count++] = de;
    return count;
}

/* Without a key nobody could ask for them again: they come back. Locks: the table's
 * mutex, let go meanwhile. */
static void give_back(const reserve *rv)
{
    pthread_mutex_t *mutex = &rv->pt->bound.table->mutex;
    delivery *got[COUNT_MAX];
    const size_t count = find_brought(rv->pt, rv->number, "", got);

    for (size_t i = 0; i < count; i++)
        remove_delivery(rv->pt, got[i]);
    pthread_mutex_unlock(mutex);
    for (size_t i = 0; i < count; i++)
        free_delivery(got[i]);
    pthread_mutex_lock(mutex);
}

/* As dibs__bound_call_fn. */
static void wait_for_items(dibs__bound *bound, void *arg)
{
    part *pt = (part *)bound;
    reserve *rv = arg;
    dibs_item *items[COUNT_MAX];
    dibs_error err = {0};
    size_t count = 0;
    dibs_status rc = dibs_queue_reserve_many(pt->queue, rv->wait_ms, items,
                                             rv->want, &count, &err);

    pthread_mutex_lock(&bound->table->mutex);
    pt->asked -= rv->want;
    for (size_t i = 0; i < count; i++) {
        delivery *de = make_delivery(items[i], rv);

        if (de)
            add_delivery(pt, de);
    }
    rv->err = err;
    rv->err.status = rc;
    rv->done = true;
    end_under_way(pt, rv);
    if (rv->gone && !rv->key[0])
        give_back(rv);
    drop_reserve(rv);
    pthread_mutex_unlock(&bound->table->mutex);
    dibs__bound_wake(bound);
}

static void put_delivery(dibsx_json *js, part *pt, const delivery *de)
{
    const char *header;
    size_t len;
    const void *data = dibs_item_data(de->item, &len);

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "delivery", de->token);
    dibsx_json_pair_uint(js, "id", dibs_item_id(de->item));
    dibsx_json_pair_uint(js, "fence", dibs_item_fence(de->item));
    dibsx_json_pair_uint(js, "attempt", dibs_item_attempt(de->item));
    dibsx_json_pair_int(js, "priority", dibs_item_priority(de->item));
    dibsx_json_pair_int(js, "valid_ms",
                        dibs__bound_told_ms(&pt->bound,
                                            dibs_item_valid_ms(de->item)));
    dibsx_json_key(js, "headers");
    dibsx_json_open(js, '{');
    for (size_t i = 0; (header = dibs_item_header_at(de->item, i)) != NULL; i++)
        dibs__json_header(js, header);
    dibsx_json_close(js, '}');
    dibsx_json_data(js, "data", data, len);
    dibsx_json_close(js, '}');
}

/* Locks: the table's mutex. */
static void answer_items(dibs__http_exchange *ex, part *pt, const reserve *rv)
{
    delivery *got[COUNT_MAX];
    const size_t count = find_brought(pt, rv->number, rv->key, got);
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++)
        if (!is_back(got[i]))
            put_delivery(js, pt, got[i]);
    dibsx_json_close(js, ']');
}

/* As dibs__http_later.ask. None in time is an empty list. */
static bool ask_items(dibs__http_exchange *ex, void *arg, bool over)
{
    reserve *rv = arg;
    pthread_mutex_t *mutex = &rv->pt->bound.table->mutex;
    dibs_status rc;
    bool done;

    pthread_mutex_lock(mutex);
    done = rv->done;
    rc = rv->err.status;
    if (done && (rc == DIBS_OK || rc == DIBS_BUSY || rc == DIBS_TIMEOUT)) {
        answer_items(ex, rv->pt, rv);
        rv->told = true;
    } else if (done) {
        dibs__serve_fail_wait(ex, &rv->err);
    } else if (over) {
        (void)dibs__serve_refuse(ex, 503, "cancelled",
                                 "the daemon is shutting down");
    }
    pthread_mutex_unlock(mutex);
    return done || over;
}

/* As dibs__bound_call_fn: what a client that has gone did not get. */
static void give_back_later(dibs__bound *bound, void *arg)
{
    pthread_mutex_lock(&bound->table->mutex);
    give_back(arg);
    drop_reserve(arg);
    pthread_mutex_unlock(&bound->table->mutex);
}

/* As dibs__http_later.gone. Must not block. */
static void end_reserve(void *arg)
{
    reserve *rv = arg;
    dibs__bound *bound = &rv->pt->bound;

    pthread_mutex_lock(&bound->table->mutex);
    rv->gone = true;
    if (!rv->done || rv->told || rv->key[0] ||
        dibs__bound_call(bound, give_back_later, rv, NULL) != DIBS_OK)
        drop_reserve(rv);
    pthread_mutex_unlock(&bound->table->mutex);
    dibs__bound_let_go(bound);
}

/* Locks: the table's mutex. */
static dibs_status begin_reserve(part *pt, reserve *rv, dibs_error *err)
{
    dibs_status rc;

    if (pt->count + pt->asked + rv->want > IN_HAND_MAX)
        return dibsx_fail(err, DIBS_FULL,
                          "the session has %zu messages of %s in hand, and %d "
                          "are allowed; settle some",
                          pt->count, pt->bound.name, IN_HAND_MAX);
    rv->pt = pt;
    rv->users = 2;
    rv->number = ++pt->numbers;
    pt->asked += rv->want;
    rc = dibs__bound_call(&pt->bound, wait_for_items, rv, err);
    if (rc != DIBS_OK) {
        pt->asked -= rv->want;
    } else if (rv->key[0]) {
        rv->next = pt->under_way;
        pt->under_way = rv;
    }
    return rc;
}

/* The session and the key of a request. False: it was refused. */
static bool read_head(dibs__http_exchange *ex, const dibsx_json_node *body,
                      const char **session, const char **key)
{
    *session = NULL;
    *key = dibs__http_header(ex, "Idempotency-Key");
    if (!dibs__serve_ask_text(ex, body, "session", DIBS__SESSION_ID_SIZE,
                              session))
        return false;
    if (!*session || (*key && strlen(*key) > KEY_MAX)) {
        (void)dibs__serve_refuse(ex, 400, "invalid", "%s",
                                 *session ? "the Idempotency-Key is longer "
                                            "than 64 bytes"
                                          : "the body must have \"session\": "
                                            "messages in hand belong to one");
        return false;
    }
    if (!*key)
        *key = "";
    return true;
}

/* Answers, or sets *waits to the reserve that is to bring the answer: this one, or one
 * with its key that is under way. Locks: the table's mutex. */
static dibs_status answer_or_wait(dibs__http_exchange *ex, part *pt,
                                  reserve *rv, reserve **waits, dibs_error *err)
{
    delivery *got[COUNT_MAX];
    dibs_status rc = DIBS_OK;

    *waits = find_under_way(pt, rv->key);
    if (*waits) {
        (*waits)->users++;
    } else if (find_brought(pt, 0, rv->key, got) > 0) {
        answer_items(ex, pt, rv);
    } else {
        rc = begin_reserve(pt, rv, err);
        *waits = rc == DIBS_OK ? rv : NULL;
    }
    return rc;
}

static void start_reserve(dibs__http_exchange *ex, part *pt, reserve *rv)
{
    dibs__serve_bounds *table = pt->bound.table;
    dibs_error err = {0};
    delivery *back;
    reserve *waits;
    dibs_status rc;

    pthread_mutex_lock(&table->mutex);
    back = take_back(pt);
    rc = answer_or_wait(ex, pt, rv, &waits, &err);
    pthread_mutex_unlock(&table->mutex);
    free_deliveries(back);
    if (rc != DIBS_OK)
        dibs__serve_refuse_bound(ex, &err);
    if (waits != rv)
        dibsx_free(rv);
    if (!waits) {
        dibs__bound_let_go(&pt->bound);
        return;
    }
    dibs__http_answer_later(ex, &(dibs__http_later){.ask = ask_items,
                                                    .gone = end_reserve,
                                                    .arg = waits,
                                                    .wait_ms = WAIT_MAX_MS +
                                                               BEYOND_MS});
}

void dibs__serve_post_reserve(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *session, *key;
    const dibsx_json_node *body;
    int64_t count = 1, wait_ms = 0;
    dibs__bound *bound = NULL;
    dibs_error err = {0};
    reserve *rv;

    if (!name || !dibs__serve_ask_body(ex, "session count wait_ms", &body) ||
        !read_head(ex, body, &session, &key) ||
        !dibs__serve_ask_int(ex, body, "count", 1, COUNT_MAX, &count) ||
        !dibs__serve_ask_int(ex, body, "wait_ms", 0, WAIT_MAX_MS, &wait_ms))
        return;
    if (dibs__bound_take(&sv->bounds, session, dibs__serve_caller_of(ex)->name,
                         &part_kind, name, make_part, NULL, &bound,
                         &err) != DIBS_OK) {
        dibs__serve_refuse_bound(ex, &err);
        return;
    }
    rv = dibsx_zalloc(sizeof(*rv));
    if (!rv) {
        dibs__bound_let_go(bound);
        dibs__http_refuse(ex, 503, "There is no memory for the wait");
        return;
    }
    rv->want = (size_t)count;
    rv->wait_ms = wait_ms;
    snprintf(rv->key, sizeof(rv->key), "%s", key);
    start_reserve(ex, (part *)bound, rv);
}

/* -- Settling. */

typedef struct settlement {
    const char *delivery, *how, *reason;
    int64_t delay_ms, limit_ms;
} settlement;

static dibs_status
settle_item(dibs_item *item, const settlement *se, dibs_error *err)
{
    switch (se->how[1]) {
    case 'o': /* done */
        return dibs_item_ack(item, err);
    case 'e':
        return se->how[0] == 'd'
                   ? dibs_item_dead(item, se->reason, err)
                   : dibs_item_nack(item, se->delay_ms, se->reason, err);
    default:
        return dibs_item_extend(item, se->limit_ms, err);
    }
}

static bool is_extend(const settlement *se)
{
    return se->how[1] == 'x';
}

/* Locks: the table's mutex. */
static bool was_settled(const part *pt, const settlement *se)
{
    char mark[DELIVERY_SIZE + 8];

    snprintf(mark, sizeof(mark), "%s %s", se->delivery, se->how);
    for (size_t i = 0; i < SETTLED_KEPT; i++)
        if (strcmp(pt->settled[i], mark) == 0)
            return true;
    return false;
}

/* The one to settle, which is this request's then. DIBS_OK and NULL: it was settled so
 * before. Locks: the table's mutex. */
static dibs_status
take_delivery(part *pt, const settlement *se, delivery **out, dibs_error *err)
{
    *out = NULL;
    for (delivery *de = pt->first; de; de = de->next) {
        if (strcmp(de->token, se->delivery) != 0)
            continue;
        if (de->busy)
            return dibsx_fail(
                err, DIBS_UNAVAIL,
                "another request is about to settle this delivery; send the "
                "request again");
        de->busy = true;
        *out = de;
        return DIBS_OK;
    }
    if (was_settled(pt, se))
        return DIBS_OK;
    return dibsx_fail(err, DIBS_LOST,
                      "the session does not have this delivery in hand: it was "
                      "settled, or came back");
}

/* Locks: the table's mutex. */
static void note_settled(part *pt, const settlement *se)
{
    char *mark = pt->settled[pt->settled_next++ % SETTLED_KEPT];

    snprintf(mark, sizeof(pt->settled[0]), "%s %s", se->delivery, se->how);
}

static dibs_status settle(part *pt, const settlement *se, dibs_error *err)
{
    pthread_mutex_t *mutex = &pt->bound.table->mutex;
    delivery *de = NULL;
    dibs_status rc;
    bool keep;

    pthread_mutex_lock(mutex);
    rc = take_delivery(pt, se, &de, err);
    pthread_mutex_unlock(mutex);
    if (!de)
        return rc;
    rc = settle_item(de->item, se, err);
    keep = rc == DIBS_UNAVAIL || rc == DIBS_NOMEM ||
           (is_extend(se) && (rc == DIBS_OK || rc == DIBS_UNKNOWN));
    pthread_mutex_lock(mutex);
    de->busy = false;
    if (!keep)
        remove_delivery(pt, de);
    if (!keep && rc == DIBS_OK)
        note_settled(pt, se);
    pthread_mutex_unlock(mutex);
    if (!keep)
        free_delivery(de);
    return rc;
}

/* False: it was refused. */
static bool read_settlement(dibs__http_exchange *ex,
                            const dibsx_json_node *body, settlement *se)
{
    if (!dibs__serve_ask_text(ex, body, "delivery", DELIVERY_SIZE - 1,
                              &se->delivery) ||
        !dibs__serve_ask_text(ex, body, "how", 7, &se->how) ||
        !dibs__serve_ask_text(ex, body, "reason", 255, &se->reason) ||
        !dibs__serve_ask_int(ex, body, "delay_ms", 0, DAY_MS * INT64_C(366),
                             &se->delay_ms) ||
        !dibs__serve_ask_int(ex, body, "limit_ms", 0, DAY_MS, &se->limit_ms))
        return false;
    if (se->delivery && se->how &&
        (strcmp(se->how, "done") == 0 || strcmp(se->how, "retry") == 0 ||
         strcmp(se->how, "extend") == 0 || strcmp(se->how, "dead") == 0))
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "the body must have \"delivery\", and \"how\": "
                             "done, retry, extend or dead");
    return false;
}

void dibs__serve_post_settle(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *session, *key;
    settlement se = {.delay_ms = -1};
    const dibsx_json_node *body;
    dibs__bound *bound = NULL;
    dibs_error err = {0};

    if (!name ||
        !dibs__serve_ask_body(ex,
                              "session delivery how delay_ms limit_ms reason",
                              &body) ||
        !read_head(ex, body, &session, &key) || !read_settlement(ex, body, &se))
        return;
    if (dibs__bound_take(&sv->bounds, session, dibs__serve_caller_of(ex)->name,
                         &part_kind, name, NULL, NULL, &bound, &err) != DIBS_OK)
        dibs__serve_refuse_bound(ex, &err);
    else if (settle((part *)bound, &se, &err) == DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        (void)dibs__serve_fail(ex, &err);
    dibs__bound_let_go(bound);
}
