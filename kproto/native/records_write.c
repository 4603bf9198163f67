/* Writes Record objects as the bytes of a batch's records. No Python code runs here (see encode.c):
   values must have exactly the types that reading makes, or be lists instead of tuples. */
#include "records.h"

enum {
    MOST_SPAN = 1 << 29, /* larger values are left to Python, so that no sum overflows */
    FIRST_ROOM = 1 << 20 /* the most bytes reserved because of one record's size */
};

typedef struct {
    uint8_t *at, *end;
    PyObject *bytes; /* NULL if nothing could be reserved */
} writer;

static inline uint64_t zigzag(int64_t value) {
    return (uint64_t)value << 1 ^ (UINT64_C(0) - (uint64_t)(value < 0));
}

static inline Py_ssize_t size_of(int64_t value) {
    Py_ssize_t size = 1;
    for (uint64_t left = zigzag(value); left > 0x7F; left >>= 7) size++;
    return size;
}

static inline void put_zigzag(writer *out, int64_t value) {
    uint64_t left = zigzag(value);
    for (; left > 0x7F; left >>= 7) *out->at++ = (uint8_t)(left | 0x80);
    *out->at++ = (uint8_t)left;
}

/* Room for `need` more bytes, and for `more` records like it as long as that is not much. */
static int ensure(writer *out, Py_ssize_t need, Py_ssize_t more) {
    if (LIKELY(out->end - out->at >= need)) return 0;
    uint8_t *start = (uint8_t *)PyBytes_AS_STRING(out->bytes);
    Py_ssize_t used = out->at - start, ahead = used;
    if (need > PY_SSIZE_T_MAX / 4 || used > PY_SSIZE_T_MAX / 4) return -1;
    Py_ssize_t each = need + need / 16 + 4;
    if (more > FIRST_ROOM / each) more = FIRST_ROOM / each;
    if (ahead < more * each) ahead = more * each;
    if (_PyBytes_Resize(&out->bytes, used + need + ahead)) return -1;
    start = (uint8_t *)PyBytes_AS_STRING(out->bytes);
    out->at = start + used;
    out->end = start + used + need + ahead;
    return 0;
}

/* ---- what a record holds, looked at before anything of it is written --------------------------- */

static inline Py_ssize_t room_of(const span *given) {
    return size_of(given->size) + (given->size > 0 ? given->size : 0);
}

static inline void put_span(writer *out, const span *given) {
    put_zigzag(out, given->size);
    if (given->size <= 0) return;
    memcpy(out->at, given->at, (size_t)given->size);
    out->at += given->size;
}

/* The size of the headers, their count included; -1 where Python must handle them. */
static Py_ssize_t room_of_headers(PyObject *const *headers, Py_ssize_t count) {
    Py_ssize_t size = size_of(count);
    span key, value;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (UNLIKELY(header_of(headers[i], &key, &value))) return -1;
        if (UNLIKELY(key.size > MOST_SPAN || value.size > MOST_SPAN)) return -1;
        size += room_of(&key) + room_of(&value);
        if (UNLIKELY(size > MOST_SPAN)) return -1;
    }
    return size;
}

/* ---- a batch ----------------------------------------------------------------------------------- */

typedef struct {
    int64_t base_offset, base_timestamp, last_offset, max_timestamp;
} progress;

/* The record's offset and timestamp, in order and within bounds. */
static inline int advance(const record_codec *self, PyObject *record, progress *batch,
                          int64_t *timestamp) {
    int64_t offset;
    PyObject *first = SLOT(record, self->offset), *second = SLOT(record, self->timestamp);
    if (UNLIKELY(first == NULL || second == NULL)) return -1;
    if (UNLIKELY(int64_of(first, &offset) || int64_of(second, timestamp))) return -1;
    if (offset == -1) offset = batch->last_offset + 1;
    if (UNLIKELY(offset <= batch->last_offset || offset > batch->base_offset + INT32_MAX))
        return -1;
    if (UNLIKELY(*timestamp < -1)) return -1;
    batch->last_offset = offset;
    if (*timestamp > batch->max_timestamp) batch->max_timestamp = *timestamp;
    return 0;
}

static int write_record(const record_codec *self, writer *out, PyObject *record, progress *batch,
                        Py_ssize_t more) {
    span key, value;
    int64_t timestamp;
    Py_ssize_t header_count;
    if (UNLIKELY(Py_TYPE(record) != self->type)) return -1;
    if (UNLIKELY(advance(self, record, batch, &timestamp))) return -1;
    if (UNLIKELY(span_of(SLOT(record, self->key), &key))) return -1;
    if (UNLIKELY(span_of(SLOT(record, self->value), &value))) return -1;
    if (UNLIKELY(key.size > MOST_SPAN || value.size > MOST_SPAN)) return -1;
    PyObject **headers = items_of(SLOT(record, self->headers), &header_count);
    if (UNLIKELY(headers == NULL)) return -1;
    Py_ssize_t header_room = room_of_headers(headers, header_count);
    if (UNLIKELY(header_room < 0)) return -1;
    int64_t timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)batch->base_timestamp);
    int64_t offset_delta = batch->last_offset - batch->base_offset;
    Py_ssize_t size = 1 + size_of(timestamp_delta) + size_of(offset_delta) + room_of(&key) +
                      room_of(&value) + header_room;
    if (UNLIKELY(ensure(out, 5 + size, more))) return -1;
    put_zigzag(out, size);
    *out->at++ = 0;
    put_zigzag(out, timestamp_delta);
    put_zigzag(out, offset_delta);
    put_span(out, &key);
    put_span(out, &value);
    put_zigzag(out, header_count);
    for (Py_ssize_t i = 0; i < header_count; i++) {
        if (UNLIKELY(header_of(headers[i], &key, &value))) return -1;
        put_span(out, &key);
        put_span(out, &value);
    }
    return 0;
}

/* The bytes of all records, or NULL. */
static PyObject *write_all(const record_codec *self, PyObject *const *records, Py_ssize_t count,
                           progress *batch) {
    writer out = {.bytes = PyBytes_FromStringAndSize(NULL, 0)};
    if (out.bytes == NULL) return NULL;
    out.at = out.end = (uint8_t *)PyBytes_AS_STRING(out.bytes);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (UNLIKELY(write_record(self, &out, records[i], batch, count - i - 1))) {
            Py_XDECREF(out.bytes);
            return NULL;
        }
    }
    Py_ssize_t used = out.at - (uint8_t *)PyBytes_AS_STRING(out.bytes);
    _PyBytes_Resize(&out.bytes, used); /* NULL on failure */
    return out.bytes;
}

PyObject *write_records(record_codec *self, PyObject *const *args, Py_ssize_t count) {
    progress batch = {.max_timestamp = -1};
    Py_ssize_t record_count;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "write takes 3 arguments");
        return NULL;
    }
    PyObject **records = items_of(args[0], &record_count);
    if (records == NULL || int64_of(args[1], &batch.base_offset) ||
        int64_of(args[2], &batch.base_timestamp))
        Py_RETURN_NONE;
    /* Otherwise no sum of it and a delta overflows. */
    if (batch.base_offset < 0 || batch.base_offset > INT64_MAX - INT32_MAX) Py_RETURN_NONE;
    batch.last_offset = batch.base_offset - 1;
    PyObject *body = write_all(self, records, record_count, &batch);
    if (LIKELY(body != NULL))
        return Py_BuildValue("(NLL)", body, (long long)batch.last_offset,
                             (long long)batch.max_timestamp);
    if (forget_error()) return NULL;
    Py_RETURN_NONE;
}
