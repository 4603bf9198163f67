#include "closing.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "producer.h"

/* Shared by the thread that ends the clients and the one that waits for it. The last one frees it. */
struct work {
    struct closing clients;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done, is_alone;
};

static void end(const struct closing *clients) {
    if (clients->producer != NULL)
        producer_close(clients->producer);
    producer_free(clients->batches);
    if (clients->consumer != NULL) {
        rd_kafka_consumer_close(clients->consumer);
        rd_kafka_destroy(clients->consumer);
    }
    if (clients->admin != NULL)
        rd_kafka_destroy(clients->admin);
}

static void free_work(struct work *work) {
    pthread_mutex_destroy(&work->mutex);
    pthread_cond_destroy(&work->changed);
    free(work);
}

static void *end_all(void *argument) {
    struct work *work = argument;
    end(&work->clients);
    pthread_mutex_lock(&work->mutex);
    bool is_alone = work->is_alone;
    work->is_done = true;
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->mutex);
    if (is_alone)
        free_work(work);
    return NULL;
}

void closing_within(const struct closing *clients, int ms) {
    pthread_t thread;
    struct timespec until;
    struct work *work = calloc(1, sizeof(*work));
    work->clients = *clients;
    pthread_mutex_init(&work->mutex, NULL);
    pthread_cond_init(&work->changed, NULL);
    if (pthread_create(&thread, NULL, end_all, work) != 0) {
        end(clients);
        free_work(work);
        return;
    }
    pthread_detach(thread);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&work->mutex);
    while (!work->is_done)
        if (pthread_cond_timedwait(&work->changed, &work->mutex, &until) != 0)
            break;
    bool is_done = work->is_done;
    work->is_alone = !is_done;
    pthread_mutex_unlock(&work->mutex);
    if (is_done)
        free_work(work);
}
