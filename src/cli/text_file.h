/* text_file.h - the text of a file that an operand names; - is standard input. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_TEXT_FILE_H
#define DIBS_CLI_TEXT_FILE_H

#include "base/buf.h"
#include "cli/command.h"

/* Appends it, up to the maximum of the buffer. 0, or an exit code after a message. */
int dibs__text_read(const dibs__command *cmd, const char *path,
                    dibsx_buf *text);

/* The path, as messages name it. */
const char *dibs__text_name(const char *path);

#endif
