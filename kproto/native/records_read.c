/* Reads the records of a batch into Record objects, all at once, and defines the type that does it.
   Objects are made as in decode.c: by the type's allocator, with their slots filled at once, so
   that no other code can see an incomplete one. Records are not tracked by the garbage collector;
   the list is, once it is full. Tuples of headers contain only text and bytes, so no cycle can pass
   through them, and they stay untracked for good, as the collector itself would decide.
   Python code may run where a tuple is made (a garbage collection on CPython 3.11). It cannot reach
   the objects being made, and the caller holds the bytes and the codec. */
#include "records.h"

enum { KEYS = 4 };

/* Values that neighbours often share are made once, since they are immutable. */
typedef struct {
    int64_t timestamp;
    PyObject *timestamp_made;
    span key[KEYS]; /* of the header at that position in the previous record */
    PyObject *key_made[KEYS];
} memory;

static void forget(memory *last) {
    Py_XDECREF(last->timestamp_made);
    for (int i = 0; i < KEYS; i++) Py_XDECREF(last->key_made[i]);
}

static PyObject *new_timestamp(int64_t value, memory *last) {
    if (last->timestamp_made == NULL || last->timestamp != value) {
        PyObject *made = PyLong_FromLongLong(value);
        if (UNLIKELY(made == NULL)) return NULL;
        Py_XDECREF(last->timestamp_made);
        last->timestamp_made = made;
        last->timestamp = value;
    }
    Py_INCREF(last->timestamp_made);
    return last->timestamp_made;
}

static PyObject *new_key(const span *key, Py_ssize_t place, memory *last) {
    if (place >= KEYS) return new_string(key->at, key->size);
    span *before = &last->key[place];
    PyObject **made = &last->key_made[place];
    if (*made == NULL || before->size != key->size ||
        memcmp(before->at, key->at, (size_t)key->size)) {
        PyObject *text = new_string(key->at, key->size);
        if (UNLIKELY(text == NULL)) return NULL;
        Py_XDECREF(*made);
        *made = text;
        *before = *key;
    }
    Py_INCREF(*made);
    return *made;
}

static inline PyObject *new_bytes(const span *given) {
    if (given->size < 0) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)given->at, given->size);
}

static PyObject *new_tuple(Py_ssize_t size) {
    PyObject *made = PyTuple_New(size);
    if (LIKELY(made != NULL && size)) PyObject_GC_UnTrack(made);
    return made;
}

static PyObject *new_header(reader *in, Py_ssize_t place, memory *last) {
    span key, value;
    if (UNLIKELY(get_header(in, &key, &value))) return NULL;
    PyObject *text = new_key(&key, place, last);
    PyObject *raw = text ? new_bytes(&value) : NULL;
    PyObject *pair = raw ? new_tuple(2) : NULL;
    if (UNLIKELY(pair == NULL)) {
        Py_XDECREF(text);
        Py_XDECREF(raw);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, text);
    PyTuple_SET_ITEM(pair, 1, raw);
    return pair;
}

static PyObject *new_headers(record_view *record, memory *last) {
    PyObject *headers = new_tuple(record->header_count);
    if (UNLIKELY(headers == NULL)) return NULL;
    for (Py_ssize_t i = 0; i < record->header_count; i++) {
        PyObject *pair = new_header(&record->headers, i, last);
        if (UNLIKELY(pair == NULL)) {
            Py_DECREF(headers);
            return NULL;
        }
        PyTuple_SET_ITEM(headers, i, pair);
    }
    if (LIKELY(record->headers.at == record->headers.end)) return headers;
    Py_DECREF(headers);
    return NULL;
}

static PyObject *new_record(const record_codec *self, record_view *record, memory *last) {
    PyObject *object = self->type->tp_alloc(self->type, 0); /* its slots are empty */
    if (UNLIKELY(object == NULL)) return NULL;
    if (LIKELY((SLOT(object, self->offset) = PyLong_FromLongLong(record->offset)) &&
               (SLOT(object, self->timestamp) = new_timestamp(record->timestamp, last)) &&
               (SLOT(object, self->key) = new_bytes(&record->key)) &&
               (SLOT(object, self->value) = new_bytes(&record->value)) &&
               (SLOT(object, self->headers) = new_headers(record, last))))
        return object;
    Py_DECREF(object);
    return NULL;
}

PyObject *new_plain_record(const record_codec *self, record_view *record) {
    memory last = {0};
    PyObject *made = new_record(self, record, &last);
    forget(&last);
    return made;
}

static int fill(const record_codec *self, reader *in, const batch_facts *batch, PyObject **items) {
    memory last = {0};
    int result = 0;
    for (Py_ssize_t i = 0; i < batch->count && !result; i++) {
        record_view record;
        result = get_record(in, batch, &record) ||
                 (items[i] = new_record(self, &record, &last)) == NULL;
    }
    forget(&last);
    return result || in->at != in->end ? -1 : 0;
}

/* Cuts the next record, headers included; 0 is success. */
static int get_whole_record(reader *in, const batch_facts *batch, record_view *record) {
    if (get_record(in, batch, record)) return -1;
    for (Py_ssize_t i = 0; i < record->header_count; i++) {
        span key, value;
        if (get_header(&record->headers, &key, &value) || !is_utf8(key.at, key.size)) return -1;
    }
    return record->headers.at == record->headers.end ? 0 : -1;
}

int are_records(reader in, const batch_facts *batch) {
    record_view record;
    for (Py_ssize_t i = 0; i < batch->count; i++)
        if (get_whole_record(&in, batch, &record)) return 0;
    return in.at == in.end;
}

int get_batch(PyObject *const *args, reader *in, batch_facts *batch) {
    int64_t at, end, count;
    if (!PyBytes_CheckExact(args[0]) || int64_of(args[1], &at) || int64_of(args[2], &end) ||
        int64_of(args[3], &count) || int64_of(args[4], &batch->base_offset) ||
        int64_of(args[5], &batch->base_timestamp))
        return 0;
    batch->is_appended = args[6] != Py_None;
    if (batch->is_appended && int64_of(args[6], &batch->appended)) return 0;
    if (at < 0 || end < at || end > PyBytes_GET_SIZE(args[0]) || count < 0) return 0;
    if (count > (end - at) / LEAST_RECORD) return 0;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    *in = (reader){start + at, start + end};
    batch->count = (Py_ssize_t)count;
    return 1;
}

/* The header of a batch of magic 2; kproto/records/record_batch.py describes the layout. */
enum {
    LENGTH_AT = 8,
    LENGTH_END = 12,
    MAGIC_AT = 16,
    ATTRIBUTES_AT = 21,
    LAST_DELTA_AT = 23,
    BASE_TIMESTAMP_AT = 27,
    MAX_TIMESTAMP_AT = 35,
    COUNT_AT = 57,
    HEADER_SIZE = 61
};
enum { CODEC_BITS = 7, APPENDED_BIT = 8, CONTROL_BIT = 32, ZSTD = 4 };

int get_plain(reader *in, reader *part, batch_facts *batch) {
    const uint8_t *head = in->at;
    if (left_of(in) < HEADER_SIZE || head[MAGIC_AT] != 2) return -1;
    int32_t length = (int32_t)get32(head + LENGTH_AT), count = (int32_t)get32(head + COUNT_AT);
    if (length < HEADER_SIZE - LENGTH_END || length > left_of(in) - LENGTH_END) return -1;
    uint16_t attributes = get16(head + ATTRIBUTES_AT);
    int32_t last_delta = (int32_t)get32(head + LAST_DELTA_AT);
    batch->base_offset = (int64_t)get64(head);
    batch->codec = attributes & CODEC_BITS;
    batch->is_control = (attributes & CONTROL_BIT) != 0;
    if (batch->codec > ZSTD || last_delta < 0 ||
        (batch->base_offset > 0 && last_delta > INT64_MAX - batch->base_offset))
        return -1;
    *part = (reader){head + HEADER_SIZE, head + LENGTH_END + length};
    if (count < 0 || (!batch->codec && count > left_of(part) / LEAST_RECORD)) return -1;
    batch->count = count;
    batch->base_timestamp = (int64_t)get64(head + BASE_TIMESTAMP_AT);
    batch->is_appended = (attributes & APPENDED_BIT) != 0;
    batch->appended = (int64_t)get64(head + MAX_TIMESTAMP_AT);
    in->at = part->end;
    return 0;
}

PyObject *read_records(record_codec *self, PyObject *const *args, Py_ssize_t count) {
    reader in;
    batch_facts batch;
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "read takes 7 arguments");
        return NULL;
    }
    if (!get_batch(args, &in, &batch)) Py_RETURN_NONE;
    if (UNLIKELY(batch.count > TRUSTED_COUNT) && !are_records(in, &batch)) Py_RETURN_NONE;
    PyObject *list = PyList_New(batch.count);
    if (UNLIKELY(list == NULL)) return NULL;
    PyObject_GC_UnTrack(list);
    if (LIKELY(!fill(self, &in, &batch, ((PyListObject *)list)->ob_item))) {
        PyObject_GC_Track(list);
        return list;
    }
    Py_DECREF(list);
    if (forget_error()) return NULL;
    Py_RETURN_NONE;
}

PyObject *survey_records(record_codec *self, PyObject *const *args, Py_ssize_t count) {
    (void)self;
    reader in;
    batch_facts batch;
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "survey takes 7 arguments");
        return NULL;
    }
    if (!get_batch(args, &in, &batch) || !batch.count) Py_RETURN_NONE;
    int64_t least = INT64_MAX, most = INT64_MIN;
    int in_order = 1;
    for (Py_ssize_t i = 0; i < batch.count; i++) {
        record_view record;
        if (get_whole_record(&in, &batch, &record)) Py_RETURN_NONE;
        if (record.timestamp < least) least = record.timestamp;
        if (record.timestamp > most) most = record.timestamp;
        in_order &= (uint64_t)record.offset == (uint64_t)batch.base_offset + (uint64_t)i;
    }
    if (in.at != in.end) Py_RETURN_NONE;
    return Py_BuildValue("LLO", (long long)least, (long long)most, in_order ? Py_True : Py_False);
}
