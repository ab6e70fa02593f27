/* list_verb.c - the three ways in which a list is shown. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/list_verb.h"

#include "cli/option_values.h"

static dibs_status
list_json(const dibs__command *cmd, dibs_client *cl, const dibs__listing *what,
          int *code, dibs_error *err)
{
    dibs__report report;
    dibs_status rc;

    dibs__report_begin(&report);
    dibsx_json_key(&report.js, what->key);
    dibsx_json_open(&report.js, '[');
    rc = what->list(cmd, cl, DIBS__AS_JSON, &report.js, err);
    dibsx_json_close(&report.js, ']');
    if (rc == DIBS_OK)
        *code = dibs__report_end(&report);
    else
        dibsx_buf_fini(&report.buf);
    return rc;
}

static dibs_status
list_table(const dibs__command *cmd, dibs_client *cl, const dibs__listing *what,
           int *code, dibs_error *err)
{
    dibs__table table;
    dibs_status rc;

    dibs__table_init(&table, what->columns, what->heads);
    rc = what->list(cmd, cl, DIBS__AS_ROWS, &table, err);
    if (rc == DIBS_OK)
        *code = dibs__table_print(&table, dibs__colours_of(cmd));
    dibs__table_fini(&table);
    return rc;
}

int dibs__list(const dibs__command *cmd, const dibs__listing *what)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs__opt_flag(cmd, "json"))
        rc = list_json(cmd, cl, what, &code, &err);
    else if (dibs__opt_has(cmd, "names") && dibs__opt_flag(cmd, "names"))
        rc = what->list(cmd, cl, DIBS__AS_NAMES, NULL, &err);
    else
        rc = list_table(cmd, cl, what, &code, &err);
    dibs_close(cl);
    return rc == DIBS_OK ? code : dibs__cli_fail(cmd, &err);
}

void dibs__list_name(const char *name)
{
    dibs__out_text(name);
    dibs__out_text("\n");
}
