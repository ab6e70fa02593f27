/* attempt.c - the packed form of an attempt.
 *
 *     header | argv... | env... | dir | user        each string ends with a NUL
 *
 * The memfd is sealed by nothing: who writes it is the parent of who reads it. Any
 * thread packs; the executor's process unpacks. */
/* SPDX-License-Identifier: MIT */
#include "exec/attempt.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/write_all.h"
#include "exec/env_file.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct header {
    int64_t timeout_ms;
    int64_t kill_after_ms;
    uint32_t argc;
    uint32_t envc;
    int32_t signal;
    int32_t outlives_belief;
} header;

static void add_text(dibsx_buf *to, const char *text)
{
    dibsx_buf_add(to, text, strlen(text) + 1);
}

/* Variables of the file, and their names, to leave them out of `env`. */
typedef struct file_env {
    dibsx_buf entries;
    uint32_t count;
} file_env;

static bool add_entry(void *arg, const char *entry)
{
    file_env *file = arg;
    add_text(&file->entries, entry);
    file->count++;
    return true;
}

/* The last one of a name in a file wins, as in a shell: it is the one that this
 * finds as itself. */
static bool has_later(const file_env *file, const char *from, const char *entry)
{
    size_t len = strcspn(entry, "=") + 1;
    const char *end = file->entries.data + file->entries.len;
    for (const char *at = from; at < end; at += strlen(at) + 1)
        if (strncmp(at, entry, len) == 0)
            return true;
    return false;
}

static uint32_t add_env(dibsx_buf *to, char *const *env, const file_env *file)
{
    uint32_t count = 0;
    const char *at = file->entries.data;
    for (size_t i = 0; env && env[i]; i++) {
        if (at && has_later(file, at, env[i]))
            continue;
        add_text(to, env[i]);
        count++;
    }
    for (uint32_t i = 0; i < file->count; i++, at += strlen(at) + 1) {
        if (has_later(file, at + strlen(at) + 1, at))
            continue;
        add_text(to, at);
        count++;
    }
    return count;
}

static uint32_t add_command(dibsx_buf *to, const dibs__attempt_spec *spec)
{
    uint32_t count = 0;
    if (spec->shell) {
        add_text(to, "/bin/sh");
        add_text(to, "-c");
        add_text(to, spec->shell);
        return 3;
    }
    for (; spec->argv && spec->argv[count]; count++)
        add_text(to, spec->argv[count]);
    return count;
}

static int make_memfd(const dibsx_buf *text, dibs_error *err)
{
    int fd = memfd_create("dibs-attempt", MFD_CLOEXEC);
    if (fd >= 0 && dibsx_write_all(fd, text->data, text->len))
        return fd;
    (void)dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                        "cannot write a memfd for the command: %s",
                        strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int dibs__attempt_pack(const dibs__attempt_spec *spec, dibs_error *err)
{
    header head = {.timeout_ms = spec->timeout_ms,
                   .kill_after_ms = spec->kill_after_ms,
                   .signal = spec->signal ? spec->signal : SIGTERM,
                   .outlives_belief = spec->outlives_belief};
    file_env file = {.count = 0};
    dibsx_buf text;
    int fd = -1;
    dibsx_buf_init(&text, DIBS__ATTEMPT_MAX);
    dibsx_buf_init(&file.entries, DIBS__ENV_FILE_MAX * 2);
    if (spec->env_file &&
        dibs__env_file_read(spec->env_file, add_entry, &file, err) != DIBS_OK)
        goto out;
    dibsx_buf_add(&text, &head, sizeof head);
    head.argc = add_command(&text, spec);
    head.envc = add_env(&text, spec->env, &file);
    add_text(&text, spec->dir ? spec->dir : "");
    add_text(&text, spec->user ? spec->user : "");
    if (head.argc == 0) {
        (void)dibsx_fail(err, DIBS_INVALID, "there is no command to run");
        goto out;
    }
    if (!dibsx_buf_ok(&text) || !dibsx_buf_ok(&file.entries)) {
        (void)dibsx_fail(err, DIBS_INVALID,
                         "command and environment have more than %zu bytes",
                         DIBS__ATTEMPT_MAX);
        goto out;
    }
    memcpy(text.data, &head, sizeof head);
    fd = make_memfd(&text, err);
out:
    dibsx_buf_fini(&file.entries);
    dibsx_buf_fini(&text);
    return fd;
}

static char *read_bytes(int fd, size_t *len)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(header) ||
        (uint64_t)info.st_size > DIBS__ATTEMPT_MAX)
        return NULL;
    *len = (size_t)info.st_size;
    char *bytes = dibsx_zalloc(*len + 1);
    if (bytes && pread(fd, bytes, *len, 0) == (ssize_t)*len)
        return bytes;
    dibsx_free(bytes);
    return NULL;
}

/* The next `count` strings as a list with a NULL behind it. */
static char **take_list(char **at, const char *end, uint32_t count)
{
    char **list = dibsx_zalloc_n((size_t)count + 1, sizeof *list);
    for (uint32_t i = 0; list && i < count; i++) {
        if (*at >= end) {
            dibsx_free(list);
            return NULL;
        }
        list[i] = *at;
        *at += strlen(*at) + 1;
    }
    return list;
}

static const char *take_text(char **at, const char *end)
{
    const char *text = *at < end ? *at : "";
    *at += strlen(text) + 1;
    return *text ? text : NULL;
}

bool dibs__attempt_unpack(int fd, dibs__attempt_packed *out)
{
    header head;
    size_t len = 0;
    *out = (dibs__attempt_packed){.bytes = read_bytes(fd, &len)};
    if (!out->bytes)
        return false;
    memcpy(&head, out->bytes, sizeof head);
    char *at = out->bytes + sizeof head;
    const char *end = out->bytes + len;
    out->argv = take_list(&at, end, head.argc);
    if (out->argv)
        out->env = take_list(&at, end, head.envc);
    if (!out->env) {
        dibs__attempt_packed_fini(out);
        return false;
    }
    out->dir = take_text(&at, end);
    out->user = take_text(&at, end);
    out->timeout_ms = head.timeout_ms;
    out->kill_after_ms = head.kill_after_ms;
    out->signal = head.signal;
    out->outlives_belief = head.outlives_belief;
    return true;
}

void dibs__attempt_packed_fini(dibs__attempt_packed *packed)
{
    dibsx_free(packed->env);
    dibsx_free(packed->argv);
    dibsx_free(packed->bytes);
    *packed = (dibs__attempt_packed){0};
}
