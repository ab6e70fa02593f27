/* bare_http.c - the least that an HTTP server can cost: libmicrohttpd, which answers
 * "ok" to everything. Prints its port; ends when its input does. Built by
 * `make bench-serve` alone, which installs the library. */
/* SPDX-License-Identifier: MIT */
#include <microhttpd.h>
#include <stdio.h>
#include <unistd.h>

static enum MHD_Result
answer(void *arg, struct MHD_Connection *link, const char *url,
       const char *method, const char *version, const char *body,
       size_t *body_len, void **call)
{
    static int begun;
    struct MHD_Response *ok = arg;

    (void)url;
    (void)method;
    (void)version;
    (void)body;
    if (!*call) {
        *call = &begun;
        return MHD_YES;
    }
    if (*body_len > 0) {
        *body_len = 0;
        return MHD_YES;
    }
    return MHD_queue_response(link, MHD_HTTP_OK, ok);
}

int main(void)
{
    static char text[] = "ok\n";
    struct MHD_Response *ok =
        MHD_create_response_from_buffer(sizeof(text) - 1, text,
                                        MHD_RESPMEM_PERSISTENT);
    struct MHD_Daemon *server =
        ok ? MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL,
                              answer, ok, MHD_OPTION_END)
           : NULL;
    const union MHD_DaemonInfo *info;
    char byte;

    if (!server) {
        fprintf(stderr, "bare_http: cannot start a server\n");
        return 1;
    }
    info = MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT);
    printf("%d\n", info ? info->port : 0);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    MHD_stop_daemon(server);
    MHD_destroy_response(ok);
    return 0;
}
