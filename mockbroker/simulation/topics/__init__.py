"""Creating, extending and deleting topics, and choosing replicas, as each release of Kafka does."""
