/* json_data.c - see json_data.h. */
/* SPDX-License-Identifier: MIT */
#include "base/json_data.h"
#include "base/text.h"
#include <stdio.h>

static bool is_utf8(const char *data, size_t len)
{
    const unsigned char *at = (const unsigned char *)data;
    size_t step = 1;

    for (size_t i = 0; i < len && step > 0; i += step)
        step = dibsx_utf8_len(at + i, len - i);
    return step > 0;
}

static void base64(dibsx_buf *out, const unsigned char *data, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
        "uvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        unsigned group = (unsigned)data[i] << 16;

        if (i + 1 < len)
            group |= (unsigned)data[i + 1] << 8;
        if (i + 2 < len)
            group |= data[i + 2];
        dibsx_buf_putc(out, digits[group >> 18]);
        dibsx_buf_putc(out, digits[group >> 12 & 63]);
        dibsx_buf_putc(out,
                       (char)(i + 1 < len ? digits[group >> 6 & 63] : '='));
        dibsx_buf_putc(out, (char)(i + 2 < len ? digits[group & 63] : '='));
    }
}

void dibsx_json_data(dibsx_json *js, const char *key, const void *data,
                     size_t len)
{
    char longer[160];
    dibsx_buf text;

    if (is_utf8(data, len)) {
        dibsx_json_key(js, key);
        dibsx_json_bytes(js, data, len);
        return;
    }
    snprintf(longer, sizeof(longer), "%s_base64", key);
    dibsx_buf_init(&text, 2 * len + 4);
    base64(&text, data, len);
    if (dibsx_buf_ok(&text))
        dibsx_json_pair_text(js, longer, dibsx_buf_text(&text));
    else
        js->out->failed = true;
    dibsx_buf_fini(&text);
}

/* The value of a digit; -1: it is none. */
static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool dibsx_base64_read(const char *text, size_t len, dibsx_buf *out)
{
    size_t pads = 0;

    if (len % 4 != 0)
        return false;
    while (pads < 2 && pads < len && text[len - 1 - pads] == '=')
        pads++;
    for (size_t i = 0; i < len; i += 4) {
        const size_t digits = i + 4 == len ? 4 - pads : 4;
        unsigned group = 0;

        for (size_t k = 0; k < 4; k++) {
            int value = k < digits ? digit_value(text[i + k]) : 0;

            if (value < 0)
                return false;
            group = group << 6 | (unsigned)value;
        }
        /* Bits beyond the last byte must be 0, so that bytes have one text. */
        if (group & ((1u << (8 * (4 - digits))) - 1))
            return false;
        for (size_t k = 0; k + 1 < digits; k++)
            dibsx_buf_putc(out, (char)(group >> (16 - 8 * k)));
    }
    return dibsx_buf_ok(out);
}
