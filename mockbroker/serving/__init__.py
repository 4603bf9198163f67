"""Bytes in, bytes out: listeners, a request's way through a broker, answers spoilt on purpose."""
