import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ConsumerGroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The Admin's calls for topics, configs, groups and offsets. Each has a future per item. */
@SuppressWarnings("deprecation") // the calls that every release has
final class AdminCalls {
    static final List<String> CAPABILITIES = List.of(
        "alter_configs", "alter_log_dirs", "alter_offsets", "alter_quotas", "create_acls",
        "create_partitions", "delete_acls", "delete_groups", "delete_offsets", "delete_records",
        "delete_topics", "describe_acls", "describe_configs", "describe_groups", "describe_log_dirs",
        "describe_quotas", "list_groups", "list_offsets");

    private static final ObjectMapper JSON = new ObjectMapper();

    private final Admin admin;

    AdminCalls(Admin admin) {
        this.admin = admin;
    }

    AdminAdapter.Returned perform(JsonNode call) throws AdminAdapter.Raised {
        switch (call.get("op").asText()) {
            case "create_partitions":
                return createPartitions(call);
            case "delete_topics":
                List<String> topics = texts(call.get("topics"));
                return outcomes(AdminAdapter.asked(() -> admin.deleteTopics(topics).topicNameValues()));
            case "delete_records":
                return deleteRecords(call);
            case "list_offsets":
                return listOffsets(call);
            case "describe_configs":
                return describeConfigs(call);
            case "alter_configs":
                return alterConfigs(call);
            case "list_groups":
                return listGroups(call);
            case "describe_groups":
                List<String> names = texts(call.get("groups"));
                return items(
                    AdminAdapter.asked(() -> admin.describeConsumerGroups(names).describedGroups()),
                    AdminCalls::state);
            case "delete_groups":
                List<String> groups = texts(call.get("groups"));
                return outcomes(
                    AdminAdapter.asked(() -> admin.deleteConsumerGroups(groups).deletedGroups()));
            case "delete_offsets":
                return deleteOffsets(call);
            case "alter_offsets":
                return alterOffsets(call);
            default:
                return new ClusterCalls(admin).perform(call);
        }
    }

    private static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        if (list != null) {
            list.forEach(each -> found.add(each.asText()));
        }
        return found;
    }

    private static <T> Map<TopicPartition, T> byPartition(JsonNode given, Function<JsonNode, T> value) {
        Map<TopicPartition, T> found = new LinkedHashMap<>();
        given.fields().forEachRemaining(
            each -> found.put(AdminAdapter.partition(each.getKey()), value.apply(each.getValue())));
        return found;
    }

    private static String key(Object key) {
        if (key instanceof ConfigResource resource) {
            return resource.type().name().toLowerCase() + ":" + resource.name();
        }
        return key.toString();
    }

    static <T> AdminAdapter.Returned outcomes(Map<?, KafkaFuture<T>> futures) {
        return items(futures, done -> JSON.nullNode());
    }

    /** An item for each future: its error, or what {@code value} makes of its result. */
    private static <T> AdminAdapter.Returned items(
            Map<?, KafkaFuture<T>> futures, Function<T, JsonNode> value) {
        ObjectNode result = JSON.createObjectNode();
        Map<Object, Object> raw = new LinkedHashMap<>();
        futures.forEach((key, future) -> {
            try {
                T item = AdminAdapter.asked(future::get);
                raw.put(key, item);
                result.set(key(key), value.apply(item));
            } catch (AdminAdapter.Raised raised) {
                raw.put(key, raised.getCause());
                AdminAdapter.failure(result.putObject(key(key)), raised.getCause());
            }
        });
        return new AdminAdapter.Returned(raw, result);
    }

    private AdminAdapter.Returned createPartitions(JsonNode call) throws AdminAdapter.Raised {
        Map<String, NewPartitions> wanted = new LinkedHashMap<>();
        call.get("counts").fields().forEachRemaining(
            each -> wanted.put(each.getKey(), NewPartitions.increaseTo(each.getValue().asInt())));
        return outcomes(AdminAdapter.asked(() -> admin.createPartitions(wanted).values()));
    }

    private AdminAdapter.Returned deleteRecords(JsonNode call) throws AdminAdapter.Raised {
        Map<TopicPartition, RecordsToDelete> wanted = byPartition(
            call.get("offsets"), offset -> RecordsToDelete.beforeOffset(offset.asLong()));
        return outcomes(AdminAdapter.asked(() -> admin.deleteRecords(wanted).lowWatermarks()));
    }

    private AdminAdapter.Returned listOffsets(JsonNode call) throws AdminAdapter.Raised {
        Map<TopicPartition, OffsetSpec> wanted = byPartition(call.get("times"), time -> {
            if (time.isNumber()) {
                return OffsetSpec.forTimestamp(time.asLong());
            }
            return time.asText().equals("earliest") ? OffsetSpec.earliest() : OffsetSpec.latest();
        });
        var listed = AdminAdapter.asked(() -> admin.listOffsets(wanted));
        Map<TopicPartition, KafkaFuture<ListOffsetsResult.ListOffsetsResultInfo>> futures =
            new LinkedHashMap<>();
        for (TopicPartition each : wanted.keySet()) {
            futures.put(each, AdminAdapter.asked(() -> listed.partitionResult(each)));
        }
        return items(futures, info -> JSON.getNodeFactory().numberNode(info.offset()));
    }

    private static ConfigResource resource(String text) {
        int at = text.indexOf(':');
        return new ConfigResource(
            ConfigResource.Type.valueOf(text.substring(0, at).toUpperCase()), text.substring(at + 1));
    }

    private AdminAdapter.Returned describeConfigs(JsonNode call) throws AdminAdapter.Raised {
        List<ConfigResource> wanted =
            texts(call.get("resources")).stream().map(AdminCalls::resource).toList();
        return items(AdminAdapter.asked(() -> admin.describeConfigs(wanted).values()), AdminCalls::values);
    }

    private static JsonNode values(Config config) {
        ObjectNode found = JSON.createObjectNode();
        config.entries().forEach(each -> found.put(each.name(), each.value()));
        return found;
    }

    private AdminAdapter.Returned alterConfigs(JsonNode call) throws AdminAdapter.Raised {
        Map<ConfigResource, Collection<AlterConfigOp>> wanted = new LinkedHashMap<>();
        call.get("configs").fields().forEachRemaining(each -> {
            List<AlterConfigOp> changes = new ArrayList<>();
            each.getValue().fields().forEachRemaining(one -> {
                boolean removed = one.getValue().isNull();
                changes.add(new AlterConfigOp(
                    new ConfigEntry(one.getKey(), removed ? null : one.getValue().asText()),
                    removed ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET));
            });
            wanted.put(resource(each.getKey()), changes);
        });
        return outcomes(AdminAdapter.asked(() -> admin.incrementalAlterConfigs(wanted).values()));
    }

    private AdminAdapter.Returned listGroups(JsonNode call) throws AdminAdapter.Raised {
        ListConsumerGroupsOptions options = new ListConsumerGroupsOptions();
        Set<ConsumerGroupState> states = new LinkedHashSet<>();
        texts(call.get("states")).forEach(each -> states.add(ConsumerGroupState.parse(each)));
        Set<GroupType> types = new LinkedHashSet<>();
        texts(call.get("types")).forEach(each -> types.add(GroupType.parse(each)));
        if (!states.isEmpty()) {
            options.inStates(states);
        }
        if (!types.isEmpty()) {
            options.withTypes(types);
        }
        ListConsumerGroupsResult listed = AdminAdapter.asked(() -> admin.listConsumerGroups(options));
        Collection<ConsumerGroupListing> valid = AdminAdapter.asked(() -> listed.valid().get());
        Collection<Throwable> errors = AdminAdapter.asked(() -> listed.errors().get());
        Set<String> names = new TreeSet<>();
        valid.forEach(each -> names.add(each.groupId()));
        ObjectNode result = JSON.createObjectNode();
        result.set("groups", JSON.valueToTree(names));
        ArrayNode failed = result.putArray("errors");
        errors.forEach(each -> AdminAdapter.failure(failed.addObject(), each));
        return new AdminAdapter.Returned(valid + ", errors " + errors, result);
    }

    private static JsonNode state(ConsumerGroupDescription group) {
        return JSON.createObjectNode()
            .put("state", group.state().toString()).put("members", group.members().size());
    }

    private AdminAdapter.Returned deleteOffsets(JsonNode call) throws AdminAdapter.Raised {
        Set<TopicPartition> wanted = new LinkedHashSet<>();
        texts(call.get("partitions")).forEach(each -> wanted.add(AdminAdapter.partition(each)));
        var deleted = AdminAdapter.asked(
            () -> admin.deleteConsumerGroupOffsets(call.get("group").asText(), wanted));
        Map<TopicPartition, KafkaFuture<Void>> futures = new LinkedHashMap<>();
        for (TopicPartition each : wanted) {
            futures.put(each, AdminAdapter.asked(() -> deleted.partitionResult(each)));
        }
        return outcomes(futures);
    }

    private AdminAdapter.Returned alterOffsets(JsonNode call) throws AdminAdapter.Raised {
        Map<TopicPartition, OffsetAndMetadata> wanted =
            byPartition(call.get("offsets"), offset -> new OffsetAndMetadata(offset.asLong()));
        var altered = AdminAdapter.asked(
            () -> admin.alterConsumerGroupOffsets(call.get("group").asText(), wanted));
        Map<TopicPartition, KafkaFuture<Void>> futures = new LinkedHashMap<>();
        for (TopicPartition each : wanted.keySet()) {
            futures.put(each, AdminAdapter.asked(() -> altered.partitionResult(each)));
        }
        return outcomes(futures);
    }
}
