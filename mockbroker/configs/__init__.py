"""Configs of topics and brokers: which there are, what is in force, and changing them."""
