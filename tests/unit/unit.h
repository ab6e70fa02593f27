/* unit.h - what every unit test includes: cmocka with the headers it needs. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_UNIT_H
#define DIBS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
