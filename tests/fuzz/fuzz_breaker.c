/* fuzz_breaker.c - a client of a breaker, and a store that says anything of its state:
 * the text, the version, the sums and when it expires. The client's own rules hold. */
/* SPDX-License-Identifier: MIT */
#include "coord/breaker_machine.h"
#include "fuzz.h"

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static bool take(input *in, void *out, size_t size)
{
    if (in->size < size)
        return false;
    memcpy(out, in->data, size);
    in->data += size;
    in->size -= size;
    return true;
}

/* What it is taken for is what was written, unless no breaker wrote it. */
static void check_state(const char *text)
{
    dibs__breaker_state state = dibs__breaker_parse(text);

    REQUIRE(state == DIBS__BREAKER_CLOSED ||
            strcmp(dibs__breaker_text(state), text) == 0);
    REQUIRE(dibs__breaker_parse(dibs__breaker_text(state)) == state);
}

static bool take_sums(input *in, dibs__sums *out)
{
    uint8_t counts[4];

    *out = (dibs__sums){.good = 0};
    if (!take(in, counts, sizeof(counts)) ||
        !take(in, &out->expires_ms, sizeof(out->expires_ms)) ||
        !take(in, out->state, sizeof(out->state) - 1))
        return false;
    out->good = counts[0];
    out->bad = counts[1];
    out->slow = counts[2];
    out->version = counts[3];
    out->reporters = out->bad + out->slow > 0;
    if (out->expires_ms < 0)
        out->expires_ms = -1;
    return true;
}

static void make_call(dibs__breaker *br, dibsx_nsec now, bool good)
{
    static const dibs__sums none = {.expires_ms = -1};
    dibs__breaker_pass pass;
    dibs__enter_todo todo = dibs__breaker_enter(br, now, &pass);

    if (todo == DIBS__ENTER_LOOK)
        dibs__breaker_metered(br, now, now, DIBS_UNAVAIL, &none);
    if (todo == DIBS__ENTER_ASK)
        todo = dibs__breaker_answered(br, &pass, now,
                                      good ? DIBS_OK : DIBS_UNKNOWN,
                                      dibsx_after_ms(now, 10000), 0);
    if (todo == DIBS__ENTER_PASS)
        dibs__breaker_left(br, &pass, good, false, now);
}

static void do_next(dibs__breaker *br, dibsx_nsec now, dibs_status rc,
                    const dibs__sums *sums)
{
    dibs__breaker_act act;

    switch (dibs__breaker_next(br, now, &act)) {
    case DIBS__BREAKER_REPORT:
        dibs__breaker_metered(br, now, now, rc, sums);
        break;
    case DIBS__BREAKER_PUT:
        dibs__breaker_put_over(br, &act, now, rc, sums->version);
        break;
    case DIBS__BREAKER_RELEASE:
        dibs__breaker_released(br, act.permit.id, now);
        break;
    case DIBS__BREAKER_EAR:
        dibs__breaker_eared(br, now, now, rc);
        break;
    case DIBS__BREAKER_SLEEP:
        break;
    }
}

/* The answers are of each kind in turn. */
static dibs_status status_of(uint8_t choice)
{
    static const dibs_status all[] = {DIBS_OK, DIBS_STALE, DIBS_UNAVAIL,
                                      DIBS_UNKNOWN};

    return all[choice % 4];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const dibs__breaker_rules rules = {.threshold = 2,
                                              .min_calls = 10,
                                              .sampling_ms = 1000,
                                              .recovery_ms = 500,
                                              .probe_ttl_ms = 10000,
                                              .probes = 1,
                                              .need = 2,
                                              .min_clients = 1};
    input in = {data, size};
    dibsx_nsec now = 1000 * DIBSX_SEC;
    dibs__breaker br;
    dibs__sums sums;
    uint8_t how[3];

    dibs__breaker_init(&br, &rules, true, 1);
    while (take(&in, how, sizeof(how)) && take_sums(&in, &sums)) {
        check_state(sums.state);
        now = dibsx_after_ms(now, how[0]);
        if (how[1] & 1)
            dibs__breaker_told(&br, sums.version, now);
        if (how[1] & 2)
            dibs__breaker_missed(&br, now);
        if (how[1] & 8)
            dibs__breaker_shown(&br, sums.version, sums.state, now);
        do_next(&br, now, status_of(how[2]), &sums);
        make_call(&br, now, how[1] & 4);
        REQUIRE(dibs__breaker_check(&br, now) == NULL);
    }
    return 0;
}
