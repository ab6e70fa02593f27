/* check.c - see check.h: reading a history, and what its parts share. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many breaches of an invariant are told in words. */
enum { TOLD_MAX = 3 };

/* A place in a queue is kept by asking again; after a fault on the store this is
 * how long it may take until all have. */
#define RECOVERY_NS INT64_C(3000000000)

void *must_have(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory) {
        fprintf(stderr, "check: no memory for %zu records\n", count);
        exit(2);
    }
    return memory;
}

void history_add(history *hs, const record_log *log)
{
    if (hs->log_count == hs->log_room) {
        size_t room = 2 * hs->log_room + 16;
        const record_log **logs = must_have(room, sizeof(*logs));

        if (hs->logs)
            memcpy(logs, hs->logs, hs->log_count * sizeof(*logs));
        free(hs->logs);
        hs->logs = logs;
        hs->log_room = room;
    }
    hs->logs[hs->log_count++] = log;
}

bool history_open(history *hs, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/run", folder);
    if (!dir || access(path, R_OK) != 0) {
        if (dir)
            closedir(dir);
        return false;
    }
    hs->run = map_file(folder, "run", sizeof(run_file));
    hs->faults = map_file(folder, "faults", sizeof(fault_log));
    hs->bank = map_file(folder, "bank", sizeof(bank_log));
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, "log-", 4) == 0)
            history_add(hs,
                        map_file(folder, entry->d_name, sizeof(record_log)));
    closedir(dir);
    return true;
}

static int by_worker(const void *a, const void *b)
{
    const record_log *x = *(const record_log *const *)a;
    const record_log *y = *(const record_log *const *)b;

    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return x->life < y->life ? -1 : x->life > y->life;
}

static bool is_error(int32_t status)
{
    return status >= DIBS_UNAVAIL && status != DIBS_UNSUPPORTED;
}

/* Adds a deed to a list that has room for it, or only counts it. */
static void
put(deed *list, size_t *count, const record_log *log, const record *rec)
{
    if (list)
        list[*count] = (deed){rec, log->worker, log->life};
    ++*count;
}

/* Where an operation belongs that is on no lease and no value; NULL: nowhere. */
static deed_list *list_of(history *hs, const record *rec)
{
    switch (rec->op) {
    case OP_LEAD:
        return &hs->terms;
    case OP_HAND:
        return &hs->hands;
    case OP_COUNT:
    case OP_WAIT:
        return &hs->latches;
    case OP_TAKE:
        return &hs->takes;
    case OP_MEET:
        return &hs->meets;
    case OP_CALL:
        return &hs->calls;
    case OP_PERMIT:
        return &hs->permits;
    case OP_CHANGE:
        return &hs->changes;
    case OP_PAUSE:
        return &hs->pauses;
    default:
        return NULL;
    }
}

static void sort_in(history *hs, const record_log *log, const record *rec)
{
    deed_list *other = list_of(hs, rec);

    hs->operations += rec->op != OP_PAUSE;
    if (other) {
        put(other->list, &other->count, log, rec);
    } else if (rec->op != OP_HOLD) {
        put(hs->values[rec->key % VALUES], &hs->value_counts[rec->key % VALUES],
            log, rec);
    } else if (rec->from_ns) {
        put(hs->holds[rec->key % KEYS], &hs->hold_counts[rec->key % KEYS], log,
            rec);
    }
    if (rec->op == OP_LEAD)
        return; /* its status is why it was lost */
    hs->errors += rec->returned_ns && is_error(rec->status);
    hs->errors += is_error(rec->release_status);
}

static void sort_out(history *hs)
{
    memset(hs->hold_counts, 0, sizeof(hs->hold_counts));
    memset(hs->value_counts, 0, sizeof(hs->value_counts));
    hs->terms.count = hs->hands.count = hs->latches.count = 0;
    hs->takes.count = hs->meets.count = hs->calls.count = 0;
    hs->permits.count = hs->changes.count = hs->pauses.count = 0;
    hs->operations = hs->errors = 0;
    for (size_t i = 0; i < hs->log_count; i++) {
        unsigned count = atomic_load(&hs->logs[i]->count);

        for (unsigned k = 0; k < count; k++)
            sort_in(hs, hs->logs[i], &hs->logs[i]->records[k]);
    }
}

static void make_room(deed_list *dl)
{
    dl->list = must_have(dl->count, sizeof(deed));
}

/* Counts, makes room, and fills. */
static void distribute(history *hs)
{
    if (hs->log_count > 0)
        qsort(hs->logs, hs->log_count, sizeof(*hs->logs), by_worker);
    sort_out(hs);
    for (size_t i = 0; i < KEYS; i++)
        hs->holds[i] = must_have(hs->hold_counts[i], sizeof(deed));
    for (size_t i = 0; i < VALUES; i++)
        hs->values[i] = must_have(hs->value_counts[i], sizeof(deed));
    make_room(&hs->terms);
    make_room(&hs->hands);
    make_room(&hs->latches);
    make_room(&hs->takes);
    make_room(&hs->meets);
    make_room(&hs->calls);
    make_room(&hs->permits);
    make_room(&hs->changes);
    make_room(&hs->pauses);
    sort_out(hs);
}

void history_check(history *hs)
{
    if (!hs->out)
        hs->out = stdout;
    distribute(hs);
    for (uint32_t key = 0; key < KEYS; key++) {
        check_exclusion(hs, key);
        check_fences(hs, key);
        if (kind_of(key) == KEY_MUTEX)
            check_order(hs, key);
        check_told(hs, key);
        check_slept(hs, key);
    }
    if (hs->bank)
        check_bank(hs);
    for (uint32_t value = 0; value < VALUES; value++)
        check_value(hs, value);
    check_election(hs);
    check_latches(hs);
    check_limit(hs);
    check_barrier(hs);
    check_breaker(hs);
    check_breaker_state(hs);
    check_permits(hs);
    check_alive(hs);
}

void history_fini(history *hs)
{
    for (size_t i = 0; i < KEYS; i++)
        free(hs->holds[i]);
    for (size_t i = 0; i < VALUES; i++)
        free(hs->values[i]);
    free(hs->terms.list);
    free(hs->hands.list);
    free(hs->latches.list);
    free(hs->takes.list);
    free(hs->meets.list);
    free(hs->calls.list);
    free(hs->permits.list);
    free(hs->changes.list);
    free(hs->pauses.list);
    free(hs->logs);
}

loss history_loss(const history *hs)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;
    loss most = LOSS_NONE;

    for (unsigned i = 0; i < count; i++)
        if (hs->faults->entries[i].loss > most)
            most = (loss)hs->faults->entries[i].loss;
    return most;
}

static size_t sum_of(const history *hs, level wanted)
{
    loss lost = history_loss(hs);
    size_t sum = 0;

    for (int i = 0; i < INVARIANTS; i++)
        if (promised(hs->run->topology, lost, (invariant)i) == wanted)
            sum += hs->breaches[i];
    return sum;
}

size_t history_violations(const history *hs)
{
    return sum_of(hs, KEPT);
}

size_t history_counted(const history *hs)
{
    return sum_of(hs, COUNTED);
}

bool breach(history *hs, invariant what)
{
    static const char *const words[] = {"VIOLATION", "not promised"};
    level lv = promised(hs->run->topology, history_loss(hs), what);

    if (lv == ABSENT || hs->breaches[what]++ >= TOLD_MAX)
        return false;
    fprintf(hs->out, "%s: %s: ", words[lv], invariant_name(what));
    return true;
}

const char *moment(const history *hs, int64_t at_ns, char out[MOMENT_ROOM])
{
    snprintf(out, MOMENT_ROOM, "%+.6f s",
             (double)(at_ns - hs->run->began_ns) / 1e9);
    return out;
}

int64_t hold_end(const record *rec)
{
    int64_t end = rec->valid_ns;

    if (rec->released_ns && rec->released_ns < end)
        end = rec->released_ns;
    if (rec->told_ns && rec->told_ns < end)
        end = rec->told_ns;
    if (rec->missed_ns && rec->missed_ns < end)
        end = rec->missed_ns;
    return end;
}

void tell_hold(const history *hs, const deed *dd)
{
    char from[MOMENT_ROOM], to[MOMENT_ROOM], asked[MOMENT_ROOM];

    fprintf(hs->out,
            "worker %u.%u, fence %" PRIu64
            ", asked for it at %s and relied on it from %s to %s",
            dd->worker, dd->life, dd->rec->fence,
            moment(hs, dd->rec->invoked_ns, asked),
            moment(hs, dd->rec->from_ns, from),
            moment(hs, hold_end(dd->rec), to));
}

bool was_disturbed(const history *hs, uint32_t worker, int64_t from_ns,
                   int64_t to_ns)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;

    for (unsigned i = 0; i < count; i++) {
        const fault_entry *fe = &hs->faults->entries[i];
        bool on_store = fe->worker == NOBODY;

        if ((on_store || fe->worker == worker) && fe->from_ns < to_ns &&
            (fe->to_ns == 0 ||
             fe->to_ns + (on_store ? RECOVERY_NS : 0) > from_ns))
            return true;
    }
    return false;
}

typedef struct span {
    int64_t from_ns, to_ns;
} span;

/* What disturbs a worker, one after the other: faults, and then pauses. One that is
 * another's is empty. False: there is none with this number. */
static bool find_span(const history *hs, uint32_t worker, size_t i, span *out)
{
    size_t count = hs->faults ? atomic_load(&hs->faults->count) : 0;

    *out = (span){0, 0};
    if (i >= count + hs->pauses.count)
        return false;
    if (i >= count) {
        const deed *dd = &hs->pauses.list[i - count];

        if (dd->worker == worker || worker == ANYBODY)
            *out = (span){dd->rec->invoked_ns, dd->rec->returned_ns};
        return true;
    }
    if (hs->faults->entries[i].worker == worker || worker == ANYBODY ||
        hs->faults->entries[i].worker == NOBODY) {
        const fault_entry *fe = &hs->faults->entries[i];
        int64_t after_ns = fe->worker == NOBODY ? RECOVERY_NS : 0;

        *out =
            (span){fe->from_ns, fe->to_ns ? fe->to_ns + after_ns : INT64_MAX};
    }
    return true;
}

int64_t
calm_in(const history *hs, uint32_t worker, int64_t from_ns, int64_t to_ns)
{
    int64_t at_ns = from_ns, calm_ns = 0;

    while (at_ns < to_ns) {
        int64_t until_ns = 0, next_ns = to_ns;
        span sp;

        for (size_t i = 0; find_span(hs, worker, i, &sp); i++) {
            if (sp.from_ns <= at_ns && sp.to_ns > at_ns && sp.to_ns > until_ns)
                until_ns = sp.to_ns;
            else if (sp.from_ns > at_ns && sp.from_ns < next_ns)
                next_ns = sp.from_ns;
        }
        if (until_ns == 0)
            calm_ns += next_ns - at_ns;
        at_ns = until_ns ? until_ns : next_ns;
    }
    return calm_ns;
}

bool was_struck(const history *hs, uint32_t worker, int64_t from_ns,
                int64_t to_ns)
{
    span sp;

    for (size_t i = 0; find_span(hs, worker, i, &sp); i++)
        if (sp.to_ns && sp.from_ns <= to_ns && sp.to_ns >= from_ns)
            return true;
    return false;
}

int64_t life_end(const history *hs, const deed *dd)
{
    for (size_t i = 0; i < hs->log_count; i++)
        if (hs->logs[i]->worker == dd->worker &&
            hs->logs[i]->life == dd->life + 1)
            return hs->logs[i]->began_ns;
    return INT64_MAX;
}

unsigned store_faults(const history *hs, int64_t from_ns, int64_t to_ns)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++) {
        const fault_entry *fe = &hs->faults->entries[i];

        found += fe->worker == NOBODY && fe->from_ns < to_ns &&
                 (fe->to_ns == 0 || fe->to_ns > from_ns);
    }
    return found;
}

int64_t
slept_at(const history *hs, uint32_t worker, int64_t from_ns, int64_t to_ns)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;
    int64_t last = 0;

    for (unsigned i = 0; i < count; i++) {
        const fault_entry *fe = &hs->faults->entries[i];

        if ((fe->worker == worker || fe->worker == NOBODY) &&
            strcmp(fe->name, SUSPEND) == 0 && fe->to_ns != 0 &&
            fe->from_ns > from_ns && fe->to_ns < to_ns && fe->to_ns > last)
            last = fe->to_ns;
    }
    return last;
}

int64_t last_on_worker(const history *hs, uint32_t worker, int64_t from_ns,
                       int64_t to_ns)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;
    int64_t last = 0;

    for (unsigned i = 0; i < count; i++) {
        const fault_entry *fe = &hs->faults->entries[i];
        int64_t end = fe->to_ns ? fe->to_ns : INT64_MAX;

        if (fe->worker == worker && fe->from_ns < to_ns && end > from_ns &&
            end > last)
            last = end;
    }
    return last;
}
