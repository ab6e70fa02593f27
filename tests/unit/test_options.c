/* test_options.c - the tables agree with themselves, and words become settings.
 */
/* SPDX-License-Identifier: MIT */
#include "base/suggest.h"
#include "cli/docs.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "cli/synonyms.h"
#include "config/option_value.h"
#include "config/settings.h"
#include "unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "store-timeout" as "DIBS_STORE_TIMEOUT" or "store_timeout". */
static void mapped(const char *name, bool env, char *out, size_t size)
{
    snprintf(out, size, "%s%s", env ? "DIBS_" : "", name);
    for (char *p = out; *p; p++) {
        if (*p == '-')
            *p = '_';
        else if (env)
            *p = (char)toupper((unsigned char)*p);
    }
}

/* A setting of a group has its name before its own: serve.listen, DIBS_SERVE_LISTEN. */
static void test_names_map_mechanically(void **state)
{
    char expected[64], name[64];

    (void)state;
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);

        const char *dot = option->key ? strchr(option->key, '.') : NULL;

        snprintf(name, sizeof(name), "%.*s%s%s",
                 dot ? (int)(dot - option->key) : 0, dot ? option->key : "",
                 dot ? "-" : "", option->name);
        if (option->env) {
            mapped(name, true, expected, sizeof(expected));
            assert_string_equal(option->env, expected);
        }
        if (option->key) {
            assert_non_null(option->env);
            mapped(name, false, expected, sizeof(expected));
            if (strchr(option->key, '.'))
                *strchr(expected, '_') = '.';
            assert_string_equal(option->key, expected);
        }
    }
}

/* The library and the command read the same settings. */
static void test_settings_are_options(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i), *setting;

        if (!option->env)
            continue;
        assert_true(count < DIBS__SETTING_COUNT);
        setting = &dibs__settings[count++];
        assert_string_equal(setting->name, option->name);
        assert_string_equal(setting->env, option->env);
        assert_int_equal(setting->key != NULL, option->key != NULL);
        assert_int_equal(setting->type, option->type);
        assert_int_equal(setting->min, option->min);
        assert_int_equal(setting->max, option->max);
        assert_int_equal(setting->secret, option->secret);
    }
    assert_int_equal(count, DIBS__SETTING_COUNT);
}

/* Every row has a verb, and a place of its own among the settings of a command. */
static void test_rows_have_a_place(void **state)
{
    (void)state;
    assert_true(dibs__option_count() <= DIBS__OPTION_MAX);
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);
        size_t v = 0;

        assert_int_equal(dibs__option_index(option), i);
        while (v < dibs__verb_count &&
               !dibs__option_has_verb(option, dibs__verbs[v]->name))
            v++;
        assert_true(v < dibs__verb_count);
    }
}

static void test_rows_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);
        bool valued = option->type != DIBS__FLAG;

        assert_int_equal(option->metavar != NULL, valued);
        assert_int_equal(option->choices != NULL, option->type == DIBS__CHOICE);
        assert_int_equal(option->help[strlen(option->help) - 1], '.');
        if (option->type == DIBS__INT || option->type == DIBS__DURATION ||
            option->type == DIBS__BEGIN)
            assert_true(option->max > option->min);
        /* Only argv lives long enough for all of them. */
        if (option->many)
            assert_true(option->type == DIBS__TEXT && !option->env);
        /* What configuration can give must say what holds without it. */
        if (option->key)
            assert_true(option->initial || option->otherwise);
    }
}

/* `verbs` is in the form of a row, or NULL. */
static void assert_verbs_exist(const char *verbs)
{
    char list[512], *save = NULL;

    if (!verbs || strcmp(verbs, "*") == 0)
        return;
    snprintf(list, sizeof(list), "%s", verbs);
    for (char *verb = strtok_r(list, ",", &save); verb;
         verb = strtok_r(NULL, ",", &save))
        assert_non_null(dibs__verb_find(verb));
}

/* Every verb that a row or its group names is there, and no verb has a name or a letter
 * twice. */
static void test_verbs_and_options_agree(void **state)
{
    (void)state;
    for (size_t g = 0; g < dibs__option_group_count; g++) {
        const dibs__option_rows *group = dibs__option_groups[g];

        assert_verbs_exist(group->verbs);
        for (size_t i = 0; i < group->count; i++)
            assert_verbs_exist(group->rows[i].verbs);
    }
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const char *verb = dibs__verbs[v]->name;

        for (size_t i = 0; i < dibs__option_count(); i++) {
            const dibs__option *option = dibs__option_at(i);

            if (!dibs__option_has_verb(option, verb))
                continue;
            assert_ptr_equal(dibs__option_find(verb, option->name,
                                               strlen(option->name)),
                             option);
            if (option->letter)
                assert_ptr_equal(dibs__option_letter(verb, option->letter),
                                 option);
        }
    }
}

/* Every option that a verb's row names is there, and shown as the verb's. */
static void test_verbs_ask_for_options(void **state)
{
    char list[512], *save = NULL;

    (void)state;
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const dibs__verb *verb = dibs__verbs[v];

        snprintf(list, sizeof(list), "%s", verb->options ? verb->options : "");
        for (char *name = strtok_r(list, ",", &save); name;
             name = strtok_r(NULL, ",", &save))
            assert_non_null(dibs__option_find(verb->name, name, strlen(name)));
    }
    assert_null(dibs__option_find("completion", "json", 4));
    assert_null(dibs__option_find("", "json", 4));
}

/* A heading stands once, over verbs; verbs of a group stand under its heading. */
static void test_headings(void **state)
{
    (void)state;
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const char *heading = dibs__verb_heading(v);
        const char *word = dibs__verb_word(dibs__verbs[v]);
        size_t first = 0;

        while (strcmp(dibs__verb_heading(first), heading) != 0)
            first++;
        for (size_t i = first; i < v; i++)
            assert_string_equal(dibs__verb_heading(i), heading);
        if (word != dibs__verbs[v]->name)
            assert_true(v > first);
    }
}

static void test_verbs_are_whole(void **state)
{
    (void)state;
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const dibs__verb *verb = dibs__verbs[v];

        assert_non_null(verb->summary);
        assert_int_equal(verb->exits != NULL, verb->run != NULL);
        assert_int_not_equal(verb->summary[strlen(verb->summary) - 1], '.');
        assert_ptr_equal(dibs__verb_find(verb->name), verb);
        if (verb->max_operands)
            assert_non_null(verb->operands);
    }
}

/* Parses a command line, given as words up to NULL. */
static dibs_status
parse(dibs__command *cmd, dibs_error *err, const char *const *words)
{
    static char room[16][256]; /* the parser writes into its words */
    char *argv[16];
    int argc = 0;

    while (words[argc]) {
        snprintf(room[argc], sizeof(room[argc]), "%s", words[argc]);
        argv[argc] = room[argc];
        argc++;
    }
    dibs__command_init(cmd);
    return dibs__parse(cmd, argc, argv, err);
}

#define PARSE(cmd, err, ...)                                                   \
    parse(cmd, err, (const char *const[]){"dibs", __VA_ARGS__, NULL})

/* Help says each exit code of a verb once: a meaning of its own beside that of all verbs. */
static void test_exit_codes_stand_once(void **state)
{
    (void)state;
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const char *text, *line, *rest, *other;
        size_t len, other_len;
        dibsx_buf exits;

        if (!dibs__verbs[v]->run)
            continue;
        dibsx_buf_init(&exits, DIBS__DOC_MAX);
        dibs__verb_exits(&exits, dibs__verbs[v]);
        text = dibsx_buf_text(&exits);
        while (dibs__next_line(&text, &line, &len)) {
            size_t code = strcspn(line, " ") + 1;

            rest = text;
            while (dibs__next_line(&rest, &other, &other_len))
                assert_int_not_equal(strncmp(line, other, code), 0);
        }
        if (strcmp(dibs__verbs[v]->name, "join") == 0)
            assert_non_null(strstr(dibsx_buf_text(&exits),
                                   "64 the name is a barrier or a latch; or "
                                   "the command line is wrong\n"));
        if (strcmp(dibs__verbs[v]->name, "queue push") == 0)
            assert_non_null(strstr(dibsx_buf_text(&exits),
                                   "69 the store is out of reach; the item may "
                                   "be there\n"));
        dibsx_buf_fini(&exits);
    }
}

static void test_forms(void **state)
{
    dibs__command cmd;
    dibs_error err;

    (void)state;
    assert_int_equal(PARSE(&cmd, &err, "--url", "memory:", "run", "-qnw5s",
                           "--ttl=2m", "--nb", "-vv", "name", "--owner", "me",
                           "--", "sh", "-c", "x"),
                     DIBS_OK);
    assert_string_equal(cmd.verb->name, "run");
    assert_string_equal(dibs__opt_text(&cmd, "url"), "memory:");
    assert_true(dibs__opt_flag(&cmd, "quiet"));
    assert_int_equal(dibs__opt_int(&cmd, "nonblock"), 2);
    assert_int_equal(dibs__opt_ms(&cmd, "wait"), 5000);
    assert_int_equal(dibs__opt_ms(&cmd, "ttl"), 120000);
    assert_int_equal(dibs__opt_int(&cmd, "verbose"), 2);
    assert_string_equal(dibs__opt_text(&cmd, "label"), "me");
    assert_int_equal(dibs__operand_count(&cmd), 4);
    assert_string_equal(dibs__operands(&cmd)[0], "name");
    assert_string_equal(dibs__operands(&cmd)[2], "-c");
    assert_null(dibs__operands(&cmd)[4]);
    dibs__command_fini(&cmd);
}

static void test_tail_is_left_alone(void **state)
{
    dibs__command cmd;

    (void)state;
    assert_int_equal(PARSE(&cmd, NULL, "run", "name", "-n", "cmd", "--", "-n",
                           "--bogus"),
                     DIBS_OK);
    assert_int_equal(dibs__opt_int(&cmd, "nonblock"), 1);
    assert_int_equal(dibs__operand_count(&cmd), 5);
    assert_string_equal(dibs__operands(&cmd)[2], "--");
    dibs__command_fini(&cmd);

    assert_int_equal(PARSE(&cmd, NULL, "run", "--", "-name", "--", "-cmd"),
                     DIBS_OK);
    assert_int_equal(dibs__operand_count(&cmd), 2);
    assert_string_equal(dibs__operands(&cmd)[0], "-name");
    assert_string_equal(dibs__operands(&cmd)[1], "-cmd");
    dibs__command_fini(&cmd);
}

static void test_operands_that_look_like_options(void **state)
{
    dibs__command cmd;

    (void)state;
    assert_int_equal(PARSE(&cmd, NULL, "state", "add", "n", "-5"), DIBS_OK);
    assert_string_equal(dibs__operands(&cmd)[1], "-5");
    dibs__command_fini(&cmd);
    assert_int_equal(PARSE(&cmd, NULL, "state", "set", "k", "-"), DIBS_OK);
    assert_string_equal(dibs__operands(&cmd)[1], "-");
    dibs__command_fini(&cmd);
    assert_int_equal(PARSE(&cmd, NULL, "state", "set", "k", "--", "--json"),
                     DIBS_OK);
    assert_string_equal(dibs__operands(&cmd)[1], "--json");
    dibs__command_fini(&cmd);
}

static void test_what_was_not_given(void **state)
{
    dibs__command cmd;

    (void)state;
    assert_int_equal(PARSE(&cmd, NULL, "run", "n", "true"), DIBS_OK);
    assert_int_equal(dibs__opt_ms(&cmd, "wait"), -1);
    assert_int_equal(dibs__opt_int(&cmd, "status-fd"), -1);
    assert_null(dibs__opt_text(&cmd, "once"));
    assert_false(dibs__opt_flag(&cmd, "nonblock"));
    assert_false(dibs__opt_given(&cmd, "ttl"));
    assert_int_equal(dibs__opt_ms(&cmd, "ttl"), 30000);
    dibs__command_fini(&cmd);
}

static void test_what_is_given_again(void **state)
{
    dibs__command cmd;
    const char *const *all;

    (void)state;
    assert_int_equal(PARSE(&cmd, NULL, "run", "--also", "b", "a", "--also=c",
                           "--", "true"),
                     DIBS_OK);
    all = dibs__opt_all(&cmd, "also");
    assert_string_equal(all[0], "b");
    assert_string_equal(all[1], "c");
    assert_null(all[2]);
    assert_null(dibs__opt_all(&cmd, "meta")[0]);
    dibs__command_fini(&cmd);
}

/* The higher source wins, whichever comes first; the lower one is checked. */
static void test_precedence(void **state)
{
    static const dibs__source order[][3] = {
        {DIBS__FROM_FLAG, DIBS__FROM_ENV, DIBS__FROM_FILE},
        {DIBS__FROM_FILE, DIBS__FROM_ENV, DIBS__FROM_FLAG},
        {DIBS__FROM_ENV, DIBS__FROM_FLAG, DIBS__FROM_FILE}};
    static const char *const text[] = {[DIBS__FROM_FILE] = "1s",
                                       [DIBS__FROM_ENV] = "2s",
                                       [DIBS__FROM_FLAG] = "3s"};
    const dibs__option *ttl = dibs__option_find("run", "ttl", 3);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        dibs__command cmd;
        dibs_error err;

        dibs__command_init(&cmd);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(dibs__option_value_put(&cmd, ttl,
                                                    text[order[i][k]],
                                                    order[i][k], "ttl", NULL,
                                                    NULL),
                             DIBS_OK);
        assert_int_equal(dibs__option_value_of(&cmd, ttl)->number, 3000);
        assert_int_equal(dibs__option_value_put(&cmd, ttl, "bad",
                                                DIBS__FROM_FILE, "f:1:2: ttl",
                                                NULL, &err),
                         DIBS_INVALID);
        assert_non_null(strstr(err.message, "f:1:2: ttl: 'bad'"));
        assert_int_equal(dibs__option_value_of(&cmd, ttl)->number, 3000);
        dibs__command_fini(&cmd);
    }
}

static const char *suggested(const char *typed)
{
    dibsx_suggest sg = {.typed = typed};

    for (size_t i = 0; i < dibs__verb_count; i++)
        dibsx_suggest_offer(&sg, dibs__verbs[i]->name);
    return sg.best;
}

/* As YAML and other programs write it. */
static void test_flags_in_any_case(void **state)
{
    static const char *const on[] = {"yes", "True", "ON", "1"};
    static const char *const off[] = {"No", "FALSE", "off", "0"};
    static const char *const none[] = {"", "y", "perhaps", "yes "};
    dibs_error err = {0};
    bool is_on = false;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(on); i++) {
        assert_int_equal(dibs__flag_parse(on[i], "X", &is_on, NULL), DIBS_OK);
        assert_true(is_on);
        assert_int_equal(dibs__flag_parse(off[i], "X", &is_on, NULL), DIBS_OK);
        assert_false(is_on);
        assert_int_equal(dibs__flag_parse(none[i], "X", &is_on, &err),
                         DIBS_INVALID);
    }
    assert_string_equal(err.message, "X: 'yes ' is not yes, no, true or false");
}

static void test_suggestions(void **state)
{
    (void)state;
    assert_string_equal(suggested("aquire"), "acquire");
    assert_string_equal(suggested("relaese"), "release");
    assert_string_equal(suggested("verison"), "version");
    assert_string_equal(suggested("doc"), "doctor");
    assert_string_equal(suggested("rnu"), "run");
    assert_null(suggested("x"));
    assert_null(suggested("lok"));
    assert_null(suggested("frobnicate"));
    assert_null(suggested("a-word-that-is-far-longer-than-any-verb-will-be"));
}

static bool is_option(const char *name)
{
    for (size_t i = 0; i < dibs__option_count(); i++) {
        if (strcmp(dibs__option_at(i)->name, name) == 0)
            return true;
    }
    return false;
}

/* Each leads to something that is there, and from something that is not, or is an
 * option of other verbs. */
static void test_synonyms(void **state)
{
    (void)state;
    for (size_t i = 0; i < dibs__option_synonym_count; i++) {
        assert_true(is_option(dibs__option_synonyms[i].meant));
        assert_false(is_option(dibs__option_synonyms[i].tried));
    }
    for (size_t i = 0; i < dibs__verb_synonym_count; i++) {
        const dibs__verb *meant = dibs__verb_find(dibs__verb_synonyms[i].meant);

        assert_non_null(meant);
        assert_non_null(meant->run);
        assert_null(dibs__verb_find(dibs__verb_synonyms[i].tried));
    }
    assert_string_equal(dibs__option_meant("demo", "port", 4), "http-port");
    assert_string_equal(dibs__option_meant("run", "port", 4), "url");
    assert_null(dibs__option_meant("run", "portx", 5));
    assert_null(dibs__verb_meant("store", "list"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_map_mechanically),
        cmocka_unit_test(test_settings_are_options),
        cmocka_unit_test(test_rows_have_a_place),
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_verbs_and_options_agree),
        cmocka_unit_test(test_verbs_ask_for_options),
        cmocka_unit_test(test_headings),
        cmocka_unit_test(test_verbs_are_whole),
        cmocka_unit_test(test_exit_codes_stand_once),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_tail_is_left_alone),
        cmocka_unit_test(test_operands_that_look_like_options),
        cmocka_unit_test(test_what_was_not_given),
        cmocka_unit_test(test_what_is_given_again),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_flags_in_any_case),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_synonyms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
