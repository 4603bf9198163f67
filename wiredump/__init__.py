"""Decode captures and journals of Kafka's wire protocol, for display and for tables."""
