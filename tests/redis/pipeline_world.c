/* pipeline_world.c - see pipeline_world.h. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

void pipe_open(piped *pd, const char *url)
{
    dibs_error err = {0};
    dibsx_url parts;

    *pd = (piped){.pl = NULL};
    if (dibsx_url_parse(url, &parts, &err) != DIBS_OK ||
        dibs__redis_conf_read(&parts, &pd->conf, &err) != DIBS_OK ||
        dibs__pipeline_new(&pd->conf, &pd->pl, &err) != DIBS_OK)
        fail_msg("%s: %s", url, err.message);
    dibsx_url_fini(&parts);
}

void pipe_open_server(piped *pd, const server *sv)
{
    char url[SERVER_URL_MAX];

    server_url(sv, url);
    pipe_open(pd, url);
}

void pipe_open_port(piped *pd, int port)
{
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    pipe_open(pd, url);
}

void pipe_close(piped *pd)
{
    dibs__pipeline_free(pd->pl);
    dibs__redis_conf_fini(&pd->conf);
}

static void to_text(const redisReply *reply, char *text)
{
    size_t len = 0;

    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        snprintf(text, TEXT_MAX, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        snprintf(text, TEXT_MAX, "(nil)");
        break;
    case REDIS_REPLY_ARRAY:
        text[0] = '\0';
        for (size_t i = 0; i < reply->elements && len < TEXT_MAX - 1; i++) {
            if (i > 0)
                text[len++] = ' ';
            to_text(reply->element[i], text + len);
            len += strlen(text + len);
        }
        break;
    default:
        snprintf(text, TEXT_MAX, "%s%s",
                 reply->type == REDIS_REPLY_ERROR ? "-" : "", reply->str);
    }
}

dibs_status put_quietly(dibs__pipeline *pl, int64_t ms, const char *command,
                        char *text, dibs_error *err)
{
    dibs__words words = {.count = 0};
    redisReply *reply = NULL;
    dibs_status rc;

    while (*command) {
        size_t len = strcspn(command, " ");

        dibs__words_add(&words, command, len);
        command += len + (command[len] == ' ');
    }
    rc = dibs__pipeline_call(pl, &words, dibsx_after_ms(dibsx_now(), ms),
                             &reply, err);
    if (text)
        text[0] = '\0';
    if (reply && text)
        to_text(reply, text);
    dibs__reply_free(reply);
    return rc;
}

dibs_status put(piped *pd, int64_t ms, const char *command, char *text)
{
    return put_quietly(pd->pl, ms, command, text, &pd->err);
}

static void expect_one(dibs_status rc, dibs_status status, const char *command,
                       const piped *pd)
{
    if (rc != status)
        FAIL_OF(rc, "%s: %s and not %s: %s", command, dibs_status_name(rc),
                dibs_status_name(status), pd->err.message);
}

void expect(piped *pd, const char *command, const char *answer)
{
    char text[4 * TEXT_MAX];
    dibs_status rc = put(pd, 10000, command, text);

    expect_one(rc, DIBS_OK, command, pd);
    assert_string_equal(text, answer);
}

void expect_status(piped *pd, int64_t ms, const char *command,
                   dibs_status status)
{
    char text[4 * TEXT_MAX];
    dibs_status rc = put(pd, ms, command, text);

    expect_one(rc, status, command, pd);
}

void expect_soon(piped *pd, const char *command, const char *answer)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 10000);
    char text[4 * TEXT_MAX];
    dibs_status rc;

    do {
        rc = put(pd, 1000, command, text);
    } while (rc != DIBS_OK && dibsx_now() < end && poll(NULL, 0, 1) == 0);
    expect_one(rc, DIBS_OK, command, pd);
    assert_string_equal(text, answer);
}

static bool is_asleep(int tid)
{
    char path[64], line[256] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    file = fopen(path, "re");
    if (file) {
        if (!fgets(line, sizeof(line), file))
            line[0] = '\0';
        fclose(file);
    }
    end = strrchr(line, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

void await_asleep(atomic_int *tid)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 20000);

    while (atomic_load(tid) == 0 || !is_asleep(atomic_load(tid))) {
        IN_TIME(dibsx_now() < end);
        sched_yield();
    }
}

typedef struct crowd {
    dibs__pipeline *pl;
    int rounds;
    atomic_int next;
    atomic_int wrong;
} crowd;

static void *ask_around(void *arg)
{
    crowd *cr = arg;
    int me = atomic_fetch_add(&cr->next, 1);

    for (int i = 0; i < cr->rounds; i++) {
        char command[64], text[TEXT_MAX];
        dibs_error err;
        dibs_status rc;

        snprintf(command, sizeof(command), "ECHO %d.%d", me, i);
        rc = put_quietly(cr->pl, 20000, command, text, &err);
        IN_TIME(!pace_explains(rc));
        if (rc != DIBS_OK || strcmp(text, command + 5) != 0)
            atomic_fetch_add(&cr->wrong, 1);
    }
    return NULL;
}

void expect_crowd(piped *pd, int threads, int rounds)
{
    pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
    crowd cr = {.pl = pd->pl, .rounds = rounds};

    assert_non_null(ids);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, ask_around, &cr), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    assert_int_equal(cr.wrong, 0);
}
