"""Deprecated: this package is now ``kspec.clientfuzz``. It will be removed in the next release."""
