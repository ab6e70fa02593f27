/* completion.c - completion scripts for bash, zsh and fish, from the tables.
 *
 * Names of locks and keys are asked of the store, for a second at most. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

/* Calls fn for each long form of an option. */
typedef void form_fn(dibsx_buf *out, const char *form, int len);

static void each_form(dibsx_buf *out, const dibs__option *option, form_fn *fn)
{
    const char *alias = option->aliases;

    fn(out, option->name, (int)strlen(option->name));
    while (alias) {
        size_t len = strcspn(alias, ",");

        fn(out, alias, (int)len);
        alias = alias[len] ? alias + len + 1 : NULL;
    }
}

static bool shown(const dibs__option *option, const char *verb)
{
    return !option->hidden && dibs__option_has_verb(option, verb);
}

static bool is_file(const dibs__option *option)
{
    return option->metavar && strcmp(option->metavar, "FILE") == 0;
}

/* Its value is the name of a lock. */
static bool is_lock(const dibs__option *option)
{
    return option->metavar && strcmp(option->metavar, "NAME") == 0;
}

/* The verbs directly in a group, with a space between. */
static void verb_words(dibsx_buf *out, const char *group)
{
    const char *space = "";

    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (!dibs__verb_is_in(dibs__verbs[i], group))
            continue;
        dibsx_buf_printf(out, "%s%s", space, dibs__verb_word(dibs__verbs[i]));
        space = " ";
    }
}

static bool is_url(const dibs__option *option)
{
    return option->metavar && strcmp(option->metavar, "URL") == 0;
}

/* The words that are offered for its value, or NULL. */
static const char *words_of(const dibs__option *option)
{
    return option->choices ? option->choices : option->offers;
}

/* The same, with a space between; `escape` goes before colons. */
static void
value_words(dibsx_buf *out, const dibs__option *option, const char *escape)
{
    for (const char *p = words_of(option); *p; p++) {
        if (*p == ':')
            dibsx_buf_puts(out, escape);
        dibsx_buf_putc(out, (char)(*p == '|' ? ' ' : *p));
    }
}

/* Help for one line of a menu: the first sentence, without what quotes mean to
 * a shell. */
static void menu_text(dibsx_buf *out, const char *help)
{
    for (const char *p = help; *p && strncmp(p, ". ", 2) != 0; p++) {
        if (p[0] == '.' && p[1] == '\0')
            break;
        if (!strchr("'\"[]\\$`", *p))
            dibsx_buf_putc(out, (char)(*p == ':' ? ',' : *p));
    }
}

static void bash_long(dibsx_buf *out, const char *form, int len)
{
    dibsx_buf_printf(out, " --%.*s", len, form);
}

static void bash_pattern(dibsx_buf *out, const char *form, int len)
{
    dibsx_buf_printf(out, "|--%.*s", len, form);
}

/* A case that gives the options of each verb. */
static void bash_options(dibsx_buf *out)
{
    dibsx_buf_puts(out, "_dibs_options()\n{\n    case $1 in\n");
    for (size_t i = 0; i < dibs__verb_count + 1; i++) {
        const char *verb = i ? dibs__verbs[i - 1]->name : "";

        dibsx_buf_printf(out, "    '%s') echo '", verb);
        for (size_t k = 0; k < dibs__option_count(); k++) {
            if (!shown(dibs__option_at(k), verb))
                continue;
            each_form(out, dibs__option_at(k), bash_long);
            if (dibs__option_at(k)->letter)
                dibsx_buf_printf(out, " -%c", dibs__option_at(k)->letter);
        }
        dibsx_buf_puts(out, "' ;;\n");
    }
    dibsx_buf_puts(out, "    esac\n}\n\n");
}

/* Options whose value is the next word. */
static void bash_valued(dibsx_buf *out)
{
    dibsx_buf_puts(out, "_dibs_valued()\n{\n    case $1 in\n    ''");
    for (size_t k = 0; k < dibs__option_count(); k++) {
        if (dibs__option_at(k)->type == DIBS__FLAG ||
            dibs__option_at(k)->hidden)
            continue;
        each_form(out, dibs__option_at(k), bash_pattern);
        if (dibs__option_at(k)->letter)
            dibsx_buf_printf(out, "|-%c", dibs__option_at(k)->letter);
    }
    dibsx_buf_puts(out, ") true ;;\n    *) false ;;\n    esac\n}\n\n");
}

static void bash_values(dibsx_buf *out)
{
    dibsx_buf_puts(out, "_dibs_value()\n{\n    case $1 in\n");
    for (size_t k = 0; k < dibs__option_count(); k++) {
        const dibs__option *option = dibs__option_at(k);

        if (option->hidden ||
            (!words_of(option) && !is_file(option) && !is_lock(option)))
            continue;
        dibsx_buf_puts(out, "    ''");
        each_form(out, option, bash_pattern);
        if (!words_of(option)) {
            dibsx_buf_puts(out, is_lock(option)
                                    ? ") _dibs_ask ls ;;\n"
                                    : ") compopt -o default 2>/dev/null ;;\n");
            continue;
        }
        dibsx_buf_puts(out, ") _dibs_reply \"");
        value_words(out, option, "");
        dibsx_buf_puts(out, is_url(option)
                                ? "\"; compopt -o default 2>/dev/null ;;\n"
                                : "\" ;;\n");
    }
    dibsx_buf_puts(out, "    esac\n}\n\n");
}

static void bash_operands(dibsx_buf *out)
{
    dibsx_buf_puts(out, "_dibs_operand()\n{\n    case $1:$2 in\n    :*) "
                        "_dibs_reply \"");
    verb_words(out, "");
    dibsx_buf_puts(out, "\" ;;\n");
    for (size_t i = 0; i < dibs__verb_count; i++) {
        const dibs__verb *verb = dibs__verbs[i];

        if (!verb->run) {
            dibsx_buf_printf(out, "    '%s':*) _dibs_reply \"", verb->name);
            verb_words(out, verb->name);
            dibsx_buf_puts(out, "\" ;;\n");
        } else if (verb->kind == DIBS__LOCKS || verb->kind == DIBS__COMMAND) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_ask ls ;;\n", verb->name);
        } else if (verb->kind == DIBS__KEYS) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_ask state ls ;;\n",
                             verb->name);
        } else if (verb->kind == DIBS__QUEUES) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_ask queue ls ;;\n",
                             verb->name);
        } else if (verb->kind == DIBS__TOPICS) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_ask events ls ;;\n",
                             verb->name);
        } else if (verb->kind == DIBS__VERBS) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_reply \"", verb->name);
            verb_words(out, "");
            dibsx_buf_puts(out, "\" ;;\n");
        } else if (verb->kind == DIBS__SHELLS) {
            dibsx_buf_printf(out, "    '%s':0) _dibs_reply \"%s\" ;;\n",
                             verb->name, "bash zsh fish");
        } else if (verb->kind == DIBS__FILES) {
            dibsx_buf_printf(out,
                             "    '%s':*) COMPREPLY=($(compgen -f -- "
                             "\"$cur\")); compopt -o filenames 2>/dev/null "
                             ";;\n",
                             verb->name);
        }
        if (verb->tail)
            dibsx_buf_printf(out,
                             "    '%s':%d) COMPREPLY=($(compgen -c -- "
                             "\"$cur\")) ;;\n    '%s':*) compopt -o default "
                             "2>/dev/null ;;\n",
                             verb->name, dibs__verb_names(verb), verb->name);
    }
    dibsx_buf_puts(out, "    esac\n}\n\n");
}

/* Groups, and verbs after whose name a command follows, as case patterns. */
static void bash_walk(dibsx_buf *out)
{
    dibsx_buf_puts(
        out, "_dibs()\n{\n"
             "    local line=${COMP_LINE:0:COMP_POINT} cur verb= want= over= "
             "word i\n"
             "    local -i operands=0 last\n"
             "    local -a words=() pass=()\n\n"
             "    COMPREPLY=()\n"
             "    read -ra words <<<\"$line\"\n"
             "    [[ $line == *[[:space:]] ]] && words+=('')\n"
             "    last=${#words[@]}-1\n"
             "    cur=${words[last]}\n"
             "    for ((i = 1; i < last; i++)); do\n"
             "        word=${words[i]}\n"
             "        if [[ $word == -- && ! $over ]]; then\n"
             "            over=1\n"
             "        elif [[ $word == -?* && ! $over ]]; then\n"
             "            case $word in\n"
             "            --url|--prefix|--config) "
             "pass+=(\"$word\" \"${words[i + 1]}\") ;;\n"
             "            --url=*|--prefix=*|--config=*) pass+=(\"$word\") ;;\n"
             "            esac\n"
             "            if _dibs_valued \"$word\"; then\n"
             "                ((++i == last)) && want=$word\n"
             "            fi\n"
             "        else\n"
             "            case $verb in\n"
             "            '') verb=$word ;;\n");
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (!dibs__verbs[i]->run)
            dibsx_buf_printf(out, "            '%s') verb+=\" $word\" ;;\n",
                             dibs__verbs[i]->name);
        else if (dibs__verbs[i]->tail)
            dibsx_buf_printf(
                out, "            '%s') ((++operands > %d)) && break ;;\n",
                dibs__verbs[i]->name, dibs__verb_names(dibs__verbs[i]));
    }
    dibsx_buf_puts(
        out,
        "            *) operands+=1 ;;\n"
        "            esac\n"
        "        fi\n"
        "    done\n"
        "    if [[ ! $want && ! $over && $operands -lt 2 "
        "&& $cur == --*=* ]]; then\n"
        "        want=${cur%%=*} cur=${cur#*=}\n"
        "    fi\n"
        "    if [[ $want ]]; then\n"
        "        _dibs_value \"$want\"\n"
        "    elif [[ $cur == -* && ! $over && $operands -lt 2 ]]; then\n"
        "        _dibs_reply \"$(_dibs_options \"$verb\")\"\n"
        "    else\n"
        "        _dibs_operand \"$verb\" \"$operands\"\n"
        "    fi\n"
        "    # Readline has taken what is before the last colon for a word of "
        "its own.\n"
        "    if [[ $COMP_WORDBREAKS == *:* && $cur == *:* ]]; then\n"
        "        local before=${cur%\"${cur##*:}\"}\n"
        "        COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
        "    fi\n"
        "}\n\ncomplete -F _dibs dibs\n");
}

static void bash(dibsx_buf *out)
{
    dibsx_buf_puts(
        out, "# bash completion of dibs. Made by `dibs completion bash`.\n\n"
             "_dibs_reply()\n{\n"
             "    COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
             "    # The value goes on after these.\n"
             "    [[ ${COMPREPLY[*]} == *[:/] ]] && "
             "compopt -o nospace 2>/dev/null\n}\n\n"
             "# Names in the store that begin like the current word.\n"
             "_dibs_ask()\n{\n    local name\n\n"
             "    while IFS= read -r name; do\n"
             "        COMPREPLY+=(\"$(printf %q \"$name\")\")\n"
             "    done < <(timeout 1 dibs \"${pass[@]}\" -q \"$@\" --names -- "
             "\"$cur\" 2>/dev/null)\n}\n\n");
    bash_options(out);
    bash_valued(out);
    bash_values(out);
    bash_operands(out);
    bash_walk(out);
}

static void zsh_long(dibsx_buf *out, const char *form, int len)
{
    dibsx_buf_printf(out, " --%.*s", len, form);
}

/* '(-w --wait)'{-w+,--wait=}'[help]:DUR:' as words for _arguments. */
static void zsh_option(dibsx_buf *out, const dibs__option *option, char dash,
                       const char *form)
{
    bool flag = option->type == DIBS__FLAG;

    dibsx_buf_puts(out, option->many ? "        '*" : "        '(");
    if (option->letter && !option->many)
        dibsx_buf_printf(out, "-%c", option->letter);
    if (!option->many)
        each_form(out, option, zsh_long);
    dibsx_buf_printf(out, "%s%s%s%s[", option->many ? "" : ")",
                     dash ? "-" : "--", form,
                     flag   ? ""
                     : dash ? "+"
                            : "=");
    menu_text(out, option->help);
    dibsx_buf_putc(out, ']');
    if (!flag) {
        dibsx_buf_printf(out, ":%s:", option->metavar);
        if (words_of(option)) {
            dibsx_buf_putc(out, '(');
            value_words(out, option, "\\");
            dibsx_buf_putc(out, ')');
        } else if (is_file(option)) {
            dibsx_buf_puts(out, "_files");
        } else if (is_lock(option)) {
            dibsx_buf_puts(out, "_dibs_locks");
        }
    }
    dibsx_buf_puts(out, "' \\\n");
}

static void zsh_options(dibsx_buf *out, const char *verb)
{
    for (size_t k = 0; k < dibs__option_count(); k++) {
        const dibs__option *option = dibs__option_at(k);
        char letter[2] = {option->letter, '\0'};

        if (!shown(option, verb))
            continue;
        zsh_option(out, option, 0, option->name);
        if (option->letter)
            zsh_option(out, option, '-', letter);
    }
}

static const char *zsh_operand(const dibs__verb *verb)
{
    switch (verb->kind) {
    case DIBS__LOCKS:
        return "'1:name:_dibs_locks'";
    case DIBS__COMMAND:
        return "'1:name:_dibs_locks' '*::command:_normal'";
    case DIBS__KEYS:
        return "'1:key:_dibs_keys' '*:value:'";
    case DIBS__QUEUES:
        return verb->tail ? "'1:queue:_dibs_queues' '*::command:_normal'"
                          : "'1:queue:_dibs_queues' '*:word:'";
    case DIBS__TOPICS:
        return "'1:topic:_dibs_topics' '*:word:'";
    case DIBS__VERBS:
        return "'*:verb:_dibs_verbs'";
    case DIBS__SHELLS:
        return "'1:shell:(bash zsh fish)'";
    case DIBS__FILES:
        return "'*:file:_files'";
    case DIBS__NOTHING:
        if (verb->tail)
            return "'1:run:' '2:bookmark:' '*::command:_normal'";
        break;
    }
    return "";
}

static void zsh_menu(dibsx_buf *out, const char *function, const char *group)
{
    dibsx_buf_printf(out, "%s() {\n    local -a verbs=(\n", function);
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (!dibs__verb_is_in(dibs__verbs[i], group))
            continue;
        dibsx_buf_printf(out, "        '%s:", dibs__verb_word(dibs__verbs[i]));
        menu_text(out, dibs__verbs[i]->summary);
        dibsx_buf_puts(out, "'\n");
    }
    dibsx_buf_puts(out, "    )\n    _describe verb verbs\n}\n\n");
}

/* A function that completes what follows a group ("" for dibs itself). */
static void zsh_group(dibsx_buf *out, const char *function, const char *menu,
                      const char *group)
{
    zsh_menu(out, menu, group);
    dibsx_buf_printf(out,
                     "%s() {\n    local curcontext=$curcontext state line\n"
                     "    typeset -A opt_args\n    _arguments -C -S \\\n",
                     function);
    zsh_options(out, "");
    dibsx_buf_printf(out,
                     "        '1:verb:%s' '*::rest:->rest' && return\n"
                     "    [[ $state == rest ]] || return\n"
                     "    case $words[1] in\n",
                     menu);
    for (size_t i = 0; i < dibs__verb_count; i++) {
        const dibs__verb *verb = dibs__verbs[i];

        if (!dibs__verb_is_in(verb, group))
            continue;
        dibsx_buf_printf(out, "    %s)\n", dibs__verb_word(verb));
        if (verb->run) {
            dibsx_buf_puts(out, "        _arguments -S \\\n");
            zsh_options(out, verb->name);
            dibsx_buf_printf(out, "        %s ;;\n", zsh_operand(verb));
        } else {
            dibsx_buf_printf(out, "        _dibs_%s ;;\n", verb->name);
        }
    }
    dibsx_buf_puts(out, "    esac\n}\n\n");
}

static void zsh(dibsx_buf *out)
{
    char function[64], menu[64];

    dibsx_buf_puts(
        out, "#compdef dibs\n"
             "# zsh completion of dibs. Made by `dibs completion zsh`.\n\n"
             "_dibs_locks() {\n"
             "    local -a names=(${(f)\"$(timeout 1 dibs -q ls --names "
             "2>/dev/null)\"})\n    compadd -a names\n}\n\n"
             "_dibs_keys() {\n"
             "    local -a names=(${(f)\"$(timeout 1 dibs -q state ls --names "
             "2>/dev/null)\"})\n    compadd -a names\n}\n\n"
             "_dibs_queues() {\n"
             "    local -a names=(${(f)\"$(timeout 1 dibs -q queue ls --names "
             "2>/dev/null)\"})\n    compadd -a names\n}\n\n"
             "_dibs_topics() {\n"
             "    local -a names=(${(f)\"$(timeout 1 dibs -q events ls --names "
             "2>/dev/null)\"})\n    compadd -a names\n}\n\n");
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (dibs__verbs[i]->run)
            continue;
        snprintf(function, sizeof(function), "_dibs_%s", dibs__verbs[i]->name);
        snprintf(menu, sizeof(menu), "_dibs_%s_verbs", dibs__verbs[i]->name);
        zsh_group(out, function, menu, dibs__verbs[i]->name);
    }
    zsh_group(out, "_dibs", "_dibs_verbs", "");
    dibsx_buf_puts(out, "if [[ $funcstack[1] == _dibs ]]; then\n"
                        "    _dibs \"$@\"\nelse\n    compdef _dibs dibs\nfi\n");
}

#define FISH_LOCKS "(timeout 1 dibs -q ls --names 2>/dev/null)"

static void fish_long(dibsx_buf *out, const char *form, int len)
{
    dibsx_buf_printf(out, " -l %.*s", len, form);
}

/* The condition under which something is offered: this verb was typed. */
static void fish_when(dibsx_buf *out, const dibs__verb *verb)
{
    const char *word = dibs__verb_word(verb);

    dibsx_buf_puts(out, " -n '");
    if (word != verb->name)
        dibsx_buf_printf(out, "__fish_seen_subcommand_from %.*s; and ",
                         (int)(word - verb->name - 1), verb->name);
    dibsx_buf_printf(out, "__fish_seen_subcommand_from %s'", word);
}

static void
fish_option(dibsx_buf *out, const dibs__option *option, const dibs__verb *verb)
{
    dibsx_buf_puts(out, "complete -c dibs");
    if (verb)
        fish_when(out, verb);
    each_form(out, option, fish_long);
    if (option->letter)
        dibsx_buf_printf(out, " -s %c", option->letter);
    if (option->type != DIBS__FLAG)
        dibsx_buf_puts(out,
                       is_file(option) || is_url(option) ? " -r -F" : " -x");
    if (words_of(option)) {
        dibsx_buf_puts(out, " -a '");
        value_words(out, option, "");
        dibsx_buf_putc(out, '\'');
    } else if (is_lock(option)) {
        dibsx_buf_puts(out, " -a '" FISH_LOCKS "'");
    }
    dibsx_buf_puts(out, " -d '");
    menu_text(out, option->help);
    dibsx_buf_puts(out, "'\n");
}

static void fish_verb(dibsx_buf *out, const dibs__verb *verb)
{
    const char *word = dibs__verb_word(verb);
    static const char *const offers[] = {
        [DIBS__LOCKS] = FISH_LOCKS,
        [DIBS__COMMAND] = FISH_LOCKS " (__fish_complete_command)",
        [DIBS__KEYS] = "(timeout 1 dibs -q state ls --names 2>/dev/null)",
        [DIBS__QUEUES] = "(timeout 1 dibs -q queue ls --names 2>/dev/null)",
        [DIBS__TOPICS] = "(timeout 1 dibs -q events ls --names 2>/dev/null)",
        [DIBS__SHELLS] = "bash zsh fish",
        [DIBS__VERBS] = NULL,
        [DIBS__FILES] = NULL,
    };

    dibsx_buf_puts(out, "complete -c dibs -n '");
    if (word == verb->name)
        dibsx_buf_puts(out, "not __fish_seen_subcommand_from $__dibs_verbs");
    else
        dibsx_buf_printf(out, "__fish_seen_subcommand_from %.*s",
                         (int)(word - verb->name - 1), verb->name);
    dibsx_buf_printf(out, "' -a %s -d '", word);
    menu_text(out, verb->summary);
    dibsx_buf_puts(out, "'\n");
    if (verb->kind != DIBS__NOTHING && offers[verb->kind]) {
        dibsx_buf_puts(out, "complete -c dibs");
        fish_when(out, verb);
        dibsx_buf_printf(out, " -a '%s'\n", offers[verb->kind]);
    }
    if (verb->kind == DIBS__FILES) {
        dibsx_buf_puts(out, "complete -c dibs");
        fish_when(out, verb);
        dibsx_buf_puts(out, " -F\n");
    }
    for (size_t k = 0; k < dibs__option_count(); k++) {
        if (!dibs__option_global(dibs__option_at(k)) &&
            shown(dibs__option_at(k), verb->name))
            fish_option(out, dibs__option_at(k), verb);
    }
}

static void fish(dibsx_buf *out)
{
    dibsx_buf_puts(out, "# fish completion of dibs. Made by `dibs completion "
                        "fish`.\n\nset -g __dibs_verbs ");
    verb_words(out, "");
    dibsx_buf_puts(out, "\ncomplete -c dibs -f\n");
    for (size_t k = 0; k < dibs__option_count(); k++) {
        if (dibs__option_global(dibs__option_at(k)))
            fish_option(out, dibs__option_at(k), NULL);
    }
    for (size_t i = 0; i < dibs__verb_count; i++)
        fish_verb(out, dibs__verbs[i]);
}

bool dibs__completion(dibsx_buf *out, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        bash(out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out);
    else if (strcmp(shell, "fish") == 0)
        fish(out);
    else
        return false;
    return true;
}
