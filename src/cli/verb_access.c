/* verb_access.c - access: the tokens of those who may use `dibs serve`. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "serve/serve.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static dibs_status
find_file(const dibs__command *cmd, char *out, size_t size, dibs_error *err)
{
    const char *path = dibs__opt_text(cmd, "tokens");

    if (!path)
        return dibs__serve_tokens_path(out, size, err);
    snprintf(out, size, "%s", path);
    return DIBS_OK;
}

/* The one time that the token is shown. */
static int
show_token(const dibs__command *cmd, const char *path, const char *token)
{
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
        dibsx_json_pair_text(&report.js, "role", dibs__opt_text(cmd, "role"));
        dibsx_json_pair_text(&report.js, "token", token);
        dibsx_json_pair_text(&report.js, "file", path);
        return dibs__report_end(&report);
    }
    dibs__out_text(token);
    dibs__out_text("\n");
    if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("this token is shown once; a daemon that runs takes it "
                      "after SIGHUP (%s)",
                      path);
    return dibs__out_done();
}

static int add_token(const dibs__command *cmd)
{
    char path[PATH_MAX], token[DIBS__SERVE_TOKEN_SIZE];
    dibs__serve_role role = DIBS__SERVE_NOBODY;
    dibs_error err = {0};
    dibs_status rc = find_file(cmd, path, sizeof(path), &err);
    int code;

    (void)dibs__serve_role_parse(dibs__opt_text(cmd, "role"), &role);
    if (rc == DIBS_OK)
        rc = dibs__serve_token_add(path, dibs__operands(cmd)[0], role,
                                   dibs__opt_text(cmd, "expires"), token, &err);
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = show_token(cmd, path, token);
    explicit_bzero(token, sizeof(token));
    return code;
}

static void put_expiry(const dibs__serve_token *item, char *out, size_t size)
{
    *out = '\0';
    if (item->expires_wall_us)
        dibs__wall_text(item->expires_wall_us, out, size);
}

static int print_json(const dibs__serve_tokens *tokens)
{
    dibs__report report;
    char expiry[40];

    dibs__report_begin(&report);
    dibsx_json_key(&report.js, "tokens");
    dibsx_json_open(&report.js, '[');
    for (size_t i = 0; i < tokens->count; i++) {
        const dibs__serve_token *item = &tokens->items[i];

        put_expiry(item, expiry, sizeof(expiry));
        dibsx_json_open(&report.js, '{');
        dibsx_json_pair_text(&report.js, "name", item->name);
        dibsx_json_pair_text(&report.js, "role",
                             dibs__serve_role_text(item->role));
        dibsx_json_pair_text(&report.js, "expires_at", *expiry ? expiry : NULL);
        dibsx_json_close(&report.js, '}');
    }
    dibsx_json_close(&report.js, ']');
    return dibs__report_end(&report);
}

static int
print_table(const dibs__command *cmd, const dibs__serve_tokens *tokens)
{
    static const char *const heads[] = {"NAME", "ROLE", "EXPIRES"};
    dibs__table table;
    char expiry[40];
    int code;

    dibs__table_init(&table, 3, heads);
    for (size_t i = 0; i < tokens->count; i++) {
        put_expiry(&tokens->items[i], expiry, sizeof(expiry));
        dibs__table_cell(&table, tokens->items[i].name);
        dibs__table_cell(&table, dibs__serve_role_text(tokens->items[i].role));
        dibs__table_cell(&table, *expiry ? expiry : "never");
    }
    code = dibs__table_print(&table, dibs__colours_of(cmd));
    dibs__table_fini(&table);
    return code;
}

static int list_tokens(const dibs__command *cmd)
{
    dibs__serve_tokens *tokens = dibsx_zalloc(sizeof(*tokens));
    char path[PATH_MAX];
    dibs_error err = {0};
    dibs_status rc;
    int code;

    if (!tokens)
        return dibs__cli_nomem("the tokens");
    rc = find_file(cmd, path, sizeof(path), &err);
    if (rc == DIBS_OK)
        rc = dibs__serve_tokens_load(tokens, path, &err);
    if (rc != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (dibs__opt_flag(cmd, "json"))
        code = print_json(tokens);
    else
        code = print_table(cmd, tokens);
    dibsx_free(tokens);
    return code;
}

static int remove_token(const dibs__command *cmd)
{
    char path[PATH_MAX];
    dibs_error err = {0};
    dibs_status rc = find_file(cmd, path, sizeof(path), &err);

    if (rc == DIBS_OK)
        rc = dibs__serve_token_remove(path, dibs__operands(cmd)[0], &err);
    return rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
}

static const dibs__option options[] = {
    {DIBS__ROW_CHOICE("role", "ROLE", "read|operate|admin"), .initial = "read",
     .verbs = "access add",
     .help = "The use of the token: read looks, operate takes and gives back "
             "locks and writes values, admin breaks locks."},
    {DIBS__ROW_TEXT("expires", "TIME"), .verbs = "access add",
     .otherwise = "never",
     .help = "When it ends, such as 2027-01-31T00:00:00Z."},
};

const dibs__option_rows dibs__options_access =
    DIBS__OPTION_ROWS("access add", options);

const dibs__verb dibs__verb_access = {
    .name = "access",
    .summary = "access tokens of dibs serve",
    .about = "The file has one line per token, with the SHA-256 of the token "
             "and never the token itself. A daemon that runs reads it again "
             "after SIGHUP.\n",
    .plain = true,
};

const dibs__verb dibs__verb_access_add = {
    .name = "access add",
    .operands = "NAME",
    .summary = "make an access token and print it once",
    .about = "NAME says in logs and in the audit trail who has the token. Two "
             "tokens of one NAME are valid at once, so that one can follow the "
             "other; access rm removes them all.\n",
    .examples = "For a dashboard that only looks:\n"
                "  dibs access add wall --role read\n"
                "For a program, and tell the daemon:\n"
                "  dibs access add billing --role operate > billing.token\n"
                "  systemctl reload dibs-serve\n",
    .exits = "0 made\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = add_token,
};

const dibs__verb dibs__verb_access_ls = {
    .name = "access ls",
    .summary = "list access tokens by name and role",
    .examples = "  dibs access ls\n",
    .exits = "0 listed\n"
             "1 there is no token file\n",
    .options = "json",
    .run = list_tokens,
};

const dibs__verb dibs__verb_access_rm = {
    .name = "access rm",
    .operands = "NAME",
    .summary = "remove the access tokens of a name",
    .examples = "  dibs access rm wall\n",
    .exits = "0 removed\n"
             "1 there is none of that name\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = remove_token,
};
