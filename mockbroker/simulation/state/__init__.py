"""The state of a cluster as values, the actions that change it, and their log. No rules."""
