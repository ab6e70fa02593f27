/* pipeline_world.c - see pipeline_world.h. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

void way_open(way *wy, const char *url)
{
    dibs_error err = {0};
    dibsx_url parts;

    *wy = (way){.ln = NULL};
    if (dibsx_url_parse(url, &parts, &err) != DIBS_OK ||
        dibs__redis_conf_read(&parts, &wy->conf, &err) != DIBS_OK ||
        dibs__pipeline_new(&wy->conf, &wy->ln, &err) != DIBS_OK)
        fail_msg("%s: %s", url, err.message);
    dibsx_url_fini(&parts);
}

void way_open_server(way *wy, const server *sv)
{
    char url[SERVER_URL_MAX];

    server_url(sv, url);
    way_open(wy, url);
}

void way_open_port(way *wy, int port)
{
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    way_open(wy, url);
}

void way_close(way *wy)
{
    dibs__pipeline_free(wy->ln);
    dibs__redis_conf_fini(&wy->conf);
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

dibs_status put_quietly(dibs__pipeline *ln, int64_t ms, const char *command,
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
    rc = dibs__pipeline_call(ln, &words, dibsx_after_ms(dibsx_now(), ms),
                             &reply, err);
    if (text)
        text[0] = '\0';
    if (reply && text)
        to_text(reply, text);
    dibs__reply_free(reply);
    return rc;
}

dibs_status put(way *wy, int64_t ms, const char *command, char *text)
{
    return put_quietly(wy->ln, ms, command, text, &wy->err);
}

static void expect_one(dibs_status rc, dibs_status status, const char *command,
                       const way *wy)
{
    if (rc != status)
        FAIL_OF(rc, "%s: %s and not %s: %s", command, dibs_status_name(rc),
                dibs_status_name(status), wy->err.message);
}

void expect(way *wy, const char *command, const char *answer)
{
    char text[4 * TEXT_MAX];
    dibs_status rc = put(wy, 10000, command, text);

    expect_one(rc, DIBS_OK, command, wy);
    assert_string_equal(text, answer);
}

void expect_status(way *wy, int64_t ms, const char *command, dibs_status status)
{
    char text[4 * TEXT_MAX];
    dibs_status rc = put(wy, ms, command, text);

    expect_one(rc, status, command, wy);
}

void expect_soon(way *wy, const char *command, const char *answer)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 10000);
    char text[4 * TEXT_MAX];
    dibs_status rc;

    do {
        rc = put(wy, 1000, command, text);
    } while (rc != DIBS_OK && dibsx_now() < end && poll(NULL, 0, 1) == 0);
    expect_one(rc, DIBS_OK, command, wy);
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
    dibs__pipeline *ln;
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

        snprintf(command, sizeof(command), "ECHO %d.%d", me, i);
        if (put_quietly(cr->ln, 20000, command, text, &err) != DIBS_OK ||
            strcmp(text, command + 5) != 0)
            atomic_fetch_add(&cr->wrong, 1);
    }
    return NULL;
}

void expect_crowd(way *wy, int threads, int rounds)
{
    pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
    crowd cr = {.ln = wy->ln, .rounds = rounds};

    assert_non_null(ids);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, ask_around, &cr), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    assert_int_equal(cr.wrong, 0);
}
