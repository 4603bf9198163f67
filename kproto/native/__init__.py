"""The optional C engine. ``choice`` decides whether codecs use it."""
