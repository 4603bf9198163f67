#include "failures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Negative codes are librdkafka's own, except -1, which is Kafka's. */
static cJSON *described(const char *class, rd_kafka_resp_err_t code, const char *text) {
    const char *name = rd_kafka_err2name(code);
    size_t size = strlen(name) + strlen(text) + 3;
    char *message = malloc(size);
    snprintf(message, size, "%s: %s", name, text);
    cJSON *failure = cJSON_CreateObject();
    json_set(failure, "error", json_text(class));
    json_set(failure, "code", code >= -1 ? cJSON_CreateNumber(code) : cJSON_CreateNull());
    json_set(failure, "message", json_text(message));
    free(message);
    return failure;
}

/* As its documentation says, an application looks up what is behind RD_KAFKA_RESP_ERR__FATAL. */
static cJSON *with_cause(cJSON *failure, rd_kafka_t *client, rd_kafka_resp_err_t code) {
    char text[512];
    if (client == NULL || code != RD_KAFKA_RESP_ERR__FATAL)
        return failure;
    rd_kafka_resp_err_t cause = rd_kafka_fatal_error(client, text, sizeof(text));
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR)
        json_set(failure, "cause", described("error_code", cause, text));
    return failure;
}

cJSON *failure_of_code(rd_kafka_t *client, rd_kafka_resp_err_t code, const char *text) {
    cJSON *failure = described("error_code", code, text == NULL ? rd_kafka_err2str(code) : text);
    return with_cause(failure, client, code);
}

bool is_failure(const rd_kafka_error_t *error) {
    return error != NULL && rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

cJSON *failure_of_error(rd_kafka_t *client, const rd_kafka_error_t *error) {
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    cJSON *failure = described("rd_kafka_error_t", code, rd_kafka_error_string(error));
    return with_cause(failure, client, code);
}

cJSON *outcome_of_code(rd_kafka_t *client, rd_kafka_resp_err_t code, const char *text) {
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return cJSON_CreateNull();
    return failure_of_code(client, code, text);
}

cJSON *outcome_of_error(rd_kafka_t *client, const rd_kafka_error_t *error) {
    return is_failure(error) ? failure_of_error(client, error) : cJSON_CreateNull();
}
