/* quorum_steps.c - one server as a node of a quorum: see store/quorum_steps.h.
 *
 * Any thread. Renewals have a route of their own. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum_steps.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/quorum_vote.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Leases renewed by one script, each with four keys and three words. */
enum { BATCH = 36, ITEMS_AT = 3 };
_Static_assert(8 + 7 * BATCH <= DIBS__WORDS_MAX, "they fit into a command");

typedef struct batch {
    dibs__words words;
    dibs__keys keys[BATCH];
    char fences[BATCH][DIBS__NUMBER_MAX];
    char ttls[BATCH][DIBS__NUMBER_MAX];
    char key_count[DIBS__NUMBER_MAX];
    char longest[DIBS__NUMBER_MAX];
} batch;

/* Asks with up to three words; *out is NULL when the server forbids the
 * command. */
static dibs_status
ask_server(dibs__redis *rd, const char *const *text, dibsx_nsec deadline,
           redisReply **out, dibs_error *err)
{
    dibs__words words;
    dibs_status rc;

    words.count = 0;
    for (; *text; text++)
        dibs__words_puts(&words, *text);
    *out = NULL;
    rc = dibs__route_call_at(rd->steps, NULL, &words, deadline, out, err);
    if (rc == DIBS_OK && (*out)->type == REDIS_REPLY_ERROR) {
        dibs__reply_free(*out);
        *out = NULL;
    }
    return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
}

static dibs_status meet_run(dibs__redis *rd, dibsx_nsec deadline,
                            dibs__voter *voter, dibs_error *err)
{
    static const char *const words[] = {"INFO", "server", NULL};
    redisReply *reply;
    const char *at = NULL;
    dibs_status rc = ask_server(rd, words, deadline, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    if (reply && reply->type == REDIS_REPLY_STRING)
        at = strstr(reply->str, "run_id:");
    if (at && strcspn(at + 7, "\r\n") < sizeof(voter->run_id))
        snprintf(voter->run_id, sizeof(voter->run_id), "%.*s",
                 (int)strcspn(at + 7, "\r\n"), at + 7);
    else
        rc =
            dibsx_fail(err, DIBS_DENIED,
                       "a node of a quorum must let its run id be seen (INFO)");
    dibs__reply_free(reply);
    return rc;
}

static bool has_text(const redisReply *reply, const char *text)
{
    const redisReply *item = dibs__reply_item(reply, 1);

    if (item)
        reply = item;
    return reply && reply->type == REDIS_REPLY_STRING &&
           strstr(reply->str, text) != NULL;
}

/* If a command is forbidden, the node counts as not durable. */
static dibs_status meet_persistence(dibs__redis *rd, dibsx_nsec deadline,
                                    dibs__voter *voter, dibs_error *err)
{
    static const struct {
        const char *words[4], *says;
    } asks[] = {
        {{"INFO", "persistence"}, "aof_enabled:1"},
        {{"CONFIG", "GET", "appendfsync"}, "always"},
        {{"CONFIG", "GET", "no-appendfsync-on-rewrite"}, "no"},
    };
    dibs_status rc = DIBS_OK;

    voter->durable = true;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]) && voter->durable;
         i++) {
        redisReply *reply;

        rc = ask_server(rd, asks[i].words, deadline, &reply, err);
        if (rc != DIBS_OK)
            break;
        voter->durable = has_text(reply, asks[i].says);
        dibs__reply_free(reply);
    }
    return rc;
}

/* Whether the text has "name=value" as one of its words. */
static bool has_field(const char *text, const char *name, const char *value)
{
    size_t name_len = strlen(name), len = strlen(value);
    const char *at = text;

    while ((at = strstr(at, name)) != NULL) {
        const char *found = at + name_len;

        if ((at == text || at[-1] == ' ') && strncmp(found, value, len) == 0 &&
            strchr(" \r\n", found[len]))
            return true;
        at = found;
    }
    return false;
}

/* Whether the server has the same two ends of the connection as we do. If a proxy
 * were between, the connection could outlive the run of the server. */
static dibs_status meet_ends(dibs__redis *rd, const dibs__link *link,
                             dibsx_nsec deadline, bool *direct, dibs_error *err)
{
    static const char *const words[] = {"CLIENT", "INFO", NULL};
    redisReply *reply;
    dibs_status rc;

    *direct = false;
    if (!link->own[0])
        return DIBS_OK;
    rc = ask_server(rd, words, deadline, &reply, err);
    if (rc != DIBS_OK || !reply)
        return rc;
    *direct = reply->str && has_field(reply->str, "addr=", link->own) &&
              has_field(reply->str, "laddr=", link->other);
    dibs__reply_free(reply);
    return DIBS_OK;
}

/* Learns the run id, and on which connection if that proves anything: it was the
 * same one before the questions and after their answers. */
static dibs_status meet_on_link(dibs__redis *rd, dibsx_nsec deadline,
                                dibs__voter *voter, dibs_error *err)
{
    dibs__link before, after;
    bool direct;
    dibs_status rc = meet_run(rd, deadline, voter, err);

    voter->link = 0;
    if (rc != DIBS_OK)
        return rc;
    dibs__route_link(rd->steps, &before);
    rc = meet_ends(rd, &before, deadline, &direct, err);
    if (rc != DIBS_OK || !direct)
        return rc;
    rc = meet_run(rd, deadline, voter, err);
    dibs__route_link(rd->steps, &after);
    if (rc == DIBS_OK && after.number == before.number)
        voter->link = after.number;
    return rc;
}

static dibs_status meet_node(struct dibs__store *st, dibsx_nsec deadline,
                             dibs__voter *voter, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs_status rc = meet_on_link(rd, deadline, voter, err);

    return rc == DIBS_OK ? meet_persistence(rd, deadline, voter, err) : rc;
}

/* Reads the beginning of every answer; -1 when it is not there, and then `word`
 * is empty. */
static int read_word(const redisReply *reply, dibs__node_word *word)
{
    dibs__node_word read = {0};

    if (!dibs__reply_int(dibs__reply_item(reply, 1), &read.wall_us) ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &read.sits_out_ms) ||
        read.wall_us <= 0 || read.wall_us > DIBS__WALL_MAX_US ||
        read.sits_out_ms < 0 || read.sits_out_ms > DIBS__SPAN_MAX_MS)
        return -1;
    *word = read;
    return dibs__reply_status(reply);
}

static dibs_status
no_vote(int status, const dibs__node_word *word, dibs_error *err)
{
    if (status == DIBS_STALE)
        return dibsx_fail(err, DIBS_STALE, "the server was restarted");
    if (status != DIBS_REFUSED)
        return dibs__reply_odd(err);
    if (word->sits_out_ms > 0)
        return dibsx_fail(err, DIBS_REFUSED,
                          "may have forgotten leases, votes in %" PRId64 " s",
                          (word->sits_out_ms + 999) / 1000);
    return dibsx_fail(err, DIBS_REFUSED, "its clock is behind the fences");
}

/* Reads a letter for each slot. */
static uint64_t read_taken(const redisReply *text)
{
    uint64_t taken = 0;

    for (size_t i = 0; text && text->type == REDIS_REPLY_STRING &&
                       i < text->len && i < DIBS__NAME_SLOTS;
         i++)
        if (text->str[i] == '1')
            taken |= (uint64_t)1 << i;
    return taken;
}

static dibs_status
judge_reply(const dibs__ask *ask, const redisReply *reply, dibs__answer *ans,
            dibs__node_word *word, dibs_error *err)
{
    int status = read_word(reply, word);
    int64_t fence, again;
    dibs_status rc;

    if (status == DIBS_LOST)
        return dibs__refuse_left(ask->name, err);
    if (status == DIBS_MISMATCH)
        return dibs__step_kind(ask, dibs__reply_item(reply, ITEMS_AT), err);
    if (status != DIBS_OK && status != DIBS_BUSY)
        return no_vote(status, word, err);
    if (!dibs__reply_int(dibs__reply_item(reply, ITEMS_AT), &fence) ||
        !dibs__reply_int(dibs__reply_item(reply, ITEMS_AT + 1),
                         &ans->left_ms) ||
        fence < 0)
        return dibs__reply_odd(err);
    ans->fence = (uint64_t)fence;
    if (status == DIBS_OK) {
        if (!dibs__reply_int(dibs__reply_item(reply, ITEMS_AT + 2), &again))
            return dibs__reply_odd(err);
        word->again = again != 0;
        return dibs__answer_grant(ask, ans, err);
    }
    rc = dibs__answer_busy(ans, err);
    if (rc != DIBS_OK)
        return rc;
    word->taken = read_taken(dibs__reply_item(reply, ITEMS_AT + 3));
    return dibs__step_held(ask, dibs__reply_item(reply, ITEMS_AT + 2), err);
}

/* The short script, on the connection that proves the run of the server. DIBS_BUSY:
 * use the other. DIBS_STALE: meet the node again. */
static dibs_status
grant_free(dibs__redis *rd, const dibs__voter *voter, const dibs__ask *ask,
           uint64_t fence, dibsx_nsec deadline, dibs__answer *ans,
           dibs__node_word *word, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__vote_command cm;
    dibs_status rc;

    dibs__vote_write_free(voter, ask, fence, &cm);
    rc = dibs__script_run_on(rd->steps, voter->link, DIBS__SCRIPT_quorum_free,
                             &cm.words, deadline, &reply, err);
    if (rc == DIBS_OK) {
        rc = dibs__vote_judge_free(ask, fence, reply, ans, word, err);
        if (rc == DIBS_UNKNOWN)
            dibs__step_distrust(rd->steps, ask->name, NULL);
    }
    dibs__reply_free(reply);
    return rc;
}

static dibs_status grant_lease(struct dibs__store *st, const dibs__voter *voter,
                               const dibs__ask *ask, uint64_t fence, bool fill,
                               dibsx_nsec deadline, dibs__answer *ans,
                               dibs__node_word *word, dibs_error *err)
{
    char numbers[3][DIBS__NUMBER_MAX], slot[2][DIBS__NUMBER_MAX];
    bool permit = ask->mode == DIBS__PERMITS;
    redisReply *reply = NULL;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;

    *ans = (dibs__answer){.fence = 0};
    *word = (dibs__node_word){.wall_us = 0};
    if (!fill && dibs__vote_is_short(voter, ask)) {
        rc = grant_free(dibs__redis_of(st), voter, ask, fence, deadline, ans,
                        word, err);
        if (rc != DIBS_BUSY)
            return rc;
    }
    dibs__keys_of(ask->name, &keys);
    dibs__script_begin(&words, DIBS__SCRIPT_quorum_grant, "6");
    dibs__keys_add(&keys, &words);
    dibs__vote_add(&words, voter, ask, fence, numbers);
    dibs__words_number(&words, permit ? ask->capacity : 0, slot[0]);
    dibs__words_number(&words, permit ? ask->priority : 0, slot[1]);
    if (fill)
        dibs__words_puts(&words, "fill");
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_quorum_grant,
                          &words, deadline, &reply, err);
    if (rc == DIBS_OK) {
        rc = judge_reply(ask, reply, ans, word, err);
        if (rc == DIBS_UNKNOWN)
            dibs__step_distrust(dibs__redis_of(st)->steps, ask->name, NULL);
    }
    dibs__reply_free(reply);
    return rc;
}

static dibs_status read_renewals(dibs__renewal *items, size_t count,
                                 const redisReply *reply, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        int64_t left_ms;

        if (!dibs__reply_int(dibs__reply_item(reply, ITEMS_AT + i), &left_ms) ||
            left_ms < -1)
            return dibs__reply_odd(err);
        items[i].rc = left_ms < 0 ? DIBS_LOST : DIBS_OK;
        items[i].left_ms = left_ms < 0 ? 0 : left_ms;
        items[i].wanted = false;
        if (left_ms >= 0)
            rc = dibs__answer_renewal(&items[i], err);
    }
    return rc;
}

static void write_batch(batch *bt, const dibs__voter *voter,
                        const dibs__renewal *items, size_t count)
{
    dibs__words *words = &bt->words;

    snprintf(bt->key_count, sizeof(bt->key_count), "%zu",
             2 + DIBS__KEYS * count);
    dibs__script_begin(words, DIBS__SCRIPT_quorum_renew, bt->key_count);
    dibs__words_puts(words, DIBS__KEY_FENCE);
    dibs__words_puts(words, DIBS__KEY_NODE);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of(items[i].name, &bt->keys[i]);
        dibs__keys_add(&bt->keys[i], words);
    }
    dibs__vote_add_voter(words, voter, bt->longest);
    for (size_t i = 0; i < count; i++) {
        dibs__words_puts(words, items[i].owner);
        dibs__words_number(words, (int64_t)items[i].fence, bt->fences[i]);
        dibs__words_number(words, dibs__step_span(items[i].ttl_ms),
                           bt->ttls[i]);
    }
}

static dibs_status
renew_batch(dibs__redis *rd, batch *bt, dibs__renewal *items, size_t count,
            dibsx_nsec deadline, dibs__node_word *word, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc = dibs__script_run(rd->renewals, DIBS__SCRIPT_quorum_renew,
                                      &bt->words, deadline, &reply, err);
    int status;

    if (rc != DIBS_OK)
        return rc;
    status = read_word(reply, word);
    rc = status == DIBS_OK ? read_renewals(items, count, reply, err)
                           : no_vote(status, word, err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->renewals, items[0].name, NULL);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status
renew_leases(struct dibs__store *st, const dibs__voter *voter,
             dibs__renewal *items, size_t count, dibsx_nsec deadline,
             dibs__node_word *word, dibs_error *err)
{
    batch *bt = dibsx_zalloc(sizeof(*bt));
    dibs_status rc;

    *word = (dibs__node_word){.wall_us = 0};
    if (!bt)
        return dibsx_nomem(err, "a batch of renewals");
    for (;;) {
        size_t few = count < BATCH ? count : BATCH;

        write_batch(bt, voter, items, few);
        rc = renew_batch(dibs__redis_of(st), bt, items, few, deadline, word,
                         err);
        if (rc != DIBS_OK || few == count)
            break;
        items += few;
        count -= few;
    }
    dibsx_free(bt);
    return rc;
}

const dibs__quorum_steps_ops dibs__redis_vote_ops = {
    .meet = meet_node,
    .grant = grant_lease,
    .renew = renew_leases,
    .list = dibs__redis_list_within,
    .post = &dibs__redis_vote_post_ops,
};
