/* verb_ls.c - ls: what is locked, by whom, and how many wait. */
/* SPDX-License-Identifier: MIT */
#include "cli/list_verb.h"
#include "cli/verbs.h"

typedef struct visit {
    dibs__shape shape;
    void *out;
    bool stale; /* only those whose holder seems to be gone */
} visit;

static void cell_party(dibs__table *table, const dibs_party *party)
{
    dibsx_buf text;

    dibsx_buf_init(&text, 4096);
    dibs__party_text(&text, party);
    if (party->left)
        dibsx_buf_puts(&text, ", released");
    if (party->stale)
        dibsx_buf_printf(&text, ", stale: %s", party->stale);
    dibs__table_cell(table, dibsx_buf_text(&text));
    dibsx_buf_fini(&text);
}

static void
cell_mode(dibs__table *table, const dibs_party *party, uint32_t capacity)
{
    dibsx_buf text;

    dibsx_buf_init(&text, 64);
    dibs__mode_text(&text, party, capacity);
    dibs__table_cell(table, dibsx_buf_text(&text));
    dibsx_buf_fini(&text);
}

static void put_row(dibs__table *table, const dibs_lease_info *info,
                    const dibs_party *holder)
{
    dibs__table_cell(table, info->name);
    if (holder) {
        cell_mode(table, holder, info->capacity);
        cell_party(table, holder);
        dibs__table_span(table, holder->age_ms);
        dibs__table_span(table, holder->left_ms);
        dibs__table_cellf(table, "%llu", (unsigned long long)holder->fence);
    } else {
        for (int i = 0; i < 5; i++)
            dibs__table_cell(table, "");
    }
    dibs__table_cellf(table, "%zu", info->waiter_count);
}

static void rows(const visit *vt, const dibs_lease_info *info)
{
    for (size_t i = 0; i < info->holder_count; i++) {
        if (!vt->stale || info->holders[i].stale)
            put_row(vt->out, info, &info->holders[i]);
    }
    if (info->holder_count == 0)
        put_row(vt->out, info, NULL);
}

static bool wanted(const visit *vt, const dibs_lease_info *info)
{
    for (size_t i = 0; vt->stale && i < info->holder_count; i++) {
        if (info->holders[i].stale)
            return true;
    }
    return !vt->stale;
}

static bool list_lease(const dibs_lease_info *info, void *arg)
{
    const visit *vt = arg;

    if (!wanted(vt, info))
        return true;
    if (vt->shape == DIBS__AS_NAMES) {
        dibs__list_name(info->name);
    } else if (vt->shape == DIBS__AS_JSON) {
        dibsx_json_open(vt->out, '{');
        dibs__json_lease(vt->out, info);
        dibsx_json_close(vt->out, '}');
    } else {
        rows(vt, info);
    }
    return true;
}

static dibs_status list_leases(const dibs__command *cmd, dibs_client *cl,
                               dibs__shape shape, void *out, dibs_error *err)
{
    visit vt = {shape, out, dibs__opt_flag(cmd, "stale")};

    return dibs_lease_list(cl, dibs__operands(cmd)[0], list_lease, &vt, err);
}

static int list_locks(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "MODE",  "HOLDER", "HELD",
                                        "LEFT", "FENCE", "WAITING"};
    static const dibs__listing locks = {.key = "locks",
                                        .heads = heads,
                                        .columns = 7,
                                        .list = list_leases};

    return dibs__list(cmd, &locks);
}

const dibs__verb dibs__verb_ls = {
    .name = "ls",
    .operands = "[PREFIX]",
    .summary = "list the locks in use",
    .about = "One line per holder: its mode (exclusive, shared, or how "
             "many of how many permits), the holder, how long it has held, "
             "how much of the lease is left, the fence, and the number of "
             "waiters. PREFIX lists only names that begin with it.\n"
             "A holder is marked stale when it has missed a renewal and its "
             "process is gone from this host, or when it has missed two. "
             "Its lease still runs. A lease of acquire, which nobody "
             "renews, is never stale.\n",
    .examples = "All locks of a workflow, as JSON:\n"
                "  dibs ls --json workflow:\n"
                "Leases whose holder seems to be gone:\n"
                "  dibs ls --stale\n",
    .exits = "0 listed, even when there are none\n",
    .options = "json,names,stale",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = list_locks,
};
