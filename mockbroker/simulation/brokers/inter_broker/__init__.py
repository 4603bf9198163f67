"""The controller as a client of its brokers: LeaderAndIsr, StopReplica, UpdateMetadata."""
