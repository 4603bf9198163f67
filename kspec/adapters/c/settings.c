#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failures.h"

const struct option settings_disclosed[] = {
    {"socket.timeout.ms", "timeout_ms"},
    {"socket.connection.setup.timeout.ms", "timeout_ms, at least 1000"},
    {"reconnect.backoff.max.ms", "1000"},
    {"log_level", "0"},
    {"request_timeout of each admin call", "timeout_ms"},
    {"request.timeout.ms of producers", "timeout_ms"},
    {"timeout of calls about transactions", "three times timeout_ms"},
    {"enable.auto.commit of consumers", "false"},
    {"group.id of consumers", "kspec, where the case has none: it is required"},
    {NULL, NULL},
};

/* An option of the protocol, and librdkafka's name for it. */
struct choice {
    const char *name, *property;
};

static const struct choice producer_choices[] = {
    {"acks", "acks"},
    {"idempotence", "enable.idempotence"},
    {"compression", "compression.type"},
    {"linger_ms", "linger.ms"},
    {"batch_bytes", "batch.size"},
    {"max_in_flight", "max.in.flight"},
    {"delivery_timeout_ms", "delivery.timeout.ms"},
    {"transactional_id", "transactional.id"},
    {"transaction_timeout_ms", "transaction.timeout.ms"},
    {"metadata_age_ms", "topic.metadata.refresh.interval.ms"},
    {NULL, NULL},
};

static const struct choice consumer_choices[] = {
    {"group", "group.id"},
    {"offset_reset", "auto.offset.reset"},
    {"isolation", "isolation.level"},
    {"max_wait_ms", "fetch.wait.max.ms"},
    {"partition_max_bytes", "max.partition.fetch.bytes"},
    {"rack", "client.rack"},
    {"protocol", "group.protocol"},
    {"instance_id", "group.instance.id"},
    {"session_timeout_ms", "session.timeout.ms"},
    {"heartbeat_ms", "heartbeat.interval.ms"},
    {"metadata_age_ms", "topic.metadata.refresh.interval.ms"},
    {"max_poll_ms", "max.poll.interval.ms"},
    {"assignors", "partition.assignment.strategy"},
    {"remote_assignor", "group.remote.assignor"},
    {NULL, NULL},
};

/* A configuration in the making. After the first thing that is wrong, `answer` is set and the rest
 * is ignored. */
struct settings {
    rd_kafka_conf_t *conf;
    cJSON *answer;
};

static void set(struct settings *settings, const char *property, const char *value) {
    char text[512], message[600];
    if (settings->answer != NULL)
        return;
    switch (rd_kafka_conf_set(settings->conf, property, value, text, sizeof(text))) {
    case RD_KAFKA_CONF_OK:
        return;
    case RD_KAFKA_CONF_UNKNOWN:
        snprintf(message, sizeof(message), "RD_KAFKA_CONF_UNKNOWN: %s", text);
        break;
    default:
        snprintf(message, sizeof(message), "RD_KAFKA_CONF_INVALID: %s", text);
    }
    cJSON *failure = cJSON_CreateObject();
    cJSON_AddStringToObject(failure, "error", "error_code");
    cJSON_AddNullToObject(failure, "code");
    json_set(failure, "message", json_text(message));
    settings->answer = raised(failure);
}

static void set_number(struct settings *settings, const char *property, int value) {
    char digits[16];
    snprintf(digits, sizeof(digits), "%d", value);
    set(settings, property, digits);
}

/* Set what the line has, if it has it. */
static void set_text(struct settings *settings, const char *property, const cJSON *line,
                     const char *name) {
    const char *value = json_get_text(line, name);
    if (value != NULL)
        set(settings, property, value);
}

static struct settings common(const struct adapter *adapter) {
    struct settings settings = {.conf = rd_kafka_conf_new()};
    const cJSON *line = adapter->connect;
    const cJSON *tls = json_member(line, "tls");
    const cJSON *sasl = json_member(line, "sasl");
    int setup = adapter->timeout_ms < 1000 ? 1000 : adapter->timeout_ms; /* its least value */
    set_text(&settings, "bootstrap.servers", line, "bootstrap");
    set_text(&settings, "client.id", line, "client_id");
    set_number(&settings, "socket.timeout.ms", adapter->timeout_ms);
    set_number(&settings, "socket.connection.setup.timeout.ms", setup);
    set_number(&settings, "reconnect.backoff.max.ms", 1000);
    set_number(&settings, "log_level", 0);
    if (tls != NULL || sasl != NULL)
        set(&settings, "security.protocol",
            tls == NULL    ? "sasl_plaintext"
            : sasl == NULL ? "ssl"
                           : "sasl_ssl");
    set_text(&settings, "ssl.ca.location", tls, "ca");
    set_text(&settings, "ssl.certificate.location", tls, "certificate");
    set_text(&settings, "ssl.key.location", tls, "key");
    set_text(&settings, "sasl.mechanism", sasl, "mechanism");
    set_text(&settings, "sasl.username", sasl, "username");
    set_text(&settings, "sasl.password", sasl, "password");
    return settings;
}

/* Write texts separated by commas. */
static char *joined(const cJSON *texts) {
    size_t size = 1;
    const cJSON *text;
    cJSON_ArrayForEach (text, texts)
        size += strlen(text->valuestring) + 1;
    char *all = calloc(1, size);
    cJSON_ArrayForEach (text, texts) {
        if (all[0] != '\0')
            strcat(all, ",");
        strcat(all, text->valuestring);
    }
    return all;
}

static void choose(struct settings *settings, const char *property, const cJSON *value) {
    if (cJSON_IsNumber(value)) {
        set_number(settings, property, value->valueint);
    } else if (cJSON_IsBool(value)) {
        set(settings, property, cJSON_IsTrue(value) ? "true" : "false");
    } else if (json_is_list_of(value, cJSON_IsString)) {
        const cJSON *each;
        cJSON_ArrayForEach (each, value) {
            if (strcmp(each->valuestring, "sticky") == 0) {
                settings->answer = unsupported("librdkafka has no assignor sticky");
                return;
            }
        }
        char *texts = joined(value);
        set(settings, property, texts);
        free(texts);
    } else if (cJSON_IsString(value)) {
        bool is_error =
            strcmp(property, "auto.offset.reset") == 0 && strcmp(value->valuestring, "none") == 0;
        set(settings, property, is_error ? "error" : value->valuestring); /* its name for it */
    } else {
        settings->answer = adapter_error("%s has no value of ours", property);
    }
}

/* Set what the case chose. */
static void choose_all(struct settings *settings, const cJSON *chosen,
                       const struct choice *choices) {
    const cJSON *value;
    cJSON_ArrayForEach (value, chosen) {
        const struct choice *choice = choices;
        while (choice->name != NULL && strcmp(choice->name, value->string) != 0)
            choice++;
        if (settings->answer != NULL)
            return;
        if (choice->name == NULL)
            settings->answer = unsupported("librdkafka has no option for %s", value->string);
        else
            choose(settings, choice->property, value);
    }
}

/* Make the client; it owns the configuration from then on. */
static rd_kafka_t *made(struct settings *settings, rd_kafka_type_t type, cJSON **answer) {
    char text[512];
    rd_kafka_t *client = NULL;
    if (settings->answer == NULL) {
        client = rd_kafka_new(type, settings->conf, text, sizeof(text));
        if (client == NULL)
            settings->answer = raised(failure_of_code(NULL, rd_kafka_last_error(), text));
    }
    if (client == NULL) {
        rd_kafka_conf_destroy(settings->conf);
        *answer = settings->answer;
    }
    return client;
}

static bool is_connected(const struct adapter *adapter, cJSON **answer) {
    if (adapter->connect == NULL)
        *answer = adapter_error("connect comes first");
    return adapter->connect != NULL;
}

/* Librdkafka has no client for an admin alone: it is a producer or a consumer. */
rd_kafka_t *settings_admin(struct adapter *adapter, cJSON **answer) {
    if (!is_connected(adapter, answer) || adapter->admin != NULL)
        return adapter->admin;
    struct settings settings = common(adapter);
    return adapter->admin = made(&settings, RD_KAFKA_PRODUCER, answer);
}

static rd_kafka_t *made_producer(struct adapter *adapter, delivery_callback delivered,
                                 cJSON **answer) {
    struct settings settings = common(adapter);
    set_number(&settings, "request.timeout.ms", adapter->timeout_ms);
    choose_all(&settings, json_member(adapter->connect, "producer"), producer_choices);
    rd_kafka_conf_set_opaque(settings.conf, adapter);
    rd_kafka_conf_set_dr_msg_cb(settings.conf, delivered);
    return made(&settings, RD_KAFKA_PRODUCER, answer);
}

static rd_kafka_t *made_consumer(struct adapter *adapter, cJSON **answer) {
    struct settings settings = common(adapter);
    set(&settings, "enable.auto.commit", "false");
    set(&settings, "group.id", "kspec");
    choose_all(&settings, json_member(adapter->connect, "consumer"), consumer_choices);
    rd_kafka_t *consumer = made(&settings, RD_KAFKA_CONSUMER, answer);
    if (consumer != NULL)
        rd_kafka_poll_set_consumer(consumer); /* so that one poll has everything */
    return consumer;
}

rd_kafka_t *settings_producer(struct adapter *adapter, delivery_callback delivered,
                              cJSON **answer) {
    if (!is_connected(adapter, answer))
        return NULL;
    pthread_mutex_lock(&adapter->making);
    if (adapter->producer == NULL)
        adapter->producer = made_producer(adapter, delivered, answer);
    rd_kafka_t *producer = adapter->producer;
    pthread_mutex_unlock(&adapter->making);
    return producer;
}

rd_kafka_t *settings_consumer(struct adapter *adapter, cJSON **answer) {
    if (!is_connected(adapter, answer))
        return NULL;
    pthread_mutex_lock(&adapter->making);
    if (adapter->consumer == NULL)
        adapter->consumer = made_consumer(adapter, answer);
    rd_kafka_t *consumer = adapter->consumer;
    pthread_mutex_unlock(&adapter->making);
    return consumer;
}
