/* resolve.c - host names to addresses, within a deadline.
 *
 * Owns one job per resolver at most, which its thread shares: the last one to
 * release it frees it. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/resolve.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* One question to the system's resolver. */
typedef struct job {
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    int refs;
    bool done;
    int code; /* of getaddrinfo() */
    dibs__address found[DIBS__ADDRESS_MAX];
    size_t count;
    char port[8];
    char host[];
} job;

struct dibs__resolver {
    char *host;
    char port[8];
    job *job; /* that had no answer yet, or NULL */
    dibs__address good[DIBS__ADDRESS_MAX];
    size_t good_count;
};

dibs__resolver *dibs__resolver_new(const char *host, int port)
{
    dibs__resolver *rs = dibsx_zalloc(sizeof(*rs));

    if (!rs)
        return NULL;
    rs->host = dibsx_strdup(host);
    (void)snprintf(rs->port, sizeof(rs->port), "%d", port);
    if (rs->host)
        return rs;
    dibsx_free(rs);
    return NULL;
}

static void job_unref(job *jb)
{
    bool last;

    pthread_mutex_lock(&jb->mutex);
    last = --jb->refs == 0;
    pthread_mutex_unlock(&jb->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&jb->answered);
    pthread_mutex_destroy(&jb->mutex);
    dibsx_free(jb);
}

void dibs__resolver_free(dibs__resolver *rs)
{
    if (!rs)
        return;
    if (rs->job)
        job_unref(rs->job);
    dibsx_free(rs->host);
    dibsx_free(rs);
}

/* Asks the system; `flags` of getaddrinfo(). */
static int ask_system(const char *host, const char *port, int flags,
                      dibs__address *out, size_t *count)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host, port, &hints, &list);

    *count = 0;
    if (code != 0)
        return code;
    for (struct addrinfo *at = list; at && *count < DIBS__ADDRESS_MAX;
         at = at->ai_next) {
        if (at->ai_addrlen > sizeof(out->at))
            continue;
        memset(&out[*count], 0, sizeof(out[*count]));
        memcpy(&out[*count].at, at->ai_addr, at->ai_addrlen);
        out[(*count)++].len = at->ai_addrlen;
    }
    freeaddrinfo(list);
    return *count ? 0 : EAI_NONAME;
}

static void *job_run(void *arg)
{
    dibs__address found[DIBS__ADDRESS_MAX];
    job *jb = arg;
    size_t count;
    int code = ask_system(jb->host, jb->port, AI_ADDRCONFIG, found, &count);

    if (code != 0) /* A machine may have nothing but its loopback. */
        code = ask_system(jb->host, jb->port, 0, found, &count);
    pthread_mutex_lock(&jb->mutex);
    jb->code = code;
    jb->count = count;
    memcpy(jb->found, found, count * sizeof(found[0]));
    jb->done = true;
    pthread_cond_signal(&jb->answered);
    pthread_mutex_unlock(&jb->mutex);
    job_unref(jb);
    return NULL;
}

/* Starts a detached thread that takes no signals. */
static int thread_start(job *jb)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int number;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    number = pthread_create(&thread, &attr, job_run, jb);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number;
}

static dibs_status job_start(dibs__resolver *rs, dibs_error *err)
{
    size_t size = strlen(rs->host) + 1;
    job *jb = dibsx_zalloc(sizeof(*jb) + size);
    int number;

    if (!jb)
        return dibsx_nomem(err, "a question to the resolver");
    memcpy(jb->host, rs->host, size);
    memcpy(jb->port, rs->port, sizeof(jb->port));
    pthread_mutex_init(&jb->mutex, NULL);
    (void)dibsx_cond_init(&jb->answered);
    jb->refs = 2;
    number = thread_start(jb);
    if (number != 0) {
        jb->refs = 1;
        job_unref(jb);
        return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(number),
                             "no thread can be started to resolve a name (%s)",
                             dibsx_errno_name(number));
    }
    rs->job = jb;
    return DIBS_OK;
}

/* Whether the answer came in time. */
static bool job_wait(job *jb, dibsx_nsec deadline)
{
    bool done;

    pthread_mutex_lock(&jb->mutex);
    while (!jb->done && dibsx_now() < deadline)
        dibsx_cond_wait(&jb->answered, &jb->mutex, deadline);
    done = jb->done;
    pthread_mutex_unlock(&jb->mutex);
    return done;
}

/* Takes the answer of a job that is done. Returns its code. */
static int job_take(dibs__resolver *rs)
{
    job *jb = rs->job;
    int code = jb->code;

    if (code == 0) {
        memcpy(rs->good, jb->found, sizeof(rs->good));
        rs->good_count = jb->count;
    }
    rs->job = NULL;
    job_unref(jb);
    return code;
}

static const char *code_name(int code)
{
    switch (code) {
    case EAI_NONAME:
        return "EAI_NONAME";
    case EAI_AGAIN:
        return "EAI_AGAIN";
    case EAI_FAIL:
        return "EAI_FAIL";
    default:
        return "getaddrinfo";
    }
}

/* A resolver that takes too long may not use up the time in which the last good
 * addresses could be tried: with them, it gets half of what is left. */
static dibsx_nsec limit_wait(const dibs__resolver *rs, dibsx_nsec deadline)
{
    dibsx_nsec now = dibsx_now();

    return rs->good_count && deadline > now ? now + (deadline - now) / 2
                                            : deadline;
}

static dibs_status
ask_resolver(dibs__resolver *rs, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc;
    int code;

    if (rs->job && job_wait(rs->job, 0))
        (void)job_take(rs); /* It came too late and may be out of date. */
    rc = rs->job ? DIBS_OK : job_start(rs, err);
    if (rc != DIBS_OK)
        return rc;
    if (!job_wait(rs->job, limit_wait(rs, deadline)))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the name %.100s was not resolved in time", rs->host);
    code = job_take(rs);
    if (code != 0)
        return dibsx_fail_at(err, DIBS_UNAVAIL, code_name(code),
                             "the name %.100s cannot be resolved (%s)",
                             rs->host, gai_strerror(code));
    return DIBS_OK;
}

dibs_status dibs__resolve(dibs__resolver *rs, dibsx_nsec deadline,
                          dibs__address *out, size_t *count, dibs_error *err)
{
    dibs_status rc;

    if (ask_system(rs->host, rs->port, AI_NUMERICHOST, out, count) == 0)
        return DIBS_OK;
    rc = ask_resolver(rs, deadline, err);
    if (rs->good_count == 0)
        return rc;
    memcpy(out, rs->good, sizeof(rs->good));
    *count = rs->good_count;
    return DIBS_OK;
}
