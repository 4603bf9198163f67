/* Collects the records of whole frames, which kproto.columns.places locates, as
   BatchRows.add_frame in wiredump.rows.batches does, without an object for each field. BatchRows
   is called for everything unusual. If rows of `batches` are wanted too, each batch is checked
   and becomes a row; a field with anything unusual is then left to Python as a whole. */
#include "wire.h"

enum { PRODUCE = 0, RUN = 7, MOST_IDS = 4096, MOST_WAYS = 64, CODECS = 5, ID_SIZE = 16, SIZE = 4 };
/* The fields of a batch of magic 2 (kproto/records/record_batch.py). */
enum { LENGTH = 8, EPOCH = 12, MAGIC = 16, CRC = 17, ATTRIBUTES = 21, LAST_DELTA = 23,
       MAX_TIMESTAMP = 35, PRODUCER_ID = 43, PRODUCER_EPOCH = 51, SEQUENCE = 53, RECORD_COUNT = 57,
       HEADER = 61 };
enum { CODEC_MASK = 7, LOG_APPEND_TIME = 8, TRANSACTIONAL = 16, CONTROL = 32 };

static const char BATCH_CODES[] = "quqqhuuiiqqhuuqiqhi???ii?";

/* The destination of rows, as in wiredump.rows.record_columns.RecordRows. */
typedef struct {
    PyObject *sink;    /* kproto.records.native.RecordSink */
    PyObject *numbers; /* bytearray: RUN numbers of 64 bits for each run */
    PyObject *texts;   /* dict: (direction, topic, topic id) -> its number */
    PyObject *full;    /* called when there are `most` rows or more */
    int64_t most;
} target;

/* How the fields of a frame are located; returned by wiredump.rows.fields.places_of. */
typedef struct {
    int key, version;
    PyObject *locate, *header; /* NULL: Python locates them */
    int name_at, id_at;
} way;

/* The place of a value in the frame (kproto/columns/places.py). */
typedef struct {
    int32_t start, size;
} place;

/* A nonempty field of records. `name` and `id` are -1 if the frame has none. */
typedef struct {
    place name, id, records;
    int32_t partition;
} located;

typedef struct {
    PyObject_HEAD
    PyObject *places_of, *text_of, *name_of, *unpack, *rest, *otherwise;
    target named, unnamed;
    PyObject *crc32c, *full, *left; /* NULL: only records are collected */
    held_object *batches;           /* NULL: batches have no rows */
    PyObject *ids; /* dict: a topic's id, bytes -> text */
    PyObject *directions[2], *add_plain, *mark, *take_back, *start;
    way ways[MOST_WAYS];
    int way_count;
} gatherer_object;

/* The frame whose records are collected. */
typedef struct {
    gatherer_object *self;
    PyObject *frame;
    int64_t connection, offset, completed_ns;
    int direction;
    const carrier *from;
} gathering;

/* New reference; None if there is no id, or only zeros. */
static PyObject *text_of_id(gatherer_object *self, const uint8_t *frame, place at) {
    static const uint8_t zero[ID_SIZE];
    if (at.size != ID_SIZE || !memcmp(frame + at.start, zero, ID_SIZE)) Py_RETURN_NONE;
    PyObject *raw = PyBytes_FromStringAndSize((const char *)frame + at.start, ID_SIZE);
    if (raw == NULL) return NULL;
    PyObject *text = Py_XNewRef(PyDict_GetItemWithError(self->ids, raw));
    if (text == NULL && !PyErr_Occurred()) {
        if (PyDict_GET_SIZE(self->ids) >= MOST_IDS) PyDict_Clear(self->ids);
        text = PyObject_CallOneArg(self->text_of, raw);
        if (text != NULL && PyDict_SetItem(self->ids, raw, text)) Py_CLEAR(text);
    }
    Py_DECREF(raw);
    return text;
}

static PyObject *name_by(const gathering *of, PyObject *id) {
    PyObject *completed = PyLong_FromLongLong(of->completed_ns);
    if (completed == NULL) return NULL;
    PyObject *name = PyObject_CallFunctionObjArgs(of->self->name_of, id, completed, NULL);
    Py_DECREF(completed);
    return name;
}

/* Returns the number of this combination of texts; -1 with an exception. */
static int64_t place_of(const target *to, PyObject *direction, PyObject *topic, PyObject *id) {
    PyObject *texts = PyTuple_Pack(3, direction, topic, id);
    if (texts == NULL) return -1;
    PyObject *place = PyDict_GetItemWithError(to->texts, texts);
    int64_t number = -1;
    if (place != NULL) {
        number = PyLong_AsLongLong(place);
    } else if (!PyErr_Occurred()) {
        Py_ssize_t next = PyDict_GET_SIZE(to->texts);
        place = PyLong_FromSsize_t(next);
        if (place != NULL && !PyDict_SetItem(to->texts, texts, place)) number = next;
        Py_XDECREF(place);
    }
    Py_DECREF(texts);
    return number;
}

static int add_run(const target *to, const int64_t run[RUN]) {
    Py_ssize_t size = PyByteArray_GET_SIZE(to->numbers);
    if (PyByteArray_Resize(to->numbers, size + RUN * 8)) return -1;
    memcpy(PyByteArray_AS_STRING(to->numbers) + size, run, RUN * 8);
    return 0;
}

static int add_runs(const target *to, const gathering *of, PyObject *counts, int32_t partition,
                    PyObject *topic, PyObject *id) {
    int64_t place = -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(counts); i++) {
        Py_ssize_t count = PyLong_AsSsize_t(PyList_GET_ITEM(counts, i));
        if (count == -1 && PyErr_Occurred()) return -1;
        if (count == 0) continue;
        if (place < 0) place = place_of(to, of->self->directions[of->direction], topic, id);
        if (place < 0) return -1;
        const int64_t run[RUN] = {count,     i, of->connection, of->offset,
                                  partition, of->completed_ns, place};
        if (add_run(to, run)) return -1;
    }
    return 0;
}

/* Flushes the rows if there are enough. */
static int end_if_full(const target *to) {
    Py_ssize_t rows = PyObject_Size(to->sink);
    if (rows < to->most) return rows < 0 ? -1 : 0;
    PyObject *ended = PyObject_CallNoArgs(to->full);
    Py_XDECREF(ended);
    return ended == NULL ? -1 : 0;
}

/* Passes everything behind the first `plain` batches to Python. */
static int tell_rest(const gathering *of, const uint8_t *at, int64_t size, Py_ssize_t before,
                     int32_t partition, PyObject *topic, PyObject *id) {
    PyObject *done = PyObject_CallFunction(
        of->self->rest, "y#nLOLOOiL", (const char *)at, (Py_ssize_t)size, before,
        (long long)of->connection, of->self->directions[of->direction], (long long)of->offset,
        topic, id, (int)partition, (long long)of->completed_ns);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* (offset of the first batch that is not plain, [number of records of each batch before it]) */
static PyObject *add_plain(const target *to, const gathering *of, Py_ssize_t begin,
                           Py_ssize_t end) {
    PyObject *given[] = {to->sink, of->frame, PyLong_FromSsize_t(begin), PyLong_FromSsize_t(end),
                         of->self->unpack};
    PyObject *added = NULL;
    if (given[2] != NULL && given[3] != NULL)
        added = PyObject_VectorcallMethod(of->self->add_plain, given, 5, NULL);
    Py_XDECREF(given[2]);
    Py_XDECREF(given[3]);
    if (added == NULL) return NULL;
    if (PyTuple_CheckExact(added) && PyTuple_GET_SIZE(added) == 2 &&
        PyList_CheckExact(PyTuple_GET_ITEM(added, 1)))
        return added;
    Py_DECREF(added);
    PyErr_SetString(PyExc_TypeError, "add_plain did not return (offset, list)");
    return NULL;
}

/* ---- rows of batches -------------------------------------------------------------------------- */

/* A field, and the number of records in each of its plain batches. */
typedef struct {
    PyObject *topic, *id, *counts;
    const uint8_t *at;
    int32_t partition;
} plain_field;

static int64_t get64(const uint8_t *p) {
    return (int64_t)((uint64_t)get32(p) << 32 | get32(p + 4));
}

/* Returns 1 if the checksum is right, 0 if not, -1 with an exception. The batch is complete. */
static int is_sound(const gathering *of, const uint8_t *at, int64_t size) {
    Py_ssize_t begin = (const char *)at - PyBytes_AS_STRING(of->frame);
    PyObject *found = PyObject_CallFunction(of->self->crc32c, "Onn", of->frame, begin + ATTRIBUTES,
                                            (Py_ssize_t)(begin + size));
    if (found == NULL) return -1;
    unsigned long crc = PyLong_AsUnsignedLong(found);
    Py_DECREF(found);
    if (crc == (unsigned long)-1 && PyErr_Occurred()) return -1;
    return crc == get32(at + CRC);
}

static int64_t size_of(const uint8_t *batch) { return EPOCH + (int64_t)get32(batch + LENGTH); }

/* Whether a control batch has one record, as a broker writes it at the end of a transaction: a
   key of 4 bytes, a value of 6 and no header. Sizes are zigzag-encoded. */
static int is_marker(const uint8_t *batch) {
    enum { KEY = 4, VALUE = 6 };
    static const uint8_t start[] = {2 * (6 + KEY + VALUE), 0, 0, 0, 2 * KEY};
    const uint8_t *record = batch + HEADER, *value = record + sizeof start + KEY;
    return size_of(batch) == HEADER + (int64_t)sizeof start + KEY + 1 + VALUE + 1 &&
           get32(batch + RECORD_COUNT) == 1 && !(get16(batch + ATTRIBUTES) & CODEC_MASK) &&
           !memcmp(record, start, sizeof start) && value[0] == 2 * VALUE && value[1 + VALUE] == 0;
}

/* Returns 1 if all batches are usual, 0 if not, -1 with an exception. */
static int are_usual(const gathering *of, const uint8_t *at, Py_ssize_t count) {
    for (; count--; at += size_of(at)) {
        int attributes = get16(at + ATTRIBUTES);
        if ((attributes & CONTROL && !is_marker(at)) || (attributes & CODEC_MASK) >= CODECS)
            return 0;
        int sound = is_sound(of, at, size_of(at));
        if (sound != 1) return sound;
    }
    return 1;
}

/* -1 stands for null. */
static int put_known(cells *to, int64_t value) { return cells_known(to, value, value != -1); }

static int batch_row(const gathering *of, const plain_field *field, Py_ssize_t number,
                     const uint8_t *batch) {
    static const char *const codecs[CODECS] = {"none", "gzip", "snappy", "lz4", "zstd"};
    gatherer_object *self = of->self;
    cells *at = self->batches->columns;
    int attributes = get16(batch + ATTRIBUTES), is_control = (attributes & CONTROL) != 0;
    int64_t base = get64(batch), delta = (int32_t)get32(batch + LAST_DELTA), last;
    if (delta > 0 && base > INT64_MAX - delta) last = INT64_MAX;
    else if (delta < 0 && base < INT64_MIN - delta) last = INT64_MIN;
    else last = base + delta;
    Py_ssize_t size = PyUnicode_GET_LENGTH(self->directions[of->direction]);
    int failed =
        cells_number(at++, of->connection) || cells_text(at++, self->directions[of->direction]) ||
        cells_number(at++, of->offset) || cells_number(at++, of->from->of->last_ns) ||
        cells_number(at++, of->from->key) || cells_sized_text(at++, field->topic, &size) ||
        cells_sized_text(at++, field->id, &size) || cells_number(at++, field->partition) ||
        cells_number(at++, (int32_t)number) || cells_number(at++, base) ||
        cells_number(at++, last) || cells_number(at++, batch[MAGIC]) ||
        cells_sized_literal(at++, codecs[attributes & CODEC_MASK], &size) ||
        cells_sized_literal(at++, attributes & LOG_APPEND_TIME ? "append" : "create", &size) ||
        cells_number(at++, get64(batch + MAX_TIMESTAMP)) ||
        put_known(at++, (int32_t)get32(batch + EPOCH)) ||
        put_known(at++, get64(batch + PRODUCER_ID)) ||
        put_known(at++, (int16_t)get16(batch + PRODUCER_EPOCH)) ||
        put_known(at++, (int32_t)get32(batch + SEQUENCE)) ||
        cells_bool(at++, attributes & TRANSACTIONAL) || cells_bool(at++, is_control) ||
        cells_bool(at++, 1) || cells_number(at++, size_of(batch)) ||
        (is_control ? cells_number(at++, 1)
                    : cells_value(at++, PyList_GET_ITEM(field->counts, number))) ||
        cells_bool(at++, 0);
    int full = held_end(self->batches, size, failed);
    if (full <= 0) return full;
    PyObject *done = PyObject_CallFunction(self->full, "s", "batches");
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int call_sink(gatherer_object *self, PyObject *name) {
    PyObject *done = PyObject_CallMethodNoArgs(self->named.sink, name);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Leaves a field with anything unusual to Python. */
static int leave(const gathering *of, const plain_field *field, int64_t size) {
    const frame *in = of->from->of;
    PyObject *done = PyObject_CallFunction(
        of->self->left, "OiLLLLiLLOOiy#", of->from->on, of->from->key, (long long)in->offset,
        (long long)in->size, (long long)in->first_ns, (long long)in->last_ns, (int)in->capture,
        (long long)in->place, (long long)of->completed_ns, field->topic, field->id,
        (int)field->partition, (const char *)field->at, (Py_ssize_t)size);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Makes the rows of a field whose plain batches were added. `is_whole`: the field has no other
   bytes. */
static int checked_rows(const gathering *of, const plain_field *field, int64_t size,
                        int is_whole) {
    gatherer_object *self = of->self;
    const uint8_t *at = field->at;
    Py_ssize_t count = PyList_GET_SIZE(field->counts);
    int usual = is_whole ? are_usual(of, at, count) : 0;
    if (usual < 0) return -1;
    if (!usual) return call_sink(self, self->take_back) || leave(of, field, size) ? -1 : 0;
    for (Py_ssize_t i = 0; i < count && self->batches != NULL; i++, at += size_of(at))
        if (batch_row(of, field, i, at)) return -1;
    if (add_runs(&self->named, of, field->counts, field->partition, field->topic, field->id))
        return -1;
    return end_if_full(&self->named);
}

/* ---- a field of a frame ------------------------------------------------------------------------ */

/* Returns 0, or -1 with an exception. */
static int gather_field(const gathering *of, const located *from) {
    gatherer_object *self = of->self;
    const uint8_t *frame = (const uint8_t *)PyBytes_AS_STRING(of->frame);
    Py_ssize_t begin = from->records.start, size = from->records.size;
    plain_field field = {NULL, NULL, NULL, frame + begin, from->partition};
    PyObject *added = NULL;
    int failed = -1, is_checked = self->crc32c != NULL;
    field.id = text_of_id(self, frame, from->id);
    if (field.id == NULL) return -1;
    if (from->name.size >= 0)
        field.topic = PyUnicode_DecodeUTF8((const char *)frame + from->name.start,
                                           from->name.size, NULL);
    else
        field.topic = field.id == Py_None ? Py_NewRef(Py_None) : name_by(of, field.id);
    if (field.topic == NULL) goto done;
    int is_unnamed = field.topic == Py_None && field.id != Py_None;
    if (is_checked && is_unnamed) { /* Python looks for the name later */
        failed = leave(of, &field, size);
        goto done;
    }
    const target *to = is_unnamed ? &self->unnamed : &self->named;
    if (is_checked && call_sink(self, self->mark)) goto done;
    added = add_plain(to, of, begin, begin + size);
    if (added == NULL) goto done;
    field.counts = PyTuple_GET_ITEM(added, 1);
    Py_ssize_t end = PyLong_AsSsize_t(PyTuple_GET_ITEM(added, 0));
    if (PyErr_Occurred()) goto done;
    if (is_checked) {
        failed = checked_rows(of, &field, size, end == begin + size);
        goto done;
    }
    failed = add_runs(to, of, field.counts, field.partition, field.topic, field.id) ||
             end_if_full(to);
    if (!failed && end != begin + size)
        failed = tell_rest(of, field.at, size, PyList_GET_SIZE(field.counts), field.partition,
                           field.topic, field.id);
done:
    Py_DECREF(field.id);
    Py_XDECREF(field.topic);
    Py_XDECREF(added);
    return failed ? -1 : 0;
}

static int is_tuple(PyObject *given, const char *otherwise) {
    if (PyTuple_Check(given)) return 1;
    PyErr_SetString(PyExc_TypeError, otherwise);
    return 0;
}

/* Returns the places of all fields as bytes; None if Python has to locate them. */
static PyObject *locate(const gathering *of, const way *by) {
    Py_ssize_t size = PyBytes_GET_SIZE(of->frame), end;
    const uint8_t *frame = (const uint8_t *)PyBytes_AS_STRING(of->frame);
    if (by->locate == NULL || size < SIZE || (int32_t)get32(frame) != size - SIZE) Py_RETURN_NONE;
    PyObject *given[] = {of->frame, of->self->start, by->header};
    PyObject *found = PyObject_Vectorcall(by->locate, given, 3, NULL), *places;
    if (found == NULL || found == Py_None) return found;
    if (!is_tuple(found, "locate did not return (bytes, end)") ||
        !PyArg_ParseTuple(found, "Sn", &places, &end))
        places = NULL;
    else places = Py_NewRef(end == size ? places : Py_None);
    Py_DECREF(found);
    return places;
}

static int is_within(place at, Py_ssize_t size) {
    return at.size < 0 || (at.start >= 0 && at.start <= size - at.size);
}

/* Returns 1 if all fields were collected, 0 if the frame is left to Python, -1 with an exception.
   */
static int gather_fields(const gathering *of, const way *by) {
    enum { PARTITION, RECORDS };
    PyObject *places = locate(of, by);
    if (places == NULL || places == Py_None) {
        Py_XDECREF(places);
        return places == NULL ? -1 : 0;
    }
    const char *frame = PyBytes_AS_STRING(of->frame);
    Py_ssize_t width = 2 + (by->name_at >= 0) + (by->id_at >= 0);
    Py_ssize_t count = PyBytes_GET_SIZE(places) / (width * (Py_ssize_t)sizeof(place));
    const char *row = PyBytes_AS_STRING(places);
    Py_ssize_t size = PyBytes_GET_SIZE(of->frame);
    int gone = 1;
    for (Py_ssize_t i = 0; i < count && gone == 1; i++, row += width * (Py_ssize_t)sizeof(place)) {
        place at[4] = {{0}};
        memcpy(at, row, (size_t)width * sizeof(place));
        if (at[RECORDS].size <= 0) continue;
        if (at[PARTITION].size != 4 || !is_within(at[0], size) || !is_within(at[1], size) ||
            !is_within(at[2], size) || !is_within(at[3], size)) {
            PyErr_SetString(PyExc_ValueError, "a place is outside the frame");
            gone = -1;
            break;
        }
        static const place none = {-1, -1};
        const located field = {
            .name = by->name_at >= 0 ? at[by->name_at] : none,
            .id = by->id_at >= 0 ? at[by->id_at] : none,
            .records = at[RECORDS],
            .partition = (int32_t)get32((const uint8_t *)frame + at[PARTITION].start),
        };
        if (gather_field(of, &field)) gone = -1;
    }
    Py_DECREF(places);
    return gone;
}

static void forget_ways(gatherer_object *self, int from) {
    while (self->way_count > from) {
        self->way_count--;
        Py_CLEAR(self->ways[self->way_count].locate);
        Py_CLEAR(self->ways[self->way_count].header);
    }
}

static int note_way(gatherer_object *self, int key, int version, PyObject *given) {
    way made = {.key = key, .version = version, .name_at = -1, .id_at = -1};
    if (given != Py_None) {
        if (!is_tuple(given, "places_of did not return four values") ||
            !PyArg_ParseTuple(given, "OOii", &made.locate, &made.header, &made.name_at, &made.id_at))
            return -1;
        if (made.name_at > 3 || made.id_at > 3) {
            PyErr_SetString(PyExc_ValueError, "expected at most four columns");
            return -1;
        }
        Py_INCREF(made.locate);
        Py_INCREF(made.header);
    }
    if (self->way_count == MOST_WAYS) forget_ways(self, MOST_WAYS - 1);
    self->ways[self->way_count++] = made;
    return 0;
}

/* NULL with an exception. */
static const way *way_of(gatherer_object *self, int key, int version) {
    for (int i = 0; i < self->way_count; i++)
        if (self->ways[i].version == version && self->ways[i].key == key) return &self->ways[i];
    PyObject *given = PyObject_CallFunction(self->places_of, "ii", key, version);
    int failed = given == NULL || note_way(self, key, version, given);
    Py_XDECREF(given);
    return failed ? NULL : &self->ways[self->way_count - 1];
}

int gather(PyObject *gatherer, const carrier *from) {
    gatherer_object *self = (gatherer_object *)gatherer;
    gathering of = {self, from->raw, from->connection, from->of->offset, from->completed_ns,
                    from->key != PRODUCE, from};
    if (self->places_of == NULL) { /* the object is being destroyed */
        PyErr_SetString(PyExc_RuntimeError, "the Gatherer was destroyed");
        return -1;
    }
    const way *known = way_of(self, from->key, from->version);
    if (known == NULL) return -1;
    const way by = *known; /* the callback may look up other entries */
    Py_XINCREF(by.locate);
    Py_XINCREF(by.header);
    int gone = gather_fields(&of, &by);
    Py_XDECREF(by.locate);
    Py_XDECREF(by.header);
    if (gone || self->crc32c != NULL) return gone;
    PyObject *result = PyObject_CallFunction(self->otherwise, "LiiLLO", (long long)from->connection,
                                           from->key, from->version, (long long)from->of->offset,
                                           (long long)from->completed_ns, from->raw);
    int taken = result == NULL ? -1 : PyObject_IsTrue(result);
    Py_XDECREF(result);
    return taken;
}

/* ---- the object ----------------------------------------------------------------------------- */

static PyObject *call(PyObject *object, PyObject *args, PyObject *keywords) {
    long long connection, offset, completed_ns;
    int key, version;
    PyObject *raw;
    if (refuse_keywords(keywords, "Gatherer")) return NULL;
    if (!PyArg_ParseTuple(args, "LiiLLS", &connection, &key, &version, &offset, &completed_ns,
                          &raw))
        return NULL;
    const frame of = {.offset = offset, .size = PyBytes_GET_SIZE(raw)};
    if (((gatherer_object *)object)->crc32c != NULL) {
        PyErr_SetString(PyExc_TypeError, "a Gatherer that checks batches is not callable");
        return NULL;
    }
    const carrier from = {connection, completed_ns, &of, Py_None, key, version, raw};
    int taken = gather(object, &from);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

static int note_target(target *to, PyObject *given) {
    PyObject *sink, *numbers, *texts, *full;
    long long most;
    if (!PyArg_ParseTuple(given, "OO!O!OL;where rows go", &sink, &PyByteArray_Type, &numbers,
                          &PyDict_Type, &texts, &full, &most))
        return -1;
    to->sink = Py_NewRef(sink);
    to->numbers = Py_NewRef(numbers);
    to->texts = Py_NewRef(texts);
    to->full = Py_NewRef(full);
    to->most = most;
    return 0;
}

/* Gatherer(places_of, text_of, name_of, unpack, rest, otherwise, named, unnamed, checked).
   places_of(api key, version) returns how the fields of such frames are located, or None.
   text_of(id) returns a topic's id as text. name_of(id as text, nanoseconds) returns the topic's
   name at that time, or None. `unpack` is passed to the sinks. rest(field, number of plain
   batches, connection, direction, offset, topic, topic id, partition, nanoseconds) takes what
   follows the plain batches of a field. otherwise(connection, api key, version, offset,
   nanoseconds, frame) takes a frame that Python has to read, and returns whether its records were
   collected. `named` and `unnamed` are the destinations for topics with and without a name:
   (sink, numbers, texts, full, most); full() is called when there are `most` rows or more.
   `checked` is None if only records are collected; a Gatherer is then called with the arguments
   of `otherwise`. If not, it is (HeldRows of batches or None, crc32c(bytes, begin, end),
   full(table), left(connection, api key, offset, size, first and last nanoseconds, capture and
   place of the frame, nanoseconds, topic, topic id, partition, field)); `left` makes the rows of
   an unusual field. */
static PyObject *new_gatherer(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *places_of, *text_of, *name_of, *unpack, *rest, *otherwise, *named, *unnamed, *checked;
    PyObject *batches = Py_None, *crc32c = NULL, *full = NULL, *left = NULL;
    if (refuse_keywords(keywords, "Gatherer")) return NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOO!O!O", &places_of, &text_of, &name_of, &unpack, &rest,
                          &otherwise, &PyTuple_Type, &named, &PyTuple_Type, &unnamed, &checked))
        return NULL;
    if (checked != Py_None) {
        if (!PyTuple_Check(checked)) {
            PyErr_SetString(PyExc_TypeError, "`checked` must be a tuple or None");
            return NULL;
        }
        if (!PyArg_ParseTuple(checked, "OOOO", &batches, &crc32c, &full, &left)) return NULL;
    }
    gatherer_object *self = (gatherer_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->places_of = Py_NewRef(places_of);
    self->text_of = Py_NewRef(text_of);
    self->name_of = Py_NewRef(name_of);
    self->unpack = Py_NewRef(unpack);
    self->rest = Py_NewRef(rest);
    self->otherwise = Py_NewRef(otherwise);
    self->crc32c = Py_XNewRef(crc32c);
    self->full = Py_XNewRef(full);
    self->left = Py_XNewRef(left);
    self->ids = PyDict_New();
    self->start = PyLong_FromLong(SIZE);
    self->add_plain = PyUnicode_InternFromString("add_plain");
    self->mark = PyUnicode_InternFromString("mark");
    self->take_back = PyUnicode_InternFromString("take_back");
    self->directions[0] = PyUnicode_InternFromString("request");
    self->directions[1] = PyUnicode_InternFromString("response");
    self->batches = held_of(batches, BATCH_CODES);
    if (PyErr_Occurred() || note_target(&self->named, named) ||
        note_target(&self->unnamed, unnamed))
        Py_CLEAR(self);
    return (PyObject *)self;
}

#define EACH(DO)                                                                                   \
    DO(self->places_of); DO(self->text_of); DO(self->name_of); DO(self->unpack); DO(self->rest);     \
    DO(self->otherwise); DO(self->ids);                                                            \
    DO(self->named.sink); DO(self->named.numbers); DO(self->named.texts);                     \
    DO(self->named.full);                                                                          \
    DO(self->crc32c); DO(self->full); DO(self->left); DO(self->batches);                                           \
    DO(self->unnamed.sink); DO(self->unnamed.numbers); DO(self->unnamed.texts);               \
    DO(self->unnamed.full);

/* The callbacks may refer to this object. */
static int traverse(PyObject *object, visitproc visit, void *arg) {
    gatherer_object *self = (gatherer_object *)object;
    EACH(Py_VISIT)
    return 0;
}

static int clear(PyObject *object) {
    gatherer_object *self = (gatherer_object *)object;
    EACH(Py_CLEAR)
    return 0;
}

static void dealloc(PyObject *object) {
    gatherer_object *self = (gatherer_object *)object;
    PyObject_GC_UnTrack(object);
    clear(object);
    forget_ways(self, 0);
    Py_CLEAR(self->start);
    Py_CLEAR(self->mark);
    Py_CLEAR(self->take_back);
    Py_CLEAR(self->add_plain);
    Py_CLEAR(self->directions[0]);
    Py_CLEAR(self->directions[1]);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject gatherer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Gatherer",
    .tp_basicsize = sizeof(gatherer_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_gatherer,
    .tp_call = call,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
};
