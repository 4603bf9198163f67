"""Measurements beside other codecs and mock brokers. These are not tests: no figure can fail."""
