/* JSON over cJSON, which librdkafka brings: texts of any bytes, and integers of 64 bits. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cJSON.h"

/* A text. Bytes that are no UTF-8 are replaced; NULL is null. */
cJSON *json_text(const char *text);

/* A key or a value of a record: text, or {"hex": ...} if it is not UTF-8; NULL is null. */
cJSON *json_bytes(const void *data, size_t size);

/* A number of 64 bits, which cJSON's own numbers, doubles, would round. */
cJSON *json_int64(int64_t number);

/* Add an item to an object. Bytes of the key that are no UTF-8 are replaced. */
void json_set(cJSON *object, const char *key, cJSON *item);

/* A member, or NULL. */
cJSON *json_member(const cJSON *object, const char *key);

/* A member that is a text, or NULL. */
const char *json_get_text(const cJSON *object, const char *key);

/* A member that is a number, or `otherwise`. */
int json_get_int(const cJSON *object, const char *key, int otherwise);

/* Read a number that fits into 64 bits. */
bool json_is_int64(const cJSON *item, int64_t *number);

/* Whether it is a list, or an object, all of whose items have that check. */
bool json_is_list_of(const cJSON *list, cJSON_bool (*is_item)(const cJSON *));
bool json_is_object_of(const cJSON *object, cJSON_bool (*is_item)(const cJSON *));

/* Return the texts of a list, which stay the list's; free the array. */
const char **json_texts(const cJSON *list, size_t *count);

/* Compare two texts through pointers to them, for qsort. */
int json_compare_texts(const void *left, const void *right);

#endif
