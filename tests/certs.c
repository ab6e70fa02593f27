/* certs.c - see certs.h. */
/* SPDX-License-Identifier: MIT */
#include "certs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 40 };

#define HERE "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"

/* What the openssl command says goes to `dir`/openssl.log. */
static void become(const char *dir, char *const *words)
{
    int log;

    if (chdir(dir) != 0)
        _exit(126);
    log = open("openssl.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    execvp("openssl", words);
    _exit(127);
}

/* Runs `openssl COMMAND` in the folder; the words hold no blanks. */
static bool openssl(const char *dir, const char *command)
{
    char *text = strdup(command);
    char *rest = text, *words[WORDS_MAX] = {(char *)(size_t) "openssl"};
    size_t count = 1;
    int status = -1;
    pid_t pid;

    if (!text)
        return false;
    while (count < WORDS_MAX - 1 && (words[count] = strsep(&rest, " ")) != NULL)
        count++;
    pid = fork();
    if (pid == 0)
        become(dir, words);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    free(text);
    if (status != 0)
        fprintf(stderr, "certs: openssl %s failed in %s\n", command, dir);
    return status == 0;
}

#define EC "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

/* A certificate that signs itself. */
static bool make_root(const char *dir, const char *name, const char *extension)
{
    char command[512];

    snprintf(command, sizeof(command),
             "req -x509 " EC " -days 2 -keyout %s.key -out %s.pem "
             "-subj /CN=%s -addext %s",
             name, name, name, extension);
    return openssl(dir, command);
}

/* A key, and the wish for a certificate. */
static bool
make_request(const char *dir, const char *name, const char *extension)
{
    char command[512];

    snprintf(command, sizeof(command),
             "req -new " EC " -keyout %s.key -out %s.csr -subj /CN=%s "
             "-addext %s",
             name, name, name, extension);
    return openssl(dir, command);
}

/* A certificate signed by the authority `ca`. */
static bool make_signed(const char *dir, const char *name, const char *ca,
                        const char *extension)
{
    char command[512];

    snprintf(command, sizeof(command),
             "x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -CAcreateserial "
             "-copy_extensions copy -days 2 -out %s.pem",
             name, ca, ca, name);
    return make_request(dir, name, extension) && openssl(dir, command);
}

static bool write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *out;
    bool ok;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    out = fopen(path, "w");
    ok = out && fputs(text, out) >= 0;
    if (out && fclose(out) != 0)
        ok = false;
    if (!ok)
        fprintf(stderr, "certs: %s: %s\n", path, strerror(errno));
    return ok;
}

/* A certificate of the authority "ca" whose time is over. Of the commands only
 * `openssl ca` takes a moment in the past in every release, and it wants files of
 * its own. */
static bool make_expired(const char *dir, const char *name)
{
    static const char conf[] = "[ca]\ndefault_ca = it\n[it]\n"
                               "database = index.txt\nrand_serial = yes\n"
                               "new_certs_dir = .\ndefault_md = sha256\n"
                               "copy_extensions = copy\npolicy = any\n"
                               "[any]\ncommonName = supplied\n";
    char command[512];

    snprintf(command, sizeof(command),
             "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key "
             "-startdate 20200101000000Z -enddate 20200102000000Z "
             "-in %s.csr -out %s.pem",
             name, name);
    return write_file(dir, "ca.cnf", conf) &&
           write_file(dir, "index.txt", "") && make_request(dir, name, HERE) &&
           openssl(dir, command);
}

bool certs_make(const char *dir)
{
    return make_root(dir, "ca", "keyUsage=keyCertSign") &&
           make_root(dir, "other_ca", "keyUsage=keyCertSign") &&
           make_signed(dir, "server", "ca", HERE) &&
           make_signed(dir, "client", "ca", "subjectAltName=DNS:client") &&
           make_expired(dir, "expired") &&
           make_signed(dir, "wrong_host", "ca",
                       "subjectAltName=DNS:elsewhere.example") &&
           make_signed(dir, "localhost", "ca", "keyUsage=digitalSignature") &&
           make_signed(dir, "wrong_ca", "other_ca", HERE) &&
           make_root(dir, "self_signed", HERE);
}
