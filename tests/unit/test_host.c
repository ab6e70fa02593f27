/* test_host.c - what a machine is called, and what follows from it. */
/* SPDX-License-Identifier: MIT */
#include "base/host.h"
#include "core/client.h"
#include "core/monitor/monitor.h"
#include "core/who.h"
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_name(const char *name, const char *expected)
{
    char out[DIBSX_HOST_SIZE];

    dibsx_host_shorten(name, out);
    assert_string_equal(out, expected);
}

static void long_names_are_shortened(void **state)
{
    (void)state;
    check_name("web2", "web2");
    check_name("exactly-31-bytes-long.example.x",
               "exactly-31-bytes-long.example.x");
    check_name("exactly-32-bytes-long.example.xy",
               "exactly-32-bytes-long.ex~e85ff6");
    check_name("ip-10-0-0-1.eu-central-1.compute.internal",
               "ip-10-0-0-1.eu-central-1~6d7386");
    check_name("ip-10-0-0-1.eu-central-2.compute.internal",
               "ip-10-0-0-1.eu-central-2~1ea87e");
}

static void this_machine_has_a_name(void **state)
{
    char out[DIBSX_HOST_SIZE] = "";

    (void)state;
    dibsx_host_name(out);
    assert_in_range(strlen(out), 1, DIBSX_HOST_SIZE - 1);
}

/* A process that is no more: its number is given to nobody for a while. */
static int64_t ended_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* Two machines without a name are not the same one. */
static void no_process_is_gone_from_an_unknown_host(void **state)
{
    static dibs_client cl = {.host = "here"};
    const dibs__entry entry = {.holder = true, .ttl_ms = 900, .left_ms = 500};
    char hint[DIBS__HINT_MAX];
    dibs__who who = {.pid = ended_process(), .host = "here"};

    (void)state;
    assert_true(dibs__stale_hint(&cl, &entry, &who, hint));
    who.host = DIBSX_HOST_UNKNOWN;
    assert_false(dibs__stale_hint(&cl, &entry, &who, hint));
    dibsx_host_shorten(DIBSX_HOST_UNKNOWN, cl.host);
    assert_false(dibs__stale_hint(&cl, &entry, &who, hint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_names_are_shortened),
        cmocka_unit_test(this_machine_has_a_name),
        cmocka_unit_test(no_process_is_gone_from_an_unknown_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
