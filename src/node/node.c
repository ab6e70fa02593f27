/* node.c - see node.h. The loop of a node: its lease, its turns, its end. */
/* SPDX-License-Identifier: MIT */
#include "node/node.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "node/node_sweep.h"
#include "node/node_zones.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { JOIN_AGAIN_MS = 500, SAY_AGAIN_S = 60 };

void dibs__node_say(dibs__node *node, const char *format, ...)
{
    char line[sizeof(node->said)];
    dibsx_nsec now = dibsx_now();
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (strcmp(line, node->said) == 0 &&
        now - node->said_at < SAY_AGAIN_S * DIBSX_SEC)
        return;
    (void)snprintf(node->said, sizeof(node->said), "%s", line);
    node->said_at = now;
    if (node->opts->say)
        node->opts->say(node->opts->arg, line);
}

void dibs__node_complain(dibs__node *node, const char *what,
                         const dibs_error *err)
{
    dibs__node_say(node, "%s: %s", what, err->message);
}

int64_t dibs__node_now_us(dibs__node *node)
{
    return dibs__store_clock_us(&node->clock, dibsx_now());
}

const dibs__job *
dibs__node_job(const dibs__node *node, const char *job, const char *hash)
{
    for (size_t i = 0; i < node->opts->file_count; i++) {
        const dibs__job_entry *entry =
            dibs__job_file_find(node->opts->files[i], job);

        if (entry && strcmp(entry->hash, hash) == 0)
            return entry->job;
    }
    return NULL;
}

/* ---- the lease */

dibsx_nsec dibs__node_valid_until(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    int64_t valid_ms = node->lease ? dibs_lock_valid_ms(node->lease) : 0;
    int64_t margin_ms = node->ops->margin_ms(node);

    if (valid_ms > 0)
        node->ops->believe(node, dibsx_after_ms(now, valid_ms));
    return valid_ms > margin_ms ? dibsx_after_ms(now, valid_ms - margin_ms)
                                : now;
}

static dibs_status try_join(dibs__node *node, dibs_error *err)
{
    char inner[DIBS__NODE_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_status rc;

    if (!dibsx_random_hex(node->id, sizeof(node->id)))
        return dibsx_fail(err, DIBS_INTERNAL, "the kernel has no randomness");
    (void)snprintf(inner, sizeof(inner), "node/%s", node->id);
    rc = dibs__board_key(node->board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(node->board->cl, key,
                           DIBS_LOCK_OPTS(.ttl_ms = node->opts->ttl_ms),
                           &node->lease, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(node->lease, err);
    if (rc != DIBS_OK) {
        dibs_lock_free(node->lease);
        node->lease = NULL;
        return rc;
    }
    node->fence = dibs_lock_fence(node->lease);
    node->record_at = node->joined_us = 0;
    dibs__node_hurry(node, 0);
    dibs__node_say(node, "node %s joined the board %s", node->id,
                   node->board->name);
    return DIBS_OK;
}

/* Attempts that have to end with the lease. */
static size_t count_kept(const dibs__node *node)
{
    size_t kept = 0;

    for (size_t i = 0; i < node->opts->slots; i++)
        kept += node->tasks[i].used && node->tasks[i].at &&
                node->ops->ends_with_lease(&node->tasks[i]);
    return kept;
}

/* A new lease only when nothing of the old one is left: all trees believe in one. */
static void join_again(dibs__node *node)
{
    dibs_error err = {0};

    if (dibsx_now() < node->join_at)
        return;
    node->join_at = dibsx_after_ms(dibsx_now(), JOIN_AGAIN_MS);
    if (node->draining || count_kept(node) > 0)
        return;
    if (try_join(node, &err) != DIBS_OK)
        dibs__node_complain(node, "cannot join the board", &err);
}

static void keep_lease(dibs__node *node)
{
    if (node->lease && dibs_lock_check(node->lease) != DIBS_OK) {
        dibs__node_say(
            node,
            "node %s has lost its lease; its commands end, but for those "
            "with on_lost: finish",
            node->id);
        dibs__node_lose_all(node);
        dibs_lock_free(node->lease);
        node->lease = NULL;
    }
    if (!node->lease)
        join_again(node);
    (void)dibs__node_valid_until(node);
}

/* ---- turns */

void dibs__node_hurry(dibs__node *node, int64_t ms)
{
    dibs__wake_within(&node->wake, dibsx_now(), ms);
}

void dibs__node_drain(dibs__node *node, const char *why)
{
    if (node->draining)
        return;
    node->draining = true;
    node->drain_at = dibsx_after_ms(dibsx_now(), node->opts->drain_ms);
    node->record_at = 0;
    dibs__node_hurry(node, 0);
    dibs__node_say(node, "drains%s; commands that run: %zu", why,
                   dibs__node_busy(node));
}

static void hear_stop(dibs__node *node)
{
    char signal[sizeof(struct signalfd_siginfo)];

    while (read(node->opts->stop_fd, signal, sizeof(signal)) > 0) {
        node->stops++;
        if (node->stops == 1) {
            dibs__node_drain(node, "");
        } else if (node->stops == 2 && node->opts->drain_ms < 0) {
            node->drain_at = dibsx_now();
        } else {
            node->drained = node->killed = true;
            dibs__node_stop_all(node, true);
        }
    }
    if (node->draining && !node->drained && dibsx_now() >= node->drain_at) {
        node->drained = true;
        dibs__node_stop_all(node, false);
    }
}

/* Rings that were lost are found by the looks that come anyway. */
static void hear_bell(dibs__node *node)
{
    struct pollfd one = {.fd = dibs_bell_fd(node->bell), .events = POLLIN};

    if (!node->bell || poll(&one, 1, 0) != 1)
        return;
    dibs__wake_rang(&node->wake, dibsx_now(), dibs_bell_clear(node->bell));
    node->own_at = 0;
    node->claim_place.rang = true;
}

static void listen_again(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    dibs_error err = {0};
    bool hears = false;

    if (now < node->wake.listen_at)
        return;
    if (!node->bell) {
        node->wake.listen_at = DIBSX_NEVER;
        return;
    }
    hears = dibs_bell_listen(node->bell, &err) == DIBS_OK;
    if (!hears && (node->wake.hears || node->wake.listen_at == 0))
        dibs__node_complain(node,
                            "cannot hear the board, so it looks once a "
                            "second",
                            &err);
    dibs__wake_listened(&node->wake, dibsx_now(), hears);
}

static dibsx_nsec find_next_at(const dibs__node *node, dibsx_nsec now)
{
    dibsx_nsec until = dibs__node_next_at(node);
    dibsx_nsec look =
        node->lease ? dibs__wake_until(&node->wake) : node->join_at;
    dibsx_nsec most = dibsx_after_ms(now, node->opts->ttl_ms / 6);

    if (look < until)
        until = look;
    if (node->draining && !node->drained && node->drain_at < until)
        until = node->drain_at;
    return most < until ? most : until; /* Belief follows the lease. */
}

static void await_events(const dibs__node *node)
{
    struct pollfd fds[] = {{.fd = node->ops->event_fd(node), .events = POLLIN},
                           {.fd = node->opts->stop_fd, .events = POLLIN},
                           {.fd = node->lease ? dibs_lock_lost_fd(node->lease)
                                              : -1,
                            .events = POLLIN},
                           {.fd = node->lease ? dibs_bell_fd(node->bell) : -1,
                            .events = POLLIN}};
    dibsx_nsec now = dibsx_now();

    (void)poll(fds, sizeof(fds) / sizeof(fds[0]),
               (int)dibsx_wait_ms(find_next_at(node, now), now));
}

static void take_turn(dibs__node *node)
{
    keep_lease(node);
    hear_stop(node);
    dibs__node_collect(node);
    dibs__node_proceed(node);
    if (!node->lease)
        return;
    hear_bell(node);
    listen_again(node);
    if (dibsx_now() >= node->wake.look_at)
        dibs__node_look(node);
}

static bool is_done(const dibs__node *node)
{
    bool busy = dibs__node_busy(node) > 0;

    if (node->draining)
        return !busy;
    return node->opts->once && node->idle && !busy;
}

static void open_bell(dibs__node *node)
{
    char key[DIBS_NAME_MAX + 1];

    if (dibs__board_key(node->board, DIBS__BOARD_BELL, key, NULL) != DIBS_OK ||
        dibs_bell_new(node->board->cl, key, &node->bell, NULL) != DIBS_OK)
        node->bell = NULL;
}

static dibs_status run_node(dibs__node *node, dibs_error *err)
{
    dibs_status rc = dibs__sweep_check_prefix(node->board->cl,
                                              node->opts->sweep_prefix, err);

    if (rc == DIBS_OK)
        rc = node->ops->open(node, err);
    if (rc == DIBS_OK)
        rc = try_join(node, err);
    /* A store without bells is looked at once a second. */
    if (rc == DIBS_OK)
        open_bell(node);
    while (rc == DIBS_OK && !is_done(node)) {
        await_events(node);
        take_turn(node);
    }
    if (rc == DIBS_OK && node->lease)
        dibs__node_remove_record(node);
    if (rc == DIBS_OK)
        dibs__node_say(node, "node %s has stopped", node->id);
    if (node->executor)
        node->ops->close(node);
    dibs__node_free_tasks(node);
    dibs__node_free_zones(node);
    dibs__node_free_trim(node);
    dibs_bell_free(node->bell);
    dibs_lock_free(node->lease);
    return rc;
}

dibs_status dibs__node_serve(const dibs__node_opts *opts,
                             const dibs__attempt_ops *ops, dibs_error *err)
{
    dibs__node *node = dibsx_zalloc(sizeof(*node));
    dibs_status rc = DIBS_OK;

    if (!node)
        return dibsx_nomem(err, "a node");
    node->opts = opts;
    node->ops = ops;
    node->own = *opts->board;
    node->own.cache = dibs__job_cache_new(DIBS__JOB_CACHE_BYTES);
    node->board = &node->own;
    dibs__wake_init(&node->wake, opts->look_ms, DIBS_BELL_LISTEN_MS);
    node->tasks = dibsx_zalloc_n(opts->slots, sizeof(*node->tasks));
    rc = node->tasks ? run_node(node, err)
                     : dibsx_nomem(err, "the commands of a node");
    dibs__job_cache_free(node->own.cache);
    dibs__marks_free(&node->marks);
    dibsx_free(node->tasks);
    dibsx_free(node);
    return rc;
}
