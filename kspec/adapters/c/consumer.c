#include "consumer.h"

#include <stdlib.h>

#include "clock.h"
#include "failures.h"
#include "partitions.h"
#include "settings.h"

/* Return null, or the error of a call that returns a number. */
static cJSON *ended(rd_kafka_t *consumer, rd_kafka_resp_err_t code) {
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return raised(failure_of_code(consumer, code, NULL));
    return returned(cJSON_CreateNull(), NULL);
}

static cJSON *assign(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    rd_kafka_topic_partition_list_t *offsets =
        partitions_with_offsets(json_member(call, "offsets"));
    if (offsets == NULL)
        return adapter_error("offsets has no offsets by partition");
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer != NULL)
        answer = ended(consumer, rd_kafka_assign(consumer, offsets));
    rd_kafka_topic_partition_list_destroy(offsets);
    return answer;
}

static cJSON *subscribe(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *topics = json_member(call, "topics"), *topic;
    const char *pattern = json_get_text(call, "pattern");
    if (pattern == NULL && !json_is_list_of(topics, cJSON_IsString))
        return adapter_error("the call has neither a pattern nor a list of topics");
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer == NULL)
        return answer;
    rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
    if (pattern != NULL) /* begins with ^, which is how the client knows it */
        rd_kafka_topic_partition_list_add(wanted, pattern, RD_KAFKA_PARTITION_UA);
    else
        cJSON_ArrayForEach (topic, topics)
            rd_kafka_topic_partition_list_add(wanted, topic->valuestring, RD_KAFKA_PARTITION_UA);
    answer = ended(consumer, rd_kafka_subscribe(consumer, wanted));
    rd_kafka_topic_partition_list_destroy(wanted);
    return answer;
}

static cJSON *unsubscribe(struct adapter *adapter, const cJSON *call) {
    (void)call;
    cJSON *answer = NULL;
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    return consumer == NULL ? answer : ended(consumer, rd_kafka_unsubscribe(consumer));
}

static cJSON *assignment(struct adapter *adapter, const cJSON *call) {
    (void)call;
    cJSON *answer = NULL;
    rd_kafka_topic_partition_list_t *partitions;
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer == NULL)
        return answer;
    rd_kafka_resp_err_t code = rd_kafka_assignment(consumer, &partitions);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return ended(consumer, code);
    answer = returned(partitions_texts(partitions), NULL);
    rd_kafka_topic_partition_list_destroy(partitions);
    return answer;
}

static cJSON *headers_of(const rd_kafka_message_t *message) {
    cJSON *list = cJSON_CreateArray();
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return list;
    for (size_t number = 0; rd_kafka_header_get_all(headers, number, &name, &value, &size) ==
                            RD_KAFKA_RESP_ERR_NO_ERROR;
         number++) {
        cJSON *pair = cJSON_CreateArray();
        cJSON_AddItemToArray(pair, json_text(name));
        cJSON_AddItemToArray(pair, json_bytes(value, size));
        cJSON_AddItemToArray(list, pair);
    }
    return list;
}

static cJSON *record_of(const rd_kafka_message_t *message) {
    cJSON *record = cJSON_CreateObject();
    json_set(record, "topic", json_text(rd_kafka_topic_name(message->rkt)));
    json_set(record, "partition", cJSON_CreateNumber(message->partition));
    json_set(record, "offset", json_int64(message->offset));
    json_set(record, "timestamp", json_int64(rd_kafka_message_timestamp(message, NULL)));
    json_set(record, "key", json_bytes(message->key, message->key_len));
    json_set(record, "value", json_bytes(message->payload, message->len));
    json_set(record, "headers", headers_of(message));
    return record;
}

/* The client returns an error in place of a record, which ends the call. */
static cJSON *poll(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *wanted = json_member(call, "records"), *ms = json_member(call, "ms");
    if (!cJSON_IsNumber(wanted) || !cJSON_IsNumber(ms))
        return adapter_error("the call has no number of records or no time");
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer == NULL)
        return answer;
    int64_t ends = clock_ms() + ms->valueint, now;
    cJSON *records = cJSON_CreateArray();
    while (answer == NULL && cJSON_GetArraySize(records) < wanted->valueint &&
           (now = clock_ms()) < ends) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, (int)(ends - now));
        if (message == NULL)
            continue;
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            cJSON_AddItemToArray(records, record_of(message));
        else
            answer =
                raised(failure_of_code(consumer, message->err, rd_kafka_message_errstr(message)));
        rd_kafka_message_destroy(message);
    }
    if (answer == NULL)
        return returned(records, NULL);
    cJSON_AddItemToObject(answer, "records", records);
    return answer;
}

typedef rd_kafka_resp_err_t offsets_reader(rd_kafka_t *consumer,
                                           rd_kafka_topic_partition_list_t *partitions,
                                           int timeout_ms);

/* Answer with the offsets that `read` finds for the partitions of the call. */
static cJSON *offsets_read(struct adapter *adapter, const cJSON *call, offsets_reader *read) {
    cJSON *answer = NULL;
    rd_kafka_topic_partition_list_t *partitions = partitions_named(json_member(call, "partitions"));
    if (partitions == NULL)
        return adapter_error("partitions is not a list of partitions");
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer != NULL) {
        rd_kafka_resp_err_t code = read(consumer, partitions, adapter->timeout_ms);
        answer = code == RD_KAFKA_RESP_ERR_NO_ERROR
                     ? returned(partitions_offsets(consumer, partitions), NULL)
                     : ended(consumer, code);
    }
    rd_kafka_topic_partition_list_destroy(partitions);
    return answer;
}

/* It reads what the client knows, which takes no time. */
static rd_kafka_resp_err_t read_position(rd_kafka_t *consumer,
                                         rd_kafka_topic_partition_list_t *partitions,
                                         int timeout_ms) {
    (void)timeout_ms;
    return rd_kafka_position(consumer, partitions);
}

static cJSON *position(struct adapter *adapter, const cJSON *call) {
    return offsets_read(adapter, call, read_position);
}

static cJSON *committed(struct adapter *adapter, const cJSON *call) {
    return offsets_read(adapter, call, rd_kafka_committed);
}

/* rd_kafka_commit(), but with the outcome of each partition. */
static cJSON *committed_now(rd_kafka_t *consumer, const rd_kafka_topic_partition_list_t *offsets) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer);
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(consumer, offsets, queue, NULL, NULL);
    cJSON *answer;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        answer = ended(consumer, code);
    } else {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, -1);
        rd_kafka_topic_partition_list_t *found = rd_kafka_event_topic_partition_list(event);
        cJSON *outcomes = found == NULL ? NULL : partitions_outcomes(consumer, found);
        code = rd_kafka_event_error(event);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
            answer = returned(outcomes == NULL ? cJSON_CreateObject() : outcomes, NULL);
        } else {
            answer = raised(failure_of_code(consumer, code, rd_kafka_event_error_string(event)));
            if (found != NULL && partitions_failed(found))
                cJSON_AddItemToObject(answer, "partitions", outcomes);
            else
                cJSON_Delete(outcomes);
        }
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return answer;
}

static cJSON *commit(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *given = json_member(call, "offsets");
    rd_kafka_topic_partition_list_t *offsets = NULL; /* commits the positions */
    if (given != NULL && !cJSON_IsNull(given) && (offsets = partitions_with_offsets(given)) == NULL)
        return adapter_error("offsets has no offsets by partition");
    rd_kafka_t *consumer = settings_consumer(adapter, &answer);
    if (consumer != NULL)
        answer = committed_now(consumer, offsets);
    if (offsets != NULL)
        rd_kafka_topic_partition_list_destroy(offsets);
    return answer;
}

static cJSON *close_consumer(struct adapter *adapter, const cJSON *call) {
    (void)call;
    rd_kafka_t *consumer = adapter->consumer;
    if (consumer == NULL)
        return returned(cJSON_CreateNull(), NULL);
    adapter->consumer = NULL;
    cJSON *answer = ended(NULL, rd_kafka_consumer_close(consumer));
    rd_kafka_destroy(consumer);
    return answer;
}

const struct named_operation consumer_operations[] = {
    {"assign", assign},     {"assignment", assignment}, {"close_consumer", close_consumer},
    {"commit", commit},     {"committed", committed},   {"poll", poll},
    {"position", position}, {"subscribe", subscribe},   {"unsubscribe", unsubscribe},
    {NULL, NULL},
};
