/* handshake.c - the first commands on a connection: password, database, name,
 * role.
 *
 * Owns nothing. Runs on the thread that connects. A server may repeat the words
 * of a command in its error, so its reply to a password is never shown. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/handshake.h"
#include "base/fail.h"
#include "store/redis/wire/reply.h"
#include <stdio.h>
#include <string.h>

typedef enum command { AUTH, SELECT, SETNAME, ROLE } command;

enum { COMMANDS = 4 };

enum { CODE_SIZE = 24 };

/* The first word of an error, which is its code. */
static void read_code(const redisReply *reply, char *code)
{
    size_t len = strcspn(reply->str, " ");

    if (len >= CODE_SIZE)
        len = CODE_SIZE - 1;
    memcpy(code, reply->str, len);
    code[len] = '\0';
}

static bool is_one_of(const char *code, const char *const *codes)
{
    while (*codes && strcmp(*codes, code) != 0)
        codes++;
    return *codes != NULL;
}

/* The server runs but cannot serve clients just now. */
static bool is_passing(const redisReply *reply, const char *code)
{
    static const char *const codes[] = {"LOADING",  "BUSY",        "MASTERDOWN",
                                        "TRYAGAIN", "CLUSTERDOWN", NULL};

    return is_one_of(code, codes) ||
           strncmp(reply->str, "ERR max number of clients", 25) == 0;
}

/* A server without a password refuses every one, in words of its own. */
static bool has_no_password(const redisReply *reply)
{
    return strstr(reply->str, "without any password configured") ||
           strstr(reply->str, "no password is set");
}

static dibs_status
auth_failed(const dibs__redis_conf *conf, const redisReply *reply,
            const char *code, dibs_error *err)
{
    if (has_no_password(reply))
        return dibsx_fail_at(err, DIBS_DENIED, "NOPASSWORD",
                             "the server did not accept the password: it has "
                             "none; set requirepass there, or give none in "
                             "URL, password_file and DIBS_REDIS_PASSWORD");
    return dibsx_fail_at(err, DIBS_DENIED, code,
                         "the server did not accept the password of the user "
                         "%.60s (%s)",
                         conf->user ? conf->user : "default", code);
}

static dibs_status
fail_denied(const dibs__redis_conf *conf, const redisReply *reply,
            const char *code, dibs_error *err)
{
    if (strcmp(code, "NOAUTH") == 0 && !conf->password)
        return dibsx_fail_at(err, DIBS_DENIED, code,
                             "the server wants a password; give it in the "
                             "URL, by password_file or by "
                             "DIBS_REDIS_PASSWORD");
    return dibsx_fail_at(err, DIBS_DENIED, code,
                         "the server refuses this client: %.150s", reply->str);
}

/* Fails with the meaning of an error reply to a command. */
static dibs_status judge_error(command what, const dibs__redis_conf *conf,
                               const redisReply *reply, dibs_error *err)
{
    static const char *const denials[] = {"NOAUTH", "WRONGPASS", "NOPERM",
                                          "DENIED", NULL};
    char code[CODE_SIZE];

    read_code(reply, code);
    if (is_passing(reply, code))
        return dibsx_fail_at(err, DIBS_UNAVAIL, code,
                             "the server is not ready: %.150s", reply->str);
    if (what == AUTH && strcmp(code, "DENIED") != 0)
        return auth_failed(conf, reply, code, err);
    /* The name only helps people who look at the server's clients. */
    if (what == SETNAME && strcmp(code, "NOAUTH") != 0 &&
        strcmp(code, "DENIED") != 0)
        return DIBS_OK;
    if (is_one_of(code, denials))
        return fail_denied(conf, reply, code, err);
    if (what == ROLE)
        return dibsx_fail_at(err, DIBS_REFUSED, code,
                             "the server does not say its role: %.150s",
                             reply->str);
    return dibsx_fail_at(err, DIBS_INVALID, code,
                         "the server has no database %d (%.100s)", conf->db,
                         reply->str);
}

static dibs_status
send_command(dibs__conn *cn, command what, const dibs__redis_conf *conf,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs__words words = {0};
    char number[16];

    switch (what) {
    case AUTH:
        dibs__words_puts(&words, "AUTH");
        if (conf->user)
            dibs__words_puts(&words, conf->user);
        dibs__words_puts(&words, conf->password ? conf->password : "");
        break;
    case SELECT:
        (void)snprintf(number, sizeof(number), "%d", conf->db);
        dibs__words_puts(&words, "SELECT");
        dibs__words_puts(&words, number);
        break;
    case SETNAME:
        dibs__words_puts(&words, "CLIENT");
        dibs__words_puts(&words, "SETNAME");
        dibs__words_puts(&words, conf->client_name);
        break;
    case ROLE:
        dibs__words_puts(&words, "ROLE");
        break;
    }
    return dibs__conn_tell(cn, &words, deadline, err);
}

/* A server that is no primary any more, or not yet, is of no use. */
static dibs_status check_role(const dibs__redis_conf *conf,
                              const redisReply *reply, dibs_error *err)
{
    char role[CODE_SIZE];

    dibs__reply_text(dibs__reply_item(reply, 0), role, sizeof(role));
    if (strcmp(role, "master") == 0)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_UNAVAIL,
                      "%.100s:%d is not the primary of %.60s but a %s",
                      conf->host, conf->port, conf->primary,
                      strcmp(role, "slave") == 0 ? "replica" : "stranger");
}

static dibs_status
await_answer(dibs__conn *cn, command what, const dibs__redis_conf *conf,
             dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc = dibs__conn_hear(cn, -1, deadline, &reply, err);

    if (rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED)
        return dibsx_fail_at(err, DIBS_UNAVAIL, "ETIMEDOUT",
                             "the server did not answer in time");
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_ERROR)
        rc = judge_error(what, conf, reply, err);
    else if (rc == DIBS_OK && what == ROLE)
        rc = check_role(conf, reply, err);
    dibs__reply_free(reply);
    return rc;
}

/* Chooses the commands, in order; returns their number. */
static size_t choose_commands(const dibs__redis_conf *conf, command *commands)
{
    size_t count = 0;

    if (conf->user || conf->password)
        commands[count++] = AUTH;
    if (conf->db != 0)
        commands[count++] = SELECT;
    commands[count++] = SETNAME;
    if (conf->primary)
        commands[count++] = ROLE;
    return count;
}

/* A server that has too many clients says so and closes, perhaps before the
 * first command: its reply is read first, and a failure to send reported
 * last. */
dibs_status dibs__handshake(dibs__conn *cn, const dibs__redis_conf *conf,
                            dibsx_nsec deadline, dibs_error *err)
{
    command commands[COMMANDS];
    size_t count = choose_commands(conf, commands);
    dibs_error why = {0};
    dibs_status said = DIBS_OK;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && said == DIBS_OK; i++)
        said = send_command(cn, commands[i], conf, deadline, &why);
    if (said == DIBS_NOMEM)
        return dibsx_fail(err, said, "%s", why.message);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = await_answer(cn, commands[i], conf, deadline, err);
    if (rc == DIBS_OK && said != DIBS_OK)
        return dibsx_fail_at(err, DIBS_UNAVAIL, why.origin, "%s", why.message);
    return rc;
}
