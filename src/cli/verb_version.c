/* verb_version.c - version. */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>

static int print_version(const dibs__command *cmd)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        printf("dibs %s\n", dibs_version());
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "version", dibs_version());
    return dibs__report_end(&report);
}

const dibs__verb dibs__verb_version = {
    .name = "version",
    .summary = "print the version",
    .exits = "0 printed\n",
    .options = "json",
    .plain = true,
    .run = print_version,
};
