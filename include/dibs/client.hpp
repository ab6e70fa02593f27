/* client.hpp - an open store in C++, and the failure of a call. See dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLIENT_HPP
#define DIBS_CLIENT_HPP

#include <chrono>
#include <dibs/dibs.h>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs
{

using std::chrono::milliseconds;

/* The failure of a call. */
class error : public std::runtime_error
{
  public:
    error(dibs_status status, const dibs_error &detail)
        : std::runtime_error(
              std::string(dibs_status_name(status)) + ": " +
              (detail.message[0] ? detail.message : dibs_status_text(status))),
          status_(status), detail_(detail)
    {
    }
    dibs_status status() const noexcept
    {
        return status_;
    }
    const dibs_error &detail() const noexcept
    {
        return detail_;
    }

  private:
    dibs_status status_;
    dibs_error detail_;
};

namespace detail
{

inline void must(dibs_status status, const dibs_error &err)
{
    if (status != DIBS_OK)
        throw error(status, err);
}

/* True for DIBS_OK, false for DIBS_BUSY; throws for any other status. */
inline bool granted(dibs_status status, const dibs_error &err)
{
    if (status == DIBS_BUSY)
        return false;
    must(status, err);
    return true;
}

/* The list that the callback of a call fills. An exception must not pass through C: it
 * ends the list, and must() throws it when the call has returned. */
template <typename T> struct gathered {
    explicit gathered(T start = T()) : all(std::move(start))
    {
    }
    /* In a callback, whose argument is one of these. */
    template <typename Fn> static bool add(void *arg, Fn fn) noexcept
    {
        auto *self = static_cast<gathered *>(arg);

        try {
            return fn(self->all);
        } catch (...) {
            self->thrown_ = std::current_exception();
            return false;
        }
    }
    /* Throws what a callback has thrown. */
    void rethrow() const
    {
        if (thrown_)
            std::rethrow_exception(thrown_);
    }
    void must(dibs_status status, const dibs_error &err) const
    {
        rethrow();
        detail::must(status, err);
    }

    T all;

  private:
    std::exception_ptr thrown_;
};

using names = gathered<std::vector<std::string>>;

inline bool add_name(void *arg, const char *name) noexcept
{
    return names::add(arg, [name](std::vector<std::string> &all) {
        all.emplace_back(name);
        return true;
    });
}

} // namespace detail

/* An open store. The destructor closes it. */
class client
{
  public:
    /* As dibs_open(). The constructor sets `opts.size`. */
    explicit client(const std::string &url = std::string(),
                    dibs_client_opts opts = dibs_client_opts())
    {
        dibs_client *made = nullptr;
        dibs_error err = dibs_error();

        opts.size = sizeof(opts);
        detail::must(dibs_open(url.c_str(), &opts, &made, &err), err);
        cl_.reset(made);
    }
    dibs_client *get() const noexcept
    {
        return cl_.get();
    }

  private:
    struct closer {
        void operator()(dibs_client *cl) const noexcept
        {
            dibs_close(cl);
        }
    };
    std::unique_ptr<dibs_client, closer> cl_;
};

} // namespace dibs

#endif
