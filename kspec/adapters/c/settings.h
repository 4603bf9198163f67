/* The configuration of each client, by what `connect` says. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "adapter.h"
#include "lines.h"

/* Options that differ from librdkafka's defaults. */
extern const struct option settings_disclosed[];

typedef void (*delivery_callback)(rd_kafka_t *, const rd_kafka_message_t *, void *);

/* Return the admin client, the producer or the consumer, which its first call makes. Returns NULL
 * if there is none; `answer` is then the answer to the call. */
rd_kafka_t *settings_admin(struct adapter *adapter, cJSON **answer);
rd_kafka_t *settings_producer(struct adapter *adapter, delivery_callback delivered,
                              cJSON **answer);
rd_kafka_t *settings_consumer(struct adapter *adapter, cJSON **answer);

#endif
