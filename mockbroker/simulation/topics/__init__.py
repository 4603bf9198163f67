"""Creating, extending and deleting topics, and choosing replicas, in each era of Kafka."""
