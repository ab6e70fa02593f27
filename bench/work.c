/* work.c - the command line of a program that measures work on a Redis server. */
/* SPDX-License-Identifier: MIT */
#include "bench/work.h"
#include "bench/pairs.h"
#include "bench/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse(const char *program, const work *list, long most)
{
    char words[200] = "";

    for (; list->word; list++) {
        strncat(words, list->word, sizeof(words) - strlen(words) - 1);
        if (list[1].word)
            strncat(words, "|", sizeof(words) - strlen(words) - 1);
    }
    fprintf(stderr, "usage: %s PORT %s 1-%ld\n", program, words, most);
    exit(2);
}

int measure_work(int argc, char **argv, const work *list, long most)
{
    long port = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
    long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    const work *named = list;
    char url[64];
    ground on;

    while (argc == 4 && named->word && strcmp(argv[2], named->word) != 0)
        named++;
    if (port < 1 || port > 65535 || count < 1 || count > most || !named->word)
        refuse(argv[0], list, most);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%ld", port);
    on = (ground){raw_open((int)port), client_open(url), url, (int)port};
    named->measure(&on, (size_t)count);
    dibs_close(on.client);
    raw_close(on.bare);
    return 0;
}
