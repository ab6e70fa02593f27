/* queue.hpp - queues in C++. See dibs/dibs.hpp and dibs/queue.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_HPP
#define DIBS_QUEUE_HPP

#include <cstdint>
#include <dibs/client.hpp>
#include <dibs/queue.h>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* Options of a queue; see dibs/queue.h. */
class queue_options
{
  public:
    queue_options() : raw_()
    {
        raw_.size = sizeof(raw_);
    }
    queue_options &as(std::string worker)
    {
        as_ = std::move(worker);
        return *this;
    }
    queue_options &prefetch(uint32_t count)
    {
        raw_.prefetch = count;
        return *this;
    }
    queue_options &ttl(milliseconds span)
    {
        raw_.ttl_ms = span.count();
        return *this;
    }
    queue_options &limit(milliseconds span)
    {
        raw_.limit_ms = span.count();
        return *this;
    }
    /* How safe pushes and acks are: "async" or "wait:K". */
    queue_options &durability(std::string level)
    {
        durability_ = std::move(level);
        return *this;
    }
    /* Called with a delivery that is lost, on a thread of the client; see
     * dibs_item_lost_fn. It must not throw. */
    queue_options &on_lost(std::function<void(dibs_item *)> fn)
    {
        on_lost_ = std::move(fn);
        return *this;
    }

  private:
    friend class queue;

    dibs_queue_opts raw_;
    std::string as_, durability_;
    std::function<void(dibs_item *)> on_lost_;
};

/* Options of a push. */
class push_options
{
  public:
    push_options() : raw_()
    {
        raw_.size = sizeof(raw_);
    }
    push_options &delay(milliseconds span)
    {
        raw_.delay_ms = span.count();
        return *this;
    }
    push_options &priority(int32_t value)
    {
        raw_.priority = value;
        return *this;
    }
    push_options &tries(uint32_t count)
    {
        raw_.tries = count;
        return *this;
    }
    push_options &dedup(std::string id, milliseconds window = milliseconds(0))
    {
        dedup_ = std::move(id);
        raw_.dedup_ms = window.count();
        return *this;
    }
    push_options &to(std::string worker)
    {
        to_ = std::move(worker);
        return *this;
    }
    /* Workers see it with the data; may be called several times. */
    push_options &header(const std::string &key, const std::string &value)
    {
        headers_.push_back(key + "=" + value);
        return *this;
    }
    /* While the queue is full. */
    push_options &wait(milliseconds span)
    {
        raw_.wait_ms = span.count();
        return *this;
    }

  private:
    friend class queue;

    /* Calls call(opts) with the C options, which are valid during the call only. */
    template <typename Call> void use(Call call) const
    {
        dibs_push_opts opts = raw_;
        std::vector<const char *> texts;

        for (const std::string &text : headers_)
            texts.push_back(text.c_str());
        texts.push_back(nullptr);
        opts.headers = texts.data();
        if (!dedup_.empty())
            opts.dedup_id = dedup_.c_str();
        if (!to_.empty())
            opts.to = to_.c_str();
        call(&opts);
    }

    dibs_push_opts raw_;
    std::string dedup_, to_;
    std::vector<std::string> headers_;
};

/* The outcome of a push: the id of the item. A duplicate made no item: then the id is that
 * of the item that has the dedup id. */
using pushed = dibs_pushed;

/* One delivery. An item that is not settled comes back when it is destroyed. */
class item
{
  public:
    item() = default;
    explicit item(dibs_item *raw) : item_(raw)
    {
    }
    explicit operator bool() const noexcept
    {
        return static_cast<bool>(item_);
    }
    std::string data() const
    {
        size_t len = 0;
        const void *bytes = dibs_item_data(get(), &len);

        return std::string(static_cast<const char *>(bytes), len);
    }
    /* "": there is none. */
    std::string header(const std::string &key) const
    {
        const char *value = dibs_item_header(get(), key.c_str());

        return value ? value : "";
    }
    uint64_t id() const noexcept
    {
        return dibs_item_id(get());
    }
    uint64_t fence() const noexcept
    {
        return dibs_item_fence(get());
    }
    uint32_t attempt() const noexcept
    {
        return dibs_item_attempt(get());
    }
    /* Whether the delivery is still this consumer's. */
    bool valid() const noexcept
    {
        return dibs_item_check(get()) == DIBS_OK;
    }
    void ack()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_item_ack(get(), &err), err);
    }
    /* With a result for its record; see dibs_item_ack_result(). */
    void ack(const std::string &result)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_item_ack_result(get(), result.c_str(), &err), err);
    }
    /* Without a delay: with backoff. */
    void nack(const std::string &reason = std::string(),
              milliseconds delay = milliseconds(-1))
    {
        dibs_error err = dibs_error();

        detail::must(dibs_item_nack(get(), delay.count(),
                                    reason.empty() ? nullptr : reason.c_str(),
                                    &err),
                     err);
    }
    void dead(const std::string &reason = std::string())
    {
        dibs_error err = dibs_error();

        detail::must(dibs_item_dead(get(),
                                    reason.empty() ? nullptr : reason.c_str(),
                                    &err),
                     err);
    }
    void extend(milliseconds limit)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_item_extend(get(), limit.count(), &err), err);
    }
    /* The token with which another process settles it; see queue::adopt(). */
    DIBS_MUST_CHECK std::string detach()
    {
        char token[DIBS_ITEM_TOKEN_SIZE];
        dibs_error err = dibs_error();

        detail::must(dibs_item_detach(get(), token, &err), err);
        return token;
    }
    dibs_item *get() const noexcept
    {
        return item_.get();
    }

  private:
    friend class queue;

    struct freer {
        void operator()(dibs_item *raw) const noexcept
        {
            dibs_item_free(raw);
        }
    };
    std::unique_ptr<dibs_item, freer> item_;
};

/* This client's part in one queue.
 *
 *     dibs::queue jobs(db, "jobs");
 *     jobs.push("resize 42");
 *     while (dibs::item job = jobs.reserve()) {
 *         resize(job.data(), job.fence());
 *         job.ack();
 *     } */
class queue
{
  public:
    queue(const client &cl, const std::string &name,
          const queue_options &options = queue_options())
        : lost_(new std::function<void(dibs_item *)>(options.on_lost_))
    {
        dibs_queue_opts opts = options.raw_;
        dibs_queue *made = nullptr;
        dibs_error err = dibs_error();

        if (!options.as_.empty())
            opts.as = options.as_.c_str();
        if (!options.durability_.empty())
            opts.durability = options.durability_.c_str();
        opts.on_lost = *lost_ ? call_lost : nullptr;
        opts.arg = lost_.get();
        detail::must(dibs_queue_new(cl.get(), name.c_str(), &opts, &made, &err),
                     err);
        queue_.reset(made);
    }
    queue(queue &&) noexcept = default;
    /* Frees the handle before its callback, which may be running. */
    queue &operator=(queue &&other) noexcept
    {
        queue_ = std::move(other.queue_);
        lost_ = std::move(other.lost_);
        return *this;
    }
    /* The id of the item, or of the one that has the dedup id. Throws with DIBS_FULL
     * and all else. */
    uint64_t
    push(const std::string &data, const push_options &options = push_options())
    {
        return push_told(data, options).id;
    }
    /* The same, and whether it is a duplicate. */
    pushed push_told(const std::string &data,
                     const push_options &options = push_options())
    {
        pushed told = pushed();
        dibs_error err = dibs_error();

        options.use([&](const dibs_push_opts *opts) {
            detail::must(dibs_queue_push(get(), data.data(), data.size(), opts,
                                         &told, &err),
                         err);
        });
        return told;
    }
    /* Up to DIBS_QUEUE_BATCH items with the same options: all or none. Their ids. */
    std::vector<uint64_t>
    push_many(const std::vector<std::string> &data,
              const push_options &options = push_options())
    {
        std::vector<uint64_t> ids;

        for (const pushed &one : push_many_told(data, options))
            ids.push_back(one.id);
        return ids;
    }
    /* The same, and for each one whether it is a duplicate. */
    std::vector<pushed>
    push_many_told(const std::vector<std::string> &data,
                   const push_options &options = push_options())
    {
        std::vector<dibs_push_item> items;
        std::vector<pushed> told(data.size());
        dibs_error err = dibs_error();

        for (const std::string &one : data)
            items.push_back({one.data(), one.size(), nullptr});
        options.use([&](const dibs_push_opts *opts) {
            detail::must(dibs_queue_push_many(get(), items.data(), items.size(),
                                              opts, told.data(), &err),
                         err);
        });
        return told;
    }
    /* An item that is false: none came in time, or cancelled. */
    DIBS_MUST_CHECK item reserve(milliseconds wait = milliseconds(-1))
    {
        dibs_item *raw = nullptr;
        dibs_error err = dibs_error();
        dibs_status rc = dibs_queue_reserve(get(), wait.count(), &raw, &err);

        if (rc != DIBS_BUSY && rc != DIBS_TIMEOUT && rc != DIBS_CANCELLED)
            detail::must(rc, err);
        return item(raw);
    }
    /* Up to `max` items, DIBS_QUEUE_BATCH at most; as soon as there is one. Empty: none
     * came in time, or cancelled. */
    DIBS_MUST_CHECK std::vector<item>
    reserve_many(std::size_t max, milliseconds wait = milliseconds(-1))
    {
        std::vector<dibs_item *> raw(max);
        std::vector<item> items;
        std::size_t count = 0;
        dibs_error err = dibs_error();
        dibs_status rc;

        items.reserve(max);
        rc = dibs_queue_reserve_many(get(), wait.count(), raw.data(), max,
                                     &count, &err);
        if (rc != DIBS_BUSY && rc != DIBS_TIMEOUT && rc != DIBS_CANCELLED)
            detail::must(rc, err);
        for (std::size_t i = 0; i < count; i++)
            items.emplace_back(raw[i]);
        return items;
    }
    /* The item of a token of item::detach(): it can be settled and extended. */
    DIBS_MUST_CHECK item adopt(const std::string &token)
    {
        dibs_item *raw = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_queue_adopt(get(), token.c_str(), &raw, &err), err);
        return item(raw);
    }
    /* Acks an item, and reserves the next one in its place, in one request. False:
     * acked, and none came in time. */
    DIBS_MUST_CHECK bool
    ack_next(item &done, milliseconds wait = milliseconds(-1))
    {
        dibs_item *raw = done.item_.release();
        dibs_error err = dibs_error();
        dibs_status rc = dibs_item_ack_next(&raw, wait.count(), &err);

        done.item_.reset(raw);
        if (rc == DIBS_BUSY || rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        return true;
    }
    /* Works on items with so many threads until cancel(). The function has the item as
     * a C handle. An exception is a failure: the item comes back later. */
    void work(uint32_t threads, std::function<dibs_status(dibs_item *)> fn)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_queue_work(get(), threads, &queue::run_one, &fn,
                                     &err),
                     err);
    }
    void cancel() noexcept
    {
        dibs_queue_cancel(get());
    }
    dibs_queue *get() const noexcept
    {
        return queue_.get();
    }

  private:
    static void call_lost(dibs_item *raw, void *arg) noexcept
    {
        (*static_cast<std::function<void(dibs_item *)> *>(arg))(raw);
    }
    static dibs_status run_one(dibs_item *raw, void *arg)
    {
        try {
            return (*static_cast<std::function<dibs_status(dibs_item *)> *>(
                arg))(raw);
        } catch (...) {
            return DIBS_INTERNAL;
        }
    }
    struct freer {
        void operator()(dibs_queue *queue) const noexcept
        {
            dibs_queue_free(queue);
        }
    };
    /* The handle points here as long as it exists. */
    std::unique_ptr<std::function<void(dibs_item *)>> lost_;
    std::unique_ptr<dibs_queue, freer> queue_;
};

} // namespace dibs

#endif
