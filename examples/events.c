/* events.c - read all events of a topic, and go on later where the last run ended.
 *
 * The position is kept in a value here. Better keep it with what you write for an event.
 *
 *     events [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

/* Handles all that is there now, and moves the position. */
static dibs_status
handle_events(dibs_client *client, int64_t *position, dibs_error *err)
{
    dibs_reader_opts *from = DIBS_READER_OPTS(.start = DIBS_FROM_POSITION,
                                              .position = (uint64_t)*position);
    dibs_reader *reader = NULL;
    dibs_event event;
    dibs_status rc = dibs_reader_new(client, "orders", from, &reader, err);

    while (rc == DIBS_OK) {
        rc = dibs_reader_next(reader, 0, &event, err);
        if (rc == DIBS_OK && event.kind == DIBS_EVENT)
            printf("handled %.*s\n", (int)event.len, (const char *)event.data);
        else if (rc == DIBS_OK)
            printf("events up to %" PRIu64 " are gone\n", event.to);
    }
    if (rc == DIBS_TIMEOUT)
        rc = dibs_state_add(client, "orders:position",
                            (int64_t)dibs_reader_position(reader) - *position,
                            position, err);
    dibs_reader_free(reader);
    return rc;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    int64_t position = 0;

    if (rc == DIBS_OK)
        rc = dibs_state_add(client, "orders:position", 0, &position, &err);
    for (int run = 1; run <= 2 && rc == DIBS_OK; run++) {
        char text[16];
        int len = snprintf(text, sizeof(text), "order %d", run);

        rc = dibs_events_append(client, "orders", text, (size_t)len, NULL, NULL,
                                &err);
        if (rc == DIBS_OK)
            rc = handle_events(client, &position, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
