/* route_elections.c - elections: who leads, who would, and an end of a term. A campaign
 * is a lease of a session. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/manage.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <string.h>

enum { ROW_MAX = 32 * 1024 };

/* Adds the election to the page. False: there is no room for more. */
static bool add_election(dibs__catalog_page *page, const dibs_lease_info *info,
                         int64_t since_ms)
{
    dibsx_buf text;
    dibsx_json js;
    bool added;

    dibsx_buf_init(&text, ROW_MAX);
    dibsx_json_init(&js, &text);
    dibs__noun_election(&js, info, since_ms, DIBS__SERVE_PARTIES_MAX);
    added =
        dibs__catalog_add(page, info->name,
                          dibs__noun_leader(info) ? "led" : "vacant", &text);
    dibsx_buf_fini(&text);
    return added;
}

/* From the look at locks: elections are among them. */
void dibs__serve_get_elections(dibs__http_exchange *ex)
{
    dibs__serve_picture *picture = dibs__serve_take_picture(ex);
    dibs__catalog_page *page;
    int64_t since_ms;

    if (!picture)
        return;
    page = dibsx_zalloc(sizeof(*page));
    if (!page) {
        dibs__serve_picture_drop(picture);
        dibs__http_refuse(ex, 503, "There is no memory for the list");
        return;
    }
    atomic_init(&page->users, 1);
    page->seen_at = picture->seen_at;
    page->complete = picture->complete;
    since_ms = (dibsx_now() - picture->seen_at) / DIBSX_MS;
    for (size_t i = 0; i < picture->count; i++)
        if (dibs__noun_is_election(picture->rows[i]) &&
            !add_election(page, picture->rows[i], since_ms))
            break;
    dibs__serve_answer_page(ex, page, "led vacant");
    dibs__catalog_drop(page);
    dibs__serve_picture_drop(picture);
}

void dibs__serve_get_election(dibs__http_exchange *ex)
{
    dibs__serve_show_lease(ex, dibs__noun_election);
}

/* The lease by which a session leads; NULL: it does not. Locks: the table's mutex. */
static dibs__serve_lease *
find_lead(const dibs__serve_session *se, const char *name)
{
    for (dibs__session_lease *at = se->machine.leases.first; at && !at->over;
         at = at->next) {
        dibs__serve_lease *le = (dibs__serve_lease *)at;

        if (at->stage == DIBS__STAGE_HELD && strcmp(le->name, name) == 0)
            return le;
    }
    return NULL;
}

/* A session of the caller's own gives its lead back; of the term that it says, or any. */
static void
resign_own(dibs__http_exchange *ex, const dibsx_json_node *body,
           const char *session, const char *name, const char *reason)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__serve_sessions *table = &sv->sessions;
    dibs__serve_session *se;
    dibs__serve_lease *le = NULL;
    bool lost = false, done = false;
    int64_t meant = 0;
    uint64_t term = 0;

    if (!dibs__serve_ask_int(ex, body, "term", 0, DIBS__SERVE_FENCE_MAX,
                             &meant))
        return;
    pthread_mutex_lock(&table->mutex);
    se = dibs__session_get(table, session, dibs__serve_caller_of(ex)->name);
    le = se ? find_lead(se, name) : NULL;
    if (le && meant > 0 && le->machine.fence != (uint64_t)meant)
        le = NULL;
    if (le) {
        term = le->machine.fence;
        done = dibs__session_lease_remove(se, le->machine.id, &lost);
    }
    pthread_mutex_unlock(&table->mutex);
    if (!se) {
        (void)dibs__serve_refuse(ex, 404, "session-unknown",
                                 "there is no such session of this token here");
    } else if (!le || !done) {
        (void)dibs__serve_refuse(ex, 409, "stale",
                                 "the session does not lead %s, or not in "
                                 "this term; nothing changed",
                                 name);
    } else {
        dibs__serve_audit_note(ex, "resign", name, term, reason, DIBS_OK);
        dibsx_json_pair_uint(dibs__http_answer(ex, 200), "resigned", term);
        table->wake(table->wake_arg);
    }
}

/* Another's term ends as a lock is broken: by the term that was shown. */
static void resign_other(dibs__http_exchange *ex, const dibsx_json_node *body,
                         const char *name, const char *reason)
{
    dibs_error err = {0};
    int64_t term;

    if (dibs__serve_caller_of(ex)->role < DIBS__SERVE_ADMIN) {
        (void)dibs__serve_refuse(ex, 403, "role",
                                 "ending the term of another needs the role "
                                 "admin; give \"session\" to resign yourself");
        return;
    }
    if (!dibs__serve_read_fence(ex, body, "term", &term))
        return;
    if (dibs__serve_break_lease(ex, "resign", name, (uint64_t)term, reason,
                                NULL, &err) == DIBS_OK)
        dibsx_json_pair_uint(dibs__http_answer(ex, 200), "resigned",
                             (uint64_t)term);
    else
        (void)dibs__serve_fail(ex, &err);
}

void dibs__serve_post_resign(dibs__http_exchange *ex)
{
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    const char *session = NULL;
    const dibsx_json_node *body;

    if (!name || !dibs__serve_ask_body(ex, "term session reason", &body) ||
        !dibs__serve_ask_text(ex, body, "session", DIBS__SESSION_ID_SIZE,
                              &session) ||
        !dibs__serve_ask_text(ex, body, "reason", DIBS__SERVE_REASON_MAX,
                              &reason))
        return;
    if (session)
        resign_own(ex, body, session, name, reason);
    else
        resign_other(ex, body, name, reason);
}
