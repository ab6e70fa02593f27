/* trail.c - what was done by force or by an operator, kept in a log of the store.
 *
 * An entry is lines of text, "key value", of which the first is "dibs-trail 1".
 * Control characters and backslashes of a value are written \xHH, so that a line
 * ends where it seems to. Keys that a reader does not know are passed over. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/monitor.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/log.h"
#include "core/monitor/monitor.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD  "dibs-trail 1\n"
#define TOPIC "dibs.trail"

/* How many are kept, and how many are read in one step. */
enum { KEEP = 1000, PAGE = 256 };

/* The longest value of each key, with its NUL, and the longest entry: what comes
 * from elsewhere may be escaped throughout. */
enum { ACTION_MAX = 32, REASON_MAX = 512, TEXT_MAX = 4 * (REASON_MAX + 1024) };

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != 0x7f && c != '\\';
}

/* A value that does not fit is cut, but not inside a character. */
static size_t fit_length(const char *value, size_t max)
{
    size_t len = strnlen(value, max);

    if (len == max)
        while (len > 0 && ((unsigned char)value[len] & 0xc0) == 0x80)
            len--;
    return len;
}

static void
put_line(dibsx_buf *out, const char *key, const char *value, size_t size)
{
    size_t len = fit_length(value, size - 1);

    dibsx_buf_puts(out, key);
    dibsx_buf_putc(out, ' ');
    for (size_t i = 0; i < len; i++)
        if (is_plain(value[i]))
            dibsx_buf_putc(out, value[i]);
        else
            dibsx_buf_printf(out, "\\x%02x", (unsigned char)value[i]);
    dibsx_buf_putc(out, '\n');
}

/* The client that does it, in the form of a holder without its thread. */
static void put_self(const dibs_client *cl, dibsx_buf *out)
{
    char by[DIBS__WHO_MAX];

    snprintf(by, sizeof(by), "%s:%ld%s%s", cl->host, (long)getpid(),
             *cl->label ? " " : "", cl->label);
    put_line(out, "by", by, DIBS__WHO_PLAIN);
}

static void put_holder(dibsx_buf *out, const char *text)
{
    char agent[DIBS__WHO_MAX];
    char shown[2 * DIBS__WHO_MAX] = "";
    dibs__who who;

    if (*text) {
        dibs__who_read(text, &who);
        dibs__who_agent(&who, agent);
        snprintf(shown, sizeof(shown), "%s%s%s", agent, *who.label ? " " : "",
                 who.label);
    }
    put_line(out, "holder", shown, DIBS__WHO_MAX);
}

static dibs_status
append_item(dibs_client *cl, const dibs__trail_item *item, dibs_error *err)
{
    char topic[DIBS_NAME_MAX + 1];
    uint64_t position;
    dibsx_buf text;
    dibs_status rc = dibs__name_full(cl, TOPIC, topic, err);

    dibsx_buf_init(&text, TEXT_MAX);
    dibsx_buf_puts(&text, HEAD);
    put_line(&text, "action", item->action, ACTION_MAX);
    put_line(&text, "name", item->name, DIBS_NAME_MAX + 1);
    put_self(cl, &text);
    put_line(&text, "reason", item->reason ? item->reason : "", REASON_MAX);
    put_holder(&text, item->holder);
    dibsx_buf_printf(&text, "fence %" PRIu64 "\n", item->fence);
    if (rc == DIBS_OK && !dibsx_buf_ok(&text))
        rc = dibsx_nomem(err, "an entry of the trail");
    if (rc == DIBS_OK)
        rc = cl->st->ops->log->append(cl->st,
                                      &(dibs__append){.topic = topic,
                                                      .data = text.data,
                                                      .len = text.len,
                                                      .keep = KEEP},
                                      dibs__client_deadline(cl, dibsx_now()),
                                      &position, err);
    dibsx_buf_fini(&text);
    return rc;
}

void dibs__trail_add(dibs_client *cl, const dibs__trail_item *item)
{
    dibs_error err = {0};

    if (append_item(cl, item, &err) != DIBS_OK)
        dibs__log(cl, DIBS_LOG_WARN, "trail",
                  "the end of %s by force was not written down: %s", item->name,
                  err.message);
}

static dibs_status
check_item(const char *action, const char *name, dibs_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

    if (!action || !*action || strlen(action) >= ACTION_MAX ||
        action[strspn(action, plain)])
        return dibsx_fail(err, DIBS_INVALID,
                          "the action must be 1 to %d of a to z, 0 to 9 and -",
                          ACTION_MAX - 1);
    if (!name || !*name || strlen(name) > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INVALID, "the name must have 1 to %d bytes",
                          DIBS_NAME_MAX);
    return DIBS_OK;
}

dibs_status
dibs_trail_add(dibs_client *cl, const char *action, const char *name,
               uint64_t fence, const char *reason, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = check_item(action, name, err);
    if (rc == DIBS_OK)
        rc = append_item(cl,
                         &(dibs__trail_item){.action = action,
                                             .name = name,
                                             .reason = reason,
                                             .holder = "",
                                             .fence = fence},
                         err);
    return rc;
}

/* An entry as it is read. */
typedef struct page_entry {
    char action[ACTION_MAX];
    char name[DIBS_NAME_MAX + 1];
    char by[DIBS__WHO_MAX];
    char reason[REASON_MAX];
    char holder[DIBS__WHO_MAX];
    char fence[24];
} page_entry;

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a value of put_line(); a sequence that put_line() does not write
 * stays. */
static void read_value(const char *value, size_t len, char *out, size_t size)
{
    size_t made = 0;

    for (size_t i = 0; i < len && made + 1 < size; i++) {
        bool escaped = len - i > 3 && value[i] == '\\' && value[i + 1] == 'x';
        int high = escaped ? digit_of(value[i + 2]) : -1;
        int low = escaped ? digit_of(value[i + 3]) : -1;

        if (high >= 0 && low >= 0 && high + low > 0) {
            out[made++] = (char)(high * 16 + low);
            i += 3;
        } else {
            out[made++] = value[i];
        }
    }
    out[made] = '\0';
}

static void read_line(const char *line, size_t len, page_entry *out)
{
    const struct {
        const char *key;
        char *value;
        size_t size;
    } keys[] = {
        {"action ", out->action, sizeof(out->action)},
        {"name ", out->name, sizeof(out->name)},
        {"by ", out->by, sizeof(out->by)},
        {"reason ", out->reason, sizeof(out->reason)},
        {"holder ", out->holder, sizeof(out->holder)},
        {"fence ", out->fence, sizeof(out->fence)},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t skip = strlen(keys[i].key);

        if (len >= skip && memcmp(line, keys[i].key, skip) == 0)
            read_value(line + skip, len - skip, keys[i].value, keys[i].size);
    }
}

/* False when the text is no entry of the trail. */
static bool read_entry(const char *data, size_t len, page_entry *out)
{
    const char *end = data + len;

    *out = (page_entry){.fence = "0"};
    if (len < strlen(HEAD) || memcmp(data, HEAD, strlen(HEAD)) != 0)
        return false;
    data += strlen(HEAD);
    while (data < end) {
        const char *stop = memchr(data, '\n', (size_t)(end - data));
        size_t size = (size_t)((stop ? stop : end) - data);

        read_line(data, size, out);
        data += size + 1;
    }
    return true;
}

typedef struct reader {
    dibs_trail_fn *each;
    void *arg;
    uint64_t last;
    size_t seen;
    bool stopped;
} reader;

static bool show_entry(const dibs__log_entry *entry, void *arg)
{
    reader *rd = arg;
    page_entry text;

    rd->last = entry->position;
    rd->seen++;
    if (!read_entry(entry->data, entry->len, &text))
        return true;
    rd->stopped =
        !rd->each(&(dibs_trail_entry){.position = entry->position,
                                      .wall_us = entry->store_wall_us,
                                      .action = text.action,
                                      .name = text.name,
                                      .by = text.by,
                                      .reason = text.reason,
                                      .holder = text.holder,
                                      .fence = strtoumax(text.fence, NULL, 10)},
                  rd->arg);
    return !rd->stopped;
}

dibs_status dibs_trail_read(dibs_client *cl, uint64_t after,
                            dibs_trail_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    reader rd = {.each = each, .arg = arg, .last = after};
    char topic[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, TOPIC, topic, err);
    do {
        if (rc != DIBS_OK)
            return rc;
        rd.seen = 0;
        rc = cl->st->ops->log->read(cl->st, topic, rd.last, PAGE,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    show_entry, &rd, err);
    } while (rd.seen == PAGE && !rd.stopped);
    return rc;
}
