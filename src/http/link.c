/* link.c - connections, and how long each may take.
 *
 * Owns one record per connection. Loop thread only. A record that memory was too
 * short for is missing: that connection has no limit of time. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "http/inside.h"
#include <sys/socket.h>

static void link_open(dibs__http_server *server, struct MHD_Connection *conn,
                      void **context)
{
    const union MHD_ConnectionInfo *info =
        dibs__mhd.MHD_get_connection_info(conn,
                                          MHD_CONNECTION_INFO_CONNECTION_FD);
    dibs__http_link *link = NULL;

    if (info && dibsx_heap_reserve(&server->dues, server->links + 1))
        link = dibsx_zalloc(sizeof(*link));
    *context = link;
    if (!link)
        return;
    server->links++;
    link->fd = info->connect_fd;
    dibs__http_link_set(server, link, DIBS__HTTP_FRESH,
                        server->opts.receive_ms);
}

static void link_close(dibs__http_server *server, dibs__http_link *link)
{
    server->again = true;
    if (!link)
        return;
    dibsx_heap_remove(&server->dues, &link->due);
    server->links--;
    dibsx_free(link);
}

void dibs__http_on_link(void *cls, struct MHD_Connection *conn, void **context,
                        enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        link_open(cls, conn, context);
    else
        link_close(cls, *context);
}

dibs__http_link *dibs__http_link_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        dibs__mhd.MHD_get_connection_info(conn,
                                          MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void dibs__http_link_set(dibs__http_server *server, dibs__http_link *link,
                         dibs__http_link_state state, int64_t span_ms)
{
    if (!link)
        return;
    link->state = state;
    if (span_ms < 0)
        dibsx_heap_remove(&server->dues, &link->due);
    else
        dibsx_heap_set(&server->dues, &link->due,
                       dibsx_after_ms(dibsx_now(), span_ms));
}

/* Past libmicrohttpd, which has no say while it waits for a request. */
static void tell_too_slow(const dibs__http_server *server, int fd)
{
    dibsx_buf body, text;

    dibsx_buf_init(&body, 4096);
    dibsx_buf_init(&text, 4096);
    dibs__http_error_text(server, 408, "The request took too long to arrive",
                          &body);
    dibsx_buf_printf(&text,
                     "HTTP/1.1 408 Request Timeout\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n"
                     "Connection: close\r\n\r\n%s",
                     body.len, dibsx_buf_text(&body));
    if (dibsx_buf_ok(&text))
        (void)!send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    dibsx_buf_fini(&text);
    dibsx_buf_fini(&body);
}

void dibs__http_links_cut(dibs__http_server *server, dibsx_nsec now)
{
    dibsx_heap_node *first;

    while ((first = dibsx_heap_first(&server->dues)) && first->at <= now) {
        dibs__http_link *link = (dibs__http_link *)first;

        dibsx_heap_remove(&server->dues, first);
        if (link->state == DIBS__HTTP_FRESH || link->state == DIBS__HTTP_HEARD)
            tell_too_slow(server, link->fd);
        /* libmicrohttpd sees the end of it and closes. */
        (void)shutdown(link->fd, SHUT_RDWR);
    }
}
