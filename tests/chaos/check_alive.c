/* check_alive.c - whether it went on.
 *
 *   alive   after the last fault was healed each name was granted to somebody;
 *           no call outlasted its limit by far; where waits outlast the faults no
 *           acquire that waited failed; no worker ended by itself; when all had
 *           gone and their time was up, no name was in use
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>

/* What a busy machine may add to a limit. */
#define OVERRUN_NS INT64_C(10000000000)

/* A fault on a worker may be felt so long after it. */
#define SHORTLY_NS INT64_C(3000000000)

static bool breach_late(history *hs)
{
    hs->late++;
    return breach(hs, ALIVE);
}

/* Whether some worker asked for the name and the store has its kind; and whether
 * one was granted it after the last fault. */
static void look_at(const history *hs, int64_t calm_ns, bool offered[KEYS],
                    bool granted[KEYS])
{
    for (size_t i = 0; i < hs->log_count; i++) {
        unsigned count = atomic_load(&hs->logs[i]->count);

        for (unsigned k = 0; k < count; k++) {
            const record *rec = &hs->logs[i]->records[k];

            if (rec->op != OP_HOLD || !rec->returned_ns)
                continue;
            if (rec->status != DIBS_UNSUPPORTED)
                offered[rec->key % KEYS] = true;
            if (rec->status == DIBS_OK && rec->returned_ns > calm_ns)
                granted[rec->key % KEYS] = true;
        }
    }
}

static void check_granted(history *hs)
{
    int64_t calm_ns = atomic_load(&hs->run->calm_ns);
    int64_t ended_ns = atomic_load(&hs->run->ended_ns);
    bool offered[KEYS] = {false}, granted[KEYS] = {false};

    if (calm_ns == 0)
        return;
    look_at(hs, calm_ns, offered, granted);
    for (uint32_t key = 0; key < KEYS; key++)
        if (offered[key] && !granted[key] && breach_late(hs))
            fprintf(hs->out,
                    "key %u (%s): granted to nobody in the %.1f s after the "
                    "last fault\n",
                    key, kind_name(kind_of(key)),
                    (double)(ended_ns - calm_ns) / 1e9);
}

static void check_overrun(history *hs, const record_log *log, const record *rec)
{
    int64_t limit = (rec->op == OP_HOLD && rec->waited ? hs->run->wait_ms : 0) +
                    2 * hs->run->timeout_ms;
    int64_t span = rec->returned_ns - rec->invoked_ns;

    if (rec->returned_ns == 0 || rec->op == OP_PAUSE ||
        span <= limit * 1000000 + OVERRUN_NS ||
        last_on_worker(hs, log->worker, rec->invoked_ns, rec->returned_ns))
        return;
    if (breach_late(hs)) {
        char at[MOMENT_ROOM];

        fprintf(hs->out,
                "worker %u.%u: a call of %s took %.3f s, with a limit of "
                "%.3f s\n",
                log->worker, log->life, moment(hs, rec->invoked_ns, at),
                (double)span / 1e9, (double)limit / 1e3);
    }
}

/* A fault on the worker itself may be why. */
static void check_patient(history *hs, const record_log *log, const record *rec)
{
    bool failed = rec->returned_ns &&
                  (rec->status == DIBS_UNAVAIL || rec->status == DIBS_UNKNOWN);
    char at[MOMENT_ROOM], to[MOMENT_ROOM];

    if (rec->op != OP_HOLD || !rec->waited || !failed ||
        last_on_worker(hs, log->worker, rec->invoked_ns - SHORTLY_NS,
                       rec->returned_ns) ||
        !breach_late(hs))
        return;
    fprintf(hs->out,
            "key %u (%s): worker %u.%u could wait for %.1f s, and was told %s "
            "after %s, at %s\n",
            rec->key, kind_name(kind_of(rec->key)), log->worker, log->life,
            (double)hs->run->wait_ms / 1e3,
            rec->status == DIBS_UNAVAIL ? "UNAVAIL" : "UNKNOWN",
            moment(hs, rec->invoked_ns, at), moment(hs, rec->returned_ns, to));
}

static void check_calls(history *hs, const record_log *log)
{
    unsigned count = atomic_load(&log->count);

    for (unsigned i = 0; i < count; i++) {
        check_overrun(hs, log, &log->records[i]);
        if (hs->run->patient)
            check_patient(hs, log, &log->records[i]);
    }
}

void check_alive(history *hs)
{
    unsigned failures = atomic_load(&hs->run->failures);
    unsigned left = atomic_load(&hs->run->left);

    check_granted(hs);
    for (size_t i = 0; i < hs->log_count; i++)
        check_calls(hs, hs->logs[i]);
    if (failures > 0 && breach(hs, ALIVE))
        fprintf(hs->out, "%u workers ended as none may\n", failures);
    if (left == LEFT_UNKNOWN) {
        if (breach_late(hs))
            fprintf(hs->out, "nobody could tell which names were in use after "
                             "all had gone\n");
    } else if (left > 0 && breach(hs, ALIVE))
        fprintf(hs->out, "%u names were in use after all had gone\n", left);
}
