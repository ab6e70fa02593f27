/* server.c - see server.h. */
/* SPDX-License-Identifier: MIT */
#include "server.h"

#include "certs.h"
#include "hosting.h"
#include "pace.h"
#include "pg_clock.h"

#include "base/clock.h"
#include <dibs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A server that does not answer after this long does not come up. */
enum {
    START_MS = 30000,
    TRIES = 10,
    WORDS_MAX = 40,
    PATH_LEN = 256,
    ENV_MAX = 256
};

/* Who the server runs as: not root, which it refuses. NULL: as who we are. */
static const struct passwd *server_user(void)
{
    const struct passwd *user = NULL;

    if (getuid() == 0)
        user = getpwnam("postgres");
    if (getuid() == 0 && !user)
        user = getpwnam("nobody");
    return user;
}

/* Where Debian keeps its programs, which are not in the PATH; else the name
 * alone. */
static void find_program(const char *name, char out[PATH_LEN])
{
    char pattern[PATH_LEN];
    glob_t found;

    snprintf(out, PATH_LEN, "%s", name);
    snprintf(pattern, sizeof(pattern), "/usr/lib/postgresql/*/bin/%s", name);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    if (found.gl_pathc > 0)
        snprintf(out, PATH_LEN, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
}

#define WORD(text) ((char *)(size_t)(text))

/* The environment of what is started, with its clock. */
static void make_env(char *out[ENV_MAX + 3])
{
    size_t count = 0;

    for (; environ[count] && count < ENV_MAX; count++)
        out[count] = environ[count];
    for (const char *const *word = pg_clock_env(); *word; word++)
        out[count++] = WORD(*word);
    out[count] = NULL;
}

/* In the child: a program of the server's user, in the folder of the server, with
 * its input from INPUT (none: -1) and its output in LOG. */
static void become(const pg_server *sv, const char *log, char *const *words,
                   char *const *env, int input)
{
    const struct passwd *user = server_user();
    int log_fd;

    umask(077);
    if (user && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 ||
                 setuid(user->pw_uid) != 0))
        _exit(126);
    /* After the change of user, which takes it back. */
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (chdir(sv->dir) != 0)
        _exit(126);
    log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log_fd < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0 ||
        (input >= 0 && dup2(input, 0) < 0))
        _exit(126);
    execvpe(words[0], words, env);
    _exit(127);
}

static pid_t
launch(const pg_server *sv, const char *log, char *const *words, int input)
{
    char *env[ENV_MAX + 3];
    pid_t pid;

    make_env(env);
    pid = fork();
    if (pid == 0) {
        setsid();
        become(sv, log, words, env, input);
    }
    return pid;
}

/* Runs a program of the server to its end. */
static bool run(const pg_server *sv, const char *log, char *const *words)
{
    bool ok = hosting_await_end(launch(sv, log, words, -1)) == 0;

    if (!ok)
        hosting_show_log(sv->dir, log);
    return ok;
}

static bool make_dir(pg_server *sv)
{
    const struct passwd *user = server_user();

    *sv = (pg_server){.pid = 0};
    if (!hosting_folder("pg", sv->dir, sizeof(sv->dir)))
        return false;
    return !user || chown(sv->dir, user->pw_uid, user->pw_gid) == 0;
}

static bool init_cluster(const pg_server *sv, char *program)
{
    char *words[] = {program,       WORD("-D"),
                     WORD("data"),  WORD("-U"),
                     WORD("dibs"),  WORD("-A"),
                     WORD("trust"), WORD("-E"),
                     WORD("UTF8"),  WORD("--locale"),
                     WORD("C"),     WORD("--no-sync"),
                     NULL};

    return run(sv, "initdb.log", words);
}

/* Where a new cluster of this PostgreSQL is kept, for initdb takes ten times as long
 * as unpacking what it made: below the build folder, by the major version that is in
 * the path of the program. "" when that is not known. */
static void name_archive(const char *program, char out[PATH_MAX])
{
    int major;

    out[0] = '\0';
    if (sscanf(program, "/usr/lib/postgresql/%d/", &major) == 1)
        snprintf(out, PATH_MAX, PG_ARCHIVES "/pg-cluster-%d.tar", major);
}

/* Keeps the cluster for those who come later. It is named when it is whole; where it
 * cannot be kept, each test makes its own. */
static void keep_cluster(const pg_server *sv, const char *archive)
{
    char part[PATH_MAX + 32];
    pid_t pid;

    snprintf(part, sizeof(part), "%s.%ld", archive, (long)getpid());
    pid = fork();
    if (pid == 0) {
        execlp("tar", "tar", "-C", sv->dir, "-cf", part, "data", (char *)NULL);
        _exit(127);
    }
    if (hosting_await_end(pid) != 0 || rename(part, archive) != 0)
        unlink(part);
}

/* Opened here, for the server's user may have no way to the build folder. */
static bool unpack_cluster(const pg_server *sv, const char *archive)
{
    char *words[] = {WORD("tar"), WORD("-xf"), WORD("-"), NULL};
    int fd = open(archive, O_RDONLY | O_CLOEXEC);
    bool ok;

    if (fd < 0)
        return false;
    ok = hosting_await_end(launch(sv, "unpack.log", words, fd)) == 0;
    close(fd);
    return ok;
}

static bool make_cluster(const pg_server *sv)
{
    char program[PATH_LEN], archive[PATH_MAX];

    find_program("initdb", program);
    name_archive(program, archive);
    if (archive[0] && unpack_cluster(sv, archive))
        return true;
    if (!init_cluster(sv, program))
        return false;
    if (archive[0])
        keep_cluster(sv, archive);
    return true;
}

/* The command line of a server, as pointers into itself. */
typedef struct line {
    char program[PATH_LEN], port[16], dir[96], cert[160], key[160];
    char *words[WORDS_MAX];
    size_t count;
} line;

static void set(line *ln, const char *text)
{
    ln->words[ln->count++] = WORD("-c");
    ln->words[ln->count++] = WORD(text);
}

static void write_line(line *ln, const pg_server *sv)
{
    *ln = (line){.count = 0};
    find_program("postgres", ln->program);
    ln->words[ln->count++] = ln->program;
    ln->words[ln->count++] = WORD("-D");
    ln->words[ln->count++] = WORD("data");
    snprintf(ln->port, sizeof(ln->port), "port=%d", sv->port);
    snprintf(ln->dir, sizeof(ln->dir), "unix_socket_directories=%s", sv->dir);
    set(ln, ln->port);
    set(ln, ln->dir);
    set(ln, "listen_addresses=127.0.0.1");
    set(ln, "max_connections=800");
    /* Of the disk alone: a crash of the server counts. */
    set(ln, sv->durable ? "fsync=on" : "fsync=off");
    set(ln, "autovacuum_naptime=5s");
    /* As who it follows, and how soon again when it was cut off. */
    set(ln, "cluster_name=" PG_STANDBY);
    set(ln, "wal_retrieve_retry_interval=200ms");
    if (sv->cert[0]) {
        snprintf(ln->cert, sizeof(ln->cert), "ssl_cert_file=%s/%s.pem", sv->dir,
                 sv->cert);
        snprintf(ln->key, sizeof(ln->key), "ssl_key_file=%s/%s.key", sv->dir,
                 sv->cert);
        set(ln, "ssl=on");
        set(ln, ln->cert);
        set(ln, ln->key);
    }
}

/* Whether it came up: the schema is there then. A standby has it from another. */
static bool answers(const pg_server *sv)
{
    dibs_store_state state;
    char url[PG_URL_MAX];

    if (sv->primary)
        return pg_number(sv, "SELECT version FROM dibs.meta") > 0;
    pg_unix_url(sv, url);
    return dibs_store_setup(url, DIBS_STORE_INIT, pace_ms(START_MS), &state,
                            NULL) == DIBS_OK;
}

static bool come_up(pg_server *sv)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(START_MS));
    line ln;

    write_line(&ln, sv);
    sv->pid = launch(sv, "postgres.log", ln.words, -1);
    while (sv->pid > 0 && !hosting_has_ended(&sv->pid)) {
        if (answers(sv))
            return true;
        if (dibsx_now() > end)
            pg_kill(sv);
        poll(NULL, 0, 10);
    }
    sv->pid = 0;
    return false;
}

/* On a port that was free a moment ago; on another when it is not any more. */
static bool start(pg_server *sv)
{
    for (int i = 0; i < TRIES; i++) {
        sv->port = hosting_free_port();
        if (come_up(sv))
            return true;
    }
    hosting_show_log(sv->dir, "postgres.log");
    pg_stop(sv);
    return false;
}

bool pg_start(pg_server *sv)
{
    return make_dir(sv) && make_cluster(sv) && start(sv);
}

/* The files belong to who reads them. */
static bool give_away(const pg_server *sv)
{
    const struct passwd *user = server_user();
    char pattern[sizeof(sv->dir) + 8];
    glob_t found;
    bool ok = true;

    snprintf(pattern, sizeof(pattern), "%s/*.*", sv->dir);
    if (!user)
        return true;
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++)
        ok = ok && chown(found.gl_pathv[i], user->pw_uid, user->pw_gid) == 0;
    globfree(&found);
    return ok;
}

bool pg_start_tls(pg_server *sv, const char *cert)
{
    if (!make_dir(sv) || !make_cluster(sv) || !certs_make(sv->dir) ||
        !give_away(sv))
        return false;
    snprintf(sv->cert, sizeof(sv->cert), "%s", cert);
    return start(sv);
}

/* Fills the folder with a copy of the primary. */
static bool copy_primary(pg_server *sv, const pg_server *primary)
{
    char program[PATH_LEN], from[PG_URL_MAX];
    char *words[] = {program,        WORD("-D"), WORD("data"),      WORD("-R"),
                     WORD("-d"),     from,       WORD("--no-sync"), WORD("-X"),
                     WORD("stream"), WORD("-c"), WORD("fast"),      NULL};

    snprintf(from, sizeof(from), "host=%s port=%d user=dibs", primary->dir,
             primary->port);
    find_program("pg_basebackup", program);
    if (!run(sv, "basebackup.log", words))
        return false;
    sv->primary = primary->dir;
    return true;
}

bool pg_start_standby(pg_server *sv, const pg_server *primary)
{
    return make_dir(sv) && copy_primary(sv, primary) && start(sv);
}

bool pg_await_synchronous(const pg_server *primary)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(START_MS));

    while (pg_number(primary, "SELECT count(*) FROM pg_stat_replication WHERE "
                              "sync_state = 'sync'") != 1) {
        if (dibsx_now() > end) {
            fprintf(stderr, "no standby is synchronous\n");
            return false;
        }
        poll(NULL, 0, 10);
    }
    return true;
}

static bool want_standby(const pg_server *sv)
{
    return pg_tell(sv, "ALTER SYSTEM SET synchronous_standby_names = "
                       "'" PG_STANDBY "'") &&
           pg_tell(sv, "SELECT pg_reload_conf()");
}

bool pg_make_synchronous(const pg_server *primary, const pg_server *standby)
{
    return want_standby(standby) && want_standby(primary) &&
           pg_await_synchronous(primary);
}

bool pg_follow(pg_server *sv, const pg_server *primary)
{
    char data[sizeof(sv->dir) + 8];

    snprintf(data, sizeof(data), "%s/data", sv->dir);
    hosting_remove(data);
    return copy_primary(sv, primary) && pg_restart(sv);
}

void pg_stop(pg_server *sv)
{
    if (sv->bouncer_pid > 0) {
        kill(sv->bouncer_pid, SIGKILL);
        (void)hosting_await_end(sv->bouncer_pid);
        sv->bouncer_pid = 0;
    }
    pg_kill(sv);
    if (sv->dir[0])
        hosting_remove(sv->dir);
    sv->dir[0] = '\0';
}

void pg_kill(pg_server *sv)
{
    if (sv->pid <= 0)
        return;
    kill(sv->pid, SIGQUIT);
    (void)hosting_await_end(sv->pid);
    sv->pid = 0;
}

/* What is left of it after a kill may be in the way for a moment. */
bool pg_restart(pg_server *sv)
{
    for (int i = 0; i < TRIES; i++) {
        if (come_up(sv))
            return true;
        poll(NULL, 0, 50);
    }
    hosting_show_log(sv->dir, "postgres.log");
    return false;
}

/* Backends have process groups of their own. */
static void signal_children(const pg_server *sv, int number)
{
    char path[64], text[4096];
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)sv->pid,
             (int)sv->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    len = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    for (char *at = text, *end; *at; at = end + strspn(end, " ")) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            break;
        kill((pid_t)pid, number);
    }
}

/* It has stopped before its backends are listed: one that is born later would
 * outlive it, and be in the way of the next. */
void pg_crash(pg_server *sv)
{
    if (sv->pid <= 0)
        return;
    kill(sv->pid, SIGSTOP);
    while (waitpid(sv->pid, NULL, WUNTRACED) < 0 && errno == EINTR)
        continue;
    signal_children(sv, SIGKILL);
    kill(sv->pid, SIGKILL);
    (void)hosting_await_end(sv->pid);
    sv->pid = 0;
}

void pg_pause(pg_server *sv)
{
    kill(sv->pid, SIGSTOP);
    signal_children(sv, SIGSTOP);
}

void pg_resume(pg_server *sv)
{
    kill(sv->pid, SIGCONT);
    signal_children(sv, SIGCONT);
}

PGconn *pg_connect(const pg_server *sv)
{
    char port[16];
    const char *names[] = {"host", "port", "user", "dbname", NULL};
    const char *values[] = {sv->dir, port, "dibs", "postgres", NULL};
    PGconn *pq;

    snprintf(port, sizeof(port), "%d", sv->port);
    pq = PQconnectdbParams(names, values, 0);
    if (PQstatus(pq) == CONNECTION_OK)
        return pq;
    PQfinish(pq);
    return NULL;
}

bool pg_tell(const pg_server *sv, const char *sql)
{
    PGconn *pq = pg_connect(sv);
    PGresult *result = pq ? PQexec(pq, sql) : NULL;
    ExecStatusType status = PQresultStatus(result);
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

    if (pq && !ok)
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(pq));
    PQclear(result);
    PQfinish(pq);
    return ok;
}

/* Asks, and closes the connection, which may be NULL. */
static long long ask_number(PGconn *pq, const char *sql)
{
    PGresult *result = pq ? PQexec(pq, sql) : NULL;
    long long number = -1;

    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
        number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(pq);
    return number;
}

long long pg_number(const pg_server *sv, const char *sql)
{
    return ask_number(pg_connect(sv), sql);
}

long long pg_pooled_number(const pg_server *sv, const char *sql)
{
    char url[PG_URL_MAX];

    pg_pooled_url(sv, url);
    return ask_number(PQconnectdb(url), sql);
}

bool pg_tell_rights(const pg_server *sv, const char *path)
{
    FILE *file = fopen(path, "r");
    char text[1024];
    bool any = false, ok = true;

    while (file && ok && fgets(text, sizeof(text), file)) {
        if (strncmp(text, "CREATE ROLE ", 12) != 0 &&
            strncmp(text, "GRANT ", 6) != 0 && strncmp(text, "REVOKE ", 7) != 0)
            continue;
        any = true;
        ok = pg_tell(sv, text);
    }
    if (file)
        fclose(file);
    return any && ok;
}

void pg_url(const pg_server *sv, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX, "postgres://dibs@127.0.0.1:%d/postgres",
             sv->port);
}

void pg_unix_url(const pg_server *sv, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX,
             "postgresql:///postgres?host=%s&port=%d&user=dibs", sv->dir,
             sv->port);
}

void pg_tls_url(const pg_server *sv, const char *host, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX,
             "postgres://dibs@%s:%d/"
             "postgres?sslmode=verify-full&sslrootcert=%s/ca.pem",
             host, sv->port, sv->dir);
}

void pg_role_url(const pg_server *sv, const char *role, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX, "postgres://%s@127.0.0.1:%d/postgres", role,
             sv->port);
}

void pg_bouncer_url(const pg_server *sv, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX,
             "postgres://dibs@127.0.0.1:%d/postgres?listen_port=%d",
             sv->bouncer_port, sv->port);
}

void pg_pooled_url(const pg_server *sv, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX, "postgres://dibs@127.0.0.1:%d/postgres",
             sv->bouncer_port);
}

static bool write_bouncer(const pg_server *sv)
{
    char path[sizeof(sv->dir) + 16];
    FILE *file;

    snprintf(path, sizeof(path), "%s/bouncer.ini", sv->dir);
    file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file,
            "[databases]\n* = host=127.0.0.1 port=%d user=dibs\n[pgbouncer]\n"
            "listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\n"
            "default_pool_size = %d\nmax_client_conn = 500\n",
            sv->port, sv->bouncer_port, sv->sessions ? sv->sessions : 10);
    return fclose(file) == 0 && give_away(sv);
}

bool pg_start_bouncer(pg_server *sv)
{
    char *words[] = {WORD("pgbouncer"), WORD("bouncer.ini"), NULL};
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(START_MS));
    char url[PG_URL_MAX];
    dibs_store_state state;

    sv->bouncer_port = hosting_free_port();
    if (!write_bouncer(sv))
        return false;
    sv->bouncer_pid = launch(sv, "pgbouncer.log", words, -1);
    pg_bouncer_url(sv, url);
    while (dibsx_now() < end) {
        if (dibs_store_setup(url, DIBS_STORE_STATUS, 1000, &state, NULL) ==
            DIBS_OK)
            return true;
        poll(NULL, 0, 10);
    }
    hosting_show_log(sv->dir, "pgbouncer.log");
    return false;
}
