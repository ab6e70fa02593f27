/* script.c - the scripts of the steps, and how one is run.
 *
 * Owns their texts, which are put together from the files in lua/ once: a line
 * "--include NAME" stands for the text of another. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/script.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/once.h"
#include "base/sha1.h"
#include "store/redis/error.h"
#include "store/redis/keys.h"
#include <string.h>

enum { TEXT_MAX = 64 * 1024 };

#define INCLUDE        "--include "

#define EMBEDDED(name) extern const char dibs__lua_##name[];
DIBS__SCRIPTS(EMBEDDED)
EMBEDDED(fence)
EMBEDDED(grant)

#define TEXT(name) dibs__lua_##name,

typedef struct script_text {
    char *text;
    size_t len;
    char sha1[DIBSX_SHA1_TEXT];
} script_text;

static const char *const sources[] = {DIBS__SCRIPTS(TEXT)};

static const struct {
    const char *name;
    const char *text;
} parts[] = {{"fence", dibs__lua_fence}, {"grant", dibs__lua_grant}};

static script_text scripts[DIBS__SCRIPT_COUNT];

/* The words of a command before its keys: EVALSHA, the script, their number. */
enum { KEY_AT = 3 };

static struct {
    dibs__script one;
    dibs__script many;
    dibs__group group;
} groups[DIBS__GROUPS] = {
    {DIBS__SCRIPT_acquire,
     DIBS__SCRIPT_acquire_many,
     {.shared = DIBS__KEY_FENCE,
      .key_at = KEY_AT,
      .key_count = 2,
      .rest_at = KEY_AT + DIBS__KEYS + 1}},
    {DIBS__SCRIPT_alone,
     DIBS__SCRIPT_alone_many,
     {.key_at = KEY_AT, .key_count = 1, .rest_at = KEY_AT + 1}},
};

static dibsx_once once = DIBSX_ONCE_INIT;

static const char *part(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strlen(parts[i].name) == len &&
            memcmp(parts[i].name, name, len) == 0)
            return parts[i].text;
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
        put_together(buf, part(name, len));
        text = name + len;
    }
    dibsx_buf_puts(buf, text);
}

static void load_groups(void)
{
    for (int i = 0; i < DIBS__GROUPS; i++) {
        const script_text *script = &scripts[groups[i].many];
        dibs__group *group = &groups[i].group;

        group->id = i;
        group->sha1 = script->sha1;
        group->text = script->text;
        group->text_len = script->len;
    }
}

static const dibs__group *group_of(dibs__script script)
{
    for (int i = 0; i < DIBS__GROUPS; i++)
        if (groups[i].one == script)
            return &groups[i].group;
    return NULL;
}

static dibs_status load(dibs_error *err)
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
            return dibsx_fail(err, DIBS_NOMEM, "the text of a script");
        dibsx_sha1(script->text, script->len, script->sha1);
    }
    load_groups();
    return DIBS_OK;
}

dibs_status dibs__script_load(dibs_error *err)
{
    return dibsx_once_do(&once, load, err);
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
static dibs_status judge(redisReply **reply, dibs_error *err)
{
    dibs_status rc;

    if (!is_error(*reply))
        return DIBS_OK;
    rc = dibs__redis_fail((*reply)->str, err);
    dibs__reply_free(*reply);
    *reply = NULL;
    return rc;
}

static dibs_status
run(dibs__link *ln, const dibs__group *group, dibs__script script,
    dibs__words *words, dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    dibs_status rc;

    *out = NULL;
    rc = dibs__link_join(ln, group, words, deadline, out, err);
    if (rc == DIBS_OK && is_error(*out) && dibs__redis_no_script((*out)->str)) {
        dibs__reply_free(*out);
        *out = NULL;
        words->word[0] = "EVAL";
        words->len[0] = 4;
        words->word[1] = scripts[script].text;
        words->len[1] = scripts[script].len;
        rc = dibs__link_call(ln, words, deadline, out, err);
    }
    return rc == DIBS_OK ? judge(out, err) : rc;
}

dibs_status
dibs__script_run(dibs__link *ln, dibs__script script, dibs__words *words,
                 dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return run(ln, NULL, script, words, deadline, out, err);
}

dibs_status
dibs__script_join(dibs__link *ln, dibs__script script, dibs__words *words,
                  dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return run(ln, group_of(script), script, words, deadline, out, err);
}

dibs_status
dibs__command_run(dibs__link *ln, const dibs__words *words, dibsx_nsec deadline,
                  redisReply **out, dibs_error *err)
{
    dibs_status rc;

    *out = NULL;
    rc = dibs__link_call(ln, words, deadline, out, err);
    return rc == DIBS_OK ? judge(out, err) : rc;
}
