/* Calls for groups and their offsets. */
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "failures.h"
#include "partitions.h"

/* ---- groups -------------------------------------------------------------------------------- */

static cJSON *groups_listed(rd_kafka_t *client, rd_kafka_event_t *event) {
    const rd_kafka_ListConsumerGroups_result_t *found =
        rd_kafka_event_ListConsumerGroups_result(event);
    size_t count, error_count;
    const rd_kafka_ConsumerGroupListing_t **groups =
        rd_kafka_ListConsumerGroups_result_valid(found, &count);
    const rd_kafka_error_t **errors =
        rd_kafka_ListConsumerGroups_result_errors(found, &error_count);

    const char **ids = malloc(count * sizeof(*ids) + 1);
    for (size_t at = 0; at < count; at++)
        ids[at] = rd_kafka_ConsumerGroupListing_group_id(groups[at]);
    qsort(ids, count, sizeof(*ids), json_compare_texts);
    cJSON *result = cJSON_CreateObject();
    cJSON *names = cJSON_AddArrayToObject(result, "groups");
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(names, json_text(ids[at]));
    free(ids);
    cJSON *failures = cJSON_AddArrayToObject(result, "errors");
    for (size_t at = 0; at < error_count; at++)
        cJSON_AddItemToArray(failures, failure_of_error(client, errors[at]));

    cJSON *raw = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        const rd_kafka_ConsumerGroupListing_t *group = groups[at];
        cJSON *shown = cJSON_CreateObject();
        json_set(shown, "state",
                 json_text(rd_kafka_consumer_group_state_name(
                     rd_kafka_ConsumerGroupListing_state(group))));
        json_set(shown, "type",
                 json_text(
                     rd_kafka_consumer_group_type_name(rd_kafka_ConsumerGroupListing_type(group))));
        json_set(raw, rd_kafka_ConsumerGroupListing_group_id(group), shown);
    }
    json_set(raw, "errors", cJSON_Duplicate(failures, true));
    return returned(result, raw);
}

/* Set what to match. A name that librdkafka does not know is its unknown state, which it refuses. */
static bool match_states(struct admin_call *made, const cJSON *names) {
    size_t count = 0;
    const cJSON *name;
    rd_kafka_consumer_group_state_t *states =
        malloc((size_t)cJSON_GetArraySize(names) * sizeof(*states) + 1);
    cJSON_ArrayForEach (name, names)
        states[count++] = rd_kafka_consumer_group_state_code(name->valuestring);
    bool is_allowed =
        count == 0 || admin_allows(made, rd_kafka_AdminOptions_set_match_consumer_group_states(
                                             made->options, states, count));
    free(states);
    return is_allowed;
}

static bool match_types(struct admin_call *made, const cJSON *names) {
    size_t count = 0;
    const cJSON *name;
    rd_kafka_consumer_group_type_t *types =
        malloc((size_t)cJSON_GetArraySize(names) * sizeof(*types) + 1);
    cJSON_ArrayForEach (name, names)
        types[count++] = rd_kafka_consumer_group_type_code(name->valuestring);
    bool is_allowed =
        count == 0 || admin_allows(made, rd_kafka_AdminOptions_set_match_consumer_group_types(
                                             made->options, types, count));
    free(types);
    return is_allowed;
}

static cJSON *list_groups(struct adapter *adapter, const cJSON *call) {
    const cJSON *states = json_member(call, "states"), *types = json_member(call, "types");
    struct admin_call made;
    if ((states != NULL && !json_is_list_of(states, cJSON_IsString)) ||
        (types != NULL && !json_is_list_of(types, cJSON_IsString)))
        return adapter_error("states or types is not a list of names");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS) ||
        !match_states(&made, states) || !match_types(&made, types))
        return admin_refused(&made);
    rd_kafka_ListConsumerGroups(made.client, made.options, made.queue);
    return admin_answer(&made, groups_listed);
}

static cJSON *groups_described(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_ConsumerGroupDescription_t **groups =
        rd_kafka_DescribeConsumerGroups_result_groups(
            rd_kafka_event_DescribeConsumerGroups_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        const rd_kafka_ConsumerGroupDescription_t *group = groups[at];
        const rd_kafka_error_t *error = rd_kafka_ConsumerGroupDescription_error(group);
        cJSON *item;
        if (is_failure(error)) {
            item = failure_of_error(client, error);
        } else {
            item = cJSON_CreateObject();
            json_set(item, "state",
                     json_text(rd_kafka_consumer_group_state_name(
                         rd_kafka_ConsumerGroupDescription_state(group))));
            size_t members = rd_kafka_ConsumerGroupDescription_member_count(group);
            json_set(item, "members", cJSON_CreateNumber((double)members));
        }
        json_set(result, rd_kafka_ConsumerGroupDescription_group_id(group), item);
    }
    return returned(result, NULL);
}

static cJSON *describe_groups(struct adapter *adapter, const cJSON *call) {
    const cJSON *groups = json_member(call, "groups");
    struct admin_call made;
    size_t count;
    if (!json_is_list_of(groups, cJSON_IsString))
        return adapter_error("groups is not a list of groups");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS))
        return admin_refused(&made);
    const char **ids = json_texts(groups, &count);
    rd_kafka_DescribeConsumerGroups(made.client, ids, count, made.options, made.queue);
    free(ids);
    return admin_answer(&made, groups_described);
}

static cJSON *groups_deleted(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_group_result_t **groups =
        rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++)
        json_set(result, rd_kafka_group_result_name(groups[at]),
                 outcome_of_error(client, rd_kafka_group_result_error(groups[at])));
    return returned(result, NULL);
}

static cJSON *delete_groups(struct adapter *adapter, const cJSON *call) {
    const cJSON *groups = json_member(call, "groups"), *group;
    struct admin_call made;
    size_t count = 0;
    if (!json_is_list_of(groups, cJSON_IsString))
        return adapter_error("groups is not a list of groups");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DELETEGROUPS))
        return admin_refused(&made);
    rd_kafka_DeleteGroup_t **wanted =
        malloc((size_t)cJSON_GetArraySize(groups) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (group, groups)
        wanted[count++] = rd_kafka_DeleteGroup_new(group->valuestring);
    rd_kafka_DeleteGroups(made.client, wanted, count, made.options, made.queue);
    rd_kafka_DeleteGroup_destroy_array(wanted, count);
    free(wanted);
    return admin_answer(&made, groups_deleted);
}

/* ---- offsets ------------------------------------------------------------------------------- */

/* The outcomes of the only group, whose error is the call's. */
static cJSON *group_offsets(rd_kafka_t *client, const rd_kafka_group_result_t **groups,
                            size_t count) {
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        const rd_kafka_error_t *error = rd_kafka_group_result_error(groups[at]);
        const rd_kafka_topic_partition_list_t *partitions =
            rd_kafka_group_result_partitions(groups[at]);
        if (is_failure(error)) {
            cJSON_Delete(result);
            return raised(failure_of_error(client, error));
        }
        if (partitions != NULL) {
            cJSON_Delete(result);
            result = partitions_outcomes(client, partitions);
        }
    }
    return returned(result, NULL);
}

static cJSON *offsets_altered(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_group_result_t **groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(
        rd_kafka_event_AlterConsumerGroupOffsets_result(event), &count);
    return group_offsets(client, groups, count);
}

static cJSON *alter_offsets(struct adapter *adapter, const cJSON *call) {
    const char *group = json_get_text(call, "group");
    struct admin_call made;
    rd_kafka_topic_partition_list_t *offsets =
        partitions_with_offsets(json_member(call, "offsets"));
    if (group == NULL || offsets == NULL) {
        if (offsets != NULL)
            rd_kafka_topic_partition_list_destroy(offsets);
        return adapter_error("the call has no group, or no offsets by partition");
    }
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS)) {
        rd_kafka_topic_partition_list_destroy(offsets);
        return admin_refused(&made);
    }
    rd_kafka_AlterConsumerGroupOffsets_t *wanted =
        rd_kafka_AlterConsumerGroupOffsets_new(group, offsets);
    rd_kafka_AlterConsumerGroupOffsets(made.client, &wanted, 1, made.options, made.queue);
    rd_kafka_AlterConsumerGroupOffsets_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(offsets);
    return admin_answer(&made, offsets_altered);
}

static cJSON *offsets_deleted(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_group_result_t **groups = rd_kafka_DeleteConsumerGroupOffsets_result_groups(
        rd_kafka_event_DeleteConsumerGroupOffsets_result(event), &count);
    return group_offsets(client, groups, count);
}

static cJSON *delete_offsets(struct adapter *adapter, const cJSON *call) {
    const char *group = json_get_text(call, "group");
    struct admin_call made;
    rd_kafka_topic_partition_list_t *partitions = partitions_named(json_member(call, "partitions"));
    if (group == NULL || partitions == NULL) {
        if (partitions != NULL)
            rd_kafka_topic_partition_list_destroy(partitions);
        return adapter_error("the call has no group, or no list of partitions");
    }
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS)) {
        rd_kafka_topic_partition_list_destroy(partitions);
        return admin_refused(&made);
    }
    rd_kafka_DeleteConsumerGroupOffsets_t *wanted =
        rd_kafka_DeleteConsumerGroupOffsets_new(group, partitions);
    rd_kafka_DeleteConsumerGroupOffsets(made.client, &wanted, 1, made.options, made.queue);
    rd_kafka_DeleteConsumerGroupOffsets_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(partitions);
    return admin_answer(&made, offsets_deleted);
}

const struct named_operation group_operations[] = {
    {"alter_offsets", alter_offsets},   {"delete_groups", delete_groups},
    {"delete_offsets", delete_offsets}, {"describe_groups", describe_groups},
    {"list_groups", list_groups},       {NULL, NULL},
};
