// Everyday traffic of Kafka's own Java clients: BOOTSTRAP PREFIX [MECHANISM USER PASSWORD].
// One line of JSON on standard output at the end, as the Python programs have it.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public final class Everyday {
    private static final int RECORDS = 12;
    private static final List<String> FAILED = new ArrayList<>();

    private interface Act { void run() throws Exception; }

    private static void attempt(String what, Act act) {
        try {
            act.run();
        } catch (Throwable error) {
            String text = (what + ": " + error).replaceAll("[\"\\\\\\n]", " ");
            FAILED.add("\"" + what + "\": \"" + text + "\"");
        }
    }

    private static Properties common(String[] args, String... more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", args[0]);
        all.put("client.id", "java");
        all.put("default.api.timeout.ms", "20000");
        all.put("request.timeout.ms", "15000");
        if (args.length > 2) {
            boolean plain = args[2].equals("PLAIN");
            String kind = plain ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
            all.put("security.protocol", "SASL_PLAINTEXT");
            all.put("sasl.mechanism", args[2]);
            all.put("sasl.jaas.config", "org.apache.kafka.common.security." + kind
                + " required username=\"" + args[3] + "\" password=\"" + args[4] + "\";");
        }
        for (int i = 0; i < more.length; i += 2) all.put(more[i], more[i + 1]);
        return all;
    }

    private static final String STRING = "org.apache.kafka.common.serialization.String";

    private static KafkaProducer<String, String> producer(String[] args, String... more) {
        Properties all = common(args, more);
        all.put("key.serializer", STRING + "Serializer");
        all.put("value.serializer", STRING + "Serializer");
        all.put("linger.ms", "20");
        return new KafkaProducer<>(all);
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1] + "-java";
        try (Admin admin = Admin.create(common(args))) {
            if (args.length > 2) {
                attempt("secured", () -> secured(admin));
            } else {
                attempt("create", () ->
                    admin.createTopics(List.of(new NewTopic(topic, 3, (short) 2))).all().get());
                for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd"))
                    attempt(codec, () -> produce(args, topic, codec));
                attempt("transactions", () -> transactions(args, topic));
                attempt("classic", () -> consume(args, topic, "classic"));
                attempt("consumer", () -> consume(args, topic, "consumer"));
                administer(admin, topic);
            }
        }
        System.out.println("{\"client\": \"java\", \"version\": \"\", \"failed\": {"
            + String.join(", ", FAILED) + "}}");
    }

    private static void produce(String[] args, String topic, String codec) {
        try (var producer = producer(args, "compression.type", codec)) {
            for (int i = 0; i < RECORDS; i++)
                producer.send(new ProducerRecord<>(topic, "key-" + i,
                    "value " + i + ": " + "so it goes, ".repeat(12)));
        }
    }

    private static void transactions(String[] args, String topic) {
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer(args, "transactional.id", topic + "-tx")) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "in a transaction"));
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(1)),
                new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(topic + "-tx"));
            producer.commitTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "in vain"));
            producer.flush();
            producer.abortTransaction();
        }
    }

    private static void consume(String[] args, String topic, String protocol) {
        Properties all = common(args, "group.id", topic + "-" + protocol, "auto.offset.reset",
            "earliest", "group.protocol", protocol, "isolation.level", "read_committed",
            "fetch.max.wait.ms", "100",
            "key.deserializer", STRING + "Deserializer", "value.deserializer", STRING + "Deserializer");
        try (var consumer = new KafkaConsumer<String, String>(all)) {
            consumer.subscribe(List.of(topic));
            int found = 0;
            for (int i = 0; i < 40 && found < 5 * RECORDS; i++)
                found += consumer.poll(Duration.ofMillis(250)).count();
            consumer.commitSync();
        }
    }

    private static void administer(Admin admin, String topic) {
        var first = new TopicPartition(topic, 0);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("retention.ms", "3600000"), AlterConfigOp.OpType.SET);
        attempt("cluster", () -> admin.describeCluster().nodes().get());
        attempt("topics", () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
        attempt("configs", () -> admin.describeConfigs(List.of(resource)).all().get());
        attempt("change", () ->
            admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get());
        attempt("offsets", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest())).all().get());
        attempt("log dirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get());
        attempt("producers", () -> admin.describeProducers(List.of(first)).all().get());
        attempt("transactions", () -> admin.listTransactions().all().get());
        attempt("groups", () -> admin.listConsumerGroups().all().get());
        attempt("group", () -> admin.describeConsumerGroups(List.of(topic + "-classic")).all().get());
        attempt("committed", () ->
            admin.listConsumerGroupOffsets(topic + "-classic").partitionsToOffsetAndMetadata().get());
        attempt("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        attempt("features", () -> admin.describeFeatures().featureMetadata().get());
        attempt("move", () -> admin.alterPartitionReassignments(Map.of(first, java.util.Optional.of(
            new NewPartitionReassignment(List.of(1, 2, 3))))).all().get());
        attempt("moves", () -> admin.listPartitionReassignments().reassignments().get());
        attempt("elect", () ->
            admin.electLeaders(ElectionType.PREFERRED, java.util.Set.of(first)).partitions().get());
        attempt("drop group", () ->
            admin.deleteConsumerGroups(List.of(topic + "-classic")).all().get());
    }

    private static void secured(Admin admin) throws Exception {
        admin.listTopics().names().get();
        var rule = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL),
            new AccessControlEntry("User:nobody", "*", AclOperation.READ, AclPermissionType.ALLOW));
        admin.createAcls(List.of(rule)).all().get();
        admin.describeAcls(AclBindingFilter.ANY).values().get();
        admin.deleteAcls(List.of(rule.toFilter())).all().get();
        var scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("somebody", scram, "throw-away"))).all().get();
        admin.describeUserScramCredentials().all().get();
    }
}
