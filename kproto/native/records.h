/* Shared by the files that read records of magic 2 into objects (records_read.c) or columns
   (records_columns.c), write them (records_write.c), and read wrappers of magic 0 and 1
   (records_messages.c).
   kproto/records/record.py and encode_batch.py describe the layout and every rule. As in the rest
   of the engine, invalid or unusual data makes these functions give up without an error; the Python
   code of those files then reads or writes the batch again and raises the error. C reads exactly as
   Python does. */
#ifndef KPROTO_RECORDS_H
#define KPROTO_RECORDS_H

#include "engine.h"

enum {
    LEAST_RECORD = 7,
    LEAST_HEADER = 2,
    NULL_SIZE = -1,
    TRUSTED_COUNT = 1 << 14 /* for more records, room is made once they are known to exist */
};

/* kproto.records.model.Record, and the offsets of its members. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *type;
    Py_ssize_t offset, timestamp, key, value, headers;
} record_codec;

extern PyTypeObject record_codec_type, record_sink_type;

/* ---- reading ---------------------------------------------------------------------------------- */

/* Bytes within the batch; `size` is NULL_SIZE where they are null. */
typedef struct {
    const uint8_t *at;
    Py_ssize_t size;
} span;

/* The batch header's facts about all of its records. */
typedef struct {
    Py_ssize_t count;
    int64_t base_offset, base_timestamp, appended;
    int is_appended; /* `appended` is every record's timestamp: log append time */
    /* Set only by get_plain: */
    int codec;      /* the codec of its records; 0: not compressed */
    int is_control; /* they are markers */
} batch_facts;

typedef struct {
    int64_t offset, timestamp;
    span key, value;
    Py_ssize_t header_count;
    reader headers; /* the records must fill it */
} record_view;

/* A zigzag varint of up to 32 bits in up to five bytes (KIP-98); -1 if it is invalid. */
static inline int get_zigzag32(reader *in, int32_t *out) {
    uint32_t value;
    if (UNLIKELY(get_varint(in, &value))) return -1;
    *out = (int32_t)(value >> 1 ^ (0u - (value & 1)));
    return 0;
}

/* The same of up to 64 bits in up to ten bytes. */
static inline int get_zigzag64(reader *in, int64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (UNLIKELY(in->at >= in->end)) return -1;
        uint64_t byte = *in->at++;
        if (UNLIKELY(shift == 63 && byte > 1)) return -1;
        value |= (byte & 0x7F) << shift;
        if (LIKELY(byte < 0x80)) {
            *out = (int64_t)(value >> 1 ^ (UINT64_C(0) - (value & 1)));
            return 0;
        }
    }
    return -1;
}

/* Bytes that may be null. */
static inline int get_span(reader *in, span *out) {
    int32_t size;
    if (UNLIKELY(get_zigzag32(in, &size) || size < NULL_SIZE || size > left_of(in))) return -1;
    out->at = in->at;
    out->size = size;
    if (LIKELY(size > 0)) in->at += size;
    return 0;
}

/* A record's next header. The caller validates that its key is text. */
static inline int get_header(reader *in, span *key, span *value) {
    return UNLIKELY(get_span(in, key) || key->size < 0 || get_span(in, value)) ? -1 : 0;
}

/* The record at the start of `in`, without its headers. */
static inline int get_record(reader *in, const batch_facts *batch, record_view *out) {
    int32_t size, offset_delta, headers;
    int64_t timestamp_delta;
    if (UNLIKELY(get_zigzag32(in, &size) || size < LEAST_RECORD - 1 || size > left_of(in)))
        return -1;
    reader part = {in->at + 1, in->at + size}; /* past the attributes: none is defined */
    in->at = part.end;
    if (UNLIKELY(get_zigzag64(&part, &timestamp_delta) || get_zigzag32(&part, &offset_delta)))
        return -1;
    if (UNLIKELY(offset_delta > 0 ? batch->base_offset > INT64_MAX - offset_delta
                                  : batch->base_offset < INT64_MIN - offset_delta))
        return -1;
    out->offset = batch->base_offset + offset_delta;
    /* May overflow, as Java's sum does. */
    out->timestamp = batch->is_appended
                         ? batch->appended
                         : (int64_t)((uint64_t)batch->base_timestamp + (uint64_t)timestamp_delta);
    if (UNLIKELY(get_span(&part, &out->key) || get_span(&part, &out->value))) return -1;
    if (UNLIKELY(get_zigzag32(&part, &headers) || headers < 0)) return -1;
    if (UNLIKELY(headers > left_of(&part) / LEAST_HEADER)) return -1;
    out->header_count = headers;
    out->headers = part;
    return headers || part.at == part.end ? 0 : -1;
}

/* Parses the arguments (data, at, end, count, base_offset, base_timestamp, appended): 1 if they are
   valid, 0 if Python must handle them. `data` is bytes that the caller holds. In records_read.c. */
int get_batch(PyObject *const *args, reader *in, batch_facts *batch);
/* The batch at the start of `in`; `part` becomes its records as they are (compressed by `codec`):
   0, or -1 if it is truncated, not of magic 2, or invalid. */
int get_plain(reader *in, reader *part, batch_facts *batch);
/* Whether `in` is exactly the batch's records. */
int are_records(reader in, const batch_facts *batch);

PyObject *new_plain_record(const record_codec *self, record_view *record); /* without headers */

/* ---- what Record objects hold ----------------------------------------------------------------- */

/* An exact int that fits an int64; -1 otherwise, without an exception. */
static inline int int64_of(PyObject *value, int64_t *out) {
    int overflow;
    if (UNLIKELY(!PyLong_CheckExact(value))) return -1;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : 0;
}

static inline int span_of(PyObject *value, span *out) {
    if (value == Py_None) {
        out->size = NULL_SIZE;
        return 0;
    }
    if (UNLIKELY(value == NULL || !PyBytes_CheckExact(value))) return -1;
    out->at = (const uint8_t *)PyBytes_AS_STRING(value);
    out->size = PyBytes_GET_SIZE(value);
    return out->size > INT32_MAX ? -1 : 0;
}

static inline int header_of(PyObject *pair, span *key, span *value) {
    if (UNLIKELY(!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2)) return -1;
    PyObject *text = PyTuple_GET_ITEM(pair, 0);
    if (UNLIKELY(!PyUnicode_CheckExact(text))) return -1;
    if (LIKELY(PyUnicode_IS_COMPACT_ASCII(text))) {
        key->at = PyUnicode_1BYTE_DATA(text);
        key->size = PyUnicode_GET_LENGTH(text);
    } else if (!(key->at = (const uint8_t *)PyUnicode_AsUTF8AndSize(text, &key->size))) {
        return -1; /* a lone surrogate */
    }
    return key->size > INT32_MAX ? -1 : span_of(PyTuple_GET_ITEM(pair, 1), value);
}

static inline PyObject **items_of(PyObject *list, Py_ssize_t *count) {
    if (LIKELY(list != NULL && PyTuple_CheckExact(list))) {
        *count = PyTuple_GET_SIZE(list);
        return ((PyTupleObject *)list)->ob_item;
    }
    if (list == NULL || !PyList_CheckExact(list)) return NULL;
    *count = PyList_GET_SIZE(list);
    return ((PyListObject *)list)->ob_item;
}

/* ---- doors ------------------------------------------------------------------------------------ */

PyObject *read_records(record_codec *self, PyObject *const *args, Py_ssize_t count);
PyObject *survey_records(record_codec *self, PyObject *const *args, Py_ssize_t count);
PyObject *read_messages(record_codec *self, PyObject *const *args, Py_ssize_t count);
PyObject *write_records(record_codec *self, PyObject *const *args, Py_ssize_t count);
PyObject *new_sink(record_codec *self, PyObject *args); /* records_columns.c */

int is_utf8(const uint8_t *p, Py_ssize_t size); /* validate.c */
int check_type(PyObject *cls);                  /* plan.c: whether its instances may be filled */

#endif
