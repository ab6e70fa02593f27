/* fuzz_config.c - configuration files: bounds, places in messages, no leaks. */
/* SPDX-License-Identifier: MIT */
#include "base/yaml.h"
#include "config/config.h"
#include "config/settings.h"
#include "fuzz.h"

/* Counts nodes, checking places and depth on the way. */
static size_t check_tree(const dibsx_yaml_node *node, size_t depth)
{
    size_t count = 0;

    REQUIRE(depth <= DIBSX_YAML_DEPTH_MAX + 1);
    for (; node; node = node->next) {
        REQUIRE(node->line > 0 && node->column > 0);
        REQUIRE((node->kind == DIBSX_YAML_SCALAR) == (node->text != NULL));
        if (node->value)
            REQUIRE(node->kind == DIBSX_YAML_SCALAR);
        count += 1 + check_tree(node->value, depth) +
                 check_tree(node->child, depth + 1);
    }
    return count;
}

/* A message is one line that begins with the place. */
static void check_message(const dibs_error *err)
{
    REQUIRE(err->status == DIBS_INVALID || err->status == DIBS_NOMEM);
    if (err->status == DIBS_INVALID)
        REQUIRE(strncmp(err->message, "f.yaml:", 7) == 0);
}

static int is_secret_file(const char *text)
{
    return strstr(text, "file:") != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    size_t len = strlen(text);
    dibsx_yaml_node *root = NULL;
    dibs__option_value values[DIBS__SETTING_COUNT];
    dibs__option_set set = {dibs__setting_at, DIBS__SETTING_COUNT, values};
    dibs_error err = {0};

    if (dibsx_yaml_parse((const char *)data, size, "f.yaml", NULL, &root,
                         &err) == DIBS_OK)
        REQUIRE(check_tree(root, 1) <= DIBSX_YAML_NODES_MAX);
    else
        check_message(&err);
    dibsx_yaml_free(root);

    /* No reading of files that the fuzzer thinks of. */
    if (!is_secret_file(text)) {
        dibs__values_init(&set);
        if (dibs__config_text(&set, text, len, "f.yaml", &err) != DIBS_OK)
            check_message(&err);
        dibs__values_fini(&set);
    }
    free(text);
    return 0;
}
