"""What tshark 4.0's fields are in the schemas. Data only.

A field of tshark's stands for many of ours, of any message: it is right where it is laid over one
of those named here, by the last part of the path, as our schemas name it in Python.
"""

from typing import Final

__all__ = ["NAMES"]

NAMES: Final[dict[str, frozenset[str]]] = {
    name: frozenset(ours.split())
    for name, ours in {
        # the frame and its header
        "len": "size",
        "request_key": "request_api_key",
        "api_key": "request_api_key",
        "request.version": "request_api_version",
        "api_version": "request_api_version",
        "correlation_id": "correlation_id",
        "client_id": "client_id",
        # what many messages have
        "error": "error_code partition_error_code",
        "error_message": "error_message",
        "throttle_time": "throttle_time_ms",
        "timeout": "timeout_ms",
        "topic_name": "name topic topic_name topic_names topics",
        "partition_id": "partition_index partition_indexes partition partition_id partitions index",
        "leader_epoch": "leader_epoch current_leader_epoch committed_leader_epoch",
        "leader_id": "leader_id leader",
        "replica_id": "replica_id replica_nodes replicas broker_ids preferred_read_replica"
        " adding_replicas removing_replicas",
        "isr_id": "isr_nodes isr",
        "offline_id": "offline_replicas",
        "node_id": "node_id controller_id broker_id id",
        "host": "host host_name",
        "port": "port",
        "rack": "rack rack_id",
        "validate_only": "validate_only",
        # fetch, produce, offsets
        "offset": "base_offset committed_offset fetch_offset high_watermark offset"
        " low_watermark end_offset",
        "offset_time": "timestamp log_append_time_ms",
        "log_start_offset": "log_start_offset",
        "last_stable_offset": "last_stable_offset",
        "first_offset": "first_offset",
        "max_wait_time": "max_wait_ms",
        "min_bytes": "min_bytes",
        "max_bytes": "max_bytes partition_max_bytes",
        "isolation_level": "isolation_level",
        "fetch_session_id": "session_id",
        "fetch_session_epoch": "session_epoch",
        "forgotten_topic_name": "topic",
        "forgotten_topic_partition": "partitions",
        "required_acks": "acks",
        "message_size": "records",
        "metadata": "committed_metadata metadata",
        "retention_time": "retention_time_ms",
        # producers and transactions
        "transactional_id": "transactional_id v3_and_below_transactional_id",
        "transaction_result": "committed transaction_result",
        "transaction_timeout": "transaction_timeout_ms",
        "producer_id": "producer_id v3_and_below_producer_id",
        "producer_epoch": "producer_epoch v3_and_below_producer_epoch",
        # groups
        "consumer_group": "group_id groups groups_names",
        "consumer_group_instance": "group_instance_id",
        "coordinator_key": "key",
        "coordinator_type": "key_type",
        "group_state": "group_state",
        "group_leader_id": "leader",
        "member_id": "member_id",
        "protocol_type": "protocol_type",
        "protocol_name": "name protocol_name protocol_data",
        "protocol_metadata": "metadata",
        "member_metadata": "member_metadata metadata",
        "member_assignment": "assignment member_assignment",
        "generation_id": "generation_id generation_id_or_member_epoch",
        "session_timeout": "session_timeout_ms",
        "rebalance_timeout": "rebalance_timeout_ms",
        "group_authorized_ops": "authorized_operations",
        "include_group_authorized_ops": "include_authorized_operations",
        # clusters and topics
        "cluster_id": "cluster_id",
        "is_internal": "is_internal",
        "allow_auto_topic_creation": "allow_auto_topic_creation",
        "cluster_authorized_ops": "cluster_authorized_operations",
        "topic_authorized_ops": "topic_authorized_operations",
        "include_cluster_authorized_ops": "include_cluster_authorized_operations",
        "include_topic_authorized_ops": "include_topic_authorized_operations",
        "num_partitions": "num_partitions",
        "replication_factor": "replication_factor",
        "partition_count": "count",
        "election_type": "election_type",
        "log_dir": "log_dir",
        "segment_size": "partition_size",
        "offset_lag": "offset_lag",
        "future": "is_future_key",
        "coordinator_epoch": "coordinator_epoch",
        # what a controller tells brokers
        "broker_epoch": "broker_epoch",
        "controller_epoch": "controller_epoch",
        "current_leader_epoch": "current_leader_epoch",
        "zk_version": "zk_version partition_epoch",
        "is_new_replica": "is_new",
        "delete_partitions": "delete_partitions",
        "listener_name": "listener",
        "broker_security_protocol_type": "security_protocol",
        # ApiVersions
        "api_versions.api_key": "api_key",
        "api_versions.min_version": "min_version",
        "api_versions.max_version": "max_version",
        "client_software_name": "client_software_name",
        "client_software_version": "client_software_version",
        # configs
        "config_resource_type": "resource_type",
        "config_resource_name": "resource_name",
        "config_key": "name",
        "config_value": "value",
        "config_operation": "config_operation",
        "config_include_synonyms": "include_synonyms",
        "config_readonly": "read_only",
        "config_sensitive": "is_sensitive",
        "config_source": "config_source source",
        # rules
        "acl_resource_type": "resource_type resource_type_filter",
        "acl_resource_name": "resource_name resource_name_filter",
        "acl_resource_pattern_type": "pattern_type pattern_type_filter resource_pattern_type",
        "acl_principal": "principal principal_filter",
        "acl_host": "host host_filter",
        "acl_operation": "operation",
        "acl_permission_type": "permission_type",
        # SASL
        "sasl_mechanism": "mechanism mechanisms",
        "sasl_authentication": "auth_bytes",
        "session_lifetime_ms": "session_lifetime_ms",
    }.items()
}
"""tshark's name without ``kafka.`` -> the names of ours."""
