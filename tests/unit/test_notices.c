/* test_notices.c - notices reach the handlers that they are addressed to. */
/* SPDX-License-Identifier: MIT */
#include "core/notices.h"

#include "core/client.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

/* A part of a client that has one address. */
typedef struct part {
    dibs__notice_handler handler; /* first, so that one is the other */
    const char *address;
    unsigned int asked;
    unsigned int heard;
    unsigned int missed;
    uint64_t fence;    /* of what it heard last */
    struct part *adds; /* is registered when this one hears something */
} part;

static void
hear(dibs_client *cl, dibs__notice_handler *handler, const dibs__notice *notice)
{
    part *pt = (part *)(void *)handler;

    pt->asked++;
    if (strcmp(notice->owner, pt->address) != 0)
        return;
    pt->heard++;
    pt->fence = notice->fence;
    if (pt->adds)
        dibs__notices_register(cl, &pt->adds->handler);
}

static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    part *pt = (part *)(void *)handler;

    pt->missed++;
    if (pt->adds)
        dibs__notices_register(cl, &pt->adds->handler);
}

static part make_part(const char *address)
{
    return (part){.handler = {.hear = hear, .hear_missed = hear_missed},
                  .address = address};
}

static void
send(dibs_client *cl, const char *owner, dibs__notice_kind kind, uint64_t fence)
{
    dibs__notice notice = {.kind = kind, .fence = fence};

    snprintf(notice.owner, sizeof(notice.owner), "%s", owner);
    dibs__notices_dispatch(cl, &notice);
}

static void reaches_all_of_its_address(void **state)
{
    static dibs_client cl;
    part a = make_part("aa"), b = make_part("bb"), c = make_part("bb"),
         d = make_part("dd");

    (void)state;
    dibs__notices_register(&cl, &a.handler);
    dibs__notices_register(&cl, &b.handler);
    dibs__notices_register(&cl, &c.handler);
    dibs__notices_register(&cl, &d.handler);
    send(&cl, "bb", DIBS__NOTICE_CHANGED, 7);
    assert_int_equal(a.heard + d.heard, 0);
    assert_int_equal(b.heard, 1);
    assert_int_equal(b.fence, 7);
    assert_int_equal(c.heard, 1);
    assert_int_equal(c.fence, 7);
    send(&cl, "dd", DIBS__NOTICE_BROKEN, 8);
    assert_int_equal(d.heard, 1);
    assert_int_equal(d.fence, 8);
    assert_int_equal(a.heard, 0);
    assert_int_equal(b.heard + c.heard, 2);
    assert_int_equal(a.missed + b.missed + c.missed + d.missed, 0);
}

static void drops_what_nobody_recognises(void **state)
{
    static dibs_client cl;
    part a = make_part("aa"), b = make_part("bb");

    (void)state;
    send(&cl, "aa", DIBS__NOTICE_GRANTED, 1);
    send(&cl, "", DIBS__NOTICE_MISSED, 0);
    dibs__notices_register(&cl, &a.handler);
    dibs__notices_register(&cl, &b.handler);
    send(&cl, "dd", DIBS__NOTICE_YIELD, 1);
    assert_int_equal(a.asked, 1);
    assert_int_equal(b.asked, 1);
    assert_int_equal(a.heard + b.heard, 0);
}

static void all_learn_that_notices_were_missed(void **state)
{
    static dibs_client cl;
    part a = make_part("aa"), b = make_part(""), c = make_part("cc");

    (void)state;
    dibs__notices_register(&cl, &a.handler);
    dibs__notices_register(&cl, &b.handler);
    dibs__notices_register(&cl, &c.handler);
    send(&cl, "", DIBS__NOTICE_MISSED, 0);
    assert_int_equal(a.missed, 1);
    assert_int_equal(b.missed, 1);
    assert_int_equal(c.missed, 1);
    assert_int_equal(a.asked + b.asked + c.asked, 0);
}

/* A callback of the program may make the first of a kind, which registers. */
static void registers_while_notices_are_dispatched(void **state)
{
    static dibs_client cl;
    part a = make_part("aa"), b = make_part("bb"), c = make_part("cc");

    (void)state;
    dibs__notices_register(&cl, &a.handler);
    a.adds = &b;
    send(&cl, "aa", DIBS__NOTICE_YIELD, 1);
    a.adds = &c;
    send(&cl, "", DIBS__NOTICE_MISSED, 0);
    a.adds = NULL;
    send(&cl, "bb", DIBS__NOTICE_GRANTED, 2);
    send(&cl, "cc", DIBS__NOTICE_GRANTED, 3);
    assert_int_equal(a.heard, 1);
    assert_int_equal(b.fence, 2);
    assert_int_equal(c.fence, 3);
    assert_int_equal(b.missed, 1);
    assert_int_equal(c.missed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reaches_all_of_its_address),
        cmocka_unit_test(drops_what_nobody_recognises),
        cmocka_unit_test(all_learn_that_notices_were_missed),
        cmocka_unit_test(registers_while_notices_are_dispatched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
