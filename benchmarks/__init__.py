"""Measurements beside other codecs and mock brokers. Nothing here is a test: no figure can fail."""
