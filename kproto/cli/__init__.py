"""The ``kproto`` command line: one file a family of commands, run from ``kproto.__main__``."""
