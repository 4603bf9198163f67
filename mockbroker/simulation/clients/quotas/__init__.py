"""Clients that the brokers slow down."""
