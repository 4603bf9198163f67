/* Rows of tables as Python made them: they are collected until a row group is full, and turned into
   columns in Arrow's layout. wiredump/tables/held_rows.py does the same in Python; what is not taken
   here (a value of an unexpected type or out of range) goes through pyarrow. */
#include "wire.h"

#include <structmember.h>

enum { MOST_SIZED = 32 };

typedef struct {
    PyObject_HEAD
    PyObject *rows;           /* a list of tuples */
    Py_ssize_t number, size;  /* rows held elsewhere, and the length of all text */
    Py_ssize_t most_rows, most_size;
    Py_ssize_t count, places[MOST_SIZED]; /* of the columns of text and binary */
} held_object;

/* ---- collecting ------------------------------------------------------------------------------- */

static Py_ssize_t length_of(PyObject *value) {
    if (value == Py_None) return 0;
    if (PyUnicode_CheckExact(value)) return PyUnicode_GET_LENGTH(value);
    return PyObject_Size(value);
}

/* 1 if the row group is full, 0 if not, -1 with an exception. */
static int held_add(held_object *self, PyObject *row) {
    Py_ssize_t size = self->size;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        if (self->places[i] >= PyTuple_GET_SIZE(row)) {
            PyErr_SetString(PyExc_IndexError, "the row is shorter than its table");
            return -1;
        }
        Py_ssize_t length = length_of(PyTuple_GET_ITEM(row, self->places[i]));
        if (length < 0) return -1;
        size += length;
    }
    if (PyList_Append(self->rows, row)) return -1;
    self->size = size;
    return self->number + PyList_GET_SIZE(self->rows) >= self->most_rows ||
           size >= self->most_size;
}

/* feed(iterator, {table: HeldRows}) -> None at the end of the iterator, or what Python must do now:
   (table, None) if its row group is full, (table, Piece) to add that. Other tables are ignored. */
PyObject *feed_rows(PyObject *module, PyObject *args) {
    PyObject *rows, *held, *pair;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &rows, &PyDict_Type, &held)) return NULL;
    if (!PyIter_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "feed_rows(iterator, dict)");
        return NULL;
    }
    while ((pair = PyIter_Next(rows)) != NULL) {
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
            Py_DECREF(pair);
            PyErr_SetString(PyExc_TypeError, "rows are pairs of a table and a row");
            return NULL;
        }
        PyObject *name = PyTuple_GET_ITEM(pair, 0), *row = PyTuple_GET_ITEM(pair, 1);
        PyObject *to = PyDict_GetItemWithError(held, name);
        if (to == NULL && !PyErr_Occurred()) {
            Py_DECREF(pair);
            continue;
        }
        if (to == NULL || !Py_IS_TYPE(to, &held_type) || !PyTuple_Check(row)) {
            if (to != NULL) return pair;
            Py_DECREF(pair);
            return NULL;
        }
        Py_INCREF(to);
        int full = held_add((held_object *)to, row);
        Py_DECREF(to);
        PyObject *found = full > 0 ? PyTuple_Pack(2, name, Py_None) : NULL;
        Py_DECREF(pair);
        if (full) return found;
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *held_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *places;
    Py_ssize_t most_rows, most_size;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "HeldRows takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!nn", &PyTuple_Type, &places, &most_rows, &most_size))
        return NULL;
    if (PyTuple_GET_SIZE(places) > MOST_SIZED) {
        PyErr_SetString(PyExc_ValueError, "too many columns of text");
        return NULL;
    }
    held_object *self = (held_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->most_rows = most_rows;
    self->most_size = most_size;
    self->rows = PyList_New(0);
    for (Py_ssize_t i = 0; self->rows != NULL && i < PyTuple_GET_SIZE(places); i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        if (place < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a place is not negative");
            break;
        }
        self->places[self->count++] = place;
    }
    if (!PyErr_Occurred()) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int held_traverse(held_object *self, visitproc visit, void *arg) {
    Py_VISIT(self->rows);
    return 0;
}

static int held_clear(held_object *self) {
    Py_CLEAR(self->rows);
    return 0;
}

static void held_dealloc(held_object *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->rows);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef held_members[] = {
    {"rows", T_OBJECT_EX, offsetof(held_object, rows), READONLY, NULL},
    {"number", T_PYSSIZET, offsetof(held_object, number), 0, NULL},
    {"size", T_PYSSIZET, offsetof(held_object, size), 0, NULL},
    {0},
};

PyTypeObject held_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.HeldRows",
    .tp_basicsize = sizeof(held_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = held_new,
    .tp_dealloc = (destructor)held_dealloc,
    .tp_traverse = (traverseproc)held_traverse,
    .tp_clear = (inquiry)held_clear,
    .tp_members = held_members,
};

/* ---- columns ---------------------------------------------------------------------------------- */

/* The values of a column, one after another: those of a row, or the items of all its lists. */
typedef struct {
    PyObject **values; /* borrowed; NULL for null */
    Py_ssize_t count, nulls;
} cells;

static PyObject *validity_of(const cells *in) {
    if (!in->nulls) return Py_NewRef(Py_None);
    PyObject *made = PyBytes_FromStringAndSize(NULL, (in->count + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((in->count + 7) / 8));
    for (Py_ssize_t i = 0; i < in->count; i++)
        if (in->values[i] != NULL) to[i >> 3] |= (uint8_t)(1 << (i & 7));
    return made;
}

/* Each of the following makes a buffer; NULL without an exception where pyarrow must do it. */

static PyObject *bools_of(const cells *in) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, (in->count + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)((in->count + 7) / 8));
    for (Py_ssize_t i = 0; i < in->count; i++) {
        PyObject *value = in->values[i];
        if (value != NULL && !PyBool_Check(value)) {
            Py_DECREF(made);
            return NULL;
        }
        if (value == Py_True) to[i >> 3] |= (uint8_t)(1 << (i & 7));
    }
    return made;
}

static PyObject *numbers_of(const cells *in, int width) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, in->count * width);
    if (made == NULL) return NULL;
    char *to = PyBytes_AS_STRING(made);
    const int64_t most = width == 8 ? INT64_MAX : ((int64_t)1 << (8 * width - 1)) - 1;
    for (Py_ssize_t i = 0; i < in->count; i++, to += width) {
        PyObject *value = in->values[i];
        int overflow = 0;
        int64_t number = 0;
        if (value != NULL) {
            if (!PyLong_CheckExact(value)) goto otherwise;
            number = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow || number > most || number < -most - 1) goto otherwise;
        }
        int32_t half = (int32_t)number;
        int16_t quarter = (int16_t)number;
        memcpy(to, width == 8 ? (void *)&number : width == 4 ? (void *)&half : (void *)&quarter,
               (size_t)width);
    }
    return made;
otherwise:
    Py_DECREF(made);
    return NULL;
}

/* The bytes of a text or of bytes; -1 where they are neither. */
static int bytes_of(PyObject *value, int is_text, const char **data, Py_ssize_t *size) {
    if (is_text) {
        if (!PyUnicode_CheckExact(value)) return -1;
        *data = PyUnicode_AsUTF8AndSize(value, size);
        if (*data != NULL) return 0;
        PyErr_Clear(); /* a surrogate: pyarrow's way replaces it */
        return -1;
    }
    if (!PyBytes_CheckExact(value)) return -1;
    *data = PyBytes_AS_STRING(value);
    *size = PyBytes_GET_SIZE(value);
    return 0;
}

static int texts_of(const cells *in, int is_text, PyObject **offsets, PyObject **data) {
    Py_ssize_t total = 0, size;
    const char *from;
    *offsets = *data = NULL;
    for (Py_ssize_t i = 0; i < in->count; i++) {
        if (in->values[i] == NULL) continue;
        if (bytes_of(in->values[i], is_text, &from, &size)) return -1;
        total += size;
        if (total > INT32_MAX) return -1;
    }
    *offsets = PyBytes_FromStringAndSize(NULL, (in->count + 1) * (Py_ssize_t)sizeof(int32_t));
    *data = PyBytes_FromStringAndSize(NULL, total);
    if (*offsets == NULL || *data == NULL) {
        Py_CLEAR(*offsets);
        Py_CLEAR(*data);
        return -1;
    }
    char *places = PyBytes_AS_STRING(*offsets), *to = PyBytes_AS_STRING(*data);
    int32_t at = 0;
    for (Py_ssize_t i = 0; i < in->count; i++) {
        memcpy(places + i * (Py_ssize_t)sizeof at, &at, sizeof at);
        if (in->values[i] == NULL || bytes_of(in->values[i], is_text, &from, &size)) continue;
        memcpy(to + at, from, (size_t)size);
        at += (int32_t)size;
    }
    memcpy(places + in->count * (Py_ssize_t)sizeof at, &at, sizeof at);
    return 0;
}

static PyObject *column_of(const cells *in, char code);

/* Lists: where each begins, and the column of all items. */
static PyObject *lists_of(const cells *in, char code) {
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < in->count; i++) {
        if (in->values[i] == NULL) continue;
        if (!PyList_CheckExact(in->values[i])) return NULL;
        total += PyList_GET_SIZE(in->values[i]);
    }
    if (total > INT32_MAX) return NULL;
    PyObject *offsets =
        PyBytes_FromStringAndSize(NULL, (in->count + 1) * (Py_ssize_t)sizeof(int32_t));
    cells items = {.values = PyMem_Malloc((size_t)(total + 1) * sizeof(*items.values))};
    PyObject *child = NULL;
    if (offsets == NULL || items.values == NULL) goto done;
    char *places = PyBytes_AS_STRING(offsets);
    for (Py_ssize_t i = 0; i <= in->count; i++) {
        int32_t at = (int32_t)items.count;
        memcpy(places + i * (Py_ssize_t)sizeof at, &at, sizeof at);
        PyObject *list = i < in->count ? in->values[i] : NULL;
        for (Py_ssize_t j = 0; list != NULL && j < PyList_GET_SIZE(list); j++) {
            PyObject *item = PyList_GET_ITEM(list, j);
            items.nulls += item == Py_None;
            items.values[items.count++] = item == Py_None ? NULL : item;
        }
    }
    child = column_of(&items, code);
done:
    PyMem_Free(items.values);
    PyObject *made = child == NULL ? NULL : Py_BuildValue("(OO)", offsets, child);
    Py_XDECREF(offsets);
    Py_XDECREF(child);
    return made;
}

/* (nulls, validity, buffers, child): codes as in struct and Arrow, u for text, z for binary, and
   capitals for lists of text (U) and of int32 (I). */
static PyObject *column_of(const cells *in, char code) {
    PyObject *first = NULL, *second = NULL, *pair;
    switch (code) {
    case '?': first = bools_of(in); break;
    case 'h': first = numbers_of(in, 2); break;
    case 'i': first = numbers_of(in, 4); break;
    case 'q': first = numbers_of(in, 8); break;
    case 'u':
    case 'z':
        if (texts_of(in, code == 'u', &first, &second)) return NULL;
        break;
    case 'U':
    case 'I':
        pair = lists_of(in, code == 'U' ? 'u' : 'i');
        if (pair == NULL) return NULL;
        first = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        second = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
        Py_DECREF(pair);
        break;
    default: PyErr_SetString(PyExc_ValueError, "an unknown type of column");
    }
    if (first == NULL) return NULL;
    PyObject *validity = validity_of(in);
    if (validity == NULL) {
        Py_DECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    if (second == NULL) second = Py_NewRef(Py_None);
    return Py_BuildValue("(nNNN)", in->nulls, validity, first, second);
}

/* columns_of(rows, codes) -> for each column (nulls, validity or None, buffer, buffer or child or
   None); or None, where pyarrow must make it of the values. */
PyObject *columns_of(PyObject *module, PyObject *args) {
    PyObject *rows;
    const char *codes;
    Py_ssize_t width;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!y#", &PyList_Type, &rows, &codes, &width)) return NULL;
    Py_ssize_t count = PyList_GET_SIZE(rows);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != width) {
            PyErr_SetString(PyExc_ValueError, "a row does not have the columns of its table");
            return NULL;
        }
    }
    cells in = {.values = PyMem_Malloc((size_t)(count + 1) * sizeof(*in.values)), .count = count};
    PyObject *made = PyList_New(0);
    if (in.values == NULL || made == NULL) goto failed;
    for (Py_ssize_t column = 0; column < width; column++) {
        in.nulls = 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *value = PyTuple_GET_ITEM(PyList_GET_ITEM(rows, i), column);
            in.nulls += value == Py_None;
            in.values[i] = value == Py_None ? NULL : value;
        }
        PyObject *found = column_of(&in, codes[column]);
        if (found == NULL && PyErr_Occurred()) goto failed;
        if (found == NULL) found = Py_NewRef(Py_None);
        int failed = PyList_Append(made, found);
        Py_DECREF(found);
        if (failed) goto failed;
    }
    PyMem_Free(in.values);
    return made;
failed:
    if (!PyErr_Occurred()) PyErr_NoMemory();
    PyMem_Free(in.values);
    Py_XDECREF(made);
    return NULL;
}
