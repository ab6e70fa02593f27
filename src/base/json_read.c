/* json_read.c - a strict JSON reader.
 *
 * A document owns two blocks, nodes and texts, both allocated before reading: a
 * value stands at the beginning, after a comma or after a bracket, so these tell
 * how many nodes there can be; decoding never makes a text longer. Callable from
 * any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/json_read.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const unsigned char *begin;
    const unsigned char *at;
    const unsigned char *end;
    dibsx_json_node *next; /* the next unused node */
    char *out;             /* where the next text goes */
    int depth;
    const char *wrong; /* what is wrong, once something is */
} reader;

static bool fail(reader *rd, const char *what)
{
    if (!rd->wrong)
        rd->wrong = what;
    return false;
}

static void skip_space(reader *rd)
{
    while (rd->at < rd->end && (*rd->at == ' ' || *rd->at == '\t' ||
                                *rd->at == '\n' || *rd->at == '\r'))
        rd->at++;
}

/* Moves past the character if it is next, spaces before it left out. */
static bool take_char(reader *rd, char c)
{
    skip_space(rd);
    if (rd->at == rd->end || *rd->at != (unsigned char)c)
        return false;
    rd->at++;
    return true;
}

static bool take_word(reader *rd, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(rd->end - rd->at) < len || memcmp(rd->at, word, len) != 0)
        return fail(rd, "a value is expected");
    rd->at += len;
    return true;
}

static bool read_hex(reader *rd, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = rd->at < rd->end ? dibsx_hex_value((char)*rd->at) : -1;

        if (digit < 0)
            return fail(rd, "four hexadecimal digits are expected");
        *out = *out << 4 | (uint32_t)digit;
        rd->at++;
    }
    return true;
}

static void put_utf8(reader *rd, uint32_t c)
{
    if (c < 0x80) {
        *rd->out++ = (char)c;
        return;
    }
    if (c < 0x800) {
        *rd->out++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *rd->out++ = (char)(0xE0 | c >> 12);
        } else {
            *rd->out++ = (char)(0xF0 | c >> 18);
            *rd->out++ = (char)(0x80 | (c >> 12 & 0x3F));
        }
        *rd->out++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *rd->out++ = (char)(0x80 | (c & 0x3F));
}

/* After "\u". Characters beyond U+FFFF come as two surrogates. */
static bool read_code(reader *rd)
{
    uint32_t high, low;

    if (!read_hex(rd, &high))
        return false;
    if (high >= 0xDC00 && high <= 0xDFFF)
        return fail(rd, "half of a character");
    if (high >= 0xD800 && high <= 0xDBFF) {
        if (rd->end - rd->at < 2 || rd->at[0] != '\\' || rd->at[1] != 'u')
            return fail(rd, "half of a character");
        rd->at += 2;
        if (!read_hex(rd, &low))
            return false;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail(rd, "half of a character");
        high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    put_utf8(rd, high);
    return true;
}

/* After the backslash. */
static bool read_escape(reader *rd)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (rd->at == rd->end)
        return fail(rd, "a text without its end");
    if (*rd->at == 'u') {
        rd->at++;
        return read_code(rd);
    }
    found = *rd->at ? strchr(letters, *rd->at) : NULL;
    if (!found)
        return fail(rd, "an unknown escape");
    *rd->out++ = meant[found - letters];
    rd->at++;
    return true;
}

static bool read_plain(reader *rd)
{
    size_t len = dibsx_utf8_len(rd->at, (size_t)(rd->end - rd->at));

    if (*rd->at < 0x20)
        return fail(rd, "a control character in a text");
    if (!len)
        return fail(rd, "bytes that are not UTF-8");
    memcpy(rd->out, rd->at, len);
    rd->out += len;
    rd->at += len;
    return true;
}

/* After the opening quote. */
static bool read_text(reader *rd, const char **text, size_t *len)
{
    *text = rd->out;
    while (rd->at < rd->end && *rd->at != '"') {
        if (*rd->at == '\\') {
            rd->at++;
            if (!read_escape(rd))
                return false;
        } else if (!read_plain(rd)) {
            return false;
        }
    }
    if (rd->at == rd->end)
        return fail(rd, "a text without its end");
    rd->at++;
    *len = (size_t)(rd->out - *text);
    *rd->out++ = '\0';
    return true;
}

static bool read_digits(reader *rd)
{
    const unsigned char *from = rd->at;

    while (rd->at < rd->end && *rd->at >= '0' && *rd->at <= '9')
        rd->at++;
    return rd->at > from || fail(rd, "a digit is expected");
}

/* Moves past a number; *plain: digits only, with a sign perhaps. */
static bool scan_number(reader *rd, bool *plain)
{
    *plain = true;
    if (*rd->at == '-')
        rd->at++;
    if (rd->at < rd->end && *rd->at == '0')
        rd->at++;
    else if (!read_digits(rd))
        return false;
    if (rd->at < rd->end && *rd->at == '.') {
        *plain = false;
        rd->at++;
        if (!read_digits(rd))
            return false;
    }
    if (rd->at < rd->end && (*rd->at == 'e' || *rd->at == 'E')) {
        *plain = false;
        rd->at++;
        if (rd->at < rd->end && (*rd->at == '+' || *rd->at == '-'))
            rd->at++;
        return read_digits(rd);
    }
    return true;
}

/* A number is read from a copy with a NUL, made where texts go and given up. */
static bool read_number(reader *rd, dibsx_json_node *node)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    const unsigned char *from = rd->at;
    bool plain;

    if (!scan_number(rd, &plain))
        return false;
    memcpy(rd->out, from, (size_t)(rd->at - from));
    rd->out[rd->at - from] = '\0';
    node->kind = DIBSX_JSON_NUMBER;
    node->real = strtod(rd->out, NULL);
    if (!isfinite(node->real))
        return fail(rd, "a number out of range");
    errno = 0;
    if (plain) {
        node->integer = strtoll(rd->out, NULL, 10);
        node->whole = errno == 0;
    } else if (node->real >= -exact && node->real <= exact) {
        node->integer = (int64_t)node->real;
        node->whole = (double)node->integer == node->real;
    }
    return true;
}

static dibsx_json_node *read_value(reader *rd);

static const dibsx_json_node *
find_member(const dibsx_json_node *map, const char *key, size_t len)
{
    const dibsx_json_node *node = map->child;

    while (node && (node->key_len != len || memcmp(node->key, key, len) != 0))
        node = node->next;
    return node;
}

/* "key": value */
static dibsx_json_node *read_member(reader *rd, const dibsx_json_node *map)
{
    const char *key = NULL;
    size_t len = 0;
    dibsx_json_node *node;

    if (!take_char(rd, '"')) {
        fail(rd, "a key in quotes is expected");
        return NULL;
    }
    if (!read_text(rd, &key, &len))
        return NULL;
    if (find_member(map, key, len)) {
        fail(rd, "a key that was there before");
        return NULL;
    }
    if (!take_char(rd, ':')) {
        fail(rd, "a colon is expected");
        return NULL;
    }
    node = read_value(rd);
    if (node) {
        node->key = key;
        node->key_len = len;
    }
    return node;
}

/* After the opening bracket, up to and with the closing one. */
static bool read_items(reader *rd, dibsx_json_node *parent, char close)
{
    dibsx_json_node **tail = &parent->child;
    int count = 0;

    if (++rd->depth > DIBSX_JSON_DEPTH_MAX)
        return fail(rd, "nested too deeply");
    if (!take_char(rd, close)) {
        do {
            if (parent->kind == DIBSX_JSON_MAP &&
                ++count > DIBSX_JSON_MEMBERS_MAX)
                return fail(rd, "too many members");
            *tail = parent->kind == DIBSX_JSON_MAP ? read_member(rd, parent)
                                                   : read_value(rd);
            if (!*tail)
                return false;
            tail = &(*tail)->next;
        } while (take_char(rd, ','));
        if (!take_char(rd, close))
            return fail(rd, "a comma or a closing bracket is expected");
    }
    rd->depth--;
    return true;
}

static bool fill_node(reader *rd, dibsx_json_node *node)
{
    switch (*rd->at) {
    case '{':
    case '[':
        node->kind = *rd->at == '{' ? DIBSX_JSON_MAP : DIBSX_JSON_LIST;
        return read_items(rd, node, *rd->at++ == '{' ? '}' : ']');
    case '"':
        rd->at++;
        node->kind = DIBSX_JSON_TEXT;
        return read_text(rd, &node->text, &node->len);
    case 't':
    case 'f':
        node->kind = DIBSX_JSON_BOOL;
        node->truth = *rd->at == 't';
        return take_word(rd, node->truth ? "true" : "false");
    case 'n':
        node->kind = DIBSX_JSON_NULL;
        return take_word(rd, "null");
    default:
        if (*rd->at == '-' || (*rd->at >= '0' && *rd->at <= '9'))
            return read_number(rd, node);
        return fail(rd, "a value is expected");
    }
}

static dibsx_json_node *read_value(reader *rd)
{
    dibsx_json_node *node;

    skip_space(rd);
    if (rd->at == rd->end) {
        fail(rd, "a value is expected");
        return NULL;
    }
    node = rd->next++;
    return fill_node(rd, node) ? node : NULL;
}

/* How many values there can be at most. */
static size_t count_values(const char *text, size_t len)
{
    size_t count = 1;

    for (size_t i = 0; i < len; i++)
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

dibs_status dibsx_json_read(const char *text, size_t len, dibsx_json_doc *doc,
                            dibs_error *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    reader rd = {.begin = bytes, .at = bytes, .end = bytes + len};
    dibsx_json_node *root;

    assert(text && doc);
    /* Each text ends with a NUL and had two quotes; a number needs one more. */
    *doc = (dibsx_json_doc){dibsx_zalloc_n(count_values(text, len),
                                           sizeof(dibsx_json_node)),
                            dibsx_zalloc(len + 1)};
    if (!doc->root || !doc->texts) {
        dibsx_json_doc_fini(doc);
        return dibsx_nomem(err, "%zu bytes of JSON", len);
    }
    rd.next = doc->root;
    rd.out = doc->texts;
    root = read_value(&rd);
    if (root) {
        skip_space(&rd);
        if (rd.at < rd.end)
            fail(&rd, "something after the value");
    }
    if (!rd.wrong)
        return DIBS_OK;
    dibsx_json_doc_fini(doc);
    return dibsx_fail(err, DIBS_INVALID, "byte %zu is wrong: %s",
                      (size_t)(rd.at - rd.begin), rd.wrong);
}

void dibsx_json_doc_fini(dibsx_json_doc *doc)
{
    dibsx_free(doc->root);
    dibsx_free(doc->texts);
    *doc = (dibsx_json_doc){NULL, NULL};
}

const dibsx_json_node *
dibsx_json_get(const dibsx_json_node *map, const char *key)
{
    if (!map || map->kind != DIBSX_JSON_MAP)
        return NULL;
    return find_member(map, key, strlen(key));
}
