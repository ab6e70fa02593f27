/* script.c - the scripts of the steps, and how one is run.
 *
 * Owns their texts, which are put together from the files in lua/ once: a line
 * "--include NAME" stands for the text of another file. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/script.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/once.h"
#include "base/sha1.h"
#include "store/redis/cluster/slot_keys.h"
#include "store/redis/keys.h"
#include "store/redis/wire/error.h"
#include <assert.h>
#include <string.h>

enum { TEXT_MAX = 64 * 1024 };

#define INCLUDE "--include "

/* The texts that others include. */
#define PARTS(X)                                                               \
    X(fence)                                                                   \
    X(grant_free)                                                              \
    X(hand_off)                                                                \
    X(ring_bell)                                                               \
    X(meet_plain)                                                              \
    X(text_int)                                                                \
    X(text_time)                                                               \
    X(wait_plain)                                                              \
    X(grant)                                                                   \
    X(write_holder)                                                            \
    X(quorum_steps)                                                            \
    X(quorum_terms)                                                            \
    X(tell_topic)                                                              \
    X(log_entry) X(log_span) X(queue_shelf) X(queue_rule) X(queue_step)

#define EMBEDDED(name) extern const char dibs__lua_##name[];
DIBS__SCRIPTS(EMBEDDED)
PARTS(EMBEDDED)

#define TEXT(name) dibs__lua_##name,
#define PART(name) {#name, dibs__lua_##name},

typedef struct script_text {
    char *text;
    size_t len;
    char sha1[DIBSX_SHA1_TEXT];
} script_text;

static const char *const sources[] = {DIBS__SCRIPTS(TEXT)};

static const struct {
    const char *name;
    const char *text;
} includes[] = {PARTS(PART)};

static script_text scripts[DIBS__SCRIPT_COUNT];

/* The words of a command before its keys: EVALSHA, the script, their number. */
enum { KEY_AT = 3 };

static dibs__batch batch = {.shared = DIBS__KEY_FENCE};

static const struct {
    dibs__script script;
    dibs__part part;
} batch_parts[] = {
    {DIBS__SCRIPT_acquire,
     {.batch = &batch,
      .key_at = KEY_AT,
      .key_count = 2,
      .rest_at = KEY_AT + DIBS__KEYS + 1}},
    {DIBS__SCRIPT_acquire_free,
     {.batch = &batch,
      .key_at = KEY_AT,
      .key_count = 2,
      .rest_at = KEY_AT + 2 + 1}},
    {DIBS__SCRIPT_release_unqueued,
     {.batch = &batch,
      .second = true,
      .key_at = KEY_AT,
      .key_count = 1,
      .rest_at = KEY_AT + 1}},
};

static dibsx_once once = DIBSX_ONCE_INIT;

static const char *find_include(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(includes) / sizeof(includes[0]); i++)
        if (strlen(includes[i].name) == len &&
            memcmp(includes[i].name, name, len) == 0)
            return includes[i].text;
    assert(0 && "a script includes a text that is not there");
    return "";
}

/* Appends a text with what it includes. */
static void put_together(dibsx_buf *buf, const char *text)
{
    const char *at;

    while ((at = strstr(text, INCLUDE)) != NULL) {
        const char *name = at + strlen(INCLUDE);
        size_t len = strcspn(name, "\n");

        dibsx_buf_add(buf, text, (size_t)(at - text));
        put_together(buf, find_include(name, len));
        text = name + len;
    }
    dibsx_buf_puts(buf, text);
}

static void load_batch(void)
{
    const script_text *script = &scripts[DIBS__SCRIPT_batch];

    batch.sha1 = script->sha1;
    batch.text = script->text;
    batch.text_len = script->len;
}

static const dibs__part *part_of(dibs__script script)
{
    for (size_t i = 0; i < sizeof(batch_parts) / sizeof(batch_parts[0]); i++)
        if (batch_parts[i].script == script)
            return &batch_parts[i].part;
    return NULL;
}

static dibs_status load_scripts(dibs_error *err)
{
    for (size_t i = 0; i < DIBS__SCRIPT_COUNT; i++) {
        script_text *script = &scripts[i];
        dibsx_buf buf;

        if (script->text)
            continue;
        dibsx_buf_init(&buf, TEXT_MAX);
        put_together(&buf, sources[i]);
        script->len = buf.len;
        script->text = dibsx_buf_take(&buf);
        dibsx_buf_fini(&buf);
        if (!script->text)
            return dibsx_nomem(err, "the text of a script");
        dibsx_sha1(script->text, script->len, script->sha1);
    }
    load_batch();
    return DIBS_OK;
}

dibs_status dibs__script_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_scripts, err);
}

void dibs__script_begin(dibs__words *words, dibs__script script,
                        const char *key_count)
{
    words->count = 0;
    dibs__words_add(words, "EVALSHA", 7);
    dibs__words_add(words, scripts[script].sha1, DIBSX_SHA1_TEXT - 1);
    dibs__words_puts(words, key_count);
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* Turns an error reply into a status; other replies are the caller's. */
static dibs_status judge_reply(redisReply **reply, dibs_error *err)
{
    dibs_status rc;

    if (!is_error(*reply))
        return DIBS_OK;
    rc = dibs__redis_fail((*reply)->str, err);
    dibs__reply_free(*reply);
    *reply = NULL;
    return rc;
}

/* The words become those of EVAL. */
static void write_text(dibs__script script, dibs__words *words)
{
    words->word[0] = "EVAL";
    words->len[0] = 4;
    words->word[1] = scripts[script].text;
    words->len[1] = scripts[script].len;
}

/* Whether the server lacks the script; then the words are those of EVAL. */
static bool
bring_text(dibs__script script, dibs__words *words, redisReply **out)
{
    if (!is_error(*out) || !dibs__redis_no_script((*out)->str))
        return false;
    dibs__reply_free(*out);
    *out = NULL;
    write_text(script, words);
    return true;
}

size_t
dibs__script_room(dibs__script script, const dibs__words *words, bool whole)
{
    return dibs__words_room(words) + (whole ? scripts[script].len : 0);
}

void dibs__script_pend(dibs__script script, dibs__words *words, bool whole,
                       bool joins, char *room, dibs__pending *pd)
{
    const dibs__part *part = joins && !whole ? part_of(script) : NULL;

    if (whole)
        write_text(script, words);
    pd->due = 1;
    pd->bytes = room;
    pd->len = dibs__words_encode(words, room);
    if (part)
        dibs__member_init(&pd->member, part, words, room, pd->len);
}

bool dibs__script_is_lacking(const redisReply *reply, dibs_status *rc,
                             dibs_error *err)
{
    *rc = DIBS_OK;
    if (!is_error(reply))
        return false;
    if (dibs__redis_no_script(reply->str))
        return true;
    *rc = dibs__redis_fail(reply->str, err);
    return false;
}

static dibs_status
run_script(dibs__route *rt, const dibs__part *part, dibs__script script,
           dibs__words *words, dibsx_nsec deadline, redisReply **out,
           dibs_error *err)
{
    dibs__slot_keys room;
    int key_at = 0;
    dibs_status rc = DIBS_OK;

    *out = NULL;
    if (dibs__route_cluster(rt))
        rc = dibs__slot_keys_fit(words, KEY_AT, &room, &key_at, err);
    if (rc == DIBS_OK)
        rc = dibs__route_call(rt, part, words, key_at, deadline, out, err);
    if (rc == DIBS_OK && bring_text(script, words, out))
        rc = dibs__route_call(rt, NULL, words, key_at, deadline, out, err);
    return rc == DIBS_OK ? judge_reply(out, err) : rc;
}

dibs_status
dibs__script_run(dibs__route *rt, dibs__script script, dibs__words *words,
                 dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return run_script(rt, NULL, script, words, deadline, out, err);
}

dibs_status
dibs__script_run_on(dibs__route *rt, uint64_t number, dibs__script script,
                    dibs__words *words, dibsx_nsec deadline, redisReply **out,
                    dibs_error *err)
{
    dibs_status rc = dibs__route_call_on(rt, number, words, deadline, out, err);

    if (rc == DIBS_OK && bring_text(script, words, out))
        rc = dibs__route_call_on(rt, number, words, deadline, out, err);
    return rc == DIBS_OK ? judge_reply(out, err) : rc;
}

dibs_status
dibs__script_join(dibs__route *rt, dibs__script script, dibs__words *words,
                  dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return run_script(rt, part_of(script), script, words, deadline, out, err);
}

dibs_status dibs__script_append(dibs__route *rt, dibs__words *words,
                                dibsx_buf *out, dibs_error *err)
{
    dibs__slot_keys room;
    dibs_status rc = DIBS_OK;
    char *bytes;
    int key_at;

    if (dibs__route_cluster(rt))
        rc = dibs__slot_keys_fit(words, KEY_AT, &room, &key_at, err);
    if (rc != DIBS_OK)
        return rc;
    bytes = dibsx_zalloc(dibs__words_room(words));
    if (bytes)
        dibsx_buf_add(out, bytes, dibs__words_encode(words, bytes));
    if (!bytes || !dibsx_buf_ok(out))
        rc = dibsx_nomem(err, "a command");
    dibsx_free(bytes);
    return rc;
}

/* With ASKING before it, whose reply matters only when it is an error. */
static dibs_status
ask_on(dibs__conn *cn, bool asking, const dibs__words *words,
       dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    dibs__words before = {.count = 0};
    dibs_status rc = DIBS_OK;

    *out = NULL;
    if (asking) {
        dibs__words_puts(&before, "ASKING");
        rc = dibs__conn_ask(cn, &before, deadline, out, err);
        if (rc == DIBS_OK && is_error(*out))
            return rc;
        dibs__reply_free(*out);
        *out = NULL;
    }
    if (rc != DIBS_OK)
        return DIBS_UNAVAIL;
    return dibs__conn_ask(cn, words, deadline, out, err);
}

dibs_status
dibs__script_send_on(dibs__conn *cn, bool asking, dibs__script script,
                     dibs__words *words, dibsx_nsec deadline, redisReply **out,
                     dibs_error *err)
{
    dibs_status rc = ask_on(cn, asking, words, deadline, out, err);

    if (rc == DIBS_OK && bring_text(script, words, out))
        rc = ask_on(cn, asking, words, deadline, out, err);
    return rc;
}

dibs_status
dibs__script_carry(dibs__route *rt, dibs__words *words, dibs__carry_fn *carry,
                   void *arg, dibsx_nsec deadline, redisReply **out,
                   dibs_error *err)
{
    dibs__slot_keys room;
    int key_at = 0;
    dibs_status rc = DIBS_OK;

    *out = NULL;
    if (rt)
        rc = dibs__slot_keys_fit(words, KEY_AT, &room, &key_at, err);
    if (rc == DIBS_OK)
        rc = rt ? dibs__route_carry(rt, words, key_at, carry, arg, deadline,
                                    out, err)
                : carry(arg, NULL, false, deadline, out, err);
    return rc == DIBS_OK ? judge_reply(out, err) : rc;
}

dibs_status
dibs__script_run_at(dibs__route *rt, const dibs__endpoint *endpoint,
                    dibs__script script, dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    dibs_status rc;

    *out = NULL;
    rc = dibs__route_call_at(rt, endpoint, words, deadline, out, err);
    if (rc == DIBS_OK && bring_text(script, words, out))
        rc = dibs__route_call_at(rt, endpoint, words, deadline, out, err);
    return rc == DIBS_OK ? judge_reply(out, err) : rc;
}

dibs_status
dibs__command_run(dibs__route *rt, const dibs__words *words, int key_at,
                  dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    dibs_status rc;

    *out = NULL;
    rc = dibs__route_call(rt, NULL, words, key_at, deadline, out, err);
    return rc == DIBS_OK ? judge_reply(out, err) : rc;
}
