/* route_topics.c - durable topics: a list, publishing, a part of the events, and a stream
 * of them; messages, and a stream of those. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/payload.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/topic_stream.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIMIT_MAX = 1000,
    ANSWER_MAX = 4 * 1024 * 1024 /* bytes of events in one list */
};

void dibs__serve_get_topics(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_TOPICS, "");
}

/* Where to begin: "end", or a position; events after it are wanted. False: it was
 * refused. */
static bool
read_since(dibs__http_exchange *ex, const char *text, dibs_reader_opts *opts)
{
    char *end;

    *opts =
        (dibs_reader_opts){.size = sizeof(*opts), .start = DIBS_FROM_POSITION};
    if (!text || !*text)
        return true;
    if (strcmp(text, "end") == 0) {
        opts->start = DIBS_FROM_END;
        return true;
    }
    errno = 0;
    opts->position = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && errno == 0)
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "There is no such ?since: it is \"end\", or the "
                             "position of an event, after which to begin");
    return false;
}

/* -- A part of the events. */

static dibs_status
put_events(dibsx_json *js, dibs_reader *reader, int64_t limit, dibs_error *err)
{
    const size_t begun = js->out->len;
    dibs_status rc = DIBS_OK;
    dibs_event event;

    while (limit-- > 0 && js->out->len - begun < ANSWER_MAX) {
        rc = dibs_reader_next(reader, 0, &event, err);
        if (rc != DIBS_OK)
            break;
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "kind", dibs__topic_event_name(event.kind));
        dibs__topic_event_json(js, &event);
        dibsx_json_close(js, '}');
    }
    return rc == DIBS_TIMEOUT ? DIBS_OK : rc;
}

static void list_events(dibs__http_exchange *ex, const char *topic,
                        const dibs_reader_opts *opts, int64_t limit)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);
    dibs_reader *reader = NULL;
    dibs_topic_state state;
    dibs_error err = {0};
    dibs_status rc = dibs_events_show(sv->data, topic, &state, &err);

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    if (rc == DIBS_OK && opts->start == DIBS_FROM_POSITION)
        rc = dibs_reader_new(sv->data, topic, opts, &reader, &err);
    if (rc == DIBS_OK && reader)
        rc = put_events(js, reader, limit, &err);
    dibsx_json_close(js, ']');
    if (rc == DIBS_OK) {
        uint64_t next = reader ? dibs_reader_position(reader) : state.last;

        dibsx_json_pair_uint(js, "next", next ? next : opts->position);
        dibs__noun_topic(js, &state);
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
    dibs_reader_free(reader);
}

void dibs__serve_get_topic_events(dibs__http_exchange *ex)
{
    const char *topic = dibs__serve_ask_name(ex);
    const char *accept = dibs__http_header(ex, "Accept");
    const char *since = dibs__http_header(ex, "Last-Event-ID");
    const bool stream = accept && strstr(accept, "text/event-stream");
    dibs_reader_opts opts;
    int64_t limit = 100;

    if (!stream || !since)
        since = dibs__http_query(ex, "since");
    if (!topic || !read_since(ex, since, &opts) ||
        !dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &limit))
        return;
    if (stream)
        dibs__topic_stream_answer(ex, topic, &opts);
    else
        list_events(ex, topic, &opts, limit);
}

/* False: it was refused. */
static bool read_keep(dibs__http_exchange *ex, const dibsx_json_node *body,
                      dibs_append_opts *opts)
{
    int64_t keep = 0;

    if (!dibs__serve_ask_int(ex, body, "keep", 1, DIBS_EVENT_KEEP_MAX, &keep) ||
        !dibs__serve_ask_int(ex, body, "keep_bytes", 1, INT64_C(1) << 40,
                             &opts->keep_bytes) ||
        !dibs__serve_ask_int(ex, body, "keep_ms", 1, INT64_C(31622400000),
                             &opts->keep_ms))
        return false;
    opts->keep = (uint32_t)keep;
    return true;
}

void dibs__serve_post_topic(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *topic = dibs__serve_ask_name(ex);
    dibs_append_opts opts = {.size = sizeof(opts)};
    const dibsx_json_node *body;
    dibs__payload payload;
    uint64_t position = 0;
    dibs_error err = {0};

    if (!topic ||
        !dibs__serve_ask_body(ex, "data data_base64 keep keep_bytes keep_ms",
                              &body) ||
        !read_keep(ex, body, &opts))
        return;
    if (!dibs__payload_read(ex, body, DIBS_EVENT_MAX, &payload)) {
        dibs__payload_fini(&payload);
        return;
    }
    if (dibs_events_append(sv->data, topic, payload.data, payload.len, &opts,
                           &position, &err) == DIBS_OK)
        dibsx_json_pair_uint(dibs__http_answer(ex, 201), "position", position);
    else
        (void)dibs__serve_fail(ex, &err);
    dibs__payload_fini(&payload);
}

/* -- Messages. */

/* The topic of the path, or NULL: it was refused. By the messages of the library its
 * clients tell viewers what happens to leases. */
static const char *ask_own_topic(dibs__http_exchange *ex)
{
    const char *topic = dibs__serve_ask_name(ex);

    if (!topic || strncmp(topic, "dibs.", 5) != 0)
        return topic;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "Topics that begin with \"dibs.\" belong to the "
                             "library; use another name");
    return NULL;
}

void dibs__serve_get_topic_messages(dibs__http_exchange *ex)
{
    const char *topic = ask_own_topic(ex);

    if (topic)
        dibs__message_stream_answer(ex, topic);
}

void dibs__serve_post_message(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *topic = ask_own_topic(ex);
    const dibsx_json_node *body;
    dibs__payload payload;
    dibs_error err = {0};

    if (!topic || !dibs__serve_ask_body(ex, "data data_base64", &body))
        return;
    if (dibs__payload_read(ex, body, DIBS_MESSAGE_MAX, &payload)) {
        if (dibs_message_send(sv->data, topic, payload.data, payload.len,
                              &err) == DIBS_OK)
            dibs__http_answer_none(ex, 204);
        else
            (void)dibs__serve_fail(ex, &err);
    }
    dibs__payload_fini(&payload);
}
