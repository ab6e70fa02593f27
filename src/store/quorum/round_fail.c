/* round_fail.c - why a round failed, counted by reason: "3 of 5 servers did not agree:
 * 2 refused the connection (r1:6379, r2:6379), 1 timed out (r3:6379)".
 *
 * Names of servers are left out if they do not fit: a name that is cut is another
 * name. Runs on the thread that asked. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/fail.h"
#include "store/quorum/round.h"
#include <stdio.h>
#include <string.h>

enum { REASON_MAX = 64, TEXT_MAX = 2048 };

/* In place of reasons that do not fit. */
#define MORE ", and others"

/* The nodes that gave one reason. */
typedef struct reason {
    char text[REASON_MAX];
    size_t count;
    uint32_t nodes;
} reason;

typedef struct tally {
    reason reasons[DIBS__NODES_MAX];
    size_t count;
    size_t nodes; /* of all reasons */
} tally;

/* Codes of the system, as people say it. */
static const char *say_code(const char *code)
{
    static const struct {
        const char *code;
        const char *text;
    } known[] = {
        {"ECONNREFUSED", "refused the connection"},
        {"ECONNRESET", "closed the connection"},
        {"EOF", "closed the connection"},
        {"EPIPE", "closed the connection"},
        {"ETIMEDOUT", "timed out"},
        {"EHOSTUNREACH", "out of reach"},
        {"ENETUNREACH", "out of reach"},
        {"NOAUTH", "without the password that it wants"},
        {"NOPASSWORD", "without a password, and one was given"},
        {"WRONGPASS", "refused the password"},
        {"LOADING", "still loading"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].code, code) == 0)
            return known[i].text;
    return code;
}

static const char *say_status(dibs_status rc)
{
    switch (rc) {
    case DIBS_OK:
        return "agreed";
    case DIBS_BUSY:
        return "held by others";
    case DIBS_LOST:
        return "not held";
    case DIBS_UNAVAIL:
        return "away";
    case DIBS_UNKNOWN:
        return "timed out";
    default:
        return dibs_status_name(rc);
    }
}

/* Why the vote is no yes; NULL when it is one, or was not awaited any more. */
static const char *find_reason(const dibs__round *rd, size_t node)
{
    const dibs__vote *vote = &rd->ballot.votes[node];
    const dibs_error *why = &rd->slots[node].err;
    bool answered = vote->rc == DIBS_OK || vote->rc == DIBS_BUSY;

    if (!vote->in)
        return NULL;
    if (answered && rd->judged && !vote->counts)
        return "not counted (clock, or twice)";
    if (vote->rc == DIBS_OK)
        return NULL;
    if (answered || vote->rc == DIBS_LOST || vote->rc == DIBS_UNKNOWN)
        return say_status(vote->rc);
    if (why->origin[0])
        return say_code(why->origin);
    return why->message[0] ? why->message : say_status(vote->rc);
}

static void add_reason(tally *ty, const char *text, size_t node)
{
    reason *rs = ty->reasons;

    while (rs < ty->reasons + ty->count &&
           strncmp(rs->text, text, REASON_MAX - 1) != 0)
        rs++;
    if (rs == ty->reasons + ty->count)
        snprintf(ty->reasons[ty->count++].text, REASON_MAX, "%s", text);
    rs->count++;
    ty->nodes++;
    rs->nodes |= 1U << node;
}

static void count_reasons(const dibs__round *rd, tally *ty)
{
    for (size_t i = 0; i < rd->ballot.count; i++) {
        const char *text = find_reason(rd, i);

        if (text)
            add_reason(ty, text, i);
    }
}

static void write_names(const dibs__round *rd, uint32_t nodes, dibsx_buf *out)
{
    const char *between = " (";

    for (size_t i = 0; i < rd->ballot.count; i++) {
        if ((nodes & (1U << i)) == 0)
            continue;
        dibsx_buf_printf(out, "%s%s", between, rd->qm->nodes[i].endpoint);
        between = ", ";
    }
    dibsx_buf_putc(out, ')');
}

/* The whole text, or with `names` off at least whole reasons. False: it was too
 * long. */
static bool write_text(const dibs__round *rd, const tally *ty, const char *what,
                       bool names, dibsx_buf *out)
{
    bool whole = true;

    dibsx_buf_printf(out, "%s: %zu of %zu servers did not agree", what,
                     ty->nodes, rd->ballot.count);
    for (size_t i = 0; i < ty->count && whole; i++) {
        const reason *rs = &ty->reasons[i];
        size_t before = out->len;

        dibsx_buf_printf(out, "%s%zu %s", i > 0 ? ", " : ": ", rs->count,
                         rs->text);
        if (names)
            write_names(rd, rs->nodes, out);
        whole = out->len + strlen(MORE) < sizeof(((dibs_error *)0)->message);
        if (!whole) {
            out->len = before;
            dibsx_buf_puts(out, MORE);
        }
    }
    return whole;
}

dibs_status dibs__round_fail(const dibs__round *rd, dibs_status rc,
                             const char *what, dibs_error *err)
{
    tally ty = {.count = 0};
    dibsx_buf buf;

    count_reasons(rd, &ty);
    dibsx_buf_init(&buf, TEXT_MAX);
    if (!write_text(rd, &ty, what, true, &buf)) {
        dibsx_buf_reset(&buf);
        (void)write_text(rd, &ty, what, false, &buf);
    }
    rc = dibsx_fail_at(err, rc, "QUORUM", "%s", dibsx_buf_text(&buf));
    dibsx_buf_fini(&buf);
    return rc;
}
