/* The buffer of an encoded message, and functions that write numbers, lengths and bytes to it.
   `at`, the position of the next write, is passed between functions instead of being stored in the
   writer, so that it stays in a register; the compiler could not prove that a store of bytes leaves
   it unchanged in memory. A function that returns NULL has given up. */
#ifndef KPROTO_WRITER_H
#define KPROTO_WRITER_H

#include "engine.h"

typedef struct {
    uint8_t *base, *end;
    PyObject *bytes; /* NULL while `base` is the caller's array on the stack */
} writer;

enum { ON_STACK = 1024 };

/* The room that was not used is neither copied, as realloc would, nor doubled: a hint of 1 MiB with
   20 bytes written, followed by records of 1 MiB, needs one block of that size. */
SELDOM static uint8_t *grow(writer *out, uint8_t *at, Py_ssize_t need) {
    Py_ssize_t used = at - out->base;
    if (need > PY_SSIZE_T_MAX / 2 - used * 2) return NULL;
    Py_ssize_t room = used * 2 + need + ON_STACK;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, room);
    if (bytes != NULL) memcpy(PyBytes_AS_STRING(bytes), out->base, (size_t)used);
    Py_XDECREF(out->bytes);
    out->bytes = bytes;
    if (bytes == NULL) return NULL;
    out->base = (uint8_t *)PyBytes_AS_STRING(bytes);
    out->end = out->base + room;
    return out->base + used;
}

static inline uint8_t *ensure(writer *out, uint8_t *at, Py_ssize_t need) {
    return LIKELY(out->end - at >= need) ? at : grow(out, at, need);
}

/* ---- the caller of these has ensured the room -------------------------------------------------- */

static inline uint8_t *put8(uint8_t *at, uint8_t value) {
    *at = value;
    return at + 1;
}

static inline uint8_t *put16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static inline uint8_t *put32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
    return at + 4;
}

static inline uint8_t *put64(uint8_t *at, uint64_t value) {
    return put32(put32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static inline uint8_t *put_varint(uint8_t *at, uint32_t value) { /* up to 5 bytes */
    for (; UNLIKELY(value > 0x7F); value >>= 7) *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline uint8_t *put_length(uint8_t *at, const field_plan *field, int is_string,
                                  Py_ssize_t size) {
    if (field->flags & FIELD_COMPACT) return put_varint(at, (uint32_t)size + 1);
    return is_string ? put16(at, (uint16_t)size) : put32(at, (uint32_t)size);
}

static inline uint8_t *put_bytes(uint8_t *at, const char *raw, Py_ssize_t size) {
    copy_bytes(at, raw, size);
    return at + size;
}

/* ---- numbers of Python ------------------------------------------------------------------------- */

/* Also of a subclass, such as an IntEnum: like struct.pack, it reads the digits and runs no Python
   code. */
static inline int number_of(PyObject *value, int64_t *out) {
    if (UNLIKELY(!PyLong_Check(value))) return -1;
#if PY_VERSION_HEX >= 0x030C0000
    if (LIKELY(PyUnstable_Long_IsCompact((PyLongObject *)value))) {
        *out = PyUnstable_Long_CompactValue((PyLongObject *)value);
        return 0;
    }
#else
    Py_ssize_t digits = Py_SIZE(value);
    if (LIKELY(digits >= -1 && digits <= 1)) {
        *out = digits ? (int64_t)digits * ((PyLongObject *)value)->ob_digit[0] : 0;
        return 0;
    }
#endif
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : 0;
}

static inline uint8_t *put_int32(uint8_t *at, PyObject *value) {
    int64_t number;
    if (UNLIKELY(number_of(value, &number) || number != (int32_t)number)) return NULL;
    return put32(at, (uint32_t)number);
}

#endif
