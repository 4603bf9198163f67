/* BLAKE2b (RFC 7693) with a digest of 16 bytes and no key, of many values at a time. */
#ifndef KPROTO_BLAKE2B_H
#define KPROTO_BLAKE2B_H

#include "records.h"

enum { DIGEST = 16 };

/* Writes the digests of all values, one after the other. No value may be null. */
void blake2b_each(const span *values, Py_ssize_t count, uint8_t *out);

#endif
