/* commit.c - commits, reads of several values and looks at indexes: the public calls,
 * each one step of the store. Names get the client's prefix here. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/state.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/topic.h"
#include <inttypes.h>
#include <string.h>

/* A program that was built with the public bounds meets those of the store. */
_Static_assert((int)DIBS_COMMITS_MAX == (int)DIBS__COMMITS_MAX &&
                   (int)DIBS_CHECKS_MAX == (int)DIBS__CHECKS_MAX &&
                   (int)DIBS_CHANGES_MAX == (int)DIBS__CHANGES_MAX &&
                   (int)DIBS_GET_MANY_MAX == (int)DIBS__GET_MANY_MAX &&
                   (int)DIBS_LOOKS_MAX == (int)DIBS__LOOKS_MAX &&
                   (int)DIBS_LOOK_MAX == (int)DIBS__LOOK_LIMIT_MAX &&
                   DIBS_INDEX_AT_MAX == DIBS__INDEX_AT_MAX &&
                   DIBS_INDEX_NOW == DIBS__UP_TO_NOW,
               "the bounds of commits are the same on both sides");

/* A bell is a topic in the store. */
typedef char full_name[DIBS__TOPIC_MAX];

/* The commits of a call as the store takes them. One allocation each; end with
 * batch_fini(). */
typedef struct batch {
    dibs_client *cl;
    dibs__commit *items;
    dibs__check *checks;
    dibs__change *changes;
    full_name *names;
    size_t check_count, change_count; /* filled in so far */
} batch;

static void batch_fini(batch *bt)
{
    dibsx_free(bt->names);
    dibsx_free(bt->changes);
    dibsx_free(bt->checks);
    dibsx_free(bt->items);
}

/* Counts are checked before anything is allocated for them. */
static dibs_status
batch_init(batch *bt, dibs_client *cl, const dibs_commit *commits, size_t count,
           dibs_error *err)
{
    size_t checks = 0, changes = 0;

    *bt = (batch){.cl = cl};
    if (count < 1 || count > DIBS_COMMITS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a call has 1 to %d commits; this one has %zu",
                          DIBS_COMMITS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        if (commits[i].check_count > DIBS_CHECKS_MAX ||
            commits[i].change_count > DIBS_CHANGES_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "commit %zu has more than %d checks or more than "
                              "%d changes",
                              i, DIBS_CHECKS_MAX, DIBS_CHANGES_MAX);
        checks += commits[i].check_count;
        changes += commits[i].change_count;
    }
    bt->items = dibsx_zalloc_n(count, sizeof(*bt->items));
    bt->checks = dibsx_zalloc_n(checks + 1, sizeof(*bt->checks));
    bt->changes = dibsx_zalloc_n(changes + 1, sizeof(*bt->changes));
    bt->names = dibsx_zalloc_n(checks + changes + 1, sizeof(*bt->names));
    if (bt->items && bt->checks && bt->changes && bt->names)
        return DIBS_OK;
    batch_fini(bt);
    return dibsx_nomem(err, "a commit");
}

/* The name with the client's prefix, in storage of the batch. */
static dibs_status
batch_name(batch *bt, const char *name, const char **out, dibs_error *err)
{
    char *full = bt->names[bt->check_count + bt->change_count];

    *out = full;
    return dibs__name_full(bt->cl, name, full, err);
}

/* The topic of a bell: that of a value of its name, so that it has the same slot. */
static dibs_status
batch_bell(batch *bt, const char *name, const char **out, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    char *topic = bt->names[bt->check_count + bt->change_count];
    dibs_status rc = dibs__name_full(bt->cl, name, full, err);

    *out = topic;
    if (rc == DIBS_OK)
        dibs__topic_of_value(full, topic);
    return rc;
}

static dibs_status
add_check(batch *bt, const dibs_commit_check *check, dibs_error *err)
{
    dibs__check *to = &bt->checks[bt->check_count];
    dibs_status rc = batch_name(bt, check->key, &to->key, err);

    to->version = check->version;
    bt->check_count++;
    return rc;
}

static dibs_status
check_member(const dibs_commit_change *change, dibs_error *err)
{
    if (change->verb != DIBS_COMMIT_ENTER && change->verb != DIBS_COMMIT_LEAVE)
        return DIBS_OK;
    if (!change->member)
        return dibsx_fail(err, DIBS_INVALID, "a member of an index is NULL");
    return dibs__text_check("the member of an index", change->member, err);
}

static dibs_status
add_change(batch *bt, const dibs_commit_change *change, dibs_error *err)
{
    static const dibs__change_verb verbs[] = {
        [DIBS_COMMIT_PUT] = DIBS__CHANGE_PUT,
        [DIBS_COMMIT_DELETE] = DIBS__CHANGE_DELETE,
        [DIBS_COMMIT_ENTER] = DIBS__CHANGE_ENTER,
        [DIBS_COMMIT_LEAVE] = DIBS__CHANGE_LEAVE,
        [DIBS_COMMIT_RING] = DIBS__CHANGE_TELL,
    };
    dibs__change *to = &bt->changes[bt->change_count];
    dibs_status rc;

    if ((unsigned)change->verb >= sizeof(verbs) / sizeof(verbs[0]))
        return dibsx_fail(err, DIBS_INVALID, "%d is no verb of a change",
                          (int)change->verb);
    *to = (dibs__change){.verb = verbs[change->verb],
                         .member = change->member,
                         .data = change->data,
                         .len = change->len,
                         .ttl_ms = change->ttl_ms,
                         .at = change->at,
                         .from_now = change->from_now,
                         .uncounted = !change->counted};
    rc = change->verb == DIBS_COMMIT_RING
             ? batch_bell(bt, change->name, &to->key, err)
             : batch_name(bt, change->name, &to->key, err);
    bt->change_count++;
    return rc == DIBS_OK ? check_member(change, err) : rc;
}

static dibs_status add_commit(batch *bt, const dibs_commit *commit,
                              dibs__commit *to, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    *to = (dibs__commit){.not_before_us = commit->not_before_us,
                         .not_after_us = commit->not_after_us,
                         .checks = bt->checks + bt->check_count,
                         .check_count = commit->check_count,
                         .changes = bt->changes + bt->change_count,
                         .change_count = commit->change_count};
    for (size_t i = 0; i < commit->check_count && rc == DIBS_OK; i++)
        rc = add_check(bt, &commit->checks[i], err);
    for (size_t i = 0; i < commit->change_count && rc == DIBS_OK; i++)
        rc = add_change(bt, &commit->changes[i], err);
    return rc;
}

static void clear_answer(dibs_commit *commit, dibs_status rc)
{
    commit->rc = rc;
    commit->failed = 0;
    commit->found = (dibs_value){0};
    commit->version = 0;
    commit->now_us = 0;
    for (size_t i = 0;
         i < commit->change_count && commit->change_count <= DIBS_CHANGES_MAX;
         i++)
        commit->changes[i].size = 0;
}

static void copy_answer(dibs_commit *commit, const dibs__commit *from)
{
    commit->rc = from->rc;
    commit->failed = from->failed;
    commit->found = from->found;
    commit->version = from->version;
    commit->now_us = from->now_us;
    for (size_t i = 0; i < commit->change_count; i++)
        commit->changes[i].size = from->changes[i].size;
}

/* The step says why all failed; of one that was refused it says nothing. */
static dibs_status fail_refused(const dibs_commit *commit, dibs_error *err)
{
    switch (commit->rc) {
    case DIBS_STALE:
        return dibsx_fail(err, DIBS_STALE, "%s has another version by now",
                          commit->checks[commit->failed].key);
    case DIBS_EARLY:
        return dibsx_fail(err, DIBS_EARLY,
                          "the commit is %" PRId64
                          " us early on the store's clock",
                          commit->not_before_us - commit->now_us);
    case DIBS_LATE:
        return dibsx_fail(err, DIBS_LATE,
                          "the commit is %" PRId64
                          " us late on the store's clock",
                          commit->now_us - commit->not_after_us);
    default:
        return dibsx_fail(err, commit->rc, "a commit failed: %s",
                          dibs_status_text(commit->rc));
    }
}

static dibs_status
send_batch(batch *bt, dibs_commit *commits, size_t count, dibs_error *err)
{
    dibs__store *st = bt->cl->st;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = add_commit(bt, &commits[i], &bt->items[i], err);
    if (rc == DIBS_OK)
        rc = st->ops->commit->commit(st, bt->items, count,
                                     dibs__client_deadline(bt->cl, dibsx_now()),
                                     err);
    for (size_t i = 0; i < count; i++)
        if (rc == DIBS_OK)
            copy_answer(&commits[i], &bt->items[i]);
        else
            commits[i].rc = rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        if (commits[i].rc != DIBS_OK)
            return fail_refused(&commits[i], err);
    return rc;
}

dibs_status dibs_state_commit(dibs_client *cl, dibs_commit *commits,
                              size_t count, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__reach_usable(cl, err);
    batch bt;

    for (size_t i = 0; i < count; i++)
        clear_answer(&commits[i], rc);
    if (rc != DIBS_OK)
        return rc;
    rc = batch_init(&bt, cl, commits, count, err);
    if (rc != DIBS_OK) {
        for (size_t i = 0; i < count; i++)
            commits[i].rc = rc;
        return rc;
    }
    rc = send_batch(&bt, commits, count, err);
    batch_fini(&bt);
    return rc;
}

void dibs_commit_free(dibs_commit *commits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs_value_free(&commits[i].found);
}

dibs_status dibs_state_get_many(dibs_client *cl, const char *const *keys,
                                size_t count, dibs_value *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    full_name names[DIBS_GET_MANY_MAX];
    const char *list[DIBS_GET_MANY_MAX];
    dibs_status rc;

    memset(out, 0, count * sizeof(*out));
    rc = dibs__reach_usable(cl, err);
    if (rc == DIBS_OK && (count < 1 || count > DIBS_GET_MANY_MAX))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "a call has 1 to %d keys; this one has %zu",
                        DIBS_GET_MANY_MAX, count);
    for (size_t i = 0; rc == DIBS_OK && i < count; i++) {
        rc = dibs__name_full(cl, keys[i], names[i], err);
        list[i] = names[i];
    }
    if (rc != DIBS_OK)
        return rc;
    return cl->st->ops->commit->get_many(cl->st, list, count,
                                         dibs__client_deadline(cl, dibsx_now()),
                                         out, err);
}

typedef struct showing {
    dibs_index_fn *each;
    void *arg;
    bool over; /* the caller has seen enough */
} showing;

static void show_entry(size_t look, const char *member, int64_t at, void *arg)
{
    dibs_index_entry entry = {.look = look, .member = member, .at = at};
    showing *sh = arg;

    if (!sh->over)
        sh->over = !sh->each(&entry, sh->arg);
}

dibs_status dibs_index_first(dibs_client *cl, dibs_index_look *looks,
                             size_t count, int64_t *now_us, dibs_index_fn *each,
                             void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    showing sh = {.each = each, .arg = arg};
    full_name names[DIBS_LOOKS_MAX];
    dibs__index_look list[DIBS_LOOKS_MAX];
    int64_t now = 0;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK && (count < 1 || count > DIBS_LOOKS_MAX))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "a call has 1 to %d looks; this one has %zu",
                        DIBS_LOOKS_MAX, count);
    for (size_t i = 0; rc == DIBS_OK && i < count; i++) {
        rc = dibs__name_full(cl, looks[i].index, names[i], err);
        list[i] = (dibs__index_look){.index = names[i],
                                     .from = looks[i].from,
                                     .up_to = looks[i].up_to,
                                     .skip = looks[i].skip,
                                     .limit = looks[i].limit};
    }
    if (rc == DIBS_OK)
        rc = cl->st->ops->commit->first(cl->st, list, count,
                                        dibs__client_deadline(cl, dibsx_now()),
                                        &now, show_entry, &sh, err);
    if (now_us)
        *now_us = now;
    for (size_t i = 0; i < count; i++)
        looks[i].next = rc == DIBS_OK ? list[i].next : -1;
    return rc;
}
