/* What every admin call has: options, and a queue on which its result arrives as an event. */
#ifndef ADMIN_H
#define ADMIN_H

#include "adapter.h"
#include "lines.h"

struct admin_call {
    rd_kafka_t *client;
    rd_kafka_AdminOptions_t *options;
    rd_kafka_queue_t *queue;
    cJSON *answer; /* if the call cannot be made */
};

/* Prepare a call. Returns whether it can be made; otherwise `answer` is the answer. */
bool admin_begin(struct admin_call *made, struct adapter *adapter, rd_kafka_admin_op_t api);

/* Note that the client refused an option, unless it did not. Returns whether it did not. */
bool admin_allows(struct admin_call *made, rd_kafka_error_t *error);

/* Turn the event of a call that did not fail as a whole into the result. */
typedef cJSON *admin_result(rd_kafka_t *client, rd_kafka_event_t *event);

/* Wait for the event and return the answer. Frees what `admin_begin` made. */
cJSON *admin_answer(struct admin_call *made, admin_result *result);

/* Free it without a call, and return the answer. */
cJSON *admin_refused(struct admin_call *made);

extern const struct named_operation topic_operations[], group_operations[], access_operations[];

#endif
