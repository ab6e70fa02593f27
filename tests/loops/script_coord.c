/* script_coord.c - the part of the script that coordinates: each primitive once, on
 * names of this run, and what the peer sees of it. See script.h. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"
#include "script_part.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define EVENT   "event"
#define MESSAGE "message"
#define HEIR    "heir"

void name_thing(const script *sc, const char *noun, coord_name out)
{
    snprintf(out, sizeof(coord_name), "loops-%s%u", noun,
             sc->turn % COORD_NAMES);
}

/* Threads that no call wakes keep no lease: LOST is true then. */
void told_wait(script *sc, const char *step, dibs_status rc,
               const dibs_error *err)
{
    script_told(sc, step, rc, rc == DIBS_LOST ? DIBS_LOST : DIBS_TIMEOUT, err);
}

/* ---- the election */

/* While it leads, the peer sees no other leader. */
static void is_leader(script *sc, const dibs_election *el, const char *called)
{
    uint64_t term = dibs_election_term(el);
    dibs_leader leader;
    dibs_error err = {0};
    dibs_status rc;

    faults_take_part(false);
    rc = dibs_leader_get(sc->peer, called, &leader, &err);
    if (term && leader.term != term && dibs_election_term(el) == term)
        script_breach_of(sc, rc,
                         "%s: leads with term %" PRIu64
                         ", and the peer sees %" PRIu64,
                         called, term, leader.term);
    faults_take_part(true);
}

static void lead(script *sc, dibs_client *cl)
{
    dibs_election *el = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "lead", called);
    rc = dibs_election_new(cl, called, DIBS_ELECTION_OPTS(.ttl_ms = TTL_MS),
                           &el, &err);
    if (script_told(sc, "election new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    rc = dibs_election_wait(el, BRIEF_MS, &err);
    told_wait(sc, "lead", rc, &err);
    if (rc == DIBS_OK)
        is_leader(sc, el, called);
    rc = dibs_election_resign(el, &err);
    script_told(sc, "resign", rc, DIBS_OK, &err);
    if (dibs_election_check(el) == DIBS_OK)
        script_breach(sc, "%s: resigned, and still leads", called);
    dibs_election_free(el);
}

/* The peer's candidate for a name; NULL: there is none. */
static dibs_election *
peer_candidate(script *sc, const char *called, const char *member)
{
    dibs_election *el = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_election_new(sc->peer, called,
                                       DIBS_ELECTION_OPTS(.ttl_ms = LONG_MS,
                                                          .member = member),
                                       &el, &err);

    if (rc == DIBS_OK)
        rc = dibs_election_campaign(el, &err);
    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: the peer cannot campaign: %s", called,
                         err.message);
    return el;
}

static dibs_status peer_leads(script *sc, dibs_election *el, const char *called)
{
    dibs_error err = {0};
    dibs_status rc = dibs_election_wait(el, LONG_MS, &err);

    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: the peer does not lead: %s", called,
                         err.message);
    return rc;
}

/* The store can grant nothing to an heir that does not wait yet. */
static void await_heir(script *sc, const dibs_election *el, const char *called)
{
    dibs_leader leader = {.term = 0};

    while (dibs_election_check(el) == DIBS_OK && leader.candidates == 0) {
        if (dibs_leader_get(sc->peer, called, &leader, NULL) != DIBS_OK)
            break;
        poll(NULL, 0, 1);
    }
}

/* Two never lead, and what was handed on has arrived. */
static void
is_handed_on(script *sc, const dibs_election *el, dibs_election *heir,
             const char *called, uint64_t term, dibs_status rc)
{
    faults_take_part(false);
    if (dibs_election_check(el) == DIBS_OK &&
        dibs_election_check(heir) == DIBS_OK &&
        dibs_election_check(el) == DIBS_OK)
        script_breach(sc, "%s: two lead", called);
    if (rc == DIBS_OK && peer_leads(sc, heir, called) == DIBS_OK &&
        dibs_election_term(heir) <= term && dibs_election_term(heir) != 0)
        script_breach(sc, "%s: term %" PRIu64 " came after %" PRIu64, called,
                      dibs_election_term(heir), term);
    faults_take_part(true);
}

static void transfer_to_peer(script *sc, dibs_election *el, const char *called)
{
    uint64_t term = dibs_election_term(el);
    dibs_error err = {0};
    dibs_election *heir;
    dibs_status rc;
    bool refused;

    faults_take_part(false);
    heir = peer_candidate(sc, called, HEIR);
    if (heir)
        await_heir(sc, el, called);
    faults_take_part(true);
    if (!heir)
        return;
    rc = dibs_election_transfer(el, HEIR, &err);
    refused = rc == DIBS_LOST || rc == DIBS_NOTFOUND || rc == DIBS_TIMEOUT;
    script_told(sc, "transfer", rc, refused ? rc : DIBS_OK, &err);
    is_handed_on(sc, el, heir, called, term, rc);
    faults_take_part(false);
    dibs_election_free(heir);
    faults_take_part(true);
}

static void hand_on(script *sc, dibs_client *cl)
{
    dibs_election *el = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "hand", called);
    rc = dibs_election_new(cl, called, DIBS_ELECTION_OPTS(.ttl_ms = TTL_MS),
                           &el, &err);
    if (script_told(sc, "election new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    rc = dibs_election_wait(el, BRIEF_MS, &err);
    told_wait(sc, "lead", rc, &err);
    if (rc == DIBS_OK)
        transfer_to_peer(sc, el, called);
    dibs_election_free(el);
}

/* The next change is that the peer leads with this term; 0: that it leads no more. */
static void
expect_leader(script *sc, dibs_leader_watch *watch, const dibs_election *el,
              const char *called, uint64_t term)
{
    dibs_leader leader;
    dibs_error err = {0};
    dibs_status rc = dibs_leader_watch_next(watch, BRIEF_MS, &leader, &err);

    told_wait(sc, "leader watch", rc, &err);
    if (rc == DIBS_OK && leader.term != term && dibs_election_term(el) == term)
        script_breach(sc,
                      "%s: reported term %" PRIu64
                      ", and the peer has %" PRIu64,
                      called, leader.term, term);
}

static void
watch_peer(script *sc, dibs_client *cl, dibs_election *el, const char *called)
{
    dibs_leader_watch *watch = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_leader_watch_new(cl, called, &watch, &err);
    if (script_told(sc, "leader watch new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    expect_leader(sc, watch, el, called, dibs_election_term(el));
    faults_take_part(false);
    rc = dibs_election_resign(el, &err);
    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: the peer cannot resign: %s", called,
                         err.message);
    faults_take_part(true);
    expect_leader(sc, watch, el, called, 0);
    dibs_leader_watch_free(watch);
}

static void watch_leader(script *sc, dibs_client *cl)
{
    dibs_election *el;
    dibs_status rc;
    coord_name called;

    name_thing(sc, "watched", called);
    faults_take_part(false);
    el = peer_candidate(sc, called, "leader");
    rc = el ? peer_leads(sc, el, called) : DIBS_NOMEM;
    faults_take_part(true);
    if (rc == DIBS_OK)
        watch_peer(sc, cl, el, called);
    faults_take_part(false);
    dibs_election_free(el);
    faults_take_part(true);
}

/* ---- the group */

typedef struct search {
    uint64_t fence;
    bool found;
} search;

static bool find_seat(const dibs_member_info *info, void *arg)
{
    search *sr = arg;

    sr->found = sr->found || info->fence == sr->fence;
    return !sr->found;
}

/* While it has its seat, the peer sees it. */
static void is_member(script *sc, const dibs_member *member, const char *called)
{
    search sr = {.fence = dibs_member_fence(member)};
    dibs_error err = {0};
    dibs_status rc;

    faults_take_part(false);
    rc = dibs_members_list(sc->peer, called, find_seat, &sr, &err);
    if (!sr.found && dibs_member_check(member) == DIBS_OK &&
        dibs_member_fence(member) == sr.fence)
        script_breach_of(sc, rc, "%s: has a seat that the peer does not see",
                         called);
    faults_take_part(true);
}

static void join_group(script *sc, dibs_client *cl)
{
    dibs_member *member = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "group", called);
    rc = dibs_member_join(cl, called, DIBS_MEMBER_OPTS(.ttl_ms = TTL_MS),
                          &member, &err);
    if (script_told(sc, "join", rc, DIBS_OK, &err) == DIBS_OK)
        is_member(sc, member, called);
    else if (member)
        script_breach(sc, "%s: failed, and there is a member", called);
    dibs_member_leave(member);
}

/* ---- the latch */

/* A count that was told as `rc`: done, not done, or either. */
static void is_counted(script *sc, const char *called, dibs_status rc)
{
    dibs_latch_state at = {0};
    dibs_error err = {0};
    dibs_status seen;
    bool open;

    faults_take_part(false);
    seen = dibs_latch_show(sc->peer, called, &at, &err);
    open = seen == DIBS_OK && at.left == 0;
    if ((rc == DIBS_OK && !open) || (rc == DIBS_UNAVAIL && open))
        script_breach_of(sc, seen, "%s: counted: %s, and the peer sees %s (%s)",
                         called, dibs_status_name(rc),
                         open ? "it open" : "it closed",
                         dibs_status_name(seen));
    faults_take_part(true);
}

static void open_latch(script *sc, dibs_client *cl)
{
    dibs_error err = {0};
    dibs_status counted, rc;
    coord_name called;

    name_thing(sc, "latch", called);
    counted = dibs_latch_count_down(cl, called, 1, "id", NULL, &err);
    script_told(sc, "count down", counted, DIBS_OK, &err);
    is_counted(sc, called, counted);
    rc = dibs_latch_wait(cl, called, 1, BRIEF_MS, &err);
    script_told(sc, "latch", rc, counted == DIBS_OK ? DIBS_OK : DIBS_TIMEOUT,
                &err);
    /* For the run that has this called next. */
    faults_take_part(false);
    rc = dibs_latch_reset(sc->peer, called, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        script_breach_of(sc, rc, "%s: the peer cannot reset it: %s", called,
                         err.message);
    faults_take_part(true);
}

/* ---- the limit and the breaker */

static void take_token(script *sc, dibs_client *cl)
{
    dibs_limit *limit = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "limit", called);
    rc = dibs_limit_new(cl, called, DIBS_LIMIT_OPTS(.count = 1000), &limit,
                        &err);
    if (script_told(sc, "limit new", rc, DIBS_OK, &err) == DIBS_OK)
        script_told(sc, "take", dibs_limit_take(limit, 1, &err), DIBS_OK, &err);
    dibs_limit_free(limit);
}

/* A breaker that cannot ask the store goes on alone. */
static void break_circuit(script *sc, dibs_client *cl)
{
    dibs_breaker *br = NULL;
    dibs_breaker_info info;
    dibs_error err = {0};
    dibs_pass pass;
    dibs_status rc;
    coord_name called;

    name_thing(sc, "breaker", called);
    rc = dibs_breaker_new(cl, called, DIBS_BREAKER_OPTS(.threshold = 2), &br,
                          &err);
    if (script_told(sc, "breaker new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    if (dibs_breaker_enter(br, &pass, NULL) == DIBS_OK)
        dibs_breaker_leave(br, &pass, false);
    rc = dibs_breaker_get(br, &info, &err);
    script_told(sc, "breaker get", rc, DIBS_OK, &err);
    dibs_breaker_free(br);
}

/* ---- the health check */

static void take_worst(const dibs_health_part *part, void *arg)
{
    dibs_part_result *worst = arg;

    if (part->result > *worst)
        *worst = part->result;
}

/* What fails on this side is no fault of the store: a check never calls it unfit. */
static void check_health(script *sc, dibs_client *cl)
{
    dibs_part_result worst = DIBS_PART_OK;
    dibs_health level = DIBS_HEALTHY;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "health", called);
    rc = dibs_health_check(cl,
                           DIBS_HEALTH_OPTS(.election = called, .group = called,
                                            .each = take_worst, .arg = &worst),
                           &level, &err);
    script_told(sc, "health", rc, DIBS_OK, &err);
    if ((rc != DIBS_OK) != (level == DIBS_UNHEALTHY))
        script_breach(sc, "%s: %s, and the level is %d", called,
                      dibs_status_name(rc), (int)level);
    if (rc == DIBS_OK && worst != DIBS_PART_MISSING)
        script_breach(sc, "%s: nobody leads, and the worst part is %d", called,
                      (int)worst);
}

/* ---- the watch */

/* What it reports is there, or was. */
static void watch_value(script *sc, dibs_client *cl)
{
    dibs_watch *watch = NULL;
    dibs_change change = {0};
    dibs_value now = {0};
    dibs_error err = {0};
    dibs_status rc = dibs_state_watch(cl, SCRIPT_VALUE, &watch, &err);

    if (script_told(sc, "watch new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    rc = dibs_watch_next(watch, BRIEF_MS, &change, &err);
    told_wait(sc, "watch", rc, &err);
    faults_take_part(false);
    if (rc == DIBS_OK &&
        dibs_state_get(sc->peer, SCRIPT_VALUE, &now, &err) == DIBS_OK &&
        (change.value.version < sc->version ||
         change.value.version > now.version))
        script_breach(sc,
                      "watch: the version %" PRIu64 ", not %" PRIu64
                      " to %" PRIu64,
                      change.value.version, sc->version, now.version);
    faults_take_part(true);
    dibs_value_free(&now);
    dibs_value_free(&change.value);
    dibs_watch_free(watch);
}

/* ---- events and messages */

static void expect_event(script *sc, dibs_reader *reader, const char *called)
{
    dibs_error err = {0};
    dibs_event event;
    dibs_status rc = dibs_reader_next(reader, BRIEF_MS, &event, &err);

    told_wait(sc, "read", rc, &err);
    if (rc == DIBS_OK && event.kind == DIBS_EVENT &&
        (event.len != strlen(EVENT) ||
         memcmp(event.data, EVENT, event.len) != 0))
        script_breach(sc, "%s: the event is not what was appended", called);
}

static void read_events(script *sc, dibs_client *cl, const char *group)
{
    dibs_reader *reader = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "topic", called);
    rc = dibs_reader_new(cl, called,
                         DIBS_READER_OPTS(.start = DIBS_FROM_START,
                                          .group = group, .ttl_ms = TTL_MS),
                         &reader, &err);
    if (script_told(sc, "reader new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    expect_event(sc, reader, called);
    if (group) {
        rc = dibs_reader_commit(reader, &err);
        script_told(sc, "reader commit", rc, DIBS_LOST, &err);
    }
    dibs_reader_free(reader);
}

static void pass_event(const dibs_event *event, void *arg)
{
    (void)event;
    (void)arg;
}

static void follow_events(script *sc, dibs_client *cl)
{
    dibs_subscription *sub = NULL;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "topic", called);
    rc = dibs_events_append(cl, called, EVENT, strlen(EVENT), NULL, NULL, &err);
    script_told(sc, "append", rc, DIBS_OK, &err);
    read_events(sc, cl, NULL);
    read_events(sc, cl, "group");
    rc = dibs_subscribe(cl, called, NULL, pass_event, NULL, &sub, &err);
    script_told(sc, "subscribe", rc, DIBS_OK, &err);
    if (rc != DIBS_OK && sub)
        script_breach(sc, "%s: failed, and there is a subscription", called);
    dibs_unsubscribe(sub);
}

/* What is trimmed is gone for the peer, and no more. */
static void expect_trimmed(script *sc, const char *called, uint64_t last,
                           dibs_status rc, uint64_t gone)
{
    dibs_topic_state state = {0};
    dibs_error err = {0};
    dibs_status seen;

    faults_take_part(false);
    seen = dibs_events_show(sc->peer, called, &state, &err);
    if (seen != DIBS_OK)
        script_breach_of(sc, seen, "%s: the peer cannot look: %s", called,
                         err.message);
    else if (state.last != last || (rc == DIBS_OK && state.first != last) ||
             (rc == DIBS_OK && gone == 0))
        script_breach(sc,
                      "%s: trim: %s, %" PRIu64
                      " gone, and the peer sees %" PRIu64 " to %" PRIu64
                      ", not up to %" PRIu64,
                      called, dibs_status_name(rc), gone, state.first,
                      state.last, last);
    faults_take_part(true);
}

/* Two events of the peer, of which the first one goes. */
static void trim_events(script *sc, dibs_client *cl)
{
    uint64_t first = 0, last = 0, gone = 0;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "trimmed", called);
    faults_take_part(false);
    rc = dibs_events_append(sc->peer, called, EVENT, strlen(EVENT), NULL,
                            &first, &err);
    if (rc == DIBS_OK)
        rc = dibs_events_append(sc->peer, called, EVENT, strlen(EVENT), NULL,
                                &last, &err);
    faults_take_part(true);
    if (rc != DIBS_OK) {
        script_breach_of(sc, rc, "%s: the peer cannot append: %s", called,
                         err.message);
        return;
    }
    rc = dibs_events_trim(cl, called, first, &gone, &err);
    script_told(sc, "trim", rc, DIBS_OK, &err);
    expect_trimmed(sc, called, last, rc, gone);
    faults_take_part(false);
    rc = dibs_events_trim(sc->peer, called, last, NULL, &err);
    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: the peer cannot trim: %s", called,
                         err.message);
    faults_take_part(true);
}

static void hear_message(script *sc, dibs_client *cl)
{
    dibs_listener *listener = NULL;
    dibs_message message;
    dibs_error err = {0};
    dibs_status rc;
    coord_name called;

    name_thing(sc, "news", called);
    rc = dibs_listener_new(cl, called, &listener, &err);
    if (script_told(sc, "listener new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    rc = dibs_message_send(cl, called, MESSAGE, strlen(MESSAGE), &err);
    script_told(sc, "send", rc, DIBS_OK, &err);
    rc = dibs_listener_next(listener, BRIEF_MS, &message, &err);
    told_wait(sc, "listen", rc, &err);
    if (rc == DIBS_OK && !message.missed &&
        (message.len != strlen(MESSAGE) ||
         memcmp(message.data, MESSAGE, message.len) != 0))
        script_breach(sc, "%s: the message is not what was sent", called);
    dibs_listener_free(listener);
}

static primitive *const primitives[] = {
    watch_value,  lead,        hand_on,       watch_leader,  join_group,
    open_latch,   take_token,  break_circuit, follow_events, trim_events,
    hear_message, use_queue,   push_batch,    nack_item,     bury_item,
    detach_item,  check_health};

enum { PRIMITIVES = sizeof(primitives) / sizeof(primitives[0]) };

void script_coord(script *sc, dibs_client *cl)
{
    for (unsigned i = 0; i < PRIMITIVES; i++)
        if (sc->only == 0 || sc->only % PRIMITIVES == i)
            primitives[i](sc, cl);
}
