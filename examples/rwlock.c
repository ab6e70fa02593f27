/* rwlock.c - many readers or one writer; upgrade and downgrade.
 *
 *     rwlock [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static dibs_status say(const char *what, dibs_status rc)
{
    printf("%s: %s\n", what, dibs_status_name(rc));
    return rc;
}

/* Two readers; one of them becomes the writer once it is alone. */
static dibs_status change(dibs_lock *me, dibs_lock *other, dibs_error *err)
{
    dibs_status rc = dibs_lock_acquire(me, err);

    if (rc == DIBS_OK)
        rc = say("another reads beside me", dibs_lock_acquire(other, err));
    if (rc != DIBS_OK)
        return rc;
    /* Fails at once, because two readers that waited for each other would
     * deadlock. Remedy: release, and acquire as a writer. */
    say("upgrade beside another reader", dibs_lock_upgrade(me, err));
    rc = dibs_lock_release(other, err);
    if (rc == DIBS_OK)
        rc = say("upgrade alone", dibs_lock_upgrade(me, err));
    if (rc != DIBS_OK)
        return rc;
    say("another reads while I write", dibs_lock_try(other, err));
    rc = say("downgrade", dibs_lock_downgrade(me, err));
    if (rc == DIBS_OK)
        rc = say("another reads what I wrote", dibs_lock_try(other, err));
    return rc;
}

int main(int argc, char **argv)
{
    const dibs_lock_opts *reader = DIBS_LOCK_OPTS(.mode = DIBS_SHARED);
    dibs_client *client = NULL;
    dibs_lock *me = NULL, *other = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "catalogue", reader, &me, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "catalogue", reader, &other, &err);
    if (rc == DIBS_OK)
        rc = change(me, other, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(other);
    dibs_lock_free(me);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
