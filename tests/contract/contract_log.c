/* contract_log.c - logs: entries in order, as they were appended, kept for a
 * while. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { PLENTY = 1000, TEXT_MAX = 40, READ_MAX = 512 };

static dibs_status
append(contract *t, size_t handle, const char *topic, const void *data,
       size_t len, uint32_t keep, uint64_t *position)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};
    dibs_status rc;

    *position = 0;
    rc = st->ops->log->append(
        st,
        &(dibs__append){.topic = topic, .data = data, .len = len, .keep = keep},
        contract_soon(), position, &err);
    if (rc != DIBS_OK)
        assert_int_equal(err.status, rc);
    return rc;
}

static uint64_t append_text(contract *t, const char *topic, const char *text)
{
    uint64_t position;

    assert_status(append(t, 0, topic, text, strlen(text), PLENTY, &position),
                  DIBS_OK);
    assert_true(position > 0);
    return position;
}

/* Short entries, as they were read. */
typedef struct reading {
    uint64_t positions[READ_MAX];
    int64_t wall_us[READ_MAX];
    char texts[READ_MAX][TEXT_MAX];
    size_t count;
    size_t stop_after;
} reading;

static bool collect(const dibs__log_entry *entry, void *arg)
{
    reading *r = arg;

    assert_true(r->count < READ_MAX);
    assert_true(entry->len < TEXT_MAX);
    r->positions[r->count] = entry->position;
    r->wall_us[r->count] = entry->store_wall_us;
    if (entry->len > 0)
        memcpy(r->texts[r->count], entry->data, entry->len);
    r->texts[r->count][entry->len] = '\0';
    return ++r->count != r->stop_after;
}

static void read_with(contract *t, size_t handle, const char *topic,
                      uint64_t after, size_t max, dibs__log_fn *each, void *arg)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    assert_status(st->ops->log->read(st, topic, after, max, contract_soon(),
                                     each, arg, &err),
                  DIBS_OK);
}

static reading *
read_some(contract *t, const char *topic, uint64_t after, size_t max)
{
    static reading r;

    memset(&r, 0, sizeof(r));
    read_with(t, 1, topic, after, max, collect, &r);
    return &r;
}

static void nothing_is_read_where_nothing_was_appended(void **state)
{
    contract *t = *state;

    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 0);
    assert_int_equal(read_some(t, t->name, 12345, PLENTY)->count, 0);
}

static void entries_come_back_in_order(void **state)
{
    contract *t = *state;
    uint64_t positions[20];
    int64_t store_wall_us;
    dibs_error err = {0};
    reading *r;

    for (size_t i = 0; i < 20; i++) {
        char text[TEXT_MAX];

        snprintf(text, sizeof(text), "entry %zu", i);
        assert_status(append(t, i % CONTRACT_HANDLES, t->name, text,
                             strlen(text), PLENTY, &positions[i]),
                      DIBS_OK);
        assert_true(i == 0 || positions[i] > positions[i - 1]);
    }
    assert_status(t->st[0]->ops->now(t->st[0], contract_soon(), &store_wall_us,
                                     &err),
                  DIBS_OK);
    r = read_some(t, t->name, 0, PLENTY);
    assert_int_equal(r->count, 20);
    for (size_t i = 0; i < 20; i++) {
        char text[TEXT_MAX];

        snprintf(text, sizeof(text), "entry %zu", i);
        assert_string_equal(r->texts[i], text);
        assert_int_equal(r->positions[i], positions[i]);
        assert_true(llabs(r->wall_us[i] - store_wall_us) < 60 * 1000000);
        assert_true(i == 0 || r->wall_us[i] >= r->wall_us[i - 1]);
    }
}

static void positions_rise_over_topics(void **state)
{
    contract *t = *state;
    char topics[3][64];
    uint64_t last = 0;

    for (size_t i = 0; i < 3; i++)
        contract_name(topics[i], sizeof(topics[i]), "topic");
    for (size_t i = 0; i < 30; i++) {
        uint64_t position;

        assert_status(append(t, i % CONTRACT_HANDLES, topics[i % 3], "x", 1, 1,
                             &position),
                      DIBS_OK);
        assert_true(position > last);
        last = position;
    }
}

static void topics_do_not_mix(void **state)
{
    contract *t = *state;
    const char *ends[] = {"",  "a",   "a:b",     "{a}",       "a}", "a{b}c",
                          "*", "a b", "%_'\"\\", "näme-名前", "a\t"};
    enum { TOPICS = sizeof(ends) / sizeof(ends[0]) };
    char topics[TOPICS][96];

    for (size_t i = 0; i < TOPICS; i++) {
        snprintf(topics[i], sizeof(topics[i]), "%s%s", t->name, ends[i]);
        append_text(t, topics[i], topics[i] + strlen(t->name));
    }
    for (size_t i = 0; i < TOPICS; i++) {
        const reading *r = read_some(t, topics[i], 0, PLENTY);

        assert_int_equal(r->count, 1);
        assert_string_equal(r->texts[0], ends[i]);
    }
}

static void the_longest_topics_differ_in_their_last_byte(void **state)
{
    contract *t = *state;
    char one[DIBS_NAME_MAX + 1], two[DIBS_NAME_MAX + 1];
    const reading *r;

    memset(one, 'n', DIBS_NAME_MAX);
    memcpy(one, t->name, strlen(t->name));
    one[DIBS_NAME_MAX] = '\0';
    memcpy(two, one, sizeof(two));
    two[DIBS_NAME_MAX - 1] = 'm';
    append_text(t, one, "one");
    append_text(t, two, "two");
    r = read_some(t, two, 0, PLENTY);
    assert_int_equal(r->count, 1);
    assert_string_equal(r->texts[0], "two");
}

static void reading_goes_on_after_a_position(void **state)
{
    contract *t = *state;
    uint64_t positions[10], after = 0;
    char text[TEXT_MAX];
    reading *r;

    for (size_t i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "%zu", i);
        positions[i] = append_text(t, t->name, text);
    }
    for (size_t i = 0; i < 10; i += r->count) {
        r = read_some(t, t->name, after, 3);
        assert_int_equal(r->count, i + 3 <= 10 ? 3 : 10 - i);
        for (size_t k = 0; k < r->count; k++)
            assert_int_equal(r->positions[k], positions[i + k]);
        after = r->positions[r->count - 1];
    }
    assert_int_equal(read_some(t, t->name, after, 3)->count, 0);
    r = read_some(t, t->name, positions[0] - 1, 1);
    assert_int_equal(r->count, 1);
    assert_int_equal(r->positions[0], positions[0]);
    assert_int_equal(read_some(t, t->name, 0, 0)->count, 0);
    assert_int_equal(read_some(t, t->name, 0, SIZE_MAX)->count, 10);
    assert_int_equal(read_some(t, t->name, UINT64_MAX, 1)->count, 0);
}

static void reading_stops_when_told(void **state)
{
    contract *t = *state;
    static reading r;

    for (int i = 0; i < 5; i++)
        append_text(t, t->name, "x");
    memset(&r, 0, sizeof(r));
    r.stop_after = 2;
    read_with(t, 0, t->name, 0, PLENTY, collect, &r);
    assert_int_equal(r.count, 2);
}

typedef struct echo {
    contract *t;
    size_t count;
} echo;

/* The store is not locked: it may be used in here. */
static bool answer(const dibs__log_entry *entry, void *arg)
{
    echo *e = arg;
    uint64_t position;

    assert_status(append(e->t, 0, e->t->name, "echo", 4, PLENTY, &position),
                  DIBS_OK);
    assert_true(position > entry->position);
    e->count++;
    return true;
}

static void the_store_is_not_locked_while_one_reads(void **state)
{
    contract *t = *state;
    echo e = {.t = t};

    for (int i = 0; i < 3; i++)
        append_text(t, t->name, "x");
    read_with(t, 0, t->name, 0, 4, answer, &e);
    assert_true(e.count >= 3 && e.count <= 4);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 3 + e.count);
}

/* One entry of any size, as it was read. */
typedef struct copy {
    unsigned char *data; /* room for the largest */
    size_t len;
    size_t count;
} copy;

static bool keep_copy(const dibs__log_entry *entry, void *arg)
{
    copy *c = arg;

    assert_true(entry->len <= DIBS__LOG_DATA_MAX);
    if (entry->len > 0)
        memcpy(c->data, entry->data, entry->len);
    c->len = entry->len;
    c->count++;
    return true;
}

static void expect_bytes(contract *t, const char *topic, const void *data,
                         size_t len, copy *c)
{
    uint64_t position;

    c->count = 0;
    assert_status(append(t, 0, topic, data, len, PLENTY, &position), DIBS_OK);
    read_with(t, 1, topic, position - 1, PLENTY, keep_copy, c);
    assert_int_equal(c->count, 1);
    assert_int_equal(c->len, len);
    if (len > 0)
        assert_memory_equal(c->data, data, len);
}

static void any_bytes_come_back_as_they_were(void **state)
{
    contract *t = *state;
    unsigned char *bytes = malloc(DIBS__LOG_DATA_MAX);
    copy c = {.data = malloc(DIBS__LOG_DATA_MAX)};
    const size_t sizes[] = {1,   2,     255,
                            256, 4096,  DIBS__LOG_DATA_MAX - 1,
                            511, 65535, DIBS__LOG_DATA_MAX};

    assert_non_null(bytes);
    assert_non_null(c.data);
    for (size_t i = 0; i < DIBS__LOG_DATA_MAX; i++)
        bytes[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        expect_bytes(t, t->name, bytes, sizes[i], &c);
    expect_bytes(t, t->name, "\r\n$-1\r\n*0\r\n", 12, &c);
    expect_bytes(t, t->name, "\0\0\0", 3, &c);
    free(bytes);
    free(c.data);
}

static void an_empty_entry_is_an_entry(void **state)
{
    contract *t = *state;
    unsigned char none;
    copy c = {.data = &none};

    expect_bytes(t, t->name, NULL, 0, &c);
    expect_bytes(t, t->name, "", 0, &c);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 2);
}

static void what_is_too_long_is_refused(void **state)
{
    contract *t = *state;
    size_t size = DIBS__LOG_DATA_MAX + 1;
    char *bytes = calloc(1, size);
    uint64_t position;

    assert_non_null(bytes);
    append_text(t, t->name, "before");
    assert_status(append(t, 0, t->name, bytes, size, PLENTY, &position),
                  DIBS_INVALID);
    free(bytes);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 1);
}

/* More than a store would like to hold at once. */
static void many_large_entries_are_read_at_once(void **state)
{
    contract *t = *state;
    unsigned char *bytes = calloc(1, DIBS__LOG_DATA_MAX);
    copy c = {.data = malloc(DIBS__LOG_DATA_MAX)};
    uint64_t position;

    assert_non_null(bytes);
    assert_non_null(c.data);
    for (int i = 0; i < 20; i++) {
        bytes[i] = 1;
        assert_status(append(t, 0, t->name, bytes, DIBS__LOG_DATA_MAX, PLENTY,
                             &position),
                      DIBS_OK);
    }
    read_with(t, 1, t->name, 0, PLENTY, keep_copy, &c);
    assert_int_equal(c.count, 20);
    assert_memory_equal(c.data, bytes, DIBS__LOG_DATA_MAX);
    free(bytes);
    free(c.data);
}

/* A store may keep more than it must, but not without bound. */
static void
expect_newest(contract *t, const uint64_t *positions, size_t count, size_t keep)
{
    const reading *r = read_some(t, t->name, 0, READ_MAX);

    assert_true(r->count >= (count < keep ? count : keep));
    assert_true(r->count <= count && r->count <= 2 * keep + 100);
    for (size_t i = 0; i < r->count; i++)
        assert_int_equal(r->positions[i], positions[count - r->count + i]);
}

static void the_oldest_go_and_the_newest_stay(void **state)
{
    contract *t = *state;
    const uint32_t keep = 10;
    uint64_t positions[300];
    const reading *r;

    for (size_t i = 0; i < 300; i++) {
        assert_status(append(t, 0, t->name, "x", 1, keep, &positions[i]),
                      DIBS_OK);
        if (i % 25 == 0)
            expect_newest(t, positions, i + 1, keep);
    }
    expect_newest(t, positions, 300, keep);
    /* One that was behind goes on with the oldest that is left. */
    r = read_some(t, t->name, positions[0], 1);
    assert_int_equal(r->count, 1);
    assert_true(r->positions[0] >= positions[300 - 2 * keep - 100]);
}

static void nothing_goes_before_there_is_more_than_is_kept(void **state)
{
    contract *t = *state;
    uint64_t positions[200];

    for (size_t i = 0; i < 200; i++)
        assert_status(append(t, i % CONTRACT_HANDLES, t->name, "x", 1,
                             DIBS__LOG_KEEP_MAX, &positions[i]),
                      DIBS_OK);
    assert_int_equal(read_some(t, t->name, 0, READ_MAX)->count, 200);
    assert_status(append(t, 0, t->name, "x", 1, 1, &positions[0]), DIBS_OK);
    assert_true(read_some(t, t->name, 0, READ_MAX)->count <= 102);
}

static void trimming_one_topic_leaves_the_others(void **state)
{
    contract *t = *state;
    char other[64];

    contract_name(other, sizeof(other), "other");
    for (int i = 0; i < 10; i++)
        append_text(t, other, "stays");
    for (int i = 0; i < 250; i++) {
        uint64_t position;

        assert_status(append(t, 0, t->name, "x", 1, 1, &position), DIBS_OK);
    }
    assert_int_equal(read_some(t, other, 0, READ_MAX)->count, 10);
}

static void reopen(contract *t)
{
    for (size_t i = 0; i < CONTRACT_HANDLES; i++) {
        dibs__store_close(t->st[i]);
        t->st[i] = NULL;
    }
    for (size_t i = 0; i < CONTRACT_HANDLES; i++)
        t->st[i] = contract_open();
}

static void entries_outlive_the_handle_that_appended_them(void **state)
{
    contract *t = *state;
    uint64_t first = append_text(t, t->name, "stays");
    reading *r;

    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_true(append_text(t, t->name, "too") > first);
    r = read_some(t, t->name, 0, PLENTY);
    assert_int_equal(r->count, 2);
    assert_string_equal(r->texts[0], "stays");
}

static bool has_value(contract *t, const char *key)
{
    dibs__store *st = t->st[0];
    dibs_value value = {0};
    dibs_error err = {0};
    dibs_status rc =
        st->ops->value->get(st, key, contract_soon(), &value, &err);

    dibs_value_free(&value);
    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return rc == DIBS_OK;
}

/* What outlives all handles is the store's affair, but it is one for all nouns.
 * A position is not used again in any case. */
static void entries_last_as_long_as_values_do(void **state)
{
    contract *t = *state;
    dibs__put what = {.key = t->name,
                      .data = "v",
                      .len = 1,
                      .expected = DIBS_VERSION_ANY};
    dibs_error err = {0};
    uint64_t first, version;

    assert_status(t->st[0]->ops->value->put(t->st[0], &what, contract_soon(),
                                            &version, &err),
                  DIBS_OK);
    first = append_text(t, t->name, "stays");
    reopen(t);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count,
                     has_value(t, t->name) ? 1 : 0);
    assert_true(append_text(t, t->name, "next") > first);
}

static bool
see_name(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    (void)name;
    (void)entries;
    *(size_t *)arg += count;
    return true;
}

static bool see_key(const dibs_state_item *item, void *arg)
{
    (void)item;
    ++*(size_t *)arg;
    return true;
}

static size_t listed(contract *t)
{
    dibs__store *st = t->st[0];
    dibs_error err = {0};
    size_t count = 0;

    assert_status(st->ops->lease->list(st, t->name, contract_soon(), see_name,
                                       &count, &err),
                  DIBS_OK);
    assert_status(st->ops->value->list(st, t->name, contract_soon(), see_key,
                                       &count, &err),
                  DIBS_OK);
    return count;
}

/* A topic, a lock and a value may have the same name. */
static void a_topic_is_neither_a_lock_nor_a_value(void **state)
{
    contract *t = *state;
    dibs__put what = {.key = t->name,
                      .data = "v",
                      .len = 1,
                      .expected = DIBS_VERSION_NONE};
    actor a = contract_actor(t, 0);
    contract_view view;
    uint64_t version;

    append_text(t, t->name, "entry");
    assert_int_equal(listed(t), 0);
    assert_int_equal(contract_look(t, t->name, &view), 0);
    assert_false(has_value(t, t->name));
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(t->st[0]->ops->value->put(t->st[0], &what, contract_soon(),
                                            &version, &a.err),
                  DIBS_OK);
    append_text(t, t->name, "another");
    assert_int_equal(listed(t), 2);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 2);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(t->st[0]->ops->value->del(t->st[0], t->name, DIBS_VERSION_ANY,
                                            contract_soon(), &a.err),
                  DIBS_OK);
    assert_int_equal(listed(t), 0);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 2);
}

static void a_past_deadline_appends_and_reads_nothing(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    dibsx_nsec past = dibsx_now() - DIBSX_SEC;
    dibs_error err = {0};
    uint64_t position;
    static reading r;

    append_text(t, t->name, "x");
    assert_status(st->ops->log->append(st,
                                       &(dibs__append){.topic = t->name,
                                                       .data = "y",
                                                       .len = 1,
                                                       .keep = PLENTY},
                                       past, &position, &err),
                  DIBS_UNAVAIL);
    memset(&r, 0, sizeof(r));
    assert_status(st->ops->log->read(st, t->name, 0, PLENTY, past, collect, &r,
                                     &err),
                  DIBS_UNAVAIL);
    assert_int_equal(r.count, 0);
    assert_int_equal(read_some(t, t->name, 0, PLENTY)->count, 1);
}

enum { WRITERS = 6, EACH = 25 };

typedef struct writer {
    contract *t;
    size_t number;
    atomic_int *wrong;
    pthread_t thread;
} writer;

static void *write_entries(void *arg)
{
    writer *w = arg;
    dibs__store *st = w->t->st[w->number % CONTRACT_HANDLES];
    uint64_t last = 0;

    for (int i = 0; i < EACH; i++) {
        char text[TEXT_MAX];
        dibs_error err = {0};
        uint64_t position = 0;
        dibs_status rc;

        snprintf(text, sizeof(text), "%zu %d", w->number, i);
        rc = st->ops->log->append(st,
                                  &(dibs__append){.topic = w->t->name,
                                                  .data = text,
                                                  .len = strlen(text),
                                                  .keep = PLENTY},
                                  contract_soon(), &position, &err);
        if (pace_explains(rc))
            MISSED("an append is %s: %s", dibs_status_name(rc), err.message);
        if (rc != DIBS_OK || position <= last)
            atomic_fetch_add(w->wrong, 1);
        last = position;
    }
    return NULL;
}

static void no_entry_is_lost_among_many_writers(void **state)
{
    writer writers[WRITERS];
    int next[WRITERS] = {0};
    atomic_int wrong = 0;
    const reading *r;

    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.t = *state, .number = i, .wrong = &wrong};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_entries,
                                        &writers[i]),
                         0);
    }
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    r = read_some(*state, writers[0].t->name, 0, READ_MAX);
    assert_int_equal(r->count, WRITERS * EACH);
    for (size_t i = 0; i < r->count; i++) {
        size_t number;
        int turn;

        assert_true(i == 0 || r->positions[i] > r->positions[i - 1]);
        assert_int_equal(sscanf(r->texts[i], "%zu %d", &number, &turn), 2);
        assert_true(number < WRITERS);
        assert_int_equal(turn, next[number]++);
    }
}

enum { SHOWN_MAX = 8 };

/* The rows of a list, in the order in which they came. */
typedef struct shown {
    dibs__log_row rows[SHOWN_MAX];
    size_t count, stop;
} shown;

static bool copy_row(const dibs__log_row *row, void *arg)
{
    shown *out = arg;

    assert_true(out->count < SHOWN_MAX);
    out->rows[out->count++] = *row;
    return out->count < out->stop;
}

/* Those that begin with the name of the test and this, behind a name. */
static size_t list_logs(contract *t, const char *tail, const char *after,
                        size_t max, shown *out)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    char begins[DIBS_NAME_MAX + 1];
    const dibs__log_query query = {begins, after, max};
    dibs_error err = {0};
    dibs_status rc;

    snprintf(begins, sizeof(begins), "%.200s%.50s", t->name, tail);
    out->count = 0;
    rc = st->ops->log->logs(st, &query, contract_soon(), copy_row, out, &err);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "logs: status %d: %s", (int)rc, err.message);
    return out->count;
}

static uint64_t append_to(contract *t, const char *tail, const char *text)
{
    char topic[DIBS_NAME_MAX + 1];

    snprintf(topic, sizeof(topic), "%.200s%.50s", t->name, tail);
    return append_text(t, topic, text);
}

static void expect_row(contract *t, const dibs__log_row *row, const char *tail)
{
    dibs__log_span span;
    dibs_error err = {0};

    assert_string_equal(row->name + strlen(t->name), tail);
    assert_status(t->st[0]->ops->log->bounds(t->st[0], row->name,
                                             contract_soon(), &span, &err),
                  DIBS_OK);
    assert_int_equal(row->span.first, span.first);
    assert_int_equal(row->span.last, span.last);
    assert_int_equal(row->span.count, span.count);
    assert_int_equal(row->span.bytes, span.bytes);
}

static void a_list_has_each_topic_with_its_bounds(void **state)
{
    contract *t = *state;
    shown all = {.stop = SHOWN_MAX};
    dibs_error err = {0};
    uint64_t first, last, gone;

    assert_int_equal(list_logs(t, "", "", SHOWN_MAX, &all), 0);
    first = append_to(t, "-b", "four");
    last = append_to(t, "-b", "seven!!");
    (void)append_to(t, "-a", "x");
    (void)append_to(t, "-{c}", "y");
    assert_int_equal(list_logs(t, "", "", SHOWN_MAX, &all), 3);
    expect_row(t, &all.rows[0], "-a");
    expect_row(t, &all.rows[1], "-b");
    expect_row(t, &all.rows[2], "-{c}");
    assert_int_equal(all.rows[1].span.first, first);
    assert_int_equal(all.rows[1].span.last, last);
    assert_int_equal(all.rows[1].span.count, 2);
    assert_int_equal(all.rows[1].span.bytes, 11);
    /* A topic without entries is still one. */
    assert_status(t->st[0]->ops->log->trim(t->st[0], all.rows[1].name,
                                           UINT64_MAX, contract_soon(), &gone,
                                           &err),
                  DIBS_OK);
    assert_int_equal(list_logs(t, "-b", "", SHOWN_MAX, &all), 1);
    expect_row(t, &all.rows[0], "-b");
    assert_int_equal(all.rows[0].span.last, last);
    assert_int_equal(all.rows[0].span.count, 0);
    assert_int_equal(all.rows[0].span.bytes, 0);
}

static void a_list_of_topics_goes_on_behind_a_name(void **state)
{
    contract *t = *state;
    shown page = {.stop = SHOWN_MAX}, rest = {.stop = SHOWN_MAX};
    static const char *const tails[] = {"-3", "-1", "-4", "-2", "-10"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        (void)append_to(t, tails[i], "x");
    assert_int_equal(list_logs(t, "", "", 2, &page), 2);
    assert_string_equal(page.rows[1].name + strlen(t->name), "-10");
    assert_int_equal(list_logs(t, "", page.rows[1].name, SHOWN_MAX, &rest), 3);
    assert_string_equal(rest.rows[0].name + strlen(t->name), "-2");
    assert_int_equal(list_logs(t, "", rest.rows[2].name, SHOWN_MAX, &page), 0);
    page.stop = 1;
    assert_int_equal(list_logs(t, "", "", SHOWN_MAX, &page), 1);
}

int contract_log(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(nothing_is_read_where_nothing_was_appended),
        CONTRACT_TEST(entries_come_back_in_order),
        CONTRACT_TEST(positions_rise_over_topics),
        CONTRACT_TEST(topics_do_not_mix),
        CONTRACT_TEST(the_longest_topics_differ_in_their_last_byte),
        CONTRACT_TEST(reading_goes_on_after_a_position),
        CONTRACT_TEST(reading_stops_when_told),
        CONTRACT_TEST(the_store_is_not_locked_while_one_reads),
        CONTRACT_TEST(any_bytes_come_back_as_they_were),
        CONTRACT_TEST(an_empty_entry_is_an_entry),
        CONTRACT_TEST(what_is_too_long_is_refused),
        CONTRACT_TEST(many_large_entries_are_read_at_once),
        CONTRACT_TEST(the_oldest_go_and_the_newest_stay),
        CONTRACT_TEST(nothing_goes_before_there_is_more_than_is_kept),
        CONTRACT_TEST(trimming_one_topic_leaves_the_others),
        CONTRACT_TEST(entries_outlive_the_handle_that_appended_them),
        CONTRACT_TEST(entries_last_as_long_as_values_do),
        CONTRACT_TEST(a_topic_is_neither_a_lock_nor_a_value),
        CONTRACT_TEST(a_past_deadline_appends_and_reads_nothing),
        CONTRACT_TEST(no_entry_is_lost_among_many_writers),
        CONTRACT_TEST(a_list_has_each_topic_with_its_bounds),
        CONTRACT_TEST(a_list_of_topics_goes_on_behind_a_name),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
