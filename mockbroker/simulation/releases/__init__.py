"""What differs between the releases of Kafka."""
