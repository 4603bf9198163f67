/* The adapter's state: an admin client, a producer and a consumer, and the line that makes them. */
#ifndef ADAPTER_H
#define ADAPTER_H

#include <pthread.h>

#include "json.h"
#include "rdkafka.h"

struct batch;

struct adapter {
    cJSON *connect; /* the line; NULL before it */
    int timeout_ms;
    pthread_mutex_t making; /* a call of each thread may make the producer or the consumer */
    rd_kafka_t *admin, *producer, *consumer;
    bool is_ready; /* for transactions */
    pthread_mutex_t delivering;
    struct batch *batches; /* whose records may still get an outcome */
};

#endif
