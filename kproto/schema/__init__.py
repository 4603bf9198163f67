"""Message schemas: the model, the loader, the lint, comparison, and the import from Kafka's
jars."""
