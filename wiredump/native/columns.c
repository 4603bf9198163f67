/* Rows of the table `frames` as columns, whether they were made here or in Python, in the order in
   which they came. They are returned sorted by their key, as buffers in Arrow's layout. */
#include "wire.h"

#define EACH_COLUMN(DO)                                                                           \
    DO(connection)                                                                                \
    DO(offset)                                                                                    \
    DO(size)                                                                                      \
    DO(missing)                                                                                   \
    DO(first_ns)                                                                                  \
    DO(last_ns)                                                                                   \
    DO(packet)                                                                                    \
    DO(capture)                                                                                   \
    DO(correlation_id)                                                                            \
    DO(api_key)                                                                                   \
    DO(api_version)                                                                               \
    DO(flags)

/* Another size for one of them: of room for 1 at least, and as it was where there is none. */
static int resize(void *column, Py_ssize_t room, size_t width) {
    void *before;
    memcpy(&before, column, sizeof(before));
    void *after = PyMem_Realloc(before, (size_t)room * width);
    if (after == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(column, &after, sizeof(after));
    return 0;
}

static void forget(columns_object *self) {
#define FREE(field)                                                                               \
    PyMem_Free(self->field);                                                                      \
    self->field = NULL;
    EACH_COLUMN(FREE)
#undef FREE
    self->count = self->room = 0;
}

/* A row group of wiredump/tables/writer.py, and some of what a chunk may have beyond it. All at once:
   what is never touched is not resident, and arrays that grow leave holes where they were. */
enum { USUAL_ROOM = 65536 + 4096 };

/* `room` is set once all have it: what is less than they have does no harm. */
static int grow(columns_object *self) {
    Py_ssize_t room = self->room < USUAL_ROOM ? USUAL_ROOM : self->room + self->room / 2;
#define GROW(field)                                                                               \
    if (resize(&self->field, room, sizeof(*self->field))) return -1;
    EACH_COLUMN(GROW)
#undef GROW
    self->room = room;
    return 0;
}

int columns_add(columns_object *self, const frame_row *row) {
    if (UNLIKELY(self->count == self->room) && grow(self)) return -1;
    Py_ssize_t at = self->count++;
#define SET(field) self->field[at] = row->field;
    EACH_COLUMN(SET)
#undef SET
    return 0;
}

/* An integer of so many bits: the nearest there is, as wiredump/tables/arrow.py has it. */
static int number(PyObject *value, int bits, int64_t *out) {
    int overflow;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (found == -1 && !overflow && PyErr_Occurred()) return -1;
    int64_t most = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (overflow) found = overflow > 0 ? INT64_MAX : INT64_MIN;
    *out = found > most ? most : found < -most - 1 ? -most - 1 : found;
    return 0;
}

enum { COLUMNS = 13 };

static PyObject *append(PyObject *object, PyObject *row) {
    columns_object *self = (columns_object *)object;
    static const int bits[COLUMNS] = {64, 0, 64, 64, 64, 64, 64, 32, 64, 16, 16, 32, 0};
    int64_t values[COLUMNS] = {0};
    int nulls = 0, sasl;
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "a row of frames has 13 values");
        return NULL;
    }
    for (int i = 0; i < COLUMNS; i++) {
        PyObject *value = PyTuple_GET_ITEM(row, i);
        if (!bits[i]) continue;
        if (value == Py_None && (i == 3 || (i >= 9 && i <= 11)))
            nulls |= i == 3 ? NULL_SIZE : i == 9 ? NULL_KEY : i == 10 ? NULL_VERSION
                                                                      : NULL_CORRELATION;
        else if (number(value, bits[i], &values[i]))
            return NULL;
    }
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(row, 1));
    if (name == NULL || (sasl = PyObject_IsTrue(PyTuple_GET_ITEM(row, 12))) < 0) return NULL;
    if (strcmp(name, "request") != 0) nulls |= RESPONSE;
    frame_row made = {
        .connection = values[0],
        .offset = values[2],
        .size = values[3],
        .missing = values[4],
        .first_ns = values[5],
        .last_ns = values[6],
        .capture = (int32_t)values[7],
        .packet = values[8],
        .api_key = (int16_t)values[9],
        .api_version = (int16_t)values[10],
        .correlation_id = (int32_t)values[11],
        .flags = (uint8_t)(nulls | (sasl ? SASL : 0)),
    };
    if (columns_add(self, &made)) return NULL;
    Py_RETURN_NONE;
}

/* ---- sorted, and out ------------------------------------------------------------------------ */

static int before(const columns_object *in, uint32_t a, uint32_t b) {
    if (in->connection[a] != in->connection[b]) return in->connection[a] < in->connection[b];
    int side = in->flags[a] & RESPONSE, other = in->flags[b] & RESPONSE;
    if (side != other) return side < other;
    /* Offsets are not negative; where one were, as unsigned it would still have one place. */
    return ((uint64_t)in->offset[a] & INT64_MAX) <= ((uint64_t)in->offset[b] & INT64_MAX);
}

/* Merge sort, stable: runs of rows are often in order already. `other` has room for half. */
static void sort(const columns_object *in, uint32_t *rows, uint32_t *other, Py_ssize_t count) {
    if (count < 2) return;
    Py_ssize_t half = count / 2, i = 0, j = half, k = 0;
    sort(in, rows, other, half);
    sort(in, rows + half, other, count - half);
    if (before(in, rows[half - 1], rows[half])) return;
    memcpy(other, rows, (size_t)half * sizeof(*rows));
    while (i < half && j < count)
        rows[k++] = before(in, other[i], rows[j]) ? other[i++] : rows[j++];
    while (i < half) rows[k++] = other[i++];
}

/* Numbers in order, and the array less them. */
#define COLUMN(field)                                                                             \
    do {                                                                                          \
        size_t width = sizeof(*self->field);                                                      \
        PyObject *data = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)width);              \
        if (data == NULL) goto failed;                                                            \
        uint8_t *to = (uint8_t *)PyBytes_AS_STRING(data);                                         \
        for (Py_ssize_t i = 0; i < count; i++)                                                    \
            memcpy(to + (size_t)i * width, &self->field[sorted[i]], width);                       \
        if (append_new(out, data)) goto failed;                                                   \
        LESSEN(field);                                                                            \
    } while (0)

#define LESSEN(field)                                                                             \
    do {                                                                                          \
        if (!count) break;                                                                        \
        memmove(self->field, self->field + count, (size_t)rest * sizeof(*self->field));           \
        if (resize(&self->field, rest, sizeof(*self->field))) goto failed;                        \
    } while (0)

static int append_new(PyObject *list, PyObject *each) {
    if (each == NULL) return -1;
    int status = PyList_Append(list, each);
    Py_DECREF(each);
    return status;
}

/* A bit a row, set where `wanted` of the flag is. */
static PyObject *bits(const columns_object *self, const uint32_t *sorted, Py_ssize_t count,
                      int flag, int wanted) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, (count + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((count + 7) / 8));
    for (Py_ssize_t i = 0; i < count; i++)
        if (((self->flags[sorted[i]] & flag) == 0) != wanted) to[i >> 3] |= (uint8_t)(1 << (i & 7));
    return made;
}

/* The same, set where the flag is not; None where it is set everywhere. */
static PyObject *validity(const columns_object *self, const uint32_t *sorted, Py_ssize_t count,
                          int flag) {
    int any = 0;
    for (Py_ssize_t i = 0; i < count; i++) any |= self->flags[i];
    return any & flag ? bits(self, sorted, count, flag, 0) : Py_NewRef(Py_None);
}

/* As texts: where each begins, and all of them. */
static PyObject *directions(const columns_object *self, const uint32_t *sorted, Py_ssize_t count) {
    static const char *const names[2] = {"request", "response"};
    static const int lengths[2] = {7, 8};
    Py_ssize_t responses = 0;
    for (Py_ssize_t i = 0; i < count; i++) responses += (self->flags[i] & RESPONSE) != 0;
    PyObject *places = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
    PyObject *texts = PyBytes_FromStringAndSize(NULL, count * lengths[0] + responses);
    if (places == NULL || texts == NULL) {
        Py_XDECREF(places);
        Py_XDECREF(texts);
        return NULL;
    }
    int32_t *to = (int32_t *)(void *)PyBytes_AS_STRING(places), at = 0;
    char *text = PyBytes_AS_STRING(texts);
    for (Py_ssize_t i = 0; i < count; i++) {
        int which = (self->flags[sorted[i]] & RESPONSE) != 0;
        to[i] = at;
        memcpy(text + at, names[which], (size_t)lengths[which]);
        at += lengths[which];
    }
    to[count] = at;
    return Py_BuildValue("(NN)", places, texts);
}

/* take(count) -> [connection, direction (places and texts), offset, size, ... correlation_id, sasl
   (a bit each), validity of size, api_key, api_version, correlation_id]: `count` rows, sorted. */
static PyObject *take(PyObject *object, PyObject *argument) {
    columns_object *self = (columns_object *)object;
    Py_ssize_t count = PyLong_AsSsize_t(argument);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 0 || count > self->count || count > INT32_MAX / 8) {
        PyErr_SetString(PyExc_ValueError, "there are not so many rows");
        return NULL;
    }
    Py_ssize_t rest = self->count - count;
    uint32_t *sorted = PyMem_Malloc((size_t)(count + 1) * sizeof(*sorted));
    uint32_t *other = PyMem_Malloc((size_t)(count / 2 + 1) * sizeof(*other));
    PyObject *out = PyList_New(0);
    if (sorted == NULL || other == NULL || out == NULL) {
        if (out != NULL) PyErr_NoMemory();
        goto nothing;
    }
    for (Py_ssize_t i = 0; i < count; i++) sorted[i] = (uint32_t)i;
    sort(self, sorted, other, count);
    COLUMN(connection);
    if (append_new(out, directions(self, sorted, count))) goto failed;
    COLUMN(offset);
    COLUMN(size);
    COLUMN(missing);
    COLUMN(first_ns);
    COLUMN(last_ns);
    COLUMN(capture);
    COLUMN(packet);
    COLUMN(api_key);
    COLUMN(api_version);
    COLUMN(correlation_id);
    if (append_new(out, bits(self, sorted, count, SASL, 1))) goto failed;
    for (int flag = NULL_SIZE; flag <= NULL_CORRELATION; flag <<= 1)
        if (append_new(out, validity(self, sorted, count, flag))) goto failed;
    LESSEN(flags);
    self->count = self->room = rest;
    PyMem_Free(sorted);
    PyMem_Free(other);
    return out;
failed: /* columns of different lengths are no rows */
    forget(self);
nothing:
    PyMem_Free(sorted);
    PyMem_Free(other);
    Py_XDECREF(out);
    return NULL;
}

static Py_ssize_t length(PyObject *object) {
    columns_object *self = (columns_object *)object;
    return self->count;
}

static PyObject *new_columns(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    if (PyTuple_GET_SIZE(args) || keywords != NULL) {
        PyErr_SetString(PyExc_TypeError, "FrameColumns takes nothing");
        return NULL;
    }
    return type->tp_alloc(type, 0);
}

static void dealloc(PyObject *object) {
    forget((columns_object *)object);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"append", append, METH_O, NULL}, {"take", take, METH_O, NULL}, {0}};
static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject columns_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.FrameColumns",
    .tp_basicsize = sizeof(columns_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_columns,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_as_sequence = &as_sequence,
};
