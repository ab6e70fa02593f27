/* stage.c - a server and three handles on its steps. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

dibsx_nsec stage_soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(5000));
}

int stage_setup(void **state)
{
    stage *sg = calloc(1, sizeof(*sg));
    void *w = NULL;

    if (!sg || world_setup(&w) != 0)
        return -1;
    sg->w = w;
    for (size_t i = 0; i < 3; i++)
        CHECK(DIBS_OK,
              dibs__store_open(sg->w->url, stage_soon(), &sg->st[i], err));
    for (size_t i = 0; i < 2; i++)
        CHECK(DIBS_OK, sg->st[i]->ops->doorbell_open(sg->st[i], stage_soon(),
                                                     &sg->bell[i], err));
    *state = sg;
    return 0;
}

int stage_teardown(void **state)
{
    stage *sg = *state;
    void *w = sg->w;

    for (size_t i = 0; i < 3; i++)
        dibs__store_close(sg->st[i]);
    free(sg);
    return world_teardown(&w);
}

void stage_reply(char *reply, char out[STAGE_REPLY])
{
    assert_non_null(reply);
    snprintf(out, STAGE_REPLY, "%s", reply);
    free(reply);
    for (char *at = out; *at; at++)
        if (*at == '\n')
            *at = ' ';
}
