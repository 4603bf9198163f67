/* Columns in Arrow's layout (https://arrow.apache.org/docs/format/Columnar.html). Values are copied
   from the bytes of a body that columns.c has validated. A buffer grows by half of its size at a
   time and stops at the table's limit, since offsets are int32. No Python code runs here. */
#include "columns.h"

enum { FIRST_SIZE = 128 };

static inline uint8_t *bytes_of(const buffer *in) { return (uint8_t *)PyBytes_AS_STRING(in->bytes); }

static int make_room(buffer *in, Py_ssize_t needed) {
    if (in->bytes == NULL) {
        in->bytes = PyBytes_FromStringAndSize(NULL, needed < FIRST_SIZE ? FIRST_SIZE : needed);
        return in->bytes ? 0 : -1;
    }
    Py_ssize_t room = PyBytes_GET_SIZE(in->bytes);
    Py_ssize_t more = room + room / 2;
    return _PyBytes_Resize(&in->bytes, needed > more ? needed : more);
}

/* Room for `count` items of `width` bytes, which count as used from now on. NULL where put_* return
   -1. */
static inline uint8_t *grow(table *made, buffer *in, Py_ssize_t count, Py_ssize_t width) {
    int fits = count == 1 ? width <= made->limit - in->size /* avoids a division */
                          : !width || count <= (made->limit - in->size) / width;
    if (UNLIKELY(!fits)) {
        made->full = 1;
        return NULL;
    }
    Py_ssize_t before = in->size, after = before + count * width;
    if (UNLIKELY(in->bytes == NULL || after > PyBytes_GET_SIZE(in->bytes)))
        if (make_room(in, after)) return NULL;
    in->size = after;
    return bytes_of(in) + before;
}

static inline void put32(uint8_t *p, Py_ssize_t value) {
    int32_t word = (int32_t)value; /* below the limit, like all of these */
    memcpy(p, &word, 4);
}

/* Sets bits `from` to `from + count`, whatever they were before. */
static int put_bits(table *made, buffer *in, Py_ssize_t from, Py_ssize_t count, int bit) {
    Py_ssize_t needed = (from + count + 7) / 8;
    if (needed > in->size && grow(made, in, needed - in->size, 1) == NULL) return -1;
    if (count == 0) return 0;
    uint8_t *bits = bytes_of(in);
    if (count == 1) {
        uint8_t mask = (uint8_t)(1 << from % 8);
        bits[from / 8] = (uint8_t)(bit ? bits[from / 8] | mask : bits[from / 8] & ~mask);
        return 0;
    }
    for (Py_ssize_t at = from; at < from + count;) {
        if (at % 8 == 0 && from + count - at >= 8) {
            Py_ssize_t whole = (from + count - at) / 8;
            memset(bits + at / 8, bit ? 0xFF : 0, (size_t)whole);
            at += whole * 8;
            continue;
        }
        uint8_t mask = (uint8_t)(1 << at % 8);
        bits[at / 8] = (uint8_t)(bit ? bits[at / 8] | mask : bits[at / 8] & ~mask);
        at++;
    }
    return 0;
}

/* ---- values -------------------------------------------------------------------------------------- */

/* Puts `count` different numbers from the wire, or one number `count` times. */
#define COPY_AS(type, read)                                 \
    for (Py_ssize_t i = 0; i < count; i++, p += step) {     \
        type value = (type)(read);                          \
        memcpy(to + i * sizeof value, &value, sizeof value); \
    }

static int put_numbers(table *made, values *in, int kind, const uint8_t *p, Py_ssize_t count,
                       int repeated) {
    Py_ssize_t width = width_of[kind], step = repeated ? 0 : width;
    if (UNLIKELY(count > made->limit - in->count)) {
        made->full = 1;
        return -1;
    }
    if (kind == KIND_BOOL) {
        for (Py_ssize_t i = 0; !repeated && i < count; i++)
            if (put_bits(made, &in->data, in->count + i, 1, p[i])) return -1;
        if (repeated && put_bits(made, &in->data, in->count, count, *p)) return -1;
        in->count += count;
        return 0;
    }
    uint8_t *to = grow(made, &in->data, count, width);
    if (UNLIKELY(to == NULL)) return -1;
    switch (width) {
    case 1: COPY_AS(uint8_t, *p) break;
    case 2: COPY_AS(uint16_t, get16(p)) break;
    case 4: COPY_AS(uint32_t, get32(p)) break;
    case 8: COPY_AS(uint64_t, get64(p)) break;
    default: /* a uuid: bytes in their own order */
        for (Py_ssize_t i = 0; i < count; i++, p += step) memcpy(to + i * width, p, (size_t)width);
    }
    in->count += count;
    return 0;
}

/* The same for a single number, the most frequent case. */
static inline int put_number(table *made, values *in, int kind, const uint8_t *p) {
    Py_ssize_t width = width_of[kind];
    if (UNLIKELY(kind == KIND_BOOL)) return put_numbers(made, in, kind, p, 1, 1);
    uint8_t *to = grow(made, &in->data, 1, width);
    if (UNLIKELY(to == NULL)) return -1;
    in->count++;
    if (width == 4) {
        uint32_t value = get32(p);
        memcpy(to, &value, 4);
    } else if (width == 8) {
        uint64_t value = get64(p);
        memcpy(to, &value, 8);
    } else if (width == 2) {
        uint16_t value = get16(p);
        memcpy(to, &value, 2);
    } else {
        memcpy(to, p, (size_t)width); /* a byte, or a uuid */
    }
    return 0;
}

static int put_blobs(table *made, values *in, const uint8_t *p, Py_ssize_t size, Py_ssize_t count) {
    Py_ssize_t end = in->data.size;
    uint8_t *to = grow(made, &in->data, count, size);
    if (UNLIKELY(to == NULL)) return -1;
    uint8_t *offsets = grow(made, &in->offsets, count, 4);
    if (UNLIKELY(offsets == NULL)) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        memcpy(to + i * size, p, (size_t)size);
        put32(offsets + i * 4, end += size);
    }
    in->count += count;
    return 0;
}

static inline int put_blob(table *made, values *in, const uint8_t *p, Py_ssize_t size) {
    uint8_t *to = grow(made, &in->data, 1, size);
    uint8_t *offset = to ? grow(made, &in->offsets, 1, 4) : NULL;
    if (UNLIKELY(offset == NULL)) return -1;
    memcpy(to, p, (size_t)size);
    put32(offset, in->data.size);
    in->count++;
    return 0;
}

/* The elements of one array. */
static int put_elements(table *made, column *to, reader in, int64_t count) {
    const field_plan *field = to->field;
    if (width_of[field->element])
        return put_numbers(made, &to->values, field->element, in.at, (Py_ssize_t)count, 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t size;
        if (get_length(&in, field, field->element == KIND_STRING, &size)) return -1;
        if (put_blob(made, &to->values, in.at, (Py_ssize_t)size)) return -1;
        in.at += size;
    }
    return 0;
}

static int put_arrays(table *made, column *to, reader in, int64_t count, Py_ssize_t rows) {
    uint8_t *offsets = grow(made, &to->offsets, rows, 4);
    if (UNLIKELY(offsets == NULL)) return -1;
    for (Py_ssize_t row = 0; row < rows; row++) {
        if (UNLIKELY(put_elements(made, to, in, count))) return -1;
        put32(offsets + row * 4, to->values.count);
    }
    return 0;
}

/* Whether there is room for `rows` more nulls, which are not counted as rows here. */
static inline int put_validity(table *made, column *to, Py_ssize_t rows, int valid) {
    if (LIKELY(valid && !to->nulls)) return 0;
    if (!to->nulls && put_bits(made, &to->validity, 0, to->rows, 1)) return -1;
    if (!valid) to->nulls += rows;
    return put_bits(made, &to->validity, to->rows, rows, valid);
}

static int put_nulls(table *made, column *to, Py_ssize_t rows) {
    static const uint8_t nothing[16];
    int kind = to->field->kind;
    if (put_validity(made, to, rows, 0)) return -1;
    to->rows += rows;
    if (width_of[kind]) return put_numbers(made, &to->values, kind, nothing, rows, 1);
    if (kind == KIND_ARRAY) return put_arrays(made, to, (reader){nothing, nothing}, 0, rows);
    return put_blobs(made, &to->values, nothing, 0, rows);
}

int put_rows(table *made, column *to, Py_ssize_t rows) {
    const field_plan *field = to->field;
    int kind = field->kind;
    reader in = to->next;
    int64_t length = 0;
    if (UNLIKELY(in.at == NULL)) return put_nulls(made, to, rows);
    if (!width_of[kind]) {
        if (UNLIKELY(get_length(&in, field, kind == KIND_STRING, &length))) return -1;
        if (length < 0) return put_nulls(made, to, rows);
    }
    if (UNLIKELY(put_validity(made, to, rows, 1))) return -1;
    to->rows += rows;
    if (kind == KIND_ARRAY) return put_arrays(made, to, in, length, rows);
    if (rows == 1)
        return width_of[kind] ? put_number(made, &to->values, kind, in.at)
                              : put_blob(made, &to->values, in.at, (Py_ssize_t)length);
    if (width_of[kind]) return put_numbers(made, &to->values, kind, in.at, rows, 1);
    return put_blobs(made, &to->values, in.at, (Py_ssize_t)length, rows);
}

int put_frame(table *made, Py_ssize_t frame, Py_ssize_t rows) {
    uint8_t *to = grow(made, &made->frame, rows, 4);
    if (UNLIKELY(to == NULL)) return -1;
    for (Py_ssize_t i = 0; i < rows; i++) put32(to + i * 4, frame);
    return 0;
}

/* ---- tables -------------------------------------------------------------------------------------- */

static int is_blob(int kind) { return kind == KIND_STRING || kind == KIND_BYTES; }

/* Offsets begin with that of the first value, which is 0. */
static int begin_offsets(table *made, buffer *in) {
    uint8_t *first = grow(made, in, 1, 4);
    if (first == NULL) return -1;
    put32(first, 0);
    return 0;
}

int table_begin(table *made) {
    for (Py_ssize_t i = 0; i < made->column_count; i++) {
        column *each = &made->columns[i];
        int is_array = each->field->kind == KIND_ARRAY;
        int kind = is_array ? each->field->element : each->field->kind;
        if (is_array && begin_offsets(made, &each->offsets)) return -1;
        if (is_blob(kind) && begin_offsets(made, &each->values.offsets)) return -1;
    }
    return 0;
}

void table_mark(table *made) {
    for (Py_ssize_t i = 0; i < made->column_count; i++)
        made->columns[i].nulls_before = made->columns[i].nulls;
}

/* The offset at which value `count` would begin, and at which the previous one ends. */
static Py_ssize_t cut(buffer *offsets, Py_ssize_t count) {
    int32_t end;
    memcpy(&end, bytes_of(offsets) + count * 4, 4);
    offsets->size = (count + 1) * 4;
    return end;
}

static void cut_values(values *in, int kind, Py_ssize_t count) {
    in->count = count;
    if (is_blob(kind))
        in->data.size = cut(&in->offsets, count);
    else
        in->data.size = kind == KIND_BOOL ? (count + 7) / 8 : count * width_of[kind];
}

/* The frame is written last, since its length is the number of rows. */
void table_take_back(table *made) {
    Py_ssize_t rows = made->rows = made->frame.size / 4;
    for (Py_ssize_t i = 0; i < made->column_count; i++) {
        column *each = &made->columns[i];
        const field_plan *field = each->field;
        each->rows = rows;
        each->nulls = each->nulls_before;
        each->validity.size = each->nulls ? (rows + 7) / 8 : 0;
        if (field->kind == KIND_ARRAY)
            cut_values(&each->values, field->element, cut(&each->offsets, rows));
        else
            cut_values(&each->values, field->kind, rows);
    }
}

/* The object itself, shrunk to the size in use. */
static PyObject *finish(buffer *in) {
    if (in->bytes == NULL) return PyBytes_FromStringAndSize(NULL, 0);
    if (in->size != PyBytes_GET_SIZE(in->bytes) && _PyBytes_Resize(&in->bytes, in->size)) return NULL;
    PyObject *bytes = in->bytes;
    in->bytes = NULL;
    return bytes;
}

static PyObject *finish_bits(buffer *in, Py_ssize_t count) {
    if (count % 8) bytes_of(in)[count / 8] &= (uint8_t)((1 << count % 8) - 1);
    return finish(in);
}

static PyObject *none(void) { Py_RETURN_NONE; }

static PyObject *finish_data(values *in, int kind) {
    return kind == KIND_BOOL ? finish_bits(&in->data, in->count) : finish(&in->data);
}

/* (nulls, validity, offsets, data, elements). Only arrays have `elements`, which is (count,
   offsets, data). Parts that a column lacks are None. */
static PyObject *finish_column(column *each) {
    int kind = each->field->kind, element = each->field->element;
    PyObject *validity = each->nulls ? finish_bits(&each->validity, each->rows) : none();
    if (kind != KIND_ARRAY)
        return Py_BuildValue("(nNNNO)", each->nulls, validity,
                             is_blob(kind) ? finish(&each->values.offsets) : none(),
                             finish_data(&each->values, kind), Py_None);
    return Py_BuildValue("(nNNO(nNN))", each->nulls, validity, finish(&each->offsets), Py_None,
                         each->values.count,
                         is_blob(element) ? finish(&each->values.offsets) : none(),
                         finish_data(&each->values, element));
}

/* (rows, frame, columns, failed, full_at). */
PyObject *table_finish(table *made, PyObject *failed, Py_ssize_t full_at) {
    PyObject *columns = PyTuple_New(made->column_count);
    if (columns == NULL) return NULL;
    for (Py_ssize_t i = 0; i < made->column_count; i++) {
        PyObject *each = finish_column(&made->columns[i]);
        if (each == NULL) {
            Py_DECREF(columns);
            return NULL;
        }
        PyTuple_SET_ITEM(columns, i, each);
    }
    return Py_BuildValue("(nNNOn)", made->rows, finish(&made->frame), columns, failed, full_at);
}

void table_free(table *made) {
    for (Py_ssize_t i = 0; made->columns && i < made->column_count; i++) {
        column *each = &made->columns[i];
        Py_XDECREF(each->validity.bytes);
        Py_XDECREF(each->offsets.bytes);
        Py_XDECREF(each->values.offsets.bytes);
        Py_XDECREF(each->values.data.bytes);
    }
    Py_XDECREF(made->frame.bytes);
    PyMem_Free(made->columns);
}
