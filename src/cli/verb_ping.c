/* verb_ping.c - ping: is the store there? */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>

static int
report_ping(const dibs__command *cmd, const dibs_client *cl, int64_t took_us)
{
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "url", dibs_url(cl));
        dibsx_json_pair_int(&report.js, "took_us", took_us);
        return dibs__report_end(&report);
    }
    if (!dibs__opt_flag(cmd, "quiet"))
        printf("%s answered in %lld us\n", dibs_url(cl), (long long)took_us);
    return dibs__out_done();
}

static int ping_store(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int64_t took_us = 0;
    int code = dibs__cli_open_waiting(cmd, dibs__opt_ms(cmd, "wait"), &cl);

    if (code)
        return code;
    if (dibs_ping(cl, &took_us, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = report_ping(cmd, cl, took_us);
    dibs_close(cl);
    return code;
}

const dibs__verb dibs__verb_ping = {
    .name = "ping",
    .summary = "ask the store for a sign of life and time it",
    .examples = "As the health check of a container:\n"
                "  dibs ping -q\n"
                "In a start-up script, before the first use of the store:\n"
                "  dibs ping -q --wait 60s || exit\n",
    .exits = "0 it answered\n",
    .options = "json",
    .run = ping_store,
};
