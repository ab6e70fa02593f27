/* work_nodes.c - the tests of test_work.py as a program, for tests/mutants. Arguments are
 * names of tests. */
/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARGS_MAX = 16 };

int main(int argc, char **argv)
{
    char *args[ARGS_MAX + 4] = {(char[]){PYTHON}, (char[]){"-B"},
                                (char[]){TEST_FILE}};

    for (int i = 1; i < argc && i < ARGS_MAX; i++)
        args[i + 2] = argv[i];
    if (setenv("DIBS_BIN", DIBS_PROGRAM, 1) == 0)
        (void)execv(PYTHON, args);
    perror(PYTHON);
    return 1;
}
