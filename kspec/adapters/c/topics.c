/* Calls for the cluster, topics, their records and configs. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "failures.h"
#include "partitions.h"
#include "settings.h"

/* ---- the cluster --------------------------------------------------------------------------- */

static int node_id(const rd_kafka_Node_t *node) {
    return node == NULL ? -1 : rd_kafka_Node_id(node);
}

static cJSON *node_ids(const rd_kafka_Node_t **nodes, size_t count) {
    cJSON *ids = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(node_id(nodes[at])));
    return ids;
}

static cJSON *node_shown(const rd_kafka_Node_t *node) {
    cJSON *shown = cJSON_CreateObject();
    if (node == NULL)
        return shown;
    json_set(shown, "id", cJSON_CreateNumber(rd_kafka_Node_id(node)));
    json_set(shown, "host", json_text(rd_kafka_Node_host(node)));
    json_set(shown, "port", cJSON_CreateNumber(rd_kafka_Node_port(node)));
    json_set(shown, "rack", json_text(rd_kafka_Node_rack(node)));
    return shown;
}

static int compare_ids(const void *left, const void *right) {
    int a = node_id(*(const rd_kafka_Node_t *const *)left);
    int b = node_id(*(const rd_kafka_Node_t *const *)right);
    return (a > b) - (a < b);
}

static cJSON *cluster_described(rd_kafka_t *client, rd_kafka_event_t *event) {
    (void)client;
    const rd_kafka_DescribeCluster_result_t *found = rd_kafka_event_DescribeCluster_result(event);
    size_t count;
    const rd_kafka_Node_t **nodes = rd_kafka_DescribeCluster_result_nodes(found, &count);
    const rd_kafka_Node_t *controller = rd_kafka_DescribeCluster_result_controller(found);

    cJSON *raw = cJSON_CreateObject();
    cJSON *shown = cJSON_AddArrayToObject(raw, "nodes");
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(shown, node_shown(nodes[at]));
    json_set(raw, "controller", node_shown(controller));
    json_set(raw, "cluster_id", json_text(rd_kafka_DescribeCluster_result_cluster_id(found)));

    const rd_kafka_Node_t **sorted = malloc(count * sizeof(*sorted) + 1);
    memcpy(sorted, nodes, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_ids);
    cJSON *result = cJSON_CreateObject();
    json_set(result, "brokers", node_ids(sorted, count));
    json_set(result, "controller", cJSON_CreateNumber(node_id(controller)));
    free(sorted);
    return returned(result, raw);
}

static cJSON *describe_cluster(struct adapter *adapter, const cJSON *call) {
    (void)call;
    struct admin_call made;
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER))
        return admin_refused(&made);
    rd_kafka_DescribeCluster(made.client, made.options, made.queue);
    return admin_answer(&made, cluster_described);
}

static cJSON *list_topics(struct adapter *adapter, const cJSON *call) {
    (void)call;
    cJSON *answer = NULL;
    rd_kafka_t *client = settings_admin(adapter, &answer);
    if (client == NULL)
        return answer;
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code = rd_kafka_metadata(client, 1, NULL, &metadata, adapter->timeout_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return raised(failure_of_code(client, code, NULL));
    size_t count = (size_t)metadata->topic_cnt;
    const char **names = malloc(count * sizeof(*names) + 1);
    cJSON *raw = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[at];
        cJSON *shown = cJSON_CreateObject();
        json_set(shown, "topic", json_text(topic->topic));
        json_set(shown, "partition_cnt", cJSON_CreateNumber(topic->partition_cnt));
        json_set(shown, "err", cJSON_CreateNumber(topic->err));
        cJSON_AddItemToArray(raw, shown);
        names[at] = topic->topic;
    }
    qsort(names, count, sizeof(*names), json_compare_texts);
    cJSON *result = cJSON_CreateArray();
    for (size_t at = 0; at < count; at++)
        cJSON_AddItemToArray(result, json_text(names[at]));
    free(names);
    rd_kafka_metadata_destroy(metadata);
    return returned(result, raw);
}

/* ---- topics -------------------------------------------------------------------------------- */

static cJSON *topics_described(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count, partition_count, nodes;
    const rd_kafka_TopicDescription_t **topics =
        rd_kafka_DescribeTopics_result_topics(rd_kafka_event_DescribeTopics_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        const char *name = rd_kafka_TopicDescription_name(topics[at]);
        const rd_kafka_error_t *error = rd_kafka_TopicDescription_error(topics[at]);
        if (is_failure(error)) {
            json_set(result, name, failure_of_error(client, error));
            continue;
        }
        const rd_kafka_TopicPartitionInfo_t **partitions =
            rd_kafka_TopicDescription_partitions(topics[at], &partition_count);
        cJSON *rows = cJSON_CreateObject();
        for (size_t row = 0; row < partition_count; row++) {
            const rd_kafka_TopicPartitionInfo_t *info = partitions[row];
            char number[16];
            snprintf(number, sizeof(number), "%d", rd_kafka_TopicPartitionInfo_partition(info));
            cJSON *state = cJSON_AddObjectToObject(rows, number);
            const rd_kafka_Node_t *leader = rd_kafka_TopicPartitionInfo_leader(info);
            json_set(state, "leader", cJSON_CreateNumber(node_id(leader)));
            const rd_kafka_Node_t **replicas = rd_kafka_TopicPartitionInfo_replicas(info, &nodes);
            json_set(state, "replicas", node_ids(replicas, nodes));
            const rd_kafka_Node_t **isr = rd_kafka_TopicPartitionInfo_isr(info, &nodes);
            json_set(state, "isr", node_ids(isr, nodes));
        }
        json_set(result, name, rows);
    }
    return returned(result, NULL);
}

static cJSON *describe_topics(struct adapter *adapter, const cJSON *call) {
    const cJSON *topics = json_member(call, "topics");
    struct admin_call made;
    size_t count;
    if (!json_is_list_of(topics, cJSON_IsString))
        return adapter_error("topics is not a list of names");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS))
        return admin_refused(&made);
    const char **names = json_texts(topics, &count);
    rd_kafka_TopicCollection_t *wanted = rd_kafka_TopicCollection_of_topic_names(names, count);
    rd_kafka_DescribeTopics(made.client, wanted, made.options, made.queue);
    rd_kafka_TopicCollection_destroy(wanted);
    free(names);
    return admin_answer(&made, topics_described);
}

/* By topic: null or its error. */
static cJSON *topic_outcomes(rd_kafka_t *client, const rd_kafka_topic_result_t **topics,
                             size_t count) {
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++)
        json_set(result, rd_kafka_topic_result_name(topics[at]),
                 outcome_of_code(client, rd_kafka_topic_result_error(topics[at]),
                                 rd_kafka_topic_result_error_string(topics[at])));
    return returned(result, NULL);
}

static cJSON *topics_created(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_topic_result_t **topics =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    return topic_outcomes(client, topics, count);
}

static cJSON *create_topics(struct adapter *adapter, const cJSON *call) {
    const cJSON *topics = json_member(call, "topics"), *topic;
    struct admin_call made;
    char text[512];
    size_t count = 0;
    if (!json_is_object_of(topics, cJSON_IsObject))
        return adapter_error("topics has no topics by name");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_CREATETOPICS))
        return admin_refused(&made);
    if (cJSON_IsTrue(json_member(call, "validate_only"))) {
        rd_kafka_resp_err_t code =
            rd_kafka_AdminOptions_set_validate_only(made.options, 1, text, sizeof(text));
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            made.answer = raised(failure_of_code(made.client, code, text));
            return admin_refused(&made);
        }
    }
    rd_kafka_NewTopic_t **wanted = malloc((size_t)cJSON_GetArraySize(topics) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (topic, topics) {
        wanted[count] =
            rd_kafka_NewTopic_new(topic->string, json_get_int(topic, "partitions", 1),
                                  json_get_int(topic, "replication_factor", 1), text, sizeof(text));
        if (wanted[count] == NULL) {
            made.answer = raised(failure_of_code(NULL, RD_KAFKA_RESP_ERR__INVALID_ARG, text));
            break;
        }
        count++;
    }
    if (made.answer == NULL)
        rd_kafka_CreateTopics(made.client, wanted, count, made.options, made.queue);
    rd_kafka_NewTopic_destroy_array(wanted, count);
    free(wanted);
    return made.answer == NULL ? admin_answer(&made, topics_created) : admin_refused(&made);
}

static cJSON *partitions_created(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_topic_result_t **topics = rd_kafka_CreatePartitions_result_topics(
        rd_kafka_event_CreatePartitions_result(event), &count);
    return topic_outcomes(client, topics, count);
}

static cJSON *create_partitions(struct adapter *adapter, const cJSON *call) {
    const cJSON *counts = json_member(call, "counts"), *each;
    struct admin_call made;
    char text[512];
    size_t count = 0;
    if (!json_is_object_of(counts, cJSON_IsNumber))
        return adapter_error("counts has no numbers by topic");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS))
        return admin_refused(&made);
    rd_kafka_NewPartitions_t **wanted =
        malloc((size_t)cJSON_GetArraySize(counts) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (each, counts) {
        wanted[count] =
            rd_kafka_NewPartitions_new(each->string, (size_t)each->valueint, text, sizeof(text));
        if (wanted[count] == NULL) {
            made.answer = raised(failure_of_code(NULL, RD_KAFKA_RESP_ERR__INVALID_ARG, text));
            break;
        }
        count++;
    }
    if (made.answer == NULL)
        rd_kafka_CreatePartitions(made.client, wanted, count, made.options, made.queue);
    rd_kafka_NewPartitions_destroy_array(wanted, count);
    free(wanted);
    return made.answer == NULL ? admin_answer(&made, partitions_created) : admin_refused(&made);
}

static cJSON *topics_deleted(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_topic_result_t **topics =
        rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    return topic_outcomes(client, topics, count);
}

static cJSON *delete_topics(struct adapter *adapter, const cJSON *call) {
    const cJSON *topics = json_member(call, "topics"), *topic;
    struct admin_call made;
    size_t count = 0;
    if (!json_is_list_of(topics, cJSON_IsString))
        return adapter_error("topics is not a list of names");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DELETETOPICS))
        return admin_refused(&made);
    rd_kafka_DeleteTopic_t **wanted =
        malloc((size_t)cJSON_GetArraySize(topics) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (topic, topics)
        wanted[count++] = rd_kafka_DeleteTopic_new(topic->valuestring);
    rd_kafka_DeleteTopics(made.client, wanted, count, made.options, made.queue);
    rd_kafka_DeleteTopic_destroy_array(wanted, count);
    free(wanted);
    return admin_answer(&made, topics_deleted);
}

/* ---- records and leaders ------------------------------------------------------------------- */

static cJSON *records_deleted(rd_kafka_t *client, rd_kafka_event_t *event) {
    const rd_kafka_topic_partition_list_t *found =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    return returned(partitions_outcomes(client, found), partitions_offsets(client, found));
}

static cJSON *delete_records(struct adapter *adapter, const cJSON *call) {
    struct admin_call made;
    rd_kafka_topic_partition_list_t *offsets =
        partitions_with_offsets(json_member(call, "offsets"));
    if (offsets == NULL)
        return adapter_error("offsets has no offsets by partition");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DELETERECORDS)) {
        rd_kafka_topic_partition_list_destroy(offsets);
        return admin_refused(&made);
    }
    rd_kafka_DeleteRecords_t *wanted = rd_kafka_DeleteRecords_new(offsets);
    rd_kafka_DeleteRecords(made.client, &wanted, 1, made.options, made.queue);
    rd_kafka_DeleteRecords_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(offsets);
    return admin_answer(&made, records_deleted);
}

static cJSON *offsets_listed(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_ListOffsetsResultInfo_t **infos =
        rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        const rd_kafka_topic_partition_t *partition =
            rd_kafka_ListOffsetsResultInfo_topic_partition(infos[at]);
        cJSON *item = partition->err == RD_KAFKA_RESP_ERR_NO_ERROR
                          ? json_int64(partition->offset)
                          : failure_of_code(client, partition->err, NULL);
        partitions_set(result, partition, item);
    }
    return returned(result, NULL);
}

/* Return the wanted times as the offsets of a list, or NULL if they are none. */
static rd_kafka_topic_partition_list_t *wanted_times(const cJSON *times) {
    if (!cJSON_IsObject(times))
        return NULL;
    cJSON *specs = cJSON_CreateObject();
    const cJSON *time;
    cJSON_ArrayForEach (time, times) {
        double spec = cJSON_IsNumber(time) ? time->valuedouble : 0;
        if (cJSON_IsString(time) && strcmp(time->valuestring, "latest") == 0)
            spec = RD_KAFKA_OFFSET_SPEC_LATEST;
        else if (cJSON_IsString(time) && strcmp(time->valuestring, "earliest") == 0)
            spec = RD_KAFKA_OFFSET_SPEC_EARLIEST;
        else if (!cJSON_IsNumber(time)) {
            cJSON_Delete(specs);
            return NULL;
        }
        cJSON_AddNumberToObject(specs, time->string, spec);
    }
    rd_kafka_topic_partition_list_t *list = partitions_with_offsets(specs);
    cJSON_Delete(specs);
    return list;
}

static cJSON *list_offsets(struct adapter *adapter, const cJSON *call) {
    struct admin_call made;
    rd_kafka_topic_partition_list_t *wanted = wanted_times(json_member(call, "times"));
    if (wanted == NULL)
        return adapter_error("times has no times by partition");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_LISTOFFSETS)) {
        rd_kafka_topic_partition_list_destroy(wanted);
        return admin_refused(&made);
    }
    rd_kafka_ListOffsets(made.client, wanted, made.options, made.queue);
    rd_kafka_topic_partition_list_destroy(wanted);
    return admin_answer(&made, offsets_listed);
}

static cJSON *leaders_elected(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_topic_partition_result_t **partitions =
        rd_kafka_ElectLeaders_result_partitions(rd_kafka_event_ElectLeaders_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++)
        partitions_set(
            result, rd_kafka_topic_partition_result_partition(partitions[at]),
            outcome_of_error(client, rd_kafka_topic_partition_result_error(partitions[at])));
    return returned(result, NULL);
}

static cJSON *elect_leaders(struct adapter *adapter, const cJSON *call) {
    const cJSON *names = json_member(call, "partitions");
    const char *type = json_get_text(call, "type");
    rd_kafka_topic_partition_list_t *partitions = NULL; /* elects everywhere */
    struct admin_call made;
    if (names != NULL && !cJSON_IsNull(names) && (partitions = partitions_named(names)) == NULL)
        return adapter_error("partitions is not a list of partitions");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_ELECTLEADERS)) {
        if (partitions != NULL)
            rd_kafka_topic_partition_list_destroy(partitions);
        return admin_refused(&made);
    }
    rd_kafka_ElectLeaders_t *wanted = rd_kafka_ElectLeaders_new(
        type != NULL && strcmp(type, "unclean") == 0 ? RD_KAFKA_ELECTION_TYPE_UNCLEAN
                                                     : RD_KAFKA_ELECTION_TYPE_PREFERRED,
        partitions);
    rd_kafka_ElectLeaders(made.client, wanted, made.options, made.queue);
    rd_kafka_ElectLeaders_destroy(wanted);
    if (partitions != NULL)
        rd_kafka_topic_partition_list_destroy(partitions);
    return admin_answer(&made, leaders_elected);
}

/* ---- configs ------------------------------------------------------------------------------- */

/* Return the resource of a text such as "topic:foo", or NULL if it is none. */
static rd_kafka_ConfigResource_t *resource(const char *text) {
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    rd_kafka_ResourceType_t type = RD_KAFKA_RESOURCE_UNKNOWN;
    if (length == strlen("topic") && strncmp(text, "topic", length) == 0)
        type = RD_KAFKA_RESOURCE_TOPIC;
    else if (length == strlen("broker") && strncmp(text, "broker", length) == 0)
        type = RD_KAFKA_RESOURCE_BROKER;
    else
        return NULL;
    return rd_kafka_ConfigResource_new(type, colon + 1);
}

static void set_resource(cJSON *result, const rd_kafka_ConfigResource_t *resource, cJSON *item) {
    const char *type = rd_kafka_ResourceType_name(rd_kafka_ConfigResource_type(resource));
    const char *name = rd_kafka_ConfigResource_name(resource);
    size_t length = strlen(type);
    char *text = malloc(length + strlen(name) + 2);
    for (size_t at = 0; at < length; at++)
        text[at] = (char)tolower((unsigned char)type[at]);
    text[length] = ':';
    strcpy(text + length + 1, name);
    json_set(result, text, item);
    free(text);
}

static cJSON *resource_outcome(rd_kafka_t *client, const rd_kafka_ConfigResource_t *resource) {
    return outcome_of_code(client, rd_kafka_ConfigResource_error(resource),
                           rd_kafka_ConfigResource_error_string(resource));
}

static cJSON *configs_described(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count, entry_count;
    const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++) {
        cJSON *item = resource_outcome(client, resources[at]);
        if (cJSON_IsNull(item)) {
            cJSON_Delete(item);
            item = cJSON_CreateObject();
            const rd_kafka_ConfigEntry_t **entries =
                rd_kafka_ConfigResource_configs(resources[at], &entry_count);
            for (size_t entry = 0; entry < entry_count; entry++)
                json_set(item, rd_kafka_ConfigEntry_name(entries[entry]),
                         json_text(rd_kafka_ConfigEntry_value(entries[entry])));
        }
        set_resource(result, resources[at], item);
    }
    return returned(result, NULL);
}

static cJSON *describe_configs(struct adapter *adapter, const cJSON *call) {
    const cJSON *resources = json_member(call, "resources"), *each;
    struct admin_call made;
    size_t count = 0;
    if (!json_is_list_of(resources, cJSON_IsString))
        return adapter_error("resources is not a list of resources");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS))
        return admin_refused(&made);
    rd_kafka_ConfigResource_t **wanted =
        malloc((size_t)cJSON_GetArraySize(resources) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (each, resources) {
        if ((wanted[count] = resource(each->valuestring)) == NULL) {
            made.answer = adapter_error("%s is not a resource", each->valuestring);
            break;
        }
        count++;
    }
    if (made.answer == NULL)
        rd_kafka_DescribeConfigs(made.client, wanted, count, made.options, made.queue);
    rd_kafka_ConfigResource_destroy_array(wanted, count);
    free(wanted);
    return made.answer == NULL ? admin_answer(&made, configs_described) : admin_refused(&made);
}

static cJSON *configs_altered(rd_kafka_t *client, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_ConfigResource_t **resources = rd_kafka_IncrementalAlterConfigs_result_resources(
        rd_kafka_event_IncrementalAlterConfigs_result(event), &count);
    cJSON *result = cJSON_CreateObject();
    for (size_t at = 0; at < count; at++)
        set_resource(result, resources[at], resource_outcome(client, resources[at]));
    return returned(result, NULL);
}

/* Add the changes of one resource. Returns whether the client took them. */
static bool add_changes(struct admin_call *made, rd_kafka_ConfigResource_t *resource,
                        const cJSON *changes) {
    const cJSON *change;
    cJSON_ArrayForEach (change, changes) {
        rd_kafka_AlterConfigOpType_t how = cJSON_IsNull(change)
                                               ? RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE
                                               : RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET;
        if (!admin_allows(made, rd_kafka_ConfigResource_add_incremental_config(
                                    resource, change->string, how, cJSON_GetStringValue(change))))
            return false;
    }
    return true;
}

static cJSON *alter_configs(struct adapter *adapter, const cJSON *call) {
    const cJSON *configs = json_member(call, "configs"), *each;
    struct admin_call made;
    size_t count = 0;
    if (!json_is_object_of(configs, cJSON_IsObject))
        return adapter_error("configs has no configs by resource");
    if (!admin_begin(&made, adapter, RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS))
        return admin_refused(&made);
    rd_kafka_ConfigResource_t **wanted =
        malloc((size_t)cJSON_GetArraySize(configs) * sizeof(*wanted) + 1);
    cJSON_ArrayForEach (each, configs) {
        if ((wanted[count] = resource(each->string)) == NULL) {
            made.answer = adapter_error("%s is not a resource", each->string);
            break;
        }
        count++;
        if (!add_changes(&made, wanted[count - 1], each))
            break;
    }
    if (made.answer == NULL)
        rd_kafka_IncrementalAlterConfigs(made.client, wanted, count, made.options, made.queue);
    rd_kafka_ConfigResource_destroy_array(wanted, count);
    free(wanted);
    return made.answer == NULL ? admin_answer(&made, configs_altered) : admin_refused(&made);
}

const struct named_operation topic_operations[] = {
    {"alter_configs", alter_configs},       {"create_partitions", create_partitions},
    {"create_topics", create_topics},       {"delete_records", delete_records},
    {"delete_topics", delete_topics},       {"describe_cluster", describe_cluster},
    {"describe_configs", describe_configs}, {"describe_topics", describe_topics},
    {"elect_leaders", elect_leaders},       {"list_offsets", list_offsets},
    {"list_topics", list_topics},           {NULL, NULL},
};
