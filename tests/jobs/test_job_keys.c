/* test_job_keys.c - the table of keys: its order, and its lines in docs/jobs.md. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "check.h"
#include "jobs/job_keys.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void check_order(const dibs__keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        const dibs__key *row = &keys->rows[i];

        if (i > 0)
            assert_true(strcmp(keys->rows[i - 1].name, row->name) < 0);
        assert_ptr_equal(dibs__keys_find(keys, row->name), row);
        assert_true(row->doc && row->doc[0]);
        if (row->group)
            check_order(row->group);
    }
}

static void keys_are_in_order(void **state)
{
    (void)state;
    check_order(&dibs__job_keys);
    check_order(&dibs__work_keys);
    check_order(&dibs__step_keys);
    check_order(&dibs__param_keys);
}

/* ---- documentation */

static const char *takes_text(const dibs__key *row)
{
    switch (row->type) {
    case DIBS__KEY_FLAG:
        return "yes or no";
    case DIBS__KEY_INT:
        return "a number";
    case DIBS__KEY_DURATION:
        return "a duration";
    case DIBS__KEY_SIZE:
        return "a size";
    case DIBS__KEY_PERCENT:
        return "a part";
    case DIBS__KEY_SIGNAL:
        return "a signal";
    case DIBS__KEY_MOMENT:
        return "a time";
    case DIBS__KEY_NAME:
        return "a name";
    case DIBS__KEY_PATH:
        return "a path";
    case DIBS__KEY_ZONE:
        return "a zone";
    case DIBS__KEY_PATTERN:
        return "a pattern";
    case DIBS__KEY_CODES:
        return "exit codes";
    case DIBS__KEY_WORDS:
        return "a list of words";
    case DIBS__KEY_NAMES:
        return "names";
    case DIBS__KEY_SCHEDULES:
        return "cron expressions";
    case DIBS__KEY_TEXT:
        return "text";
    default:
        return "a map";
    }
}

/* Words of `choices` with "or" or commas between them. */
static void add_words(dibsx_buf *out, const char *choices, const char *between)
{
    const char *word;
    size_t len;

    for (int i = 0; (word = dibs__choice_at(choices, i, &len)); i++)
        dibsx_buf_printf(out, "%s`%.*s`", i ? between : "", (int)len, word);
}

/* The line of docs/jobs.md for a key, and those of its group. */
static void add_row(dibsx_buf *out, const char *before, const dibs__key *row)
{
    char name[100];

    (void)snprintf(name, sizeof(name), "%s%s", before, row->name);
    if (row->group) {
        (void)snprintf(name + strlen(name), sizeof(name) - strlen(name), ".");
        for (size_t i = 0; i < row->group->count; i++)
            add_row(out, name, &row->group->rows[i]);
        return;
    }
    dibsx_buf_printf(out, "| `%s` | ", name);
    if (row->choices)
        add_words(out, row->choices, ", ");
    else
        dibsx_buf_puts(out, takes_text(row));
    dibsx_buf_puts(out, " | ");
    if (row->initial)
        add_words(out, row->initial, ", ");
    dibsx_buf_printf(out, " | %s |\n", row->doc);
}

static void add_keys(dibsx_buf *out, const char *before, const dibs__keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        add_row(out, before, &keys->rows[i]);
}

/* Each line of the tables is in docs/jobs.md; the message has those that belong there. */
static void the_document_has_every_key(void **state)
{
    const dibs__keys *all[] = {&dibs__job_keys, &dibs__work_keys,
                               &dibs__step_keys, &dibs__param_keys};
    static const char *const before[] = {"", "", "", "params.NAME."};
    static char document[256 * 1024];
    FILE *file = fopen(JOBS_DOCUMENT, "r");
    dibsx_buf lines;

    (void)state;
    assert_non_null(file);
    document[fread(document, 1, sizeof(document) - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        dibsx_buf_init(&lines, 64 * 1024);
        add_keys(&lines, before[i], all[i]);
        for (const char *at = dibsx_buf_text(&lines), *end;
             (end = strchr(at, '\n')); at = end + 1) {
            char line[1000];

            (void)snprintf(line, sizeof(line), "%.*s", (int)(end - at + 1), at);
            if (!strstr(document, line))
                fail_msg("docs/jobs.md lacks %sit should have\n%s", line,
                         dibsx_buf_text(&lines));
        }
        dibsx_buf_fini(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_in_order),
        cmocka_unit_test(the_document_has_every_key),
    };

    return cmocka_run_group_tests_name("job_keys", tests, NULL, NULL);
}
