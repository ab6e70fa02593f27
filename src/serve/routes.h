/* routes.h - the table of routes, and the functions that answer them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ROUTES_H
#define DIBS_SERVE_ROUTES_H

#include "http/route.h"
#include "serve/routes_jobs.h"

/* The need of a route is a dibs__serve_role. */
extern const dibs__http_route dibs__serve_routes[];
extern const size_t dibs__serve_route_count;

/* route_probe.c */
dibs__http_fn dibs__serve_get_livez;
dibs__http_fn dibs__serve_get_readyz;
dibs__http_fn dibs__serve_get_healthz;
dibs__http_fn dibs__serve_get_version;
dibs__http_fn dibs__serve_get_openapi;
dibs__http_fn dibs__serve_get_problems;
dibs__http_fn dibs__serve_get_whoami;

/* route_locks.c */
dibs__http_fn dibs__serve_get_locks;
dibs__http_fn dibs__serve_get_lock;

/* route_manage.c */
dibs__http_fn dibs__serve_post_yield;
dibs__http_fn dibs__serve_post_break;
dibs__http_fn dibs__serve_post_break_stale;
dibs__http_fn dibs__serve_get_admin_lock;
dibs__http_fn dibs__serve_delete_admin_lock;

/* route_tokens.c */
dibs__http_fn dibs__serve_get_tokens;

/* route_log.c */
dibs__http_fn dibs__serve_get_log_level;
dibs__http_fn dibs__serve_post_log_level;

/* route_overview.c */
dibs__http_fn dibs__serve_get_overview;
dibs__http_fn dibs__serve_get_history;

/* route_feed.c */
dibs__http_fn dibs__serve_get_feed;
dibs__http_fn dibs__serve_get_series;

/* route_metrics.c */
dibs__http_fn dibs__serve_get_metrics;

/* route_audit.c */
dibs__http_fn dibs__serve_get_audit;

/* route_waits.c */
dibs__http_fn dibs__serve_get_waits;
dibs__http_fn dibs__serve_get_stats;

/* route_leases.c */
dibs__http_fn dibs__serve_post_lease;
dibs__http_fn dibs__serve_post_renew;
dibs__http_fn dibs__serve_post_release;
dibs__http_fn dibs__serve_post_check;

/* route_state.c */
dibs__http_fn dibs__serve_get_values;
dibs__http_fn dibs__serve_get_value;
dibs__http_fn dibs__serve_put_value;
dibs__http_fn dibs__serve_delete_value;
dibs__http_fn dibs__serve_post_value_add;

/* route_session.c */
dibs__http_fn dibs__serve_post_sessions;
dibs__http_fn dibs__serve_get_session;
dibs__http_fn dibs__serve_delete_session;
dibs__http_fn dibs__serve_post_beat;
dibs__http_fn dibs__serve_get_stream;
dibs__http_fn dibs__serve_put_lease;
dibs__http_fn dibs__serve_get_lease;
dibs__http_fn dibs__serve_delete_lease;
dibs__http_fn dibs__serve_post_convert;

/* route_web.c */
dibs__http_fn dibs__serve_get_page;
dibs__http_fn dibs__serve_get_icon;
dibs__http_fn dibs__serve_get_css;
dibs__http_fn dibs__serve_get_js;
dibs__http_fn dibs__serve_get_js_page;
dibs__http_fn dibs__serve_get_vendor;
/* route_elections.c */
dibs__http_fn dibs__serve_get_elections;
dibs__http_fn dibs__serve_get_election;
dibs__http_fn dibs__serve_post_resign;

/* route_members.c */
dibs__http_fn dibs__serve_get_groups;
dibs__http_fn dibs__serve_get_group;

/* route_barriers.c */
dibs__http_fn dibs__serve_get_barriers;
dibs__http_fn dibs__serve_get_barrier;
dibs__http_fn dibs__serve_post_arrive;

/* route_latches.c */
dibs__http_fn dibs__serve_get_latches;
dibs__http_fn dibs__serve_get_latch;
dibs__http_fn dibs__serve_post_count_down;
dibs__http_fn dibs__serve_post_latch_reset;

/* route_topics.c */
dibs__http_fn dibs__serve_get_topic_events;
dibs__http_fn dibs__serve_post_topic;
dibs__http_fn dibs__serve_get_topic_messages;
dibs__http_fn dibs__serve_post_message;

/* route_queues.c */
dibs__http_fn dibs__serve_get_queues;
dibs__http_fn dibs__serve_get_queue;
dibs__http_fn dibs__serve_get_messages;
dibs__http_fn dibs__serve_post_push;
dibs__http_fn dibs__serve_post_queue_pause;
dibs__http_fn dibs__serve_post_queue_resume;
dibs__http_fn dibs__serve_post_purge;
dibs__http_fn dibs__serve_post_redrive;

/* route_deliveries.c */
dibs__http_fn dibs__serve_post_reserve;
dibs__http_fn dibs__serve_post_settle;

/* route_breakers.c */
dibs__http_fn dibs__serve_get_breakers;
dibs__http_fn dibs__serve_get_breaker;
dibs__http_fn dibs__serve_post_report;
dibs__http_fn dibs__serve_post_trip;
dibs__http_fn dibs__serve_post_breaker_reset;

/* route_limits.c */
dibs__http_fn dibs__serve_get_limits;
dibs__http_fn dibs__serve_get_topics;
dibs__http_fn dibs__serve_post_take;

/* hub.c */
dibs__http_fn dibs__serve_get_events;

#endif
