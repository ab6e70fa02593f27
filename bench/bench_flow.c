/* bench_flow.c - how long after a push a blocked consumer in another process has the item, and
 * after an append a blocked reader the event; appends one by one.
 *
 *     bench_flow PART ROUNDS URL
 *
 *     item    dibs_queue_push() until dibs_queue_reserve() returns
 *     event   dibs_events_append() until dibs_reader_next() returns
 *     bare    LPUSH until BRPOPLPUSH returns, on a Redis server of this machine
 *     append  dibs_events_append() itself
 *
 * Prints one line; see samples_print(). */
/* SPDX-License-Identifier: MIT */
#include "bench/raw.h"
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 100, REST_NS = 2000000 };

static char data[BYTES + 1];
static char name[48]; /* of the queue or topic; no run before had it */

typedef struct side {
    dibs_client *client;
    dibs_queue *queue;
    dibs_reader *reader;
    raw *bare;
    int in, out; /* pipes from and to the other process */
} side;

/* How a part goes: `wait` in the child, `send` in the parent. */
typedef struct part {
    const char *word;
    void (*open)(side *s, const char *url);
    void (*wait)(side *s);
    void (*send)(side *s);
} part;

static void must(const char *what, dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up(what, err->message);
}

static void open_client(side *s, const char *url)
{
    dibs_error err;

    must("open", dibs_open(url, PATIENT, &s->client, &err), &err);
}

static void open_item(side *s, const char *url)
{
    dibs_error err;

    open_client(s, url);
    must("queue", dibs_queue_new(s->client, name, NULL, &s->queue, &err), &err);
}

static void wait_item(side *s)
{
    dibs_item *item;
    dibs_error err;
    int64_t had_at;

    must("reserve", dibs_queue_reserve(s->queue, -1, &item, &err), &err);
    had_at = now_ns();
    if (write(s->out, &had_at, sizeof(had_at)) != sizeof(had_at))
        give_up("pipe", strerror(errno));
    must("ack", dibs_item_ack(item, &err), &err);
    dibs_item_free(item);
}

static void send_item(side *s)
{
    dibs_error err;

    must("push", dibs_queue_push(s->queue, data, BYTES, NULL, NULL, &err),
         &err);
}

static void open_event(side *s, const char *url)
{
    dibs_error err;

    open_client(s, url);
    must("reader", dibs_reader_new(s->client, name, NULL, &s->reader, &err),
         &err);
}

static void wait_event(side *s)
{
    dibs_event event;
    dibs_error err;
    int64_t had_at;

    must("read", dibs_reader_next(s->reader, -1, &event, &err), &err);
    had_at = now_ns();
    if (write(s->out, &had_at, sizeof(had_at)) != sizeof(had_at))
        give_up("pipe", strerror(errno));
}

static void send_event(side *s)
{
    dibs_error err;

    must("append",
         dibs_events_append(s->client, name, data, BYTES, NULL, NULL, &err),
         &err);
}

static void open_bare(side *s, const char *url)
{
    const char *port = strrchr(url, ':');

    s->bare = raw_open(port ? (int)strtol(port + 1, NULL, 10) : 0);
}

static void wait_bare(side *s)
{
    int64_t had_at;

    raw_pop(s->bare, name);
    had_at = now_ns();
    if (write(s->out, &had_at, sizeof(had_at)) != sizeof(had_at))
        give_up("pipe", strerror(errno));
}

static void send_bare(side *s)
{
    raw_push(s->bare, name, data);
}

static const part parts[] = {
    {"item", open_item, wait_item, send_item},
    {"event", open_event, wait_event, send_event},
    {"bare", open_bare, wait_bare, send_bare},
};

static void close_side(side *s)
{
    dibs_queue_free(s->queue);
    dibs_reader_free(s->reader);
    dibs_close(s->client);
    if (s->bare)
        raw_close(s->bare);
}

/* The child says 0 when it is about to block, and then when it was woken. */
static int wait_in_turn(const part *pt, side *s, const char *url, long rounds)
{
    int64_t ready = 0;

    pt->open(s, url);
    for (long i = 0; i < rounds; i++) {
        if (write(s->out, &ready, sizeof(ready)) != sizeof(ready))
            give_up("pipe", strerror(errno));
        pt->wait(s);
    }
    close_side(s);
    return 0;
}

static int64_t hear(const side *s)
{
    int64_t word;

    if (read(s->in, &word, sizeof(word)) != sizeof(word))
        give_up("child", "ended early");
    return word;
}

/* The first round places the reader and opens the lane: it does not count. */
static void measure_wakes(const part *pt, side *s, long rounds)
{
    const struct timespec rest = {.tv_nsec = REST_NS};
    int64_t began = now_ns();
    samples times;

    samples_init(&times, (size_t)rounds);
    for (long i = 0; i <= rounds; i++) {
        int64_t from;

        (void)hear(s);
        nanosleep(&rest, NULL);
        if (i == 0)
            sleep(1);
        from = now_ns();
        pt->send(s);
        from = hear(s) - from;
        if (i > 0)
            samples_add(&times, from);
    }
    samples_print(&times, now_ns() - began);
    samples_fini(&times);
}

static int run_pair(const part *pt, long rounds, const char *url)
{
    int back[2], status = 0;
    side s = {.in = -1};
    pid_t child;

    if (pipe(back) || (child = fork()) < 0)
        give_up("fork", strerror(errno));
    if (child == 0) {
        close(back[0]);
        s.out = back[1];
        return wait_in_turn(pt, &s, url, rounds + 1);
    }
    close(back[1]);
    s.in = back[0];
    pt->open(&s, url);
    measure_wakes(pt, &s, rounds);
    close_side(&s);
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}

static int run_appends(long rounds, const char *url)
{
    side s = {.in = -1};
    samples times;
    int64_t began;

    open_client(&s, url);
    send_event(&s);
    began = now_ns();
    samples_init(&times, (size_t)rounds);
    for (long i = 0; i < rounds; i++) {
        int64_t from = now_ns();

        send_event(&s);
        samples_add(&times, now_ns() - from);
    }
    samples_print(&times, now_ns() - began);
    samples_fini(&times);
    close_side(&s);
    return 0;
}

int main(int argc, char **argv)
{
    long rounds = argc == 4 ? strtol(argv[2], NULL, 10) : 0;

    if (rounds < 1 || rounds > 1000000)
        give_up("usage", "bench_flow item|event|bare|append 1-1000000 URL");
    snprintf(name, sizeof(name), "bench-flow-%llx",
             (unsigned long long)now_ns());
    memset(data, 'x', BYTES);
    if (strcmp(argv[1], "append") == 0)
        return run_appends(rounds, argv[3]);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(argv[1], parts[i].word) == 0)
            return run_pair(&parts[i], rounds, argv[3]);
    give_up("usage", "bench_flow item|event|bare|append 1-1000000 URL");
}
