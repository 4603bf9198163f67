/* Reads the records of many batches into columns in Arrow's layout, without an object for each
   record. kproto/records/sink.py does the same in Python, byte for byte. kproto/records/batches.py
   splits the batches and raises the errors of those that are given up here; batches that are plain
   in every way are split here too (add_plain). A batch is added as a whole or not at all. No Python
   code runs here except the decompression of a plain batch. */
#include "blake2b.h"
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

/* Room for `more` values, except for their bytes. */
static int reserve_values(record_sink *self, int which, Py_ssize_t more) {
    blobs *to = &self->blobs[which];
    Py_ssize_t count = self->now.of[which].count;
    if (UNLIKELY(more >= self->limit / 4 - count)) return FULL;
    int is_first = to->offsets == NULL;
    if (reserve(&to->offsets, (count + 1) * 4, more * 4)) return -1;
    if (is_first) put_int32(to->offsets, 0, 0);
    return reserve(&to->validity, (count + 7) / 8, more / 8 + 1);
}

static inline int put_blob(record_sink *self, int which, const span *given) {
    blobs *to = &self->blobs[which];
    Py_ssize_t at = self->now.of[which].count++, end = self->now.of[which].size;
    uint8_t *byte = AT(uint8_t, to->validity, at / 8), mask = (uint8_t)(1 << at % 8);
    if (given->size < 0) {
        *byte &= (uint8_t)~mask;
        self->now.of[which].nulls++;
    } else {
        *byte |= mask;
        if (UNLIKELY(given->size > self->limit - end)) return FULL;
        if (UNLIKELY(reserve(&to->data, end, given->size))) return -1;
        memcpy(AT(char, to->data, end), given->at, (size_t)given->size);
        self->now.of[which].size = end += given->size;
    }
    put_int32(to->offsets, at + 1, end);
    return 0;
}

/* Room for `more` digests, and for the values to hash. */
static int reserve_hashes(record_sink *self, Py_ssize_t more) {
    if (more > self->hashed_room) {
        span *room = PyMem_Resize(self->hashed, span, (size_t)more);
        if (room == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->hashed = room;
        self->hashed_room = more;
    }
    self->hashed_count = 0;
    return reserve_values(self, HASH, more);
}

/* Reserves the digest of a row's value; put_hashes writes it. */
static inline int put_hash(record_sink *self, const span *value) {
    static const uint8_t nothing[DIGEST];
    const span digest = {nothing, value->size < 0 ? NULL_SIZE : DIGEST};
    if (value->size >= 0) self->hashed[self->hashed_count++] = *value;
    return put_blob(self, HASH, &digest);
}

/* Writes the digests of all rows since reserve_hashes. */
static void put_hashes(record_sink *self) {
    Py_ssize_t count = self->hashed_count;
    if (count == 0) return;
    Py_ssize_t start = self->now.of[HASH].size - count * DIGEST;
    blake2b_each(self->hashed, count, AT(uint8_t, self->blobs[HASH].data, start));
    self->hashed_count = 0;
}

/* Room for `more` rows, except for their bytes and headers. */
static int reserve_rows(record_sink *self, Py_ssize_t more) {
    Py_ssize_t rows = self->now.rows;
    int failed = 0;
    if (UNLIKELY(more > self->limit / 8 - rows)) return FULL;
    if (self->wanted & OFFSET) failed = reserve(&self->offset, rows * 8, more * 8);
    if (!failed && self->wanted & TIMESTAMP)
        failed = reserve(&self->timestamp, rows * 8, more * 8);
    if (!failed && self->wanted & HEADER_COUNT)
        failed = reserve(&self->header_count, rows * 4, more * 4);
    if (!failed && self->wanted & KEYS) failed = reserve_values(self, KEY, more);
    if (!failed && self->wanted & VALUES) failed = reserve_values(self, VALUE, more);
    if (!failed && self->wanted & VALUE_SIZE)
        failed = reserve(&self->value_size, rows * 4, more * 4);
    if (!failed && self->wanted & VALUE_HASH) failed = reserve_hashes(self, more);
    if (!failed && self->wanted & HEADERS) {
        int is_first = self->header_offsets == NULL;
        failed = reserve(&self->header_offsets, (rows + 1) * 4, more * 4);
        if (!failed && is_first) put_int32(self->header_offsets, 0, 0);
    }
    return failed;
}

static int reserve_headers(record_sink *self, Py_ssize_t more) {
    if (!more || !(self->wanted & HEADERS)) return 0;
    int failed = reserve_values(self, HEADER_KEY, more);
    return failed ? failed : reserve_values(self, HEADER_VALUE, more);
}

static inline int put_header(record_sink *self, const span *key, const span *value) {
    if (!(self->wanted & HEADERS)) return 0;
    int failed = put_blob(self, HEADER_KEY, key);
    return failed ? failed : put_blob(self, HEADER_VALUE, value);
}

/* Puts a row, whose headers were put before. */
static inline int put_row(record_sink *self, const record_view *record) {
    Py_ssize_t row = self->now.rows++;
    int failed = 0;
    if (self->wanted & OFFSET) put_int64(self->offset, row, record->offset);
    if (self->wanted & TIMESTAMP) put_int64(self->timestamp, row, record->timestamp);
    if (self->wanted & HEADER_COUNT) put_int32(self->header_count, row, record->header_count);
    if (self->wanted & HEADERS)
        put_int32(self->header_offsets, row + 1, self->now.of[HEADER_KEY].count);
    if (self->wanted & KEYS) failed = put_blob(self, KEY, &record->key);
    if (!failed && self->wanted & VALUES) failed = put_blob(self, VALUE, &record->value);
    if (self->wanted & VALUE_SIZE) put_int32(self->value_size, row, record->value.size);
    if (!failed && self->wanted & VALUE_HASH) failed = put_hash(self, &record->value);
    return failed;
}

/* ---- where rows come from: each 0, -1 where given up (perhaps with an exception), or FULL ------- */

static int add_headers(record_sink *self, record_view *record) {
    int failed = reserve_headers(self, record->header_count);
    for (Py_ssize_t i = 0; i < record->header_count && !failed; i++) {
        span key, value;
        if (get_header(&record->headers, &key, &value) || !is_utf8(key.at, key.size)) return -1;
        failed = put_header(self, &key, &value);
    }
    return failed ? failed : record->headers.at == record->headers.end ? 0 : -1;
}

static int add_section(record_sink *self, reader *in, const batch_facts *batch) {
    /* Many records are checked before anything is reserved for them. */
    if (batch->count > TRUSTED_COUNT && !are_records(*in, batch)) return -1;
    int failed = reserve_rows(self, batch->count);
    for (Py_ssize_t i = 0; i < batch->count && !failed; i++) {
        record_view record;
        if (UNLIKELY(get_record(in, batch, &record))) return -1;
        if (UNLIKELY(record.header_count)) failed = add_headers(self, &record);
        if (LIKELY(!failed)) failed = put_row(self, &record);
    }
    if (failed || in->at != in->end) return failed ? failed : -1;
    put_hashes(self);
    return 0;
}

static int add_object(record_sink *self, PyObject *object) {
    const record_codec *codec = self->codec;
    record_view record = {0};
    if (Py_TYPE(object) != codec->type) return -1;
    PyObject *offset = SLOT(object, codec->offset), *timestamp = SLOT(object, codec->timestamp);
    if (!offset || !timestamp || int64_of(offset, &record.offset) ||
        int64_of(timestamp, &record.timestamp) || span_of(SLOT(object, codec->key), &record.key) ||
        span_of(SLOT(object, codec->value), &record.value))
        return -1;
    PyObject **headers = items_of(SLOT(object, codec->headers), &record.header_count);
    if (headers == NULL || record.header_count > INT32_MAX) return -1;
    int failed = reserve_headers(self, record.header_count);
    for (Py_ssize_t i = 0; i < record.header_count && !failed; i++) {
        span key, value;
        if (header_of(headers[i], &key, &value)) return -1;
        failed = put_header(self, &key, &value);
    }
    return failed ? failed : put_row(self, &record);
}

static void sink_clear(record_sink *self) {
    Py_CLEAR(self->offset);
    Py_CLEAR(self->timestamp);
    Py_CLEAR(self->header_count);
    Py_CLEAR(self->header_offsets);
    Py_CLEAR(self->value_size);
    for (int i = 0; i < BLOBS; i++) {
        Py_CLEAR(self->blobs[i].offsets);
        Py_CLEAR(self->blobs[i].validity);
        Py_CLEAR(self->blobs[i].data);
    }
    memset(&self->now, 0, sizeof self->now);
    memset(&self->marked, 0, sizeof self->marked);
}

/* Restores the sink after a failure and sets the caller's result. Without memory, buffers are lost:
   it starts over. */
static PyObject *result(record_sink *self, const extent *before, int failed) {
    if (LIKELY(!failed)) Py_RETURN_TRUE;
    self->now = *before;
    if (failed == FULL) {
        PyErr_Format(PyExc_OverflowError, "a column would take more than %zd bytes", self->limit);
        return NULL;
    }
    if (!PyErr_Occurred()) Py_RETURN_FALSE;
    sink_clear(self);
    return NULL;
}

static PyObject *sink_add(record_sink *self, PyObject *const *args, Py_ssize_t count) {
    reader in;
    batch_facts batch;
    extent before = self->now;
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "add takes 7 arguments");
        return NULL;
    }
    if (!get_batch(args, &in, &batch)) Py_RETURN_FALSE;
    const reader section = in;
    int failed = add_section(self, &in, &batch);
    if (failed == FULL && !are_records(section, &batch)) failed = -1; /* that error takes precedence */
    return result(self, &before, failed);
}

/* The decompressed records from the caller's `unpack`: bytes; NULL without an exception if it
   returns none, or too few for so many records. Any other error ends add_plain. */
static PyObject *unpacked(PyObject *unpack, const reader *packed, const batch_facts *batch) {
    if (unpack == Py_None || batch->count == 0) return NULL;
    PyObject *given[] = {PyLong_FromLong(batch->codec),
                         PyBytes_FromStringAndSize((const char *)packed->at, left_of(packed))};
    PyObject *made = given[0] && given[1] ? PyObject_Vectorcall(unpack, given, 2, NULL) : NULL;
    Py_XDECREF(given[0]);
    Py_XDECREF(given[1]);
    if (made == NULL) return NULL;
    if (PyBytes_CheckExact(made) && batch->count <= PyBytes_GET_SIZE(made) / LEAST_RECORD)
        return made;
    Py_DECREF(made);
    return NULL;
}

/* Adds one more plain batch: 0, or -1 if it is not plain, perhaps with an exception. */
static int add_plain_one(record_sink *self, reader *in, PyObject *unpack, batch_facts *batch) {
    reader part;
    PyObject *held = NULL;
    if (get_plain(in, &part, batch)) return -1;
    if (batch->is_control) {
        batch->count = 0;
        return 0;
    }
    if (batch->codec) {
        held = unpacked(unpack, &part, batch);
        if (held == NULL) return -1;
        const uint8_t *start = AT(uint8_t, held, 0);
        part = (reader){start, start + PyBytes_GET_SIZE(held)};
    }
    extent before = self->now; /* only now: unpacking runs Python code, and perhaps other threads */
    int failed = add_section(self, &part, batch);
    Py_XDECREF(held);
    if (!failed) return 0;
    self->now = before;
    return -1; /* a full column is also reported when the batch is added alone */
}

/* Adds plain batches. Returns where the first other batch begins, and [the rows of each]. */
static PyObject *sink_add_plain(record_sink *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 4) {
        PyErr_SetString(PyExc_TypeError, "add_plain takes 4 arguments");
        return NULL;
    }
    PyObject *data = args[0];
    int64_t at, end;
    if (!PyBytes_CheckExact(data) || int64_of(args[1], &at) || int64_of(args[2], &end) || at < 0 ||
        end < at || end > PyBytes_GET_SIZE(data)) {
        PyErr_SetString(PyExc_ValueError, "add_plain takes bytes, a begin and an end");
        return NULL;
    }
    PyObject *counts = PyList_New(0);
    if (counts == NULL) return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    reader in = {start + at, start + end};
    batch_facts batch;
    while (left_of(&in) && !add_plain_one(self, &in, args[3], &batch)) {
        PyObject *count = PyLong_FromSsize_t(batch.count);
        int failed = count == NULL || PyList_Append(counts, count);
        Py_XDECREF(count);
        if (failed) break;
        at = in.at - start;
    }
    if (!PyErr_Occurred()) return Py_BuildValue("(nN)", (Py_ssize_t)at, counts);
    Py_DECREF(counts);
    sink_clear(self);
    return NULL;
}

static PyObject *sink_put(record_sink *self, PyObject *records) {
    extent before = self->now;
    Py_ssize_t count;
    PyObject **items = items_of(records, &count);
    if (items == NULL) Py_RETURN_FALSE;
    int failed = reserve_rows(self, count);
    for (Py_ssize_t i = 0; i < count && !failed; i++) failed = add_object(self, items[i]);
    if (!failed) put_hashes(self);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_UnicodeError)) PyErr_Clear();
    return result(self, &before, failed);
}

/* ---- the finished columns: each buffer is as long as the part in use, as Arrow requires --------- */

/* The object itself, shrunk to the size in use; None for a column that was not selected. */
static PyObject *finish(PyObject **bytes, Py_ssize_t used) {
    PyObject *made = *bytes;
    *bytes = NULL;
    if (made == NULL) return PyBytes_FromStringAndSize(NULL, 0);
    _PyBytes_Resize(&made, used); /* NULL on failure */
    return made;
}

static PyObject *finish_validity(record_sink *self, int which) {
    PyObject **bits = &self->blobs[which].validity;
    Py_ssize_t count = self->now.of[which].count;
    if (self->now.of[which].nulls == 0) {
        Py_CLEAR(*bits);
        Py_RETURN_NONE;
    }
    if (count % 8) *AT(uint8_t, *bits, count / 8) &= (uint8_t)((1 << count % 8) - 1);
    return finish(bits, (count + 7) / 8);
}

/* (count, nulls, validity, offsets, data) */
static PyObject *finish_blobs(record_sink *self, int which) {
    blobs *each = &self->blobs[which];
    Py_ssize_t count = self->now.of[which].count;
    if (each->offsets == NULL && reserve_values(self, which, 0)) return NULL;
    return Py_BuildValue("(nnNNN)", count, self->now.of[which].nulls,
                         finish_validity(self, which), finish(&each->offsets, (count + 1) * 4),
                         finish(&each->data, self->now.of[which].size));
}

/* (nulls, validity, data): as put_row left them, -1 for null. */
static PyObject *finish_sizes(record_sink *self) {
    Py_ssize_t rows = self->now.rows, nulls = 0;
    PyObject *validity = PyBytes_FromStringAndSize(NULL, (rows + 7) / 8);
    if (validity == NULL) return NULL;
    uint8_t *bits = AT(uint8_t, validity, 0);
    memset(bits, 0, (size_t)((rows + 7) / 8));
    for (Py_ssize_t i = 0; i < rows; i++) {
        int32_t size;
        memcpy(&size, AT(char, self->value_size, i * 4), 4);
        nulls += size < 0;
        bits[i / 8] |= (uint8_t)((size >= 0) << i % 8);
    }
    if (nulls == 0) Py_SETREF(validity, Py_NewRef(Py_None));
    return Py_BuildValue("(nNN)", nulls, validity, finish(&self->value_size, rows * 4));
}

static PyObject *none(void) { Py_RETURN_NONE; }

static PyObject *sink_finish(record_sink *self, PyObject *nothing) {
    (void)nothing;
    int wanted = self->wanted;
    Py_ssize_t rows = self->now.rows;
    if (reserve_rows(self, 0) == -1) { /* offsets have at least this entry */
        sink_clear(self);
        return NULL;
    }
    PyObject *headers = none();
    if (wanted & HEADERS)
        headers = Py_BuildValue("(NNN)", finish(&self->header_offsets, (rows + 1) * 4),
                                finish_blobs(self, HEADER_KEY), finish_blobs(self, HEADER_VALUE));
    PyObject *made = Py_BuildValue(
        "(nNNNNNNNN)", rows, wanted & OFFSET ? finish(&self->offset, rows * 8) : none(),
        wanted & TIMESTAMP ? finish(&self->timestamp, rows * 8) : none(),
        wanted & KEYS ? finish_blobs(self, KEY) : none(),
        wanted & VALUES ? finish_blobs(self, VALUE) : none(),
        wanted & HEADER_COUNT ? finish(&self->header_count, rows * 4) : none(), headers,
        wanted & VALUE_SIZE ? finish_sizes(self) : none(),
        wanted & VALUE_HASH ? finish_blobs(self, HASH) : none());
    sink_clear(self);
    return made;
}

static PyObject *sink_mark(record_sink *self, PyObject *nothing) {
    (void)nothing;
    self->marked = self->now;
    Py_RETURN_NONE;
}

static PyObject *sink_take_back(record_sink *self, PyObject *nothing) {
    (void)nothing;
    if (self->marked.rows <= self->now.rows) self->now = self->marked;
    Py_RETURN_NONE;
}

static void sink_free(record_sink *self) {
    sink_clear(self);
    PyMem_Free(self->hashed);
    Py_XDECREF(self->codec);
    Py_TYPE(self)->tp_free(self);
}

PyObject *new_sink(record_codec *codec, PyObject *args) {
    int wanted;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "in:sink", &wanted, &limit)) return NULL;
    if (wanted & ~ALL || limit < 8 || limit > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "invalid columns or limit");
        return NULL;
    }
    record_sink *self = PyObject_New(record_sink, &record_sink_type);
    if (self == NULL) return NULL;
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    Py_INCREF(codec);
    self->codec = codec;
    self->wanted = wanted;
    self->limit = limit;
    return (PyObject *)self;
}

static PyMethodDef sink_methods[] = {
    {"add", (PyCFunction)(void (*)(void))sink_add, METH_FASTCALL,
     "add(data, at, end, count, base_offset, base_timestamp, appended) -> whether data[at:end] is "
     "exactly that many records, which are rows then"},
    {"add_plain", (PyCFunction)(void (*)(void))sink_add_plain, METH_FASTCALL,
     "add_plain(data, at, end, unpack) -> (where the first batch begins that is not plain, of each "
     "before it how many records it has, 0 of markers); they are rows then"},
    {"put", (PyCFunction)sink_put, METH_O,
     "put(records) -> whether these objects are as they usually are; they are rows then"},
    {"mark", (PyCFunction)sink_mark, METH_NOARGS, "mark(): where take_back goes back to"},
    {"take_back", (PyCFunction)sink_take_back, METH_NOARGS, "take_back(): no row since the mark"},
    {"finish", (PyCFunction)sink_finish, METH_NOARGS,
     "finish() -> (rows, offset, timestamp, key, value, header_count, headers, value_size, "
     "value_hash), and begin again"},
    {NULL, NULL, 0, NULL},
};

static Py_ssize_t sink_length(PyObject *self) { return ((record_sink *)self)->now.rows; }

static PySequenceMethods as_sequence = {.sq_length = sink_length};

PyTypeObject record_sink_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.RecordSink",
    .tp_doc = "Columns that records are put into; RecordCodec.sink makes one.",
    .tp_basicsize = sizeof(record_sink),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)sink_free,
    .tp_methods = sink_methods,
    .tp_as_sequence = &as_sequence,
};
