/* Encodes message objects to bytes. encode_tags.c encodes the tagged section.
   No Python code runs here. Values must have exactly the types that decoding makes (or be tuples
   instead of lists), and are only compared where that runs no Python code, so nothing that the
   engine reads can change meanwhile. Anything else, such as a subclass or a bytearray, is left to
   Python, which encodes it or raises the error. */
#include "writer.h"

/* SPARE: `ensure` asks for the longest form of a length. */
enum { ON_STACK = 1024, MOST_HINT = (1 << 20) + 4096, SPARE = 8 };

/* The room that was not used is neither copied, as realloc would, nor doubled: a hint of 1 MiB with
   20 bytes written, followed by records of 1 MiB, needs one block of that size. */
SELDOM uint8_t *grow(writer *out, uint8_t *at, Py_ssize_t need) {
    Py_ssize_t used = at - out->base;
    if (need > PY_SSIZE_T_MAX / 2 - used * 2) return NULL;
    Py_ssize_t room = used * 2 + need + ON_STACK;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, room);
    if (bytes != NULL) memcpy(PyBytes_AS_STRING(bytes), out->base, (size_t)used);
    Py_XDECREF(out->bytes);
    out->bytes = bytes;
    if (bytes == NULL) return NULL;
    out->base = (uint8_t *)PyBytes_AS_STRING(bytes);
    out->end = out->base + room;
    return out->base + used;
}

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

uint8_t *encode_field(writer *out, uint8_t *at, const field_plan *field, PyObject *value) {
    return encode_any(out, at, field, value, width_of[field->kind]);
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
