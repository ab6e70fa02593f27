/* fuzz_lease_event.c - messages to viewers: whatever the bytes are, the texts of a line are
 * within them, and a line that is written again reads the same. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "core/lease_event.h"
#include "fuzz.h"

#include <inttypes.h>

static void check_within(const char *text, size_t size, const char *part)
{
    REQUIRE(part >= text && part + strlen(part) <= text + size);
}

static void check_again(const dibs__view_line *line)
{
    static const char *const kinds[] = {"acquired", "released", "lost"};
    dibs__view_line again;
    dibsx_buf out;
    char *all, *at;

    dibsx_buf_init(&out, 1 << 20);
    dibsx_buf_printf(&out,
                     "%s\t%" PRIu64 "\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t%s\n",
                     kinds[line->kind], line->fence, line->mode, line->span_ms,
                     line->at_ms, line->who, line->name);
    at = all = dibsx_buf_take(&out);
    REQUIRE(all && dibs__view_read_line(&at, &again));
    REQUIRE(again.kind == line->kind && again.fence == line->fence);
    REQUIRE(again.span_ms == line->span_ms && again.at_ms == line->at_ms);
    REQUIRE(strcmp(again.mode, line->mode) == 0);
    REQUIRE(strcmp(again.who, line->who) == 0);
    REQUIRE(strcmp(again.name, line->name) == 0);
    dibsx_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *at = text;
    dibs__view_line line;
    int64_t sent_ms;
    uint64_t dropped;

    if (dibs__view_read_head(&at, &sent_ms, &dropped))
        REQUIRE(sent_ms >= 0);
    while (dibs__view_read_line(&at, &line)) {
        REQUIRE(line.fence > 0 && line.span_ms >= 0 && line.at_ms >= 0);
        REQUIRE(*line.name);
        check_within(text, size, line.mode);
        check_within(text, size, line.who);
        check_within(text, size, line.name);
        check_again(&line);
    }
    free(text);
    return 0;
}
