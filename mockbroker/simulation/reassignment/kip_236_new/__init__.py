"""The newer revision of KIP-236."""
