/* event_part.c - the processes of the event ground: publishers, consumers of a group, and
 * one that trims the topic. They are programs on the public calls. */
/* SPDX-License-Identifier: MIT */
#include "event_ground.h"
#include "event_witness.h"

#include <dibs/dibs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGAIN_MS = 10, AWAY_MS = 100, REST_MS = 20, TRIM_MS = 50 };
enum { TEXT_ROOM = 32, WAIT_MS = 500, TOGETHER = 8, WORK_US = 6000 };

typedef struct program {
    event_control *ct;
    witness_db *wn;
    dibs_client *cl;
    uint64_t random;
} program;

/* False when it was over before the store could be reached. */
static bool begin(program *pg, const char *folder, uint64_t who)
{
    dibs_error err = {0};

    *pg = (program){.random = who};
    pg->ct = map_file(folder, EVENT_CONTROL, sizeof(*pg->ct));
    pg->wn = event_witness_open(folder);
    while (!atomic_load(&pg->ct->over) &&
           dibs_open(pg->ct->url,
                     DIBS_CLIENT_OPTS(.timeout_ms = pg->ct->ttl_ms), &pg->cl,
                     &err) != DIBS_OK)
        poll(NULL, 0, AGAIN_MS);
    return pg->wn && pg->cl;
}

static void end(program *pg)
{
    dibs_close(pg->cl);
    witness_db_close(pg->wn);
}

/* ---- publishers */

static dibs_status publish(const program *pg, uint64_t seq, uint64_t *position)
{
    char text[TEXT_ROOM];
    int len = snprintf(text, sizeof(text), "%" PRIu64, seq);
    dibs_error err = {0};

    return dibs_events_append(pg->cl, EVENT_TOPIC, text, (size_t)len, NULL,
                              position, &err);
}

int event_publisher(const char *folder, uint64_t who)
{
    program pg;
    bool ready = begin(&pg, folder, who);

    while (ready && !atomic_load(&pg.ct->published)) {
        uint64_t seq = atomic_fetch_add(&pg.ct->next_seq, 1) + 1;
        uint64_t position = 0;
        dibs_status rc;

        event_witness_publish(pg.wn, seq, who);
        rc = publish(&pg, seq, &position);
        event_witness_published(pg.wn, seq,
                                rc == DIBS_OK        ? OUTCOME_OK
                                : rc == DIBS_UNKNOWN ? OUTCOME_UNSURE
                                                     : OUTCOME_NOT,
                                position);
        if (rc == DIBS_OK)
            atomic_store(&pg.ct->told, position);
        poll(NULL, 0, rc == DIBS_OK ? REST_MS : AWAY_MS);
    }
    end(&pg);
    return 0;
}

/* ---- trims */

/* A position that was the newest a while ago. Groups whose consumers died meanwhile have
 * not come to it. */
int event_trimmer(const char *folder)
{
    program pg;
    bool ready = begin(&pg, folder, 1);
    uint64_t through = 0;

    while (ready && !atomic_load(&pg.ct->published)) {
        dibs_error err = {0};

        if (through > 0) {
            event_witness_trim(pg.wn, through);
            (void)!dibs_events_trim(pg.cl, EVENT_TOPIC, through, NULL, &err);
        }
        through = atomic_load(&pg.ct->told);
        for (int i = 0; i < 10 && !atomic_load(&pg.ct->published); i++)
            poll(NULL, 0, TRIM_MS);
    }
    end(&pg);
    return 0;
}

/* ---- consumers */

typedef struct consumer {
    program pg;
    dibs_reader *reader;
    reading by;
    uint64_t handled[TOGETHER]; /* since the last commit that was accepted */
    size_t count;
} consumer;

static void begin_turn(consumer *cs)
{
    cs->by.turn++;
    cs->count = 0;
}

/* All that was handled counts for the group, or nothing of it. */
static void commit(consumer *cs)
{
    dibs_error err = {0};
    dibs_status rc = dibs_reader_commit(cs->reader, &err);

    if (rc == DIBS_OK)
        event_witness_accepted(cs->pg.wn, &cs->by, cs->handled, cs->count);
    cs->count = 0;
    if (rc == DIBS_LOST)
        begin_turn(cs);
}

/* Work takes a while: death may come in the middle, and then it had no effect. */
static void work(consumer *cs)
{
    uint64_t *random = &cs->pg.random;

    *random = *random * 6364136223846793005U + 1442695040888963407U;
    usleep((useconds_t)((*random >> 33) % WORK_US));
}

static void handle(consumer *cs, const dibs_event *event)
{
    uint64_t seq = 0;

    if (event->kind == DIBS_EVENT && event->len < TEXT_ROOM) {
        char text[TEXT_ROOM] = "";

        for (size_t i = 0; i < event->len; i++)
            text[i] = ((const char *)event->data)[i];
        seq = strtoull(text, NULL, 10);
    }
    work(cs);
    event_witness_got(cs->pg.wn, &cs->by, (uint64_t)event->kind, event->from,
                      event->kind == DIBS_EVENT ? event->position : event->to,
                      seq);
    if (event->kind == DIBS_EVENT)
        cs->handled[cs->count++] = event->position;
    if (cs->count == TOGETHER || (cs->pg.random >> 40) % 4 == 0)
        commit(cs);
}

int event_consumer(const char *folder, uint64_t group, uint64_t who)
{
    consumer cs = {.by = {.group = group, .who = who}};
    bool ready = begin(&cs.pg, folder, who);
    dibs_error err = {0};
    char name[16];

    snprintf(name, sizeof(name), "g%" PRIu64, group);
    if (ready && dibs_reader_new(cs.pg.cl, EVENT_TOPIC,
                                 DIBS_READER_OPTS(.start = DIBS_FROM_POSITION,
                                                  .group = name,
                                                  .ttl_ms = cs.pg.ct->ttl_ms),
                                 &cs.reader, &err) != DIBS_OK) {
        fprintf(stderr, "a reader: %s\n", err.message);
        return 2;
    }
    while (ready && !atomic_load(&cs.pg.ct->over)) {
        dibs_event event;
        dibs_status rc = dibs_reader_next(cs.reader, WAIT_MS, &event, &err);

        if (rc == DIBS_OK) {
            handle(&cs, &event);
        } else if (rc == DIBS_LOST) {
            begin_turn(&cs);
        } else if (rc != DIBS_TIMEOUT) {
            poll(NULL, 0, AGAIN_MS);
        }
    }
    dibs_reader_free(cs.reader);
    end(&cs.pg);
    return 0;
}
