"""Batches as bytes: their headers, how a log stores them, and how their contents change."""
