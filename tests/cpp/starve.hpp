// starve.hpp - a program whose memory ends when a test says so. Any thread has its own end.
// SPDX-License-Identifier: MIT
#ifndef DIBS_TESTS_STARVE_HPP
#define DIBS_TESTS_STARVE_HPP

#include <cstdlib>
#include <new>

// The memory of this program, which ends when a test says so; the library has its own.
static thread_local int news_left = -1; // negative: without end

void *operator new(std::size_t size)
{
    void *made = news_left == 0 ? nullptr : std::malloc(size ? size : 1);

    if (!made)
        throw std::bad_alloc();
    if (news_left > 0)
        news_left--;
    return made;
}

void operator delete(void *made) noexcept
{
    std::free(made);
}

void operator delete(void *made, std::size_t) noexcept
{
    std::free(made);
}

// Whether the call throws for want of memory, of which it has so much.
template <typename Fn> static bool lacks_memory(int news, Fn fn)
{
    bool lacked = false;

    news_left = news;
    try {
        fn();
    } catch (const std::bad_alloc &) {
        lacked = true;
    }
    news_left = -1;
    return lacked;
}

// Calls it with ever more memory until it has enough. How often it had not.
template <typename Fn> static int starve(Fn fn)
{
    int news = 0;

    while (lacks_memory(news, fn))
        news++;
    return news;
}

#endif
