/* Encodes message objects to bytes.
   No Python code runs here. Values must have exactly the types that decoding makes (or be tuples
   instead of lists), and are only compared where that runs no Python code, so nothing that the
   engine reads can change meanwhile. Anything else, such as a subclass or a bytearray, is left to
   Python, which encodes it or raises the error. */
#include "writer.h"

/* SPARE: `ensure` asks for the longest form of a length. */
enum { MOST_HINT = (1 << 20) + 4096, SPARE = 8 };

/* ---- values ------------------------------------------------------------------------------------ */

static uint8_t *encode_struct(writer *out, uint8_t *at, const struct_plan *plan, PyObject *object);

/* A number of fixed width, for which there is room. */
static uint8_t *put_number(uint8_t *at, int kind, PyObject *value) {
    int64_t number = 0;
    if (kind == KIND_BOOL) {
        if (value != Py_True && value != Py_False) return NULL;
        return put8(at, value == Py_True);
    }
    if (kind == KIND_UUID) return put_uuid(at, value) ? NULL : at + 16;
    if (kind == KIND_FLOAT64) {
        if (!PyFloat_CheckExact(value)) return NULL;
        double given = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &given, 8);
        return put64(at, bits);
    }
    if (UNLIKELY(number_of(value, &number))) return NULL;
    switch (kind) {
    case KIND_INT8: return number == (int8_t)number ? put8(at, (uint8_t)number) : NULL;
    case KIND_INT16: return number == (int16_t)number ? put16(at, (uint16_t)number) : NULL;
    case KIND_UINT16: return number == (uint16_t)number ? put16(at, (uint16_t)number) : NULL;
    case KIND_INT32: return number == (int32_t)number ? put32(at, (uint32_t)number) : NULL;
    case KIND_UINT32: return number == (uint32_t)number ? put32(at, (uint32_t)number) : NULL;
    default: return put64(at, (uint64_t)number);
    }
}

static uint8_t *encode_null(writer *out, uint8_t *at, const field_plan *field, int is_string,
                            int nullable) {
    if (!nullable || !(at = ensure(out, at, 4))) return NULL;
    if (field->flags & FIELD_COMPACT) return put8(at, 0);
    return is_string ? put16(at, 0xFFFF) : put32(at, 0xFFFFFFFF);
}

static inline uint8_t *put_text(writer *out, uint8_t *at, const field_plan *field,
                                const char *raw, Py_ssize_t size) {
    if (UNLIKELY(size > MOST_STRING || !(at = ensure(out, at, size + 5)))) return NULL;
    return put_bytes(put_length(at, field, 1, size), raw, size);
}

SELDOM static uint8_t *encode_wide(writer *out, uint8_t *at, const field_plan *field,
                                   PyObject *value) {
    Py_ssize_t size;
    const char *raw = PyUnicode_AsUTF8AndSize(value, &size);
    return raw ? put_text(out, at, field, raw, size) : NULL; /* NULL: a lone surrogate */
}

static inline uint8_t *encode_string(writer *out, uint8_t *at, const field_plan *field,
                                     int nullable, PyObject *value) {
    if (UNLIKELY(!PyUnicode_CheckExact(value)))
        return value == Py_None ? encode_null(out, at, field, 1, nullable) : NULL;
    if (UNLIKELY(!PyUnicode_IS_COMPACT_ASCII(value))) return encode_wide(out, at, field, value);
    const char *raw = (const char *)((PyASCIIObject *)value + 1);
    return put_text(out, at, field, raw, PyUnicode_GET_LENGTH(value));
}

static uint8_t *encode_bytes(writer *out, uint8_t *at, const field_plan *field, int nullable,
                             PyObject *value) {
    if (UNLIKELY(!PyBytes_CheckExact(value)))
        return value == Py_None ? encode_null(out, at, field, 0, nullable) : NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(value);
    if (UNLIKELY(size >= INT32_MAX || !(at = ensure(out, at, size + 5)))) return NULL;
    return put_bytes(put_length(at, field, 0, size), PyBytes_AS_STRING(value), size);
}

/* The elements from `item` to `end`. For those of fixed width there is room. */
static uint8_t *encode_elements(writer *out, uint8_t *at, const field_plan *field, PyObject **item,
                                PyObject **end) {
    switch (field->element) {
    case KIND_INT32:
        for (; item < end; item++)
            if (UNLIKELY(!(at = put_int32(at, *item)))) return NULL;
        return at;
    case KIND_STRUCT:
        for (; item < end; item++)
            if (UNLIKELY(!(at = encode_struct(out, at, field->inner, *item)))) return NULL;
        return at;
    case KIND_STRING:
        for (; item < end; item++)
            if (UNLIKELY(!(at = encode_string(out, at, field, 0, *item)))) return NULL;
        return at;
    case KIND_BYTES:
        for (; item < end; item++)
            if (UNLIKELY(!(at = encode_bytes(out, at, field, 0, *item)))) return NULL;
        return at;
    default:
        for (; item < end; item++)
            if (UNLIKELY(!(at = put_number(at, field->element, *item)))) return NULL;
        return at;
    }
}

static inline uint8_t *encode_array(writer *out, uint8_t *at, const field_plan *field,
                                    PyObject *value) {
    PyObject **items;
    Py_ssize_t count;
    if (LIKELY(PyList_CheckExact(value))) {
        items = ((PyListObject *)value)->ob_item;
        count = PyList_GET_SIZE(value);
    } else if (PyTuple_CheckExact(value)) {
        items = ((PyTupleObject *)value)->ob_item;
        count = PyTuple_GET_SIZE(value);
    } else {
        int nullable = field->flags & FIELD_NULLABLE;
        return value == Py_None ? encode_null(out, at, field, 0, nullable) : NULL;
    }
    if (UNLIKELY(count >= INT32_MAX)) return NULL;
    if (UNLIKELY(!(at = ensure(out, at, count * width_of[field->element] + 5)))) return NULL;
    at = put_length(at, field, 0, count);
    return count ? encode_elements(out, at, field, items, items + count) : at;
}

static uint8_t *encode_struct_field(writer *out, uint8_t *at, const field_plan *field,
                                    PyObject *value) {
    if (field->flags & FIELD_NULLABLE) {
        if (!(at = ensure(out, at, 1))) return NULL;
        if (value == Py_None) return put8(at, field->flags & FIELD_TAGGED ? 0 : 0xFF);
        at = put8(at, 1);
    }
    return encode_struct(out, at, field->inner, value);
}

/* A field of any kind. For those of fixed width, `run` bytes are ensured or known to be available. */
static inline uint8_t *encode_any(writer *out, uint8_t *at, const field_plan *field,
                                  PyObject *value, Py_ssize_t run) {
    if (run && UNLIKELY(!(at = ensure(out, at, run)))) return NULL;
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_INT32: return put_int32(at, value);
    case KIND_STRING: return encode_string(out, at, field, nullable, value);
    case KIND_BYTES: return encode_bytes(out, at, field, nullable, value);
    case KIND_ARRAY: return encode_array(out, at, field, value);
    case KIND_STRUCT: return encode_struct_field(out, at, field, value);
    default: return put_number(at, field->kind, value);
    }
}

/* ---- the tagged section: known fields that differ from their default, and the unknown fields kept by
   decoding, in the order of their tags ------------------------------------------------------------ */

typedef struct {
    uint32_t tag;
    PyObject *raw; /* borrowed from the dict, which cannot change meanwhile */
} unknown_tag;

static int by_tag(const void *left, const void *right) {
    uint32_t a = ((const unknown_tag *)left)->tag, b = ((const unknown_tag *)right)->tag;
    return a < b ? -1 : a > b;
}

/* The unknown tags in ascending order, to be freed with PyMem_Free; NULL where Python must handle
   them. */
static unknown_tag *sorted_tags(const struct_plan *plan, PyObject *tags) {
    Py_ssize_t at = 0, count = 0;
    PyObject *key, *raw;
    unknown_tag *found = PyMem_Calloc((size_t)PyDict_GET_SIZE(tags) + 1, sizeof *found);
    if (found == NULL) return NULL;
    while (PyDict_Next(tags, &at, &key, &raw)) {
        int64_t tag;
        if (!PyLong_CheckExact(key) || number_of(key, &tag) || tag < 0 || tag > INT32_MAX ||
            !PyBytes_CheckExact(raw) || PyBytes_GET_SIZE(raw) >= INT32_MAX ||
            field_of_tag(plan, (uint32_t)tag)) {
            PyMem_Free(found);
            return NULL;
        }
        found[count].tag = (uint32_t)tag;
        found[count++].raw = raw;
    }
    qsort(found, (size_t)count, sizeof *found, by_tag);
    return found;
}

static uint8_t *put_unknown(writer *out, uint8_t *at, const unknown_tag *tag) {
    Py_ssize_t size = PyBytes_GET_SIZE(tag->raw);
    if (!(at = ensure(out, at, size + 10))) return NULL;
    at = put_varint(at, tag->tag);
    at = put_varint(at, (uint32_t)size);
    return put_bytes(at, PyBytes_AS_STRING(tag->raw), size);
}

/* Tag, size and value. The size is known only afterwards: one byte is left for it, and larger sizes
   move the value. */
static uint8_t *put_known(writer *out, uint8_t *at, const field_plan *field, PyObject *value) {
    if (!(at = ensure(out, at, 10))) return NULL;
    at = put_varint(at, field->tag) + 1;
    Py_ssize_t start = at - out->base; /* the buffer may move */
    if (!(at = encode_any(out, at, field, value, width_of[field->kind]))) return NULL;
    Py_ssize_t size = at - out->base - start;
    if (size >= INT32_MAX) return NULL;
    int more = 0;
    for (Py_ssize_t rest = size >> 7; rest; rest >>= 7) more++;
    if (more) {
        if (!ensure(out, at, more)) return NULL;
        memmove(out->base + start + more, out->base + start, (size_t)size);
    }
    return put_varint(out->base + start - 1, (uint32_t)size) + size;
}

/* Merges both in order. `written` has a bit for each known field that is not left out: MOST_TAGGED. */
static uint8_t *put_in_order(writer *out, uint8_t *at, const struct_plan *plan, PyObject *object,
                             uint64_t written, const unknown_tag *next, const unknown_tag *last) {
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        const field_plan *field = &TAGGED(plan)[i];
        if (!(written >> i & 1)) continue;
        for (; next < last && next->tag < field->tag; next++)
            if (!(at = put_unknown(out, at, next))) return NULL;
        if (!(at = put_known(out, at, field, SLOT(object, field->slot)))) return NULL;
    }
    for (; next < last; next++)
        if (!(at = put_unknown(out, at, next))) return NULL;
    return at;
}

static uint8_t *encode_tags(writer *out, uint8_t *at, const struct_plan *plan, PyObject *object,
                            PyObject *tags) {
    uint64_t written = 0;
    Py_ssize_t unknown_count = PyDict_GET_SIZE(tags), count = unknown_count;
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        const field_plan *field = &TAGGED(plan)[i];
        PyObject *value = SLOT(object, field->slot);
        int same = value ? is_at_default(field, value) : -1;
        if (same < 0) return NULL;
        if (!same) {
            written |= UINT64_C(1) << i;
            count++;
        }
    }
    if (count >= INT32_MAX || !(at = ensure(out, at, 5))) return NULL;
    at = put_varint(at, (uint32_t)count);
    if (unknown_count == 0) return put_in_order(out, at, plan, object, written, NULL, NULL);
    unknown_tag *unknown = sorted_tags(plan, tags);
    if (unknown == NULL) return NULL;
    at = put_in_order(out, at, plan, object, written, unknown, unknown + unknown_count);
    PyMem_Free(unknown);
    return at;
}

/* ---- structs ----------------------------------------------------------------------------------- */

static uint8_t *encode_struct(writer *out, uint8_t *at, const struct_plan *plan,
                              PyObject *object) {
    if (UNLIKELY(Py_TYPE(object) != plan->type)) return NULL;
    for (const field_plan *field = ABSENT(plan); field < FIELDS_END(plan); field++) {
        if (field->flags & FIELD_IGNORABLE) continue;
        PyObject *value = SLOT(object, field->slot);
        if (UNLIKELY(value == NULL || is_at_default(field, value) != 1)) return NULL;
    }
    for (const field_plan *field = INLINE(plan), *end = TAGGED(plan); field < end; field++) {
        PyObject *value = SLOT(object, field->slot);
        if (UNLIKELY(value == NULL)) return NULL; /* deleted */
        if (UNLIKELY(!(at = encode_any(out, at, field, value, field->run)))) return NULL;
    }
    PyObject *tags = SLOT(object, plan->tags_slot);
    if (UNLIKELY(tags != engine.no_tags && (tags == NULL || !PyDict_CheckExact(tags)))) return NULL;
    if (!plan->flexible) return UNLIKELY(PyDict_GET_SIZE(tags)) ? NULL : at;
    if (UNLIKELY(TAGGED(plan) < ABSENT(plan) || PyDict_GET_SIZE(tags)))
        return encode_tags(out, at, plan, object, tags);
    at = ensure(out, at, 1);
    return LIKELY(at != NULL) ? put8(at, 0) : NULL;
}

PyObject *encode_message(plan_object *self, PyObject *message) {
    uint8_t stack[ON_STACK];
    writer out = {stack, stack + ON_STACK, NULL};
    const struct_plan *root = &self->structs[self->struct_count - 1];
    if (self->size_hint > ON_STACK) {
        out.bytes = PyBytes_FromStringAndSize(NULL, self->size_hint);
        if (out.bytes == NULL) return NULL;
        out.base = (uint8_t *)PyBytes_AS_STRING(out.bytes);
        out.end = out.base + self->size_hint;
    }
    const uint8_t *at = encode_struct(&out, out.base, root, message);
    if (UNLIKELY(at == NULL)) {
        Py_XDECREF(out.bytes);
        return NULL;
    }
    Py_ssize_t size = at - out.base;
    if (out.bytes == NULL) return PyBytes_FromStringAndSize((const char *)stack, size);
    /* Grows at once and shrinks slowly: one large body does not make the next hundred reserve as
       much. */
    if (size + SPARE > self->size_hint)
        self->size_hint = size + SPARE < MOST_HINT ? size + SPARE : MOST_HINT;
    else
        self->size_hint -= (self->size_hint - size - SPARE) / 8;
    _PyBytes_Resize(&out.bytes, size);
    return out.bytes;
}
