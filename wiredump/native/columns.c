/* Rows of the table `frames` as columns: those made here, and those that Python made, in the order
   in which they came. Taken out sorted by what names a row, as buffers of Arrow's layout. */
#include "wire.h"

frame_row *columns_add(columns_object *self) {
    if (UNLIKELY(self->end == self->room)) {
        Py_ssize_t used = self->end - self->first;
        if (self->first > used) {
            memmove(self->rows, self->rows + self->first, (size_t)used * sizeof(frame_row));
            self->first = 0;
            self->end = used;
        } else {
            Py_ssize_t room = self->room ? self->room * 2 : 4096;
            frame_row *grown = PyMem_Realloc(self->rows, (size_t)room * sizeof(frame_row));
            if (grown == NULL) {
                PyErr_NoMemory();
                return NULL;
            }
            self->rows = grown;
            self->room = room;
        }
    }
    return &self->rows[self->end++];
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
    int nulls = 0, direction, sasl;
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
    direction = strcmp(name, "request") != 0;
    frame_row *made = columns_add(self);
    if (made == NULL) return NULL;
    made->connection = values[0];
    made->offset = values[2];
    made->size = values[3];
    made->missing = values[4];
    made->first_ns = values[5];
    made->last_ns = values[6];
    made->capture = (int32_t)values[7];
    made->packet = values[8];
    made->api_key = (int16_t)values[9];
    made->api_version = (int16_t)values[10];
    made->correlation_id = (int32_t)values[11];
    made->direction = (uint8_t)direction;
    made->nulls = (uint8_t)nulls;
    made->sasl = (uint8_t)sasl;
    Py_RETURN_NONE;
}

/* ---- sorted, and out ------------------------------------------------------------------------ */

typedef struct {
    int64_t connection;
    uint64_t place; /* direction, then offset */
    uint32_t row;
} order;

static order order_of(const frame_row *row, Py_ssize_t number) {
    /* Offsets are not negative; where one were, as unsigned it would still have one place. */
    uint64_t offset = (uint64_t)row->offset & INT64_MAX;
    order made = {row->connection, (uint64_t)row->direction << 63 | offset, (uint32_t)number};
    return made;
}

static int before(const order *a, const order *b) {
    if (a->connection != b->connection) return a->connection < b->connection;
    return a->place <= b->place;
}

/* Merge sort, stable: runs of rows are often in order already. */
static void sort(order *rows, order *other, Py_ssize_t count) {
    if (count < 2) return;
    Py_ssize_t half = count / 2, i = 0, j = half, k = 0;
    sort(rows, other, half);
    sort(rows + half, other, count - half);
    if (before(&rows[half - 1], &rows[half])) return;
    memcpy(other, rows, (size_t)half * sizeof(order));
    while (i < half && j < count) rows[k++] = before(&other[i], &rows[j]) ? other[i++] : rows[j++];
    while (i < half) rows[k++] = other[i++];
}

#define COLUMN(type, field)                                                                       \
    do {                                                                                          \
        PyObject *data = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(type));      \
        if (data == NULL) goto failed;                                                            \
        type *to = (type *)(void *)PyBytes_AS_STRING(data);                                       \
        for (Py_ssize_t i = 0; i < count; i++) to[i] = rows[sorted[i].row].field;                 \
        if (PyList_Append(out, data)) {                                                           \
            Py_DECREF(data);                                                                      \
            goto failed;                                                                          \
        }                                                                                         \
        Py_DECREF(data);                                                                          \
    } while (0)

/* A bit a row, set where `flag` is not; None where it is set everywhere. */
static PyObject *validity(const frame_row *rows, const order *sorted, Py_ssize_t count, int flag) {
    Py_ssize_t nulls = 0;
    PyObject *made = PyBytes_FromStringAndSize(NULL, (count + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((count + 7) / 8));
    for (Py_ssize_t i = 0; i < count; i++) {
        if (rows[sorted[i].row].nulls & flag) nulls++;
        else to[i >> 3] |= (uint8_t)(1 << (i & 7));
    }
    if (nulls) return made;
    Py_DECREF(made);
    return Py_NewRef(Py_None);
}

/* Whether it is a SASL token: a bit a row. */
static PyObject *flags(const frame_row *rows, const order *sorted, Py_ssize_t count) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, (count + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((count + 7) / 8));
    for (Py_ssize_t i = 0; i < count; i++)
        if (rows[sorted[i].row].sasl) to[i >> 3] |= (uint8_t)(1 << (i & 7));
    return made;
}

/* As texts: where each begins, and all of them. */
static PyObject *directions(const frame_row *rows, const order *sorted, Py_ssize_t count) {
    static const char *const names[2] = {"request", "response"};
    static const int lengths[2] = {7, 8};
    PyObject *places = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
    PyObject *texts = PyBytes_FromStringAndSize(NULL, count * 8);
    if (places == NULL || texts == NULL) {
        Py_XDECREF(places);
        Py_XDECREF(texts);
        return NULL;
    }
    int32_t *to = (int32_t *)(void *)PyBytes_AS_STRING(places), at = 0;
    char *text = PyBytes_AS_STRING(texts);
    for (Py_ssize_t i = 0; i < count; i++) {
        int which = rows[sorted[i].row].direction != 0;
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
    if (count < 0 || count > self->end - self->first || count > INT32_MAX / 8) {
        PyErr_SetString(PyExc_ValueError, "there are not so many rows");
        return NULL;
    }
    const frame_row *rows = self->rows + self->first;
    order *sorted = PyMem_Malloc((size_t)(count ? count : 1) * sizeof(order));
    order *other = PyMem_Malloc((size_t)(count ? count : 1) * sizeof(order));
    PyObject *out = PyList_New(0);
    if (sorted == NULL || other == NULL || out == NULL) {
        if (out != NULL) PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t i = 0; i < count; i++) sorted[i] = order_of(&rows[i], i);
    sort(sorted, other, count);
    COLUMN(int64_t, connection);
    PyObject *texts = directions(rows, sorted, count);
    if (texts == NULL || PyList_Append(out, texts)) {
        Py_XDECREF(texts);
        goto failed;
    }
    Py_DECREF(texts);
    COLUMN(int64_t, offset);
    COLUMN(int64_t, size);
    COLUMN(int64_t, missing);
    COLUMN(int64_t, first_ns);
    COLUMN(int64_t, last_ns);
    COLUMN(int32_t, capture);
    COLUMN(int64_t, packet);
    COLUMN(int16_t, api_key);
    COLUMN(int16_t, api_version);
    COLUMN(int32_t, correlation_id);
    PyObject *tokens = flags(rows, sorted, count);
    if (tokens == NULL || PyList_Append(out, tokens)) {
        Py_XDECREF(tokens);
        goto failed;
    }
    Py_DECREF(tokens);
    for (int flag = NULL_SIZE; flag <= NULL_CORRELATION; flag <<= 1) {
        PyObject *bits = validity(rows, sorted, count, flag);
        if (bits == NULL || PyList_Append(out, bits)) {
            Py_XDECREF(bits);
            goto failed;
        }
        Py_DECREF(bits);
    }
    self->first += count;
    if (self->first == self->end) self->first = self->end = 0;
    PyMem_Free(sorted);
    PyMem_Free(other);
    return out;
failed:
    PyMem_Free(sorted);
    PyMem_Free(other);
    Py_XDECREF(out);
    return NULL;
}

static Py_ssize_t length(PyObject *object) {
    columns_object *self = (columns_object *)object;
    return self->end - self->first;
}

static PyObject *new_columns(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    if (PyTuple_GET_SIZE(args) || keywords != NULL) {
        PyErr_SetString(PyExc_TypeError, "FrameColumns takes nothing");
        return NULL;
    }
    return type->tp_alloc(type, 0);
}

static void dealloc(PyObject *object) {
    PyMem_Free(((columns_object *)object)->rows);
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
