#include "partitions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failures.h"

/* Add the partition of a text such as "foo-0". NULL if it is none. */
static rd_kafka_topic_partition_t *add(rd_kafka_topic_partition_list_t *list, const char *text) {
    const char *hyphen = strrchr(text, '-');
    if (hyphen == NULL || hyphen[1] == '\0')
        return NULL;
    char *end;
    long index = strtol(hyphen + 1, &end, 10);
    if (*end != '\0' || index < 0 || index > INT32_MAX)
        return NULL;
    char *topic = strndup(text, (size_t)(hyphen - text));
    rd_kafka_topic_partition_t *added =
        rd_kafka_topic_partition_list_add(list, topic, (int32_t)index);
    free(topic);
    return added;
}

static rd_kafka_topic_partition_list_t *none(rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

rd_kafka_topic_partition_list_t *partitions_named(const cJSON *names) {
    if (!json_is_list_of(names, cJSON_IsString))
        return NULL;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(cJSON_GetArraySize(names));
    const cJSON *name;
    cJSON_ArrayForEach (name, names) {
        if (add(list, name->valuestring) == NULL)
            return none(list);
    }
    return list;
}

rd_kafka_topic_partition_list_t *partitions_with_offsets(const cJSON *offsets) {
    if (!cJSON_IsObject(offsets))
        return NULL;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(cJSON_GetArraySize(offsets));
    const cJSON *offset;
    cJSON_ArrayForEach (offset, offsets) {
        rd_kafka_topic_partition_t *added = add(list, offset->string);
        if (added == NULL)
            return none(list);
        if (!cJSON_IsNull(offset) && !json_is_int64(offset, &added->offset))
            return none(list);
    }
    return list;
}

static char *text_of(const rd_kafka_topic_partition_t *partition) {
    size_t size = strlen(partition->topic) + 16;
    char *text = malloc(size);
    snprintf(text, size, "%s-%" PRId32, partition->topic, partition->partition);
    return text;
}

void partitions_set(cJSON *object, const rd_kafka_topic_partition_t *partition, cJSON *item) {
    char *text = text_of(partition);
    json_set(object, text, item);
    free(text);
}

cJSON *partitions_texts(const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *sorted = rd_kafka_topic_partition_list_copy(list);
    rd_kafka_topic_partition_list_sort(sorted, NULL, NULL); /* by topic and number */
    cJSON *texts = cJSON_CreateArray();
    for (int at = 0; at < sorted->cnt; at++) {
        char *text = text_of(&sorted->elems[at]);
        cJSON_AddItemToArray(texts, json_text(text));
        free(text);
    }
    rd_kafka_topic_partition_list_destroy(sorted);
    return texts;
}

static cJSON *each(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *list, bool offsets) {
    cJSON *found = cJSON_CreateObject();
    for (int at = 0; at < list->cnt; at++) {
        const rd_kafka_topic_partition_t *partition = &list->elems[at];
        cJSON *item = offsets && partition->err == RD_KAFKA_RESP_ERR_NO_ERROR
                          ? json_int64(partition->offset)
                          : outcome_of_code(client, partition->err, NULL);
        partitions_set(found, partition, item);
    }
    return found;
}

cJSON *partitions_outcomes(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *list) {
    return each(client, list, false);
}

cJSON *partitions_offsets(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *list) {
    return each(client, list, true);
}

bool partitions_failed(const rd_kafka_topic_partition_list_t *list) {
    for (int at = 0; at < list->cnt; at++)
        if (list->elems[at].err != RD_KAFKA_RESP_ERR_NO_ERROR)
            return true;
    return false;
}
