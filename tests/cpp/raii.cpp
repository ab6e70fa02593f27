// raii.cpp - dibs.hpp gives back what was taken, however its scope is left.
//
//     raii URL
//
// Compiled by test_raii.sh with every compiler and standard that there is.
// SPDX-License-Identifier: MIT
#include "starve.hpp"
#include <dibs/dibs.hpp>

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <type_traits>

using std::chrono::milliseconds;
using std::chrono::seconds;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            std::cerr << __FILE__ << ":" << __LINE__ << ": " << #condition     \
                      << "\n";                                                 \
            std::exit(1);                                                      \
        }                                                                      \
    } while (0)

static_assert(!std::is_copy_constructible<dibs::lock>::value,
              "a lock is not copied");
static_assert(std::is_nothrow_move_constructible<dibs::lock>::value,
              "a lock is moved");
static_assert(std::is_move_assignable<dibs::multi>::value, "a set is moved");
static_assert(!std::is_copy_constructible<dibs::client>::value,
              "a client is not copied");

// Functions of the library that this program stands in front of.
template <typename Fn> static Fn *behind(Fn *, const char *name)
{
    Fn *fn = reinterpret_cast<Fn *>(dlsym(RTLD_NEXT, name));

    CHECK(fn);
    return fn;
}

// An exception of a callback must not come out of a call of the library.
template <typename Fn> static dibs_status without_throwing(Fn fn)
{
    dibs_status rc = DIBS_OK;
    bool threw = false;

    try {
        rc = fn();
    } catch (...) {
        threw = true;
    }
    CHECK(!threw);
    return rc;
}

dibs_status dibs_queue_list(dibs_client *cl, const char *begins,
                            dibs_queue_fn *each, void *arg, dibs_error *err)
{
    auto fn = behind(dibs_queue_list, "dibs_queue_list");

    return without_throwing([&] { return fn(cl, begins, each, arg, err); });
}

dibs_status dibs_queue_peek(dibs_client *cl, const char *name,
                            dibs_item_place place, size_t skip, size_t max,
                            dibs_item_info_fn *each, void *arg, dibs_error *err)
{
    auto fn = behind(dibs_queue_peek, "dibs_queue_peek");

    return without_throwing(
        [&] { return fn(cl, name, place, skip, max, each, arg, err); });
}

// The data of the last result of a job that is not freed yet.
static thread_local const void *result_data = nullptr;

dibs_status dibs_job_result(dibs_client *cl, const char *run, const char *step,
                            dibs_value *out, dibs_error *err)
{
    auto fn = behind(dibs_job_result, "dibs_job_result");
    dibs_status rc = fn(cl, run, step, out, err);

    CHECK(!result_data);
    result_data = out->data;
    return rc;
}

void dibs_value_free(dibs_value *value)
{
    auto fn = behind(dibs_value_free, "dibs_value_free");

    if (value->data && value->data == result_data)
        result_data = nullptr;
    fn(value);
}

static bool is_free(dibs::client &db, const std::string &name)
{
    dibs::lock lock(db, name);
    return lock.try_acquire();
}

// The status of the error that a call throws; DIBS_OK when it throws none.
template <typename Fn> static dibs_status thrown(Fn fn)
{
    try {
        fn();
    } catch (const dibs::error &why) {
        CHECK(why.status() == why.detail().status || why.status() == DIBS_LOST);
        CHECK(std::string(why.what()).find(dibs_status_name(why.status())) ==
              0);
        return why.status();
    }
    return DIBS_OK;
}

static int leaves_early(dibs::client &db)
{
    dibs::scoped_lock held(db, "early");

    CHECK(!is_free(db, "early"));
    if (held.fence() > 0)
        return 1;
    return 0;
}

static void scopes(dibs::client &db)
{
    CHECK(leaves_early(db) == 1);
    CHECK(is_free(db, "early"));
    try {
        dibs::scoped_lock held(db, "thrown");
        throw 5;
    } catch (int) {
    }
    CHECK(is_free(db, "thrown"));
    for (int i = 0; i < 2; i++) {
        dibs::scoped_lock held(db, "loop");
        if (i == 0)
            continue;
        break;
    }
    CHECK(is_free(db, "loop"));
}

static void refusals(dibs::client &db)
{
    dibs::scoped_lock held(db, "busy");

    CHECK(thrown([&] { dibs::scoped_lock second(db, "busy"); }) == DIBS_BUSY);
    CHECK(thrown([&] { dibs::scoped_lock none(db, ""); }) == DIBS_INVALID);
    CHECK(thrown([&] {
              dibs::lock none(db, "x", dibs::options().ttl(milliseconds(1)));
          }) == DIBS_INVALID);
    CHECK(thrown([] { dibs::client none("nowhere:"); }) == DIBS_INVALID);
    dibs::scoped_lock second(std::nothrow, db, "busy");
    CHECK(!second);
    CHECK(second.status() == DIBS_BUSY);
    CHECK(second.why().message[0] != '\0');
    CHECK(!second.valid());
    dibs::lock third(db, "busy");
    CHECK(!third.try_acquire());
    dibs_error err = dibs_error();
    CHECK(third.try_acquire(err) == DIBS_BUSY);
    CHECK(held.valid());
    CHECK(held.valid_for() > seconds(1));
}

static void losses(dibs::client &db)
{
    std::atomic<int> told(0);
    dibs::lock lock(db, "lost",
                    dibs::options().ttl(seconds(2)).on_lost([&](dibs_lock *) {
                        told++;
                    }));

    CHECK(thrown([&] { lock.check(); }) == DIBS_LOST);
    lock.acquire();
    lock.check();
    CHECK(lock.lost_fd() >= 0);
    CHECK(dibs_lease_break(db.get(), "lost", lock.fence(), "test", nullptr,
                           nullptr) == DIBS_OK);
    while (told == 0)
        std::this_thread::sleep_for(milliseconds(2));
    CHECK(!lock.valid());
    CHECK(thrown([&] { lock.check(); }) == DIBS_LOST);
    CHECK(lock.release() == DIBS_LOST);
}

static void moves(dibs::client &db)
{
    std::atomic<int> told(0);
    dibs::lock a(db, "moved",
                 dibs::options().ttl(seconds(2)).on_lost([&](dibs_lock *) {
                     told++;
                 }));

    a.acquire();
    dibs::lock b(std::move(a));
    CHECK(b.valid());
    CHECK(a.get() == nullptr);
    dibs::lock c(db, "other");
    c.acquire();
    c = std::move(b); // gives "other" back
    CHECK(is_free(db, "other"));
    CHECK(!is_free(db, "moved"));
    CHECK(dibs_lease_break(db.get(), "moved", 0, nullptr, nullptr, nullptr) ==
          DIBS_OK);
    while (told == 0)
        std::this_thread::sleep_for(milliseconds(2));
    dibs::client moved(std::move(db));
    db = std::move(moved);
    CHECK(is_free(db, "other"));
}

// What a callback works with: it is in use from the loss until the latch opens.
struct late_callback {
    std::atomic<bool> entered{false}, open{false}, right{false};

    dibs::options options()
    {
        std::string text(100, 'x'); // too long to be kept in the string itself

        return dibs::options()
            .ttl(seconds(2))
            .on_lost([this, text](dibs_lock *) {
                entered = true;
                while (!open)
                    std::this_thread::sleep_for(milliseconds(2));
                right = text == std::string(100, 'x');
            });
    }
};

// Replaces what was lost, while its callback runs.
template <typename T, typename Name>
static void replaces_lost(dibs::client &db, const Name &name)
{
    late_callback late;
    T old(db, name, late.options());
    T young(db, name);

    old.acquire();
    CHECK(dibs_lease_break(db.get(), "replaced", 0, nullptr, nullptr,
                           nullptr) == DIBS_OK);
    while (!late.entered)
        std::this_thread::sleep_for(milliseconds(2));
    std::thread opener([&late] {
        std::this_thread::sleep_for(milliseconds(50));
        late.open = true;
    });
    old =
        std::move(young); // waits for the callback, which must find its own yet
    CHECK(late.right);
    opener.join();
    old.acquire();
    CHECK(!is_free(db, "replaced"));
}

static void kinds(dibs::client &db)
{
    dibs::scoped_lock reader(db, "rw", dibs::options().shared());
    {
        dibs::scoped_lock other(db, "rw", dibs::options().shared());
        CHECK(!reader.upgrade());
    }
    CHECK(reader.upgrade());
    CHECK(!is_free(db, "rw"));
    reader.downgrade();
    dibs::scoped_lock one(db, "permits", dibs::options().permits(1, 2));
    dibs::scoped_lock two(db, "permits", dibs::options().permits(1, 2));
    CHECK(thrown([&] {
              dibs::scoped_lock none(db, "permits",
                                     dibs::options().permits(1, 2));
          }) == DIBS_BUSY);
    CHECK(thrown([&] {
              dibs::scoped_lock none(db, "permits",
                                     dibs::options().permits(1, 3));
          }) == DIBS_MISMATCH);
    dibs::options twice = dibs::options()
                              .reentrant()
                              .label("test")
                              .identity("me")
                              .meta("a=1")
                              .meta("b=2");
    dibs::scoped_lock outer(db, "again", twice);
    dibs::scoped_lock inner(db, "again", twice);
    CHECK(outer.fence() == inner.fence());
}

static void hands_on(dibs::client &db)
{
    dibs::scoped_lock mine(db, "handed");
    uint64_t before = mine.fence();
    std::string token = mine.transfer();
    dibs::lock heir(db, "handed");

    CHECK(heir.place() == 0);
    CHECK(!mine.valid());
    heir.accept(token);
    CHECK(heir.fence() > before);
    CHECK(!is_free(db, "handed"));
}

template <typename Call> static bool out_of_range(Call call)
{
    try {
        call();
    } catch (const std::out_of_range &) {
        return true;
    }
    return false;
}

static void sets(dibs::client &db)
{
    {
        dibs::scoped_multi both(db, std::vector<std::string>{"b", "a", "b"});

        CHECK(both.size() == 2);
        CHECK(both.name(0) == "a");
        CHECK(both.fence(0) > 0);
        CHECK(both.lost_fd(1) >= 0);
        CHECK(out_of_range([&] { (void)both.name(2); }));
        CHECK(out_of_range([&] { (void)both.fence(2); }));
        CHECK(out_of_range([&] { (void)both.lost_fd(2); }));
        both.check();
        CHECK(!is_free(db, "b"));
        dibs::scoped_multi none(std::nothrow, db,
                                std::vector<std::string>{"c", "b"});
        CHECK(!none);
        CHECK(is_free(db, "c"));
        CHECK(thrown([&] { none.check(); }) == DIBS_LOST);
    }
    CHECK(is_free(db, "a"));
    CHECK(is_free(db, "b"));
}

static void cancelled(dibs::client &db)
{
    dibs::scoped_lock held(db, "awaited");
    dibs_status rc = DIBS_OK;
    dibs::lock lock(db, "awaited", dibs::options().wait_forever());
    std::thread waiter([&] {
        dibs_error err = dibs_error();
        rc = lock.acquire(err);
    });

    while (dibs_lock_state_get(lock.get()) != DIBS_LOCK_WAITING)
        std::this_thread::sleep_for(milliseconds(2));
    lock.cancel();
    waiter.join();
    CHECK(rc == DIBS_CANCELLED);
}

static void latches(dibs::client &db)
{
    dibs::latch batch(db, "batch", 2);

    CHECK(!batch.wait(milliseconds(0)));
    CHECK(batch.count_down("job 1") == 1);
    CHECK(batch.count_down("job 1") == 1);
    CHECK(batch.count_down() == 0);
    CHECK(batch.wait());
    uint64_t old = batch.show().generation;
    batch.reset();
    CHECK(thrown([&] { batch.count_down_in(old, "job 2"); }) == DIBS_STALE);
    CHECK(batch.count_down_in(batch.show().generation, "job 2") == 1);
    batch.reset();
    CHECK(!batch.wait(milliseconds(0)));
    CHECK(batch.show().left == 2 && batch.show().count == 2);
    CHECK(thrown([&] { dibs::latch(db, "batch", 3).count_down(); }) ==
          DIBS_MISMATCH);
    CHECK(thrown([&] { CHECK(dibs::latch(db, "none", 3).show().left); }) ==
          DIBS_NOTFOUND);
}

static void queues(dibs::client &db)
{
    dibs::queue jobs(db, "jobs", dibs::queue_options().prefetch(2));
    uint64_t id = jobs.push("one", dibs::push_options().dedup("1"));
    std::atomic<int> done(0);

    CHECK(jobs.push("one", dibs::push_options().dedup("1")) == id);
    {
        dibs::item unsettled = jobs.reserve();

        CHECK(unsettled.id() == id);
    }
    dibs::item job = jobs.reserve();
    CHECK(job && job.data() == "one" && job.attempt() == 1 && job.valid());
    job.nack("again", milliseconds(0));
    job = jobs.reserve();
    CHECK(job.attempt() == 2);
    jobs.push("two");
    CHECK(jobs.ack_next(job) && job.data() == "two");
    CHECK(!jobs.ack_next(job, milliseconds(0)) && !job);
    CHECK(!jobs.reserve(milliseconds(0)));
    for (int i = 0; i < 10; i++)
        jobs.push("x", dibs::push_options().tries(1));
    jobs.work(2, [&](dibs_item *) -> dibs_status {
        if (++done == 10)
            jobs.cancel();
        if (done % 2)
            throw std::runtime_error("no luck");
        return DIBS_OK;
    });
    CHECK(done == 10);
    CHECK(!jobs.reserve());
}

static void many_items(dibs::client &db)
{
    dibs::queue jobs(db, "many");
    std::vector<uint64_t> ids =
        jobs.push_many({"one", "two"}, dibs::push_options().priority(1));
    std::vector<dibs::item> items = jobs.reserve_many(10);

    CHECK(ids.size() == 2 && ids[0] < ids[1]);
    CHECK(items.size() == 2 && items[0].data() == "one");
    CHECK(items[0].id() == ids[0] && items[1].id() == ids[1]);
    CHECK(dibs_item_priority(items[0].get()) == 1);
    items[0].ack();
    items[1].ack();
    CHECK(jobs.reserve_many(1, milliseconds(0)).empty());
    CHECK(jobs.push_many({"x", "x"}, dibs::push_options().dedup("x"))[0] > 0);
    CHECK(thrown([&] { CHECK(jobs.reserve_many(DIBS_QUEUE_BATCH + 1).empty()); }) ==
          DIBS_INVALID);
    CHECK(thrown([&] {
              jobs.push_many(
                  std::vector<std::string>(DIBS_QUEUE_BATCH + 1, "x"));
          }) == DIBS_INVALID);
}

static void told_pushes(dibs::client &db)
{
    dibs::queue jobs(db, "told");
    dibs::push_options one = dibs::push_options().dedup("1").header("kind", "mail");
    dibs::pushed first, second;

    one.header("to", "a=b");
    first = jobs.push_told("one", one);
    second = jobs.push_told("one", one);
    CHECK(first.id > 0 && !first.duplicate);
    CHECK(second.id == first.id && second.duplicate);
    std::vector<dibs::pushed> told = jobs.push_many_told({"x", "y"}, one);
    CHECK(told.size() == 2 && told[0].duplicate && told[1].id == first.id);
    dibs::item job = jobs.reserve();
    CHECK(job.header("kind") == "mail" && job.header("to") == "a=b");
    CHECK(starve([&] { jobs.push_told("two", one); }) > 0);
    job.ack();
}

static void lost_items(dibs::client &db)
{
    std::atomic<uint64_t> lost(0);
    dibs::queue jobs(db, "lost",
                     dibs::queue_options()
                         .durability("async")
                         .limit(milliseconds(500))
                         .on_lost([&](dibs_item *raw) {
                             lost = dibs_item_id(raw);
                         }));
    uint64_t id = jobs.push("one");
    dibs::item job = jobs.reserve();
    dibs::queue moved = std::move(jobs);

    while (lost != id)
        std::this_thread::sleep_for(milliseconds(1));
    CHECK(!job.valid());
    CHECK(thrown([&] {
              dibs::queue(db, "lost", dibs::queue_options().durability("no"));
          }) == DIBS_INVALID);
}

static void handed_items(dibs::client &db)
{
    dibs::queue jobs(db, "handed"), others(db, "handed");
    uint64_t id = jobs.push("one");
    std::string token;

    {
        dibs::item job = jobs.reserve();

        token = job.detach();
    }
    CHECK(!others.reserve(milliseconds(0)));
    dibs::item adopted = others.adopt(token);
    CHECK(adopted && adopted.id() == id);
    adopted.ack();
    CHECK(thrown([&] { others.adopt(token).ack(); }) == DIBS_LOST);
    CHECK(thrown([&] { CHECK(others.adopt("nonsense")); }) == DIBS_INVALID);
}

static void operated_queues(dibs::client &db)
{
    dibs::queue_admin mail(db, "mail");
    dibs_queue_settings settings = dibs_queue_settings();
    int items = 0;

    CHECK(thrown([&] { mail.stats(); }) == DIBS_NOTFOUND);
    settings.fields = DIBS_QUEUE_SET_TRIES;
    settings.tries = 3;
    mail.set(settings);
    mail.pause();
    CHECK(mail.stats().settings.paused && mail.stats().settings.tries == 3);
    mail.resume();
    mail.peek(DIBS_ITEM_READY, 0, 10, [&](const dibs_item_info &) {
        items++;
        return true;
    });
    CHECK(items == 0 && mail.purge() == 0 && mail.redrive() == 0);
    CHECK(thrown([&] { mail.redrive_one(7); }) == DIBS_NOTFOUND);
    // An exception of a callback ends the call and reaches its caller.
    dibs::queue(db, "mail").push("letter");
    dibs::queue(db, "mail").push("card");
    try {
        mail.peek(DIBS_ITEM_READY, 0, 10,
                  [&](const dibs_item_info &) -> bool {
                      items++;
                      throw std::out_of_range("enough");
                  });
        CHECK(false);
    } catch (const std::out_of_range &) {
        CHECK(items == 1);
    }
    CHECK(mail.purge() == 2);
    CHECK(starve([&] { dibs::queues(db, "mai"); }) > 0);
    CHECK(dibs::queues(db, "mai") == std::vector<std::string>{"mail"});
    mail.remove();
    CHECK(dibs::queues(db).empty());
    CHECK(thrown([&] { mail.remove(); }) == DIBS_NOTFOUND);
}

static void events(dibs::client &db)
{
    dibs::reader all(db, "events", dibs::reader::from_start());
    dibs::event got;
    uint64_t first = dibs::append_event(db, "events", "one");
    uint64_t second = dibs::append_event(db, "events", std::string());

    CHECK(all.next(got) && got.data == "one" && got.position == first);
    CHECK(all.next(got) && got.data.empty() && got.kind == DIBS_EVENT);
    CHECK(all.position() == second);
    CHECK(!all.next(got, milliseconds(0)));
    dibs::reader later(db, "events", dibs::reader::from_position(first));
    CHECK(later.next(got) && got.position == second);
    CHECK(thrown([&] { dibs::append_event(db, "dibs.x", "x"); }) ==
          DIBS_INVALID);
}

static void topics(dibs::client &db)
{
    dibs_reader_opts opts = dibs::reader::from_start();
    dibs::event got;
    uint64_t first = dibs::append_event(db, "topic", "one");
    uint64_t last = dibs::append_event(db, "topic", "two");

    opts.group = "readers";
    {
        dibs::reader one(db, "topic", opts);

        CHECK(one.next(got) && got.position == first);
        one.commit();
    }
    CHECK(dibs::reader(db, "topic", opts).next(got) && got.position == last);
    CHECK(thrown([&] { dibs::reader(db, "topic").commit(); }) == DIBS_INVALID);
    CHECK(dibs::show_events(db, "topic").count == 2);
    CHECK(dibs::show_events(db, "topic").last == last);
    CHECK(dibs::topics(db, "topi").size() == 1);
    CHECK(dibs::topics(db, "topi")[0].name == "topic");
    CHECK(dibs::topics(db, "topi")[0].state.last == last);
    CHECK(dibs::topics(db, "no such").empty());
    CHECK(dibs::trim_events(db, "topic", first) == 1);
    CHECK(dibs::show_events(db, "topic").first == last);
    CHECK(dibs::trim_events(db, "topic") == 1);
    CHECK(dibs::show_events(db, "topic").count == 0);
}

// A subscription that is replaced or left calls its function no more.
static void subscriptions(dibs::client &db)
{
    std::atomic<int> old_calls(0), calls(0);
    dibs::subscription kept(
        db, "subscribed", [&](const dibs::event &) { old_calls++; });

    dibs::append_event(db, "subscribed", "one");
    while (old_calls < 1)
        std::this_thread::yield();
    kept = dibs::subscription(
        db, "subscribed",
        [&](const dibs::event &event) { calls += event.data == "one" ? 1 : 10; },
        dibs::reader::from_start());
    dibs::append_event(db, "subscribed", "two");
    while (calls < 11)
        std::this_thread::yield();
    CHECK(old_calls == 1 && calls == 11);
    dibs::subscription moved(std::move(kept));
    dibs::append_event(db, "subscribed", "one");
    while (calls < 12)
        std::this_thread::yield();
    CHECK(thrown([&] {
              dibs::subscription bad(db, "", [](const dibs::event &) {});
          }) == DIBS_INVALID);
}

static void messages(dibs::client &db)
{
    dibs::listener ear(db, "events");
    std::string text;
    bool missed = true;

    CHECK(!ear.next(text, missed, milliseconds(0)));
    dibs::send_message(db, "events", "now");
    CHECK(ear.next(text, missed) && text == "now" && !missed);
    CHECK(thrown([&] {
              dibs::send_message(db, "events",
                                 std::string(DIBS_MESSAGE_MAX + 1, 'x'));
          }) == DIBS_INVALID);
}

static void groups(dibs::client &db)
{
    dibs_member_opts opts = dibs_member_opts();

    const char *const meta[] = {"zone=a", "disk=1", nullptr};

    CHECK(dibs::members(db, "group").empty());
    CHECK(dibs::list_members(db, "group").empty());
    {
        opts.member = "one";
        opts.label = "first";
        opts.meta = meta;
        opts.flags = DIBS_MEMBER_QUICK;
        dibs::member one(db, "group", opts);
        std::vector<dibs::member_view> all = dibs::list_members(db, "group");

        CHECK(all.size() == 1 && all[0].member == "one" && all[0].pid > 0);
        CHECK(all[0].label == "first" && all[0].meta == "zone=a\tdisk=1");
        CHECK(all[0].fence == one.fence() && all[0].counts);
        CHECK(dibs_member_fence(one.get()) == one.fence());
        CHECK(one.recount());
        CHECK(starve([&] { (void)dibs::list_members(db, "group"); }) > 0);
        opts.minimum = 2;
        CHECK(!dibs::member(db, "alone", opts).recount());
        CHECK(one.seated());
        CHECK(one.enough().count() > 0);
        CHECK(dibs::members(db, "group") == std::vector<std::string>{"one"});
        CHECK(dibs::groups(db, "gr") == std::vector<std::string>{"group"});
    }
    CHECK(dibs::groups(db, "gr").empty());
    CHECK(dibs::latches(db, "ba") == std::vector<std::string>{"batch"});
    CHECK(dibs::limits(db, "no such").empty());
    CHECK(dibs::members(db, "group").empty());
    CHECK(thrown([&] { dibs::member(db, "batch"); }) == DIBS_MISMATCH);
}

static void barriers(dibs::client &db)
{
    dibs::barrier alone(db, "alone", dibs::barrier_options(1).label("one"));
    dibs::barrier early(
        db, "both", dibs::barrier_options(2).wait(milliseconds(1)).withdraw());
    dibs::barrier late(db, "both", dibs::barrier_options(2));
    dibs_error err = dibs_error();
    uint64_t first = alone.wait();

    CHECK(alone.wait() > first);
    CHECK(dibs::barriers(db) == std::vector<std::string>{"alone"});
    dibs::barrier_view seen = dibs::show_barrier(db, "alone");
    CHECK(seen.state.parties == 1 && seen.state.arrived == 0);
    CHECK(seen.parties.size() == 1 && !seen.parties[0].arrived);
    CHECK(seen.parties[0].who.find("one") != std::string::npos);
    CHECK(seen.parties[0].left.count() > 0);
    CHECK(thrown([&] { dibs::show_barrier(db, "none"); }) == DIBS_NOTFOUND);
    CHECK(early.wait(err) == DIBS_TIMEOUT);
    CHECK(thrown([&] { early.wait(); }) == DIBS_TIMEOUT);
    std::thread other([&] { (void)late.wait(); });
    while (early.wait(err) != DIBS_OK)
        continue;
    other.join();
    CHECK(thrown([&] {
              dibs::barrier(db, "both", dibs::barrier_options(0));
          }) == DIBS_INVALID);
}

static void watches(dibs::client &db)
{
    dibs::watch watch(db, "watched");
    dibs::change now;
    dibs_error err = dibs_error();

    CHECK(watch.next(now));
    CHECK(now.version == 0 && now.data.empty());
    CHECK(dibs_state_set(db.get(), "watched", "x", 1, 0, nullptr, &err) ==
          DIBS_OK);
    CHECK(watch.next(now));
    CHECK(now.data == "x" && now.version > 0);
    CHECK(!watch.next(now, milliseconds(0)));
    CHECK(watch.next(now, milliseconds(0), err) == DIBS_TIMEOUT);
    dibs::watch moved(std::move(watch));
    CHECK(!moved.next(now, milliseconds(0)));
    CHECK(thrown([&] { dibs::watch bad(db, ""); }) == DIBS_INVALID);
}

static void elections(dibs::client &db)
{
    dibs::election one(db, "elected");
    dibs::leader_watch watch(db, "elected");
    dibs_leader leader = dibs::get_leader(db, "elected");
    dibs_election_opts opts = dibs_election_opts();

    CHECK(leader.term == 0 && leader.candidates == 0);
    CHECK(watch.next(leader) && leader.term == 0);
    CHECK(!one.leads() && one.term() == 0);
    CHECK(one.wait());
    CHECK(one.leads() && one.term() > 0);
    CHECK(dibs::get_leader(db, "elected").term == one.term());
    CHECK(watch.next(leader) && leader.term == one.term());
    CHECK(!watch.next(leader, milliseconds(0)));
    CHECK(thrown([&] { dibs::leader_watch bad(db, ""); }) == DIBS_INVALID);
    opts.member = "two";
    {
        dibs::election two(db, "elected", opts);

        CHECK(!two.wait(milliseconds(0)));
        one.resign();
        CHECK(!one.leads());
        CHECK(two.wait());
        CHECK(thrown([&] { two.transfer("nobody"); }) == DIBS_NOTFOUND);
        dibs::election moved(std::move(two));
        CHECK(moved.leads());
    }
    CHECK(one.wait());
    CHECK(thrown([&] { dibs::election bad(db, ""); }) == DIBS_INVALID);
}

static void healths(dibs::client &db)
{
    dibs::health now = dibs::check_health(db, "", "", std::chrono::hours(1));

    CHECK(now.healthy() && now.reason.empty());
    CHECK(now.parts.size() == 2 && now.parts[0].name == "lock");
    now = dibs::check_health(db, "unled");
    CHECK(now.level == DIBS_DEGRADED);
    CHECK(now.parts[2].result == DIBS_PART_MISSING);
    CHECK(thrown([&] { dibs::check_health(db, "a\nb"); }) == DIBS_INVALID);
}

static void called_jobs(dibs::client &db)
{
    dibs_jobs_opts fast = dibs_jobs_opts();
    dibs_job_opts opts = dibs_job_opts();

    fast.look_ms = 20;
    opts.more = "params: {name: {}}";
    dibs::jobs node(db, fast);
    node.add(
        "greet",
        [](dibs::run &run) { run.result("hello " + run.param("name")); }, opts);
    node.add("fail", [](dibs::run &) { throw std::runtime_error("no luck"); });
    CHECK(thrown([&] { node.add("fail", [](dibs::run &) {}); }) ==
          DIBS_INVALID);
    CHECK(thrown([&] { node.publish(); }) == DIBS_INVALID);

    dibs::jobs whole(db, fast);
    whole.add(
        "greet",
        [](dibs::run &run) { run.result("hello " + run.param("name")); }, opts);
    whole.add("fail", [](dibs::run &) { throw std::runtime_error("no luck"); });
    whole.publish();
    std::thread thread([&] { whole.run(); });
    std::string run = dibs::start_job(db, "greet", {"name=anna-with-many-names"});
    CHECK(dibs::wait_job(db, run).state == DIBS_RUN_OK);
    CHECK(dibs::job_result(db, run) == "hello anna-with-many-names");
    CHECK(starve([&] { dibs::job_result(db, run); }) > 0);
    CHECK(!result_data);
    CHECK(thrown([&] { dibs::cancel_job(db, run); }) == DIBS_STALE);
    CHECK(thrown([&] { dibs::resume_bookmark(db, run, "none"); }) ==
          DIBS_NOTFOUND);
    CHECK(thrown([&] { dibs::wait_batch(db, "both"); }) == DIBS_NOTFOUND);
    dibs::start_member(db, "greet", "both", 2, {"name=one"});
    dibs::start_member(db, "fail", "both");
    dibs_batch_sum sum = dibs::wait_batch(db, "both");
    CHECK(sum.of == 2 && sum.ended == 2 && sum.failed == 1);
    run = dibs::start_job(db, "fail");
    CHECK(dibs::wait_job(db, run).state == DIBS_RUN_FAILED);
    whole.stop();
    thread.join();
}

static void limits(dibs::client &db)
{
    dibs::limit limit(
        db, "limited",
        dibs::limit_options(1, std::chrono::hours(1)).burst(2).chunk(0));
    dibs_error err = dibs_error();

    CHECK(limit.retry().count() == 0);
    CHECK(limit.take());
    dibs::limit moved(std::move(limit));
    CHECK(moved.take(1, err) == DIBS_OK);
    CHECK(!moved.take());
    CHECK(moved.retry().count() > 0 && moved.remaining() == 0);
    CHECK(thrown([&] { CHECK(moved.take(3)); }) == DIBS_INVALID);
    CHECK(thrown([&] { dibs::limit bad(db, "x", dibs::limit_options(0)); }) ==
          DIBS_INVALID);
}

static void breakers(dibs::client &db)
{
    std::atomic<int> opened(0);
    dibs_breaker_fn *note = [](dibs_breaker *, dibs_breaker_state state,
                               void *arg) {
        if (state == DIBS_BREAKER_OPEN)
            ++*static_cast<std::atomic<int> *>(arg);
    };
    dibs::breaker made(db, "broken",
                       dibs::breaker_options()
                           .threshold(2)
                           .recovery(std::chrono::hours(1))
                           .on_change(note, &opened));

    made.enter().good();
    for (int i = 0; i < 3; i++)
        made.enter().drop();
    dibs::breaker moved(std::move(made));
    try {
        dibs::breaker::call call = moved.enter();

        CHECK(call);
        throw 1;
    } catch (int) {
    }
    if (dibs::breaker::call call = moved.enter())
        call.good(false);
    CHECK(!moved.enter());
    CHECK(moved.retry().count() > 0);
    CHECK(moved.info().state == DIBS_BREAKER_OPEN);
    while (opened == 0)
        std::this_thread::sleep_for(milliseconds(1));
    moved.force(DIBS_BREAKER_CLOSED);
    CHECK(dibs::breakers(db, "bro") == std::vector<std::string>{"broken"});
    CHECK(moved.enter());
    CHECK(thrown([&] {
              dibs::breaker bad(db, "x", dibs::breaker_options().threshold(-1));
          }) == DIBS_INVALID);
}

static void values(dibs::client &db)
{
    const std::string data("a\0b", 3);
    uint64_t version = dibs::set_value(db, "v/a", data, std::chrono::hours(1));
    uint64_t none = DIBS_VERSION_NONE;

    CHECK(dibs::get_value(db, "v/a").data == data);
    CHECK(dibs::get_value(db, "v/a").version == version);
    CHECK(dibs::get_value(db, "v/none").version == 0);
    CHECK(!dibs::cas_value(db, "v/a", none, "x") && none == version);
    CHECK(dibs::cas_value(db, "v/a", version, "x") && version > none);
    CHECK(dibs::add_value(db, "v/n", 41) == 41 && dibs::add_value(db, "v/n") == 42);
    CHECK(thrown([&] { (void)dibs::add_value(db, "v/a"); }) == DIBS_INVALID);

    std::vector<dibs::value_view> all = dibs::list_values(db, "v/");
    CHECK(all.size() == 2 && all[0].key == "v/a" && all[1].key == "v/n");
    CHECK(all[0].size == 1 && all[0].version == version);
    CHECK(all[0].expires_ms == -1);
    CHECK(starve([&] { (void)dibs::list_values(db, "v/"); }) > 0);

    CHECK(!dibs::erase_value(db, "v/a", none));
    CHECK(dibs::erase_value(db, "v/a", version) && dibs::erase_value(db, "v/n"));
    CHECK(!dibs::erase_value(db, "v/a"));
}

/* A commit owns the texts that it names, and can be sent again. */
static void commits(dibs::client &db)
{
    dibs::commit first;

    {
        std::string key("{c}order"), open("{c}open");

        first.expect(key, DIBS_VERSION_NONE)
            .put(key, std::string("new\0", 4), std::chrono::hours(1))
            .enter(open, "7", 1, true)
            .enter_in("{c}ship", "7", std::chrono::hours(1));
    }
    dibs::commit moved(std::move(first));
    CHECK(moved.send(db));
    CHECK(moved.version() > 0 && moved.now_us() > 0);
    CHECK(moved.size("{c}open") == 1);
    CHECK(!moved.send(db));
    CHECK(moved.status() == DIBS_STALE && moved.failed() == "{c}order");
    CHECK(moved.found().data == std::string("new\0", 4));
    CHECK(moved.found().expires_ms > 0);

    std::vector<dibs::value> both =
        dibs::get_many(db, {"{c}order", "{c}nothing"});
    CHECK(both.size() == 2 && both[0].version == moved.found().version);
    CHECK(both[1].version == 0 && both[1].data.empty());

    dibs::index_entries due = dibs::first_entries(db, "{c}ship", DIBS_INDEX_NOW);
    CHECK(due.entries.empty() && due.next > due.now_us);
    due = dibs::first_entries(db, "{c}open", DIBS_INDEX_AT_MAX);
    CHECK(due.entries.size() == 1 && due.entries[0].first == "7");
    CHECK(due.entries[0].second == 1 && due.next == -1);

    dibs::commit last;
    last.not_before(1).erase("{c}order").leave("{c}open", "7").ring("{c}bell");
    CHECK(last.send(db));
    CHECK(!dibs::commit().not_after(1).erase("{c}order").send(db));
    CHECK(thrown([&] { CHECK(dibs::commit().send(db)); }) == DIBS_INVALID);
}

int main(int argc, char **argv)
{
    dibs_client_opts opts = dibs_client_opts();

    opts.prefix = "cpp:";
    dibs::client db(argc > 1 ? argv[1] : "memory:", opts);
    scopes(db);
    refusals(db);
    losses(db);
    moves(db);
    replaces_lost<dibs::lock>(db, std::string("replaced"));
    replaces_lost<dibs::multi>(db, std::vector<std::string>{"replaced"});
    kinds(db);
    hands_on(db);
    sets(db);
    cancelled(db);
    watches(db);
    elections(db);
    latches(db);
    operated_queues(db);
    queues(db);
    many_items(db);
    told_pushes(db);
    lost_items(db);
    handed_items(db);
    events(db);
    topics(db);
    subscriptions(db);
    messages(db);
    groups(db);
    barriers(db);
    limits(db);
    healths(db);
    breakers(db);
    values(db);
    commits(db);
    called_jobs(db);
    std::cout << "scopes give back what they took\n";
    return 0;
}
