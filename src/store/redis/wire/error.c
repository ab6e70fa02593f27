/* error.c - what an error reply of the server means for the caller. Pure.
 *
 * One table decides. The promise to keep: DIBS_UNAVAIL only when nothing can
 * have changed. A server refuses a command before it starts, and a script at its
 * first write; what is refused later is not known to the table and is therefore
 * DIBS_UNKNOWN. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/error.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

typedef struct meaning {
    const char *code;
    dibs_status status;
    const char *text; /* what it is and what to do about it */
} meaning;

static const meaning meanings[] = {
    {"OOM", DIBS_UNAVAIL,
     "the server has no memory left; raise maxmemory or free some"},
    {"READONLY", DIBS_UNAVAIL,
     "the server is a read-only replica; connect to its primary"},
    {"LOADING", DIBS_UNAVAIL, "the server is still loading its data"},
    {"BUSY", DIBS_UNAVAIL,
     "the server is busy with a script; see `SCRIPT KILL` and busy-reply-"
     "threshold"},
    {"UNKILLABLE", DIBS_UNAVAIL,
     "the server is busy with a script that cannot be killed"},
    {"NOREPLICAS", DIBS_UNAVAIL,
     "too few replicas are connected; see min-replicas-to-write"},
    {"MISCONF", DIBS_UNAVAIL,
     "the server cannot write to its disk; see its log and free space"},
    {"MASTERDOWN", DIBS_UNAVAIL,
     "the server is a replica whose primary is down"},
    {"CLUSTERDOWN", DIBS_UNAVAIL, "the cluster is down; see `CLUSTER INFO`"},
    {"TRYAGAIN", DIBS_UNAVAIL, "the cluster is moving the keys of the name"},
    {"NOSCRIPT", DIBS_UNAVAIL, "the server has lost a script; try again"},
    {"max number of clients", DIBS_UNAVAIL,
     "the server has as many clients as it allows; raise maxclients"},
    {"NOAUTH", DIBS_DENIED,
     "the server wants a password; put it into the URL or a file"},
    {"WRONGPASS", DIBS_DENIED, "the user or the password is wrong"},
    {"NOPERM", DIBS_DENIED,
     "the user lacks a permission; docs/redis-acl.md lists those that are "
     "needed"},
    {"ACL failure", DIBS_DENIED,
     "the user lacks a permission; docs/redis-acl.md lists those that are "
     "needed"},
    {"user executing the script", DIBS_DENIED,
     "the user lacks a permission; docs/redis-acl.md lists those that are "
     "needed"},
    {"DENIED", DIBS_DENIED,
     "the server is in protected mode; set a password or bind it elsewhere"},
    {"WRONGTYPE", DIBS_INTERNAL,
     "a key of the name holds something else; use another name or prefix"},
    {"FOREIGN", DIBS_INTERNAL,
     "the key of the name holds something else; use another name or prefix"},
    {"USEDUP", DIBS_INTERNAL,
     "the fences of this database are used up; see the key dibs:fence"},
    {"equal or smaller", DIBS_INTERNAL,
     "the log is ahead of the key dibs:fence, which was set back"},
    {"MOVED", DIBS_UNSUPPORTED,
     "the server is part of a cluster; write redis-cluster: instead of redis:"},
    {"ASK", DIBS_UNSUPPORTED,
     "the server is part of a cluster; write redis-cluster: instead of redis:"},
    {"CROSSSLOT", DIBS_UNSUPPORTED,
     "the server is part of a cluster; write redis-cluster: instead of redis:"},
    {"unknown command", DIBS_UNSUPPORTED,
     "the server lacks a command; Redis 5 or later is needed, with EVALSHA; "
     "for a sentinel write redis-sentinel:"},
};

/* Whether the code is what the reply begins with. Servers before version 7 put
 * what a script met into the middle, after a "-", and some errors have no code
 * but their words. */
static bool is_about(const char *reply, const meaning *m)
{
    size_t len = strlen(m->code);
    char inner[32];

    if (strncmp(reply, m->code, len) == 0 && reply[len] == ' ')
        return true;
    if (strchr(m->code, ' '))
        return strstr(reply, m->code) != NULL;
    snprintf(inner, sizeof(inner), "-%s ", m->code);
    return strncmp(reply, "ERR ", 4) == 0 && strstr(reply, inner) != NULL;
}

/* A mistake in the data of a name is worth a report: with the script, and the line in it
 * at which the server met it, if it says so. */
static dibs_status
fail_with_place(const meaning *m, const char *reply, dibs_error *err)
{
    const char *place = strstr(reply, "script: ");

    return dibsx_fail_at(err, m->status, m->code, "%s%s%s%s", m->text,
                         place ? " (" : "", place ? place : "",
                         place ? ")" : "");
}

dibs_status dibs__redis_fail(const char *reply, dibs_error *err)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        const meaning *m = &meanings[i];

        if (is_about(reply, m) && strcmp(m->code, "WRONGTYPE") == 0)
            return fail_with_place(m, reply, err);
        if (is_about(reply, m))
            return dibsx_fail_at(err, m->status,
                                 strchr(m->code, ' ') ? "ERR" : m->code, "%s",
                                 m->text);
    }
    return dibsx_fail_at(err, DIBS_UNKNOWN, "ERR", "the server answered: %s",
                         reply);
}

bool dibs__redis_no_script(const char *reply)
{
    return strncmp(reply, "NOSCRIPT", 8) == 0;
}

bool dibs__redis_is_readonly(const char *reply)
{
    return strncmp(reply, "READONLY ", 9) == 0 ||
           (strncmp(reply, "ERR ", 4) == 0 && strstr(reply, "-READONLY "));
}

bool dibs__redis_lacks_replicas(const char *reply)
{
    return strncmp(reply, "NOREPLICAS ", 11) == 0 ||
           (strncmp(reply, "ERR ", 4) == 0 && strstr(reply, "-NOREPLICAS "));
}
