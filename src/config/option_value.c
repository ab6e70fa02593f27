/* option_value.c - the value of an option: checked by type, taken by precedence.
 *
 * Owns the texts that came from files. Any thread; a value is used by one. */
/* SPDX-License-Identifier: MIT */
#include "config/option_value.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/text.h"
#include "base/url.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool dibs__list_has(const char *list, char between, const char *word,
                    size_t len)
{
    const char *p = list;

    while (p && *p) {
        const char *end = strchr(p, between);
        size_t item = end ? (size_t)(end - p) : strlen(p);

        if (item == len && memcmp(p, word, len) == 0)
            return true;
        p = end ? end + 1 : NULL;
    }
    return false;
}

static dibs_status
check_flag(const char *text, const char *name, int64_t *number, dibs_error *err)
{
    bool on = false;

    if (!dibsx_flag_read(text, &on))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: '%s' is not yes, no, true or false", name, text);
    *number = on;
    return DIBS_OK;
}

dibs_status
dibs__flag_parse(const char *text, const char *name, bool *on, dibs_error *err)
{
    int64_t number = 0;
    dibs_status rc = check_flag(text, name, &number, err);

    *on = number > 0;
    return rc;
}

static dibs_status check_int(const dibs__option *option, const char *text,
                             const char *name, int64_t *number, dibs_error *err)
{
    char *end = NULL;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end || strchr(" \t\n\v\f\r", *text))
        return dibsx_fail(err, DIBS_INVALID, "%s: '%s' is not a whole number",
                          name, text);
    if (errno || value < option->min || value > option->max)
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: '%s' is not between %lld and %lld", name, text,
                          (long long)option->min, (long long)option->max);
    *number = value;
    return DIBS_OK;
}

static bool is_bare_number(const char *text)
{
    return text[strspn(text, "0123456789.")] == '\0';
}

static dibs_status
check_duration(const dibs__option *option, const char *text, const char *name,
               int64_t *number, dibs_error *err)
{
    char min[32], max[32];

    if (!dibsx_duration_parse(text, number))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: '%s' is not a duration such as 500ms, 30s, 2m "
                          "or 1h",
                          name, text);
    if (*number >= option->min && *number <= option->max)
        return DIBS_OK;
    dibsx_duration_text(option->min, min, sizeof(min));
    dibsx_duration_text(option->max, max, sizeof(max));
    return dibsx_fail(err, DIBS_INVALID, "%s: '%s' is not between %s and %s%s",
                      name, text, min, max,
                      is_bare_number(text) && *number > option->max
                          ? "; a number without a unit is seconds"
                          : "");
}

bool dibs__replicas_parse(const char *text, uint32_t *replicas)
{
    bool waits = strncmp(text, "wait:", 5) == 0 && text[5] >= '1' &&
                 text[5] <= '9' && text[6] == '\0';

    *replicas = waits ? (uint32_t)(text[5] - '0') : 0;
    return waits || strcmp(text, "async") == 0;
}

static dibs_status check_replicas(const char *text, const char *name,
                                  int64_t *number, dibs_error *err)
{
    uint32_t replicas;

    if (!dibs__replicas_parse(text, &replicas))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: '%.40s' is neither async nor wait:K, with K "
                          "from 1 to 9",
                          name, text);
    *number = replicas;
    return DIBS_OK;
}

static dibs_status check_begin(const dibs__option *option, const char *text,
                               const char *name, dibs_error *err)
{
    const char *flaw = dibsx_text_flaw(text, strlen(text));

    if (flaw)
        return dibsx_fail(err, DIBS_INVALID, "%s %s", name, flaw);
    if (strlen(text) > (size_t)option->max)
        return dibsx_fail(err, DIBS_INVALID, "%s is longer than %lld bytes",
                          name, (long long)option->max);
    return DIBS_OK;
}

static dibs_status
check_value(const dibs__option *option, const char *text, const char *name,
            int64_t *number, dibs_error *err)
{
    switch (option->type) {
    case DIBS__FLAG:
        return check_flag(text, name, number, err);
    case DIBS__INT:
        return check_int(option, text, name, number, err);
    case DIBS__DURATION:
        return check_duration(option, text, name, number, err);
    case DIBS__CHOICE:
        if (!dibs__list_has(option->choices, '|', text, strlen(text)))
            return dibsx_fail(err, DIBS_INVALID, "%s: '%s' is not one of %s",
                              name, text, option->choices);
        return DIBS_OK;
    case DIBS__BEGIN:
        return check_begin(option, text, name, err);
    case DIBS__REPLICAS:
        return check_replicas(text, name, number, err);
    case DIBS__TEXT:
        break;
    }
    return DIBS_OK;
}

/* Services and containers have HOME=/dev/null, below which there is nothing either. */
static bool is_missing(int number)
{
    return number == ENOENT || number == ENOTDIR;
}

dibs_status dibs__read_file(const char *path, size_t max, char **out,
                            size_t *len, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    dibsx_buf buf;
    char part[4096];
    ssize_t got;
    int fd;

    *out = NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dibsx_fail_at(err,
                             is_missing(errno) ? DIBS_NOTFOUND : DIBS_DENIED,
                             dibsx_errno_name(errno), "cannot open %s: %s",
                             path, strerror(errno));
    dibsx_buf_init(&buf, max);
    do {
        got = read(fd, part, sizeof(part));
        if (got > 0)
            dibsx_buf_add(&buf, part, (size_t)got);
    } while ((got > 0 && dibsx_buf_ok(&buf)) || (got < 0 && errno == EINTR));
    if (got < 0) {
        rc = dibsx_fail_at(err, DIBS_INVALID, dibsx_errno_name(errno),
                           "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    *len = buf.len;
    if (dibsx_buf_ok(&buf))
        *out = buf.len ? dibsx_buf_take(&buf) : dibsx_strdup("");
    if (!*out)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "cannot read %s: more than %zu bytes, or no memory",
                        path, max);
out:
    /* It may have been a password. */
    explicit_bzero(part, sizeof(part));
    dibsx_buf_fini(&buf);
    close(fd);
    return rc;
}

/* Takes the first line of a file as the value. */
static dibs_status
read_secret(const char *path, const char *name, char **out, dibs_error *err)
{
    dibs_error why;
    char *text = NULL;
    size_t len = 0;
    bool empty;

    if (dibs__read_file(path, DIBSX_URL_MAX, &text, &len, &why) != DIBS_OK)
        return dibsx_fail(err, DIBS_INVALID, "%s: %s", name, why.message);
    text[strcspn(text, "\r\n")] = '\0';
    empty = text[0] == '\0';
    *out = empty ? NULL : dibsx_secret_dup(text);
    explicit_bzero(text, len);
    dibsx_free(text);
    /* It would mean the store of this machine alone. */
    if (empty)
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: the first line of %s is empty", name, path);
    return *out ? DIBS_OK : dibsx_nomem(err, "settings");
}

/* A copy of our own, of the kind that the option's texts are. */
static char *copy_of(const dibs__option *option, const char *text)
{
    return option->secret ? dibsx_secret_dup(text) : dibsx_strdup(text);
}

static void drop_text(const dibs__option *option, char *owned)
{
    if (option->secret)
        dibsx_secret_free(owned);
    else
        dibsx_free(owned);
}

/* The texts that a setting must own. */
typedef struct own_texts {
    char *text;
    char *place;
    char *file;
} own_texts;

static void drop_texts(const dibs__option *option, const own_texts *own)
{
    drop_text(option, own->text);
    dibsx_free(own->place);
    dibsx_free(own->file);
}

/* On failure the caller drops what is in *own. */
static dibs_status
make_texts(const dibs__option *option, const char *text, dibs__source source,
           const char *name, const char *place, own_texts *own, dibs_error *err)
{
    bool from_file = option->secret && strncmp(text, "file:", 5) == 0;
    dibs_status rc = DIBS_OK;

    /* A URL from a variable that is not set, in a script, say. */
    if (option->secret && text[0] == '\0')
        return dibsx_fail(err, DIBS_INVALID,
                          "%s: the value is empty; give one, or leave it out",
                          name);
    if (from_file) {
        rc = read_secret(text + 5, name, &own->text, err);
        own->file = dibsx_strdup(text);
    } else if (source == DIBS__FROM_FILE || option->secret) {
        own->text = copy_of(option, text);
        if (!own->text)
            rc = dibsx_nomem(err, "settings");
    }
    if (place)
        own->place = dibsx_strdup(place);
    if (rc == DIBS_OK && ((place && !own->place) || (from_file && !own->file)))
        rc = dibsx_nomem(err, "settings");
    return rc;
}

/* Adds one more to an option that may be given again. */
static dibs_status
keep_also(dibs__option_value *setting, const char *text, dibs_error *err)
{
    const char **all = dibsx_realloc_n(setting->all, setting->count + 2,
                                       sizeof(*setting->all));

    if (!all)
        return dibsx_nomem(err, "settings");
    all[setting->count++] = text;
    all[setting->count] = NULL;
    setting->all = all;
    return DIBS_OK;
}

/* Drops the texts of a setting, but not those of one that may be given again. */
static void drop_value(const dibs__option *option, dibs__option_value *setting)
{
    own_texts own = {setting->owned, setting->place, setting->file};

    drop_texts(option, &own);
}

dibs_status
dibs__value_put(dibs__option_value *setting, const dibs__option *option,
                const char *text, dibs__source source, const char *name,
                const char *place, dibs_error *err)
{
    own_texts own = {NULL, NULL, NULL};
    int64_t number = 0;
    dibs_status rc = check_value(option, text, name, &number, err);

    if (rc != DIBS_OK || source < setting->source)
        return rc;
    if (option->many)
        rc = keep_also(setting, text, err);
    if (rc == DIBS_OK)
        rc = make_texts(option, text, source, name, place, &own, err);
    if (rc != DIBS_OK) {
        drop_texts(option, &own);
        return rc;
    }
    /* -vv; but of two files the one that is nearer to the user decides. */
    if (option->type == DIBS__FLAG && source == DIBS__FROM_FLAG &&
        setting->source == source)
        number += setting->number;
    drop_value(option, setting);
    setting->owned = own.text;
    setting->place = own.place;
    setting->file = own.file;
    setting->text = own.text ? own.text : text;
    setting->number = number;
    setting->source = source;
    return DIBS_OK;
}

void dibs__values_init(const dibs__option_set *set)
{
    memset(set->values, 0, set->count * sizeof(*set->values));
    for (size_t i = 0; i < set->count; i++) {
        const dibs__option *option = set->row(i);

        set->values[i].number = option->type == DIBS__FLAG ? 0 : -1;
        if (option->initial &&
            dibs__value_put(&set->values[i], option, option->initial,
                            DIBS__FROM_DEFAULT, option->name, NULL,
                            NULL) != DIBS_OK)
            abort(); /* the table is wrong */
    }
}

void dibs__values_fini(const dibs__option_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        drop_value(set->row(i), &set->values[i]);
        dibsx_free(set->values[i].all);
    }
    memset(set->values, 0, set->count * sizeof(*set->values));
}
