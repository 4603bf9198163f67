#include "lines.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cJSON *returned(cJSON *result, cJSON *raw) {
    char *text = cJSON_PrintUnformatted(raw == NULL ? result : raw);
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddTrueToObject(answer, "ok");
    cJSON_AddItemToObject(answer, "result", result);
    cJSON_AddStringToObject(answer, "raw", text);
    cJSON_free(text);
    cJSON_Delete(raw);
    return answer;
}

cJSON *raised(cJSON *failure) {
    cJSON_AddFalseToObject(failure, "ok");
    return failure;
}

static cJSON *formatted(const char *format, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof(text), format, arguments);
    return json_text(text);
}

cJSON *unsupported(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddItemToObject(answer, "unsupported", formatted(format, arguments));
    va_end(arguments);
    return answer;
}

cJSON *adapter_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cJSON *answer = cJSON_CreateObject();
    cJSON *error = cJSON_AddObjectToObject(answer, "adapter_error");
    cJSON_AddStringToObject(error, "error", "bad call");
    cJSON_AddNullToObject(error, "code");
    cJSON_AddItemToObject(error, "message", formatted(format, arguments));
    va_end(arguments);
    return answer;
}

static operation *found(const struct server *server, const char *name) {
    if (strcmp(name, "connect") == 0)
        return server->connect;
    if (strcmp(name, "close") == 0)
        return server->close;
    for (size_t group = 0; server->groups[group] != NULL; group++)
        for (const struct named_operation *each = server->groups[group]; each->name != NULL; each++)
            if (strcmp(each->name, name) == 0)
                return each->perform;
    return NULL;
}

static cJSON *together(const struct server *server, const cJSON *calls);

static cJSON *answer_to(const struct server *server, const cJSON *call) {
    const char *name = json_get_text(call, "op");
    if (name == NULL)
        return adapter_error("the line has no op");
    if (strcmp(name, "together") == 0)
        return together(server, json_member(call, "calls"));
    operation *perform = found(server, name);
    if (perform == NULL)
        return unsupported("librdkafka has no public call for %s", name);
    return perform(server->adapter, call);
}

/* One of several calls, each of which a thread makes. */
struct one_call {
    pthread_t thread;
    const struct server *server;
    const cJSON *call;
    cJSON *answer;
};

static void *make_call(void *argument) {
    struct one_call *one = argument;
    one->answer = answer_to(one->server, one->call);
    return NULL;
}

static cJSON *together(const struct server *server, const cJSON *calls) {
    if (!json_is_list_of(calls, cJSON_IsObject))
        return adapter_error("calls is not a list of calls");
    size_t count = (size_t)cJSON_GetArraySize(calls), started = 0;
    struct one_call *all = calloc(count + 1, sizeof(*all));
    const cJSON *call;
    cJSON_ArrayForEach (call, calls) {
        struct one_call *one = &all[started];
        one->server = server;
        one->call = call;
        if (pthread_create(&one->thread, NULL, make_call, one) != 0)
            break;
        started++;
    }
    cJSON *answers = cJSON_CreateArray();
    for (size_t at = 0; at < started; at++) {
        pthread_join(all[at].thread, NULL);
        cJSON_AddItemToArray(answers, all[at].answer);
    }
    free(all);
    if (started < count) {
        cJSON_Delete(answers);
        return adapter_error("no thread could be started");
    }
    return returned(answers, NULL);
}

static void write_line(cJSON *line) {
    char *text = cJSON_PrintUnformatted(line);
    puts(text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(line);
}

static cJSON *greeting(const struct server *server) {
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "client", server->client);
    cJSON_AddStringToObject(line, "version", server->version);
    cJSON_AddStringToObject(line, "language", "c");
    cJSON *capabilities = cJSON_AddArrayToObject(line, "capabilities");
    for (size_t group = 0; server->groups[group] != NULL; group++)
        for (const struct named_operation *each = server->groups[group]; each->name != NULL; each++)
            cJSON_AddItemToArray(capabilities, cJSON_CreateString(each->name));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(line, "connect"), cJSON_CreateString("tls"));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(line, "records"), cJSON_CreateString("headers"));
    cJSON *options = cJSON_AddObjectToObject(line, "options");
    for (const struct option *each = server->options; each->name != NULL; each++)
        cJSON_AddStringToObject(options, each->name, each->value);
    return line;
}

void serve(const struct server *server) {
    char *line = NULL;
    size_t room = 0;
    write_line(greeting(server));
    while (getline(&line, &room, stdin) != -1) {
        cJSON *call = cJSON_Parse(line);
        if (call == NULL)
            write_line(adapter_error("the line is not JSON"));
        else if (strstr(line, "\\u0000") != NULL) /* cJSON's texts end there */
            write_line(adapter_error("a text has a NUL"));
        else
            write_line(answer_to(server, call));
        cJSON_Delete(call);
    }
    free(line);
    cJSON_Delete(server->close(server->adapter, NULL));
}
