/* verbs.c - the list of verbs, that of their options, and looking things up in the
 * first. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include <string.h>

const char dibs__common_exits[] =
    "64 the command line is wrong\n"
    "69 the store is out of reach\n"
    "70 an internal failure, or the output could not be written\n"
    "77 permission or authentication was refused\n"
    "78 the configuration is wrong, or the store is unfit to be used\n";

/* Every verb, in the order of help and under its headings, which come with their
 * first verb. Its row is dibs__verb_NAME in its verb_*.c; to add a verb is to add
 * that file and a line here, and one below when it has rows of options. */
#define VERBS(X)                                                               \
    X("Locks", run)                                                            \
    X("Locks", acquire)                                                        \
    X("Locks", release)                                                        \
    X("Locks", renew)                                                          \
    X("Locks", check)                                                          \
    X("Locks", break)                                                          \
    X("Look", ls)                                                              \
    X("Look", show)                                                            \
    X("Look", top)                                                             \
    X("Look", watch)                                                           \
    X("Look", wait)                                                            \
    X("Look", stats)                                                           \
    X("Look", deadlocks)                                                       \
    X("Look", trail)                                                           \
    X("Values", state)                                                         \
    X("Values", state_get)                                                     \
    X("Values", state_set)                                                     \
    X("Values", state_cas)                                                     \
    X("Values", state_del)                                                     \
    X("Values", state_add)                                                     \
    X("Values", state_ls)                                                      \
    X("Values", state_watch)                                                   \
    X("Coordination", elect)                                                   \
    X("Coordination", leader)                                                  \
    X("Coordination", members)                                                 \
    X("Coordination", join)                                                    \
    X("Coordination", barrier)                                                 \
    X("Coordination", latch)                                                   \
    X("Coordination", latch_count_down)                                        \
    X("Coordination", latch_wait)                                              \
    X("Coordination", latch_ls)                                                \
    X("Coordination", latch_show)                                              \
    X("Coordination", latch_reset)                                             \
    X("Coordination", publish)                                                 \
    X("Coordination", subscribe)                                               \
    X("Coordination", events)                                                  \
    X("Coordination", events_read)                                             \
    X("Coordination", events_ls)                                               \
    X("Coordination", events_show)                                             \
    X("Coordination", events_trim)                                             \
    X("Coordination", breaker)                                                 \
    X("Coordination", breaker_run)                                             \
    X("Coordination", breaker_ls)                                              \
    X("Coordination", breaker_show)                                            \
    X("Coordination", breaker_open)                                            \
    X("Coordination", breaker_close)                                           \
    X("Coordination", limit)                                                   \
    X("Queues", queue)                                                         \
    X("Queues", queue_push)                                                    \
    X("Queues", queue_run)                                                     \
    X("Queues", queue_pop)                                                     \
    X("Queues", queue_ack)                                                     \
    X("Queues", queue_nack)                                                    \
    X("Queues", queue_extend)                                                  \
    X("Queues", queue_ls)                                                      \
    X("Queues", queue_stats)                                                   \
    X("Queues", queue_peek)                                                    \
    X("Queues", queue_dead)                                                    \
    X("Queues", queue_redrive)                                                 \
    X("Queues", queue_purge)                                                   \
    X("Queues", queue_pause)                                                   \
    X("Queues", queue_resume)                                                  \
    X("Queues", queue_set)                                                     \
    X("Queues", queue_rm)                                                      \
    X("Jobs", job)                                                             \
    X("Jobs", job_check)                                                       \
    X("Jobs", job_load)                                                        \
    X("Jobs", job_ls)                                                          \
    X("Jobs", job_show)                                                        \
    X("Jobs", job_next)                                                        \
    X("Jobs", job_start)                                                       \
    X("Jobs", job_wait)                                                        \
    X("Jobs", job_runs)                                                        \
    X("Jobs", job_logs)                                                        \
    X("Jobs", job_cancel)                                                      \
    X("Jobs", job_rerun)                                                       \
    X("Jobs", job_resume)                                                      \
    X("Jobs", job_pause)                                                       \
    X("Jobs", job_unpause)                                                     \
    X("Jobs", job_reset)                                                       \
    X("Jobs", job_rm)                                                          \
    X("Jobs", job_nodes)                                                       \
    X("Jobs", job_drain)                                                       \
    X("Jobs", work)                                                            \
    X("Jobs", cron)                                                            \
    X("Jobs", cron_check)                                                      \
    X("Jobs", cron_next)                                                       \
    X("Jobs", cron_explain)                                                    \
    X("Jobs", cron_import)                                                     \
    X("Store", store)                                                          \
    X("Store", store_status)                                                   \
    X("Store", store_init)                                                     \
    X("Store", store_upgrade)                                                  \
    X("Store", store_share)                                                    \
    X("Store", ping)                                                           \
    X("Store", health)                                                         \
    X("Store", doctor)                                                         \
    X("Server", serve)                                                         \
    X("Server", access)                                                        \
    X("Server", access_add)                                                    \
    X("Server", access_ls)                                                     \
    X("Server", access_rm)                                                     \
    X("Others", demo)                                                          \
    X("Others", config)                                                        \
    X("Others", completion)                                                    \
    X("Others", help)                                                          \
    X("Others", version)

#define DECLARE(heading, name) extern const dibs__verb dibs__verb_##name;
#define ADDRESS(heading, name) &dibs__verb_##name,
#define HEADING(heading, name) heading,

VERBS(DECLARE)

const dibs__verb *const dibs__verbs[] = {VERBS(ADDRESS)};
static const char *const headings[] = {VERBS(HEADING)};

const size_t dibs__verb_count = sizeof(dibs__verbs) / sizeof(dibs__verbs[0]);

/* The options of verbs, in the order of help. Their rows are dibs__options_NAME
 * beside the verbs' code. */
#define OPTIONS(X)                                                             \
    X(every)                                                                   \
    X(lock)                                                                    \
    X(run)                                                                     \
    X(token)                                                                   \
    X(look)                                                                    \
    X(top)                                                                     \
    X(wait)                                                                    \
    X(deadlocks)                                                               \
    X(trail)                                                                   \
    X(break)                                                                   \
    X(store_share)                                                             \
    X(health)                                                                  \
    X(state)                                                                   \
    X(state_watch)                                                             \
    X(election)                                                                \
    X(leader)                                                                  \
    X(members)                                                                 \
    X(barrier)                                                                 \
    X(latch)                                                                   \
    X(publish)                                                                 \
    X(subscribe)                                                               \
    X(events)                                                                  \
    X(breaker)                                                                 \
    X(limit)                                                                   \
    X(queue)                                                                   \
    X(queue_items)                                                             \
    X(queue_push)                                                              \
    X(queue_run)                                                               \
    X(queue_pop)                                                               \
    X(job_board)                                                               \
    X(job_load)                                                                \
    X(job_look)                                                                \
    X(job_runs)                                                                \
    X(job_resume)                                                              \
    X(job_logs)                                                                \
    X(job_pause)                                                               \
    X(work)                                                                    \
    X(cron)                                                                    \
    X(cron_import)                                                             \
    X(serve)                                                                   \
    X(access)                                                                  \
    X(demo)                                                                    \
    X(help)                                                                    \
    X(config)

#define DECLARE_ROWS(name) extern const dibs__option_rows dibs__options_##name;
#define ADDRESS_ROWS(name) &dibs__options_##name,

OPTIONS(DECLARE_ROWS)

const dibs__option_rows *const dibs__option_groups[] = {OPTIONS(ADDRESS_ROWS)};

const size_t dibs__option_group_count =
    sizeof(dibs__option_groups) / sizeof(dibs__option_groups[0]);

const char *dibs__verb_heading(size_t i)
{
    return headings[i];
}

int dibs__verb_names(const dibs__verb *verb)
{
    return verb->names > 0 ? verb->names : 1;
}

const char *dibs__verb_word(const dibs__verb *verb)
{
    const char *space = strrchr(verb->name, ' ');

    return space ? space + 1 : verb->name;
}

bool dibs__verb_is_in(const dibs__verb *verb, const char *group)
{
    const char *word = dibs__verb_word(verb);
    size_t len = strlen(group);

    if (len == 0)
        return word == verb->name;
    return word == verb->name + len + 1 && memcmp(verb->name, group, len) == 0;
}

const dibs__verb *dibs__verb_in(const char *group, const char *word)
{
    for (size_t i = 0; i < dibs__verb_count; i++) {
        const dibs__verb *verb = dibs__verbs[i];

        if (dibs__verb_is_in(verb, group) &&
            (strcmp(dibs__verb_word(verb), word) == 0 ||
             (verb->also && strcmp(verb->also, word) == 0)))
            return verb;
    }
    return NULL;
}

const dibs__verb *dibs__verb_find(const char *name)
{
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (strcmp(dibs__verbs[i]->name, name) == 0)
            return dibs__verbs[i];
    }
    return NULL;
}
