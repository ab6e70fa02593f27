/* commit.c - the commit step: a script for each commit, those for one server sent
 * together.
 *
 * Any thread. A commit that the server did not begin, because it lacks the script or its
 * slot moves, is sent again by itself, which follows the cluster; then the others that
 * are left go together again. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/redis/bell/subscription.h"
#include "store/redis/commit_read.h"
#include "store/redis/lease_words.h"
#include "store/redis/value_reply.h"
#include "store/redis/wire/error.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names of one commit; and the bytes of its keys, of its plan, of all that is sent
 * together. Each has the data of a whole step, and the names and members beside it. */
enum { NAMES_MAX = DIBS__CHECKS_MAX + DIBS__CHANGES_MAX, BYTES_MAX = 48 << 20 };
_Static_assert(NAMES_MAX + 8 <= DIBS__WORDS_MAX, "they fit into a command");

/* The words of one script, and their storage. */
typedef struct sheet {
    dibs__words words;
    struct {
        const char *name;
        bool index;
        size_t at; /* of its key, in `keys` */
    } names[NAMES_MAX];
    int name_count;
    char key_count[DIBS__NUMBER_MAX];
    dibsx_buf keys;
    dibsx_buf plan;
} sheet;

typedef struct entry {
    dibs__commit *item;
    int slot, server; /* both are 0 when there is no cluster */
    bool sent;        /* in this round */
    bool done;
} entry;

/* Commits under way. */
typedef struct committing {
    dibs__redis *rd;
    entry entries[DIBS__COMMITS_MAX];
    size_t count;
    dibsx_nsec deadline;
    sheet sheet;
    dibsx_buf bytes;
    dibs_error why; /* the reason why the last one failed */
} committing;

/* ---- the words */

/* The number of a key in the script, after the fence. Adds it if it is new. */
static int key_number(sheet *sh, const char *name, bool index)
{
    char key[DIBS__KEY_MAX];
    int i = 0;

    while (i < sh->name_count && (sh->names[i].index != index ||
                                  strcmp(sh->names[i].name, name) != 0))
        i++;
    if (i == sh->name_count) {
        sh->names[i].name = name;
        sh->names[i].index = index;
        sh->names[i].at = sh->keys.len;
        sh->name_count++;
        dibsx_buf_add(&sh->keys, key,
                      1 + (index ? dibs__key_index(name, key)
                                 : dibs__key_value(name, key)));
    }
    return i + 2;
}

static bool takes_away(dibs__change_verb verb)
{
    return verb == DIBS__CHANGE_LEAVE || verb == DIBS__CHANGE_DELETE;
}

static void add_bytes(sheet *sh, const void *bytes, size_t len)
{
    dibsx_buf_printf(&sh->plan, "%zu\n", len);
    dibsx_buf_add(&sh->plan, bytes ? bytes : "", len);
}

static void add_tell(sheet *sh, const dibs__change *change)
{
    char channel[DIBS__CHANNEL_MAX];

    snprintf(channel, sizeof(channel), DIBS__TOPIC_CHANNEL "%s", change->key);
    dibsx_buf_printf(&sh->plan, "t 0 %" PRIu64 " ", change->number);
    add_bytes(sh, channel, strlen(channel));
}

static void add_change(sheet *sh, const dibs__change *change)
{
    switch (change->verb) {
    case DIBS__CHANGE_PUT:
        dibsx_buf_printf(&sh->plan, "p %d %" PRId64 " ",
                         key_number(sh, change->key, false),
                         dibs__redis_value_ttl(change->ttl_ms));
        add_bytes(sh, change->data, change->len);
        break;
    case DIBS__CHANGE_DELETE:
        dibsx_buf_printf(&sh->plan, "d %d 0 0\n",
                         key_number(sh, change->key, false));
        break;
    case DIBS__CHANGE_ENTER:
        dibsx_buf_printf(&sh->plan, "%c %d %" PRId64 " ",
                         change->from_now ? 'f' : 'e',
                         key_number(sh, change->key, true), change->at);
        add_bytes(sh, change->member, strlen(change->member));
        break;
    case DIBS__CHANGE_LEAVE:
        dibsx_buf_printf(&sh->plan, "l %d 0 ",
                         key_number(sh, change->key, true));
        add_bytes(sh, change->member, strlen(change->member));
        break;
    case DIBS__CHANGE_TELL:
        add_tell(sh, change);
        break;
    }
}

static void write_plan(sheet *sh, const dibs__commit *item)
{
    dibsx_buf_printf(&sh->plan, "%" PRId64 " %" PRId64 " %zu %zu\n",
                     item->not_before_us, item->not_after_us, item->check_count,
                     item->change_count);
    for (size_t i = 0; i < item->check_count; i++)
        dibsx_buf_printf(&sh->plan, "%d %" PRIu64 "\n",
                         key_number(sh, item->checks[i].key, false),
                         item->checks[i].version);
    for (size_t i = 0; i < item->change_count; i++)
        if (takes_away(item->changes[i].verb))
            add_change(sh, &item->changes[i]);
    for (size_t i = 0; i < item->change_count; i++)
        if (!takes_away(item->changes[i].verb))
            add_change(sh, &item->changes[i]);
}

/* A commit that only tells has the slot of its first channel, as tell.lua. */
static void add_channel(sheet *sh, const dibs__commit *item)
{
    dibsx_buf_puts(&sh->keys, DIBS__TOPIC_CHANNEL);
    dibsx_buf_puts(&sh->keys, item->changes[0].key);
    dibsx_buf_putc(&sh->keys, '\0');
    sh->names[0].at = 0;
    sh->name_count = 1;
}

static dibs_status
write_words(committing *cm, const dibs__commit *item, dibs_error *err)
{
    sheet *sh = &cm->sheet;

    sh->name_count = 0;
    dibsx_buf_reset(&sh->keys);
    dibsx_buf_reset(&sh->plan);
    write_plan(sh, item);
    if (sh->name_count == 0)
        add_channel(sh, item);
    if (!dibsx_buf_ok(&sh->keys) || !dibsx_buf_ok(&sh->plan))
        return dibsx_nomem(err, "a commit");
    snprintf(sh->key_count, sizeof(sh->key_count), "%d", sh->name_count + 1);
    dibs__script_begin(&sh->words, DIBS__SCRIPT_commit, sh->key_count);
    dibs__words_puts(&sh->words, DIBS__KEY_FENCE);
    for (int i = 0; i < sh->name_count; i++)
        dibs__words_puts(&sh->words, sh->keys.data + sh->names[i].at);
    dibs__words_puts(&sh->words, dibs__redis_publish(cm->rd));
    dibs__words_add(&sh->words, sh->plan.data, sh->plan.len);
    return DIBS_OK;
}

/* ---- the answers */

static void end_entry(entry *at, dibs_status rc)
{
    if (rc != DIBS_OK)
        (void)dibs__commit_fail(at->item, 1, rc);
    at->done = true;
}

static dibs_status
read_done(const redisReply *reply, dibs__commit *item, dibs_error *err)
{
    int64_t number;
    size_t next = 3;

    if (!dibs__reply_int(dibs__reply_item(reply, 2), &number) || number <= 0)
        return dibs__reply_odd(err);
    item->version = (uint64_t)number;
    for (size_t i = 0; i < item->change_count; i++) {
        if (item->changes[i].verb != DIBS__CHANGE_ENTER)
            continue;
        if (!dibs__reply_int(dibs__reply_item(reply, next++), &number) ||
            number < 1)
            return dibs__reply_odd(err);
        item->changes[i].size =
            item->changes[i].uncounted ? 0 : (uint64_t)number;
    }
    return DIBS_OK;
}

/* Nothing changed, so that memory that runs short here is no doubt. */
static dibs_status
read_stale(const redisReply *reply, dibs__commit *item, dibs_error *err)
{
    int64_t failed;

    if (!dibs__reply_int(dibs__reply_item(reply, 2), &failed) || failed < 0 ||
        (uint64_t)failed >= item->check_count)
        return dibs__reply_odd(err);
    item->failed = (size_t)failed;
    return dibs__redis_read_value(reply, 3, &item->found, err);
}

static dibs_status
read_answer(const redisReply *reply, dibs__commit *item, dibs_error *err)
{
    int status = dibs__reply_status(reply);
    dibs_status rc = DIBS_OK;

    if (!dibs__reply_int(dibs__reply_item(reply, 1), &item->now_us) ||
        item->now_us <= 0)
        return dibs__reply_odd(err);
    if (status == DIBS_OK)
        rc = read_done(reply, item, err);
    else if (status == DIBS_STALE)
        rc = read_stale(reply, item, err);
    else if (status != DIBS_EARLY && status != DIBS_LATE)
        rc = dibs__reply_odd(err);
    if (rc == DIBS_OK)
        item->rc = (dibs_status)status;
    return rc;
}

/* ---- sending */

/* Whether the server has not begun the script, and it may go well elsewhere or soon. */
static bool is_passing(const dibs__redis *rd, const char *error)
{
    static const char *const moving[] = {"MOVED ",    "ASK ",
                                         "TRYAGAIN ", "CLUSTERDOWN ",
                                         "LOADING ",  "MASTERDOWN ",
                                         "READONLY "};

    if (dibs__redis_no_script(error))
        return true;
    if (dibs__redis_lacks_replicas(error))
        return rd->cluster || rd->sentinel;
    for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
        if (rd->cluster && strncmp(error, moving[i], strlen(moving[i])) == 0)
            return true;
    return false;
}

static void take_reply(committing *cm, entry *at, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR)
        end_entry(at, read_answer(reply, at->item, &cm->why));
    else if (!is_passing(cm->rd, reply->str))
        end_entry(at, dibs__redis_fail(reply->str, &cm->why));
}

/* Encodes the commits for the server of the first of these: their number. */
static int gather_server(committing *cm, size_t first, entry **together)
{
    int count = 0;

    dibsx_buf_reset(&cm->bytes);
    for (size_t i = first; i < cm->count; i++) {
        entry *at = &cm->entries[i];
        dibs_status rc;

        if (at->done || at->sent || at->server != cm->entries[first].server)
            continue;
        at->sent = true;
        rc = write_words(cm, at->item, &cm->why);
        if (rc == DIBS_OK)
            rc = dibs__script_append(cm->rd->steps, &cm->sheet.words,
                                     &cm->bytes, &cm->why);
        if (rc == DIBS_OK)
            together[count++] = at;
        else
            end_entry(at, rc);
    }
    return count;
}

/* Sends the commits for the server of one together. In a cluster they are left if
 * nothing was sent, as the next of its servers may be better. */
static void send_together(committing *cm, size_t first)
{
    entry *together[DIBS__COMMITS_MAX];
    redisReply *replies[DIBS__COMMITS_MAX];
    int count = gather_server(cm, first, together);
    dibs_status rc;

    if (count == 0)
        return;
    rc =
        dibs__route_unit(cm->rd->steps, together[0]->slot, cm->bytes.data,
                         cm->bytes.len, count, cm->deadline, replies, &cm->why);
    for (int i = 0; i < count; i++) {
        if (rc == DIBS_OK) {
            take_reply(cm, together[i], replies[i]);
            dibs__reply_free(replies[i]);
        } else if (rc != DIBS_UNAVAIL || !cm->rd->cluster)
            end_entry(together[i], rc);
    }
}

static void send_alone(committing *cm, entry *at)
{
    redisReply *reply = NULL;
    dibs_status rc = write_words(cm, at->item, &cm->why);

    if (rc == DIBS_OK)
        rc = dibs__script_run(cm->rd->steps, DIBS__SCRIPT_commit,
                              &cm->sheet.words, cm->deadline, &reply, &cm->why);
    if (rc == DIBS_OK)
        rc = read_answer(reply, at->item, &cm->why);
    end_entry(at, rc);
    dibs__reply_free(reply);
}

static entry *find_left(committing *cm)
{
    for (size_t i = 0; i < cm->count; i++)
        if (!cm->entries[i].done)
            return &cm->entries[i];
    return NULL;
}

static void send_all(committing *cm)
{
    entry *left;

    while ((left = find_left(cm)) != NULL) {
        for (size_t i = 0; i < cm->count; i++)
            cm->entries[i].sent = cm->count == 1;
        for (size_t i = 0; i < cm->count; i++)
            if (!cm->entries[i].done && !cm->entries[i].sent)
                send_together(cm, i);
        left = find_left(cm);
        if (left)
            send_alone(cm, left);
    }
}

/* ---- the step */

static int slot_of(const dibs__commit *item)
{
    char key[DIBS__CHANNEL_MAX + DIBS__KEY_MAX];
    const dibs__change *change = item->changes;

    if (item->check_count > 0)
        dibs__key_value(item->checks[0].key, key);
    else if (change->verb == DIBS__CHANGE_TELL)
        snprintf(key, sizeof(key), DIBS__TOPIC_CHANNEL "%s", change->key);
    else if (change->verb == DIBS__CHANGE_PUT ||
             change->verb == DIBS__CHANGE_DELETE)
        dibs__key_value(change->key, key);
    else
        dibs__key_index(change->key, key);
    return dibs__slot_of(key, strlen(key));
}

static void find_server(committing *cm, entry *at)
{
    bool failing;

    if (!cm->rd->cluster)
        return;
    at->slot = slot_of(at->item);
    at->server = dibs__cluster_standing(cm->rd->cluster, at->slot, &failing);
}

static bool is_answer(dibs_status rc)
{
    return rc == DIBS_OK || rc == DIBS_STALE || rc == DIBS_EARLY ||
           rc == DIBS_LATE;
}

/* Each has its own outcome, unless none has an answer. */
static dibs_status judge_all(const committing *cm, dibs_error *err)
{
    dibs_status rc = cm->entries[0].item->rc;

    for (size_t i = 0; i < cm->count; i++) {
        if (is_answer(cm->entries[i].item->rc))
            return DIBS_OK;
        if (cm->entries[i].item->rc != rc)
            rc = DIBS_UNKNOWN;
    }
    return dibsx_fail_at(err, rc, cm->why.origin, "%s", cm->why.message);
}

static dibs_status
commit_all(struct dibs__store *st, dibs__commit *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = dibs__commit_begin(items, count, err);
    committing *cm;

    if (rc != DIBS_OK)
        return rc;
    cm = dibsx_zalloc(sizeof(*cm));
    if (!cm)
        return dibs__commit_fail(items, count, dibsx_nomem(err, "commits"));
    cm->rd = dibs__redis_of(st);
    cm->count = count;
    cm->deadline = deadline;
    dibsx_buf_init(&cm->bytes, BYTES_MAX);
    dibsx_buf_init(&cm->sheet.keys, BYTES_MAX);
    dibsx_buf_init(&cm->sheet.plan, BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        cm->entries[i].item = &items[i];
        find_server(cm, &cm->entries[i]);
    }
    send_all(cm);
    rc = judge_all(cm, err);
    dibsx_buf_fini(&cm->sheet.plan);
    dibsx_buf_fini(&cm->sheet.keys);
    dibsx_buf_fini(&cm->bytes);
    dibsx_free(cm);
    return rc == DIBS_OK ? rc : dibs__commit_fail(items, count, rc);
}

const dibs__commit_ops dibs__redis_commit_ops = {
    .commit = commit_all,
    .get_many = dibs__redis_get_many,
    .first = dibs__redis_first,
};
