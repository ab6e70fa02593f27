/* routes_jobs.h - the functions that answer routes of jobs, runs and nodes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ROUTES_JOBS_H
#define DIBS_SERVE_ROUTES_JOBS_H

#include "http/route.h"

/* route_jobs.c */
dibs__http_fn dibs__serve_get_jobs;
dibs__http_fn dibs__serve_get_job;
dibs__http_fn dibs__serve_get_next;
dibs__http_fn dibs__serve_get_timeline;

/* route_job_changes.c */
dibs__http_fn dibs__serve_post_job_run;
dibs__http_fn dibs__serve_post_job_pause;
dibs__http_fn dibs__serve_post_job_resume;
dibs__http_fn dibs__serve_post_jobs_pause;
dibs__http_fn dibs__serve_post_jobs_resume;

/* route_runs.c */
dibs__http_fn dibs__serve_get_runs;
dibs__http_fn dibs__serve_get_run;
dibs__http_fn dibs__serve_post_run_cancel;
dibs__http_fn dibs__serve_post_run_rerun;
dibs__http_fn dibs__serve_post_run_resume;

/* route_output.c */
dibs__http_fn dibs__serve_get_output;

/* route_nodes.c */
dibs__http_fn dibs__serve_get_nodes;
dibs__http_fn dibs__serve_post_node_drain;

#endif
