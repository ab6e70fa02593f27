/* option_values.c - the settings of a command, by the names of their options.
 *
 * Runs before any thread is started. */
/* SPDX-License-Identifier: MIT */
#include "cli/option_values.h"

#include "base/alloc.h"
#include "config/config.h"
#include <stdlib.h>
#include <string.h>

static dibs__option_set set_of(dibs__command *cmd)
{
    return (dibs__option_set){dibs__option_at, dibs__option_count(),
                              cmd->settings};
}

void dibs__command_init(dibs__command *cmd)
{
    dibs__option_set set = set_of(cmd);

    memset(cmd, 0, sizeof(*cmd));
    dibs__values_init(&set);
}

void dibs__command_fini(dibs__command *cmd)
{
    dibs__option_set set = set_of(cmd);

    dibs__values_fini(&set);
    dibsx_free(cmd->operands);
    memset(cmd, 0, sizeof(*cmd));
}

dibs__command *dibs__command_again(const dibs__command *cmd)
{
    dibs__command *again = dibsx_zalloc(sizeof(*again));

    if (!again)
        return NULL;
    dibs__command_init(again);
    again->verb = cmd->verb;
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option_value *said = &cmd->settings[i];

        if (said->source == DIBS__FROM_FLAG)
            again->settings[i] = (dibs__option_value){.text = said->text,
                                                      .number = said->number,
                                                      .source = said->source};
    }
    return again;
}

dibs_status dibs__command_configure(dibs__command *cmd, dibs_error *err)
{
    dibs__option_set set = set_of(cmd);

    return dibs__config_load(&set, err);
}

dibs_status
dibs__option_value_put(dibs__command *cmd, const dibs__option *option,
                       const char *text, dibs__source source, const char *name,
                       const char *place, dibs_error *err)
{
    return dibs__value_put(&cmd->settings[dibs__option_index(option)], option,
                           text, source, name, place, err);
}

const dibs__option_value *
dibs__option_value_of(const dibs__command *cmd, const dibs__option *option)
{
    return &cmd->settings[dibs__option_index(option)];
}

void dibs__opt_inherit_secrets(const dibs__command *cmd, bool inherited)
{
    for (size_t i = 0; i < dibs__option_count(); i++)
        if (dibs__option_at(i)->secret)
            dibsx_secret_inherit(cmd->settings[i].owned, inherited);
}

static const dibs__option *option_of(const dibs__command *cmd, const char *name)
{
    return dibs__option_find(cmd->verb ? cmd->verb->name : "", name,
                             strlen(name));
}

bool dibs__opt_has(const dibs__command *cmd, const char *name)
{
    return option_of(cmd, name) != NULL;
}

static const dibs__option_value *
setting(const dibs__command *cmd, const char *name)
{
    const dibs__option *option = option_of(cmd, name);

    if (!option) {
        dibs__cli_say("the option --%s is missing from the table", name);
        abort();
    }
    return dibs__option_value_of(cmd, option);
}

bool dibs__opt_flag(const dibs__command *cmd, const char *name)
{
    return setting(cmd, name)->number > 0;
}

const char *dibs__opt_text(const dibs__command *cmd, const char *name)
{
    return setting(cmd, name)->text;
}

const char *const *dibs__opt_all(const dibs__command *cmd, const char *name)
{
    static const char *const none[] = {NULL};
    const dibs__option_value *all = setting(cmd, name);

    return all->all ? all->all : none;
}

int64_t dibs__opt_ms(const dibs__command *cmd, const char *name)
{
    return setting(cmd, name)->number;
}

int64_t dibs__opt_int(const dibs__command *cmd, const char *name)
{
    return setting(cmd, name)->number;
}

bool dibs__opt_given(const dibs__command *cmd, const char *name)
{
    return setting(cmd, name)->source > DIBS__FROM_DEFAULT;
}

char *const *dibs__operands(const dibs__command *cmd)
{
    return cmd->operands;
}

int dibs__operand_count(const dibs__command *cmd)
{
    return cmd->operand_count;
}
