/* lock.hpp - locks in C++. See dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LOCK_HPP
#define DIBS_LOCK_HPP

#include <cstdint>
#include <dibs/client.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* Options of a lock, as a chain: options().ttl(30s).wait(5s).shared(). An option
 * that is not set has its default. Callbacks run on a thread of the client and must
 * not throw. */
class options
{
  public:
    using callback = std::function<void(dibs_lock *)>;

    options() : raw_(dibs_lock_opts())
    {
    }
    options &ttl(milliseconds span)
    {
        return set(raw_.ttl_ms, span);
    }
    options &renew_every(milliseconds span)
    {
        return set(raw_.renew_every_ms, span);
    }
    /* The timeout of an acquire: 0 tries once. */
    options &wait(milliseconds span)
    {
        return set(raw_.wait_ms, span);
    }
    options &wait_forever()
    {
        return wait(milliseconds(-1));
    }
    options &retries(uint32_t count, milliseconds delay = milliseconds(0))
    {
        raw_.retries = count;
        return set(raw_.retry_delay_ms, delay);
    }
    options &hold(milliseconds least, milliseconds most = milliseconds(0))
    {
        raw_.hold_min_ms = least.count();
        return set(raw_.hold_max_ms, most);
    }
    options &lock_delay(milliseconds span)
    {
        return set(raw_.lock_delay_ms, span);
    }
    options &progress(milliseconds span)
    {
        return set(raw_.progress_ms, span);
    }
    /* "async" or "wait:K"; the text must be valid until the lock is made. */
    options &durability(const char *level)
    {
        raw_.durability = level;
        return *this;
    }
    options &shared()
    {
        raw_.mode = DIBS_SHARED;
        return *this;
    }
    options &permits(uint32_t count, uint32_t capacity)
    {
        raw_.mode = DIBS_PERMITS;
        raw_.permits = count;
        raw_.capacity = capacity;
        return *this;
    }
    options &reentrant()
    {
        return flag(DIBS_LOCK_REENTRANT);
    }
    options &sticky()
    {
        return flag(DIBS_LOCK_STICKY);
    }
    options &barge()
    {
        return flag(DIBS_LOCK_BARGE);
    }
    options &no_renew()
    {
        return flag(DIBS_LOCK_NO_RENEW);
    }
    options &priority(int32_t number)
    {
        raw_.priority = number;
        return *this;
    }
    options &label(std::string text)
    {
        label_ = std::move(text);
        return *this;
    }
    options &identity(std::string text)
    {
        identity_ = std::move(text);
        return *this;
    }
    /* "key=value" for listings; may be called several times. */
    options &meta(std::string text)
    {
        meta_.push_back(std::move(text));
        return *this;
    }
    options &on_lost(callback fn)
    {
        on_lost_ = std::move(fn);
        return *this;
    }
    options &on_yield(callback fn)
    {
        on_yield_ = std::move(fn);
        return *this;
    }

  private:
    friend class lock;
    friend class multi;

    /* The C handle points here as long as it exists. */
    struct callbacks {
        callback lost, yield;
    };
    static void call_lost(dibs_lock *lock, void *arg) noexcept
    {
        static_cast<callbacks *>(arg)->lost(lock);
    }
    static void call_yield(dibs_lock *lock, void *arg) noexcept
    {
        static_cast<callbacks *>(arg)->yield(lock);
    }
    options &set(int64_t &field, milliseconds span)
    {
        field = span.count();
        return *this;
    }
    options &flag(uint32_t bit)
    {
        raw_.flags |= bit;
        return *this;
    }
    std::unique_ptr<callbacks> keep() const
    {
        return std::unique_ptr<callbacks>(new callbacks{on_lost_, on_yield_});
    }
    /* Calls make(opts) with the C options, which are valid during the call only.
     * `kept` must outlive the handle. */
    template <typename Make> void use(callbacks *kept, Make make) const
    {
        dibs_lock_opts opts = raw_;
        std::vector<const char *> texts;

        for (const std::string &text : meta_)
            texts.push_back(text.c_str());
        texts.push_back(nullptr);
        opts.size = sizeof(opts);
        opts.meta = texts.data();
        opts.label = label_.empty() ? nullptr : label_.c_str();
        opts.identity = identity_.empty() ? nullptr : identity_.c_str();
        opts.on_lost = kept->lost ? call_lost : nullptr;
        opts.on_lost_arg = kept;
        opts.on_yield = kept->yield ? call_yield : nullptr;
        opts.on_yield_arg = kept;
        make(&opts);
    }

    dibs_lock_opts raw_;
    std::string label_, identity_;
    std::vector<std::string> meta_;
    callback on_lost_, on_yield_;
};

/* A handle on a name, not held at first. The destructor releases. */
class lock
{
  public:
    lock(const client &cl, const std::string &name,
         const options &opts = options())
        : kept_(opts.keep())
    {
        opts.use(kept_.get(), [&](const dibs_lock_opts *raw) {
            dibs_lock *made = nullptr;
            dibs_error err = dibs_error();

            detail::must(dibs_lock_new(cl.get(), name.c_str(), raw, &made,
                                       &err),
                         err);
            lock_.reset(made);
        });
    }
    lock(lock &&) noexcept = default;
    /* Frees the handle before its callbacks, of which one may be running. */
    lock &operator=(lock &&other) noexcept
    {
        lock_ = std::move(other.lock_);
        kept_ = std::move(other.kept_);
        return *this;
    }
    /* As dibs_lock_acquire(); throws if it is not granted. */
    void acquire()
    {
        dibs_error err = dibs_error();
        detail::must(acquire(err), err);
    }
    DIBS_MUST_CHECK dibs_status acquire(dibs_error &err) noexcept
    {
        return dibs_lock_acquire(get(), &err);
    }
    /* Without a wait. False: another owner holds the name. */
    DIBS_MUST_CHECK bool try_acquire()
    {
        dibs_error err = dibs_error();
        return detail::granted(try_acquire(err), err);
    }
    DIBS_MUST_CHECK dibs_status try_acquire(dibs_error &err) noexcept
    {
        return dibs_lock_try(get(), &err);
    }
    /* Ends the wait of an acquire on another thread. */
    void cancel() noexcept
    {
        dibs_lock_cancel(get());
    }
    /* DIBS_LOST: the lease had ended. Never throws. */
    dibs_status release(dibs_error *err = nullptr) noexcept
    {
        return dibs_lock_release(get(), err);
    }
    void renew()
    {
        dibs_error err = dibs_error();
        detail::must(dibs_lock_renew(get(), &err), err);
    }
    /* From reader to writer. False: other readers hold the name; still shared. */
    DIBS_MUST_CHECK bool upgrade()
    {
        dibs_error err = dibs_error();
        return detail::granted(dibs_lock_upgrade(get(), &err), err);
    }
    void downgrade()
    {
        dibs_error err = dibs_error();
        detail::must(dibs_lock_downgrade(get(), &err), err);
    }
    /* Hands the lease to another process, which passes the token to accept(). */
    DIBS_MUST_CHECK std::string transfer()
    {
        char token[DIBS_TOKEN_SIZE] = "";
        dibs_error err = dibs_error();

        detail::must(dibs_lock_transfer(get(), token, &err), err);
        return token;
    }
    void accept(const std::string &token)
    {
        dibs_error err = dibs_error();
        detail::must(dibs_lock_accept(get(), token.c_str(), &err), err);
    }
    void tick() noexcept
    {
        dibs_lock_tick(get());
    }
    /* 0: not held. */
    uint64_t fence() const noexcept
    {
        return dibs_lock_fence(get());
    }
    /* In the queue of an acquire on another thread; 0: none is known. */
    uint32_t place() const noexcept
    {
        return dibs_lock_place(get());
    }
    bool valid() const noexcept
    {
        return dibs_lock_check(get()) == DIBS_OK;
    }
    milliseconds valid_for() const noexcept
    {
        return milliseconds(dibs_lock_valid_ms(get()));
    }
    /* Call it before each side effect. Throws if the lease is not valid. */
    void check() const
    {
        if (!valid())
            throw error(DIBS_LOST, dibs_error());
    }
    int lost_fd() const noexcept
    {
        return dibs_lock_lost_fd(get());
    }
    dibs_lock *get() const noexcept
    {
        return lock_.get();
    }

  private:
    struct freer {
        void operator()(dibs_lock *lock) const noexcept
        {
            dibs_lock_free(lock);
        }
    };
    /* Destroyed after lock_: a callback may be running until then. */
    std::unique_ptr<options::callbacks> kept_;
    std::unique_ptr<dibs_lock, freer> lock_;
};

/* Several names, all or none; see dibs/multi.h. The destructor releases. */
class multi
{
  public:
    multi(const client &cl, const std::vector<std::string> &names,
          const options &opts = options())
        : kept_(opts.keep())
    {
        std::vector<const char *> texts;

        for (const std::string &name : names)
            texts.push_back(name.c_str());
        opts.use(kept_.get(), [&](const dibs_lock_opts *raw) {
            dibs_multi *made = nullptr;
            dibs_error err = dibs_error();

            detail::must(dibs_multi_new(cl.get(), texts.data(), texts.size(),
                                        raw, &made, &err),
                         err);
            multi_.reset(made);
        });
    }
    multi(multi &&) noexcept = default;
    /* Frees the handle before its callbacks, of which one may be running. */
    multi &operator=(multi &&other) noexcept
    {
        multi_ = std::move(other.multi_);
        kept_ = std::move(other.kept_);
        return *this;
    }
    void acquire()
    {
        dibs_error err = dibs_error();
        detail::must(acquire(err), err);
    }
    DIBS_MUST_CHECK dibs_status acquire(dibs_error &err) noexcept
    {
        return dibs_multi_acquire(get(), &err);
    }
    DIBS_MUST_CHECK bool try_acquire()
    {
        dibs_error err = dibs_error();
        return detail::granted(try_acquire(err), err);
    }
    DIBS_MUST_CHECK dibs_status try_acquire(dibs_error &err) noexcept
    {
        return dibs_multi_try(get(), &err);
    }
    void cancel() noexcept
    {
        dibs_multi_cancel(get());
    }
    dibs_status release(dibs_error *err = nullptr) noexcept
    {
        return dibs_multi_release(get(), err);
    }
    std::size_t size() const noexcept
    {
        return dibs_multi_count(get());
    }
    /* These throw std::out_of_range unless i is less than size(). */
    std::string name(std::size_t i) const
    {
        (void)lock_at(i);
        return dibs_multi_name(get(), i);
    }
    uint64_t fence(std::size_t i) const
    {
        return dibs_lock_fence(lock_at(i));
    }
    int lost_fd(std::size_t i) const
    {
        return dibs_lock_lost_fd(lock_at(i));
    }
    bool valid() const noexcept
    {
        return dibs_multi_check(get()) == DIBS_OK;
    }
    milliseconds valid_for() const noexcept
    {
        return milliseconds(dibs_multi_valid_ms(get()));
    }
    void check() const
    {
        if (!valid())
            throw error(DIBS_LOST, dibs_error());
    }
    dibs_multi *get() const noexcept
    {
        return multi_.get();
    }

  private:
    dibs_lock *lock_at(std::size_t i) const
    {
        dibs_lock *found = dibs_multi_lock(get(), i);

        if (!found)
            throw std::out_of_range("dibs::multi has no lock with this number");
        return found;
    }
    struct freer {
        void operator()(dibs_multi *multi) const noexcept
        {
            dibs_multi_free(multi);
        }
    };
    std::unique_ptr<options::callbacks> kept_;
    std::unique_ptr<dibs_multi, freer> multi_;
};

/* The constructor acquires T (a lock or a multi), the destructor releases it:
 *
 *     dibs::scoped_lock held(db, "report", options);                // throws
 *     dibs::scoped_lock held(std::nothrow, db, "report", options);  // test it
 *     if (!held) return held.status();
 *
 * With std::nothrow only bad options and a lack of memory throw. */
template <typename T> class scoped : public T
{
  public:
    template <typename... Args>
    explicit scoped(const client &cl, Args &&...args)
        : T(cl, std::forward<Args>(args)...), status_(DIBS_OK), err_()
    {
        T::acquire();
    }
    template <typename... Args>
    scoped(std::nothrow_t, const client &cl, Args &&...args)
        : T(cl, std::forward<Args>(args)...), status_(DIBS_OK), err_()
    {
        status_ = T::acquire(err_);
    }
    /* True if the acquire succeeded; valid() tells whether the lease still is. */
    explicit operator bool() const noexcept
    {
        return status_ == DIBS_OK;
    }
    dibs_status status() const noexcept
    {
        return status_;
    }
    const dibs_error &why() const noexcept
    {
        return err_;
    }

  private:
    dibs_status status_;
    dibs_error err_;
};

using scoped_lock = scoped<lock>;
using scoped_multi = scoped<multi>;

} // namespace dibs

#endif
