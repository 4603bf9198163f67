"""The conformance suite for Kafka clients. Empty in this release: the name is reserved."""
