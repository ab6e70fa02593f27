/* verb_store.c - store status, init and upgrade: the schema that a store keeps in
 * a database. */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>

/* "ready", or what is to be done. */
static const char *state_word(const dibs_store_state *state)
{
    if (!state->needed)
        return "none needed";
    if (state->found == state->known)
        return "ready";
    if (state->found > state->known)
        return "newer than this dibs";
    return state->found == 0 ? "not set up; run `dibs store init`"
                             : "old; run `dibs store upgrade`";
}

static int report_state(const dibs__command *cmd, const dibs_store_state *state)
{
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_bool(&report.js, "needed", state->needed);
        dibsx_json_pair_bool(&report.js, "changed", state->changed);
        dibsx_json_pair_int(&report.js, "found", state->found);
        dibsx_json_pair_int(&report.js, "known", state->known);
        return dibs__report_end(&report);
    }
    if (dibs__opt_flag(cmd, "quiet"))
        return 0;
    if (state->needed)
        printf("schema version %d, %d is known: %s%s\n", state->found,
               state->known, state_word(state),
               state->changed ? " (changed)" : "");
    else
        printf("this store needs no schema\n");
    return dibs__out_done();
}

static int run_task(const dibs__command *cmd, dibs_store_task task,
                    dibs_store_state *state)
{
    dibs_error err = {0};

    if (dibs_store_setup(dibs__cli_url(cmd), task,
                         dibs__opt_ms(cmd, "store-timeout"), state,
                         &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return report_state(cmd, state);
}

static int show_schema(const dibs__command *cmd)
{
    dibs_store_state state;
    int code = run_task(cmd, DIBS_STORE_STATUS, &state);

    return code ? code : state.found != state.known;
}

static int make_schema(const dibs__command *cmd)
{
    dibs_store_state state;

    return run_task(cmd, DIBS_STORE_INIT, &state);
}

static int upgrade_schema(const dibs__command *cmd)
{
    dibs_store_state state;

    return run_task(cmd, DIBS_STORE_UPGRADE, &state);
}

const dibs__verb dibs__verb_store = {
    .name = "store",
    .operands = "VERB",
    .summary = "set up what a store keeps in a database or a file",
    .about = "A PostgreSQL store keeps its tables and functions in a schema, "
             "which is made once. Other stores need nothing, and say so. share "
             "makes an embedded store for several users of a machine.\n",
};

const dibs__verb dibs__verb_store_status = {
    .name = "store status",
    .summary = "say which version of the schema there is",
    .exits = "0 it is ready, or none is needed\n"
             "1 it is to be made, or of another version\n",
    .options = "json",
    .run = show_schema,
};

const dibs__verb dibs__verb_store_init = {
    .name = "store init",
    .summary = "make the schema, unless it is there",
    .about = "Needs the right to create a schema in the database, or one that "
             "is there and empty. In one transaction; many may do it at "
             "once.\n",
    .examples = "Once, as the owner of the database:\n"
                "  dibs --url postgres://owner@db.example/app store init\n",
    .exits = "0 it is ready\n"
             "78 there is one of another version\n",
    .options = "json",
    .run = make_schema,
};

const dibs__verb dibs__verb_store_upgrade = {
    .name = "store upgrade",
    .summary = "bring the schema up to the version of this dibs",
    .about = "A dibs that is older than the schema refuses it, so upgrade the "
             "programs first.\n",
    .exits = "0 it is ready\n"
             "78 there is none, or it is of a newer dibs\n",
    .options = "json",
    .run = upgrade_schema,
};
