/* route_members.c - groups and their members. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"

void dibs__serve_get_groups(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_GROUPS, "");
}

static bool put_member(const dibs_member_info *info, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibs__noun_member(js, info);
    dibsx_json_close(js, '}');
    return true;
}

/* 200 also when nobody is there. */
void dibs__serve_get_group(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_error err = {0};
    dibs_status rc;
    dibsx_json *js;

    if (!name)
        return;
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_key(js, "members");
    dibsx_json_open(js, '[');
    rc = dibs_members_list(sv->data, name, put_member, js, &err);
    dibsx_json_close(js, ']');
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        (void)dibs__serve_fail(ex, &err);
}
