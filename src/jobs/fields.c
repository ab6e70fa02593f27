/* fields.c - JSON objects by a table of members. */
/* SPDX-License-Identifier: MIT */
#include "jobs/fields.h"
#include "base/fail.h"

#include <stdbool.h>
#include <string.h>

/* An enum is read and written as the unsigned number that it is. */
static int64_t get_number(const dibs__field *field, const void *at)
{
    bool truth;
    int32_t i32;
    uint32_t u32;
    int64_t i64;

    switch (field->kind) {
    case DIBS__FIELD_BOOL:
        memcpy(&truth, at, sizeof(truth));
        return truth;
    case DIBS__FIELD_I32:
        memcpy(&i32, at, sizeof(i32));
        return i32;
    case DIBS__FIELD_U32:
    case DIBS__FIELD_NAME:
        memcpy(&u32, at, sizeof(u32));
        return u32;
    default:
        memcpy(&i64, at, sizeof(i64));
        return i64;
    }
}

static void set_number(const dibs__field *field, void *at, int64_t number)
{
    bool truth = number != 0;
    int32_t i32 = (int32_t)number;
    uint32_t u32 = (uint32_t)number;

    switch (field->kind) {
    case DIBS__FIELD_BOOL:
        memcpy(at, &truth, sizeof(truth));
        break;
    case DIBS__FIELD_I32:
        memcpy(at, &i32, sizeof(i32));
        break;
    case DIBS__FIELD_U32:
    case DIBS__FIELD_NAME:
        memcpy(at, &u32, sizeof(u32));
        break;
    default:
        memcpy(at, &number, sizeof(number));
    }
}

void dibs__fields_write(dibsx_json *js, const dibs__field *fields, size_t count,
                        const void *from)
{
    for (size_t i = 0; i < count; i++) {
        const dibs__field *field = &fields[i];
        const char *at = (const char *)from + field->offset;

        if (field->kind == DIBS__FIELD_TEXT) {
            if (*at)
                dibsx_json_pair_text(js, field->key, at);
            continue;
        }
        if (get_number(field, at) == 0)
            continue;
        if (field->kind == DIBS__FIELD_BOOL)
            dibsx_json_pair_bool(js, field->key, true);
        else if (field->kind == DIBS__FIELD_NAME)
            dibsx_json_pair_text(js, field->key,
                                 field->names[get_number(field, at)]);
        else
            dibsx_json_pair_int(js, field->key, get_number(field, at));
    }
}

static bool is_whole_text(const dibsx_json_node *node)
{
    return node->kind == DIBSX_JSON_TEXT && strlen(node->text) == node->len;
}

static bool
read_name(const dibs__field *field, const dibsx_json_node *node, void *at)
{
    if (!is_whole_text(node))
        return false;
    for (size_t i = 0; i < field->size; i++)
        if (strcmp(field->names[i], node->text) == 0) {
            set_number(field, at, (int64_t)i);
            return true;
        }
    return false;
}

static bool
read_number(const dibs__field *field, const dibsx_json_node *node, void *at)
{
    int64_t low = 0, high = INT64_MAX;

    if (node->kind != DIBSX_JSON_NUMBER || !node->whole)
        return false;
    if (field->kind == DIBS__FIELD_I32)
        low = INT32_MIN, high = INT32_MAX;
    else if (field->kind == DIBS__FIELD_U32)
        high = UINT32_MAX;
    else if (field->kind == DIBS__FIELD_I64)
        low = INT64_MIN;
    if (node->integer < low || node->integer > high)
        return false;
    set_number(field, at, node->integer);
    return true;
}

static bool
read_field(const dibs__field *field, const dibsx_json_node *node, void *at)
{
    switch (field->kind) {
    case DIBS__FIELD_TEXT:
        if (!is_whole_text(node) || node->len >= field->size)
            return false;
        memcpy(at, node->text, node->len + 1);
        return true;
    case DIBS__FIELD_NAME:
        return read_name(field, node, at);
    case DIBS__FIELD_BOOL:
        if (node->kind == DIBSX_JSON_BOOL)
            set_number(field, at, node->truth);
        return node->kind == DIBSX_JSON_BOOL;
    default:
        return read_number(field, node, at);
    }
}

dibs_status
dibs__fields_read(const dibsx_json_node *map, const dibs__field *fields,
                  size_t count, void *into, dibs_error *err)
{
    if (!map || map->kind != DIBSX_JSON_MAP)
        return dibsx_fail(err, DIBS_INVALID, "a record is not an object");
    for (size_t i = 0; i < count; i++) {
        const dibsx_json_node *node = dibsx_json_get(map, fields[i].key);

        if (node &&
            !read_field(&fields[i], node, (char *)into + fields[i].offset))
            return dibsx_fail(err, DIBS_INVALID,
                              "\"%s\" of a record has a value that it cannot "
                              "have",
                              fields[i].key);
    }
    return DIBS_OK;
}
