// raii.cpp - the C++ interface: leaving a scope releases its locks.
//
//     raii [URL]
//
// SPDX-License-Identifier: MIT
#include <dibs/dibs.hpp>
#include <iostream>

using std::chrono::seconds;

// An exception leaves the scope; the lock is released all the same.
static void report(dibs::client &db)
{
    dibs::scoped_lock held(db, "report", dibs::options().ttl(seconds(30)).wait(seconds(5)));

    std::cout << "report under fence " << held.fence() << "\n";
    held.check(); // before each side effect
    throw std::runtime_error("the printer is on fire");
}

int main(int argc, char **argv)
try {
    dibs::client db(argc > 1 ? argv[1] : "");

    try {
        report(db);
    } catch (const std::runtime_error &why) {
        std::cout << why.what() << "\n";
    }
    // Without exceptions: test whether the acquire succeeded.
    dibs::scoped_lock first(std::nothrow, db, "report");
    dibs::scoped_lock second(std::nothrow, db, "report");
    std::cout << "first: " << dibs_status_name(first.status()) << ", second: " << dibs_status_name(second.status())
              << "\n";

    dibs::scoped_multi both(db, std::vector<std::string>{"source", "target"});
    std::cout << both.size() << " at once, valid for a while: " << (both.valid_for() > seconds(1)) << "\n";
    return first && !second ? 0 : 1;
} catch (const dibs::error &why) {
    std::cerr << why.what() << "\n";
    return 1;
}
