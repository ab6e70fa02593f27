/* events.hpp - durable events and messages in C++. See dibs/dibs.hpp and dibs/events.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EVENTS_HPP
#define DIBS_EVENTS_HPP

#include <cstdint>
#include <dibs/client.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* An event of a topic, or a range of positions that are gone; see dibs/events.h. */
struct event {
    dibs_event_kind kind = DIBS_EVENT;
    uint64_t position = 0;
    int64_t wall_us = 0;
    std::string data;
    uint64_t from = 0, to = 0; /* of a gap and a fork */
};

namespace detail
{

inline void copy_event(const dibs_event &raw, event &out)
{
    out.kind = raw.kind;
    out.position = raw.position;
    out.wall_us = raw.wall_us;
    out.from = raw.from;
    out.to = raw.to;
    out.data.clear();
    if (raw.len > 0)
        out.data.assign(static_cast<const char *>(raw.data), raw.len);
}

} // namespace detail

/* A topic of a list. */
struct topic {
    std::string name;
    dibs_topic_state state;
};

/* Appends an event. Its position. */
inline uint64_t append_event(const client &cl, const std::string &topic,
                             const std::string &data,
                             dibs_append_opts opts = dibs_append_opts())
{
    dibs_error err = dibs_error();
    uint64_t position = 0;

    opts.size = sizeof(opts);
    detail::must(dibs_events_append(cl.get(), topic.c_str(), data.data(),
                                    data.size(), &opts, &position, &err),
                 err);
    return position;
}

/* Looks at a topic. */
inline dibs_topic_state show_events(const client &cl, const std::string &topic)
{
    dibs_topic_state state = dibs_topic_state();
    dibs_error err = dibs_error();

    detail::must(dibs_events_show(cl.get(), topic.c_str(), &state, &err), err);
    return state;
}

/* The topics that begin so and have had events, in the order of their bytes. */
inline std::vector<topic> topics(const client &cl,
                                 const std::string &begins = std::string())
{
    detail::gathered<std::vector<topic>> found;
    dibs_error err = dibs_error();
    dibs_topic_fn *note = [](const char *name, const dibs_topic_state *state,
                             void *arg) {
        return decltype(found)::add(arg, [&](std::vector<topic> &all) {
            all.push_back({name, *state});
            return true;
        });
    };

    found.must(dibs_events_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

/* Removes all events up to and with a position; by default all. How many went. */
inline uint64_t trim_events(const client &cl, const std::string &topic,
                            uint64_t through = UINT64_MAX)
{
    dibs_error err = dibs_error();
    uint64_t gone = 0;

    detail::must(
        dibs_events_trim(cl.get(), topic.c_str(), through, &gone, &err), err);
    return gone;
}

/* A reader of a topic; see dibs/events.h.
 *
 *     dibs::reader orders(db, "orders", dibs::reader::from_position(last));
 *     dibs::event event;
 *     while (orders.next(event, 30s)) handle(event.data); */
class reader
{
  public:
    reader(const client &cl, const std::string &topic,
           dibs_reader_opts opts = dibs_reader_opts())
    {
        dibs_reader *made = nullptr;
        dibs_error err = dibs_error();

        opts.size = sizeof(opts);
        detail::must(dibs_reader_new(cl.get(), topic.c_str(), &opts, &made,
                                     &err),
                     err);
        reader_.reset(made);
    }
    static dibs_reader_opts from_start()
    {
        dibs_reader_opts opts = dibs_reader_opts();

        opts.start = DIBS_FROM_START;
        return opts;
    }
    static dibs_reader_opts from_position(uint64_t position)
    {
        dibs_reader_opts opts = dibs_reader_opts();

        opts.start = DIBS_FROM_POSITION;
        opts.position = position;
        return opts;
    }
    static dibs_reader_opts from_time(int64_t wall_us)
    {
        dibs_reader_opts opts = dibs_reader_opts();

        opts.start = DIBS_FROM_TIME;
        opts.wall_us = wall_us;
        return opts;
    }
    /* False: no event in time, or cancelled. */
    DIBS_MUST_CHECK bool next(event &out, milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_event raw = dibs_event();
        dibs_status rc = dibs_reader_next(get(), wait.count(), &raw, &err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        detail::copy_event(raw, out);
        return true;
    }
    /* Keeps the position of a group. Throws with DIBS_LOST if another reads now. */
    void commit()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_reader_commit(get(), &err), err);
    }
    uint64_t position() const noexcept
    {
        return dibs_reader_position(get());
    }
    void cancel() noexcept
    {
        dibs_reader_cancel(get());
    }
    dibs_reader *get() const noexcept
    {
        return reader_.get();
    }

  private:
    struct freer {
        void operator()(dibs_reader *reader) const noexcept
        {
            dibs_reader_free(reader);
        }
    };
    std::unique_ptr<dibs_reader, freer> reader_;
};

/* Calls a function for each event, gap and fork, on a thread of its own, as long as the
 * object lives; see dibs/events.h. The function must not throw, and must not destroy the
 * subscription. The destructor waits for a call that is under way.
 *
 *     dibs::subscription orders(db, "orders",
 *                               [](const dibs::event &event) { handle(event); }); */
class subscription
{
  public:
    using callback = std::function<void(const event &)>;

    subscription(const client &cl, const std::string &topic, callback fn,
                 dibs_reader_opts opts = dibs_reader_opts())
    {
        std::unique_ptr<state, ender> made(new state{std::move(fn), nullptr});
        dibs_error err = dibs_error();

        opts.size = sizeof(opts);
        detail::must(dibs_subscribe(cl.get(), topic.c_str(), &opts, &call,
                                    made.get(), &made->raw, &err),
                     err);
        state_ = std::move(made);
    }

  private:
    struct state {
        callback fn;
        dibs_subscription *raw;
    };
    struct ender {
        void operator()(state *ended) const noexcept
        {
            dibs_unsubscribe(ended->raw);
            delete ended;
        }
    };
    static void call(const dibs_event *raw, void *arg) noexcept
    {
        event got;

        detail::copy_event(*raw, got);
        static_cast<state *>(arg)->fn(got);
    }
    std::unique_ptr<state, ender> state_;
};

/* Sends a message to all that listen now; see dibs/events.h. */
inline void send_message(const client &cl, const std::string &topic,
                         const std::string &data)
{
    dibs_error err = dibs_error();

    detail::must(dibs_message_send(cl.get(), topic.c_str(), data.data(),
                                   data.size(), &err),
                 err);
}

/* A listener for the messages of a topic; see dibs/events.h. */
class listener
{
  public:
    listener(const client &cl, const std::string &topic)
    {
        dibs_listener *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_listener_new(cl.get(), topic.c_str(), &made, &err),
                     err);
        listener_.reset(made);
    }
    /* False: no message in time, or cancelled. `missed`: messages may have been lost. */
    DIBS_MUST_CHECK bool next(std::string &out, bool &missed,
                              milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_message raw = dibs_message();
        dibs_status rc = dibs_listener_next(get(), wait.count(), &raw, &err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        missed = raw.missed;
        out.clear();
        if (raw.len > 0)
            out.assign(static_cast<const char *>(raw.data), raw.len);
        return true;
    }
    void cancel() noexcept
    {
        dibs_listener_cancel(get());
    }
    dibs_listener *get() const noexcept
    {
        return listener_.get();
    }

  private:
    struct freer {
        void operator()(dibs_listener *listener) const noexcept
        {
            dibs_listener_free(listener);
        }
    };
    std::unique_ptr<dibs_listener, freer> listener_;
};

} // namespace dibs

#endif
