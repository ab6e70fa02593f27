/* text.h - digits, words, characters of UTF-8, and text that may be shown. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_TEXT_H
#define DIBS_BASE_TEXT_H

#include "base/buf.h"
#include <stdint.h>

enum { DIBSX_DIGITS_SIZE = 21 }; /* of 2^64, and the NUL */

/* The number that a hexadecimal digit stands for; -1 when it is none. */
int dibsx_hex_value(char digit);

/* Writes a number and a NUL; returns how many digits it has. printf() takes several times
 * as long. */
size_t dibsx_digits(uint64_t number, char out[DIBSX_DIGITS_SIZE]);

/* Whether `words` ("open closed", a space between two) has this one of `len` bytes. */
bool dibsx_has_word(const char *words, const char *word, size_t len);

/* Whether the word is yes, true, on or 1, or their opposites, in any case; *on says which. */
bool dibsx_flag_read(const char *word, bool *on);

/* The length of the UTF-8 character at `at`, of which `len` bytes (at least one)
 * may be read; 0 when there is none: overlong forms, surrogates and what is
 * beyond U+10FFFF are none. */
size_t dibsx_utf8_len(const unsigned char *at, size_t len);

/* Whether the character of UTF-8 at `at` is a control character, of ASCII or of the C1
 * range; both drive a terminal. */
bool dibsx_is_control(const unsigned char *at);

/* The same for what a screen or a log may have in a line: no control character, none that
 * ends the line, and none that turns the direction of the text after it. */
bool dibsx_may_be_shown(const unsigned char *at);

/* The rest of a sentence about a text that is not UTF-8, or has a control character; NULL: it
 * is in order. */
const char *dibsx_text_flaw(const char *text, size_t len);

/* Appends text with '?' for characters that may not be shown, and for bytes that are not
 * UTF-8, so that text from elsewhere cannot drive a terminal. */
void dibsx_text_clean(dibsx_buf *buf, const char *text);

#endif
