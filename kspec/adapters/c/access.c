/* Calls for access rules. A rule or a filter is a text, "allow User:alice read topic:foo"; "any" in
 * a filter stands for whatever it may be. The host is "*", in a filter any, and the pattern literal. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin.h"
#include "failures.h"

static const char *const ANY = "any";

/* ---- texts --------------------------------------------------------------------------------- */

/* The number that librdkafka has for a name, or -1. It has names by numbers only. */
static int number_of(const char *name, const char *(*name_of)(int), int count) {
    for (int number = 0; number < count; number++)
        if (strcasecmp(name, name_of(number)) == 0)
            return number;
    return -1;
}

static const char *permission_name(int number) {
    return rd_kafka_AclPermissionType_name((rd_kafka_AclPermissionType_t)number);
}

static const char *operation_name(int number) {
    return rd_kafka_AclOperation_name((rd_kafka_AclOperation_t)number);
}

static const char *kind_name(int number) {
    return rd_kafka_ResourceType_name((rd_kafka_ResourceType_t)number);
}

static const char *unless_any(const char *text) {
    return strcmp(text, ANY) == 0 ? NULL : text;
}

/* Return a new rule or filter, or NULL with the answer that says why there is none. */
static rd_kafka_AclBinding_t *parsed(const char *text, bool is_filter, cJSON **answer) {
    char permission[32], principal[256], operation[32], resource[256], reason[512];
    if (sscanf(text, "%31s %255s %31s %255s", permission, principal, operation, resource) != 4) {
        *answer = adapter_error("%s is not an access rule", text);
        return NULL;
    }
    char *name = strchr(resource, ':');
    if (name != NULL)
        *name++ = '\0';
    int allows = number_of(permission, permission_name, RD_KAFKA_ACL_PERMISSION_TYPE__CNT);
    int what = number_of(operation, operation_name, RD_KAFKA_ACL_OPERATION__CNT);
    int kind = number_of(resource, kind_name, RD_KAFKA_RESOURCE__CNT);
    if (allows < 0 || what < 0 || kind < 0) {
        *answer = adapter_error("%s is not an access rule", text);
        return NULL;
    }
    rd_kafka_AclBinding_t *made =
        is_filter ? rd_kafka_AclBindingFilter_new(kind, name, RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                                                  unless_any(principal), NULL, what, allows, reason,
                                                  sizeof(reason))
                  : rd_kafka_AclBinding_new(kind, name, RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                                            principal, "*", what, allows, reason, sizeof(reason));
    if (made == NULL)
        *answer = raised(failure_of_code(NULL, RD_KAFKA_RESP_ERR__INVALID_ARG, reason));
    return made;
}

static void in_small_letters(char *text) {
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* Return a new text. */
static char *rule_text(const rd_kafka_AclBinding_t *rule) {
    const char *principal = rd_kafka_AclBinding_principal(rule);
    const char *name = rd_kafka_AclBinding_name(rule);
    char permission[32], operation[32], kind[32];
    snprintf(permission, sizeof(permission), "%s",
             permission_name(rd_kafka_AclBinding_permission_type(rule)));
    snprintf(operation, sizeof(operation), "%s",
             operation_name(rd_kafka_AclBinding_operation(rule)));
    snprintf(kind, sizeof(kind), "%s", kind_name(rd_kafka_AclBinding_restype(rule)));
    in_small_letters(permission);
    in_small_letters(operation);
    in_small_letters(kind);
    size_t size = strlen(principal) + strlen(name) + sizeof(permission) + sizeof(operation) +
                  sizeof(kind) + 8;
    char *text = malloc(size);
    snprintf(text, size, "%s %s %s %s:%s", permission, principal, operation, kind, name);
    return text;
}

/* Return the rules or filters of a list, of which `count` were made, or fewer with an answer. */
static rd_kafka_AclBinding_t **parsed_list(const cJSON *texts, bool is_filter, size_t *count,
                                           cJSON **answer) {
    rd_kafka_AclBinding_t **made = malloc((size_t)cJSON_GetArraySize(texts) * sizeof(*made) + 1);
    const cJSON *each;
    *count = 0;
    cJSON_ArrayForEach (each, texts) {
        made[*count] = parsed(each->valuestring, is_filter, answer);
        if (made[*count] == NULL)
            break;
        (*count)++;
    }
    return made;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* What the client returns has no rules or filters of the request, but their order. */
static cJSON *outcomes_in_order(const cJSON *texts, cJSON *outcomes) {
    cJSON *result = cJSON_CreateObject();
    const cJSON *each = texts->child;
    while (each != NULL && outcomes->child != NULL) {
        json_set(result, each->valuestring, cJSON_DetachItemFromArray(outcomes, 0));
        each = each->next;
    }
    cJSON_Delete(outcomes);
    return result;
}

/* Replace the outcomes of an answer that has any. */
static cJSON *named(cJSON *answer, const cJSON *texts) {
    cJSON *outcomes = cJSON_DetachItemFromObject(answer, "result");
    if (outcomes != NULL)
        json_set(answer, "result", outcomes_in_order(texts, outcomes));
    return answer;
}

static cJSON *rules_created(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_acl_result_t **found =
        rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event), &count);
    cJSON *outcomes = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(outcomes,
                             outcome_of_error(client, rd_kafka_acl_result_error(found[at])));
    return returned(outcomes, NULL);
}

static cJSON *rules_deleted(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_DeleteAcls_result_response_t **found =
        rd_kafka_DeleteAcls_result_responses(rd_kafka_event_DeleteAcls_result(event), &count);
    cJSON *outcomes = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(
            outcomes,
            outcome_of_error(client, rd_kafka_DeleteAcls_result_response_error(found[at])));
    return returned(outcomes, NULL);
}

/* Create rules, or delete those that filters match: rules and filters are one type of librdkafka. */
static cJSON *change_rules(struct adapter *adapter, const cJSON *call, bool deletes) {
    const cJSON *texts = json_member(call, deletes ? "filters" : "acls");
    struct admin_call made;
    size_t count;
    if (!json_is_list_of(texts, cJSON_IsString))
        return adapter_error(deletes ? "filters is not a list of filters"
                                     : "acls is not a list of access rules");
    if (!admin_begin(&made, adapter,
                     deletes ? RD_KAFKA_ADMIN_OP_DELETEACLS : RD_KAFKA_ADMIN_OP_CREATEACLS))
        return admin_refused(&made);
    rd_kafka_AclBinding_t **wanted = parsed_list(texts, deletes, &count, &made.answer);
    if (made.answer == NULL)
        (deletes ? rd_kafka_DeleteAcls : rd_kafka_CreateAcls)(made.client, wanted, count,
                                                              made.options, made.queue);
    rd_kafka_AclBinding_destroy_array(wanted, count);
    free(wanted);
    if (made.answer != NULL)
        return admin_refused(&made);
    return named(admin_answer(&made, deletes ? rules_deleted : rules_created), texts);
}

static cJSON *create_acls(struct adapter *adapter, const cJSON *call) {
    return change_rules(adapter, call, false);
}

static cJSON *delete_acls(struct adapter *adapter, const cJSON *call) {
    return change_rules(adapter, call, true);
}

static cJSON *rules_described(rd_kafka_t *client, rd_kafka_event_t *event) {
    (void)client;
    size_t count;
    const rd_kafka_AclBinding_t **found =
        rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &count);
    char **texts = malloc(count * sizeof(*texts) + 1);
    for (size_t at = 0; at < count; at++)
        texts[at] = rule_text(found[at]);
    qsort(texts, count, sizeof(*texts), json_compare_texts);
    cJSON *result = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++) {
        cJSON_AddItemToArray(result, json_text(texts[at]));
        free(texts[at]);
    }
    free(texts);
    return returned(result, NULL);
}

static cJSON *describe_acls(struct adapter *adapter, const cJSON *call) {
    const char *text = json_get_text(call, "filter");
    struct admin_call made;
    if (text == NULL)
        return adapter_error("filter is not a filter of access rules");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DESCRIBEACLS))
        return admin_refused(&made);
    rd_kafka_AclBindingFilter_t *wanted = parsed(text, true, &made.answer);
    if (wanted == NULL)
        return admin_refused(&made);
    rd_kafka_DescribeAcls(made.client, wanted, made.options, made.queue);
    rd_kafka_AclBinding_destroy(wanted);
    return admin_answer(&made, rules_described);
}

const struct named_operation access_operations[] = {
    {"create_acls", create_acls},
    {"delete_acls", delete_acls},
    {"describe_acls", describe_acls},
    {NULL, NULL},
};
