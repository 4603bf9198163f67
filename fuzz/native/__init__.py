"""libFuzzer over the C extensions, under AddressSanitizer and UndefinedBehaviorSanitizer.

The engines make and take Python objects, so there is no calling them without an interpreter.
Rather than a binary with one in it, which would need a libpython that few machines have,
``driver.c`` is an extension module with libFuzzer in it: any interpreter loads it, and each input
goes to the target's own ``check``. Python's allocator is switched off, so that every object is a
block of its own and reading past one is seen.
"""
