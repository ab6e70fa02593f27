/* contract_main.c - runs the contract suite on one store, or those of its tests
 * whose names are like a pattern: contract [PATTERN] URL. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

/* Tests that need something in each of their lines; others say it themselves. */
static int run_if(dibs__ability what, int (*run)(void), const char *name)
{
    const char *why = contract_lack(what);

    if (!why)
        return run();
    print_message("[  SKIPPED ] %s: %s\n", name, why);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: %s [PATTERN] STORE-URL\n", argv[0]);
        return 64;
    }
    if (argc == 3)
        cmocka_set_test_filter(argv[1]);
    contract_url_set(argv[argc - 1]);
    failed += contract_lacks();
    failed += contract_lease();
    failed += contract_renew();
    failed += contract_leave();
    failed += contract_kind();
    failed += contract_reader();
    failed += contract_permit();
    failed += contract_wait();
    failed += contract_place();
    failed += contract_doorbell();
    failed += contract_convert();
    failed += contract_durable();
    failed += contract_all();
    failed += contract_yield();
    failed += run_if(DIBS__CAN_VALUE, contract_value, "value");
    failed += run_if(DIBS__CAN_VALUE, contract_change, "change");
    failed += run_if(DIBS__CAN_LOG, contract_log, "log");
    failed += run_if(DIBS__CAN_LOG, contract_events, "events");
    failed += run_if(DIBS__CAN_TOPIC, contract_topic, "topic");
    failed += run_if(DIBS__CAN_RATE, contract_rate, "rate");
    failed += run_if(DIBS__CAN_METER, contract_meter, "meter");
    failed += run_if(DIBS__CAN_MEET, contract_roster, "roster");
    failed += run_if(DIBS__CAN_MEET, contract_roster_twin, "roster twin");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue, "queue");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue_care, "queue care");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue_crowd, "queue crowd");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue_done, "queue done");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue_peers, "queue peers");
    failed += run_if(DIBS__CAN_ITEMS, contract_queue_twin, "queue twin");
    failed += run_if(DIBS__CAN_COMMIT, contract_commit, "commit");
    failed += run_if(DIBS__CAN_COMMIT, contract_index, "index");
    failed += contract_monitor();
    failed += contract_thread();
    return failed == 0 ? 0 : 1;
}
