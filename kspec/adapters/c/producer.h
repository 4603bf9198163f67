/* Calls of a producer, with and without transactions. */
#ifndef PRODUCER_H
#define PRODUCER_H

#include "adapter.h"
#include "lines.h"

extern const struct named_operation producer_operations[];

/* Called by librdkafka with a record's outcome. The opaque of the producer is the adapter. */
void producer_delivered(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque);

/* Drop what is under way and destroy the producer. */
void producer_close(rd_kafka_t *producer);

/* Free batches, whose producer is gone. */
void producer_free(struct batch *batches);

#endif
