// A C test with librdkafka against a mock Kafka cluster, without another library: copy the part above
// the test.
//
//   uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'
//
// puts `mockbroker` on PATH, and so does `pipx install`. With librdkafka and its header:
//
//   cc -std=c11 -D_POSIX_C_SOURCE=200809L mock.c -lrdkafka -o mock && ./mock

#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Unlike assert, it stays in builds with NDEBUG.
#define CHECK(holds)                                                            \
    do {                                                                        \
        if (!(holds)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

struct mock {
    char path[64]; // of the cluster, on the control port
    char bootstrap[256];
};

static char host[64], port[8]; // of the control port

// The text of a member, where the name is there once and the text has no quotes in it.
static void text_of(const char *json, const char *name, char *text, size_t size) {
    char member[64];
    snprintf(member, sizeof member, "\"%s\": \"", name);
    const char *start = strstr(json, member);
    CHECK(start != NULL);
    start += strlen(member);
    size_t length = strcspn(start, "\"");
    CHECK(length < size);
    memcpy(text, start, length);
    text[length] = '\0';
}

// Starts the server, which ends when its standard input closes: when this process ends.
static void start_server(void) {
    int input[2], output[2];
    CHECK(pipe(input) == 0 && pipe(output) == 0);
    fcntl(input[1], F_SETFD, FD_CLOEXEC);
    if (fork() == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        execlp("mockbroker", "mockbroker", "serve", "--no-cluster", "--control", "127.0.0.1:0",
               "--exit-on-stdin-eof", (char *)NULL);
        perror("mockbroker");
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    char first[1024] = "", url[128];
    FILE *lines = fdopen(output[0], "r");
    CHECK(lines != NULL && fgets(first, sizeof first, lines) != NULL);
    text_of(first, "control", url, sizeof url);
    CHECK(sscanf(url, "http://%63[^:]:%7s", host, port) == 2);
}

// One request to the control port. Returns the body of its answer, which the caller frees.
static char *ask(const char *method, const char *path, const char *more, const char *body) {
    struct addrinfo *address, hints = {.ai_socktype = SOCK_STREAM};
    CHECK(getaddrinfo(host, port, &hints, &address) == 0);
    int connection = socket(address->ai_family, SOCK_STREAM, 0);
    CHECK(connect(connection, address->ai_addr, address->ai_addrlen) == 0);
    freeaddrinfo(address);
    dprintf(connection,
            "%s %s%s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n"
            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            method, path, more, host, port, strlen(body), body);
    size_t size = 0;
    char *answer = malloc(1);
    for (ssize_t count = 1; count > 0; size += (size_t)count) {
        answer = realloc(answer, size + 4097);
        CHECK(answer != NULL);
        count = read(connection, answer + size, 4096);
        CHECK(count >= 0);
    }
    close(connection);
    answer[size] = '\0';
    if (strncmp(answer, "HTTP/1.1 20", 11) != 0) {
        fprintf(stderr, "%s %s%s: %s\n", method, path, more, answer);
        exit(1);
    }
    char *start = strstr(answer, "\r\n\r\n") + 4;
    memmove(answer, start, strlen(start) + 1);
    return answer;
}

// Starts a cluster with these options of POST /clusters, as JSON.
static struct mock start_mock(const char *options) {
    struct mock mock;
    char id[16];
    char *answer = ask("POST", "/clusters", "?timeout=1m", options);
    text_of(answer, "id", id, sizeof id);
    text_of(answer, "bootstrap", mock.bootstrap, sizeof mock.bootstrap);
    snprintf(mock.path, sizeof mock.path, "/clusters/%s", id);
    free(answer);
    return mock;
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

// ---- the test ----

static rd_kafka_t *producer_of(const struct mock *mock) {
    char problem[256];
    rd_kafka_conf_t *configs = rd_kafka_conf_new();
    CHECK(!rd_kafka_conf_set(configs, "bootstrap.servers", mock->bootstrap, NULL, 0));
    CHECK(!rd_kafka_conf_set(configs, "enable.idempotence", "true", NULL, 0));
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, configs, problem, sizeof problem);
    CHECK(producer != NULL);
    return producer;
}

int main(void) {
    start_server();
    struct mock mock = start_mock("{\"topics\": [\"foo:1:3\"]}");
    // The answer to the first Produce is lost.
    free(ask("POST", mock.path, "/faults",
             "{\"faults\": [{\"api\": \"Produce\", \"disconnect\": \"after\", \"times\": 1}]}"));

    rd_kafka_t *producer = producer_of(&mock);
    CHECK(!rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("foo"), RD_KAFKA_V_VALUE("a", 1), RD_KAFKA_V_END));
    CHECK(!rd_kafka_flush(producer, 60 * 1000));
    rd_kafka_destroy(producer);

    // It sent the request again, and the log has one record.
    char *requests = ask("GET", mock.path, "/journal?api=Produce&direction=request", "");
    CHECK(count_of(requests, "\"timestamp_ns\"") == 2);
    char *records = ask("GET", mock.path, "/logs/foo-0/records", "");
    CHECK(count_of(records, "\"value\": \"a\"") == 1);
    free(requests);
    free(records);
    free(ask("DELETE", mock.path, "", ""));
    puts("It was sent twice, and stored once.");
    return 0;
}
