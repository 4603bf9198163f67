"""The reassignment controller of Kafka's ZooKeeper mode, 0.10 to 3.9."""
