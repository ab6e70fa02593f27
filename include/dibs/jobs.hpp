/* jobs.hpp - functions as jobs in C++; see dibs/jobs.h and dibs/dibs.hpp. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_HPP
#define DIBS_JOBS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dibs/client.hpp>
#include <dibs/jobs.h>
#include <dibs/state.hpp>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace dibs
{

/* One call, borrowed by its function. */
class run
{
  public:
    explicit run(dibs_run *made) : run_(made) {}
    std::string id() const { return dibs_run_id(run_); }
    uint32_t attempt() const noexcept { return dibs_run_attempt(run_); }
    uint64_t token() const noexcept { return dibs_run_token(run_); }
    uint64_t fence() const noexcept { return dibs_run_fence(run_); }
    bool go_on() const noexcept { return dibs_run_go_on(run_); }
    int stop_fd() const noexcept { return dibs_run_stop_fd(run_); }
    /* "" without a value. */
    std::string param(const std::string &name) const
    {
        const char *value = dibs_run_param(run_, name.c_str());

        return value ? value : "";
    }
    /* "" without a result. */
    std::string need(const std::string &step) const
    {
        std::size_t len = 0;
        const void *data = dibs_run_need(run_, step.c_str(), &len);

        return data ? std::string(static_cast<const char *>(data), len)
                    : std::string();
    }
    void result(const std::string &data)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_run_result(run_, data.data(), data.size(), &err),
                     err);
    }
    dibs_run *get() const noexcept { return run_; }

  private:
    dibs_run *run_;
};

/* A node whose functions are jobs. A function that throws has failed; one that throws
 * dibs::error failed with that status.
 *
 *     dibs::jobs node(db);
 *     dibs_job_opts opts = dibs_job_opts();
 *     opts.schedule = "0 * * * *";
 *     node.add("hourly-task", [](dibs::run &run) { work(run.token()); }, opts);
 *     node.run(); */
class jobs
{
  public:
    explicit jobs(const client &cl, dibs_jobs_opts opts = dibs_jobs_opts())
    {
        dibs_error err = dibs_error();
        dibs_jobs *made = nullptr;

        opts.size = sizeof(opts);
        detail::must(dibs_jobs_open(cl.get(), &opts, &made, &err), err);
        jobs_.reset(made);
    }
    void add(const std::string &name, std::function<void(dibs::run &)> fn,
             dibs_job_opts opts = dibs_job_opts())
    {
        dibs_error err = dibs_error();

        functions_.push_back(std::move(fn));
        opts.size = sizeof(opts);
        detail::must(dibs_jobs_add(jobs_.get(), name.c_str(), call,
                                   &functions_.back(), &opts, &err),
                     err);
    }
    /* For `call: NAME` in jobs files. */
    void function(const std::string &name, std::function<void(dibs::run &)> fn)
    {
        dibs_error err = dibs_error();

        functions_.push_back(std::move(fn));
        detail::must(dibs_jobs_function(jobs_.get(), name.c_str(), call,
                                        &functions_.back(), &err),
                     err);
    }
    void load(const std::string &path)
    {
        dibs_error err = dibs_error();

        detail::must(dibs_jobs_load(jobs_.get(), path.c_str(), &err), err);
    }
    void publish()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_jobs_publish(jobs_.get(), &err), err);
    }
    /* Until stop(), on the calling thread. */
    void run()
    {
        dibs_error err = dibs_error();

        detail::must(dibs_jobs_run(jobs_.get(), &err), err);
    }
    void stop() noexcept { dibs_jobs_stop(jobs_.get()); }
    dibs_jobs *get() const noexcept { return jobs_.get(); }

  private:
    static dibs_status call(dibs_run *made, void *arg, dibs_error *err) noexcept
    {
        auto fn = static_cast<const std::function<void(dibs::run &)> *>(arg);
        dibs::run run(made);

        try {
            (*fn)(run);
            return DIBS_OK;
        } catch (const dibs::error &thrown) {
            std::snprintf(err->message, sizeof(err->message), "%s",
                          thrown.what());
            return thrown.status() == DIBS_OK ? DIBS_INTERNAL
                                              : thrown.status();
        } catch (const std::exception &thrown) {
            std::snprintf(err->message, sizeof(err->message), "%s",
                          thrown.what());
        } catch (...) {
            std::snprintf(err->message, sizeof(err->message),
                          "the function has thrown");
        }
        return DIBS_INTERNAL;
    }

    struct closer {
        void operator()(dibs_jobs *made) const noexcept
        {
            dibs_jobs_close(made);
        }
    };
    std::list<std::function<void(dibs::run &)>> functions_; /* they stay */
    std::unique_ptr<dibs_jobs, closer> jobs_;
};

namespace detail
{
inline std::string
start_run(const client &cl, const std::string &job,
          const std::vector<std::string> &params, dibs_start_opts opts)
{
    dibs_error err = dibs_error();
    std::vector<const char *> list;
    char name[DIBS_RUN_SIZE];

    for (const std::string &param : params)
        list.push_back(param.c_str());
    list.push_back(nullptr);
    opts.size = sizeof(opts);
    opts.params = list.data();
    must(dibs_job_start(cl.get(), job.c_str(), &opts, name, &err), err);
    return name;
}
} // namespace detail

/* Starts a run, and returns its name. Params are "name=value". */
inline std::string
start_job(const client &cl, const std::string &job,
          const std::vector<std::string> &params = std::vector<std::string>(),
          const std::string &id = std::string())
{
    dibs_start_opts opts = dibs_start_opts();

    opts.id = id.empty() ? nullptr : id.c_str();
    return detail::start_run(cl, job, params, opts);
}

/* The same for a member of a batch; `of` may be 0 if another start says it. */
inline std::string start_member(
    const client &cl, const std::string &job, const std::string &batch,
    uint32_t of = 0,
    const std::vector<std::string> &params = std::vector<std::string>(),
    const std::string &id = std::string())
{
    dibs_start_opts opts = dibs_start_opts();

    opts.id = id.empty() ? nullptr : id.c_str();
    opts.batch = batch.c_str();
    opts.of = of;
    return detail::start_run(cl, job, params, opts);
}

/* Waits for the ends of all members of a batch. Throws with DIBS_TIMEOUT. */
inline dibs_batch_sum
wait_batch(const client &cl, const std::string &batch, uint32_t of = 0,
           milliseconds wait = milliseconds(-1))
{
    dibs_error err = dibs_error();
    dibs_batch_sum sum = dibs_batch_sum();

    detail::must(dibs_batch_wait(cl.get(), batch.c_str(), of, wait.count(),
                                 &sum, &err),
                 err);
    return sum;
}

/* Waits for the end of a run. Throws with DIBS_TIMEOUT. */
inline dibs_run_info wait_job(const client &cl, const std::string &run,
                              milliseconds wait = milliseconds(-1))
{
    dibs_error err = dibs_error();
    dibs_run_info info = dibs_run_info();

    info.size = sizeof(info);
    detail::must(
        dibs_job_wait(cl.get(), run.c_str(), wait.count(), &info, &err), err);
    return info;
}

/* The result of a step. Throws with DIBS_NOTFOUND without one. */
inline std::string job_result(const client &cl, const std::string &run,
                              const std::string &step = "main")
{
    dibs_error err = dibs_error();
    detail::raw_values value(1);

    detail::must(dibs_job_result(cl.get(), run.c_str(), step.c_str(),
                                 value.all.data(), &err),
                 err);
    return value.copy(0).data;
}

inline void cancel_job(const client &cl, const std::string &run)
{
    dibs_error err = dibs_error();

    detail::must(dibs_job_cancel(cl.get(), run.c_str(), &err), err);
}

/* True: this caller has resumed it. False: another one does, or did. */
inline bool resume_bookmark(const client &cl, const std::string &run,
                            const std::string &bookmark,
                            const std::string &data = std::string())
{
    dibs_error err = dibs_error();
    dibs_status rc = dibs_bookmark_resume(cl.get(), run.c_str(),
                                          bookmark.c_str(), data.data(),
                                          data.size(), &err);

    if (rc == DIBS_BUSY || rc == DIBS_STALE)
        return false;
    detail::must(rc, err);
    return true;
}

} // namespace dibs

#endif
