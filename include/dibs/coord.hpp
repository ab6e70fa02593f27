/* coord.hpp - coordination in C++: watches, elections, groups, barriers, latches, limits, breakers
 * and the health check. See dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_HPP
#define DIBS_COORD_HPP

#include <cstdint>
#include <dibs/client.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* A report of a watch. */
struct change {
    std::string data;
    uint64_t version = 0; /* 0: there is no value (any more) */
    bool merged = false;  /* other changes may have come since the last */
    bool back = false;    /* the store lost data */
};

/* A watch of one value; see dibs/state.h.
 *
 *     dibs::watch progress(db, "progress:42");
 *     dibs::change now;
 *     while (progress.next(now, 30s)) show(now.data); */
class watch
{
  public:
    watch(const client &cl, const std::string &key)
    {
        dibs_watch *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_state_watch(cl.get(), key.c_str(), &made, &err), err);
        watch_.reset(made);
    }
    /* False: no change in time, or cancelled. */
    DIBS_MUST_CHECK bool next(change &out, milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_status rc = next(out, wait, err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        return true;
    }
    DIBS_MUST_CHECK dibs_status next(change &out, milliseconds wait,
                                     dibs_error &err)
    {
        dibs_change raw = dibs_change();
        dibs_status rc = dibs_watch_next(get(), wait.count(), &raw, &err);
        std::unique_ptr<dibs_change, cleaner> kept(&raw);

        if (rc != DIBS_OK)
            return rc;
        out.data.clear();
        if (raw.value.data)
            out.data.assign(static_cast<const char *>(raw.value.data),
                            raw.value.len);
        out.version = raw.value.version;
        out.merged = raw.merged;
        out.back = raw.back;
        return rc;
    }
    void cancel() noexcept
    {
        dibs_watch_cancel(get());
    }
    dibs_watch *get() const noexcept
    {
        return watch_.get();
    }

  private:
    struct freer {
        void operator()(dibs_watch *watch) const noexcept
        {
            dibs_watch_free(watch);
        }
    };
    struct cleaner {
        void operator()(dibs_change *raw) const noexcept
        {
            dibs_value_free(&raw->value);
        }
    };
    std::unique_ptr<dibs_watch, freer> watch_;
};

/* A bell, which commits ring (commit::ring); see dibs/state.h. */
class bell
{
  public:
    bell(const client &cl, const std::string &name)
    {
        dibs_bell *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_bell_new(cl.get(), name.c_str(), &made, &err), err);
        bell_.reset(made);
    }
    /* False: the store cannot be heard now. */
    DIBS_MUST_CHECK bool listen()
    {
        dibs_error err = dibs_error();
        dibs_status rc = dibs_bell_listen(get(), &err);

        if (rc == DIBS_UNAVAIL || rc == DIBS_DENIED)
            return false;
        detail::must(rc, err);
        return true;
    }
    int fd() const noexcept
    {
        return dibs_bell_fd(get());
    }
    /* True: rings may have been lost. */
    bool clear() noexcept
    {
        return dibs_bell_clear(get());
    }
    dibs_bell *get() const noexcept
    {
        return bell_.get();
    }

  private:
    struct freer {
        void operator()(dibs_bell *bell) const noexcept
        {
            dibs_bell_free(bell);
        }
    };
    std::unique_ptr<dibs_bell, freer> bell_;
};

/* A candidate of an election; see dibs/elect.h. The destructor resigns.
 *
 *     dibs::election election(db, "scheduler");
 *     while (election.wait())
 *         while (election.leads()) schedule_next(election.term()); */
class election
{
  public:
    election(const client &cl, const std::string &name,
             dibs_election_opts opts = dibs_election_opts())
    {
        dibs_election *made = nullptr;
        dibs_error err = dibs_error();

        opts.size = sizeof(opts);
        detail::must(dibs_election_new(cl.get(), name.c_str(), &opts, &made,
                                       &err),
                     err);
        election_.reset(made);
    }
    void campaign()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_election_campaign(get(), &err), err);
    }
    /* False: it does not lead in time, or campaigns no more. */
    DIBS_MUST_CHECK bool wait(milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_status rc = dibs_election_wait(get(), wait.count(), &err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED || rc == DIBS_LOST)
            return false;
        detail::must(rc, err);
        return true;
    }
    DIBS_MUST_CHECK bool leads() const noexcept
    {
        return dibs_election_check(get()) == DIBS_OK;
    }
    uint64_t term() const noexcept
    {
        return dibs_election_term(get());
    }
    int lost_fd() noexcept
    {
        return dibs_election_lost_fd(get());
    }
    void stopped() noexcept
    {
        dibs_election_stopped(get());
    }
    void resign()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_election_resign(get(), &err), err);
    }
    void transfer(const std::string &member)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_election_transfer(get(), member.c_str(), &err), err);
    }
    dibs_election *get() const noexcept
    {
        return election_.get();
    }

  private:
    struct freer {
        void operator()(dibs_election *election) const noexcept
        {
            dibs_election_free(election);
        }
    };
    std::unique_ptr<dibs_election, freer> election_;
};

/* Looks who leads; term is 0 if nobody does. */
inline dibs_leader get_leader(const client &cl, const std::string &name)
{
    dibs_leader found = dibs_leader();
    dibs_error err = dibs_error();
    dibs_status rc = dibs_leader_get(cl.get(), name.c_str(), &found, &err);

    if (rc != DIBS_NOTFOUND)
        detail::must(rc, err);
    return found;
}

/* A watch of who leads; see dibs/elect.h.
 *
 *     dibs::leader_watch watch(db, "scheduler");
 *     dibs_leader now;
 *     while (watch.next(now)) use(now.member); */
class leader_watch
{
  public:
    leader_watch(const client &cl, const std::string &name)
    {
        dibs_leader_watch *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(
            dibs_leader_watch_new(cl.get(), name.c_str(), &made, &err), err);
        watch_.reset(made);
    }
    /* False: no change in time, or cancelled. */
    DIBS_MUST_CHECK bool
    next(dibs_leader &out, milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_status rc =
            dibs_leader_watch_next(get(), wait.count(), &out, &err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        return true;
    }
    void cancel() noexcept
    {
        dibs_leader_watch_cancel(get());
    }
    dibs_leader_watch *get() const noexcept
    {
        return watch_.get();
    }

  private:
    struct freer {
        void operator()(dibs_leader_watch *watch) const noexcept
        {
            dibs_leader_watch_free(watch);
        }
    };
    std::unique_ptr<dibs_leader_watch, freer> watch_;
};

/* A member of a group, as long as the object lives; see dibs/members.h.
 *
 *     dibs::member me(db, "workers"); */
class member
{
  public:
    member(const client &cl, const std::string &group,
           dibs_member_opts opts = dibs_member_opts())
    {
        dibs_member *made = nullptr;
        dibs_error err = dibs_error();

        opts.size = sizeof(opts);
        detail::must(dibs_member_join(cl.get(), group.c_str(), &opts, &made,
                                      &err),
                     err);
        member_.reset(made);
    }
    bool seated() const noexcept
    {
        return dibs_member_check(get()) == DIBS_OK;
    }
    /* For so long opts.minimum members have a seat; 0: too few. */
    milliseconds enough() const noexcept
    {
        return milliseconds(dibs_member_enough_ms(get()));
    }
    /* The fencing token of the seat; 0: it has none. */
    uint64_t fence() const noexcept
    {
        return dibs_member_fence(get());
    }
    /* Asks the store. False: fewer than opts.minimum members have a seat. Throws with
     * DIBS_LOST if this one has none. */
    DIBS_MUST_CHECK bool recount()
    {
        dibs_error err = dibs_error();

        return detail::granted(dibs_member_recount(get(), &err), err);
    }
    dibs_member *get() const noexcept
    {
        return member_.get();
    }

  private:
    struct leaver {
        void operator()(dibs_member *member) const noexcept
        {
            dibs_member_leave(member);
        }
    };
    std::unique_ptr<dibs_member, leaver> member_;
};

/* The names of the members of a group, in the order in which they joined. */
inline std::vector<std::string>
members(const client &cl, const std::string &group)
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_member_fn *note = [](const dibs_member_info *info, void *arg) {
        return detail::add_name(arg, info->member);
    };
    dibs_status rc =
        dibs_members_list(cl.get(), group.c_str(), note, &found, &err);

    found.must(rc == DIBS_NOTFOUND ? DIBS_OK : rc, err);
    return std::move(found.all);
}

/* A member of a group, as others see it; see dibs/members.h. */
struct member_view {
    std::string member, host, label;
    std::string meta; /* "key=value" texts, separated by tabs */
    int64_t pid;
    uint64_t fence;
    int64_t since_wall_us;
    milliseconds left; /* of its seat, if the member does not keep it */
    bool counts;       /* for opts.minimum of others */
};

/* The members of a group, in the order in which they joined. */
inline std::vector<member_view>
list_members(const client &cl, const std::string &group)
{
    using views = detail::gathered<std::vector<member_view>>;
    views found;
    dibs_error err = dibs_error();
    dibs_member_fn *note = [](const dibs_member_info *info, void *arg) {
        return views::add(arg, [info](std::vector<member_view> &to) {
            to.push_back({info->member, info->host, info->label, info->meta,
                          info->pid, info->fence, info->since_wall_us,
                          milliseconds(info->left_ms), info->counts});
            return true;
        });
    };
    dibs_status rc =
        dibs_members_list(cl.get(), group.c_str(), note, &found, &err);

    found.must(rc == DIBS_NOTFOUND ? DIBS_OK : rc, err);
    return std::move(found.all);
}

/* The names of the groups that begin so, in the order of their bytes. */
inline std::vector<std::string>
groups(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_group_fn *note = [](const dibs_group_info *info, void *arg) {
        return detail::add_name(arg, info->group);
    };

    found.must(dibs_group_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

/* Options of a barrier; see dibs/barrier.h. */
class barrier_options
{
  public:
    explicit barrier_options(uint32_t parties) : raw_()
    {
        raw_.size = sizeof(raw_);
        raw_.parties = parties;
    }
    barrier_options &ttl(milliseconds span)
    {
        raw_.ttl_ms = span.count();
        return *this;
    }
    barrier_options &wait(milliseconds span)
    {
        raw_.wait_ms = span.count();
        return *this;
    }
    barrier_options &withdraw()
    {
        raw_.flags |= DIBS_BARRIER_WITHDRAW;
        return *this;
    }
    barrier_options &label(std::string text)
    {
        label_ = std::move(text);
        return *this;
    }

  private:
    friend class barrier;

    dibs_barrier_opts raw_;
    std::string label_;
};

/* One party of a barrier; see dibs/barrier.h.
 *
 *     dibs::barrier phases(db, "phases", dibs::barrier_options(5));
 *     for (int i = 0; i < 10; i++) {
 *         work(i);
 *         phases.wait();
 *     } */
class barrier
{
  public:
    barrier(const client &cl, const std::string &name,
            const barrier_options &options)
    {
        dibs_barrier_opts opts = options.raw_;
        dibs_barrier *made = nullptr;
        dibs_error err = dibs_error();

        if (!options.label_.empty())
            opts.label = options.label_.c_str();
        detail::must(dibs_barrier_new(cl.get(), name.c_str(), &opts, &made,
                                      &err),
                     err);
        barrier_.reset(made);
    }
    /* The generation that opened. Throws with DIBS_BROKEN, DIBS_TIMEOUT and all
     * else. */
    uint64_t wait()
    {
        dibs_error err = dibs_error();
        uint64_t generation = 0;

        detail::must(dibs_barrier_wait(get(), &generation, &err), err);
        return generation;
    }
    /* The same, with the outcome as a status. */
    DIBS_MUST_CHECK dibs_status wait(dibs_error &err) noexcept
    {
        return dibs_barrier_wait(get(), nullptr, &err);
    }
    void cancel() noexcept
    {
        dibs_barrier_cancel(get());
    }
    dibs_barrier *get() const noexcept
    {
        return barrier_.get();
    }

  private:
    struct freer {
        void operator()(dibs_barrier *barrier) const noexcept
        {
            dibs_barrier_free(barrier);
        }
    };
    std::unique_ptr<dibs_barrier, freer> barrier_;
};

/* A barrier and the parties that have a seat; see dibs/barrier.h. */
struct barrier_view {
    struct party {
        std::string who;
        bool arrived;
        milliseconds left; /* until its seat ends, if it is not renewed */
    };
    dibs_barrier_state state;
    std::vector<party> parties; /* the one that sat first first */
};

/* Throws with DIBS_NOTFOUND if no party has a seat. */
inline barrier_view show_barrier(const client &cl, const std::string &name)
{
    using view = detail::gathered<barrier_view>;
    view found;
    dibs_error err = dibs_error();
    dibs_barrier_party_fn *note = [](const dibs_barrier_party *party,
                                     void *arg) {
        return view::add(arg, [party](barrier_view &to) {
            to.parties.push_back(
                {party->who, party->arrived, milliseconds(party->left_ms)});
            return true;
        });
    };

    found.must(dibs_barrier_show(cl.get(), name.c_str(), &found.all.state, note,
                                 &found, &err),
               err);
    return std::move(found.all);
}

/* The names of the barriers that begin so, in the order of their bytes. */
inline std::vector<std::string>
barriers(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_barrier_fn *note = [](const char *name, const dibs_barrier_state *,
                               void *arg) {
        return detail::add_name(arg, name);
    };

    found.must(dibs_barrier_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

/* A latch; see dibs/latch.h.
 *
 *     dibs::latch batch(db, "batch:42", 100);
 *     batch.count_down(job_id);             // each job
 *     if (batch.wait(1h)) process_results(); */
class latch
{
  public:
    latch(const client &cl, std::string name, uint32_t count)
        : cl_(cl.get()), name_(std::move(name)), count_(count)
    {
    }
    /* How many are left. Without an id the call has one of its own. */
    uint32_t count_down(const std::string &id = std::string())
    {
        dibs_error err = dibs_error();
        uint32_t left = 0;

        detail::must(dibs_latch_count_down(cl_, name_.c_str(), count_,
                                           id.empty() ? nullptr : id.c_str(),
                                           &left, &err),
                     err);
        return left;
    }
    /* The same for the generation that show() had. Throws with DIBS_STALE after a
     * reset. */
    uint32_t count_down_in(uint64_t generation,
                           const std::string &id = std::string())
    {
        dibs_latch_state state = dibs_latch_state();
        dibs_error err = dibs_error();

        detail::must(
            dibs_latch_count_down_in(cl_, name_.c_str(), count_, generation,
                                     id.empty() ? nullptr : id.c_str(), &state,
                                     &err),
            err);
        return state.left;
    }
    /* False: it did not open in time, or the client was closed. */
    DIBS_MUST_CHECK bool wait(milliseconds wait = milliseconds(-1))
    {
        dibs_error err = dibs_error();
        dibs_status rc =
            dibs_latch_wait(cl_, name_.c_str(), count_, wait.count(), &err);

        if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
            return false;
        detail::must(rc, err);
        return true;
    }
    void reset()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_latch_reset(cl_, name_.c_str(), &err), err);
    }
    /* Throws with DIBS_NOTFOUND if nobody has counted. */
    DIBS_MUST_CHECK dibs_latch_state show() const
    {
        dibs_latch_state state = dibs_latch_state();
        dibs_error err = dibs_error();

        detail::must(dibs_latch_show(cl_, name_.c_str(), &state, &err), err);
        return state;
    }

  private:
    dibs_client *cl_;
    std::string name_;
    uint32_t count_;
};

/* The names of the latches that begin so, in the order of their bytes. */
inline std::vector<std::string>
latches(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_latch_fn *note = [](const char *name, const dibs_latch_state *,
                             void *arg) {
        return detail::add_name(arg, name);
    };

    found.must(dibs_latch_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

/* Options of a limit; see dibs/limit.h. */
class limit_options
{
  public:
    /* `count` tokens in each period. */
    explicit limit_options(int64_t count,
                           milliseconds period = milliseconds(1000))
        : raw_()
    {
        raw_.size = sizeof(raw_);
        raw_.count = count;
        raw_.period_ms = period.count();
    }
    limit_options &burst(int64_t tokens)
    {
        raw_.burst = tokens;
        return *this;
    }
    limit_options &wait(milliseconds span)
    {
        raw_.wait_ms = span.count();
        return *this;
    }
    limit_options &chunk(int64_t tokens)
    {
        raw_.chunk = tokens;
        return *this;
    }
    limit_options &on_unavailable(dibs_away policy, int64_t clients = 1)
    {
        raw_.on_unavailable = policy;
        raw_.clients = clients;
        return *this;
    }
    const dibs_limit_opts *get() const noexcept
    {
        return &raw_;
    }

  private:
    dibs_limit_opts raw_;
};

/* A rate limit; see dibs/limit.h.
 *
 *     dibs::limit sms(db, "sms-gateway", dibs::limit_options(100).burst(20));
 *     if (sms.take()) send(); else later(sms.retry()); */
class limit
{
  public:
    limit(const client &cl, const std::string &name, const limit_options &opts)
    {
        dibs_limit *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_limit_new(cl.get(), name.c_str(), opts.get(), &made,
                                    &err),
                     err);
        limit_.reset(made);
    }
    /* False: over the limit. */
    DIBS_MUST_CHECK bool take(int64_t n = 1)
    {
        dibs_error err = dibs_error();

        return detail::granted(take(n, err), err);
    }
    DIBS_MUST_CHECK dibs_status take(int64_t n, dibs_error &err)
    {
        return dibs_limit_take(get(), n, &err);
    }
    milliseconds retry() const noexcept
    {
        return milliseconds(dibs_limit_retry_ms(get()));
    }
    /* The tokens left after the last answer of the store. */
    int64_t remaining() const noexcept
    {
        return dibs_limit_remaining(get());
    }
    dibs_limit *get() const noexcept
    {
        return limit_.get();
    }

  private:
    struct freer {
        void operator()(dibs_limit *limit) const noexcept
        {
            dibs_limit_free(limit);
        }
    };
    std::unique_ptr<dibs_limit, freer> limit_;
};

/* The names of the limits that begin so and of which tokens are out, in the order of
 * their bytes. */
inline std::vector<std::string>
limits(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_limit_fn *note = [](const dibs_limit_info *info, void *arg) {
        return detail::add_name(arg, info->name);
    };

    found.must(dibs_limit_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

/* The result of a health check; see dibs/health.h. */
struct health {
    struct part {
        std::string name;
        dibs_part_result result;
        dibs_status status;
        std::chrono::microseconds took;
        std::string detail;
    };
    dibs_health level;
    std::string reason; /* of an unhealthy store; else empty */
    std::vector<part> parts;

    bool healthy() const noexcept
    {
        return level == DIBS_HEALTHY;
    }
};

/* Checks the store, and a leader and members if they are named. An unhealthy store
 * is a result; only malformed arguments throw.
 *
 *     dibs::health now = dibs::check_health(db, "scheduler"); */
inline health
check_health(const client &cl, const std::string &election = std::string(),
             const std::string &group = std::string(),
             milliseconds slow = milliseconds(0))
{
    using report = detail::gathered<health>;
    report found;
    dibs_error err = dibs_error();
    dibs_health_opts opts = dibs_health_opts();
    dibs_status rc;

    opts.size = sizeof(opts);
    opts.election = election.empty() ? nullptr : election.c_str();
    opts.group = group.empty() ? nullptr : group.c_str();
    opts.slow_ms = slow.count();
    opts.arg = &found;
    opts.each = [](const dibs_health_part *part, void *arg) {
        (void)report::add(arg, [part](health &to) {
            to.parts.push_back({part->name, part->result, part->status,
                                std::chrono::microseconds(part->took_us),
                                part->detail});
            return true;
        });
    };
    rc = dibs_health_check(cl.get(), &opts, &found.all.level, &err);
    found.rethrow();
    if (found.all.parts.empty())
        detail::must(rc, err);
    if (rc != DIBS_OK)
        found.all.reason = err.message;
    return std::move(found.all);
}

/* Options of a breaker; see dibs/breaker.h. */
class breaker_options
{
  public:
    breaker_options() : raw_()
    {
        raw_.size = sizeof(raw_);
    }
    breaker_options &threshold(int64_t bad_calls)
    {
        raw_.threshold = bad_calls;
        return *this;
    }
    breaker_options &rate(int64_t percent, int64_t min_calls = 0)
    {
        raw_.rate_percent = percent;
        raw_.min_calls = min_calls;
        return *this;
    }
    breaker_options &slow(milliseconds from, int64_t percent = 0)
    {
        raw_.slow_ms = from.count();
        raw_.slow_percent = percent;
        return *this;
    }
    breaker_options &sampling(milliseconds span)
    {
        raw_.sampling_ms = span.count();
        return *this;
    }
    breaker_options &recovery(milliseconds span)
    {
        raw_.recovery_ms = span.count();
        return *this;
    }
    breaker_options &probes(int64_t at_a_time, int64_t need = 0)
    {
        raw_.probes = at_a_time;
        raw_.need = need;
        return *this;
    }
    breaker_options &probe_ttl(milliseconds span)
    {
        raw_.probe_ttl_ms = span.count();
        return *this;
    }
    breaker_options &min_clients(int64_t clients)
    {
        raw_.min_clients = clients;
        return *this;
    }
    breaker_options &ramp(milliseconds span)
    {
        raw_.ramp_ms = span.count();
        return *this;
    }
    /* A function, or a lambda that captures nothing. */
    breaker_options &on_change(dibs_breaker_fn *fn, void *arg = nullptr)
    {
        raw_.on_change = fn;
        raw_.arg = arg;
        return *this;
    }
    const dibs_breaker_opts *get() const noexcept
    {
        return &raw_;
    }

  private:
    dibs_breaker_opts raw_;
};

/* A circuit breaker; see dibs/breaker.h.
 *
 *     dibs::breaker payments(db, "payments", dibs::breaker_options().threshold(5));
 *     if (auto call = payments.enter()) call.good(pay(order)); else fallback(); */
class breaker
{
  public:
    /* One call that passed, or none. It measures how long it takes. One that ends
     * without good() and without drop(), such as by an exception, was bad. */
    class call
    {
      public:
        call(call &&other) noexcept
            : breaker_(other.breaker_), pass_(other.pass_), begun_(other.begun_)
        {
            other.breaker_ = nullptr;
        }
        call(const call &) = delete;
        call &operator=(const call &) = delete;
        call &operator=(call &&) = delete;
        ~call()
        {
            good(false);
        }
        explicit operator bool() const noexcept
        {
            return breaker_ != nullptr;
        }
        /* Says how it ended; only the first counts. */
        void good(bool was_good = true) noexcept
        {
            using std::chrono::steady_clock;

            if (breaker_)
                dibs_breaker_leave_after(
                    breaker_, &pass_, was_good,
                    std::chrono::duration_cast<milliseconds>(
                        steady_clock::now() - begun_)
                        .count());
            breaker_ = nullptr;
        }
        /* It counts for nothing. The permit of a probe is free after probe_ttl. */
        void drop() noexcept
        {
            breaker_ = nullptr;
        }

      private:
        friend class breaker;
        call(dibs_breaker *of, const dibs_pass &pass)
            : breaker_(of), pass_(pass),
              begun_(std::chrono::steady_clock::now())
        {
        }
        dibs_breaker *breaker_;
        dibs_pass pass_;
        std::chrono::steady_clock::time_point begun_;
    };

    breaker(const client &cl, const std::string &name,
            const breaker_options &opts = breaker_options())
    {
        dibs_breaker *made = nullptr;
        dibs_error err = dibs_error();

        detail::must(dibs_breaker_new(cl.get(), name.c_str(), opts.get(), &made,
                                      &err),
                     err);
        breaker_.reset(made);
    }
    /* False as a condition: open. */
    DIBS_MUST_CHECK call enter()
    {
        dibs_pass pass = dibs_pass();
        dibs_error err = dibs_error();
        bool passed =
            detail::granted(dibs_breaker_enter(get(), &pass, &err), err);

        return call(passed ? get() : nullptr, pass);
    }
    void force(dibs_breaker_state state)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_breaker_force(get(), state, &err), err);
    }
    DIBS_MUST_CHECK dibs_breaker_info info() const
    {
        dibs_breaker_info out = dibs_breaker_info();
        dibs_error err = dibs_error();

        detail::must(dibs_breaker_get(get(), &out, &err), err);
        return out;
    }
    milliseconds retry() const noexcept
    {
        return milliseconds(dibs_breaker_retry_ms(get()));
    }
    dibs_breaker *get() const noexcept
    {
        return breaker_.get();
    }

  private:
    struct freer {
        void operator()(dibs_breaker *made) const noexcept
        {
            dibs_breaker_free(made);
        }
    };
    std::unique_ptr<dibs_breaker, freer> breaker_;
};

/* The names of the breakers that begin so and are open, or have closed within a day, in
 * the order of their bytes. */
inline std::vector<std::string>
breakers(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_breaker_each_fn *note = [](const char *name, const dibs_breaker_info *,
                                    void *arg) {
        return detail::add_name(arg, name);
    };

    found.must(dibs_breaker_list(cl.get(), begins.c_str(), note, &found, &err), err);
    return std::move(found.all);
}

} // namespace dibs

#endif
