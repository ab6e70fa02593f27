/* health.h - a health check: does the store grant a lock and keep a value, and is
 * there a leader?
 *
 * The check acquires and releases a lock, and writes, reads, replaces and deletes a
 * value. Both have a name of their own below "dibs.health/", so that no lock and no
 * value of a program is touched. They expire after DIBS_HEALTH_TTL_MS if a failure
 * leaves them behind. On request the check also looks at an election and at a group.
 *
 * Threads: any thread may make the call. It blocks for the store.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HEALTH_H
#define DIBS_HEALTH_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The time after which a failed check has left nothing behind. */
#define DIBS_HEALTH_TTL_MS 5000

typedef enum dibs_health {
    DIBS_HEALTHY = 0,
    DIBS_DEGRADED = 1, /* it works; slowly, or without a leader or members */
    DIBS_UNHEALTHY = 2 /* a part failed */
} dibs_health;

/* The result of one part of the check. */
typedef enum dibs_part_result {
    DIBS_PART_OK = 0,
    DIBS_PART_SKIPPED =
        1,              /* this store cannot do it, or a part before failed */
    DIBS_PART_SLOW = 2, /* it took longer than slow_ms */
    DIBS_PART_MISSING = 3, /* nobody leads, or the group has no members */
    DIBS_PART_FAILED = 4
} dibs_part_result;

typedef struct dibs_health_part {
    const char *name; /* "lock", "state", "leader", "members" */
    dibs_part_result result;
    dibs_status status; /* DIBS_OK, or why it was skipped or failed */
    int64_t took_us;    /* of its calls together */
    const char
        *detail; /* the leader, the number of members, or the reason; "" */
} dibs_health_part;

/* Called for each part in turn. The texts are valid during the call only. */
typedef void dibs_health_fn(const dibs_health_part *part, void *arg);

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_health_opts {
    size_t size;          /* sizeof(dibs_health_opts); the macro sets it */
    const char *election; /* must have a leader; none is looked for */
    const char *group;    /* must have members; none is looked for */
    int64_t slow_ms;      /* a part that takes longer is slow; 1,000 */
    dibs_health_fn *each;
    void *arg;
} dibs_health_opts;

#define DIBS_HEALTH_OPTS(...)                                                  \
    (&(dibs_health_opts){.size = sizeof(dibs_health_opts), __VA_ARGS__})

/* Checks the store. `opts` may be NULL. *out (may be NULL) is the worst of the parts.
 * If a part finds the store out of reach, the parts after it are skipped. The
 * check never uses a fallback store, and no statistics count it.
 *   DIBS_OK       healthy or degraded
 *   DIBS_REFUSED  unhealthy: the store answers, but lost a lock or a value
 *   DIBS_INVALID  an option is malformed; no part was checked
 *   others        unhealthy: the status of the first part that failed */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_health_check(dibs_client *client, const dibs_health_opts *opts,
                  dibs_health *out, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
