/* text_file.c - the text of a file that an operand names; - is standard input. */
/* SPDX-License-Identifier: MIT */
#include "cli/text_file.h"

#include "base/alloc.h"
#include "cli/input.h"
#include "config/option_value.h"
#include <string.h>

static int read_input(const dibs__command *cmd, dibsx_buf *text)
{
    char part[4096];
    dibs_error err = {0};
    size_t got;

    do {
        if (dibs__input_part(part, sizeof(part), &got, &err) != DIBS_OK)
            return dibs__cli_fail(cmd, &err);
        dibsx_buf_add(text, part, got);
    } while (got > 0 && dibsx_buf_ok(text));
    if (dibsx_buf_ok(text))
        return 0;
    dibs__cli_say("cannot read standard input: it is longer than %zu bytes",
                  text->max);
    return DIBS__EXIT_CONFIG;
}

int dibs__text_read(const dibs__command *cmd, const char *path, dibsx_buf *text)
{
    dibs_error err = {0};
    char *bytes = NULL;
    size_t len = 0;

    if (strcmp(path, "-") == 0)
        return read_input(cmd, text);
    if (dibs__read_file(path, text->max, &bytes, &len, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    dibsx_buf_add(text, bytes, len);
    dibsx_free(bytes);
    return dibsx_buf_ok(text) ? 0 : dibs__cli_nomem("the text of a file");
}

const char *dibs__text_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}
