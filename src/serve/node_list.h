/* node_list.h - the nodes of a board by their leases, with what the board knows of them,
 * in as few requests of the store as 64 nodes to a request allow. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_NODE_LIST_H
#define DIBS_SERVE_NODE_LIST_H

#include "base/json.h"
#include "serve/board_picture.h"

enum { DIBS__NODES_SHOWN_MAX = DIBS_LOOK_MAX }; /* further ones are counted */

/* Writes the pairs "items", "total" and "complete". The picture says which steps the nodes
 * have. Blocks for the store: one listing, one look, and a request for the records of up to
 * DIBS_GET_MANY_MAX nodes. */
DIBS_MUST_CHECK dibs_status dibs__node_list_json(
    const dibs__board_picture *picture, dibsx_json *js, dibs_error *err);

#endif
