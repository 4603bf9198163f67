"""The ``kproto`` command line: one module for each family of commands, run by
``kproto.__main__``."""
