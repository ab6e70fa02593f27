/* state.hpp - values, commits and indexes in C++. See dibs/dibs.hpp and dibs/state.h;
 * watches are in dibs/coord.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STATE_HPP
#define DIBS_STATE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <dibs/client.hpp>
#include <dibs/state.h>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* A value with its version; 0: there is none. */
struct value {
    std::string data;
    uint64_t version = 0;
    int64_t expires_ms = -1;
};

namespace detail
{
/* Frees values also when a copy of one throws. */
struct raw_values {
    explicit raw_values(std::size_t count) : all(count)
    {
    }
    raw_values(const raw_values &) = delete;
    raw_values &operator=(const raw_values &) = delete;
    ~raw_values()
    {
        for (dibs_value &one : all)
            dibs_value_free(&one);
    }
    value copy(std::size_t i) const
    {
        value out;

        if (all[i].data)
            out.data.assign(static_cast<const char *>(all[i].data),
                            all[i].len);
        out.version = all[i].version;
        out.expires_ms = all[i].version ? all[i].expires_ms : -1;
        return out;
    }
    std::vector<dibs_value> all;
};
} // namespace detail

/* Version 0: there is none. */
inline value get_value(const client &cl, const std::string &key)
{
    detail::raw_values raw(1);
    dibs_error err = dibs_error();
    dibs_status rc =
        dibs_state_get(cl.get(), key.c_str(), raw.all.data(), &err);

    if (rc != DIBS_NOTFOUND)
        detail::must(rc, err);
    return raw.copy(0);
}

/* Its version. */
inline uint64_t set_value(const client &cl, const std::string &key,
                          const std::string &data,
                          milliseconds ttl = milliseconds(0))
{
    uint64_t version = 0;
    dibs_error err = dibs_error();

    detail::must(dibs_state_set(cl.get(), key.c_str(), data.data(), data.size(),
                                ttl.count(), &version, &err),
                 err);
    return version;
}

/* Writes a value if it has this version; DIBS_VERSION_NONE: if there is none. False: it
 * has another one. `version` becomes the version of the value that is there now. */
DIBS_MUST_CHECK inline bool cas_value(const client &cl, const std::string &key,
                                      uint64_t &version,
                                      const std::string &data,
                                      milliseconds ttl = milliseconds(0))
{
    dibs_error err = dibs_error();
    dibs_status rc = dibs_state_cas(cl.get(), key.c_str(), version, data.data(),
                                    data.size(), ttl.count(), &version, &err);

    if (rc != DIBS_STALE)
        detail::must(rc, err);
    return rc == DIBS_OK;
}

/* The sum. */
inline int64_t
add_value(const client &cl, const std::string &key, int64_t delta = 1)
{
    int64_t sum = 0;
    dibs_error err = dibs_error();

    detail::must(dibs_state_add(cl.get(), key.c_str(), delta, &sum, &err), err);
    return sum;
}

/* False: there is none, or it has another version than `expected`. */
inline bool erase_value(const client &cl, const std::string &key,
                        uint64_t expected = DIBS_VERSION_ANY)
{
    dibs_error err = dibs_error();
    dibs_status rc =
        dibs_state_delete(cl.get(), key.c_str(), expected, &err);

    if (rc != DIBS_NOTFOUND && rc != DIBS_STALE)
        detail::must(rc, err);
    return rc == DIBS_OK;
}

/* A value of a list. */
struct value_view {
    std::string key;
    std::size_t size;
    uint64_t version;
    int64_t expires_ms; /* -1: never */
};

/* The values whose keys begin so, in the order of their bytes. */
inline std::vector<value_view>
list_values(const client &cl, const std::string &begins = std::string())
{
    using views = detail::gathered<std::vector<value_view>>;
    views found;
    dibs_error err = dibs_error();
    dibs_state_fn *note = [](const dibs_state_item *item, void *arg) {
        return views::add(arg, [item](std::vector<value_view> &to) {
            to.push_back(
                {item->key, item->len, item->version, item->expires_ms});
            return true;
        });
    };

    found.must(dibs_state_list(cl.get(), begins.c_str(), note, &found, &err),
               err);
    return std::move(found.all);
}

/* Several changes, made together or not at all.
 *
 *     dibs::commit paid;
 *     paid.expect("{42}order", seen.version)
 *         .put("{42}order", "paid")
 *         .leave("{42}open", "7")
 *         .enter_in("{42}ship", "7", 1h);
 *     if (!paid.send(db)) merge(paid.found()); */
class commit
{
  public:
    /* The value must have this version; DIBS_VERSION_NONE: there must be none. */
    commit &expect(const std::string &key, uint64_t version)
    {
        dibs_commit_check check = dibs_commit_check();

        check.key = keep(key);
        check.version = version;
        checks_.push_back(check);
        return *this;
    }
    commit &put(const std::string &key, const std::string &data,
                milliseconds ttl = milliseconds(0))
    {
        dibs_commit_change &change = add(DIBS_COMMIT_PUT, key);

        change.data = keep(data);
        change.len = data.size();
        change.ttl_ms = ttl.count();
        return *this;
    }
    commit &erase(const std::string &key)
    {
        add(DIBS_COMMIT_DELETE, key);
        return *this;
    }
    /* `counted`: size() is wanted. */
    commit &enter(const std::string &index, const std::string &member,
                  int64_t at, bool counted = false)
    {
        dibs_commit_change &change = add(DIBS_COMMIT_ENTER, index);

        change.member = keep(member);
        change.at = at;
        change.counted = counted;
        return *this;
    }
    /* Its number is the moment so long from now, on the store's clock. */
    commit &enter_in(const std::string &index, const std::string &member,
                     std::chrono::microseconds span)
    {
        enter(index, member, span.count());
        changes_.back().from_now = true;
        return *this;
    }
    commit &leave(const std::string &index, const std::string &member)
    {
        add(DIBS_COMMIT_LEAVE, index).member = keep(member);
        return *this;
    }
    /* Rings a bell (coord.hpp). */
    commit &ring(const std::string &bell)
    {
        add(DIBS_COMMIT_RING, bell);
        return *this;
    }
    /* Moments on the store's clock, in microseconds. */
    commit &not_before(int64_t us)
    {
        raw_.not_before_us = us;
        return *this;
    }
    commit &not_after(int64_t us)
    {
        raw_.not_after_us = us;
        return *this;
    }

    /* False: refused, and status() says why: DIBS_STALE, DIBS_EARLY or DIBS_LATE.
     * Throws for all else; after DIBS_UNKNOWN the same commit may be sent again. */
    DIBS_MUST_CHECK bool send(const client &cl)
    {
        dibs_error err = dibs_error();
        dibs_status rc = send(cl, err);

        if (rc == DIBS_STALE || rc == DIBS_EARLY || rc == DIBS_LATE)
            return false;
        detail::must(rc, err);
        return true;
    }
    DIBS_MUST_CHECK dibs_status send(const client &cl, dibs_error &err)
    {
        detail::raw_values found(1);
        dibs_status rc;

        raw_.checks = checks_.data();
        raw_.check_count = checks_.size();
        raw_.changes = changes_.data();
        raw_.change_count = changes_.size();
        rc = dibs_state_commit(cl.get(), &raw_, 1, &err);
        std::swap(found.all[0], raw_.found);
        found_ = found.copy(0);
        return rc;
    }

    /* The answer. */
    dibs_status status() const noexcept
    {
        return raw_.rc;
    }
    uint64_t version() const noexcept
    {
        return raw_.version;
    }
    int64_t now_us() const noexcept
    {
        return raw_.now_us;
    }
    /* After DIBS_STALE: the key of the check that does not hold, and its value. */
    std::string failed() const
    {
        return raw_.rc == DIBS_STALE ? checks_[raw_.failed].key : "";
    }
    const value &found() const noexcept
    {
        return found_;
    }
    /* The members that an index has after the commit entered one and counted. */
    uint64_t size(const std::string &index) const
    {
        for (const dibs_commit_change &change : changes_)
            if (change.counted && index == change.name)
                return change.size;
        return 0;
    }

    commit() : raw_()
    {
    }
    commit(commit &&) = default;
    commit &operator=(commit &&) = default;
    commit(const commit &) = delete;
    commit &operator=(const commit &) = delete;

  private:
    /* A deque does not move what it has. */
    const char *keep(const std::string &text)
    {
        texts_.push_back(text);
        return texts_.back().c_str();
    }
    dibs_commit_change &add(dibs_commit_verb verb, const std::string &name)
    {
        dibs_commit_change change = dibs_commit_change();

        change.verb = verb;
        change.name = keep(name);
        changes_.push_back(change);
        return changes_.back();
    }

    dibs_commit raw_;
    std::deque<std::string> texts_;
    std::vector<dibs_commit_check> checks_;
    std::vector<dibs_commit_change> changes_;
    value found_;
};

/* Values as of one moment, in the order of the keys. */
inline std::vector<value>
get_many(const client &cl, const std::vector<std::string> &keys)
{
    std::vector<const char *> names;
    detail::raw_values raw(keys.size());
    std::vector<value> out;
    dibs_error err = dibs_error();

    for (const std::string &key : keys)
        names.push_back(key.c_str());
    out.reserve(keys.size());
    detail::must(dibs_state_get_many(cl.get(), names.data(), names.size(),
                                     raw.all.data(), &err),
                 err);
    for (std::size_t i = 0; i < keys.size(); i++)
        out.push_back(raw.copy(i));
    return out;
}

/* Entries of one index. */
struct index_entries {
    std::vector<std::pair<std::string, int64_t>> entries;
    int64_t next = -1;  /* the number of the entry behind them; -1: none */
    int64_t now_us = 0; /* the store's wall clock */
};

/* The first entries with numbers up to `up_to`; DIBS_INDEX_NOW: that are due. */
inline index_entries first_entries(const client &cl, const std::string &index,
                                   int64_t up_to, uint32_t limit = 64)
{
    using entries = detail::gathered<index_entries>;
    dibs_index_look look = dibs_index_look();
    dibs_error err = dibs_error();
    entries out;
    dibs_index_fn *note = [](const dibs_index_entry *entry, void *arg) {
        return entries::add(arg, [entry](index_entries &to) {
            to.entries.emplace_back(entry->member, entry->at);
            return true;
        });
    };

    look.index = index.c_str();
    look.up_to = up_to;
    look.limit = limit;
    out.all.entries.reserve(limit);
    out.must(dibs_index_first(
                 cl.get(), &look, 1, &out.all.now_us, note, &out, &err),
             err);
    out.all.next = look.next;
    return std::move(out.all);
}

} // namespace dibs

#endif
