/* queue_admin.hpp - an operator's calls on queues in C++; see dibs/queue_admin.h and
 * dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_ADMIN_HPP
#define DIBS_QUEUE_ADMIN_HPP

#include <cstdint>
#include <dibs/client.hpp>
#include <dibs/queue_admin.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

/* A queue from an operator's side.
 *
 *     dibs::queue_admin mail(db, "mail");
 *     if (mail.stats().dead > 0) mail.redrive(); */
class queue_admin
{
  public:
    queue_admin(const client &cl, std::string name)
        : cl_(cl.get()), name_(std::move(name))
    {
    }
    /* Throws with DIBS_NOTFOUND if there is no such queue. */
    dibs_queue_info stats() const
    {
        dibs_queue_info info = dibs_queue_info();
        dibs_error err = dibs_error();

        info.size = sizeof(info);
        detail::must(dibs_queue_stats(cl_, name_.c_str(), &info, &err), err);
        return info;
    }
    void set(dibs_queue_settings settings)
    {
        dibs_error err = dibs_error();

        settings.size = sizeof(settings);
        detail::must(dibs_queue_set(cl_, name_.c_str(), &settings, &err), err);
    }
    void pause()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_queue_pause(cl_, name_.c_str(), &err), err);
    }
    void resume()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_queue_resume(cl_, name_.c_str(), &err), err);
    }
    /* Shows up to `max` items; a callback that returns false ends it, and so does one
     * that throws, to the caller of this. */
    void peek(dibs_item_place place, std::size_t skip, std::size_t max,
              const std::function<bool(const dibs_item_info &)> &each) const
    {
        using function = const std::function<bool(const dibs_item_info &)>;
        using called = detail::gathered<function *>;
        called fn(&each);
        dibs_error err = dibs_error();
        dibs_item_info_fn *call = [](const dibs_item_info *info, void *arg) {
            return called::add(arg,
                               [info](function *to) { return (*to)(*info); });
        };

        fn.must(dibs_queue_peek(cl_, name_.c_str(), place, skip, max, call, &fn,
                                &err),
                err);
    }
    /* How many items were dropped. */
    uint64_t purge(uint32_t places = DIBS_ITEM_READY | DIBS_ITEM_LATER)
    {
        dibs_error err = dibs_error();
        uint64_t purged = 0;

        detail::must(dibs_queue_purge(cl_, name_.c_str(), places, &purged,
                                      &err),
                     err);
        return purged;
    }
    /* How many dead letters became items: all, or up to `max` of them. */
    uint64_t redrive(uint64_t max = 0)
    {
        return redrive_some(0, max);
    }
    uint64_t redrive_one(uint64_t id)
    {
        return redrive_some(id, 1);
    }
    void remove()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_queue_remove(cl_, name_.c_str(), &err), err);
    }

  private:
    uint64_t redrive_some(uint64_t id, uint64_t max)
    {
        dibs_error err = dibs_error();
        uint64_t redriven = 0;

        detail::must(dibs_queue_redrive(cl_, name_.c_str(), id, max, &redriven,
                                        &err),
                     err);
        return redriven;
    }

    dibs_client *cl_;
    std::string name_;
};

/* The names of the queues that begin so, in the order of their bytes. */
inline std::vector<std::string>
queues(const client &cl, const std::string &begins = std::string())
{
    detail::names found;
    dibs_error err = dibs_error();
    dibs_queue_fn *note = [](const char *name, void *arg) {
        return detail::add_name(arg, name);
    };

    found.must(dibs_queue_list(cl.get(), begins.c_str(), note, &found, &err),
               err);
    return std::move(found.all);
}

} // namespace dibs

#endif
