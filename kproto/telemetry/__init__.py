"""Metrics that clients push with PushTelemetry (KIP-714), as OpenTelemetry writes them."""
