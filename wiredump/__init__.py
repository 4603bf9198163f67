"""Captures and journals to messages to tables. So far: ``readers``, from captures to TCP streams."""
