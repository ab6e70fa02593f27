/* array.c - an array as an argument of a function of the schema. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/array.h"
#include <inttypes.h>

enum { ARRAY_MAX = 1 << 20 };

void dibs__pg_array_init(dibs__pg_array *list)
{
    dibsx_buf_init(&list->text, ARRAY_MAX);
}

void dibs__pg_array_fini(dibs__pg_array *list)
{
    dibsx_buf_fini(&list->text);
}

void dibs__pg_array_begin(dibs__pg_array *list)
{
    dibsx_buf_reset(&list->text);
}

static void separate(dibs__pg_array *list)
{
    dibsx_buf_putc(&list->text, list->text.len ? ',' : '{');
}

void dibs__pg_array_text(dibs__pg_array *list, const char *item)
{
    separate(list);
    dibsx_buf_putc(&list->text, '"');
    for (; *item; item++) {
        if (*item == '"' || *item == '\\')
            dibsx_buf_putc(&list->text, '\\');
        dibsx_buf_putc(&list->text, *item);
    }
    dibsx_buf_putc(&list->text, '"');
}

void dibs__pg_array_int(dibs__pg_array *list, int64_t item)
{
    separate(list);
    dibsx_buf_printf(&list->text, "%" PRId64, item);
}

bool dibs__pg_array_end(dibs__pg_array *lists, size_t count,
                        dibs__pg_args *args)
{
    for (size_t i = 0; i < count; i++) {
        dibsx_buf_putc(&lists[i].text, '}');
        if (!dibsx_buf_ok(&lists[i].text))
            return false;
        dibs__pg_arg_text(args, dibsx_buf_text(&lists[i].text));
    }
    return true;
}
