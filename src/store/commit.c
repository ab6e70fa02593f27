/* commit.c - the bounds of commits, checked once for all stores. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/refuse.h"
#include "store/topic.h"
#include <stdlib.h>
#include <string.h>

/* The names of a commit so far. One kind of name needs no tag while there is only one
 * of it. */
typedef struct names {
    const char *name;
    dibs__change_verb kind; /* PUT: a value; ENTER: an index; TELL: a topic */
} names;

const char *dibs__name_tag(const char *name, size_t *len)
{
    const char *open = strchr(name, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    *len = close ? (size_t)(close - open - 1) : 0;
    return *len ? open + 1 : NULL;
}

static bool has_same_tag(const char *a, const char *b)
{
    size_t a_len, b_len;
    const char *a_tag = dibs__name_tag(a, &a_len);
    const char *b_tag = dibs__name_tag(b, &b_len);

    return a_tag && b_tag && a_len == b_len && memcmp(a_tag, b_tag, a_len) == 0;
}

static dibs_status check_slot(names *seen, const char *name,
                              dibs__change_verb kind, dibs_error *err)
{
    if (!seen->name) {
        *seen = (names){.name = name, .kind = kind};
        return DIBS_OK;
    }
    if ((kind == seen->kind && strcmp(name, seen->name) == 0) ||
        has_same_tag(name, seen->name))
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "`%.60s` and `%.60s` are not in one slot: give all names "
                      "of a commit the same {tag}",
                      seen->name, name);
}

/* The length of a text up to a bound, which is also a longer one's. */
static size_t length_up_to(const char *text, size_t bound)
{
    return text ? strnlen(text, bound) : 0;
}

static dibs_status
check_name(const char *name, size_t max, const char *noun, dibs_error *err)
{
    size_t len = length_up_to(name, max + 1);

    if (len == 0)
        return dibsx_fail(err, DIBS_INVALID, "%s is empty", noun);
    if (len > max)
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is longer than %zu bytes: %.60s", noun, max,
                          name);
    return DIBS_OK;
}

static dibs_status check_put(const dibs__change *change, dibs_error *err)
{
    if (change->len > DIBS_VALUE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the value of `%.60s` has %zu bytes; at most %d are "
                          "allowed",
                          change->key, change->len, DIBS_VALUE_MAX);
    if (change->ttl_ms < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "the ttl of `%.60s` is negative; 0 is for ever",
                          change->key);
    return DIBS_OK;
}

static dibs_status check_enter(const dibs__change *change, dibs_error *err)
{
    int64_t max =
        change->from_now ? DIBS__INDEX_SPAN_MAX_US : DIBS__INDEX_AT_MAX;

    if (change->at < 0 || change->at > max)
        return dibsx_fail(err, DIBS_INVALID,
                          "the number of `%.60s` in the index `%.60s` is not "
                          "from 0 to %lld",
                          change->member, change->key, (long long)max);
    return DIBS_OK;
}

/* Rosters tell their topics themselves, and have slots of their own. */
static dibs_status check_topic(const char *topic, dibs_error *err)
{
    if (strchr(topic, ':') && strncmp(topic, "roster:", 7) != 0)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "`%.60s` is no topic that a commit can tell", topic);
}

static dibs__change_verb kind_of(dibs__change_verb verb)
{
    switch (verb) {
    case DIBS__CHANGE_PUT:
    case DIBS__CHANGE_DELETE:
        return DIBS__CHANGE_PUT;
    case DIBS__CHANGE_ENTER:
    case DIBS__CHANGE_LEAVE:
        return DIBS__CHANGE_ENTER;
    case DIBS__CHANGE_TELL:
        break;
    }
    return DIBS__CHANGE_TELL;
}

static dibs_status check_key(const dibs__change *change, dibs_error *err)
{
    switch (kind_of(change->verb)) {
    case DIBS__CHANGE_PUT:
        return check_name(change->key, DIBS_NAME_MAX, "the key of a value",
                          err);
    case DIBS__CHANGE_ENTER:
        return check_name(change->key, DIBS_NAME_MAX, "the name of an index",
                          err);
    default:
        return check_name(change->key, DIBS__TOPIC_MAX - 1, "a topic", err);
    }
}

static dibs_status check_change(const dibs__change *change, dibs_error *err)
{
    dibs_status rc = check_key(change, err);

    if (rc == DIBS_OK && kind_of(change->verb) == DIBS__CHANGE_ENTER)
        rc = check_name(change->member, DIBS_NAME_MAX, "a member of an index",
                        err);
    if (rc != DIBS_OK)
        return rc;
    switch (change->verb) {
    case DIBS__CHANGE_PUT:
        return check_put(change, err);
    case DIBS__CHANGE_ENTER:
        return check_enter(change, err);
    case DIBS__CHANGE_TELL:
        return check_topic(change->key, err);
    case DIBS__CHANGE_DELETE:
    case DIBS__CHANGE_LEAVE:
        break;
    }
    return DIBS_OK;
}

/* By kind, key and member: two that are equal change the same thing. */
static int compare_changes(const void *left, const void *right)
{
    const dibs__change *a = *(const dibs__change *const *)left;
    const dibs__change *b = *(const dibs__change *const *)right;
    int order = (int)kind_of(a->verb) - (int)kind_of(b->verb);

    if (order == 0)
        order = strcmp(a->key, b->key);
    if (order == 0 && kind_of(a->verb) == DIBS__CHANGE_ENTER)
        order = strcmp(a->member, b->member);
    return order;
}

static dibs_status check_twice(const dibs__commit *item, dibs_error *err)
{
    const dibs__change *order[DIBS__CHANGES_MAX];

    for (size_t i = 0; i < item->change_count; i++)
        order[i] = &item->changes[i];
    qsort(order, item->change_count, sizeof(*order), compare_changes);
    for (size_t i = 1; i < item->change_count; i++)
        if (compare_changes(&order[i - 1], &order[i]) == 0)
            return dibsx_fail(err, DIBS_INVALID,
                              "a commit changes `%.60s` %.60s twice; changes "
                              "have no order",
                              order[i]->key,
                              order[i]->member ? order[i]->member : "");
    return DIBS_OK;
}

static dibs_status
check_checks(const dibs__commit *item, names *seen, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < item->check_count && rc == DIBS_OK; i++) {
        const dibs__check *check = &item->checks[i];

        rc = check_name(check->key, DIBS_NAME_MAX, "the key of a check", err);
        if (rc == DIBS_OK && check->version == DIBS_VERSION_ANY)
            rc = dibsx_fail(err, DIBS_INVALID,
                            "any version of `%.60s` is no check; leave it out",
                            check->key);
        if (rc == DIBS_OK)
            rc = check_slot(seen, check->key, DIBS__CHANGE_PUT, err);
    }
    return rc;
}

static dibs_status check_bounds(const dibs__commit *item, dibs_error *err)
{
    if (item->check_count > DIBS__CHECKS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a commit has %zu checks; at most %d are allowed",
                          item->check_count, DIBS__CHECKS_MAX);
    if (item->change_count > DIBS__CHANGES_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a commit has %zu changes; at most %d are allowed",
                          item->change_count, DIBS__CHANGES_MAX);
    if (item->check_count + item->change_count == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a commit has neither checks nor changes");
    if (item->not_before_us < 0 || item->not_after_us < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a commit has a negative moment; 0 is none");
    return DIBS_OK;
}

/* Adds the bytes of its values to *bytes. */
static dibs_status
check_commit(const dibs__commit *item, size_t *bytes, dibs_error *err)
{
    names seen = {.name = NULL};
    dibs_status rc = check_bounds(item, err);

    if (rc == DIBS_OK)
        rc = check_checks(item, &seen, err);
    for (size_t i = 0; i < item->change_count && rc == DIBS_OK; i++) {
        const dibs__change *change = &item->changes[i];

        rc = check_change(change, err);
        if (rc == DIBS_OK)
            rc = check_slot(&seen, change->key, kind_of(change->verb), err);
        if (rc == DIBS_OK && change->verb == DIBS__CHANGE_PUT)
            *bytes += change->len;
    }
    if (rc == DIBS_OK)
        rc = check_twice(item, err);
    if (rc == DIBS_OK && *bytes > DIBS__COMMIT_DATA_MAX)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the values of these commits have more than %d bytes "
                        "together; send fewer at a time",
                        DIBS__COMMIT_DATA_MAX);
    return rc;
}

static void clear_answer(dibs__commit *item)
{
    item->rc = DIBS_OK;
    item->failed = 0;
    item->found = (dibs_value){0};
    item->version = 0;
    item->now_us = 0;
    for (size_t i = 0;
         i < item->change_count && item->change_count <= DIBS__CHANGES_MAX; i++)
        item->changes[i].size = 0;
}

static dibs_status
check_count(size_t count, size_t max, const char *noun, dibs_error *err)
{
    if (count >= 1 && count <= max)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "a step has 1 to %zu %s; this one has %zu", max, noun,
                      count);
}

dibs_status
dibs__commit_begin(dibs__commit *items, size_t count, dibs_error *err)
{
    dibs_status rc = check_count(count, DIBS__COMMITS_MAX, "commits", err);
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        clear_answer(&items[i]);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = check_commit(&items[i], &bytes, err);
    return rc == DIBS_OK ? rc : dibs__commit_fail(items, count, rc);
}

dibs_status dibs__get_many_begin(const char *const *keys, size_t count,
                                 dibs_value *out, dibs_error *err)
{
    dibs_status rc = check_count(count, DIBS__GET_MANY_MAX, "keys", err);

    memset(out, 0, count * sizeof(*out));
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = check_name(keys[i], DIBS_NAME_MAX, "the key of a value", err);
    return rc;
}

static dibs_status check_look(const dibs__index_look *look, dibs_error *err)
{
    dibs_status rc =
        check_name(look->index, DIBS_NAME_MAX, "the name of an index", err);

    if (rc != DIBS_OK)
        return rc;
    if (look->from < 0 || look->from > DIBS__INDEX_AT_MAX ||
        look->up_to < DIBS__UP_TO_NOW || look->up_to > DIBS__INDEX_AT_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the bounds of a look at `%.60s` are not from 0 to "
                          "%lld",
                          look->index, (long long)DIBS__INDEX_AT_MAX);
    if (look->limit > DIBS__LOOK_LIMIT_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a look at `%.60s` asks for %u entries; at most %d "
                          "are allowed",
                          look->index, look->limit, DIBS__LOOK_LIMIT_MAX);
    return DIBS_OK;
}

dibs_status dibs__first_begin(dibs__index_look *looks, size_t count,
                              int64_t *now_us, dibs_error *err)
{
    dibs_status rc = check_count(count, DIBS__LOOKS_MAX, "indexes", err);

    *now_us = 0;
    for (size_t i = 0; i < count; i++)
        looks[i].next = -1;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = check_look(&looks[i], err);
    return rc;
}

void dibs__commit_fini(dibs__commit *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dibsx_free(items[i].found.data);
        items[i].found = (dibs_value){0};
    }
}

dibs_status dibs__commit_fail(dibs__commit *items, size_t count, dibs_status rc)
{
    dibs__commit_fini(items, count);
    for (size_t i = 0; i < count; i++) {
        clear_answer(&items[i]);
        items[i].rc = rc;
    }
    return rc;
}
