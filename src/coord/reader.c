/* reader.c - readers of a topic: drives the machine of each in real time.
 *
 * A reader lives on the thread that waits for it: that thread listens, reads and looks
 * at the bounds. The keeper passes the tells of the store on. Locks: cl->mutex guards all
 * of it but the page, which is of the waiting thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/events.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "coord/handle.h"
#include "coord/reader_group.h"
#include "coord/reader_machine.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>

/* A page ends with the entry in which it reaches one of these. */
enum { PAGE_ENTRIES = 128, PAGE_BYTES = 256 << 10 };

enum { KEEP_MS = 1000 }; /* between two writes of a group's position */

enum { REST_MS = 500 }; /* between two tries to enter a group in an outage */

struct dibs_reader {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    char topic[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    dibs__reader machine;
    bool grouped;
    dibs__reader_group group; /* of the waiting thread, as the page is */
    dibs_reader_opts opts;
    pthread_cond_t cond;
    bool waiting; /* a thread is in dibs_reader_next() */
    bool cancelled;
    bool deaf;          /* the store forbids it to listen; said once */
    bool away;          /* the last call to the store failed */
    dibs_error failure; /* of that */

    dibs__log_entry entries[PAGE_ENTRIES]; /* their data is set when shown */
    size_t count, shown;
    size_t offset;   /* of the data of the next one to show */
    bool cut;        /* the page has reached its bytes */
    dibsx_buf bytes; /* the data of all of them, one after the other */
};

static dibs_reader *reader_of(dibs__handle *handle)
{
    return (dibs_reader *)(void *)handle;
}

static void wake(dibs__handle *handle)
{
    pthread_cond_signal(&reader_of(handle)->cond);
}

/* Thread: the keeper. */
static void hear_append(dibs__handle *handle, const dibs__notice *notice)
{
    if (notice->kind == DIBS__NOTICE_CHANGED &&
        dibs__reader_told(&reader_of(handle)->machine, notice->fence))
        wake(handle);
}

/* Thread: the keeper. */
static void hear_missed(dibs__handle *handle)
{
    dibs__reader_missed(&reader_of(handle)->machine);
    wake(handle);
}

static const dibs__handle_kind kind = {.noun = "a reader",
                                       .wake = wake,
                                       .hear = hear_append,
                                       .hear_missed = hear_missed};

static dibs_status
copy_opts(const dibs_reader_opts *opts, dibs_reader_opts *out, dibs_error *err)
{
    dibs_status rc =
        dibsx_opts_copy(out, sizeof(*out), opts, "DIBS_READER_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (out->start < DIBS_FROM_END || out->start > DIBS_FROM_POSITION)
        return dibsx_fail(err, DIBS_INVALID, "there is no such start: %d",
                          (int)out->start);
    if (out->start == DIBS_FROM_TIME && out->wall_us < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "the time to start from is negative");
    return DIBS_OK;
}

static void begin_machine(dibs__reader *r, const dibs_reader_opts *opts)
{
    static const dibs__reader_from starts[] = {
        [DIBS_FROM_END] = DIBS__FROM_END,
        [DIBS_FROM_START] = DIBS__FROM_START,
        [DIBS_FROM_TIME] = DIBS__FROM_TIME,
        [DIBS_FROM_POSITION] = DIBS__FROM_POSITION,
    };

    dibs__reader_init(r, starts[opts->start],
                      opts->start == DIBS_FROM_TIME ? (uint64_t)opts->wall_us
                                                    : opts->position);
}

static void drop_reader(dibs_reader *r)
{
    if (r->grouped)
        dibs__reader_group_fini(&r->group);
    dibsx_buf_fini(&r->bytes);
    dibsx_free(r);
}

dibs_status dibs_reader_new(dibs_client *cl, const char *topic,
                            const dibs_reader_opts *opts, dibs_reader **out,
                            dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    dibs_reader_opts want;
    const char *why;
    dibs_reader *r;

    *out = NULL;
    if (rc == DIBS_OK)
        rc = copy_opts(opts, &want, err);
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_LOG);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    r = dibsx_zalloc(sizeof(*r));
    if (!r)
        return dibsx_nomem(err, "a reader");
    r->cl = cl;
    dibsx_buf_init(&r->bytes, PAGE_BYTES + DIBS__LOG_DATA_MAX);
    r->opts = want;
    r->opts.group = NULL; /* borrowed for the call */
    rc = dibs__name_full(cl, topic, r->topic, err);
    r->grouped = rc == DIBS_OK && want.group;
    if (r->grouped)
        rc = dibs__reader_group_init(&r->group, cl, topic, want.group,
                                     want.ttl_ms, err);
    if (rc != DIBS_OK || !dibsx_cond_init(&r->cond)) {
        drop_reader(r);
        return rc != DIBS_OK ? rc : dibsx_nomem(err, "a reader");
    }
    r->handle.kind = &kind;
    dibs__topic_of_log(r->topic, r->handle.topic);
    begin_machine(&r->machine, &want);
    pthread_mutex_lock(&cl->mutex);
    rc = dibs__handle_join(cl, &r->handle, err);
    pthread_mutex_unlock(&cl->mutex);
    if (rc == DIBS_OK) {
        *out = r;
        return DIBS_OK;
    }
    pthread_cond_destroy(&r->cond);
    drop_reader(r);
    return rc;
}

/* Notes how a call to the store ended. True when the wait goes on: the call worked,
 * or may work later. Locks: cl->mutex, let go for the log. */
static bool
note_outcome(dibs_reader *r, dibs_status rc, const dibs_error *failure)
{
    bool is_new = rc != DIBS_OK && !r->away;

    r->away = rc != DIBS_OK;
    if (rc == DIBS_OK)
        return true;
    r->failure = *failure;
    if (is_new) {
        pthread_mutex_unlock(&r->cl->mutex);
        dibs__log(r->cl, DIBS_LOG_WARN, "events",
                  "cannot read %s, and will try again: %s",
                  dibs__name_short(r->cl, r->topic), failure->message);
        pthread_mutex_lock(&r->cl->mutex);
    }
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs_reader *r)
{
    dibs_client *cl = r->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibs_error err = {0};
    dibs_status rc =
        dibs__handle_listen(&r->handle, dibs__client_deadline(cl, sent_at),
                            &err);
    bool is_new = rc == DIBS_DENIED && !r->deaf;

    r->deaf = rc == DIBS_DENIED;
    dibs__reader_eared(&r->machine, sent_at, dibsx_now(), rc);
    if (!is_new)
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__log(cl, DIBS_LOG_WARN, "events",
              "cannot listen to %s, so events come later: %s",
              dibs__name_short(cl, r->topic), err.message);
    pthread_mutex_lock(&cl->mutex);
}

static bool add_entry(const dibs__log_entry *entry, void *arg)
{
    dibs_reader *r = arg;

    r->entries[r->count] = *entry;
    if (entry->len > 0)
        dibsx_buf_add(&r->bytes, entry->data, entry->len);
    if (!dibsx_buf_ok(&r->bytes))
        return false;
    r->count++;
    r->cut = r->bytes.len >= PAGE_BYTES;
    return !r->cut && r->count < PAGE_ENTRIES;
}

/* Reads the next page. Locks: cl->mutex, let go meanwhile. */
static bool read_page(dibs_reader *r, dibs__reader_news *news)
{
    dibs_client *cl = r->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    uint64_t after = r->machine.at;
    dibs_error err = {0};
    dibs_status rc;

    r->count = r->shown = r->offset = 0;
    r->cut = false;
    dibsx_buf_reset(&r->bytes);
    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->log->read(cl->st, r->topic, after, PAGE_ENTRIES,
                                    deadline, add_entry, r, &err);
    if (rc == DIBS_OK && !dibsx_buf_ok(&r->bytes))
        rc = dibsx_nomem(&err, "a page of events");
    pthread_mutex_lock(&cl->mutex);
    if (rc != DIBS_OK)
        r->count = 0;
    *news = dibs__reader_read(&r->machine, dibsx_now(), rc, r->count,
                              r->cut || r->count == PAGE_ENTRIES);
    return note_outcome(r, rc, &err);
}

/* Locks: cl->mutex, let go meanwhile. */
static bool look_bounds(dibs_reader *r, dibs__reader_news *news)
{
    dibs_client *cl = r->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs__log_span span = {0};
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->log->bounds(cl->st, r->topic, deadline, &span, &err);
    pthread_mutex_lock(&cl->mutex);
    *news = dibs__reader_bounded(&r->machine, dibsx_now(), rc, &span);
    return note_outcome(r, rc, &err);
}

/* The next entry of the page. Locks: cl->mutex. */
static dibs__reader_news show_entry(dibs_reader *r, dibs_event *out)
{
    dibs__log_entry *entry = &r->entries[r->shown];
    dibs__reader_news news = dibs__reader_show(&r->machine, entry);

    if (news == DIBS__READER_GAP || news == DIBS__READER_FORK)
        return news;
    if (news == DIBS__READER_EVENT)
        *out = (dibs_event){.kind = DIBS_EVENT,
                            .position = entry->position,
                            .wall_us = entry->store_wall_us,
                            .data = dibsx_buf_text(&r->bytes) + r->offset,
                            .len = entry->len};
    r->offset += entry->len;
    r->shown++;
    return news;
}

static bool
take_news(const dibs_reader *r, dibs__reader_news news, dibs_event *out)
{
    if (news == DIBS__READER_GAP || news == DIBS__READER_FORK)
        *out = (dibs_event){.kind = news == DIBS__READER_GAP ? DIBS_EVENT_GAP
                                                             : DIBS_EVENT_FORK,
                            .position = r->machine.at,
                            .from = r->machine.gap_from,
                            .to = r->machine.gap_to};
    return news != DIBS__READER_NOTHING;
}

static dibs_status fail_late(const dibs_reader *r, dibs_error *err)
{
    if (r->away)
        return dibsx_fail_at(err, r->failure.status, r->failure.origin, "%s",
                             r->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "no event of %s came in time",
                      dibs__name_short(r->cl, r->topic));
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_event(dibs_reader *r, dibsx_nsec deadline,
                               dibs_event *out, dibs_error *err)
{
    dibs__reader_news news = DIBS__READER_NOTHING;
    bool goes_on = true;

    while (goes_on && !take_news(r, news, out)) {
        dibsx_nsec until, now = dibsx_now();

        if (r->cancelled || r->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        news = DIBS__READER_NOTHING;
        if (r->shown < r->count) {
            news = show_entry(r, out);
            continue;
        }
        switch (dibs__reader_next(&r->machine, now, &until)) {
        case DIBS__READER_EAR:
            listen_topic(r);
            break;
        case DIBS__READER_READ:
            goes_on = read_page(r, &news);
            break;
        case DIBS__READER_BOUNDS:
            goes_on = look_bounds(r, &news);
            break;
        case DIBS__READER_SLEEP:
            if (now >= deadline)
                return fail_late(r, err);
            dibsx_cond_wait(&r->cond, &r->cl->mutex,
                            until < deadline ? until : deadline);
            break;
        }
    }
    return goes_on ? DIBS_OK : fail_late(r, err);
}

static dibs_status fail_lost(const dibs_reader *r, dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "the lease of %s was lost: another reader of the group "
                      "goes on; call again to wait for it",
                      r->group.name);
}

/* Keeps the position of what was handled: once a second, and before the reader may
 * wait for the store. */
static dibs_status keep_handled(dibs_reader *r, dibs_error *err)
{
    uint64_t position = dibs_reader_position(r);
    dibs_status rc;

    if (!dibs__reader_group_holds(&r->group))
        return fail_lost(r, err);
    if (position == 0 || position == r->group.kept ||
        (r->shown < r->count &&
         dibsx_now() < dibsx_after_ms(r->group.kept_at, KEEP_MS)))
        return DIBS_OK;
    rc = dibs__reader_group_keep(&r->group, position, err);
    return rc == DIBS_LOST ? rc : DIBS_OK;
}

/* The position that the group keeps is where the reader begins. Locks: cl->mutex. */
static void begin_turn(dibs_reader *r, bool found, uint64_t position)
{
    dibs_reader_opts from = r->opts;

    if (found) {
        from.start = DIBS_FROM_POSITION;
        from.position = position;
    }
    begin_machine(&r->machine, &from);
    r->count = r->shown = r->offset = 0;
}

/* One try to become the reader of the group. DIBS_BUSY: another has the turn. In *again
 * is whether a later try may do better, after a rest if the store is away. */
static dibs_status
try_turn(dibs_reader *r, dibsx_nsec deadline, bool *again, dibs_error *err)
{
    bool at_end = r->opts.start == DIBS_FROM_END, found = false, ends;
    uint64_t position = 0;
    int64_t left_ms = dibsx_wait_ms(deadline, dibsx_now());
    dibs_status rc = dibs__reader_group_enter(&r->group, left_ms, at_end,
                                              &found, &position, err);
    bool answered = rc == DIBS_OK || rc == DIBS_BUSY;
    dibsx_nsec rest_until = dibsx_after_ms(dibsx_now(), REST_MS);

    pthread_mutex_lock(&r->cl->mutex);
    if (rc == DIBS_OK)
        begin_turn(r, found, position);
    *again = note_outcome(r, answered ? DIBS_OK : rc, err) && rc != DIBS_OK;
    while (*again && !answered && !r->cancelled && !r->cl->closing &&
           dibsx_now() < rest_until && dibsx_now() < deadline)
        dibsx_cond_wait(&r->cond, &r->cl->mutex,
                        rest_until < deadline ? rest_until : deadline);
    ends = r->cancelled || r->cl->closing;
    pthread_mutex_unlock(&r->cl->mutex);
    if (!ends)
        return rc;
    *again = false;
    return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
}

/* Waits until this is the reader of its group, also through an outage. */
static dibs_status
enter_group(dibs_reader *r, dibsx_nsec deadline, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status rc;
    bool again;

    do
        rc = try_turn(r, deadline, &again, &why);
    while (again && dibsx_now() < deadline);
    if (rc == DIBS_BUSY)
        return dibsx_fail(err, DIBS_TIMEOUT,
                          "the turn in the group %s did not come in time: "
                          "another reader has it",
                          r->group.name);
    if (rc != DIBS_OK && err)
        *err = why;
    return rc;
}

/* A reader that was displaced learns it once; the next call enters again. */
static dibs_status
begin_grouped(dibs_reader *r, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (!r->grouped)
        return DIBS_OK;
    if (!r->group.entered)
        return enter_group(r, deadline, err);
    rc = keep_handled(r, err);
    if (rc == DIBS_LOST)
        dibs__reader_group_leave(&r->group);
    return rc;
}

/* An event that came after the lease was lost is of the next reader. */
static dibs_status end_grouped(dibs_reader *r, dibs_status rc, dibs_error *err)
{
    if (!r->grouped || rc != DIBS_OK || dibs__reader_group_holds(&r->group))
        return rc;
    dibs__reader_group_leave(&r->group);
    return fail_lost(r, err);
}

dibs_status dibs_reader_commit(dibs_reader *r, dibs_error *err)
{
    DIBSX_UNCANCEL;
    uint64_t position = dibs_reader_position(r);
    dibs_status rc;

    if (!r || !r->grouped)
        return dibsx_fail(err, DIBS_INVALID,
                          "the reader has no group; keep its position "
                          "yourself");
    if (position == 0 || position == r->group.kept)
        return DIBS_OK;
    if (!r->group.entered)
        return fail_lost(r, err);
    rc = dibs__reader_group_keep(&r->group, position, err);
    if (rc == DIBS_LOST)
        dibs__reader_group_leave(&r->group);
    return rc;
}

/* One thread at a time. */
static dibs_status begin_wait(dibs_reader *r, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&r->cl->mutex);
    if (r->waiting)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another thread waits for this reader; make one for "
                        "each thread");
    if (rc == DIBS_OK) {
        r->waiting = true;
        dibs__handle_begin(&r->handle);
    }
    pthread_mutex_unlock(&r->cl->mutex);
    return rc;
}

/* A cancel that did not end this wait is for the next one. */
static void end_wait(dibs_reader *r, dibs_status rc)
{
    pthread_mutex_lock(&r->cl->mutex);
    if (rc == DIBS_CANCELLED)
        r->cancelled = false;
    r->waiting = false;
    dibs__handle_end(&r->handle);
    pthread_mutex_unlock(&r->cl->mutex);
}

dibs_status dibs_reader_next(dibs_reader *r, int64_t wait_ms, dibs_event *out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc;

    *out = (dibs_event){.kind = DIBS_EVENT};
    if (!r)
        return dibsx_fail(err, DIBS_INVALID, "the reader is NULL");
    rc = dibs__client_usable(r->cl, err);
    if (rc == DIBS_OK)
        rc = begin_wait(r, err);
    if (rc != DIBS_OK)
        return rc;
    rc = begin_grouped(r, deadline, err);
    pthread_mutex_lock(&r->cl->mutex);
    if (rc == DIBS_OK)
        rc = await_event(r, deadline, out, err);
    pthread_mutex_unlock(&r->cl->mutex);
    rc = end_grouped(r, rc, err);
    end_wait(r, rc);
    return rc;
}

uint64_t dibs_reader_position(const dibs_reader *r)
{
    return r && r->machine.placed && r->machine.anchored ? r->machine.at : 0;
}

void dibs_reader_cancel(dibs_reader *r)
{
    DIBSX_UNCANCEL;

    if (!r || dibs__client_usable(r->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&r->cl->mutex);
    r->cancelled = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->cl->mutex);
}

void dibs_reader_free(dibs_reader *r)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!r || dibs__forked(r->cl->fork_number))
        return;
    cl = r->cl;
    if (r->grouped)
        dibs__reader_group_fini(&r->group);
    r->grouped = false;
    pthread_mutex_lock(&cl->mutex);
    last = dibs__handle_leave(&r->handle);
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&r->cond);
    drop_reader(r);
    if (last)
        dibs__client_free(cl);
}
