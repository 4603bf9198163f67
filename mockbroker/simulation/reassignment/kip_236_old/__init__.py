"""The older revision of KIP-236."""
