/* origin.h - whether a request is for this server, and not the doing of a web page
 * of somebody else's. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_ORIGIN_H
#define DIBS_HTTP_ORIGIN_H

#include "http/head.h"
#include <sys/socket.h>

/* 0; 421: it is for another host than "localhost", the address that it has come to,
 * or one of `hosts` ("a.example,b.example", may be NULL); 403: a page of another
 * origin made a browser send it. `sealed`: it came with TLS. *why is a sentence. */
int dibs__http_origin_judge(const dibs__http_head *head,
                            const struct sockaddr *here, const char *hosts,
                            bool sealed, const char **why);

#endif
