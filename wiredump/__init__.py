"""Captures and journals to messages to tables. So far: ``readers``, captures to TCP streams."""
