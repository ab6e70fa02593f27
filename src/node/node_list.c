/* node_list.c - the record of a node in the list of its board, for users and for the order
 * of nodes. */
/* SPDX-License-Identifier: MIT */
#include "jobs/node_record.h"
#include "node/node_inside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void join_labels(const char *const *labels, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; labels && labels[i]; i++) {
        int more =
            snprintf(out + len, size - len, "%s%s", i ? "," : "", labels[i]);

        if (more < 0 || (size_t)more >= size - len) {
            out[len] = '\0'; /* As many as fit. */
            return;
        }
        len += (size_t)more;
    }
}

static void
describe_node(dibs__node *node, int64_t now_us, dibs__node_record *rec)
{
    *rec = (dibs__node_record){.fence = node->fence,
                               .pid = getpid(),
                               .slots = node->opts->slots,
                               .ttl_ms = node->opts->ttl_ms};
    if (!node->joined_us)
        node->joined_us = now_us;
    rec->joined_us = node->joined_us;
    memcpy(rec->id, node->id, sizeof(rec->id));
    if (gethostname(rec->host, sizeof(rec->host)) != 0)
        rec->host[0] = '\0';
    join_labels(node->opts->labels, rec->labels, sizeof(rec->labels));
    (void)snprintf(rec->version, sizeof(rec->version), "%s", dibs_version());
}

static void send_list(dibs__node *node, const dibs__intent *in)
{
    bool doubt = false;
    dibs_error err = {0};
    dibs_status rc = dibs__board_commit(node->board, in, &doubt, &err);

    (void)dibs__node_valid_until(node);
    if (rc != DIBS_OK && rc != DIBS_STALE)
        dibs__node_complain(node, "the list of nodes", &err);
}

void dibs__node_write_record(dibs__node *node, int64_t now_us)
{
    dibsx_nsec now = dibsx_now();
    dibs__node_record rec;
    dibs__intent in;

    if (now < node->record_at)
        return;
    node->record_at = dibsx_after_ms(now, node->opts->ttl_ms);
    describe_node(node, now_us, &rec);
    dibs__intent_init(&in);
    dibs__node_record_keep(&rec, node->draining, now_us, &in);
    send_list(node, &in);
    dibs__intent_fini(&in);
}

void dibs__node_remove_record(dibs__node *node)
{
    dibs__intent in;

    dibs__intent_init(&in);
    dibs__node_record_leave(node->id, &in);
    send_list(node, &in);
    dibs__intent_fini(&in);
}

void dibs__node_strike_off(dibs__node *node, const char *index, const char *id)
{
    char key[DIBS__PLACE_SIZE];
    dibs__intent in;

    (void)snprintf(key, sizeof(key), "node/%.16s", id);
    dibs__intent_init(&in);
    dibs__intent_check_version(&in, key, 0);
    dibs__intent_leave(&in, index, id);
    send_list(node, &in);
    dibs__intent_fini(&in);
}
