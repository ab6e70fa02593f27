/* client.hpp - an open store in C++, and the failure of a call. See dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLIENT_HPP
#define DIBS_CLIENT_HPP

#include <chrono>
#include <dibs/dibs.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

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
