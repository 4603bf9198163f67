/* Decodes bytes to message objects. A reader is passed by value, as in validate.c. The result is
   stored in `*made`, and the offset after it is returned. NULL means that the bytes are invalid:
   all objects made are freed by then, `*made` is undefined, and module.c finds out why.
   Objects are made by their type's allocator, and their slots are filled during reading. No other
   code can see an incomplete object: lists are untracked by the garbage collector while they are
   filled, and structs of messages are never tracked. The collector therefore need not be disabled,
   or restored after an error.
   Lists of untracked objects stay untracked for good. No cycle can pass through them, and a body of
   ten thousand lists costs the collector nothing.
   Python code may run here: callbacks of a garbage collection on CPython 3.11, and make_uuid on an
   interpreter with another layout of UUIDs. Neither can reach the objects being made or the tables
   of the plan, which the caller holds. */
#include "engine.h"

/* A list with more elements is made only once they are known to exist, so that a few bytes that
   announce millions at each level reserve nothing. */
enum { TRUSTED_COUNT = 1 << 14 };

/* A list with room for `count` elements and none so far; its size is set while it is filled. */
static PyListObject *new_list(Py_ssize_t count) {
#if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
    /* PyList_New tracks it; untrack it at once. */
    PyObject **items = NULL;
    if (count && !(items = PyMem_New(PyObject *, count))) return NULL;
    PyListObject *list = PyObject_GC_New(PyListObject, &PyList_Type);
    if (UNLIKELY(list == NULL)) {
        PyMem_Free(items);
        return NULL;
    }
    list->ob_item = items;
    list->allocated = count;
#else
    PyListObject *list = (PyListObject *)PyList_New(count);
    if (UNLIKELY(list == NULL)) return NULL;
    PyObject_GC_UnTrack(list);
#endif
    Py_SET_SIZE(list, 0);
    return list;
}

static PyObject *new_default(const field_plan *field) {
    switch (field->default_mode) {
    case DEFAULT_LIST: return (PyObject *)new_list(0);
    case DEFAULT_STRUCT: return PyObject_CallNoArgs((PyObject *)field->inner->type);
    default: Py_INCREF(field->default_value); return field->default_value;
    }
}

static inline const uint8_t *read_null(reader in, int nullable, PyObject **made) {
    if (!nullable) return NULL;
    Py_INCREF(Py_None);
    *made = Py_None;
    return in.at;
}

/* A string, bytes or records. */
static inline const uint8_t *read_blob(reader in, const field_plan *field, int is_string,
                                       int nullable, PyObject **made) {
    int64_t size;
    if (UNLIKELY(get_length(&in, field, is_string, &size))) return NULL;
    if (size < 0) return read_null(in, nullable, made);
    if (UNLIKELY(size > left_of(&in) || (is_string && size > MOST_STRING))) return NULL;
    *made = is_string ? new_string(in.at, (Py_ssize_t)size)
                      : PyBytes_FromStringAndSize((const char *)in.at, (Py_ssize_t)size);
    return LIKELY(*made != NULL) ? in.at + size : NULL;
}

static inline PyObject *read_number(int kind, const uint8_t *p) {
    return LIKELY(kind == KIND_INT32) ? new_int32((int32_t)get32(p)) : new_number(kind, p);
}

static const uint8_t *read_struct(reader in, const struct_plan *plan, PyObject **made);

/* Reads `count` elements into `list`. If one is invalid, the list's size says how many there are. */
static inline const uint8_t *read_elements(reader in, const field_plan *field, PyListObject *list,
                                           Py_ssize_t count) {
    PyObject **items = list->ob_item;
    Py_ssize_t i = 0, width = width_of[field->element];
    if (width) {
        for (; i < count; i++, in.at += width)
            if (UNLIKELY(!(items[i] = read_number(field->element, in.at)))) break;
    } else if (field->element == KIND_STRUCT) {
        for (; i < count; i++)
            if (UNLIKELY(!(in.at = read_struct(in, field->inner, &items[i])))) break;
    } else {
        int is_string = field->element == KIND_STRING;
        for (; i < count; i++)
            if (UNLIKELY(!(in.at = read_blob(in, field, is_string, 0, &items[i])))) break;
    }
    Py_SET_SIZE(list, i);
    return LIKELY(i == count) ? in.at : NULL;
}

static inline const uint8_t *read_array(reader in, const field_plan *field, PyObject **made) {
    int64_t count;
    if (UNLIKELY(get_length(&in, field, 0, &count))) return NULL;
    if (UNLIKELY(count < 0)) return read_null(in, field->flags & FIELD_NULLABLE, made);
    /* Also keeps the reads of fixed-width elements within the buffer. */
    if (UNLIKELY(!may_hold(&in, field, count))) return NULL;
    if (UNLIKELY(count > TRUSTED_COUNT)) {
        reader ahead = in;
        if (validate_elements(&ahead, field, count)) return NULL;
    }
    PyListObject *list = new_list((Py_ssize_t)count);
    if (UNLIKELY(list == NULL)) return NULL;
    in.at = read_elements(in, field, list, (Py_ssize_t)count);
    if (UNLIKELY(in.at == NULL)) {
        Py_DECREF(list);
        return NULL;
    }
    if (UNLIKELY(field->inner && field->inner->collected)) PyObject_GC_Track(list);
    *made = (PyObject *)list;
    return in.at;
}

static inline const uint8_t *read_field(reader in, const field_plan *field, PyObject **made) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return read_blob(in, field, 1, nullable, made);
    case KIND_BYTES: return read_blob(in, field, 0, nullable, made);
    case KIND_ARRAY: return read_array(in, field, made);
    case KIND_STRUCT:
        if (nullable) {
            int present = get_presence(&in, field);
            if (present < 0) return NULL;
            if (!present) return read_null(in, 1, made);
        }
        return read_struct(in, field->inner, made);
    default: {
        Py_ssize_t width = width_of[field->kind];
        if (left_of(&in) < width || !(*made = new_number(field->kind, in.at))) return NULL;
        return in.at + width;
    }
    }
}

static int keep_unknown(PyObject **tags, uint32_t tag, const uint8_t *p, uint32_t size) {
    if (*tags == NULL && !(*tags = PyDict_New())) return -1;
    PyObject *key = PyLong_FromUnsignedLong(tag);
    PyObject *raw = key ? PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)size) : NULL;
    int failed = !raw || PyDict_SetItem(*tags, key, raw);
    Py_XDECREF(key);
    Py_XDECREF(raw);
    return failed ? -1 : 0;
}

/* The tagged section after its count. Known fields go to their slots, the others into `*unknown`. */
static const uint8_t *read_tags(reader in, const struct_plan *plan, PyObject *object,
                                uint32_t count, PyObject **unknown) {
    if ((Py_ssize_t)count > left_of(&in) / 2) return NULL;
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(&in, plan, &last, &size)) return NULL;
        const uint8_t *end = in.at + size;
        const field_plan *field = field_of_tag(plan, (uint32_t)last);
        if (field == NULL) {
            if (keep_unknown(unknown, (uint32_t)last, in.at, size)) return NULL;
        } else {
            PyObject *value;
            const uint8_t *after = read_field(in, field, &value);
            if (after == NULL) return NULL;
            SLOT(object, field->slot) = value; /* tags ascend, so the slot was empty */
            if (after != end) return NULL;
        }
        in.at = end;
    }
    return in.at;
}

/* Everything after the inline fields: tags, and the defaults of fields that are not in the bytes. */
static inline const uint8_t *read_rest(reader in, const struct_plan *plan, PyObject *object) {
    PyObject *unknown = NULL;
    if (plan->flexible) {
        uint32_t count;
        if (UNLIKELY(get_varint(&in, &count))) return NULL;
        if (UNLIKELY(count) && !(in.at = read_tags(in, plan, object, count, &unknown))) {
            Py_XDECREF(unknown);
            return NULL;
        }
    }
    if (LIKELY(unknown == NULL)) {
        Py_INCREF(engine.no_tags);
        unknown = engine.no_tags;
    }
    SLOT(object, plan->tags_slot) = unknown;
    for (const field_plan *field = TAGGED(plan); field < FIELDS_END(plan); field++) {
        if (SLOT(object, field->slot) != NULL) continue;
        PyObject *value = new_default(field);
        if (UNLIKELY(value == NULL)) return NULL;
        SLOT(object, field->slot) = value;
    }
    return in.at;
}

/* An instance of which only the inline fields are filled. */
static PyObject *new_struct(const struct_plan *plan) {
    if (UNLIKELY(!plan->bare)) {
        PyObject *object = plan->type->tp_alloc(plan->type, 0);
        if (object != NULL && plan->collected) PyObject_GC_UnTrack(object);
        return object;
    }
    PyObject *object = PyObject_New(PyObject, plan->type);
    if (UNLIKELY(object == NULL)) return NULL;
    SLOT(object, plan->tags_slot) = NULL;
    for (const field_plan *field = TAGGED(plan); field < FIELDS_END(plan); field++)
        SLOT(object, field->slot) = NULL;
    return object;
}

static const uint8_t *read_struct(reader in, const struct_plan *plan, PyObject **made) {
    const field_plan *field = INLINE(plan), *end = TAGGED(plan);
    PyObject *object = new_struct(plan);
    if (UNLIKELY(object == NULL)) return NULL;
    while (field < end) {
        if (!field->run) {
            in.at = read_field(in, field, &SLOT(object, field->slot));
            if (UNLIKELY(in.at == NULL)) goto failed;
            field++;
            continue;
        }
        if (UNLIKELY(field->run > left_of(&in))) goto failed;
        for (const field_plan *stop = field + field->run_fields; field < stop; field++) {
            PyObject *value = read_number(field->kind, in.at);
            if (UNLIKELY(value == NULL)) goto failed;
            SLOT(object, field->slot) = value;
            in.at += width_of[field->kind];
        }
    }
    in.at = read_rest(in, plan, object);
    if (UNLIKELY(in.at == NULL)) goto failed;
    if (UNLIKELY(plan->collected)) PyObject_GC_Track(object);
    *made = object;
    return in.at;
failed:
    for (; field < end; field++) SLOT(object, field->slot) = NULL;
    Py_DECREF(object);
    return NULL;
}

PyObject *decode_struct(reader *in, const struct_plan *plan) {
    PyObject *made;
    const uint8_t *at = read_struct(*in, plan, &made);
    if (UNLIKELY(at == NULL)) return NULL;
    in->at = at;
    return made;
}
