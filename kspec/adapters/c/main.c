/* Drives librdkafka by the protocol of docs/reference/adapters.md. This file connects and closes;
 * settings.c configures the clients, and the calls are in topics.c, groups.c, access.c, producer.c
 * and consumer.c. */
#include <stdlib.h>

#include "adapter.h"
#include "admin.h"
#include "closing.h"
#include "consumer.h"
#include "lines.h"
#include "producer.h"
#include "settings.h"

static cJSON *close_all(struct adapter *adapter, const cJSON *call) {
    (void)call;
    struct closing closing = {adapter->admin, adapter->producer, adapter->consumer,
                              adapter->batches};
    adapter->admin = adapter->producer = adapter->consumer = NULL;
    adapter->batches = NULL;
    adapter->is_ready = false;
    closing_within(&closing, 1000);
    cJSON_Delete(adapter->connect);
    adapter->connect = NULL;
    return returned(cJSON_CreateNull(), NULL);
}

static cJSON *connect_to(struct adapter *adapter, const cJSON *call) {
    cJSON *answer = NULL;
    int timeout_ms = json_get_int(call, "timeout_ms", 0);
    if (timeout_ms <= 0 || json_get_text(call, "bootstrap") == NULL)
        return adapter_error("connect has no timeout_ms or no bootstrap");
    cJSON_Delete(close_all(adapter, NULL));
    adapter->connect = cJSON_Duplicate(call, true);
    adapter->timeout_ms = timeout_ms;
    if (settings_admin(adapter, &answer) == NULL)
        return answer;
    return returned(cJSON_CreateNull(), NULL);
}

int main(void) {
    static const struct named_operation *const groups[] = {
        topic_operations,    group_operations,    access_operations,
        producer_operations, consumer_operations, NULL};
    struct adapter adapter = {.making = PTHREAD_MUTEX_INITIALIZER,
                              .delivering = PTHREAD_MUTEX_INITIALIZER};
    serve(&(struct server){
        .client = "librdkafka",
        .version = rd_kafka_version_str(),
        .adapter = &adapter,
        .options = settings_disclosed,
        .groups = groups,
        .connect = connect_to,
        .close = close_all,
    });
    return 0;
}
