"""What brokers keep about their clients: quotas, and the metrics that clients push."""
