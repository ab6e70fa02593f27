/* page.h - the page of a worker for browsers. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_PAGE_H
#define DIBS_DEMO_PAGE_H

#include "demo/work.h"

#define DIBS__DEMO_PAGE_TYPE "text/html; charset=utf-8"

/* Appends the page: what the demonstration is, what the worker answers, and who
 * holds the lock now. Asks the store. */
void dibs__demo_page_put(const dibs__demo_work *work, dibsx_buf *out);

/* The script of the page, which shows the events as they come. */
extern const char dibs__demo_script[];
extern const size_t dibs__demo_script_len;

#define DIBS__DEMO_SCRIPT_TYPE "text/javascript; charset=utf-8"

#endif
