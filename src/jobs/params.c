/* params.c - values that a run is given, and their places in commands. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/params.h"

#include "base/fail.h"
#include "base/suggest.h"
#include "jobs/pattern.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static size_t name_length(const char *text)
{
    size_t len = 0;

    if (!is_letter(text[0]))
        return 0;
    while (is_letter(text[len]) || text[len] == '_' ||
           (text[len] >= '0' && text[len] <= '9'))
        len++;
    return len;
}

bool dibs__param_name_ok(const char *name)
{
    size_t len = name_length(name);

    return len > 0 && len <= DIBS__PARAM_NAME_MAX && name[len] == '\0';
}

void dibs__param_variable(const char *name, char out[DIBS__PARAM_VARIABLE_SIZE])
{
    int len = snprintf(out, DIBS__PARAM_VARIABLE_SIZE, "DIBS_PARAM_%s", name);

    for (int i = 0; i < len && out[i]; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

dibs_status dibs__params_split(const char *const *given, dibs__arena *arena,
                               dibs__pair out[DIBS__JOB_PARAMS_MAX],
                               size_t *count, dibs_error *err)
{
    for (*count = 0; given && given[*count]; ++*count) {
        char *copy = dibs__arena_text(arena, given[*count]);
        char *sign = copy ? strchr(copy, '=') : NULL;

        if (*count == DIBS__JOB_PARAMS_MAX)
            return dibsx_fail(err, DIBS_INVALID, "a run has at most %d params",
                              DIBS__JOB_PARAMS_MAX);
        if (copy && !sign)
            return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no NAME=VALUE",
                              copy);
        if (sign)
            *sign = '\0';
        out[*count] = (dibs__pair){copy, sign ? sign + 1 : NULL};
    }
    return dibs__arena_ok(arena) ? DIBS_OK : dibsx_nomem(err, "params");
}

/* ---- references */

typedef enum ref_kind { REF_NONE, REF_DOLLAR, REF_TICK, REF_PARAM } ref_kind;

/* A reference in a text, with what is before it. */
typedef struct ref {
    ref_kind kind;
    const char *begin; /* at its first $ */
    const char *end;
    const char *name; /* of a param */
    size_t name_len;
} ref;

/* Reads what begins with "${" at `at`. False: it is no reference. */
static bool read_ref(const char *at, ref *out)
{
    static const char param[] = "${param.", tick[] = "${tick}";

    *out = (ref){.begin = at};
    if (strncmp(at, tick, strlen(tick)) == 0) {
        out->kind = REF_TICK;
        out->end = at + strlen(tick);
        return true;
    }
    if (strncmp(at, param, strlen(param)) != 0)
        return false;
    out->kind = REF_PARAM;
    out->name = at + strlen(param);
    out->name_len = name_length(out->name);
    out->end = out->name + out->name_len + 1;
    return out->name_len > 0 && out->name[out->name_len] == '}';
}

/* The first reference from `at` on; REF_NONE at the end. False: there is a "${" that
 * is none, at out->begin. */
static bool find_ref(const char *at, ref *out)
{
    const char *open = strstr(at, "${");

    *out = (ref){.kind = REF_NONE, .begin = at + strlen(at)};
    if (!open)
        return true;
    if (open > at && open[-1] == '$') {
        *out = (ref){.kind = REF_DOLLAR, .begin = open - 1, .end = open + 2};
        return true;
    }
    return read_ref(open, out);
}

static const dibs__param *
find_param(const dibs__param_list *params, const char *name, size_t len)
{
    for (size_t i = 0; i < params->count; i++)
        if (strlen(params->at[i].name) == len &&
            memcmp(params->at[i].name, name, len) == 0)
            return &params->at[i];
    return NULL;
}

static dibs_status unknown_param(const dibs__param_list *params,
                                 const char *name, size_t len, dibs_error *err)
{
    dibsx_suggest sg = {.typed = name, .len = len};
    int shown = len > DIBS__PARAM_NAME_MAX ? DIBS__PARAM_NAME_MAX : (int)len;

    for (size_t i = 0; i < params->count; i++)
        dibsx_suggest_offer(&sg, params->at[i].name);
    if (sg.best)
        return dibsx_fail(err, DIBS_INVALID,
                          "the job has no param '%.*s'; did you mean '%s'?",
                          shown, name, sg.best);
    return dibsx_fail(err, DIBS_INVALID,
                      "the job has no param '%.*s'; name it below params",
                      shown, name);
}

dibs_status dibs__params_check(const char *text, const dibs__param_list *params,
                               size_t *at, dibs_error *err)
{
    const char *from = text;
    ref found;

    for (;; from = found.end) {
        bool good = find_ref(from, &found);

        *at = (size_t)(found.begin - text);
        if (!good)
            return dibsx_fail(err, DIBS_INVALID,
                              "'%.20s' is no reference; write ${tick} or "
                              "${param.NAME}, and $${ for the text ${",
                              found.begin);
        if (found.kind == REF_NONE)
            return DIBS_OK;
        if (found.kind == REF_PARAM &&
            !find_param(params, found.name, found.name_len))
            return unknown_param(params, found.name, found.name_len, err);
    }
}

static const char *
find_value(const dibs__pairs *values, const char *name, size_t len)
{
    for (size_t i = 0; i < values->count; i++)
        if (strlen(values->at[i].name) == len &&
            memcmp(values->at[i].name, name, len) == 0)
            return values->at[i].value;
    return "";
}

void dibs__params_expand(const char *text, const dibs__pairs *values,
                         const char *tick, dibsx_buf *out)
{
    ref found;

    for (;; text = found.end) {
        if (!find_ref(text, &found)) {
            dibsx_buf_puts(out, text);
            return;
        }
        dibsx_buf_add(out, text, (size_t)(found.begin - text));
        if (found.kind == REF_NONE)
            return;
        if (found.kind == REF_DOLLAR)
            dibsx_buf_puts(out, "${");
        else if (found.kind == REF_TICK)
            dibsx_buf_puts(out, tick);
        else
            dibsx_buf_puts(out, find_value(values, found.name, found.name_len));
    }
}

/* ---- values */

static dibs_status
check_value(const dibs__param *param, const char *value, dibs_error *err)
{
    if (strlen(value) > DIBS__PARAM_VALUE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the param '%s' is longer than %d bytes", param->name,
                          DIBS__PARAM_VALUE_MAX);
    if (param->pattern && !dibs__pattern_match(param->pattern, value))
        return dibsx_fail(err, DIBS_INVALID,
                          "the param '%s' is '%.40s', which does not match its "
                          "pattern %.60s",
                          param->name, value, param->pattern);
    return DIBS_OK;
}

static dibs_status
check_given(const dibs__param_list *params, const dibs__pair *given,
            size_t count, dibs_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!find_param(params, given[i].name, strlen(given[i].name)))
            return unknown_param(params, given[i].name, strlen(given[i].name),
                                 err);
        for (size_t j = 0; j < i; j++)
            if (strcmp(given[i].name, given[j].name) == 0)
                return dibsx_fail(err, DIBS_INVALID,
                                  "the param '%s' is given twice",
                                  given[i].name);
    }
    return DIBS_OK;
}

dibs_status
dibs__params_fill(const dibs__param_list *params, const dibs__pair *given,
                  size_t count, dibs__arena *arena, dibs__pairs *out,
                  dibs_error *err)
{
    dibs_status rc = check_given(params, given, count, err);

    *out = (dibs__pairs){
        .at = dibs__arena_take(arena, params->count + 1, sizeof(out->at[0]))};
    if (rc == DIBS_OK && !out->at)
        rc = dibsx_nomem(err, "the params of a run");
    for (size_t i = 0; rc == DIBS_OK && i < params->count; i++) {
        const dibs__param *param = &params->at[i];
        const char *value = param->initial;

        for (size_t j = 0; j < count; j++)
            if (strcmp(given[j].name, param->name) == 0)
                value = given[j].value;
        if (!value && param->required)
            return dibsx_fail(err, DIBS_INVALID,
                              "the param '%s' is missing; the job requires it",
                              param->name);
        if (!value)
            continue;
        rc = check_value(param, value, err);
        out->at[out->count++] = (dibs__pair){param->name, value};
    }
    return rc;
}
