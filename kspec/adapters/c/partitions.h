/* Partitions as texts, "foo-0", and as librdkafka's lists. */
#ifndef PARTITIONS_H
#define PARTITIONS_H

#include "json.h"
#include "rdkafka.h"

/* Return a new list of ["foo-0", ...], or NULL if it is none. */
rd_kafka_topic_partition_list_t *partitions_named(const cJSON *names);

/* Return a new list of {"foo-0": 5, ...}, or NULL if it is not such a list. null stands for no
 * offset. */
rd_kafka_topic_partition_list_t *partitions_with_offsets(const cJSON *offsets);

/* Add an item under the partition's text. */
void partitions_set(cJSON *object, const rd_kafka_topic_partition_t *partition, cJSON *item);

/* The texts of a list, in ascending order. */
cJSON *partitions_texts(const rd_kafka_topic_partition_list_t *list);

/* By partition: null or its error; or its error or its offset. */
cJSON *partitions_outcomes(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *list);
cJSON *partitions_offsets(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *list);

/* Whether any partition of the list has an error. */
bool partitions_failed(const rd_kafka_topic_partition_list_t *list);

#endif
