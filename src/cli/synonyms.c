/* synonyms.c - words that people try, from flock, redis-cli, consul and others. Pure.
 *
 * A word that is merely misspelt is for suggest.c. These come first: "--store" is a
 * beginning of "--store-timeout", and means "--url". */
/* SPDX-License-Identifier: MIT */
#include "cli/synonyms.h"

#include "cli/options.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <string.h>

const dibs__synonym dibs__option_synonyms[] = {
    {"address", "url"},
    {"backend", "url"},
    {"capacity", "permits"},
    {"colors", "color"},
    {"concurrency", "permits"},
    {"connection", "url"},
    {"database", "url"},
    {"db", "url"},
    {"debug", "verbose"},
    {"dsn", "url"},
    {"endpoint", "url"},
    {"exec", "command"},
    {"expire", "expires"},
    {"expire", "ttl"},
    {"expiry", "expires"},
    {"expiry", "ttl"},
    {"fence", "if-fence"},
    {"file", "config"},
    {"format", "json"},
    {"grace", "kill-after"},
    {"host", "url"},
    {"hostname", "url"},
    {"lease", "ttl"},
    {"lease-time", "ttl"},
    {"max-time", "max-run"},
    {"max-wait", "wait"},
    {"metadata", "meta"},
    {"namespace", "prefix"},
    {"no-block", "nonblock"},
    {"no-wait", "nonblock"},
    {"node", "url"},
    {"nowait", "nonblock"},
    {"ns", "prefix"},
    {"output", "json"},
    {"port", "http-port"},
    {"port", "url"},
    {"postgres", "url"},
    {"read", "shared"},
    {"reader", "shared"},
    {"redis", "url"},
    {"redis-host", "url"},
    {"redis-url", "url"},
    {"semaphore", "permits"},
    {"server", "url"},
    {"servers", "url"},
    {"silent", "quiet"},
    {"sqlite", "url"},
    {"store", "url"},
    {"store-url", "url"},
    {"timeout", "store-timeout"},
    {"trace", "log-level"},
    {"try", "nonblock"},
    {"uri", "url"},
    {"write", "exclusive"},
    {"writer", "exclusive"},
};

const size_t dibs__option_synonym_count =
    sizeof(dibs__option_synonyms) / sizeof(dibs__option_synonyms[0]);

const dibs__synonym dibs__verb_synonyms[] = {
    {"audit", "trail"},
    {"campaign", "elect"},
    {"cas", "state cas"},
    {"circuit", "breaker run"},
    {"circuit-breaker", "breaker run"},
    {"del", "state del"},
    {"delete", "state del"},
    {"emit", "publish"},
    {"events append", "publish"},
    {"events follow", "subscribe"},
    {"events publish", "publish"},
    {"events subscribe", "subscribe"},
    {"exec", "run"},
    {"extend", "renew"},
    {"force-unlock", "break"},
    {"free", "release"},
    {"get", "state get"},
    {"health-check", "health"},
    {"healthcheck", "health"},
    {"healthz", "health"},
    {"history", "trail"},
    {"hold", "acquire"},
    {"holders", "ls"},
    {"info", "show"},
    {"init", "store init"},
    {"inspect", "show"},
    {"job abort", "job cancel"},
    {"job delete", "job rm"},
    {"job disable", "job pause"},
    {"job enable", "job unpause"},
    {"job history", "job runs"},
    {"job list", "job ls"},
    {"job remove", "job rm"},
    {"job signal", "job resume"},
    {"job stop", "job cancel"},
    {"job trigger", "job start"},
    {"keepalive", "renew"},
    {"kill", "break"},
    {"latch await", "latch wait"},
    {"latch close", "latch reset"},
    {"latch count", "latch count-down"},
    {"latch countdown", "latch count-down"},
    {"latch done", "latch count-down"},
    {"latch down", "latch count-down"},
    {"latch release", "latch count-down"},
    {"latch status", "latch show"},
    {"lead", "elect"},
    {"list", "ls"},
    {"lock", "acquire"},
    {"locks", "ls"},
    {"log", "trail"},
    {"man", "help"},
    {"metrics", "stats"},
    {"migrate", "store upgrade"},
    {"monitor", "watch"},
    {"pub", "publish"},
    {"queue add", "queue push"},
    {"queue consume", "queue run"},
    {"queue delete", "queue rm"},
    {"queue dequeue", "queue pop"},
    {"queue dlq", "queue dead"},
    {"queue done", "queue ack"},
    {"queue enqueue", "queue push"},
    {"queue info", "queue stats"},
    {"queue put", "queue push"},
    {"queue receive", "queue pop"},
    {"queue reject", "queue nack"},
    {"queue remove", "queue rm"},
    {"queue requeue", "queue redrive"},
    {"queue reserve", "queue pop"},
    {"queue show", "queue stats"},
    {"queue send", "queue push"},
    {"queue status", "queue stats"},
    {"queue take", "queue pop"},
    {"queue touch", "queue extend"},
    {"queue work", "queue run"},
    {"queue worker", "queue run"},
    {"rate-limit", "limit"},
    {"ratelimit", "limit"},
    {"rm", "state del"},
    {"set", "state set"},
    {"setup", "store init"},
    {"state create", "state set"},
    {"state delete", "state del"},
    {"state follow", "state watch"},
    {"state incr", "state add"},
    {"state increment", "state add"},
    {"state list", "state ls"},
    {"state put", "state set"},
    {"state read", "state get"},
    {"state remove", "state del"},
    {"state rm", "state del"},
    {"state show", "state get"},
    {"state subscribe", "state watch"},
    {"state write", "state set"},
    {"status", "show"},
    {"steal", "break"},
    {"store check", "store status"},
    {"store create", "store init"},
    {"store migrate", "store upgrade"},
    {"store setup", "store init"},
    {"store show", "store status"},
    {"sub", "subscribe"},
    {"throttle", "limit"},
    {"try", "acquire"},
    {"unlock", "release"},
    {"upgrade", "store upgrade"},
    {"who", "show"},
    {"with", "run"},
};

const size_t dibs__verb_synonym_count =
    sizeof(dibs__verb_synonyms) / sizeof(dibs__verb_synonyms[0]);

const char *dibs__option_meant(const char *verb, const char *tried, size_t len)
{
    for (size_t i = 0; i < dibs__option_synonym_count; i++) {
        const dibs__synonym *row = &dibs__option_synonyms[i];

        if (strlen(row->tried) == len && memcmp(row->tried, tried, len) == 0 &&
            dibs__option_find(verb, row->meant, strlen(row->meant)))
            return row->meant;
    }
    return NULL;
}

const char *dibs__synonym_word(const dibs__synonym *row, const char *group)
{
    const char *space = strchr(row->tried, ' ');
    size_t len = space ? (size_t)(space - row->tried) : 0;

    if (strlen(group) != len || memcmp(row->tried, group, len) != 0)
        return NULL;
    return space ? space + 1 : row->tried;
}

const char *dibs__verb_meant(const char *group, const char *tried)
{
    char whole[64];

    snprintf(whole, sizeof(whole), "%s%s%s", group, *group ? " " : "", tried);
    for (size_t i = 0; i < dibs__verb_synonym_count; i++) {
        if (strcmp(dibs__verb_synonyms[i].tried, whole) == 0)
            return dibs__verb_synonyms[i].meant;
    }
    return NULL;
}
