/* watch_fd.c - an event loop that watches its work and its lease with poll().
 *
 * The work is a timer of 100 ms. To end the loop early, revoke the lease from
 * another terminal: `dibs break --force event-loop`.
 *
 *     watch_fd [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <poll.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static int loop(dibs_lock *lock, int timer)
{
    struct pollfd fds[] = {{.fd = timer, .events = POLLIN},
                           {.fd = dibs_lock_lost_fd(lock), .events = POLLIN}};
    uint64_t ticks, rounds = 0;

    while (rounds < ROUNDS && poll(fds, 2, -1) > 0) {
        if (fds[1].revents) {
            printf("the lease is lost: no further round\n");
            return 1;
        }
        if (read(timer, &ticks, sizeof(ticks)) == sizeof(ticks))
            rounds += ticks;
        printf("round %d of %d\n", (int)rounds, ROUNDS);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct itimerspec each = {{0, 100000000}, {0, 100000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    int rc = 1;

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK ||
        dibs_lock_new(client, "event-loop", NULL, &lock, &err) != DIBS_OK ||
        dibs_lock_acquire(lock, &err) != DIBS_OK)
        fprintf(stderr, "%s\n", err.message);
    else if (timerfd_settime(timer, 0, &each, NULL) == 0)
        rc = loop(lock, timer);
    dibs_lock_free(lock);
    dibs_close(client);
    close(timer);
    return rc;
}
