/* route_metrics.c - GET /metrics: the daemon, its client, the look, and shared
 * statistics by class of names. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/class.h"
#include "serve/daemon.h"
#include "serve/metrics.h"
#include "serve/routes.h"
#include "serve/row.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    CLASSES_MAX = DIBS__LOCK_CLASSES_MAX,
    PAGE_MAX = 4 * 1024 * 1024,
    LOOK_WAIT_MS = 1000
};

/* The sums over the names of one class. */
typedef struct class_sum {
    char name[DIBS__SERVE_CLASS_MAX];
    uint64_t held, waiters, permits, in_use;
    int64_t waited_ms;
} class_sum;

typedef struct classes {
    const char *rules;                /* may be NULL */
    class_sum items[CLASSES_MAX + 1]; /* the last one is "other" */
    size_t count;
    bool others; /* that one is used */
    uint64_t dropped;
} classes;

static class_sum *class_of(classes *cs, const char *lock)
{
    char name[DIBS__SERVE_CLASS_MAX];
    size_t i = 0;

    dibs__serve_class(cs->rules, lock, name);
    while (i < cs->count && strcmp(cs->items[i].name, name) != 0)
        i++;
    /* A class of that very name must not be a second series. */
    if (i == CLASSES_MAX || strcmp(name, "other") == 0) {
        cs->dropped += i == CLASSES_MAX;
        cs->others = true;
        memcpy(cs->items[CLASSES_MAX].name, "other", 6);
        return &cs->items[CLASSES_MAX];
    }
    if (i == cs->count)
        memcpy(cs->items[cs->count++].name, name, sizeof(name));
    return &cs->items[i];
}

static void add_row(classes *cs, const dibs_lease_info *row)
{
    class_sum *sum = class_of(cs, row->name);
    const int64_t waited_ms = dibs__serve_row_waited_ms(row);

    sum->held += row->holder_count > 0;
    sum->waiters += row->waiter_count;
    sum->permits += row->capacity;
    for (size_t i = 0; row->capacity && i < row->holder_count; i++)
        sum->in_use += row->holders[i].permits;
    if (waited_ms > sum->waited_ms)
        sum->waited_ms = waited_ms;
}

static size_t shown_count(const classes *cs)
{
    return cs->count + cs->others;
}

/* Which number of a class a gauge shows. */
typedef double value_fn(const class_sum *sum);

static double held_of(const class_sum *sum)
{
    return (double)sum->held;
}

static double waiters_of(const class_sum *sum)
{
    return (double)sum->waiters;
}

static double waited_of(const class_sum *sum)
{
    return (double)sum->waited_ms / 1e3;
}

static double permits_of(const class_sum *sum)
{
    return (double)sum->permits;
}

static double in_use_of(const class_sum *sum)
{
    return (double)sum->in_use;
}

static void
put_gauge(dibsx_buf *out, const classes *cs, dibs__serve_metric metric,
          value_fn *value, bool semaphores)
{
    dibs__serve_metric_head(out, metric);
    for (size_t i = 0; i < shown_count(cs); i++) {
        const class_sum *sum =
            &cs->items[i < cs->count ? i : (size_t)CLASSES_MAX];

        if (!semaphores || sum->permits)
            dibs__serve_metric_sample(out, metric, sum->name, NULL, value(sum));
    }
}

static double open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;

    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 3; /* itself and two names of folders */
}

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long size = 0, resident = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void put_process(dibsx_buf *out, const dibs__serve *sv)
{
    struct rusage usage = {.ru_maxrss = 0};
    char version[64];

    snprintf(version, sizeof(version), "version=\"%s\"", dibs_version());
    dibs__serve_metric_head(out, DIBS__SERVE_BUILD_INFO);
    dibs__serve_metric_sample(out, DIBS__SERVE_BUILD_INFO, NULL, version, 1);
    dibs__serve_metric_put(out, DIBS__SERVE_START_TIME,
                           (double)(dibsx_wall_us() -
                                    (dibsx_now() - sv->started_at) / 1000) /
                               1e6);
    getrusage(RUSAGE_SELF, &usage);
    dibs__serve_metric_put(
        out, DIBS__SERVE_CPU,
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    dibs__serve_metric_put(out, DIBS__SERVE_MEMORY, resident_bytes());
    dibs__serve_metric_put(out, DIBS__SERVE_FILES, open_files());
}

_Static_assert((int)DIBS_SLACK_PARTS == DIBS__SERVE_SLACK_ENDS + 1,
               "the buckets are those of the library");

static void put_client(dibsx_buf *out, const dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    dibs__serve_metric_put(out, DIBS__SERVE_ATTEMPTS, (double)stats.attempts);
    dibs__serve_metric_put(out, DIBS__SERVE_ACQUIRED, (double)stats.acquired);
    dibs__serve_metric_head(out, DIBS__SERVE_NOT_ACQUIRED);
    dibs__serve_metric_sample(out, DIBS__SERVE_NOT_ACQUIRED, NULL,
                              "reason=\"busy\"",
                              (double)(stats.busy - stats.timed_out -
                                       stats.cancelled));
    dibs__serve_metric_sample(out, DIBS__SERVE_NOT_ACQUIRED, NULL,
                              "reason=\"timeout\"", (double)stats.timed_out);
    dibs__serve_metric_sample(out, DIBS__SERVE_NOT_ACQUIRED, NULL,
                              "reason=\"cancelled\"", (double)stats.cancelled);
    dibs__serve_metric_sample(out, DIBS__SERVE_NOT_ACQUIRED, NULL,
                              "reason=\"error\"", (double)stats.failed);
    dibs__serve_metric_put(out, DIBS__SERVE_RELEASED, (double)stats.released);
    dibs__serve_metric_put(out, DIBS__SERVE_LOST, (double)stats.lost);
    dibs__serve_metric_head(out, DIBS__SERVE_RENEWALS);
    dibs__serve_metric_sample(out, DIBS__SERVE_RENEWALS, NULL, "result=\"ok\"",
                              (double)stats.renewed);
    dibs__serve_metric_sample(out, DIBS__SERVE_RENEWALS, NULL,
                              "result=\"failed\"",
                              (double)stats.renewals_failed);
    dibs__serve_metric_head(out, DIBS__SERVE_SLACK);
    dibs__serve_metric_histogram(out, DIBS__SERVE_SLACK, NULL, NULL,
                                 &dibs__serve_slack_ends, stats.slack,
                                 (double)stats.slack_permille / 1e3);
    dibs__serve_metric_put(out, DIBS__SERVE_FALLBACKS, (double)stats.fallbacks);
}

/* Without a picture there is only that the store does not answer. */
static void
put_look(dibsx_buf *out, classes *cs, const dibs__serve_picture *picture)
{
    uint64_t stale = 0;

    dibs__serve_metric_put(out, DIBS__SERVE_BACKEND_UP,
                           picture && picture->rc == DIBS_OK);
    if (!picture)
        return;
    for (size_t i = 0; i < picture->count; i++) {
        const dibs_lease_info *row = picture->rows[i];

        add_row(cs, row);
        for (size_t h = 0; h < row->holder_count; h++)
            stale += row->holders[h].stale != NULL;
    }
    dibs__serve_metric_put(out, DIBS__SERVE_STALE_HOLDERS, (double)stale);
    dibs__serve_metric_put(out, DIBS__SERVE_NAMES, (double)picture->count);
    dibs__serve_metric_put(out, DIBS__SERVE_LOOK_SECONDS,
                           (double)picture->took_us / 1e6);
    dibs__serve_metric_put(out, DIBS__SERVE_LOOK_AGE,
                           (double)(dibsx_now() - picture->seen_at) / 1e9);
}

static void put_classes(dibsx_buf *out, const classes *cs)
{
    put_gauge(out, cs, DIBS__SERVE_LOCKS_HELD, held_of, false);
    put_gauge(out, cs, DIBS__SERVE_WAITERS, waiters_of, false);
    put_gauge(out, cs, DIBS__SERVE_LONGEST_WAIT, waited_of, false);
    put_gauge(out, cs, DIBS__SERVE_PERMITS, permits_of, true);
    put_gauge(out, cs, DIBS__SERVE_PERMITS_IN_USE, in_use_of, true);
}

static bool somebody_waits(const dibs__serve_picture *picture)
{
    for (size_t i = 0; picture && i < picture->count; i++)
        if (picture->rows[i]->waiter_count)
            return true;
    return false;
}

static void
put_nouns(dibsx_buf *out, dibs__serve *sv, const dibs__serve_picture *picture)
{
    dibs__catalog_page *queues =
        dibs__catalog_take(&sv->catalog, DIBS__CATALOG_QUEUES, LOOK_WAIT_MS);
    dibs__catalog_page *breakers =
        dibs__catalog_take(&sv->catalog, DIBS__CATALOG_BREAKERS, LOOK_WAIT_MS);

    dibs__serve_metric_put(
        out, DIBS__SERVE_DEADLOCKS,
        (double)dibs__noun_sums_deadlocks(&sv->noun_sums, sv->cl,
                                          somebody_waits(picture)));
    dibs__noun_sums_elections(&sv->noun_sums, picture, out);
    dibs__noun_sums_queues(queues, out);
    dibs__noun_sums_breakers(&sv->noun_sums, breakers, out);
    dibs__catalog_drop(queues);
    dibs__catalog_drop(breakers);
}

static void put_load(dibsx_buf *out, dibs__serve *sv)
{
    dibs__http_load load;

    dibs__http_load_get(sv->http, &load);
    dibs__serve_metric_head(out, DIBS__SERVE_HTTP_CONNECTIONS);
    dibs__serve_metric_sample(out, DIBS__SERVE_HTTP_CONNECTIONS, NULL,
                              "state=\"open\"", (double)load.connections);
    dibs__serve_metric_sample(out, DIBS__SERVE_HTTP_CONNECTIONS, NULL,
                              "state=\"streaming\"", (double)load.streams);
    dibs__serve_metric_head(out, DIBS__SERVE_HTTP_REFUSED);
    dibs__serve_metric_sample(out, DIBS__SERVE_HTTP_REFUSED, NULL,
                              "why=\"address\"", (double)load.crowded);
    dibs__serve_metric_sample(out, DIBS__SERVE_HTTP_REFUSED, NULL,
                              "why=\"handshakes\"", (double)load.hasty);
    dibs__serve_metric_sample(out, DIBS__SERVE_HTTP_REFUSED, NULL,
                              "why=\"room\"", (double)load.relieved);
}

static void put_sessions(dibsx_buf *out, dibs__serve *sv)
{
    dibs__sessions_count count;
    size_t streams;
    uint64_t gaps;

    dibs__sessions_count_get(&sv->sessions, &count);
    dibs__serve_metric_head(out, DIBS__SERVE_SESSIONS);
    dibs__serve_metric_sample(out, DIBS__SERVE_SESSIONS, NULL,
                              "keep=\"heartbeat\"", (double)count.heartbeat);
    dibs__serve_metric_sample(out, DIBS__SERVE_SESSIONS, NULL,
                              "keep=\"stream\"", (double)count.stream);
    dibs__serve_metric_put(out, DIBS__SERVE_SESSION_LEASES,
                           (double)count.leases);
    dibs__serve_metric_head(out, DIBS__SERVE_SESSIONS_ENDED);
    dibs__serve_metric_sample(out, DIBS__SERVE_SESSIONS_ENDED, NULL,
                              "why=\"closed\"", (double)count.closed);
    dibs__serve_metric_sample(out, DIBS__SERVE_SESSIONS_ENDED, NULL,
                              "why=\"expired\"", (double)count.expired);
    dibs__serve_metric_sample(out, DIBS__SERVE_SESSIONS_ENDED, NULL,
                              "why=\"drained\"", (double)count.drained);
    put_load(out, sv);
    dibs__hub_count_get(&sv->hub, &streams, &gaps);
    dibs__serve_metric_put(out, DIBS__SERVE_STREAMS, (double)streams);
    dibs__serve_metric_put(out, DIBS__SERVE_STREAM_GAPS, (double)gaps);
    dibs__serve_metric_put(out, DIBS__SERVE_EVENTS_MISSED,
                           (double)dibs__told_missed(&sv->told));
}

/* A store without commits has no jobs. */
static void put_jobs(dibsx_buf *out, dibs__serve *sv)
{
    dibs__board_picture *picture =
        dibs__board_look_take(&sv->board_look, LOOK_WAIT_MS);

    dibs__serve_metric_put(out, DIBS__SERVE_CLOCK_BEHIND,
                           (double)dibs__engine_behind_us(&sv->engine) / 1e6);
    dibs__job_sums_put(&sv->board_look.sums,
                       picture && picture->rc == DIBS_OK ? picture : NULL, out);
    dibs__board_picture_drop(picture);
}

static void put_all(dibsx_buf *out, dibs__serve *sv, classes *cs)
{
    dibs__serve_picture *picture =
        dibs__serve_look_take(&sv->look, LOOK_WAIT_MS);

    put_process(out, sv);
    put_client(out, sv->cl);
    put_look(out, cs, picture);
    dibs__pulse_put(&sv->pulse, out);
    /* A store without values has no statistics, and one that is away none now. */
    if (picture && picture->rc == DIBS_OK)
        dibs__lock_sums_read(&sv->lock_sums, sv->cl);
    put_classes(out, cs);
    cs->dropped += dibs__lock_sums_put(&sv->lock_sums, out);
    dibs__serve_metric_put(out, DIBS__SERVE_DROPPED_CLASSES,
                           (double)cs->dropped);
    put_nouns(out, sv, picture && picture->rc == DIBS_OK ? picture : NULL);
    dibs__serve_counts_put(&sv->counts, out);
    put_sessions(out, sv);
    put_jobs(out, sv);
    dibs__serve_picture_drop(picture);
}

/* The client asks for OpenMetrics, which scrapers of Prometheus prefer. */
static bool wants_open(const dibs__http_exchange *ex)
{
    const char *accept = dibs__http_header(ex, "Accept");

    return accept && strstr(accept, "application/openmetrics-text");
}

static void answer_page(dibs__http_exchange *ex, dibsx_buf *page)
{
    const bool open = wants_open(ex);
    dibsx_buf converted;
    dibsx_buf *shown = open ? &converted : page;
    size_t len;

    dibsx_buf_init(&converted, PAGE_MAX);
    if (open)
        dibs__serve_metrics_convert(dibsx_buf_text(page), &converted);
    len = shown->len;
    if (dibsx_buf_ok(page) && dibsx_buf_ok(shown))
        dibs__http_answer_bytes(ex, 200,
                                open ? DIBS__SERVE_METRICS_OPEN
                                     : DIBS__SERVE_METRICS_TYPE,
                                dibsx_buf_take(shown), len, dibsx_free);
    else
        dibs__http_refuse(ex, 503, "There is no memory for the metrics");
    dibsx_buf_fini(&converted);
}

void dibs__serve_get_metrics(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    classes *cs = dibsx_zalloc(sizeof(*cs));
    dibsx_buf page;

    dibsx_buf_init(&page, PAGE_MAX);
    if (cs) {
        cs->rules = sv->opts->metrics_classes;
        put_all(&page, sv, cs);
        answer_page(ex, &page);
    } else {
        dibs__http_refuse(ex, 503, "There is no memory for the metrics");
    }
    dibsx_buf_fini(&page);
    dibsx_free(cs);
}
