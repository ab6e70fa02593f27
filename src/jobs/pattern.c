/* pattern.c - patterns of params, by the C library's regular expressions. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/pattern.h"

#include "base/fail.h"
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_MAX = 200, REPEATS_MAX = 1000 };

/* Beyond a bracket expression, which begins at `at`. */
static const char *skip_bracket(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    if (*at == ']')
        at++;
    while (*at && *at != ']') {
        if (at[0] == '[' && at[1] && strchr(":.=", at[1])) {
            const char end[] = {at[1], ']', '\0'};
            const char *close = strstr(at + 2, end);

            at = close ? close + 1 : at;
        }
        at++;
    }
    return *at ? at + 1 : at;
}

/* The product of all counts in braces: what a repeat of repeats comes to at worst. */
static dibs_status check_repeats(const char *pattern, dibs_error *err)
{
    long product = 1;

    for (const char *at = pattern; *at;) {
        if (*at == '\\' && at[1] >= '1' && at[1] <= '9')
            return dibsx_fail(err, DIBS_INVALID,
                              "a pattern has no \\%c; write the text out",
                              at[1]);
        if (*at == '\\' && at[1]) {
            at += 2;
        } else if (*at == '[') {
            at = skip_bracket(at);
        } else if (*at == '{') {
            char *end = NULL;
            long count = strtol(at + 1, &end, 10);

            if (*end == ',')
                count = strtol(end + 1, &end, 10);
            if (count > 1)
                product =
                    count > REPEATS_MAX ? REPEATS_MAX + 1L : product * count;
            if (product > REPEATS_MAX)
                return dibsx_fail(err, DIBS_INVALID,
                                  "the pattern is too large: its counts "
                                  "in braces multiply to more than %d",
                                  REPEATS_MAX);
            at++;
        } else {
            at++;
        }
    }
    return DIBS_OK;
}

static dibs_status
compile_pattern(const char *pattern, regex_t *out, dibs_error *err)
{
    char whole[PATTERN_MAX + 8], why[100];
    dibs_status rc;
    int code;

    if (strlen(pattern) > PATTERN_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the pattern is longer than %d bytes", PATTERN_MAX);
    rc = check_repeats(pattern, err);
    if (rc != DIBS_OK)
        return rc;
    /* By itself first: a ) of its own would else close what is put around it. */
    code = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
    if (code == 0) {
        regfree(out);
        snprintf(whole, sizeof(whole), "^(%s)$", pattern);
        code = regcomp(out, whole, REG_EXTENDED | REG_NOSUB);
    }
    if (code == 0)
        return DIBS_OK;
    if (code == REG_ESPACE)
        return dibsx_nomem(err, "the pattern");
    (void)regerror(code, NULL, why, sizeof(why));
    return dibsx_fail(err, DIBS_INVALID,
                      "the pattern is no extended regular expression: %s", why);
}

dibs_status dibs__pattern_check(const char *pattern, dibs_error *err)
{
    regex_t regex;
    dibs_status rc = compile_pattern(pattern, &regex, err);

    if (rc == DIBS_OK)
        regfree(&regex);
    return rc;
}

bool dibs__pattern_match(const char *pattern, const char *text)
{
    regex_t regex;
    bool matches;

    if (compile_pattern(pattern, &regex, NULL) != DIBS_OK)
        return false;
    matches = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return matches;
}
