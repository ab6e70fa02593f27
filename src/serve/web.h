/* web.h - the dashboard: a fixed table of the files of web/, made at build time.
 * Nothing is looked up on disk. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_WEB_H
#define DIBS_SERVE_WEB_H

#include <stddef.h>

typedef struct dibs__serve_file {
    const char *path; /* "js/main.js" */
    const char *type;
    const char *etag; /* with its quotes */
    const unsigned char *bytes;
    size_t len;
    const char *packed_etag;
    const unsigned char *packed; /* by gzip, less comments */
    size_t packed_len;           /* 0: the build had no gzip */
} dibs__serve_file;

/* By path. */
extern const dibs__serve_file dibs__serve_files[];
extern const size_t dibs__serve_file_count;

#endif
