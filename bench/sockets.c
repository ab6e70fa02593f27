/* sockets.c - connections that listen, all read by one thread. */
/* SPDX-License-Identifier: MIT */
#include "bench/sockets.h"
#include "bench/raw.h"
#include "bench/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EVENTS = 512 };

struct sockets {
    raw *voice;
    raw **ears;
    int count, poll;
};

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

sockets *sockets_new(int port, int count)
{
    sockets *sk = calloc(1, sizeof(*sk));

    raise_limit();
    if (sk)
        sk->ears = calloc((size_t)count, sizeof(*sk->ears));
    if (!sk || !sk->ears)
        give_up("sockets", "out of memory");
    sk->count = count;
    sk->voice = raw_open(port);
    sk->poll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};

        sk->ears[i] = raw_open(port);
        raw_listen(sk->ears[i]);
        if (epoll_ctl(sk->poll, EPOLL_CTL_ADD, raw_fd(sk->ears[i]), &event))
            give_up("epoll", strerror(errno));
    }
    return sk;
}

void sockets_free(sockets *sk)
{
    for (int i = 0; i < sk->count; i++)
        raw_close(sk->ears[i]);
    raw_close(sk->voice);
    close(sk->poll);
    free(sk->ears);
    free(sk);
}

int64_t sockets_wake(sockets *sk)
{
    struct epoll_event events[EVENTS];
    int64_t began = now_ns(), last;
    int heard = 0;

    raw_tell_begin(sk->voice);
    while (heard < sk->count) {
        int ready = epoll_wait(sk->poll, events, EVENTS, -1);

        if (ready < 0 && errno != EINTR)
            give_up("epoll", strerror(errno));
        for (int i = 0; i < ready; i++)
            raw_hear(sk->ears[events[i].data.u32]);
        heard += ready > 0 ? ready : 0;
    }
    last = now_ns();
    raw_tell_end(sk->voice);
    return last - began;
}
