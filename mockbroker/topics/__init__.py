"""Creating and deleting topics, adding partitions and choosing replicas, as each era did it."""
