/* Shared by spans.c, which sorts runs of rows, and span_columns.c, which copies columns. Numbers
   of runs, rows and places come from outside, and each is checked before it is used. */
#ifndef WIREDUMP_SPANS_H
#define WIREDUMP_SPANS_H

#include "wire.h"

enum { DOES_NOT_FIT = 1 };

/* The rows of a run that are used: their places in their part. */
typedef struct {
    int32_t part;
    int64_t run, first, count;
} span;

typedef struct {
    PyObject_HEAD
    span *spans;
    int64_t *begins, *ends; /* of each part, the first row that is used, and the end */
    Py_ssize_t count, parts;
    int64_t rows;
} spans_object;

extern PyMethodDef span_columns[]; /* the methods of Spans */

/* ---- int64 in memory that the caller owns ------------------------------------- */

typedef struct {
    Py_buffer buffer;
    int held;
} numbers;

static inline void numbers_free(numbers *self) {
    if (self->held) PyBuffer_Release(&self->buffer);
    self->held = 0;
}

static inline int numbers_of(PyObject *given, numbers *out) {
    if (PyObject_GetBuffer(given, &out->buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT)) return -1;
    out->held = 1;
    const char *format = out->buffer.format;
    if (out->buffer.ndim == 1 && out->buffer.itemsize == 8 && format != NULL &&
        (!strcmp(format, "q") || !strcmp(format, "l")))
        return 0;
    PyErr_SetString(PyExc_TypeError, "no whole numbers of eight bytes");
    return -1;
}

static inline Py_ssize_t how_many(const numbers *self) { return self->buffer.shape[0]; }

static inline int64_t number_at(const numbers *self, int64_t index) {
    int64_t value;
    memcpy(&value, (const char *)self->buffer.buf + index * self->buffer.strides[0], 8);
    return value;
}

#endif
