/* quota.c - how much of something each name may have in a second. Pure but for the
 * record. */
/* SPDX-License-Identifier: MIT */
#include "base/quota.h"
#include <stdio.h>
#include <string.h>

bool dibsx_quota_take(dibsx_quota *all, const char *name, unsigned rate,
                      dibsx_nsec now)
{
    const double most = 5.0 * rate;
    dibsx_quota *own = all;

    for (size_t i = 0; i < DIBSX_QUOTAS; i++) {
        if (strcmp(all[i].name, name) == 0) {
            own = &all[i];
            break;
        }
        if (all[i].at < own->at)
            own = &all[i];
    }
    if (strcmp(own->name, name) != 0) {
        *own = (dibsx_quota){.left = most, .at = now};
        snprintf(own->name, sizeof(own->name), "%s", name);
    }
    own->left += (double)(now - own->at) / (double)DIBSX_SEC * rate;
    own->left = own->left < most ? own->left : most;
    own->at = now;
    if (own->left < 1)
        return false;
    own->left -= 1;
    return true;
}
