/* fuzz_json.c - JSON: what is read can be written and read again as the same. */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/json_read.h"
#include "fuzz.h"

enum { OUT_MAX = 1 << 22 };

/* Numbers that are not whole are left out: the writer has none. */
static void write_node(dibsx_json *js, const dibsx_json_node *node)
{
    switch (node->kind) {
    case DIBSX_JSON_NULL:
        dibsx_json_null(js);
        break;
    case DIBSX_JSON_BOOL:
        dibsx_json_bool(js, node->truth);
        break;
    case DIBSX_JSON_NUMBER:
        dibsx_json_int(js, node->whole ? node->integer : 0);
        break;
    case DIBSX_JSON_TEXT:
        REQUIRE(node->text[node->len] == '\0');
        dibsx_json_bytes(js, node->text, node->len);
        break;
    case DIBSX_JSON_LIST:
    case DIBSX_JSON_MAP:
        dibsx_json_open(js, node->kind == DIBSX_JSON_MAP ? '{' : '[');
        for (const dibsx_json_node *at = node->child; at; at = at->next) {
            if (node->kind == DIBSX_JSON_MAP) {
                /* The writer takes keys without NULs. */
                if (strlen(at->key) != at->key_len)
                    continue;
                REQUIRE(dibsx_json_get(node, at->key) == at);
                dibsx_json_key(js, at->key);
            }
            write_node(js, at);
        }
        dibsx_json_close(js, node->kind == DIBSX_JSON_MAP ? '}' : ']');
        break;
    }
}

static void write_doc(const dibsx_json_doc *doc, dibsx_buf *out)
{
    dibsx_json js;

    dibsx_buf_init(out, OUT_MAX);
    dibsx_json_init(&js, out);
    write_node(&js, doc->root);
    REQUIRE(dibsx_buf_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dibsx_json_doc doc, again;
    dibsx_buf once, twice;
    dibs_error err = {0};

    if (dibsx_json_read((const char *)data, size, &doc, &err) != DIBS_OK) {
        REQUIRE(!doc.root && err.message[0]);
        return 0;
    }
    write_doc(&doc, &once);
    REQUIRE(dibsx_json_read(once.data, once.len, &again, &err) == DIBS_OK);
    write_doc(&again, &twice);
    REQUIRE(once.len == twice.len &&
            memcmp(once.data, twice.data, once.len) == 0);
    dibsx_buf_fini(&once);
    dibsx_buf_fini(&twice);
    dibsx_json_doc_fini(&doc);
    dibsx_json_doc_fini(&again);
    return 0;
}
