/* fuzz_cron.c - cron expressions: mistakes have a column, and the ticks of all others
 * are in order, forwards and backwards. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "jobs/cron.h"
#include "tzif_maker.h"

enum { TICKS = 4 };

/* Central Europe, without its past. */
static const dibs__zone *find_zone(void)
{
    static const int32_t offsets[] = {3600};
    static const tzif berlin = {.version = '2',
                                .offsets = offsets,
                                .type_count = 1,
                                .footer = "\nCET-1CEST,M3.5.0,M10.5.0/3\n"};
    static unsigned char bytes[TZIF_SIZE];
    static dibs__zone *zone;

    if (!zone)
        REQUIRE(dibs__zone_read("Fuzz", bytes, make_tzif(&berlin, bytes), &zone,
                                NULL) == DIBS_OK);
    return zone;
}

static void check_ticks(const dibs__cron *cron, int64_t after)
{
    const dibs__zone *zone = find_zone();
    dibs__tick next, back;

    for (int i = 0; i < TICKS; i++) {
        if (!dibs__cron_next(cron, zone, after, &next))
            return;
        REQUIRE(next.at > after);
        REQUIRE(dibs__cron_prev(cron, zone, next.at + 1, &back));
        REQUIRE(back.at == next.at && back.rule == next.rule);
        if (dibs__cron_prev(cron, zone, next.at, &back))
            REQUIRE(back.at <= after);
        REQUIRE(!dibs__cron_next_from(cron, zone, next.at,
                                      next.at + next.offset_s, &back) ||
                back.at > next.at);
        after = next.at;
    }
}

static void check_words(const dibs__cron *cron)
{
    dibsx_buf out;

    dibsx_buf_init(&out, 8192);
    dibs__cron_words(cron, &out);
    REQUIRE(dibsx_buf_ok(&out) && out.len > 0);
    dibsx_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__cron cron;
    dibs_error err = {0};
    int column = 0;

    if (dibs__cron_parse(text, &cron, &column, &err) != DIBS_OK) {
        REQUIRE(column >= 1 && (size_t)column <= strlen(text) + 1);
        REQUIRE(err.message[0]);
    } else {
        check_words(&cron);
        check_ticks(&cron, -1);
        check_ticks(&cron, 1806100000); /* clocks change soon */
        check_ticks(&cron, 1824900000);
        cron.anchor_s = 1800000000;
        check_ticks(&cron, 1790000000);
    }
    free(text);
    return 0;
}
