/* job_reader.c - what reading definitions needs all along: reports, zones, memory. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_reader.h"

#include "base/alloc.h"
#include "base/fail.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 400 };

struct dibs__open_zone {
    struct dibs__open_zone *next;
    dibs__zone *zone;
};

void dibs__job_reader_init(dibs__job_reader *rd, const dibs__job_sink *sink)
{
    *rd = (dibs__job_reader){.sink = sink};
}

void dibs__job_reader_fini(dibs__job_reader *rd)
{
    for (struct dibs__open_zone *oz = rd->zones, *next; oz; oz = next) {
        next = oz->next;
        dibs__zone_free(oz->zone);
        dibsx_free(oz);
    }
    rd->zones = NULL;
}

static void report(dibs__job_reader *rd, bool warning, size_t line,
                   size_t column, const char *message)
{
    size_t *count = warning ? &rd->warnings : &rd->mistakes;

    if (warning && rd->mute)
        return;
    if (++*count <= DIBS__JOB_NOTES_MAX && rd->sink)
        rd->sink->note(rd->sink->arg, warning, line, column, message);
}

void dibs__job_mistake(dibs__job_reader *rd, const dibsx_yaml_node *at,
                       const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    report(rd, false, at->line, at->column, message);
}

void dibs__job_warn(dibs__job_reader *rd, const dibsx_yaml_node *at,
                    const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    report(rd, true, at->line, at->column, message);
}

void dibs__job_failure(dibs__job_reader *rd, const dibsx_yaml_node *at,
                       const char *key, const dibs_error *err)
{
    if (err->status == DIBS_NOMEM)
        rd->nomem = true;
    else
        dibs__job_mistake(rd, at, "%s%s%s", key ? key : "", key ? ": " : "",
                          err->message);
}

void dibs__job_mistake_within(dibs__job_reader *rd, const dibsx_yaml_node *at,
                              size_t column, const char *message)
{
    report(rd, false, at->line, at->column + (at->quoted ? 1 : 0) + column - 1,
           message);
}

dibs_status dibs__job_zone(dibs__job_reader *rd, const char *name,
                           const dibs__zone **out, dibs_error *err)
{
    struct dibs__open_zone *oz;
    dibs_status rc;

    for (oz = rd->zones; oz; oz = oz->next) {
        if (strcmp(dibs__zone_name(oz->zone), name) == 0) {
            *out = oz->zone;
            return DIBS_OK;
        }
    }
    oz = dibsx_zalloc(sizeof(*oz));
    if (!oz)
        return dibsx_nomem(err, "the zone of a job");
    rc = dibs__zone_open(name, &oz->zone, err);
    if (rc != DIBS_OK) {
        dibsx_free(oz);
        return rc;
    }
    oz->next = rd->zones;
    rd->zones = oz;
    *out = oz->zone;
    return DIBS_OK;
}

const dibsx_yaml_node *
dibs__node_get(const dibsx_yaml_node *map, const char *key)
{
    if (!map || map->kind != DIBSX_YAML_MAP)
        return NULL;
    for (const dibsx_yaml_node *at = map->child; at; at = at->next)
        if (strcmp(at->text, key) == 0)
            return dibsx_yaml_is_null(at->value) ? NULL : at->value;
    return NULL;
}

static bool has_key(const dibsx_yaml_node *map, const char *key)
{
    if (map->kind == DIBSX_YAML_MAP)
        for (const dibsx_yaml_node *at = map->child; at; at = at->next)
            if (strcmp(at->text, key) == 0)
                return true;
    return false;
}

const dibsx_yaml_node *
dibs__source_get(const dibs__job_source *source, const char *key)
{
    return dibs__node_get(has_key(source->map, key) ? source->map
                                                    : source->defaults,
                          key);
}
