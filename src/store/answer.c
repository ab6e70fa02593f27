/* answer.c - whether an answer about a lease is possible; see answer.h. */
/* SPDX-License-Identifier: MIT */
#include "store/answer.h"
#include "base/fail.h"
#include <inttypes.h>

static int64_t max_ms(int64_t one_ms, int64_t other_ms)
{
    return one_ms > other_ms ? one_ms : other_ms;
}

static dibs_status odd_span(int64_t left_ms, int64_t most_ms, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNKNOWN, "ODD",
                         "the store says that %" PRId64
                         " ms are left of a lease that has at most %" PRId64
                         " ms: look at what answers there with `dibs doctor`",
                         left_ms, most_ms);
}

static dibs_status check_span(int64_t left_ms, int64_t most_ms, dibs_error *err)
{
    if (left_ms <= 0 || left_ms > most_ms)
        return odd_span(left_ms, most_ms, err);
    return DIBS_OK;
}

static dibs_status check_fence(uint64_t fence, uint64_t least, dibs_error *err)
{
    if (fence >= least && fence <= INT64_MAX)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_UNKNOWN, "ODD",
                         "the store gave the fence %" PRIu64
                         ", and the least that it can be is %" PRIu64
                         ": look at what answers there with `dibs doctor`",
                         fence, least);
}

dibs_status dibs__answer_grant(const dibs__ask *ask, const dibs__answer *ans,
                               dibs_error *err)
{
    int64_t most_ms = ask->most_ms > 0
                          ? ask->most_ms
                          : max_ms(ask->ttl_ms, DIBS__LEASE_MAX_MS);
    dibs_status rc =
        check_span(ans->left_ms, ans->claim ? DIBS__CLAIM_MS : most_ms, err);

    return rc == DIBS_OK ? check_fence(ans->fence, 1, err) : rc;
}

dibs_status dibs__answer_busy(const dibs__answer *ans, dibs_error *err)
{
    if (ans->left_ms < 0 || ans->left_ms > DIBS__SPAN_MAX_MS)
        return odd_span(ans->left_ms, DIBS__SPAN_MAX_MS, err);
    return check_fence(ans->fence, 0, err);
}

dibs_status dibs__answer_convert(const dibs__conversion *conversion,
                                 const dibs__answer *ans, dibs_error *err)
{
    dibs_status rc =
        check_span(ans->left_ms, max_ms(conversion->ttl_ms, DIBS__LEASE_MAX_MS),
                   err);

    return rc == DIBS_OK ? check_fence(ans->fence, conversion->fence, err) : rc;
}

dibs_status dibs__answer_renewal(const dibs__renewal *item, dibs_error *err)
{
    if (item->ttl_ms == 0 && item->left_ms == 0)
        return DIBS_OK;
    return check_span(item->left_ms, max_ms(item->ttl_ms, DIBS__LEASE_MAX_MS),
                      err);
}
