#include "producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failures.h"
#include "partitions.h"
#include "settings.h"

/* Less than the 15 seconds after which the suite ends an adapter. */
enum { LONGEST_OUTCOME_MS = 13000 };

/* Where the outcome of a record goes: the opaque of its message. */
struct delivery {
    struct batch *batch;
    size_t number;
};

/* The records of one call. It is kept until the producer is closed, since a record without an
 * outcome may get one later. */
struct batch {
    struct batch *next;
    size_t count, left;
    cJSON **outcomes; /* NULL until there is one */
    struct delivery *deliveries;
};

static struct batch *new_batch(struct adapter *adapter, size_t count) {
    struct batch *batch = calloc(1, sizeof(*batch));
    batch->count = batch->left = count;
    batch->outcomes = calloc(count + 1, sizeof(*batch->outcomes));
    batch->deliveries = calloc(count + 1, sizeof(*batch->deliveries));
    for (size_t number = 0; number < count; number++)
        batch->deliveries[number] = (struct delivery){batch, number};
    pthread_mutex_lock(&adapter->delivering);
    batch->next = adapter->batches;
    adapter->batches = batch;
    pthread_mutex_unlock(&adapter->delivering);
    return batch;
}

void producer_free(struct batch *batches) {
    while (batches != NULL) {
        struct batch *batch = batches;
        batches = batch->next;
        for (size_t number = 0; number < batch->count; number++)
            cJSON_Delete(batch->outcomes[number]);
        free(batch->outcomes);
        free(batch->deliveries);
        free(batch);
    }
}

/* Keep a record's first outcome. */
static void settle(struct adapter *adapter, const struct delivery *delivery, cJSON *outcome) {
    struct batch *batch = delivery->batch;
    pthread_mutex_lock(&adapter->delivering);
    if (batch->outcomes[delivery->number] == NULL) {
        batch->outcomes[delivery->number] = outcome;
        batch->left--;
        outcome = NULL;
    }
    pthread_mutex_unlock(&adapter->delivering);
    cJSON_Delete(outcome);
}

/* Called by librdkafka with a record's outcome. The opaque of the producer is the adapter. */
static void on_delivery(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    if (message->_private == NULL) /* of `send` */
        return;
    cJSON *outcome;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        outcome = failure_of_code(producer, message->err, rd_kafka_message_produce_errstr(message));
    } else {
        outcome = cJSON_CreateObject();
        json_set(outcome, "topic", json_text(rd_kafka_topic_name(message->rkt)));
        json_set(outcome, "partition", cJSON_CreateNumber(message->partition));
        json_set(outcome, "offset", json_int64(message->offset));
    }
    settle(opaque, message->_private, outcome);
}

static cJSON_bool is_header(const cJSON *header) {
    const cJSON *value = cJSON_GetArrayItem(header, 1);
    return cJSON_GetArraySize(header) == 2 && cJSON_IsString(cJSON_GetArrayItem(header, 0)) &&
           (cJSON_IsNull(value) || cJSON_IsString(value));
}

static cJSON_bool is_record(const cJSON *record) {
    const cJSON *key = json_member(record, "key");
    const cJSON *value = json_member(record, "value");
    const cJSON *headers = json_member(record, "headers");
    return json_get_text(record, "topic") != NULL &&
           (headers == NULL || json_is_list_of(headers, is_header)) &&
           (key == NULL || cJSON_IsNull(key) || cJSON_IsString(key)) &&
           (value == NULL || cJSON_IsNull(value) || cJSON_IsString(value));
}

static rd_kafka_resp_err_t hand_over(rd_kafka_t *producer, const cJSON *record,
                                     struct delivery *delivery) {
    const char *key = json_get_text(record, "key"), *value = json_get_text(record, "value");
    size_t key_size = key == NULL ? 0 : strlen(key), size = value == NULL ? 0 : strlen(value);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(0);
    const cJSON *header;
    cJSON_ArrayForEach (header, json_member(record, "headers")) {
        const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(header, 1));
        rd_kafka_header_add(headers, cJSON_GetStringValue(cJSON_GetArrayItem(header, 0)), -1, text,
                            -1);
    }
    rd_kafka_resp_err_t code = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(json_get_text(record, "topic")),
        RD_KAFKA_V_PARTITION(json_get_int(record, "partition", RD_KAFKA_PARTITION_UA)),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY((void *)key, key_size),
        RD_KAFKA_V_VALUE((void *)value, size), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE(delivery), RD_KAFKA_V_END);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_headers_destroy(headers); /* else they are the client's */
    return code;
}

static size_t left(struct adapter *adapter, const struct batch *batch) {
    pthread_mutex_lock(&adapter->delivering);
    size_t count = batch->left;
    pthread_mutex_unlock(&adapter->delivering);
    return count;
}

/* Return the outcomes in the order of the records. */
static cJSON *outcomes(struct adapter *adapter, struct batch *batch) {
    cJSON *list = cJSON_CreateArray();
    pthread_mutex_lock(&adapter->delivering);
    for (size_t number = 0; number < batch->count; number++) {
        cJSON *outcome = cJSON_Duplicate(batch->outcomes[number], true);
        if (outcome == NULL) {
            outcome = cJSON_CreateObject();
            cJSON_AddTrueToObject(outcome, "pending");
        }
        cJSON_AddItemToArray(list, outcome);
    }
    pthread_mutex_unlock(&adapter->delivering);
    return list;
}

static cJSON *produce(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *records = json_member(call, "records"), *record;
    if (!json_is_list_of(records, is_record))
        return adapter_error("records is not a list of records");
    rd_kafka_t *producer = settings_producer(adapter, on_delivery, &answer);
    if (producer == NULL)
        return answer;
    const cJSON *options = json_member(adapter->connect, "producer");
    int limit = json_get_int(options, "delivery_timeout_ms", 0) + adapter->timeout_ms + 4000;
    int64_t ends = clock_ms() + (limit < LONGEST_OUTCOME_MS ? limit : LONGEST_OUTCOME_MS);
    struct batch *batch = new_batch(adapter, (size_t)cJSON_GetArraySize(records));
    struct delivery *delivery = batch->deliveries;
    cJSON_ArrayForEach (record, records) {
        rd_kafka_resp_err_t code = hand_over(producer, record, delivery);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
            settle(adapter, delivery, failure_of_code(producer, code, NULL));
        delivery++;
    }
    for (int64_t now; left(adapter, batch) > 0 && (now = clock_ms()) < ends;)
        rd_kafka_poll(producer, (int)(ends - now));
    return returned(outcomes(adapter, batch), NULL);
}

static cJSON *send_records(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *records = json_member(call, "records"), *record;
    if (!json_is_list_of(records, is_record))
        return adapter_error("records is not a list of records");
    rd_kafka_t *producer = settings_producer(adapter, on_delivery, &answer);
    if (producer == NULL)
        return answer;
    cJSON_ArrayForEach (record, records) {
        rd_kafka_resp_err_t code = hand_over(producer, record, NULL);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
            return raised(failure_of_code(producer, code, NULL));
    }
    return returned(cJSON_CreateNull(), NULL);
}

/* ---- transactions -------------------------------------------------------------------------- */

/* Return null, or the error, which is freed. `raw` shows what the client says about it. */
static cJSON *ended(rd_kafka_t *producer, rd_kafka_error_t *error) {
    char text[128];
    if (error == NULL)
        return returned(cJSON_CreateNull(), NULL);
    cJSON *answer = raised(failure_of_error(producer, error));
    snprintf(text, sizeof(text), "fatal: %d, retriable: %d, the transaction requires abort: %d",
             rd_kafka_error_is_fatal(error), rd_kafka_error_is_retriable(error),
             rd_kafka_error_txn_requires_abort(error));
    cJSON_AddStringToObject(answer, "raw", text);
    rd_kafka_error_destroy(error);
    return answer;
}

static cJSON *begin_transaction(struct adapter *adapter, const cJSON *call) {
    (void)call;
    cJSON *answer = NULL;
    rd_kafka_t *producer = settings_producer(adapter, on_delivery, &answer);
    if (producer == NULL)
        return answer;
    if (!adapter->is_ready) {
        rd_kafka_error_t *error = rd_kafka_init_transactions(producer, 3 * adapter->timeout_ms);
        if (error != NULL)
            return ended(producer, error);
        adapter->is_ready = true;
    }
    return ended(producer, rd_kafka_begin_transaction(producer));
}

static cJSON *send_offsets(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    const cJSON *given = json_member(call, "offsets");
    rd_kafka_topic_partition_list_t *offsets = partitions_with_offsets(given);
    if (offsets == NULL)
        return adapter_error("offsets has no offsets by partition");
    rd_kafka_t *producer = settings_producer(adapter, on_delivery, &answer);
    rd_kafka_t *consumer = producer == NULL ? NULL : settings_consumer(adapter, &answer);
    if (consumer != NULL) {
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);
        answer = ended(producer, rd_kafka_send_offsets_to_transaction(producer, offsets, group,
                                                                      3 * adapter->timeout_ms));
        rd_kafka_consumer_group_metadata_destroy(group);
    }
    rd_kafka_topic_partition_list_destroy(offsets);
    return answer;
}

/* End the transaction. Both ends flush or drop the records by themselves. */
static cJSON *end_transaction(struct adapter *adapter,
                              rd_kafka_error_t *(*end)(rd_kafka_t *producer, int timeout_ms)) {
    cJSON *answer = NULL;
    rd_kafka_t *producer = settings_producer(adapter, on_delivery, &answer);
    if (producer == NULL)
        return answer;
    return ended(producer, end(producer, 3 * adapter->timeout_ms));
}

static cJSON *commit_transaction(struct adapter *adapter, const cJSON *call) {
    (void)call;
    return end_transaction(adapter, rd_kafka_commit_transaction);
}

static cJSON *abort_transaction(struct adapter *adapter, const cJSON *call) {
    (void)call;
    return end_transaction(adapter, rd_kafka_abort_transaction);
}

void producer_close(rd_kafka_t *producer) {
    rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                 RD_KAFKA_PURGE_F_NON_BLOCKING);
    rd_kafka_flush(producer, 100);
    rd_kafka_destroy(producer);
}

const struct named_operation producer_operations[] = {
    {"abort_transaction", abort_transaction},
    {"begin_transaction", begin_transaction},
    {"commit_transaction", commit_transaction},
    {"produce", produce},
    {"send", send_records},
    {"send_offsets", send_offsets},
    {NULL, NULL},
};
