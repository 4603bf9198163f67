/* Message objects -> bytes.

   No Python code runs here: values are taken only of exactly the types that decoding makes (tuples
   for lists besides), and compared only where that calls nobody. So nothing the engine reads can
   change under it. Anything else, a subclass or a bytearray for instance, is left to Python, which
   either writes it or says what is wrong. */
#include "engine.h"

enum { ON_STACK = 1024, MOST_HINT = 1 << 20 };

typedef struct {
    uint8_t *at, *end, *base;
    PyObject *bytes; /* NULL while `base` is the caller's array on the stack */
} writer;

static int grow(writer *out, Py_ssize_t need) {
    Py_ssize_t used = out->at - out->base, room = out->end - out->base;
    if (need > PY_SSIZE_T_MAX / 2 - room) return -1;
    room = room * 2 + need;
    if (out->bytes == NULL) {
        out->bytes = PyBytes_FromStringAndSize(NULL, room);
        if (out->bytes) memcpy(PyBytes_AS_STRING(out->bytes), out->base, (size_t)used);
    } else {
        _PyBytes_Resize(&out->bytes, room); /* NULL where it fails */
    }
    if (out->bytes == NULL) return -1;
    out->base = (uint8_t *)PyBytes_AS_STRING(out->bytes);
    out->at = out->base + used;
    out->end = out->base + room;
    return 0;
}

static inline int ensure(writer *out, Py_ssize_t need) {
    return LIKELY(out->end - out->at >= need) ? 0 : grow(out, need);
}

/* ---- writing numbers: the caller has ensured the room ------------------------------------------ */

static inline void put16(writer *out, uint16_t value) {
    out->at[0] = (uint8_t)(value >> 8);
    out->at[1] = (uint8_t)value;
    out->at += 2;
}

static inline void put32(writer *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out->at[i] = (uint8_t)(value >> (24 - 8 * i));
    out->at += 4;
}

static inline void put64(writer *out, uint64_t value) {
    for (int i = 0; i < 8; i++) out->at[i] = (uint8_t)(value >> (56 - 8 * i));
    out->at += 8;
}

static inline void put_varint(writer *out, uint32_t value) { /* up to 5 bytes */
    for (; value > 0x7F; value >>= 7) *out->at++ = (uint8_t)(value | 0x80);
    *out->at++ = (uint8_t)value;
}

static inline int number_of(PyObject *value, int64_t *out) {
    if (UNLIKELY(!PyLong_CheckExact(value))) return -1;
#if PY_VERSION_HEX >= 0x030C0000
    if (LIKELY(PyUnstable_Long_IsCompact((PyLongObject *)value))) {
        *out = PyUnstable_Long_CompactValue((PyLongObject *)value);
        return 0;
    }
#else
    Py_ssize_t digits = Py_SIZE(value);
    if (LIKELY(digits >= -1 && digits <= 1)) {
        *out = digits ? (int64_t)digits * ((PyLongObject *)value)->ob_digit[0] : 0;
        return 0;
    }
#endif
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : 0;
}

static inline int put_int32(writer *out, PyObject *value) {
    int64_t number;
    if (UNLIKELY(number_of(value, &number) || number != (int32_t)number)) return -1;
    put32(out, (uint32_t)number);
    return 0;
}

static int put_number(writer *out, int kind, PyObject *value) {
    int64_t number = 0;
    if (kind == KIND_BOOL) {
        if (value != Py_True && value != Py_False) return -1;
        *out->at++ = value == Py_True;
        return 0;
    }
    if (kind == KIND_UUID) {
        if (put_uuid(out->at, value)) return -1;
        out->at += 16;
        return 0;
    }
    if (kind == KIND_FLOAT64) {
        if (!PyFloat_CheckExact(value)) return -1;
        double given = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &given, 8);
        put64(out, bits);
        return 0;
    }
    if (UNLIKELY(number_of(value, &number))) return -1;
    switch (kind) {
    case KIND_INT8:
        if (number != (int8_t)number) return -1;
        *out->at++ = (uint8_t)number;
        return 0;
    case KIND_INT16:
        if (number != (int16_t)number) return -1;
        put16(out, (uint16_t)number);
        return 0;
    case KIND_UINT16:
        if (number != (uint16_t)number) return -1;
        put16(out, (uint16_t)number);
        return 0;
    case KIND_INT32:
        if (number != (int32_t)number) return -1;
        put32(out, (uint32_t)number);
        return 0;
    case KIND_UINT32:
        if (number != (uint32_t)number) return -1;
        put32(out, (uint32_t)number);
        return 0;
    default: put64(out, (uint64_t)number); return 0;
    }
}

/* ---- fields -------------------------------------------------------------------------------------- */

static int encode_struct(writer *out, const struct_plan *plan, PyObject *object);

static int encode_null(writer *out, const field_plan *field, int is_string, int nullable) {
    if (!nullable || ensure(out, 4)) return -1;
    if (field->flags & FIELD_COMPACT)
        *out->at++ = 0;
    else if (is_string)
        put16(out, 0xFFFF);
    else
        put32(out, 0xFFFFFFFF);
    return 0;
}

static inline void put_length(writer *out, const field_plan *field, int is_string,
                              Py_ssize_t size) {
    if (field->flags & FIELD_COMPACT)
        put_varint(out, (uint32_t)size + 1);
    else if (is_string)
        put16(out, (uint16_t)size);
    else
        put32(out, (uint32_t)size);
}

static int encode_blob(writer *out, const field_plan *field, int is_string, int nullable,
                       PyObject *value) {
    const char *raw;
    Py_ssize_t size;
    if (is_string) {
        if (UNLIKELY(!PyUnicode_CheckExact(value)))
            return value == Py_None ? encode_null(out, field, 1, nullable) : -1;
        if (LIKELY(PyUnicode_IS_COMPACT_ASCII(value))) {
            raw = (const char *)PyUnicode_1BYTE_DATA(value);
            size = PyUnicode_GET_LENGTH(value);
        } else if (!(raw = PyUnicode_AsUTF8AndSize(value, &size))) {
            return -1; /* a lone surrogate */
        }
        if (UNLIKELY(size > MOST_STRING)) return -1;
    } else {
        if (UNLIKELY(!PyBytes_CheckExact(value)))
            return value == Py_None ? encode_null(out, field, 0, nullable) : -1;
        raw = PyBytes_AS_STRING(value);
        size = PyBytes_GET_SIZE(value);
        if (UNLIKELY(size >= INT32_MAX)) return -1;
    }
    if (UNLIKELY(ensure(out, size + 5))) return -1;
    put_length(out, field, is_string, size);
    memcpy(out->at, raw, (size_t)size);
    out->at += size;
    return 0;
}

static int encode_array(writer *out, const field_plan *field, PyObject *value) {
    PyObject **items;
    Py_ssize_t count, width = width_of[field->element];
    if (LIKELY(PyList_CheckExact(value))) {
        items = ((PyListObject *)value)->ob_item;
        count = PyList_GET_SIZE(value);
    } else if (PyTuple_CheckExact(value)) {
        items = ((PyTupleObject *)value)->ob_item;
        count = PyTuple_GET_SIZE(value);
    } else {
        return value == Py_None ? encode_null(out, field, 0, field->flags & FIELD_NULLABLE) : -1;
    }
    if (UNLIKELY(count >= INT32_MAX || ensure(out, count * width + 5))) return -1;
    put_length(out, field, 0, count);
    if (field->element == KIND_STRUCT) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (UNLIKELY(encode_struct(out, field->inner, items[i]))) return -1;
    } else if (field->element == KIND_INT32) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (UNLIKELY(put_int32(out, items[i]))) return -1;
    } else if (width) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (UNLIKELY(put_number(out, field->element, items[i]))) return -1;
    } else {
        int is_string = field->element == KIND_STRING;
        for (Py_ssize_t i = 0; i < count; i++)
            if (UNLIKELY(encode_blob(out, field, is_string, 0, items[i]))) return -1;
    }
    return 0;
}

static int encode_field(writer *out, const field_plan *field, PyObject *value) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return encode_blob(out, field, 1, nullable, value);
    case KIND_BYTES: return encode_blob(out, field, 0, nullable, value);
    case KIND_ARRAY: return encode_array(out, field, value);
    case KIND_STRUCT:
        if (nullable) {
            if (ensure(out, 1)) return -1;
            if (value == Py_None) {
                *out->at++ = field->flags & FIELD_TAGGED ? 0 : 0xFF;
                return 0;
            }
            *out->at++ = 1;
        }
        return encode_struct(out, field->inner, value);
    default:
        if (ensure(out, width_of[field->kind])) return -1;
        return put_number(out, field->kind, value);
    }
}

/* ---- the tagged section -------------------------------------------------------------------------- */

typedef struct {
    uint32_t tag;
    PyObject *raw; /* borrowed from the dict, which nobody can change meanwhile */
} unknown_tag;

static int by_tag(const void *left, const void *right) {
    uint32_t a = ((const unknown_tag *)left)->tag, b = ((const unknown_tag *)right)->tag;
    return a < b ? -1 : a > b;
}

/* The unknown tags in ascending order, to be freed with PyMem_Free; NULL where Python has to look. */
static unknown_tag *sorted_tags(const struct_plan *plan, PyObject *tags) {
    Py_ssize_t at = 0, count = 0;
    PyObject *key, *raw;
    unknown_tag *found = PyMem_Calloc((size_t)PyDict_GET_SIZE(tags) + 1, sizeof *found);
    if (found == NULL) return NULL;
    while (PyDict_Next(tags, &at, &key, &raw)) {
        int64_t tag;
        if (number_of(key, &tag) || tag < 0 || tag > INT32_MAX || !PyBytes_CheckExact(raw) ||
            PyBytes_GET_SIZE(raw) >= INT32_MAX || field_of_tag(plan, (uint32_t)tag)) {
            PyMem_Free(found);
            return NULL;
        }
        found[count].tag = (uint32_t)tag;
        found[count++].raw = raw;
    }
    qsort(found, (size_t)count, sizeof *found, by_tag);
    return found;
}

static int put_unknown(writer *out, const unknown_tag *tag) {
    Py_ssize_t size = PyBytes_GET_SIZE(tag->raw);
    if (ensure(out, size + 10)) return -1;
    put_varint(out, tag->tag);
    put_varint(out, (uint32_t)size);
    memcpy(out->at, PyBytes_AS_STRING(tag->raw), (size_t)size);
    out->at += size;
    return 0;
}

/* Tag, size and value. The size is known afterwards: most take the one byte left for it, and what
   takes more is moved. */
static int put_known(writer *out, const field_plan *field, PyObject *value) {
    if (ensure(out, 10)) return -1;
    put_varint(out, field->tag);
    Py_ssize_t start = ++out->at - out->base;
    if (encode_field(out, field, value)) return -1;
    Py_ssize_t size = out->at - out->base - start;
    if (size >= INT32_MAX) return -1;
    int more = 0;
    for (Py_ssize_t rest = size >> 7; rest; rest >>= 7) more++;
    if (more) {
        if (ensure(out, more)) return -1;
        memmove(out->base + start + more, out->base + start, (size_t)size);
    }
    out->at = out->base + start - 1;
    put_varint(out, (uint32_t)size);
    out->at += size;
    return 0;
}

static int encode_tags(writer *out, const struct_plan *plan, PyObject *object, PyObject *tags) {
    uint64_t written = 0; /* a bit for each known field: MOST_TAGGED */
    Py_ssize_t unknown_count = PyDict_GET_SIZE(tags), count = unknown_count, done = 0;
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        const field_plan *field = &TAGGED(plan)[i];
        PyObject *value = SLOT(object, field->slot);
        int same = value ? is_at_default(field, value) : -1;
        if (same < 0) return -1;
        if (!same) {
            written |= UINT64_C(1) << i;
            count++;
        }
    }
    if (count >= INT32_MAX || ensure(out, 5)) return -1;
    put_varint(out, (uint32_t)count);
    if (count == 0) return 0;
    unknown_tag *unknown = unknown_count ? sorted_tags(plan, tags) : NULL;
    if (unknown_count && unknown == NULL) return -1;
    int result = -1;
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        const field_plan *field = &TAGGED(plan)[i];
        if (!(written >> i & 1)) continue;
        for (; done < unknown_count && unknown[done].tag < field->tag; done++)
            if (put_unknown(out, &unknown[done])) goto done;
        if (put_known(out, field, SLOT(object, field->slot))) goto done;
    }
    for (; done < unknown_count; done++)
        if (put_unknown(out, &unknown[done])) goto done;
    result = 0;
done:
    PyMem_Free(unknown);
    return result;
}

/* ---- structs ------------------------------------------------------------------------------------- */

static int encode_inline(writer *out, const struct_plan *plan, PyObject *object) {
    const field_plan *end = TAGGED(plan);
    for (const field_plan *field = INLINE(plan); field < end; field++) {
        PyObject *value = SLOT(object, field->slot);
        int failed;
        if (UNLIKELY(value == NULL)) return -1; /* deleted */
        if (field->run && UNLIKELY(ensure(out, field->run))) return -1;
        switch (field->kind) {
        case KIND_INT32: failed = put_int32(out, value); break;
        case KIND_STRING:
            failed = encode_blob(out, field, 1, field->flags & FIELD_NULLABLE, value);
            break;
        case KIND_ARRAY: failed = encode_array(out, field, value); break;
        case KIND_BYTES:
        case KIND_STRUCT: failed = encode_field(out, field, value); break;
        default: failed = put_number(out, field->kind, value);
        }
        if (UNLIKELY(failed)) return -1;
    }
    return 0;
}

static int encode_struct(writer *out, const struct_plan *plan, PyObject *object) {
    if (UNLIKELY(Py_TYPE(object) != plan->type)) return -1;
    for (const field_plan *field = ABSENT(plan); field < FIELDS_END(plan); field++) {
        if (field->flags & FIELD_IGNORABLE) continue;
        PyObject *value = SLOT(object, field->slot);
        if (UNLIKELY(value == NULL || is_at_default(field, value) != 1)) return -1;
    }
    if (UNLIKELY(encode_inline(out, plan, object))) return -1;
    PyObject *tags = SLOT(object, plan->tags_slot);
    if (UNLIKELY(tags != engine.no_tags && (tags == NULL || !PyDict_CheckExact(tags)))) return -1;
    if (!plan->flexible) return UNLIKELY(PyDict_GET_SIZE(tags)) ? -1 : 0;
    if (LIKELY(!plan->tagged_count && !PyDict_GET_SIZE(tags))) {
        if (UNLIKELY(ensure(out, 1))) return -1;
        *out->at++ = 0;
        return 0;
    }
    return encode_tags(out, plan, object, tags);
}

PyObject *encode_message(plan_object *self, PyObject *message) {
    uint8_t stack[ON_STACK];
    writer out = {stack, stack + ON_STACK, stack, NULL};
    const struct_plan *root = &self->structs[self->struct_count - 1];
    if (self->size_hint > ON_STACK) {
        out.bytes = PyBytes_FromStringAndSize(NULL, self->size_hint);
        if (out.bytes == NULL) return NULL;
        out.base = out.at = (uint8_t *)PyBytes_AS_STRING(out.bytes);
        out.end = out.base + self->size_hint;
    }
    if (UNLIKELY(encode_struct(&out, root, message))) {
        Py_XDECREF(out.bytes);
        return NULL;
    }
    Py_ssize_t size = out.at - out.base;
    if (out.bytes == NULL) return PyBytes_FromStringAndSize((const char *)stack, size);
    /* Up at once, down slowly: one large body does not make the next hundred reserve as much. */
    if (size >= self->size_hint)
        self->size_hint = size < MOST_HINT ? size : MOST_HINT;
    else
        self->size_hint -= (self->size_hint - size) / 8;
    _PyBytes_Resize(&out.bytes, size);
    return out.bytes;
}
