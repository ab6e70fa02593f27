/* route_tokens.c - GET /v1/tokens: who has access, and as what; never the hash. Loop
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/daemon.h"
#include "serve/routes.h"

static void put_token(dibsx_json *js, const dibs__serve_token *item)
{
    char expiry[40];

    dibsx_wall_text(item->expires_wall_us, expiry, sizeof(expiry));
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", item->name);
    dibsx_json_pair_text(js, "role", dibs__serve_role_text(item->role));
    dibsx_json_pair_text(js, "expires_at",
                         item->expires_wall_us ? expiry : NULL);
    dibsx_json_close(js, '}');
}

void dibs__serve_get_tokens(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    pthread_mutex_lock(&sv->gate.mutex);
    for (size_t i = 0; sv->gate.tokens && i < sv->gate.tokens->count; i++)
        put_token(js, &sv->gate.tokens->items[i]);
    pthread_mutex_unlock(&sv->gate.mutex);
    dibsx_json_close(js, ']');
}
