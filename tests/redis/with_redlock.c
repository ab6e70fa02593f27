/* with_redlock.c - runs a command on a quorum of redis-servers of its own.
 *
 *     with_redlock [--chaos SEED] NODES PARAMETERS -- COMMAND [ARGUMENT...]
 *
 * Starts the servers, runs the command with the URL of the quorum as its last
 * argument, ends the servers, and returns what the command returned. PARAMETERS
 * go after the "?" of the URL; "" for none.
 *
 * With --chaos nodes are stopped, killed and restarted with and without what they
 * knew, and their clocks are set, all by chance from the seed. No more than a
 * minority is ill at any time, and longest_ttl is to be 1s. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"

#include "base/clock.h"
#include "base/rand.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A node whose clock was set right is left alone until it votes again, as all
 * clients see it: the longest ttl and what is rounded. One that was emptied is
 * not, for it must not matter how many are: they do not vote. */
enum { COMMAND_MAX = 32, HEAL_MS = 3500 };

typedef enum trouble {
    STOPPED,
    KILLED,
    EMPTIED,
    AHEAD,
    BEHIND,
    TROUBLES,
    HEALING,
    WELL
} trouble;

typedef struct patient {
    trouble trouble;
    dibsx_nsec until;
} patient;

typedef struct chaos {
    fleet fl;
    dibsx_prng prng;
    patient patients[FLEET_MAX];
    unsigned counts[TROUBLES];
} chaos;

static int64_t between(chaos *ch, int64_t from, int64_t to)
{
    return from +
           (int64_t)dibsx_prng_below(&ch->prng, (uint64_t)(to - from + 1));
}

/* Clocks take long to heal, so they are set more seldom. */
static trouble pick_trouble(chaos *ch)
{
    static const trouble troubles[] = {STOPPED, STOPPED, STOPPED, KILLED,
                                       KILLED,  EMPTIED, EMPTIED, EMPTIED,
                                       EMPTIED, EMPTIED, EMPTIED, AHEAD,
                                       BEHIND};

    return troubles[between(ch, 0, sizeof(troubles) / sizeof(troubles[0]) - 1)];
}

static void strike(chaos *ch, size_t i)
{
    static const int64_t spans_ms[TROUBLES][2] = {[STOPPED] = {20, 900},
                                                  [KILLED] = {20, 200},
                                                  [EMPTIED] = {10, 50},
                                                  [AHEAD] = {1500, 3000},
                                                  [BEHIND] = {1500, 3000}};
    fleet_node *nd = &ch->fl.nodes[i];
    patient *pt = &ch->patients[i];

    pt->trouble = pick_trouble(ch);
    pt->until =
        dibsx_after_ms(dibsx_now(), between(ch, spans_ms[pt->trouble][0],
                                            spans_ms[pt->trouble][1]));
    ch->counts[pt->trouble]++;
    if (pt->trouble == STOPPED)
        server_pause(&nd->sv);
    else if (pt->trouble == AHEAD)
        fleet_set_clock(nd, between(ch, 2000, 60000));
    else if (pt->trouble == BEHIND)
        fleet_set_clock(nd, -between(ch, 2000, 60000));
    else
        server_kill(&nd->sv);
}

/* False when the node does not come back. */
static bool heal(chaos *ch, size_t i)
{
    fleet_node *nd = &ch->fl.nodes[i];
    patient *pt = &ch->patients[i];
    bool up = true;

    if (pt->trouble == STOPPED)
        server_resume(&nd->sv);
    else if (pt->trouble == AHEAD || pt->trouble == BEHIND)
        fleet_set_clock(nd, 0);
    else if (pt->trouble != HEALING)
        up = fleet_restart(nd, pt->trouble == EMPTIED);
    if (pt->trouble != AHEAD && pt->trouble != BEHIND) {
        pt->trouble = WELL;
    } else {
        pt->trouble = HEALING;
        pt->until = dibsx_after_ms(dibsx_now(), HEAL_MS);
    }
    return up;
}

static bool disturb(chaos *ch)
{
    size_t ill = 0, i;

    for (i = 0; i < ch->fl.count; i++) {
        patient *pt = &ch->patients[i];

        if (pt->trouble != WELL && dibsx_now() >= pt->until && !heal(ch, i))
            return false;
        ill += pt->trouble != WELL;
    }
    i = (size_t)between(ch, 0, (int64_t)ch->fl.count - 1);
    if (ill < (ch->fl.count - 1) / 2 && ch->patients[i].trouble == WELL &&
        between(ch, 0, 4) == 0)
        strike(ch, i);
    return true;
}

static pid_t begin(char **command, char *url)
{
    char *words[COMMAND_MAX + 2] = {NULL};
    size_t count = 0;
    pid_t pid;

    for (; command[count] && count < COMMAND_MAX; count++)
        words[count] = command[count];
    words[count] = url;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(words[0], words);
        fprintf(stderr, "with_redlock: %s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

static int await(pid_t pid, chaos *ch, bool disturbing)
{
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, disturbing ? WNOHANG : 0)) != pid) {
        if (ended < 0 && errno != EINTR)
            return 125;
        poll(NULL, 0, 10);
        if (disturbing && !disturb(ch)) {
            fprintf(stderr, "with_redlock: a node does not come back\n");
            kill(pid, SIGKILL);
            return 125;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(chaos *ch, bool disturbing, char **words)
{
    char url[FLEET_URL_MAX];
    pid_t pid;
    int code;

    if (!fleet_start(&ch->fl, strtoul(words[0], NULL, 10), true))
        return 125;
    for (size_t i = 0; i < FLEET_MAX; i++)
        ch->patients[i].trouble = WELL;
    fleet_url(&ch->fl, words[1], url);
    pid = begin(words + 3, url);
    code = pid < 0 ? 125 : await(pid, ch, disturbing);
    if (disturbing)
        printf("nodes stopped %u, killed %u, emptied %u, clocks set ahead %u, "
               "back %u\n",
               ch->counts[STOPPED], ch->counts[KILLED], ch->counts[EMPTIED],
               ch->counts[AHEAD], ch->counts[BEHIND]);
    fleet_stop(&ch->fl);
    return code;
}

int main(int argc, char **argv)
{
    static chaos ch;
    bool disturbing = argc > 2 && strcmp(argv[1], "--chaos") == 0;
    char **words = argv + (disturbing ? 3 : 1);
    long count = argc - (words - argv);

    if (count < 4 || strcmp(words[2], "--") != 0) {
        fprintf(stderr, "usage: with_redlock [--chaos SEED] NODES PARAMETERS "
                        "-- COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (disturbing)
        ch.prng.state = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
    return run(&ch, disturbing, words);
}
