/* events.h - durable events: append to a topic, read it, subscribe to it; and messages,
 * which nobody keeps.
 *
 * A topic is a log. Every reader gets every event, in the order of their positions. The
 * store keeps events for readers that come later, up to the limits of the topic. A reader
 * misses nothing unnoticed. DIBS_EVENT_GAP names positions that were trimmed before the
 * reader came to them. DIBS_EVENT_FORK names positions that the store has lost after the
 * reader saw them. docs/events.md has the promises of each store. A quorum
 * (redlock:) has no events: DIBS_UNSUPPORTED.
 *
 * Threads: any thread may make these calls, but one at a time for each reader. They
 * block for the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EVENTS_H
#define DIBS_EVENTS_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest event in bytes, and the most events that a topic can keep. */
#define DIBS_EVENT_MAX      65536
#define DIBS_EVENT_KEEP_MAX 1048576

/* How long a topic keeps events. An append removes the oldest beyond each limit, a few at
 * a time; a topic may keep somewhat more. 0: the default. */
typedef struct dibs_append_opts {
    size_t size;        /* sizeof(dibs_append_opts); the macro sets it */
    uint32_t keep;      /* events; 100,000 */
    int64_t keep_bytes; /* of their data; 256 MiB; negative: without limit */
    int64_t keep_ms;    /* their age; 7 days; negative: without limit */
} dibs_append_opts;

#define DIBS_APPEND_OPTS(...)                                                  \
    (&(dibs_append_opts){.size = sizeof(dibs_append_opts), __VA_ARGS__})

/* Appends an event. `opts` may be NULL. *position (may be NULL) receives its position. If
 * an answer of the store is lost, the call asks again, for timeout_ms more. The event is
 * in the topic once, however often it was sent.
 *   DIBS_INVALID      the event is longer than DIBS_EVENT_MAX, or the name begins with
 *                     "dibs."
 *   DIBS_UNKNOWN      no answer; the event is there once or not at all
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_events_append(
    dibs_client *client, const char *topic, const void *data, size_t len,
    const dibs_append_opts *opts, uint64_t *position, dibs_error *err);

typedef struct dibs_topic_state {
    uint64_t first; /* the position of the oldest event that is kept; 0: none */
    uint64_t last;  /* of the newest that ever was; 0: none */
    uint64_t count; /* events that are kept */
    int64_t bytes;  /* of their data */
} dibs_topic_state;

/* Looks at a topic. A topic that nobody has used has zeros. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_events_show(dibs_client *client,
                                                      const char *topic,
                                                      dibs_topic_state *out,
                                                      dibs_error *err);

/* Called for each topic of a list; false: no more. The name is valid for the call. */
typedef bool
dibs_topic_fn(const char *topic, const dibs_topic_state *state, void *arg);

/* Calls `each` for every topic that has had an event and whose name begins with `begins`
 * (NULL: all). The order is that of the bytes of names. A topic stays when its events are
 * trimmed. The topics of dibs itself begin with "dibs.". `each` may use the client.
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_events_list(dibs_client *client,
                                                      const char *begins,
                                                      dibs_topic_fn *each,
                                                      void *arg,
                                                      dibs_error *err);

/* Removes all events up to and with a position; UINT64_MAX: all. Readers that are behind
 * get a DIBS_EVENT_GAP. *gone (may be NULL) receives how many went.
 *   DIBS_UNKNOWN  no answer; some may have gone. Repeat the call */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_events_trim(dibs_client *client,
                                                      const char *topic,
                                                      uint64_t through,
                                                      uint64_t *gone,
                                                      dibs_error *err);

typedef enum dibs_event_kind {
    DIBS_EVENT = 0,
    DIBS_EVENT_GAP, /* events of from < position <= to were trimmed unread */
    DIBS_EVENT_FORK /* the store went back: it lost from < position <= to, which
                       this reader may have seen */
} dibs_event_kind;

/* One thing that a reader got. The data is valid until the next call for the reader. */
typedef struct dibs_event {
    dibs_event_kind kind;
    uint64_t position;
    int64_t wall_us; /* when it was appended, on the store's clock */
    const void *data;
    size_t len;
    uint64_t from, to; /* of a gap and a fork */
} dibs_event;

typedef enum dibs_reader_start {
    DIBS_FROM_END =
        0,           /* events that are appended after the first call of next */
    DIBS_FROM_START, /* the oldest event that is kept */
    DIBS_FROM_TIME,  /* the first event at wall_us or later */
    DIBS_FROM_POSITION /* the first event after `position` */
} dibs_reader_start;

typedef struct dibs_reader_opts {
    size_t size; /* sizeof(dibs_reader_opts); the macro sets it */
    dibs_reader_start start;
    uint64_t position; /* of DIBS_FROM_POSITION; 0: before all events */
    int64_t wall_us;   /* of DIBS_FROM_TIME, on the store's clock */
    const char *group; /* readers of a group share one position, which the
                          store keeps; without a `/`. NULL: none */
    int64_t ttl_ms;    /* of a group: when its reader has died, the next one
                          reads after so long; the client's */
} dibs_reader_opts;

#define DIBS_READER_OPTS(...)                                                  \
    (&(dibs_reader_opts){.size = sizeof(dibs_reader_opts), __VA_ARGS__})

/* A reader, alone or of a group. In a group one reader gets events at a time, in order.
 * The others wait in dibs_reader_next() until it leaves or dies. The next one goes on at
 * the position that is kept, or at `start` if there is none yet. An event counts as
 * handled with the next call of dibs_reader_next(), or with dibs_reader_commit(). The
 * position is written about once a second, and before each wait. So each event is handled
 * at least once: after a crash those of the last second may come again. The lock and the
 * value "events/TOPIC/GROUP" are the group's. Delete the value to begin anew. */
typedef struct dibs_reader dibs_reader;

/* Makes a reader, without a call to the store. `opts` may be NULL. Free it with
 * dibs_reader_free().
 *   DIBS_INVALID      the topic or an option is malformed
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_reader_new(
    dibs_client *client, const char *topic, const dibs_reader_opts *opts,
    dibs_reader **out, dibs_error *err);

/* Waits for the next event, for wait_ms at most. -1: without limit; 0: looks once. The
 * store wakes readers up; if it cannot, they look once a second. While the store is out
 * of reach, the call goes on trying.
 *   DIBS_TIMEOUT    no event in time
 *   DIBS_CANCELLED  dibs_reader_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL    the time is over and the store was out of reach
 *   DIBS_LOST       of a group: another reader goes on from the position that is kept.
 *                   Call again to wait for the next turn
 *   DIBS_INVALID    another thread waits for this reader */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_reader_next(dibs_reader *reader,
                                                      int64_t wait_ms,
                                                      dibs_event *out,
                                                      dibs_error *err);

/* Keeps the position of a group's reader now: all that it has got is handled.
 *   DIBS_LOST     another reader reads now, and gets the last events again
 *   DIBS_UNKNOWN  no answer; repeat the call
 *   DIBS_INVALID  the reader has no group */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_reader_commit(dibs_reader *reader,
                                                        dibs_error *err);

/* The position of the reader: that of the last event, or the end of the last gap. A new
 * reader that starts from it goes on there. 0: it has none yet. */
DIBS_API uint64_t dibs_reader_position(const dibs_reader *reader);

/* Ends the wait of dibs_reader_next() on another thread, or the next one. Does not block;
 * not safe in a signal handler. */
DIBS_API void dibs_reader_cancel(dibs_reader *reader);

/* Frees the reader; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_reader_free(dibs_reader *reader);

/* Called for each event, gap and fork, in order, on the thread of the subscription. It may
 * use the client. */
typedef void dibs_event_fn(const dibs_event *event, void *arg);

typedef struct dibs_subscription dibs_subscription;

/* Calls `fn` for everything that a reader with these options gets, on a thread of its own,
 * until dibs_unsubscribe(). A subscription from the end has every event that is appended
 * after this call returned DIBS_OK. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_subscribe(
    dibs_client *client, const char *topic, const dibs_reader_opts *opts,
    dibs_event_fn *fn, void *arg, dibs_subscription **out, dibs_error *err);

/* Ends a subscription: waits for a call of `fn` that is under way, and frees it. Not from
 * within `fn`. Call it before dibs_close(). NULL is a no-op. */
DIBS_API void dibs_unsubscribe(dibs_subscription *subscription);

/* Messages go to all that listen now, at most once, and the store keeps nothing. Use them
 * for what is of no use later, such as a progress bar or a hint to look. The messages of a
 * topic have nothing to do with its events. */

/* The longest message in bytes. */
#define DIBS_MESSAGE_MAX 3900

/* Sends a message to every listener of the topic. It is sent once: the call never repeats
 * it. DIBS_OK does not say that somebody listens.
 *   DIBS_INVALID      the message is longer than DIBS_MESSAGE_MAX
 *   DIBS_UNAVAIL      the message was not sent
 *   DIBS_NOMEM        no memory; the message was not sent
 *   DIBS_UNKNOWN      no answer, or not all listeners could be reached: each got it
 *                     once or not at all
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_message_send(dibs_client *client,
                                                       const char *topic,
                                                       const void *data,
                                                       size_t len,
                                                       dibs_error *err);

/* One thing that a listener got. The data is valid until the next call for it. */
typedef struct dibs_message {
    bool missed; /* messages may have been lost here; there is no data */
    const void *data;
    size_t len;
} dibs_message;

typedef struct dibs_listener dibs_listener;

/* Listens to a topic. After DIBS_OK the listener gets every message that is sent, in the
 * order of each sender, or learns that it may have missed some. It keeps up to 1,024
 * messages of 1 MiB in all between two calls of next. Free it with dibs_listener_free().
 *   DIBS_UNAVAIL      the store cannot be heard now
 *   DIBS_DENIED       the store forbids it
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_listener_new(dibs_client *client,
                                                       const char *topic,
                                                       dibs_listener **out,
                                                       dibs_error *err);

/* Waits for the next message, for wait_ms at most. -1: without limit; 0: looks once. A
 * listener that does not call it for 20 s may miss messages. After a lost connection, a full
 * inbox or such a pause it gets one message with `missed`, once it is heard again.
 *   DIBS_TIMEOUT    no message in time
 *   DIBS_CANCELLED  dibs_listener_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL    the time is over and the store could not be heard
 *   DIBS_INVALID    another thread waits for this listener */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_listener_next(dibs_listener *listener,
                                                        int64_t wait_ms,
                                                        dibs_message *out,
                                                        dibs_error *err);

/* Ends the wait of dibs_listener_next() on another thread, or the next one. Does not block;
 * not safe in a signal handler. */
DIBS_API void dibs_listener_cancel(dibs_listener *listener);

/* Frees the listener; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_listener_free(dibs_listener *listener);

#ifdef __cplusplus
}
#endif
#endif
