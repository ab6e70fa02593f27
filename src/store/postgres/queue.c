/* queue.c - the queue steps of clients: push, reserve, tend, leave.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/deliver.h"
#include "store/postgres/array.h"
#include "store/postgres/queue_full.h"

#include <stdlib.h>
#include <string.h>

/* Lanes that one statement tends. */
enum { TEND_MAX = 256 };

static dibs_status fail_lost(dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "the lane has ended, or the number is over");
}

dibs_status dibs__pg_queue_full(dibs__pg_answer *answer, dibs_error *err)
{
    int64_t items, cap;

    if (!dibs__pg_word(answer, 0, INT64_MAX, &items) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &cap))
        return dibs__pg_odd(err);
    return dibsx_fail(err, DIBS_FULL,
                      "the queue is full: it has %lld of %lld items; wait, or "
                      "set a higher cap",
                      (long long)items, (long long)cap);
}

/* ---- push */

enum { DATA, DELAYS, PRIORITIES, TRIES, TOS, DEDUPS, WINDOWS, PUSH_LISTS };

static void clear_push(const dibs__push *push)
{
    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = 0;
        push->items[i].duplicate = false;
    }
}

static void add_items(const dibs__push *push, dibs__pg_array *lists)
{
    for (size_t i = 0; i < push->count; i++) {
        const dibs__push_item *item = &push->items[i];

        dibs__pg_array_bytes(&lists[DATA], item->data, item->len);
        dibs__pg_array_int(&lists[DELAYS], dibs__pg_span(item->delay_ms));
        dibs__pg_array_int(&lists[PRIORITIES], item->priority);
        dibs__pg_array_int(&lists[TRIES], item->tries);
        dibs__pg_array_text(&lists[TOS], item->to);
        dibs__pg_array_text(&lists[DEDUPS], item->dedup);
        dibs__pg_array_int(&lists[WINDOWS], dibs__pg_span(item->dedup_ms));
    }
}

static dibs_status read_pushed(dibs__pg_answer *answer, int64_t status,
                               const dibs__push *push, dibs_error *err)
{
    if (status == DIBS_LOST)
        return fail_lost(err);
    if (status == DIBS_FULL)
        return dibs__pg_queue_full(answer, err);
    if (status == DIBS_INVALID)
        return dibsx_fail(err, DIBS_INVALID, "%s", answer->at);
    if (status != DIBS_OK)
        return dibs__pg_odd(err);
    for (size_t i = 0; i < push->count; i++) {
        int64_t id;

        if (!dibs__pg_word(answer, -INT64_MAX, INT64_MAX, &id) || id == 0)
            return dibs__pg_odd(err);
        push->items[i].duplicate = id < 0;
        push->items[i].id = (uint64_t)(id < 0 ? -id : id);
    }
    return DIBS_OK;
}

static dibs_status
send_push(struct dibs__store *st, const dibs__push *push, dibs__pg_array *lists,
          dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    dibs__pg_arg_text(&args, push->queue);
    dibs__pg_arg_int(&args, (int64_t)push->lane);
    dibs__pg_arg_int(&args, (int64_t)push->number);
    if (!dibs__pg_array_end(lists, PUSH_LISTS, &args))
        return dibsx_nomem(err, "a push");
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_PUSH, &args, deadline, &answer,
                       &status, err);
    if (rc == DIBS_OK)
        rc = read_pushed(&answer, status, push, err);
    dibs__pg_answer_fini(&answer);
    return rc;
}

static dibs_status push_items(struct dibs__store *st, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_array lists[PUSH_LISTS];
    dibs_status rc = dibs__deliver_check_push(push, err);

    clear_push(push);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < PUSH_LISTS; i++)
        dibs__pg_array_init(&lists[i]);
    add_items(push, lists);
    rc = send_push(st, push, lists, deadline, err);
    for (size_t i = 0; i < PUSH_LISTS; i++)
        dibs__pg_array_fini(&lists[i]);
    if (rc != DIBS_OK)
        clear_push(push);
    return rc;
}

/* ---- reserve */

enum { HEARD, SETTLE, REASONS, ASK_LISTS };

static void clear_reserve(dibs__reserve *ask, dibs_status rc)
{
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = rc;
}

static void add_token(dibs__pg_array *list, const dibs__token *token)
{
    dibs__pg_array_int(list, (int64_t)token->id);
    dibs__pg_array_int(list, (int64_t)token->fence);
    dibs__pg_array_int(list, token->attempt);
}

static void add_reason(dibs__pg_array *list, const dibs__settlement *settle)
{
    char text[DIBS__RESULT_MAX];
    size_t len = dibs__settle_text(settle);

    memcpy(text, len > 0 ? settle->reason : "", len);
    text[len] = '\0';
    dibs__pg_array_text(list, text);
}

static void add_lists(const dibs__reserve *ask, dibs__pg_array *lists)
{
    for (size_t i = 0; i < ask->heard_count; i++)
        add_token(&lists[HEARD], &ask->heard[i]);
    for (size_t i = 0; i < ask->settle_count; i++) {
        const dibs__settlement *settle = &ask->settle[i];
        int64_t span_ms = settle->ms > 0 ? dibs__pg_span(settle->ms) : 0;

        dibs__pg_array_int(&lists[SETTLE], settle->verb);
        add_token(&lists[SETTLE], &settle->token);
        dibs__pg_array_int(&lists[SETTLE], span_ms);
        add_reason(&lists[REASONS], settle);
    }
}

/* Lists that are empty are NULL. */
static bool end_lists(dibs__pg_array *lists, dibs__pg_args *args)
{
    bool whole = true;

    for (size_t i = 0; i < ASK_LISTS; i++)
        if (lists[i].count == 0)
            dibs__pg_arg_text(args, NULL);
        else
            whole = dibs__pg_array_end(&lists[i], 1, args) && whole;
    return whole;
}

static bool read_delivery(dibs__pg_answer *head, dibs__delivery *out)
{
    int64_t id, fence, attempt, lost, priority;

    if (!dibs__pg_word(head, 1, INT64_MAX, &id) ||
        !dibs__pg_word(head, 1, INT64_MAX, &fence) ||
        !dibs__pg_word(head, 1, UINT32_MAX, &attempt) ||
        !dibs__pg_word(head, 0, UINT32_MAX, &lost) ||
        !dibs__pg_word(head, INT32_MIN, INT32_MAX, &priority) ||
        !dibs__pg_word(head, 0, INT64_MAX, &out->limit_ms))
        return false;
    out->token = (dibs__token){.id = (uint64_t)id,
                               .fence = (uint64_t)fence,
                               .attempt = (uint32_t)attempt};
    out->lost = (uint32_t)lost;
    out->priority = (int32_t)priority;
    return true;
}

/* The second row has a letter for each settlement. */
static bool read_results(const PGresult *rows, dibs__reserve *ask)
{
    const char *results = dibs__pg_text(rows, 1, 0);

    return ask->number == 1 ||
           dibs__settle_read(ask->settle, ask->settle_count, results);
}

/* Looks at the whole answer before any of it is shown. */
static bool read_answer(const PGresult *rows, dibs__pg_answer *head,
                        dibs__reserve *ask, dibs__delivery_fn *each, void *arg)
{
    int count = dibs__pq.PQntuples(rows) - 2;
    dibs__pg_answer check;
    dibs__delivery delivery;
    int64_t stamp;

    if (count < 0 || !dibs__pg_word(head, 1, INT64_MAX, &stamp) ||
        !dibs__pg_word(head, -1, INT64_MAX, &ask->due_ms) ||
        !read_results(rows, ask))
        return false;
    ask->stamp = (uint64_t)stamp;
    check = *head;
    for (int i = 0; i < count; i++)
        if (!read_delivery(&check, &delivery))
            return false;
    if (*check.at)
        return false;
    for (int i = 0; i < count && read_delivery(head, &delivery); i++) {
        delivery.data = dibs__pg_text(rows, i + 2, 0);
        delivery.len = (size_t)dibs__pq.PQgetlength(rows, i + 2, 0);
        each(&delivery, arg);
    }
    return true;
}

static dibs_status
judge_answer(const PGresult *rows, dibs__reserve *ask, dibs__delivery_fn *each,
             void *arg, dibs_error *err)
{
    dibs__pg_answer head = {.at = ""};
    int64_t status;

    if (dibs__pq.PQntuples(rows) > 0)
        head.at = dibs__pg_text(rows, 0, 0);
    if (!dibs__pg_word(&head, 0, INT64_MAX, &status))
        return dibs__pg_odd(err);
    if (status == DIBS_LOST)
        return fail_lost(err);
    if (status == DIBS_INVALID)
        return dibsx_fail(err, DIBS_INVALID, "%s", head.at);
    if (status != DIBS_OK || !read_answer(rows, &head, ask, each, arg))
        return dibs__pg_odd(err);
    return DIBS_OK;
}

static dibs_status
send_reserve(dibs__pg *pg, dibs__reserve *ask, dibs__pg_array *lists,
             dibsx_nsec deadline, PGresult **rows, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, ask->queue);
    dibs__pg_arg_int(&args, (int64_t)ask->lane);
    dibs__pg_arg_int(&args, (int64_t)ask->number);
    dibs__pg_arg_int(&args, (int64_t)ask->seen);
    dibs__pg_arg_int(&args, dibs__pg_span(ask->span_ms));
    dibs__pg_arg_int(&args, ask->want);
    dibs__pg_arg_flag(&args, ask->wait);
    dibs__pg_arg_text(&args, ask->as);
    dibs__pg_arg_int(&args, ask->hands);
    dibs__pg_arg_int(&args,
                     ask->limit_ms > 0 ? dibs__pg_span(ask->limit_ms) : 0);
    dibs__pg_arg_text(&args, dibs__pg_doorbell_address(&pg->doorbell));
    if (!end_lists(lists, &args))
        return dibsx_nomem(err, "a request");
    return dibs__pg_step(pg, pg->steps, DIBS__PG_RESERVE, &args, deadline, rows,
                         err);
}

static dibs_status
reserve_items(struct dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
              dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    dibs__pg_array lists[ASK_LISTS];
    PGresult *rows = NULL;
    dibs_status rc = dibs__deliver_check_reserve(ask, err);

    clear_reserve(ask, rc);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < ASK_LISTS; i++)
        dibs__pg_array_init(&lists[i]);
    add_lists(ask, lists);
    rc = send_reserve(dibs__pg_of(st), ask, lists, deadline, &rows, err);
    if (rc == DIBS_OK)
        rc = judge_answer(rows, ask, each, arg, err);
    if (rc != DIBS_OK)
        clear_reserve(ask, rc);
    dibs__pq.PQclear(rows);
    for (size_t i = 0; i < ASK_LISTS; i++)
        dibs__pg_array_fini(&lists[i]);
    return rc;
}

/* ---- tend and leave */

static void clear_tends(dibs__tend *items, size_t count, dibs_status rc)
{
    for (size_t i = 0; i < count; i++) {
        items[i].rc = rc;
        items[i].left_ms = 0;
        items[i].ready = false;
    }
}

static bool read_tends(dibs__pg_answer *answer, dibs__tend *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t status, ready;

        if (!dibs__pg_word(answer, DIBS_OK, DIBS_LOST, &status) ||
            !dibs__pg_word(answer, 0, INT64_MAX, &items[i].left_ms) ||
            !dibs__pg_word(answer, 0, 1, &ready))
            return false;
        items[i].rc = (dibs_status)status;
        items[i].ready = ready != 0;
    }
    return true;
}

static dibs_status tend_some(struct dibs__store *st, dibs__tend *items,
                             size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_array lists[3]; /* queues, lanes, spans */
    dibs__pg_answer answer = {.at = ""};
    int64_t status;
    dibs_status rc;

    for (size_t i = 0; i < 3; i++)
        dibs__pg_array_init(&lists[i]);
    for (size_t i = 0; i < count; i++) {
        dibs__pg_array_text(&lists[0], items[i].queue);
        dibs__pg_array_int(&lists[1], (int64_t)items[i].lane);
        dibs__pg_array_int(&lists[2], dibs__pg_span(items[i].span_ms));
    }
    rc = dibs__pg_array_end(lists, 3, &args)
             ? dibs__pg_call(dibs__pg_of(st), DIBS__PG_TEND, &args, deadline,
                             &answer, &status, err)
             : dibsx_nomem(err, "lanes to tend");
    if (rc == DIBS_OK && !read_tends(&answer, items, count))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    for (size_t i = 0; i < 3; i++)
        dibs__pg_array_fini(&lists[i]);
    return rc;
}

static dibs_status
tend_lanes(struct dibs__store *st, dibs__tend *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    clear_tends(items, count, DIBS_UNAVAIL);
    for (size_t i = 0; i < count && rc == DIBS_OK; i += TEND_MAX) {
        size_t some = count - i < TEND_MAX ? count - i : TEND_MAX;

        rc = tend_some(st, items + i, some, deadline, err);
        if (rc != DIBS_OK)
            clear_tends(items + i, some, rc);
    }
    return rc;
}

static dibs_status
leave_queue(struct dibs__store *st, const char *queue, uint64_t lane,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    dibs__pg_arg_text(&args, queue);
    dibs__pg_arg_int(&args, (int64_t)lane);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_LEAVE, &args, deadline,
                       &answer, &status, err);
    dibs__pg_answer_fini(&answer);
    return rc;
}

const dibs__queue_ops dibs__pg_queue_ops = {
    .push = push_items,
    .reserve = reserve_items,
    .tend = tend_lanes,
    .leave = leave_queue,
};
