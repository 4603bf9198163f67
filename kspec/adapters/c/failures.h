/* What librdkafka returned in place of success, as the members of an error. */
#ifndef FAILURES_H
#define FAILURES_H

#include "json.h"
#include "rdkafka.h"

/* An error that is a number, and its text if librdkafka has one beside the number's own. `client`,
 * which may be NULL, has the cause of a fatal error. */
cJSON *failure_of_code(rd_kafka_t *client, rd_kafka_resp_err_t code, const char *text);

/* Whether it says that something failed: some results have an object for success, too. */
bool is_failure(const rd_kafka_error_t *error);

/* An error that is an object, which stays the caller's. */
cJSON *failure_of_error(rd_kafka_t *client, const rd_kafka_error_t *error);

/* The same, or null if nothing failed. */
cJSON *outcome_of_code(rd_kafka_t *client, rd_kafka_resp_err_t code, const char *text);
cJSON *outcome_of_error(rd_kafka_t *client, const rd_kafka_error_t *error);

#endif
