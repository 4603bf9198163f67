"""libFuzzer for the C extensions, with AddressSanitizer and UndefinedBehaviorSanitizer.

The engines take and return Python objects, so they need an interpreter. A binary with an embedded
one would need a libpython, which few machines have. Instead, ``driver.c`` is an extension module
that contains libFuzzer: any interpreter can load it, and each input goes to the target's own
``check``. Python's allocator is turned off, so that every object is its own block and reads past
its end are detected.
"""
