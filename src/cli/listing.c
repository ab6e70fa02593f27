/* listing.c - the three ways in which a list is shown. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/listing.h"

static dibs_status
list_json(dibs_client *cl, const char *begins, const dibs__listing *what,
          int *code, dibs_error *err)
{
    dibs__report report;
    dibs_status rc;

    dibs__report_begin(&report);
    dibsx_json_key(&report.js, what->key);
    dibsx_json_open(&report.js, '[');
    rc = what->list(cl, begins, DIBS__AS_JSON, &report.js, err);
    dibsx_json_close(&report.js, ']');
    if (rc == DIBS_OK)
        *code = dibs__report_end(&report);
    else
        dibsx_buf_fini(&report.buf);
    return rc;
}

static dibs_status
list_table(dibs_client *cl, const char *begins, const dibs__listing *what,
           const dibs__colours *colours, int *code, dibs_error *err)
{
    dibs__table table;
    dibs_status rc;

    dibs__table_init(&table, what->columns, what->heads);
    rc = what->list(cl, begins, DIBS__AS_ROWS, &table, err);
    if (rc == DIBS_OK)
        *code = dibs__table_print(&table, colours);
    dibs__table_fini(&table);
    return rc;
}

int dibs__list(const dibs__command *cmd, const dibs__listing *what)
{
    const char *begins = dibs__operands(cmd)[0];
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs__opt_flag(cmd, "json"))
        rc = list_json(cl, begins, what, &code, &err);
    else if (dibs__opt_flag(cmd, "names"))
        rc = what->list(cl, begins, DIBS__AS_NAMES, NULL, &err);
    else
        rc = list_table(cl, begins, what, dibs__colours_of(cmd), &code, &err);
    dibs_close(cl);
    return rc == DIBS_OK ? code : dibs__cli_fail(cmd, &err);
}

void dibs__list_name(const char *name)
{
    dibs__out_text(name);
    dibs__out_text("\n");
}
