"""Configs of topics and brokers: their definitions, effective values and changes."""
