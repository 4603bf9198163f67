/* Columns that collect records: shared by the code that fills them (records_columns.c) and returns
   them (records_finish.c). */
#ifndef KPROTO_RECORDS_SINK_H
#define KPROTO_RECORDS_SINK_H

#include "records.h"

enum {
    OFFSET = 1,
    TIMESTAMP = 2,
    KEYS = 4,
    VALUES = 8,
    HEADER_COUNT = 16,
    HEADERS = 32,
    VALUE_SIZE = 64,
    VALUE_HASH = 128,
    ALL = 255
};
enum { KEY, VALUE, HEADER_KEY, HEADER_VALUE, HASH, BLOBS };
enum { FIRST_ROOM = 256, FULL = -2 };

/* Bytes that may be null. All are bytes objects whose size is the capacity. */
typedef struct {
    PyObject *offsets;  /* int32, one more than there are values */
    PyObject *validity; /* one bit per value, the lowest of a byte first; 0: null */
    PyObject *data;
} blobs;

/* The part of the buffers in use. */
typedef struct {
    Py_ssize_t rows;
    struct {
        Py_ssize_t count, nulls, size;
    } of[BLOBS];
} extent;

typedef struct {
    PyObject_HEAD
    record_codec *codec;
    Py_ssize_t limit; /* of the bytes in one buffer, at most INT32_MAX */
    int wanted;
    PyObject *offset, *timestamp, *header_count, *header_offsets, *value_size;
    blobs blobs[BLOBS];
    span *hashed; /* values whose digests are not written yet */
    Py_ssize_t hashed_count, hashed_room;
    extent now, marked;
} record_sink;

#define AT(type, bytes, index) ((type *)PyBytes_AS_STRING(bytes) + (index))

/* Room for `more` bytes after the first `used`. */
static inline int reserve(PyObject **bytes, Py_ssize_t used, Py_ssize_t more) {
    if (LIKELY(*bytes != NULL && PyBytes_GET_SIZE(*bytes) - used >= more)) return 0;
    Py_ssize_t room = used + more;
    if (*bytes == NULL) {
        *bytes = PyBytes_FromStringAndSize(NULL, room < FIRST_ROOM ? FIRST_ROOM : room);
        return *bytes ? 0 : -1;
    }
    return _PyBytes_Resize(bytes, room < used + used / 2 ? used + used / 2 : room);
}

static inline void put_int32(PyObject *bytes, Py_ssize_t index, Py_ssize_t value) {
    int32_t word = (int32_t)value;
    memcpy(AT(char, bytes, index * 4), &word, 4);
}

static inline void put_int64(PyObject *bytes, Py_ssize_t index, int64_t value) {
    memcpy(AT(char, bytes, index * 8), &value, 8);
}

/* In records_columns.c: room for `more` values except for their bytes, or for rows except for their
   bytes and headers: 0, -1 with an exception, or FULL. sink_clear starts over. */
int reserve_values(record_sink *self, int which, Py_ssize_t more);
int reserve_rows(record_sink *self, Py_ssize_t more);
void sink_clear(record_sink *self);

PyObject *sink_finish(record_sink *self, PyObject *nothing); /* records_finish.c */

#endif
