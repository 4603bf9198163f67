import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** The Admin's calls for access rules, log directories and client quotas. */
final class ClusterCalls {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Admin admin;

    ClusterCalls(Admin admin) {
        this.admin = admin;
    }

    AdminAdapter.Returned perform(JsonNode call) throws AdminAdapter.Raised {
        switch (call.get("op").asText()) {
            case "create_acls":
                return createAcls(call);
            case "describe_acls":
                return describeAcls(call);
            case "delete_acls":
                return deleteAcls(call);
            case "describe_log_dirs":
                return describeLogDirs(call);
            case "alter_log_dirs":
                return alterLogDirs(call);
            case "alter_quotas":
                return alterQuotas(call);
            default:
                return describeQuotas(call);
        }
    }

    // ---- access rules: "allow User:alice read topic:foo" -------------------------------------------

    private static AclBinding rule(String text) {
        String[] words = text.split(" ");
        String[] resource = words[3].split(":", 2);
        return new AclBinding(
            new ResourcePattern(
                ResourceType.fromString(resource[0]), resource[1], PatternType.LITERAL),
            new AccessControlEntry(
                words[1], "*", AclOperation.fromString(words[2]), AclPermissionType.fromString(words[0])));
    }

    private static AclBindingFilter filter(String text) {
        String[] words = text.split(" ");
        String[] resource = words[3].split(":", 2);
        return new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromString(resource[0]), resource.length > 1 ? resource[1] : null,
                PatternType.LITERAL),
            new AccessControlEntryFilter(
                words[1].equals("any") ? null : words[1], null, AclOperation.fromString(words[2]),
                AclPermissionType.fromString(words[0])));
    }

    private static String text(AclBinding rule) {
        AccessControlEntry entry = rule.entry();
        ResourcePattern pattern = rule.pattern();
        return String.join(" ",
            entry.permissionType().name().toLowerCase(), entry.principal(),
            entry.operation().name().toLowerCase(),
            pattern.resourceType().name().toLowerCase() + ":" + pattern.name());
    }

    private AdminAdapter.Returned createAcls(JsonNode call) throws AdminAdapter.Raised {
        List<AclBinding> wanted = new ArrayList<>();
        call.get("acls").forEach(each -> wanted.add(rule(each.asText())));
        Map<String, KafkaFuture<Void>> futures = new LinkedHashMap<>();
        AdminAdapter.asked(() -> admin.createAcls(wanted).values())
            .forEach((each, future) -> futures.put(text(each), future));
        return AdminCalls.outcomes(futures);
    }

    private AdminAdapter.Returned describeAcls(JsonNode call) throws AdminAdapter.Raised {
        AclBindingFilter wanted = filter(call.get("filter").asText());
        Collection<AclBinding> found = AdminAdapter.asked(() -> admin.describeAcls(wanted).values().get());
        TreeSet<String> texts = new TreeSet<>();
        found.forEach(each -> texts.add(text(each)));
        return new AdminAdapter.Returned(found, JSON.valueToTree(texts));
    }

    private AdminAdapter.Returned deleteAcls(JsonNode call) throws AdminAdapter.Raised {
        Map<AclBindingFilter, String> names = new LinkedHashMap<>();
        call.get("filters").forEach(each -> names.put(filter(each.asText()), each.asText()));
        var deleted = AdminAdapter.asked(() -> admin.deleteAcls(names.keySet()).values());
        Map<String, KafkaFuture<?>> futures = new LinkedHashMap<>();
        deleted.forEach((each, future) -> futures.put(names.get(each), future));
        return outcomesOfAny(futures);
    }

    @SuppressWarnings("unchecked")
    private static AdminAdapter.Returned outcomesOfAny(Map<String, KafkaFuture<?>> futures) {
        return AdminCalls.outcomes((Map<String, KafkaFuture<Object>>) (Map<?, ?>) futures);
    }

    // ---- log directories ---------------------------------------------------------------------------

    private AdminAdapter.Returned describeLogDirs(JsonNode call) throws AdminAdapter.Raised {
        List<Integer> brokers = new ArrayList<>();
        call.get("brokers").forEach(each -> brokers.add(each.asInt()));
        var described = AdminAdapter.asked(() -> admin.describeLogDirs(brokers).descriptions());
        ObjectNode result = JSON.createObjectNode();
        Map<Object, Object> raw = new TreeMap<>();
        described.forEach((broker, future) -> {
            try {
                Map<String, LogDirDescription> directories = AdminAdapter.asked(future::get);
                raw.put(broker, directories);
                directories.forEach((path, directory) -> {
                    String key = broker + ":" + path;
                    if (directory.error() != null) {
                        AdminAdapter.failure(result.putObject(key), directory.error());
                        return;
                    }
                    TreeSet<String> partitions = new TreeSet<>();
                    directory.replicaInfos().keySet().forEach(each -> partitions.add(each.toString()));
                    result.set(key, JSON.valueToTree(partitions));
                });
            } catch (AdminAdapter.Raised raised) {
                raw.put(broker, raised.getCause());
                AdminAdapter.failure(result.putObject(String.valueOf(broker)), raised.getCause());
            }
        });
        return new AdminAdapter.Returned(raw, result);
    }

    private AdminAdapter.Returned alterLogDirs(JsonNode call) throws AdminAdapter.Raised {
        Map<TopicPartitionReplica, String> wanted = new LinkedHashMap<>();
        Map<TopicPartitionReplica, String> names = new LinkedHashMap<>();
        call.get("moves").fields().forEachRemaining(each -> {
            int at = each.getKey().indexOf(':');
            TopicPartition partition = AdminAdapter.partition(each.getKey().substring(at + 1));
            TopicPartitionReplica replica = new TopicPartitionReplica(
                partition.topic(), partition.partition(), Integer.parseInt(each.getKey().substring(0, at)));
            wanted.put(replica, each.getValue().asText());
            names.put(replica, each.getKey());
        });
        var altered = AdminAdapter.asked(() -> admin.alterReplicaLogDirs(wanted).values());
        Map<String, KafkaFuture<Void>> futures = new LinkedHashMap<>();
        altered.forEach((replica, future) -> futures.put(names.get(replica), future));
        return AdminCalls.outcomes(futures);
    }

    // ---- quotas ------------------------------------------------------------------------------------

    private static String text(ClientQuotaEntity entity) {
        List<String> parts = new ArrayList<>();
        new TreeMap<>(entity.entries()).forEach(
            (type, name) -> parts.add(type + ":" + (name == null ? "" : name)));
        return String.join(",", parts);
    }

    private AdminAdapter.Returned alterQuotas(JsonNode call) throws AdminAdapter.Raised {
        List<ClientQuotaAlteration> wanted = new ArrayList<>();
        call.get("quotas").fields().forEachRemaining(each -> {
            String[] parts = each.getKey().split(":", 2);
            Map<String, String> entries = new LinkedHashMap<>();
            entries.put(parts[0], parts[1].isEmpty() ? null : parts[1]);
            List<ClientQuotaAlteration.Op> changes = new ArrayList<>();
            each.getValue().fields().forEachRemaining(one -> changes.add(new ClientQuotaAlteration.Op(
                one.getKey(), one.getValue().isNull() ? null : one.getValue().asDouble())));
            wanted.add(new ClientQuotaAlteration(new ClientQuotaEntity(entries), changes));
        });
        var altered = AdminAdapter.asked(() -> admin.alterClientQuotas(wanted).values());
        Map<String, KafkaFuture<Void>> futures = new LinkedHashMap<>();
        altered.forEach((entity, future) -> futures.put(text(entity), future));
        return AdminCalls.outcomes(futures);
    }

    private AdminAdapter.Returned describeQuotas(JsonNode call) throws AdminAdapter.Raised {
        String[] parts = call.get("filter").asText().split(":", 2);
        ClientQuotaFilterComponent component = parts[1].isEmpty()
            ? ClientQuotaFilterComponent.ofDefaultEntity(parts[0])
            : parts[1].equals("*")
                ? ClientQuotaFilterComponent.ofEntityType(parts[0])
                : ClientQuotaFilterComponent.ofEntity(parts[0], parts[1]);
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(List.of(component));
        var found = AdminAdapter.asked(() -> admin.describeClientQuotas(filter).entities().get());
        ObjectNode result = JSON.createObjectNode();
        found.forEach((entity, values) -> {
            ObjectNode quotas = result.putObject(text(entity));
            values.forEach(quotas::put);
        });
        return new AdminAdapter.Returned(found, result);
    }
}
