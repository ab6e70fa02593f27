/* verb_acquire.c - acquire: takes locks and leaves them taken.
 *
 * The leases outlive this process: only the tokens are left. So it prints the
 * tokens before it lets go of the leases, and releases the leases when that
 * fails. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_acquire.h"
#include "cli/lock_or_set.h"
#include "cli/print.h"
#include "cli/token.h"
#include "cli/verbs.h"
#include "exec/signals.h"

typedef struct acquisition {
    const dibs__command *cmd;
    dibs__lock_request request;
    dibs_client *cl;
    dibs__lock_or_set locks;
    dibs__token_file file;
    bool to_file;
} acquisition;

static int report_json(const acquisition *tk)
{
    const dibs__lock_request *request = &tk->request;
    dibs__report report;

    dibs__report_begin(&report);
    dibs__token_json(&report.js, request->names[0],
                     dibs__lock_or_set_find(&tk->locks, request->names[0]));
    if (request->count > 1) {
        dibsx_json_key(&report.js, "locks");
        dibsx_json_open(&report.js, '[');
        for (size_t i = 0; i < request->count; i++) {
            dibsx_json_open(&report.js, '{');
            dibs__token_json(&report.js, request->names[i],
                             dibs__lock_or_set_find(&tk->locks,
                                                    request->names[i]));
            dibsx_json_close(&report.js, '}');
        }
        dibsx_json_close(&report.js, ']');
    }
    return dibs__report_end(&report);
}

/* A line for each name, in the order in which they were given. */
static void token_lines(const acquisition *tk, dibsx_buf *lines)
{
    char text[DIBS__TOKEN_SIZE];
    dibs__token token;

    for (size_t i = 0; i < tk->request.count; i++) {
        dibs__token_of(dibs__lock_or_set_find(&tk->locks, tk->request.names[i]),
                       &token);
        dibs__token_text(&token, text);
        dibsx_buf_puts(lines, text);
        if (tk->request.count > 1)
            dibsx_buf_printf(lines, " %s", tk->request.names[i]);
        dibsx_buf_putc(lines, '\n');
    }
}

static int hand_over(acquisition *tk, const dibsx_buf *lines)
{
    dibs_error err;

    if (!dibsx_buf_ok(lines))
        return dibs__cli_nomem("the tokens");
    if (tk->to_file &&
        dibs__token_file_put(&tk->file, dibsx_buf_text(lines), &err) != DIBS_OK)
        return dibs__cli_fail(tk->cmd, &err);
    if (dibs__opt_flag(tk->cmd, "json"))
        return report_json(tk);
    if (tk->to_file)
        return 0;
    dibs__out_text(dibsx_buf_text(lines));
    return dibs__out_done();
}

/* Nobody is there to renew it later, which must not look like a holder that died.
 */
static dibs_status make_claim(acquisition *tk, dibs_error *err)
{
    dibs__lock_request *request = &tk->request;

    request->lock.flags |= DIBS_LOCK_NO_RENEW;
    return dibs__lock_or_set_init(&tk->locks, tk->cl, request->names,
                                  request->count, &request->lock, err);
}

/* Waits with the signals served; *fatal is one that ended it. */
static int take_locks(acquisition *tk, const dibs__signals *sig, int *fatal)
{
    dibsx_buf lines;
    dibs_error err = {0};
    dibs_status rc = make_claim(tk, &err);
    int code;

    if (rc == DIBS_OK)
        rc = dibs__cli_acquire(tk->cl, &tk->locks, &tk->request, sig, fatal,
                               &err);
    if (*fatal)
        return DIBS__EXIT_SIGNAL + *fatal;
    if (rc != DIBS_OK)
        return dibs__lock_request_refused(tk->cmd, &tk->request, &err);
    /* A grant after a wait is a short claim until it is renewed, and nothing will
     * renew it once this process has gone. */
    if (dibs__lock_or_set_renew(&tk->locks, &err) != DIBS_OK)
        return dibs__cli_fail(tk->cmd, &err);
    dibsx_buf_init(&lines, DIBS__OUT_MAX);
    token_lines(tk, &lines);
    code = hand_over(tk, &lines);
    dibsx_buf_fini(&lines);
    if (code == 0)
        dibs__lock_or_set_leave(&tk->locks);
    return code;
}

static int acquire_locks(const dibs__command *cmd)
{
    const char *path = dibs__opt_text(cmd, "token-file");
    acquisition tk = {.cmd = cmd, .file = {.fd = -1}, .to_file = path != NULL};
    dibs__signals sig;
    dibs_error err;
    int fatal = 0, code = dibs__lock_request_read(cmd, &tk.request);

    if (code)
        return code;
    dibs__signals_block(&sig);
    if (path && dibs__token_file_open(&tk.file, path, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = dibs__lock_request_open(cmd, &tk.request, &tk.cl);
    if (code == 0)
        code = take_locks(&tk, &sig, &fatal);
    dibs__lock_or_set_fini(&tk.locks);
    dibs_close(tk.cl);
    dibs__token_file_close(&tk.file);
    if (!fatal)
        fatal = dibs__signals_pending(&sig);
    if (fatal && code)
        dibs__signal_die(fatal);
    return code;
}

const dibs__verb dibs__verb_acquire = {
    .name = "acquire",
    .operands = "NAME",
    .summary = "take a lock and leave it taken",
    .about = "Takes the lock NAME for --ttl and prints its token, "
             "OWNER:FENCE, which release, renew and check need. Nothing "
             "renews it: without renew or release it ends after --ttl.\n"
             "With --also several names are taken, all or none. Then there "
             "is a line for each, its token, a space and its name, in the "
             "order given; a token file has the same lines, and release, "
             "renew and check find theirs in it.\n"
             "Prefer run where it fits: it cannot forget to release, and "
             "it stops the work when the lock is lost.\n",
    .examples = "Lock around several steps of a script:\n"
                "  token=$(dibs acquire deploy --ttl 10m -w 1m) || exit\n"
                "  dibs release deploy --token \"$token\"\n"
                "With a file, as between ExecStartPre and ExecStopPost:\n"
                "  dibs acquire unit --token-file /run/unit.token\n",
    .exits = "0 taken\n"
             "75 the lock is busy, or was not granted in time (-E)\n"
             "128+N ended by signal N while waiting\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = acquire_locks,
};
