/* Ends clients. One that takes longer, or hangs, is left to itself. */
#ifndef CLOSING_H
#define CLOSING_H

#include "rdkafka.h"

struct batch;

/* Clients to end, each of which may be NULL, and the batches of the producer. */
struct closing {
    rd_kafka_t *admin, *producer, *consumer;
    struct batch *batches;
};

void closing_within(const struct closing *clients, int ms);

#endif
