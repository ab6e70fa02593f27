/* roster_list.c - the rosters step: a scan finds names, scripts read their heads.
 *
 * A window is some names in order. Its scripts for one server are sent together, so
 * that a list of many names takes few round trips. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/roster_list.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"
#include "store/redis/script.h"
#include "store/redis/wire/roster_keys.h"
#include <stdio.h>
#include <string.h>

/* A script reads PAGE names at most, so that their keys are few words; in a cluster
 * one, as its keys are those of one slot. */
enum { WINDOW = 256, PAGE = 8, NUMBER_MAX = 24, BYTES_MAX = 4 << 20 };

/* The words for the kinds in keys and replies. */
static const char *const kinds[] = {[DIBS__ROSTER_GROUP] = "group",
                                    [DIBS__ROSTER_BARRIER] = "barrier",
                                    [DIBS__ROSTER_LATCH] = "latch"};

bool dibs__roster_head_read(const redisReply *reply, size_t at,
                            dibs__roster_head *out)
{
    int64_t numbers[3];
    char kind[16];

    dibs__reply_text(dibs__reply_item(reply, at), kind, sizeof(kind));
    for (size_t i = 0; i < 3; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, at + 1 + i),
                             &numbers[i]) ||
            numbers[i] < 0 || (i > 0 && numbers[i] > UINT32_MAX))
            return false;
    out->gen = (uint64_t)numbers[0];
    out->need = (uint32_t)numbers[1];
    out->here = (uint32_t)numbers[2];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i]) == 0) {
            out->kind = (dibs__roster_kind)i;
            return true;
        }
    return false;
}

/* A script of a window. */
typedef struct piece {
    const char *const *names;
    size_t count;
    int slot, server; /* both are 0 when there is no cluster */
    bool sent;
    redisReply *reply; /* NULL: none yet */
} piece;

typedef struct window {
    dibs__redis *rd;
    dibs__roster_kind kind;
    dibsx_nsec deadline;
    dibsx_buf bytes;
    size_t count;
    piece pieces[WINDOW];
} window;

/* The words of a script, and the texts that they borrow. */
typedef struct sheet {
    dibs__words words;
    char keys[PAGE][DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    char key_count[NUMBER_MAX];
} sheet;

static void write_script(const window *wn, const piece *pc, sheet *sh)
{
    snprintf(sh->key_count, sizeof(sh->key_count), "%zu",
             DIBS__ROSTER_KEYS * pc->count);
    dibs__script_begin(&sh->words, DIBS__SCRIPT_rosters, sh->key_count);
    for (size_t i = 0; i < pc->count; i++) {
        dibs__keys_of_roster(pc->names[i], sh->keys[i]);
        for (size_t k = 0; k < DIBS__ROSTER_KEYS; k++)
            dibs__words_puts(&sh->words, sh->keys[i][k]);
    }
    dibs__words_puts(&sh->words, kinds[wn->kind]);
}

static void find_server(const window *wn, piece *pc)
{
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    bool failing;

    if (!wn->rd->cluster)
        return;
    dibs__keys_of_roster(pc->names[0], keys);
    pc->slot = dibs__slot_of(keys[0], strlen(keys[0]));
    pc->server = dibs__cluster_standing(wn->rd->cluster, pc->slot, &failing);
}

static void cut_window(window *wn, const char *const *names, size_t count)
{
    size_t page = wn->rd->cluster ? 1 : PAGE;

    wn->count = 0;
    for (size_t i = 0, few; i < count; i += few) {
        piece *pc = &wn->pieces[wn->count++];

        few = count - i < page ? count - i : page;
        *pc = (piece){.names = names + i, .count = few};
        find_server(wn, pc);
    }
}

/* Encodes the scripts for the server of the first of these: their number. */
static dibs_status gather_server(window *wn, size_t first, piece **together,
                                 int *count, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    sheet sh;

    *count = 0;
    dibsx_buf_reset(&wn->bytes);
    for (size_t i = first; i < wn->count && rc == DIBS_OK; i++) {
        piece *pc = &wn->pieces[i];

        if (pc->sent || pc->server != wn->pieces[first].server)
            continue;
        write_script(wn, pc, &sh);
        rc = dibs__script_append(wn->rd->steps, &sh.words, &wn->bytes, err);
        pc->sent = true;
        together[(*count)++] = pc;
    }
    return rc;
}

/* In a cluster those without a reply are left if a server failed, as another may have
 * taken its place. */
static dibs_status send_together(window *wn, size_t first, dibs_error *err)
{
    piece *together[WINDOW];
    redisReply *replies[WINDOW];
    int count;
    dibs_status rc = gather_server(wn, first, together, &count, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__route_unit(wn->rd->steps, wn->pieces[first].slot, wn->bytes.data,
                          wn->bytes.len, count, wn->deadline, replies, err);
    for (int i = 0; i < count && rc == DIBS_OK; i++) {
        if (replies[i]->type == REDIS_REPLY_ERROR)
            dibs__reply_free(replies[i]);
        else
            together[i]->reply = replies[i];
    }
    return wn->rd->cluster && (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN)
               ? DIBS_OK
               : rc;
}

/* A server may have refused the script: it lacks its text, or the slot is elsewhere. */
static dibs_status send_alone(window *wn, piece *pc, dibs_error *err)
{
    sheet sh;

    write_script(wn, pc, &sh);
    return dibs__script_run(wn->rd->steps, DIBS__SCRIPT_rosters, &sh.words,
                            wn->deadline, &pc->reply, err);
}

static dibs_status read_window(window *wn, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < wn->count && rc == DIBS_OK; i++)
        if (!wn->pieces[i].sent)
            rc = send_together(wn, i, err);
    for (size_t i = 0; i < wn->count && rc == DIBS_OK; i++)
        if (!wn->pieces[i].reply)
            rc = send_alone(wn, &wn->pieces[i], err);
    return rc;
}

static void forget_replies(window *wn)
{
    for (size_t i = 0; i < wn->count; i++)
        dibs__reply_free(wn->pieces[i].reply);
    wn->count = 0;
}

/* False: the reply is odd. A row of another kind, or of none, has no generation. */
static bool read_row(const redisReply *reply, size_t at, dibs__roster_kind kind,
                     dibs__roster_row *row)
{
    const redisReply *word = dibs__reply_item(reply, at);
    int64_t live, counts;

    memset(row, 0, sizeof(*row));
    if (word && word->type == REDIS_REPLY_STRING && word->len == 0)
        return true;
    if (!dibs__roster_head_read(reply, at, &row->head) ||
        !dibs__reply_int(dibs__reply_item(reply, at + 4), &live) ||
        !dibs__reply_int(dibs__reply_item(reply, at + 5), &counts) ||
        live < 0 || live > UINT32_MAX || counts < 0 || counts > live)
        return false;
    row->live = (uint32_t)live;
    row->counts = (uint32_t)counts;
    if (row->head.kind != kind || (kind != DIBS__ROSTER_LATCH && live == 0))
        row->head.gen = 0;
    return true;
}

/* The rosters that a list has shown, and to whom. */
typedef struct showing {
    const dibs__roster_query *query;
    dibs__roster_fn *each;
    void *arg;
    size_t left; /* of those that may be shown */
} showing;

/* DIBS_NOTFOUND: the list ends here. */
static dibs_status show_piece(showing *sh, const piece *pc, dibs_error *err)
{
    enum { ROW = 6 };

    for (size_t i = 0; i < pc->count && sh->left > 0; i++) {
        dibs__roster_row row;

        if (!read_row(pc->reply, ROW * i, sh->query->kind, &row))
            return dibs__reply_odd(err);
        if (row.head.gen == 0)
            continue;
        snprintf(row.name, sizeof(row.name), "%s", pc->names[i]);
        sh->left--;
        if (!sh->each(&row, sh->arg))
            return DIBS_NOTFOUND;
    }
    return sh->left > 0 ? DIBS_OK : DIBS_NOTFOUND;
}

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    return !memchr(key, '\0', len) && dibs__key_roster_name(key, out) &&
           strncmp(out, begins, strlen(begins)) == 0;
}

/* Shows those of the kind among names that a scan has found. */
static dibs_status
show_names(dibs__redis *rd, const dibs__names *names, size_t from,
           int64_t each_ms, showing *sh, dibs_error *err)
{
    window wn = {.rd = rd, .kind = sh->query->kind};
    dibs_status rc = DIBS_OK;

    dibsx_buf_init(&wn.bytes, BYTES_MAX);
    for (size_t i = from, few; i < names->count && rc == DIBS_OK; i += few) {
        few = names->count - i < WINDOW ? names->count - i : WINDOW;
        wn.deadline = dibsx_after_ms(dibsx_now(), each_ms);
        cut_window(&wn, names->name + i, few);
        rc = read_window(&wn, err);
        for (size_t k = 0; k < wn.count && rc == DIBS_OK; k++)
            rc = show_piece(sh, &wn.pieces[k], err);
        forget_replies(&wn);
    }
    dibsx_buf_fini(&wn.bytes);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

dibs_status
dibs__redis_rosters(struct dibs__store *st, const dibs__roster_query *query,
                    dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
                    dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char texts[DIBS__ROSTER_KEY_BEGINS][DIBS__KEY_MAX];
    const char *const text[] = {texts[0], texts[1], texts[2]};
    showing sh = {query, each, arg, query->max};
    int64_t each_ms = dibsx_wait_ms(deadline, dibsx_now());
    dibs__names names;
    dibs_status rc;
    size_t i = 0;

    dibs__roster_keys_begin(query->begins, texts);
    rc = dibs__scan_paced(rd->steps, text, DIBS__ROSTER_KEY_BEGINS,
                          query->begins, name_of, deadline, &names, err);
    while (rc == DIBS_OK && i < names.count &&
           strcmp(names.name[i], query->after) <= 0)
        i++;
    if (rc == DIBS_OK)
        rc = show_names(rd, &names, i, each_ms, &sh, err);
    dibs__names_fini(&names);
    return rc;
}
