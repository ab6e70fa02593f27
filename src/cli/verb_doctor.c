/* verb_doctor.c - doctor: what weakens the guarantees of the store, and of run; and queues
 * that need somebody. */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"
#include "cli/queue_findings.h"
#include "cli/verbs.h"
#include "exec/tree_means.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct visit {
    bool json;
    dibs__report report;
    const dibs__colours *colours;
    dibs_severity worst;
} visit;

static const char *severity_word(dibs_severity severity)
{
    static const char *const words[] = {"fine", "note", "caution", "danger"};

    return words[severity];
}

static const char *
severity_colour(const dibs__colours *colours, dibs_severity severity)
{
    return severity == DIBS_DANGER    ? colours->red
           : severity == DIBS_CAUTION ? colours->yellow
           : severity == DIBS_FINE    ? colours->green
                                      : "";
}

static void
print_finding(const dibs__colours *colours, const dibs_finding *finding)
{
    dibsx_buf line;

    dibsx_buf_init(&line, 16384);
    dibsx_buf_printf(&line, "%s%-7s%s  ",
                     severity_colour(colours, finding->severity),
                     severity_word(finding->severity), colours->off);
    dibs__clean(&line, finding->subject);
    dibsx_buf_puts(&line, ": ");
    dibs__clean(&line, finding->found);
    if (finding->advice) {
        dibsx_buf_puts(&line, "\n         ");
        dibs__clean(&line, finding->advice);
    }
    dibsx_buf_putc(&line, '\n');
    dibs__out_text(dibsx_buf_text(&line));
    dibsx_buf_fini(&line);
}

static void add_finding(const dibs_finding *finding, void *arg)
{
    visit *vt = arg;
    dibsx_json *js = &vt->report.js;

    if (finding->severity > vt->worst)
        vt->worst = finding->severity;
    if (!vt->json) {
        print_finding(vt->colours, finding);
        return;
    }
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "severity", severity_word(finding->severity));
    dibsx_json_pair_text(js, "subject", finding->subject);
    dibsx_json_pair_text(js, "found", finding->found);
    dibsx_json_pair_text(js, "advice", finding->advice);
    dibsx_json_close(js, '}');
}

/* Prints what was found, also when the audit stopped half way. */
static int finish(visit *vt, const dibs_client *cl)
{
    if (!vt->json)
        return dibs__out_done();
    dibsx_json_close(&vt->report.js, ']');
    dibsx_json_pair_text(&vt->report.js, "url", dibs_url(cl));
    dibsx_json_pair_text(&vt->report.js, "worst", severity_word(vt->worst));
    return dibs__report_end(&vt->report);
}

/* Whether `dibs run` can end what it has started. */
static void each_of_run(visit *vt)
{
    dibs__tree_means means;
    char found[160];
    dibs__tree_means_init(&means);
    bool whole = dibs__tree_means_whole(&means);
    (void)snprintf(found, sizeof found,
                   "dibs run ends the tree of a command by %s",
                   dibs__tree_means_text(&means));
    dibs_finding finding = {.severity = whole ? DIBS_FINE : DIBS_CAUTION,
                            .subject = "run",
                            .found = found,
                            .advice = whole ? NULL : dibs__tree_means_advice};
    add_finding(&finding, vt);
    dibs__tree_means_fini(&means);
}

enum { QUEUES_MAX = 1000 }; /* so many are looked at */

/* A look at the queues of the store. */
typedef struct queues_look {
    visit *vt;
    dibs_client *cl;
    dibs_error *err;
    dibs_status rc;
    uint64_t queues;
    bool more; /* than QUEUES_MAX */
    int found;
} queues_look;

/* A queue that has gone meanwhile is left out, and what is no queue. */
static bool examine_queue(const char *name, void *arg)
{
    queues_look *look = arg;
    dibs_queue_info info = {.size = sizeof(info)};

    look->more = look->queues == QUEUES_MAX;
    if (look->more)
        return false;
    look->rc = dibs_queue_stats(look->cl, name, &info, look->err);
    if (look->rc == DIBS_NOTFOUND || look->rc == DIBS_MISMATCH ||
        look->rc == DIBS_INVALID) {
        look->rc = DIBS_OK;
        return true;
    }
    if (look->rc != DIBS_OK)
        return false;
    look->queues++;
    look->found += dibs__queue_findings(name, &info, add_finding, look->vt);
    return true;
}

static void sum_up_queues(const queues_look *look)
{
    char found[256];
    dibs_finding finding = {.subject = "queues", .found = found};

    if (look->rc != DIBS_OK) {
        finding.severity = DIBS_NOTE;
        finding.advice = "try `dibs queue ls`, which asks for the same";
        (void)snprintf(found, sizeof(found), "not known: %s",
                       look->err->message);
    } else if (look->more) {
        finding.severity = DIBS_NOTE;
        finding.advice = "`dibs queue ls` lists all";
        (void)snprintf(found, sizeof(found), "only the first %d were looked at",
                       QUEUES_MAX);
    } else if (look->queues > 0 && look->found == 0) {
        (void)snprintf(found, sizeof(found),
                       "%" PRIu64 ", and none needs somebody", look->queues);
    } else {
        return;
    }
    add_finding(&finding, look->vt);
}

/* A store that has no queues says nothing of them. */
static void each_of_queues(visit *vt, dibs_client *cl)
{
    dibs_error err = {0};
    queues_look look = {.vt = vt, .cl = cl, .err = &err};
    dibs_status rc = dibs_queue_list(cl, NULL, examine_queue, &look, &err);

    if (look.rc == DIBS_OK)
        look.rc = rc;
    if (look.rc != DIBS_UNSUPPORTED)
        sum_up_queues(&look);
}

static int examine_store(const dibs__command *cmd)
{
    visit vt = {.json = dibs__opt_flag(cmd, "json"),
                .colours = dibs__colours_of(cmd)};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (vt.json) {
        dibs__report_begin(&vt.report);
        dibsx_json_key(&vt.report.js, "findings");
        dibsx_json_open(&vt.report.js, '[');
    } else {
        printf("%s\n", dibs_url(cl));
    }
    rc = dibs_audit(cl, add_finding, &vt, &err);
    if (rc == DIBS_OK)
        each_of_queues(&vt, cl);
    each_of_run(&vt);
    code = finish(&vt, cl);
    dibs_close(cl);
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return code ? code : vt.worst == DIBS_DANGER;
}

const dibs__verb dibs__verb_doctor = {
    .name = "doctor",
    .summary = "look the store over and say what weakens its guarantees",
    .about = "It looks at queues too, the first 1000 of them: those that are "
             "paused with ready items, that have ready items and no worker for "
             "10 minutes or more, whose oldest item has been ready for an "
             "hour, that are nearly full, or whose dead letters are near their "
             "bound. On Redis this looks at all keys of the server.\n",
    .exits = "0 nothing dangerous was found\n"
             "1 something breaks a guarantee\n",
    .options = "json",
    .run = examine_store,
};
