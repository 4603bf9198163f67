#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Return the length of the UTF-8 sequence at `data`, 0 if there is none. */
static size_t sequence(const unsigned char *data, size_t size) {
    static const struct {
        unsigned char from, to, low, high;
        size_t length;
    } forms[] = {
        /* the first byte, the range of the second, the length: table 3-7 of the Unicode standard */
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t form = 0; form < sizeof(forms) / sizeof(*forms); form++) {
        if (data[0] < forms[form].from || data[0] > forms[form].to)
            continue;
        if (forms[form].length > size)
            return 0;
        if (forms[form].length > 1 && (data[1] < forms[form].low || data[1] > forms[form].high))
            return 0;
        for (size_t at = 2; at < forms[form].length; at++)
            if ((data[at] & 0xC0) != 0x80)
                return 0;
        return forms[form].length;
    }
    return 0;
}

static bool is_utf8(const unsigned char *data, size_t size) {
    size_t length;
    for (size_t at = 0; at < size; at += length)
        if ((length = sequence(data + at, size - at)) == 0)
            return false;
    return true;
}

/* Return a copy in which each byte that is not UTF-8 is replaced. */
static char *cleaned(const char *text) {
    const unsigned char *data = (const unsigned char *)text;
    size_t size = strlen(text), written = 0;
    char *copy = malloc(size * (sizeof(REPLACEMENT) - 1) + 1);
    for (size_t at = 0; at < size;) {
        size_t length = sequence(data + at, size - at);
        if (length > 0) {
            memcpy(copy + written, data + at, length);
            written += length;
            at += length;
        } else {
            memcpy(copy + written, REPLACEMENT, sizeof(REPLACEMENT) - 1);
            written += sizeof(REPLACEMENT) - 1;
            at++;
        }
    }
    copy[written] = '\0';
    return copy;
}

cJSON *json_text(const char *text) {
    if (text == NULL)
        return cJSON_CreateNull();
    char *copy = cleaned(text);
    cJSON *item = cJSON_CreateString(copy);
    free(copy);
    return item;
}

/* Write a text as JSON by itself: cJSON's texts end at a NUL. */
static cJSON *quoted(const unsigned char *data, size_t size) {
    char *written = malloc(size * 6 + 3), *next = written;
    *next++ = '"';
    for (size_t at = 0; at < size; at++) {
        if (data[at] < 0x20) {
            next += sprintf(next, "\\u%04x", data[at]);
            continue;
        }
        if (data[at] == '"' || data[at] == '\\')
            *next++ = '\\';
        *next++ = (char)data[at];
    }
    *next++ = '"';
    *next = '\0';
    cJSON *item = cJSON_CreateRaw(written);
    free(written);
    return item;
}

cJSON *json_bytes(const void *data, size_t size) {
    if (data == NULL)
        return cJSON_CreateNull();
    const unsigned char *bytes = data;
    if (is_utf8(bytes, size))
        return quoted(bytes, size);
    char *digits = malloc(size * 2 + 1);
    for (size_t at = 0; at < size; at++)
        sprintf(digits + at * 2, "%02x", bytes[at]);
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "hex", digits);
    free(digits);
    return item;
}

cJSON *json_int64(int64_t number) {
    char digits[32];
    snprintf(digits, sizeof(digits), "%" PRId64, number);
    return cJSON_CreateRaw(digits);
}

void json_set(cJSON *object, const char *key, cJSON *item) {
    char *copy = cleaned(key);
    cJSON_AddItemToObject(object, copy, item);
    free(copy);
}

cJSON *json_member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *json_get_text(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(json_member(object, key));
}

int json_get_int(const cJSON *object, const char *key, int otherwise) {
    const cJSON *item = json_member(object, key);
    return cJSON_IsNumber(item) ? item->valueint : otherwise;
}

bool json_is_int64(const cJSON *item, int64_t *number) {
    /* Whole numbers up to 2^53 are exact in a double. */
    if (!cJSON_IsNumber(item) || item->valuedouble < -9007199254740992.0 ||
        item->valuedouble > 9007199254740992.0)
        return false;
    *number = (int64_t)item->valuedouble;
    return true;
}

static bool all(const cJSON *items, cJSON_bool (*is_item)(const cJSON *)) {
    const cJSON *item;
    cJSON_ArrayForEach (item, items) {
        if (!is_item(item))
            return false;
    }
    return true;
}

bool json_is_list_of(const cJSON *list, cJSON_bool (*is_item)(const cJSON *)) {
    return cJSON_IsArray(list) && all(list, is_item);
}

bool json_is_object_of(const cJSON *object, cJSON_bool (*is_item)(const cJSON *)) {
    return cJSON_IsObject(object) && all(object, is_item);
}

const char **json_texts(const cJSON *list, size_t *count) {
    const char **texts = malloc((size_t)cJSON_GetArraySize(list) * sizeof(*texts) + 1);
    const cJSON *item;
    *count = 0;
    cJSON_ArrayForEach (item, list)
        texts[(*count)++] = item->valuestring;
    return texts;
}

int json_compare_texts(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}
