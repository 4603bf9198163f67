/* Copies the columns of sorted rows (spans.c), run by run. */
#include "spans.h"

static PyObject *given_parts(const spans_object *self, PyObject *given) {
    if (PyList_Check(given) && PyList_GET_SIZE(given) == self->parts) return given;
    PyErr_SetString(PyExc_ValueError, "expected one item for each part");
    return NULL;
}

/* The buffers of a column in each part; freed by `free_each`. */
static numbers *numbers_each(const spans_object *self, PyObject *given) {
    if (given_parts(self, given) == NULL) return NULL;
    numbers *each = PyMem_Calloc((size_t)self->parts + 1, sizeof *each);
    if (each == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < self->parts; i++) {
        if (numbers_of(PyList_GET_ITEM(given, i), &each[i]) == 0) continue;
        for (Py_ssize_t j = 0; j <= i; j++) numbers_free(&each[j]);
        PyMem_Free(each);
        return NULL;
    }
    return each;
}

static void free_each(const spans_object *self, numbers *each) {
    for (Py_ssize_t i = 0; each != NULL && i < self->parts; i++) numbers_free(&each[i]);
    PyMem_Free(each);
}

static int out_of_range(void) {
    PyErr_SetString(PyExc_ValueError, "a part is shorter than its runs");
    return -1;
}

/* spread(width, [a number for each run, of each part]) -> bytes, `width` (4 or 8) for each row;
   None if a number does not fit */
static PyObject *spread(PyObject *object, PyObject *args) {
    const spans_object *self = (spans_object *)object;
    PyObject *given;
    int width;
    if (!PyArg_ParseTuple(args, "iO", &width, &given)) return NULL;
    if (width != 4 && width != 8) {
        PyErr_SetString(PyExc_ValueError, "the width must be 4 or 8");
        return NULL;
    }
    numbers *each = numbers_each(self, given);
    if (each == NULL) return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, self->rows * width);
    char *to = made == NULL ? NULL : PyBytes_AS_STRING(made);
    int result = made == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; i < self->count && !result; i++) {
        const span *at = &self->spans[i];
        if (at->run >= how_many(&each[at->part])) {
            result = out_of_range();
            break;
        }
        int64_t value = number_at(&each[at->part], at->run);
        int32_t narrow = (int32_t)value;
        if (width == 4 && narrow != value) result = DOES_NOT_FIT;
        for (int64_t row = 0; row < at->count; row++, to += width)
            memcpy(to, width == 4 ? (const void *)&narrow : (const void *)&value, (size_t)width);
    }
    free_each(self, each);
    if (!result) return made;
    Py_XDECREF(made);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

/* Bits, the lowest of a byte first; NULL: all are set. */
static inline int bit_at(const uint8_t *bits, int64_t index) {
    return bits == NULL || bits[index >> 3] >> (index & 7) & 1;
}

/* bytes of at least this size; None if allowed */
static int bytes_of(PyObject *given, int64_t least, int or_none, const uint8_t **out) {
    *out = NULL;
    if (or_none && given == Py_None) return 0;
    if (!PyBytes_CheckExact(given)) {
        PyErr_SetString(PyExc_TypeError, "buffers must be bytes");
        return -1;
    }
    if (PyBytes_GET_SIZE(given) < least) return out_of_range();
    *out = (const uint8_t *)PyBytes_AS_STRING(given);
    return 0;
}

/* The buffers of a column in one part. */
typedef struct {
    const uint8_t *validity, *data;
    const int32_t *offsets;
} source;

/* (validity, data), or (validity, offsets, data) */
static source *sources_of(const spans_object *self, PyObject *given, int width) {
    if (given_parts(self, given) == NULL) return NULL;
    source *each = PyMem_Calloc((size_t)self->parts + 1, sizeof *each);
    if (each == NULL) return (source *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < self->parts; i++) {
        PyObject *buffers = PyList_GET_ITEM(given, i);
        int64_t rows = self->ends[i];
        const uint8_t *offsets = NULL;
        if (!PyTuple_Check(buffers) || PyTuple_GET_SIZE(buffers) != (width ? 2 : 3)) {
            PyErr_SetString(PyExc_TypeError, "buffers must be a tuple");
            goto failed;
        }
        PyObject *data = PyTuple_GET_ITEM(buffers, width ? 1 : 2);
        if (bytes_of(PyTuple_GET_ITEM(buffers, 0), (rows + 7) / 8, 1, &each[i].validity) ||
            (!width && bytes_of(PyTuple_GET_ITEM(buffers, 1), rows ? (rows + 1) * 4 : 0, 0,
                                &offsets)) ||
            bytes_of(data, rows * width, 0, &each[i].data))
            goto failed;
        each[i].offsets = (const int32_t *)offsets;
        if (width || !rows) continue;
        int32_t end = each[i].offsets[self->begins[i]];
        for (int64_t row = self->begins[i] + 1; row <= rows && end >= 0; row++) {
            int32_t next = each[i].offsets[row];
            end = next < end ? -1 : next;
        }
        if (end < 0 || end > PyBytes_GET_SIZE(data)) {
            out_of_range();
            goto failed;
        }
    }
    return each;
failed:
    PyMem_Free(each);
    return NULL;
}

/* Returns (nulls, validity or None) of the rows; NULL with an exception. */
static PyObject *gather_validity(const spans_object *self, const source *each, int64_t *nulls) {
    *nulls = 0;
    int any = 0;
    for (Py_ssize_t i = 0; i < self->parts; i++) any |= each[i].validity != NULL;
    if (!any) Py_RETURN_NONE;
    PyObject *made = PyBytes_FromStringAndSize(NULL, (self->rows + 7) / 8);
    if (made == NULL) return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    memset(to, 0, (size_t)(self->rows + 7) / 8);
    int64_t row = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const span *at = &self->spans[i];
        const uint8_t *bits = each[at->part].validity;
        for (int64_t from = at->first; from < at->first + at->count; from++, row++) {
            int set = bit_at(bits, from);
            to[row >> 3] |= (uint8_t)(set << (row & 7));
            *nulls += !set;
        }
    }
    if (*nulls) return made;
    Py_DECREF(made);
    Py_RETURN_NONE;
}

/* fixed(width, [(validity or None, data) of each part]) -> (nulls, validity or None, data) */
static PyObject *fixed(PyObject *object, PyObject *args) {
    const spans_object *self = (spans_object *)object;
    PyObject *given;
    int width;
    if (!PyArg_ParseTuple(args, "iO", &width, &given)) return NULL;
    if (width < 1 || width > 16) {
        PyErr_SetString(PyExc_ValueError, "invalid width");
        return NULL;
    }
    source *each = sources_of(self, given, width);
    if (each == NULL) return NULL;
    int64_t nulls;
    PyObject *validity = gather_validity(self, each, &nulls);
    PyObject *data = validity ? PyBytes_FromStringAndSize(NULL, self->rows * width) : NULL;
    if (data != NULL) {
        char *to = PyBytes_AS_STRING(data);
        for (Py_ssize_t i = 0; i < self->count; i++) {
            const span *at = &self->spans[i];
            memcpy(to, each[at->part].data + at->first * width, (size_t)(at->count * width));
            to += at->count * width;
        }
    }
    PyMem_Free(each);
    if (data != NULL) return Py_BuildValue("(LNN)", (long long)nulls, validity, data);
    Py_XDECREF(validity);
    return NULL;
}

/* blobs([(validity or None, offsets, data) of each part]) -> (nulls, validity or None, offsets, data) */
static PyObject *blobs(PyObject *object, PyObject *given) {
    const spans_object *self = (spans_object *)object;
    source *each = sources_of(self, given, 0);
    if (each == NULL) return NULL;
    int64_t nulls, size = 0;
    PyObject *validity = NULL, *offsets = NULL, *data = NULL;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const span *at = &self->spans[i];
        const int32_t *from = each[at->part].offsets + at->first;
        size += from[at->count] - from[0];
    }
    if (size > INT32_MAX)
        PyErr_SetString(PyExc_OverflowError, "the column is too large");
    else if ((validity = gather_validity(self, each, &nulls)) != NULL &&
             (offsets = PyBytes_FromStringAndSize(NULL, (self->rows + 1) * 4)) != NULL)
        data = PyBytes_FromStringAndSize(NULL, size);
    if (data != NULL) {
        int32_t *to = (int32_t *)(void *)PyBytes_AS_STRING(offsets), end = 0;
        char *bytes = PyBytes_AS_STRING(data);
        *to++ = 0;
        for (Py_ssize_t i = 0; i < self->count; i++) {
            const span *at = &self->spans[i];
            const int32_t *from = each[at->part].offsets + at->first;
            memcpy(bytes + end, each[at->part].data + from[0], (size_t)(from[at->count] - from[0]));
            for (int64_t row = 0; row < at->count; row++) *to++ = end + from[row + 1] - from[0];
            end += from[at->count] - from[0];
        }
    }
    PyMem_Free(each);
    if (data != NULL) return Py_BuildValue("(LNNN)", (long long)nulls, validity, offsets, data);
    Py_XDECREF(validity);
    Py_XDECREF(offsets);
    return NULL;
}

/* texts([a place for each run, of each part], [(bytes or None) of each place, of each part]) ->
   (nulls, validity or None, offsets, data): each row gets the text of its run */
static PyObject *texts(PyObject *object, PyObject *args) {
    const spans_object *self = (spans_object *)object;
    PyObject *given, *values, *validity = NULL, *offsets = NULL, *data = NULL;
    if (!PyArg_ParseTuple(args, "OO", &given, &values) || given_parts(self, values) == NULL)
        return NULL;
    numbers *each = numbers_each(self, given);
    const PyObject **chosen = PyMem_Malloc(((size_t)self->count + 1) * sizeof *chosen);
    int64_t size = 0, nulls = 0;
    if (each == NULL) goto done;
    if (chosen == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const span *at = &self->spans[i];
        PyObject *of = PyList_GET_ITEM(values, at->part);
        if (!PyList_Check(of) || at->run >= how_many(&each[at->part])) {
            out_of_range();
            goto done;
        }
        int64_t place = number_at(&each[at->part], at->run);
        if (place < 0 || place >= PyList_GET_SIZE(of)) {
            out_of_range();
            goto done;
        }
        PyObject *value = PyList_GET_ITEM(of, place);
        if (value != Py_None && !PyBytes_CheckExact(value)) {
            PyErr_SetString(PyExc_TypeError, "texts must be bytes or None");
            goto done;
        }
        chosen[i] = value;
        if (value == Py_None)
            nulls += at->count;
        else
            size += at->count * PyBytes_GET_SIZE(value);
        if (size > INT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "the column is too large");
            goto done;
        }
    }
    validity = nulls ? PyBytes_FromStringAndSize(NULL, (self->rows + 7) / 8) : Py_NewRef(Py_None);
    offsets = PyBytes_FromStringAndSize(NULL, (self->rows + 1) * 4);
    if (validity == NULL || offsets == NULL) goto done;
    data = PyBytes_FromStringAndSize(NULL, size);
    if (data == NULL) goto done;
    uint8_t *bits = nulls ? (uint8_t *)PyBytes_AS_STRING(validity) : NULL;
    int32_t *to = (int32_t *)(void *)PyBytes_AS_STRING(offsets), end = 0;
    char *bytes = PyBytes_AS_STRING(data);
    int64_t row = 0;
    if (bits != NULL) memset(bits, 0, (size_t)(self->rows + 7) / 8);
    to[0] = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        int is_null = chosen[i] == Py_None;
        Py_ssize_t length = is_null ? 0 : PyBytes_GET_SIZE(chosen[i]);
        for (int64_t n = 0; n < self->spans[i].count; n++) {
            if (length) memcpy(bytes + end, PyBytes_AS_STRING(chosen[i]), (size_t)length);
            end += (int32_t)length;
            if (bits != NULL && !is_null) bits[row >> 3] |= (uint8_t)(1 << (row & 7));
            to[++row] = end;
        }
    }
done:
    free_each(self, each);
    PyMem_Free(chosen);
    if (data != NULL) return Py_BuildValue("(LNNN)", (long long)nulls, validity, offsets, data);
    Py_XDECREF(validity);
    Py_XDECREF(offsets);
    return NULL;
}

PyMethodDef span_columns[] = {{"spread", spread, METH_VARARGS, NULL},
                                {"fixed", fixed, METH_VARARGS, NULL},
                                {"blobs", blobs, METH_O, NULL},
                                {"texts", texts, METH_VARARGS, NULL},
                                {0}};
