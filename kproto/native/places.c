/* Notes where the values of a selection are in the bytes of one message, instead of copying them into
   columns: for a reader in C that needs slices of a frame. columns.c reads the message. Python code
   runs nowhere here. */
#include "columns.h"

enum { FIRST_ROWS = 8 };

typedef struct {
    int32_t start, size;
} place;

static const place nowhere = {-1, -1};

static place place_of(const places *in, const column *of) {
    reader value = of->next;
    int64_t size = width_of[of->field->kind];
    if (value.at == NULL || value.end != in->end) return nowhere; /* a null, or a default */
    if (!size && (get_length(&value, of->field, of->field->kind == KIND_STRING, &size) || size < 0))
        return nowhere;
    return (place){(int32_t)(value.at - in->start), (int32_t)size};
}

/* Room for so many rows in all. */
static int make_room(places *in, Py_ssize_t rows, Py_ssize_t row_size) {
    if (in->bytes == NULL) {
        in->bytes = PyBytes_FromStringAndSize(NULL, row_size * (rows + FIRST_ROWS));
        return in->bytes ? 0 : -1;
    }
    if (rows * row_size <= PyBytes_GET_SIZE(in->bytes)) return 0;
    return _PyBytes_Resize(&in->bytes, row_size * (rows + rows / 2));
}

int note_places(reading *self, const level *at, Py_ssize_t before) {
    table *made = &self->made;
    Py_ssize_t row_size = made->column_count * (Py_ssize_t)sizeof(place);
    if (UNLIKELY(made->rows > made->limit / row_size)) {
        made->full = 1;
        return -1;
    }
    if (made->rows == before) return 0;
    if (UNLIKELY(make_room(self->noted, made->rows, row_size))) return -1;
    char *rows = PyBytes_AS_STRING(self->noted->bytes);
    for (Py_ssize_t i = 0; i < at->column_count; i++) {
        Py_ssize_t index = at->columns[i];
        place found = place_of(self->noted, &made->columns[index]);
        char *to = rows + before * row_size + index * (Py_ssize_t)sizeof found;
        for (Py_ssize_t row = before; row < made->rows; row++, to += row_size)
            memcpy(to, &found, sizeof found);
    }
    return 0;
}

/* The places as they are, and where the message ends; NULL with an exception. */
static PyObject *noted_places(places *in, Py_ssize_t size, Py_ssize_t end) {
    if (in->bytes == NULL) in->bytes = PyBytes_FromStringAndSize(NULL, 0);
    else if (_PyBytes_Resize(&in->bytes, size)) return NULL;
    PyObject *bytes = in->bytes;
    in->bytes = NULL;
    return bytes ? Py_BuildValue("(Nn)", bytes, end) : NULL;
}

static int check(const selection_object *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyBytes_Check(args[0]) ||
        (args[2] != Py_None && !PyObject_TypeCheck(args[2], &plan_type))) {
        PyErr_SetString(PyExc_TypeError, "locate(bytes, offset, Plan or None)");
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->column_count; i++)
        if (self->columns[i].field->kind == KIND_ARRAY) {
            PyErr_SetString(PyExc_ValueError, "an array has no place of its own");
            return -1;
        }
    return 0;
}

PyObject *selection_locate(selection_object *self, PyObject *const *args, Py_ssize_t count) {
    if (check(self, args, count)) return NULL;
    Py_ssize_t offset = PyNumber_AsSsize_t(args[1], PyExc_OverflowError);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]);
    if (offset < 0 || offset > size || size > INT32_MAX) Py_RETURN_NONE;
    reader in = {start + offset, start + size};
    if (args[2] != Py_None) {
        const plan_object *header = (const plan_object *)args[2];
        if (validate_struct(&in, &header->structs[header->struct_count - 1])) Py_RETURN_NONE;
    }
    places noted = {.start = start, .end = in.end};
    reading state = {.noted = &noted};
    PyObject *found = NULL;
    if (!reading_begin(&state, self, INT32_MAX)) {
        if (!read_level(&state, &in, self->levels)) {
            Py_ssize_t row_size = self->column_count * (Py_ssize_t)sizeof(place);
            found = noted_places(&noted, state.made.rows * row_size, in.at - start);
        } else if (!PyErr_Occurred()) {
            found = Py_NewRef(Py_None);
        }
    }
    table_free(&state.made);
    Py_XDECREF(noted.bytes);
    return found;
}
