"""Message schemas: the model, reading and checking them, comparing two, importing Kafka's."""
