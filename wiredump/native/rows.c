/* Rows of a table that are not written yet, as columns in Arrow's layout. They come from Python
   as tuples (wiredump/tables/held_rows.py does the same in Python), or from exchanges
   (exchange_rows.c), and are taken sorted. */
#include "wire.h"

#include <structmember.h>

/* ---- buffers ---------------------------------------------------------------------------------- */

enum { LEAST_ROOM = 1 << 12, MOST_ORDER = 8 };

/* Makes room for more bytes. Arrow takes over `bytes` itself, so nothing is held twice. */
static int grow(buffer *self, Py_ssize_t more) {
    if (more > PY_SSIZE_T_MAX / 4 - self->size) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t room = self->room + self->room / 2;
    if (room < self->size + more) room = self->size + more;
    if (room < LEAST_ROOM) room = LEAST_ROOM;
    if (self->bytes == NULL) {
        self->bytes = PyBytes_FromStringAndSize(NULL, room);
        if (self->bytes == NULL) return -1;
    } else if (_PyBytes_Resize(&self->bytes, room)) {
        self->size = self->room = 0;
        return -1;
    }
    self->room = room;
    return 0;
}

static inline uint8_t *at_end(buffer *self) {
    return (uint8_t *)PyBytes_AS_STRING(self->bytes) + self->size;
}

static inline int need(buffer *self, Py_ssize_t more) {
    return LIKELY(self->room - self->size >= more) ? 0 : grow(self, more);
}

static inline int put(buffer *self, const void *from, Py_ssize_t size) {
    if (!size) return 0; /* the buffer may have no bytes yet */
    if (need(self, size)) return -1;
    memcpy(at_end(self), from, (size_t)size);
    self->size += size;
    return 0;
}

/* Appends bit number `count`. */
static inline int put_bit(buffer *self, Py_ssize_t count, int set) {
    if (!(count & 7)) {
        if (need(self, 1)) return -1;
        *at_end(self) = 0;
        self->size++;
    }
    at_end(self)[-1] |= (uint8_t)((set != 0) << (count & 7));
    return 0;
}

static void forget_buffer(buffer *self) {
    Py_CLEAR(self->bytes);
    self->size = self->room = 0;
}

/* ---- columns ---------------------------------------------------------------------------------- */

/* Codes as in struct and Arrow, u for text, z for binary, and capitals for lists of text (U) and of
   int32 (I). */
static int width_of(char code) {
    return code == 'q' ? 8 : code == 'i' ? 4 : code == 'h' ? 2 : 0;
}

static int is_sized(char code) { return code == 'u' || code == 'z'; }
static int is_list(char code) { return code == 'U' || code == 'I'; }

static void forget_cells(cells *self) {
    forget_buffer(&self->values);
    forget_buffer(&self->places);
    forget_buffer(&self->validity);
    if (self->items != NULL) forget_cells(self->items);
    self->count = self->nulls = 0;
}

static void free_cells(cells *self) {
    forget_cells(self);
    PyMem_Free(self->items);
}

static int make_cells(cells *self, char code) {
    memset(self, 0, sizeof *self);
    self->code = code;
    if (!width_of(code) && code != '?' && !is_sized(code) && !is_list(code)) {
        PyErr_SetString(PyExc_ValueError, "unknown column type");
        return -1;
    }
    if (!is_list(code)) return 0;
    self->items = PyMem_Calloc(1, sizeof *self->items);
    if (self->items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->items->code = code == 'U' ? 'u' : 'i';
    return 0;
}

/* Validity is recorded from the first null on. */
static int put_validity(cells *self, int valid) {
    if (LIKELY(valid && !self->nulls)) return 0;
    if (!self->nulls) {
        Py_ssize_t bytes = (self->count + 7) / 8;
        self->validity.size = 0;
        if (need(&self->validity, bytes + 1)) return -1;
        memset(at_end(&self->validity), 0xFF, (size_t)bytes);
        self->validity.size = bytes;
        if (self->count & 7) at_end(&self->validity)[-1] = (uint8_t)((1 << (self->count & 7)) - 1);
    }
    self->nulls += !valid;
    return put_bit(&self->validity, self->count, valid);
}

/* The next text or list begins where the previous one ends. */
static int put_place(cells *self, Py_ssize_t end) {
    int32_t place = (int32_t)end;
    if (end > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a column has more than 2 GiB of text");
        return -1;
    }
    if (!self->places.size) {
        static const int32_t first = 0;
        if (put(&self->places, &first, sizeof first)) return -1;
    }
    return put(&self->places, &place, sizeof place);
}

static inline int put_fixed(cells *self, int64_t value) {
    int32_t half = (int32_t)value;
    int16_t quarter = (int16_t)value;
    switch (self->code) {
    case 'q': return put(&self->values, &value, 8);
    case 'i': return put(&self->values, &half, 4);
    default: return put(&self->values, &quarter, 2);
    }
}

int cells_number(cells *self, int64_t value) {
    if (put_validity(self, 1) || put_fixed(self, value)) return -1;
    self->count++;
    return 0;
}

int cells_bool(cells *self, int value) {
    if (put_validity(self, 1) || put_bit(&self->values, self->count, value)) return -1;
    self->count++;
    return 0;
}

int cells_null(cells *self) {
    int failed = put_validity(self, 0);
    if (failed) return -1;
    if (self->code == '?') failed = put_bit(&self->values, self->count, 0);
    else if (self->items != NULL) failed = put_place(self, self->items->count);
    else if (is_sized(self->code)) failed = put_place(self, self->values.size);
    else failed = put_fixed(self, 0);
    self->count++;
    return failed;
}

int cells_bytes(cells *self, const void *from, Py_ssize_t size) {
    if (put_validity(self, 1) || put(&self->values, from, size) ||
        put_place(self, self->values.size))
        return -1;
    self->count++;
    return 0;
}

/* Encodes a text that is not valid Unicode, such as a path, as wiredump/tables/arrow.py does. */
static int put_replaced(cells *self, PyObject *text) {
    PyObject *raw = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    PyObject *valid = raw == NULL ? NULL
                                  : PyUnicode_DecodeUTF8(PyBytes_AS_STRING(raw),
                                                         PyBytes_GET_SIZE(raw), "replace");
    Py_ssize_t size = 0;
    const char *from = valid == NULL ? NULL : PyUnicode_AsUTF8AndSize(valid, &size);
    int failed = from == NULL || cells_bytes(self, from, size);
    Py_XDECREF(raw);
    Py_XDECREF(valid);
    return failed ? -1 : 0;
}

int cells_text(cells *self, PyObject *text) {
    if (text == NULL || text == Py_None) return cells_null(self);
    if (LIKELY(PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text)))
        return cells_bytes(self, PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text));
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "expected text, got %R", text);
        return -1;
    }
    Py_ssize_t size;
    const char *from = PyUnicode_AsUTF8AndSize(text, &size);
    if (from != NULL) return cells_bytes(self, from, size);
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return -1;
    PyErr_Clear();
    return put_replaced(self, text);
}

/* Clamps a number to the range of its column. */
static int put_integer(cells *self, PyObject *value) {
    int overflow;
    int64_t most = self->code == 'q' ? INT64_MAX
                                     : ((int64_t)1 << (8 * width_of(self->code) - 1)) - 1;
    PyObject *whole = PyFloat_Check(value) ? PyNumber_Long(value) : PyNumber_Index(value);
    if (whole == NULL) return -1;
    long long found = PyLong_AsLongLongAndOverflow(whole, &overflow);
    Py_DECREF(whole);
    if (found == -1 && !overflow && PyErr_Occurred()) return -1;
    if (overflow) found = overflow > 0 ? INT64_MAX : INT64_MIN;
    return cells_number(self, found > most ? most : found < -most - 1 ? -most - 1 : found);
}

static int put_list(cells *self, PyObject *value) {
    PyObject *items = PySequence_Fast(value, "a list was expected");
    int failed = items == NULL;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(items); i++)
        failed = cells_value(self->items, PySequence_Fast_GET_ITEM(items, i));
    Py_XDECREF(items);
    if (failed || put_validity(self, 1) || put_place(self, self->items->count)) return -1;
    self->count++;
    return 0;
}

int cells_known(cells *self, int64_t value, int is_known) {
    return is_known ? cells_number(self, value) : cells_null(self);
}

int cells_sized_text(cells *self, PyObject *text, Py_ssize_t *size) {
    if (text != NULL && PyUnicode_Check(text)) *size += PyUnicode_GET_LENGTH(text);
    return cells_text(self, text);
}

int cells_sized_literal(cells *self, const char *text, Py_ssize_t *size) {
    Py_ssize_t length = (Py_ssize_t)strlen(text);
    *size += length;
    return cells_bytes(self, text, length);
}

int cells_value(cells *self, PyObject *value) {
    if (value == Py_None) return cells_null(self);
    int truth;
    Py_buffer view;
    switch (self->code) {
    case '?':
        truth = PyObject_IsTrue(value);
        return truth < 0 ? -1 : cells_bool(self, truth);
    case 'u': return cells_text(self, value);
    case 'z':
        if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)) return -1;
        truth = cells_bytes(self, view.buf, view.len);
        PyBuffer_Release(&view);
        return truth;
    case 'U':
    case 'I': return put_list(self, value);
    default: return put_integer(self, value);
    }
}

/* ---- rows ------------------------------------------------------------------------------------- */

static void forget(held_object *self) {
    for (Py_ssize_t i = 0; i < self->width; i++) forget_cells(&self->columns[i]);
    self->count = 0;
}

int held_end(held_object *self, Py_ssize_t size, int failed) {
    if (UNLIKELY(failed)) { /* columns must have the same length */
        forget(self);
        return -1;
    }
    self->count++;
    self->size += size;
    return self->number + self->count >= self->most_rows || self->size >= self->most_size;
}

held_object *held_of(PyObject *given, const char *codes) {
    if (given == Py_None) return NULL;
    held_object *rows = (held_object *)given;
    int same = Py_IS_TYPE(given, &held_type) && rows->width == (Py_ssize_t)strlen(codes);
    for (Py_ssize_t i = 0; same && i < rows->width; i++) same = rows->columns[i].code == codes[i];
    if (same) return (held_object *)Py_NewRef(given);
    PyErr_SetString(PyExc_TypeError, "the HeldRows belong to another table");
    return NULL;
}

/* Returns 1 if the row group is full, 0 if not, -1 with an exception. */
static int held_add(held_object *self, PyObject *row) {
    Py_ssize_t size = 0;
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != self->width) {
        PyErr_SetString(PyExc_ValueError, "the row does not match the columns of its table");
        return -1;
    }
    int failed = 0;
    for (Py_ssize_t i = 0; i < self->width && !failed; i++) {
        PyObject *value = PyTuple_GET_ITEM(row, i);
        failed = cells_value(&self->columns[i], value);
        if (failed || !is_sized(self->columns[i].code) || value == Py_None) continue;
        Py_ssize_t length = PyUnicode_Check(value) ? PyUnicode_GET_LENGTH(value)
                                                   : PyObject_Size(value);
        failed = length < 0;
        size += length;
    }
    return held_end(self, size, failed);
}

static PyObject *add(PyObject *object, PyObject *row) {
    int full = held_add((held_object *)object, row);
    return full < 0 ? NULL : PyBool_FromLong(full);
}

/* feed_rows(iterator, {table: HeldRows}) -> None at the end of the iterator, or (table, None) if
   the row group of a table is full, or (table, Piece) if Python has to add that piece. Rows of
   other tables are ignored. */
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
            PyErr_SetString(PyExc_TypeError, "expected pairs of a table and a row");
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

/* HeldRows(codes, maximum of rows, maximum bytes of text and binary) */
static PyObject *held_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    const char *codes;
    Py_ssize_t width, most_rows, most_size;
    if (refuse_keywords(keywords, "HeldRows")) return NULL;
    if (!PyArg_ParseTuple(args, "y#nn", &codes, &width, &most_rows, &most_size)) return NULL;
    held_object *self = (held_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->most_rows = most_rows;
    self->most_size = most_size;
    self->columns = PyMem_Calloc((size_t)width + 1, sizeof *self->columns);
    if (self->columns == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < width; i++) {
        self->width = i + 1;
        if (!make_cells(&self->columns[i], codes[i])) continue;
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void held_dealloc(PyObject *object) {
    held_object *self = (held_object *)object;
    for (Py_ssize_t i = 0; i < self->width; i++) free_cells(&self->columns[i]);
    PyMem_Free(self->columns);
    Py_TYPE(object)->tp_free(object);
}

static Py_ssize_t held_length(PyObject *object) { return ((held_object *)object)->count; }

/* ---- sorted ----------------------------------------------------------------------------------- */

typedef struct {
    const cells *columns[MOST_ORDER];
    Py_ssize_t count;
} sort_order;

static inline int is_valid(const cells *of, uint32_t row) {
    return !of->nulls || PyBytes_AS_STRING(of->validity.bytes)[row >> 3] >> (row & 7) & 1;
}

static inline int64_t number_at(const cells *of, uint32_t row) {
    const char *values = PyBytes_AS_STRING(of->values.bytes);
    int64_t value;
    int32_t half;
    int16_t quarter;
    switch (of->code) {
    case 'q': memcpy(&value, values + (size_t)row * 8, 8); return value;
    case 'i': memcpy(&half, values + (size_t)row * 4, 4); return half;
    default: memcpy(&quarter, values + (size_t)row * 2, 2); return quarter;
    }
}

static inline const char *text_at(const cells *of, uint32_t row, int32_t *size) {
    int32_t ends[2];
    memcpy(ends, PyBytes_AS_STRING(of->places.bytes) + (size_t)row * 4, sizeof ends);
    *size = ends[1] - ends[0];
    return of->values.bytes == NULL ? "" : PyBytes_AS_STRING(of->values.bytes) + ends[0];
}

static int compare(const cells *of, uint32_t a, uint32_t b) {
    if (of->nulls) {
        int valid = is_valid(of, a), other = is_valid(of, b);
        if (!valid || !other) return other - valid; /* nulls come last */
    }
    if (!is_sized(of->code)) {
        int64_t one = number_at(of, a), two = number_at(of, b);
        return (one > two) - (one < two);
    }
    int32_t size, other;
    const char *text = text_at(of, a, &size), *after = text_at(of, b, &other);
    int found = memcmp(text, after, (size_t)(size < other ? size : other));
    return found ? found : (size > other) - (size < other);
}

static int in_order(const sort_order *by, uint32_t a, uint32_t b) {
    for (Py_ssize_t i = 0; i < by->count; i++) {
        int found = compare(by->columns[i], a, b);
        if (found) return found < 0;
    }
    return 1;
}

/* A stable merge sort: long stretches of rows are often in order already. `other` has room for
   half. */
static void sort(const sort_order *by, uint32_t *rows, uint32_t *other, Py_ssize_t count) {
    if (count < 2) return;
    Py_ssize_t half = count / 2, i = 0, j = half, k = 0;
    sort(by, rows, other, half);
    sort(by, rows + half, other, count - half);
    if (in_order(by, rows[half - 1], rows[half])) return;
    memcpy(other, rows, (size_t)half * sizeof(*rows));
    while (i < half && j < count)
        rows[k++] = in_order(by, other[i], rows[j]) ? other[i++] : rows[j++];
    while (i < half) rows[k++] = other[i++];
}

/* ---- out -------------------------------------------------------------------------------------- */

static int gather_bits(buffer *self, const uint32_t *rows, Py_ssize_t count) {
    buffer made = {0};
    const char *bits = PyBytes_AS_STRING(self->bytes);
    for (Py_ssize_t i = 0; i < count; i++)
        if (put_bit(&made, i, bits[rows[i] >> 3] >> (rows[i] & 7) & 1)) {
            forget_buffer(&made);
            return -1;
        }
    forget_buffer(self);
    *self = made;
    return 0;
}

static int gather_fixed(buffer *self, const uint32_t *rows, Py_ssize_t count, int width) {
    buffer made = {0};
    if (need(&made, count * width)) return -1;
    const char *from = PyBytes_AS_STRING(self->bytes);
    char *to = PyBytes_AS_STRING(made.bytes);
    switch (width) { /* a constant size is copied faster */
    case 8:
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + i * 8, from + (size_t)rows[i] * 8, 8);
        break;
    case 4:
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + i * 4, from + (size_t)rows[i] * 4, 4);
        break;
    default:
        for (Py_ssize_t i = 0; i < count; i++) memcpy(to + i * 2, from + (size_t)rows[i] * 2, 2);
    }
    made.size = count * width;
    forget_buffer(self);
    *self = made;
    return 0;
}

static int gather_texts(cells *self, const uint32_t *rows, Py_ssize_t count) {
    cells made = {.code = self->code};
    int failed = need(&made.values, self->values.size) ||
                 need(&made.places, (count + 1) * (Py_ssize_t)sizeof(int32_t));
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        int32_t size;
        const char *from = text_at(self, rows[i], &size);
        failed = put(&made.values, from, size) || put_place(&made, made.values.size);
    }
    if (failed) {
        forget_cells(&made);
        return -1;
    }
    forget_buffer(&self->values);
    forget_buffer(&self->places);
    self->values = made.values;
    self->places = made.places;
    return 0;
}

static int gather_items(cells *self, const uint32_t *rows, Py_ssize_t count);

static int gather_cells(cells *self, const uint32_t *rows, Py_ssize_t count) {
    int failed;
    if (is_list(self->code)) failed = gather_items(self, rows, count);
    else if (is_sized(self->code)) failed = gather_texts(self, rows, count);
    else if (self->code == '?') failed = gather_bits(&self->values, rows, count);
    else failed = gather_fixed(&self->values, rows, count, width_of(self->code));
    if (!failed && self->nulls) failed = gather_bits(&self->validity, rows, count);
    return failed;
}

/* Copies the items of lists in the order of `rows`. */
static int gather_items(cells *self, const uint32_t *rows, Py_ssize_t count) {
    Py_ssize_t total = self->items->count, at = 0;
    if (!total) return 0; /* all lists are empty and begin at 0 */
    uint32_t *items = PyMem_Malloc((size_t)total * sizeof(*items));
    if (items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    cells made = {.code = self->code};
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        int32_t ends[2];
        memcpy(ends, PyBytes_AS_STRING(self->places.bytes) + (size_t)rows[i] * 4, sizeof ends);
        for (int32_t item = ends[0]; item < ends[1]; item++) items[at++] = (uint32_t)item;
        failed = put_place(&made, at);
    }
    if (!failed) failed = gather_cells(self->items, items, at);
    PyMem_Free(items);
    if (failed) {
        forget_cells(&made);
        return -1;
    }
    forget_buffer(&self->places);
    self->places = made.places;
    return 0;
}

/* Returns the bytes of a buffer and empties it. */
static PyObject *taken(buffer *self) {
    if (self->bytes == NULL) return PyBytes_FromStringAndSize(NULL, 0);
    if (self->size < self->room && _PyBytes_Resize(&self->bytes, self->size)) {
        self->size = self->room = 0;
        return NULL;
    }
    PyObject *bytes = self->bytes;
    self->bytes = NULL;
    self->size = self->room = 0;
    return bytes;
}

/* (nulls, validity or None, buffer, buffer or child or None) */
static PyObject *taken_cells(cells *self) {
    Py_ssize_t nulls = self->nulls;
    PyObject *validity = nulls ? taken(&self->validity) : Py_NewRef(Py_None);
    PyObject *first = NULL, *second = NULL;
    if (self->items != NULL || is_sized(self->code)) {
        static const int32_t none = 0;
        if (self->places.size || !put(&self->places, &none, sizeof none))
            first = taken(&self->places);
        second = self->items != NULL ? taken_cells(self->items) : taken(&self->values);
    } else {
        first = taken(&self->values);
        second = Py_NewRef(Py_None);
    }
    forget_cells(self);
    if (validity != NULL && first != NULL && second != NULL)
        return Py_BuildValue("(nNNN)", nulls, validity, first, second);
    Py_XDECREF(validity);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return NULL;
}

static int sort_columns(held_object *self, const sort_order *by) {
    Py_ssize_t count = self->count;
    uint32_t *rows = PyMem_Malloc((size_t)(count + 1) * sizeof(*rows));
    uint32_t *other = PyMem_Malloc((size_t)(count / 2 + 1) * sizeof(*other));
    int failed = rows == NULL || other == NULL, moved = 0;
    if (failed) PyErr_NoMemory();
    if (!failed) {
        for (Py_ssize_t i = 0; i < count; i++) rows[i] = (uint32_t)i;
        sort(by, rows, other, count);
        for (Py_ssize_t i = 0; i < count && !moved; i++) moved = rows[i] != (uint32_t)i;
    }
    for (Py_ssize_t i = 0; i < self->width && moved && !failed; i++)
        failed = gather_cells(&self->columns[i], rows, count);
    PyMem_Free(rows);
    PyMem_Free(other);
    return failed;
}

/* take(indexes of the columns to sort by) -> (nulls, validity or None, buffer, buffer or child or
   None) for each column, of all rows, which are removed */
static PyObject *take(PyObject *object, PyObject *order) {
    held_object *self = (held_object *)object;
    sort_order by = {0};
    if (!PyTuple_Check(order) || PyTuple_GET_SIZE(order) > MOST_ORDER) {
        PyErr_SetString(PyExc_TypeError, "take expects a tuple of column indexes");
        return NULL;
    }
    for (; by.count < PyTuple_GET_SIZE(order); by.count++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(order, by.count));
        if (place == -1 && PyErr_Occurred()) return NULL;
        if (place < 0 || place >= self->width || self->columns[place].code == '?' ||
            is_list(self->columns[place].code)) {
            PyErr_SetString(PyExc_ValueError, "rows cannot be sorted by this column");
            return NULL;
        }
        by.columns[by.count] = &self->columns[place];
    }
    PyObject *made = NULL;
    if (by.count && self->count && sort_columns(self, &by)) goto done;
    made = PyList_New(self->width);
    for (Py_ssize_t i = 0; made != NULL && i < self->width; i++) {
        PyObject *each = taken_cells(&self->columns[i]);
        if (each == NULL) Py_CLEAR(made);
        else PyList_SET_ITEM(made, i, each);
    }
done:
    forget(self);
    return made;
}

static PyMethodDef held_methods[] = {
    {"add", add, METH_O, NULL}, {"take", take, METH_O, NULL}, {0}};
static PySequenceMethods held_sequence = {.sq_length = held_length};
static PyMemberDef held_members[] = {
    {"number", T_PYSSIZET, offsetof(held_object, number), 0, NULL},
    {"size", T_PYSSIZET, offsetof(held_object, size), 0, NULL},
    {0},
};

PyTypeObject held_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.HeldRows",
    .tp_basicsize = sizeof(held_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = held_new,
    .tp_dealloc = held_dealloc,
    .tp_methods = held_methods,
    .tp_members = held_members,
    .tp_as_sequence = &held_sequence,
};
