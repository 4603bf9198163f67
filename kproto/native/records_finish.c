/* Returns the columns of records: each buffer is as long as the part in use, as Arrow requires. */
#include "records_sink.h"

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

PyObject *sink_finish(record_sink *self, PyObject *nothing) {
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
