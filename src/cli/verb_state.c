/* verb_state.c - state get, set, cas, del, add, ls: shared values. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/input.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/value_json.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool parse_version(const char *text, uint64_t *version)
{
    char *end = NULL;

    errno = 0;
    *version = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && !errno &&
           *version != DIBS_VERSION_ANY;
}

static int get_json(const char *key, const dibs_value *value)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "key", key);
    dibs__json_value(&report.js, value);
    dibsx_json_pair_uint(&report.js, "version", value->version);
    dibs__json_expiry(&report.js, value->expires_ms);
    return dibs__report_end(&report);
}

static int get_text(const dibs__command *cmd, const dibs_value *value)
{
    if (dibs__opt_flag(cmd, "with-version"))
        printf("%llu ", (unsigned long long)value->version);
    dibs__out(value->data, value->len);
    if (!dibs__opt_flag(cmd, "raw"))
        putchar('\n');
    return dibs__out_done();
}

static int get_value(const dibs__command *cmd)
{
    const char *key = dibs__operands(cmd)[0];
    dibs_value value = {0};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs_state_get(cl, key, &value, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (dibs__opt_flag(cmd, "json"))
        code = get_json(key, &value);
    else
        code = get_text(cmd, &value);
    dibs_value_free(&value);
    dibs_close(cl);
    return code;
}

static int report_version(const dibs__command *cmd, const char *key,
                          bool written, uint64_t version)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "key", key);
    dibsx_json_pair_bool(&report.js, "written", written);
    dibsx_json_pair_uint(&report.js, "version", version);
    return dibs__report_end(&report);
}

/* set and cas: writes and reports. */
static int
write_value(const dibs__command *cmd, const char *operand, uint64_t expected)
{
    const char *key = dibs__operands(cmd)[0];
    int64_t ttl_ms = dibs__opt_ms(cmd, "expires");
    uint64_t version = 0;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs__input in;
    int code = 0, reported = 0;
    dibs_status rc =
        dibs__input_read(&in, operand, "a value", DIBS_VALUE_MAX, &err);

    if (rc == DIBS_OK)
        code = dibs__cli_open(cmd, &cl);
    if (rc == DIBS_OK && code == 0) {
        if (expected == DIBS_VERSION_ANY)
            rc = dibs_state_set(cl, key, in.data, in.len, ttl_ms, &version,
                                &err);
        else
            rc = dibs_state_cas(cl, key, expected, in.data, in.len, ttl_ms,
                                &version, &err);
        if (rc == DIBS_OK || rc == DIBS_STALE)
            reported = report_version(cmd, key, rc == DIBS_OK, version);
    }
    if (rc != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    dibsx_buf_fini(&in.buf);
    dibs_close(cl);
    return code ? code : reported;
}

static int set_value(const dibs__command *cmd)
{
    return write_value(cmd, dibs__operands(cmd)[1], DIBS_VERSION_ANY);
}

static int compare_and_set(const dibs__command *cmd)
{
    uint64_t expected;

    if (!parse_version(dibs__operands(cmd)[1], &expected)) {
        dibs__cli_say("'%.60s' is not a version: a number, or 0 for nothing",
                      dibs__operands(cmd)[1]);
        return DIBS__EXIT_USAGE;
    }
    return write_value(cmd, dibs__operands(cmd)[2], expected);
}

static int delete_value(const dibs__command *cmd)
{
    uint64_t expected = DIBS_VERSION_ANY;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs__opt_given(cmd, "if-version"))
        expected = (uint64_t)dibs__opt_int(cmd, "if-version");
    if (dibs_state_delete(cl, dibs__operands(cmd)[0], expected, &err) !=
        DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    dibs_close(cl);
    return code;
}

static int report_sum(const dibs__command *cmd, const char *key, int64_t sum)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        printf("%lld\n", (long long)sum);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "key", key);
    dibsx_json_pair_int(&report.js, "sum", sum);
    return dibs__report_end(&report);
}

static int add_to_value(const dibs__command *cmd)
{
    char *const *words = dibs__operands(cmd);
    char *end = NULL;
    long long delta = 1;
    int64_t sum = 0;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code;

    errno = 0;
    if (words[1])
        delta = strtoll(words[1], &end, 10);
    if (end && (end == words[1] || *end || errno)) {
        dibs__cli_say(errno == ERANGE
                          ? "'%.60s' is too large; 64 bits are allowed"
                          : "'%.60s' is not a whole number",
                      words[1]);
        return DIBS__EXIT_USAGE;
    }
    code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs_state_add(cl, words[0], delta, &sum, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = report_sum(cmd, words[0], sum);
    dibs_close(cl);
    return code;
}

static bool each_name(const dibs_state_item *item, void *arg)
{
    (void)arg;
    dibs__list_name(item->key);
    return true;
}

static bool each_row(const dibs_state_item *item, void *arg)
{
    dibs__table *table = arg;
    char span[32] = "never";

    if (item->expires_ms >= 0)
        dibsx_duration_text(item->expires_ms, span, sizeof(span));
    dibs__table_cell(table, item->key);
    dibs__table_cellf(table, "%zu", item->len);
    dibs__table_cellf(table, "%llu", (unsigned long long)item->version);
    dibs__table_cell(table, span);
    return true;
}

static bool each_json(const dibs_state_item *item, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "key", item->key);
    dibsx_json_pair_uint(js, "bytes", item->len);
    dibsx_json_pair_uint(js, "version", item->version);
    dibs__json_expiry(js, item->expires_ms);
    dibsx_json_close(js, '}');
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    static dibs_state_fn *const each[DIBS__SHAPES] = {each_row, each_json,
                                                      each_name};

    return dibs_state_list(cl, dibs__operands(cmd)[0], each[shape], out, err);
}

static int list_values(const dibs__command *cmd)
{
    static const char *const heads[] = {"KEY", "BYTES", "VERSION", "EXPIRES"};
    static const dibs__listing values = {.key = "values",
                                         .heads = heads,
                                         .columns = 4,
                                         .list = list_in_shape};

    return dibs__list(cmd, &values);
}

static const dibs__option options[] = {
    {DIBS__ROW_SPAN("expires", 0, 100 * DIBS__YEAR), .initial = "0s",
     .otherwise = "never", .verbs = "state set,state cas",
     .help = "Forget the value after this long. 0 keeps it for ever."},
    {DIBS__ROW_INT("if-version", "N", 1, INT64_MAX), .verbs = "state del",
     .help = "Delete only this version."},
    {.name = "raw",
     .verbs = "state get",
     .help = "Print the bytes as they are, without a newline after them."},
    {.name = "with-version",
     .verbs = "state get,state watch",
     .help = "Print the version and a space before the value."},
};

const dibs__option_rows dibs__options_state = DIBS__OPTION_ROWS(NULL, options);

const dibs__verb dibs__verb_state = {
    .name = "state",
    .operands = "VERB",
    .summary = "read and change shared values",
    .about = "A value is bytes under a key, with a version and perhaps an "
             "expiry. A version is never used twice, so a compare-and-set "
             "cannot mistake a new value for an old one.\n",
};

const dibs__verb dibs__verb_state_get = {
    .name = "state get",
    .operands = "KEY",
    .summary = "print a value",
    .examples = "The version and the value, for a later cas:\n"
                "  dibs state get --with-version phase | "
                "{ read -r version value; ...; }\n",
    .exits = "0 printed\n"
             "1 there is no such key\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__KEYS,
    .run = get_value,
};

const dibs__verb dibs__verb_state_set = {
    .name = "state set",
    .operands = "KEY VALUE",
    .summary = "write a value",
    .about = "VALUE - reads standard input to its end. Put -- before a value "
             "that begins with a dash.\n",
    .examples = "For an hour:\n"
                "  dibs state set --expires 1h maintenance on\n",
    .exits = "0 written: on disk, on Redis as appendfsync says\n",
    .options = "json",
    .min_operands = 2,
    .max_operands = 2,
    .kind = DIBS__KEYS,
    .run = set_value,
};

const dibs__verb dibs__verb_state_cas = {
    .name = "state cas",
    .operands = "KEY VERSION VALUE",
    .summary = "write a value if its version is still the same",
    .about = "VERSION 0 means that there must be nothing under the key. VALUE "
             "- reads standard input.\n",
    .examples = "Only if nobody was first:\n"
                "  dibs state cas phase 0 started\n",
    .exits = "0 written: on disk, on Redis as appendfsync says\n"
             "1 another version is there; nothing was changed\n",
    .options = "json",
    .min_operands = 3,
    .max_operands = 3,
    .kind = DIBS__KEYS,
    .run = compare_and_set,
};

const dibs__verb dibs__verb_state_del = {
    .name = "state del",
    .operands = "KEY",
    .summary = "delete a value",
    .exits = "0 deleted\n"
             "1 there is no such key, or it is at another version\n",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__KEYS,
    .run = delete_value,
};

const dibs__verb dibs__verb_state_add = {
    .name = "state add",
    .operands = "KEY [N]",
    .summary = "add to a number and print the sum",
    .about = "Adds N, or 1. Nothing under the key counts as 0. N may be "
             "negative.\n",
    .examples = "Count down:\n"
                "  dibs state add remaining -1\n",
    .exits = "0 added\n"
             "64 the value is not an integer, or the sum would not fit\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__KEYS,
    .run = add_to_value,
};

const dibs__verb dibs__verb_state_ls = {
    .name = "state ls",
    .operands = "[PREFIX]",
    .summary = "list keys with size, version and expiry",
    .exits = "0 listed, even when there are none\n",
    .options = "json,names",
    .max_operands = 1,
    .kind = DIBS__KEYS,
    .run = list_values,
};
