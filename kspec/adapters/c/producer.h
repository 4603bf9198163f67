/* Calls of a producer, with and without transactions. */
#ifndef PRODUCER_H
#define PRODUCER_H

#include "adapter.h"
#include "lines.h"

extern const struct named_operation producer_operations[];

/* Drop what is under way and destroy the producer. */
void producer_close(rd_kafka_t *producer);

/* Free batches, whose producer is gone. */
void producer_free(struct batch *batches);

#endif
