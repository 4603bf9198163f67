/* Notes where the values of a selection are in the bytes of one message, instead of copying them into
   columns: for a reader in C that needs slices of a frame. columns.c reads the message. Python code
   runs nowhere here. */
#include "columns.h"

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
            PyErr_SetString(PyExc_ValueError, "an array has no place");
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
