/* Bytes -> message objects.

   A function that returns NULL has freed what it made, and leaves it to module.c to find out why.
   Objects are made by their type's allocator and their slots filled as the bytes come; nobody else
   can see them before they are whole: lists and structs are taken from the garbage collector's view
   while they are filled, and structs of messages never are in it. For the same reason its state
   never has to be switched off, nor restored on an error.

   What stays out of the collector's view for good: lists of anything but objects that are in it
   themselves. No cycle can go through those, and a body of ten thousand lists costs it nothing.

   Python code may run here: what a collection calls back on CPython 3.11, and make_uuid on an
   interpreter whose UUIDs are laid out in some other way. Neither can reach the objects being made
   or the tables of the plan, which its caller holds. */
#include "engine.h"

/* A list of more elements is made only once they are known to be there: a few bytes that announce
   millions, level below level, reserve nothing. */
enum { TRUSTED_COUNT = 1 << 14 };

/* A list that has room for `count` and holds none yet: its size is set as it is filled. */
static PyListObject *new_list(Py_ssize_t count) {
#if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
    /* PyList_New puts it into the collector's view, to be taken out at once. */
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

/* A string, bytes or records. */
static PyObject *decode_blob(reader *in, const field_plan *field, int is_string, int nullable) {
    int64_t size;
    if (UNLIKELY(get_length(in, field, is_string, &size))) return NULL;
    if (size < 0) {
        if (!nullable) return NULL;
        Py_RETURN_NONE;
    }
    if (UNLIKELY(size > left_of(in) || (is_string && size > MOST_STRING))) return NULL;
    const uint8_t *p = in->at;
    in->at += size;
    return is_string ? new_string(p, (Py_ssize_t)size)
                     : PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)size);
}

/* Up to `count` elements into `items`; returns how many, fewer where one of them is not valid. */
static Py_ssize_t decode_elements(reader *in, const field_plan *field, PyObject **items,
                                  Py_ssize_t count) {
    Py_ssize_t i = 0, width = width_of[field->element];
    const uint8_t *p = in->at;
    switch (field->element) {
    case KIND_STRUCT:
        for (; i < count; i++)
            if (UNLIKELY(!(items[i] = decode_struct(in, field->inner)))) break;
        return i;
    case KIND_STRING:
    case KIND_BYTES:
        for (; i < count; i++)
            if (UNLIKELY(!(items[i] = decode_blob(in, field, field->element == KIND_STRING, 0))))
                break;
        return i;
    case KIND_INT32:
        for (; i < count; i++, p += 4)
            if (UNLIKELY(!(items[i] = new_int32((int32_t)get32(p))))) break;
        break;
    default:
        for (; i < count; i++, p += width)
            if (UNLIKELY(!(items[i] = new_number(field->element, p)))) break;
    }
    in->at = p;
    return i;
}

static PyObject *decode_array(reader *in, const field_plan *field) {
    int64_t count;
    if (UNLIKELY(get_length(in, field, 0, &count))) return NULL;
    if (count < 0) {
        if (!(field->flags & FIELD_NULLABLE)) return NULL;
        Py_RETURN_NONE;
    }
    /* Also what keeps the reads of fixed-width elements within the buffer. */
    if (UNLIKELY(!may_hold(in, field, count))) return NULL;
    if (UNLIKELY(count > TRUSTED_COUNT)) {
        reader ahead = *in;
        if (validate_elements(&ahead, field, count)) return NULL;
    }
    PyListObject *list = new_list((Py_ssize_t)count);
    if (UNLIKELY(list == NULL)) return NULL;
    Py_ssize_t made = decode_elements(in, field, list->ob_item, (Py_ssize_t)count);
    Py_SET_SIZE(list, made);
    if (UNLIKELY(made < count)) {
        Py_DECREF(list);
        return NULL;
    }
    if (UNLIKELY(field->inner && field->inner->collected)) PyObject_GC_Track(list);
    return (PyObject *)list;
}

static PyObject *decode_field(reader *in, const field_plan *field) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return decode_blob(in, field, 1, nullable);
    case KIND_BYTES: return decode_blob(in, field, 0, nullable);
    case KIND_ARRAY: return decode_array(in, field);
    case KIND_STRUCT:
        if (nullable) {
            int present = get_presence(in, field);
            if (present < 0) return NULL;
            if (!present) Py_RETURN_NONE;
        }
        return decode_struct(in, field->inner);
    default: {
        Py_ssize_t width = width_of[field->kind];
        if (left_of(in) < width) return NULL;
        const uint8_t *p = in->at;
        in->at += width;
        return new_number(field->kind, p);
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

/* The tagged section after its count. Known fields go to their slots, the rest into `*unknown`. */
static int decode_tags(reader *in, const struct_plan *plan, PyObject *object, uint32_t count,
                       PyObject **unknown) {
    if ((Py_ssize_t)count > left_of(in) / 2) return -1;
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(in, plan, &last, &size)) return -1;
        const uint8_t *end = in->at + size;
        const field_plan *field = field_of_tag(plan, (uint32_t)last);
        if (field == NULL) {
            if (keep_unknown(unknown, (uint32_t)last, in->at, size)) return -1;
            in->at = end;
            continue;
        }
        PyObject *value = decode_field(in, field);
        if (value == NULL) return -1;
        SLOT(object, field->slot) = value; /* tags ascend: it was empty */
        if (in->at != end) return -1;
    }
    return 0;
}

/* The fields in the struct's own bytes. Returns the first that could not be read, or the end. */
static const field_plan *decode_inline(reader *in, const struct_plan *plan, PyObject *object) {
    const field_plan *field = INLINE(plan), *end = TAGGED(plan);
    while (field < end) {
        PyObject *value;
        if (field->run) { /* of fixed width, up to `stop` */
            const uint8_t *p = in->at, *stop = p + field->run;
            if (UNLIKELY(field->run > left_of(in))) return field;
            in->at = stop;
            for (; p < stop; p += width_of[field->kind], field++) {
                value = field->kind == KIND_INT32 ? new_int32((int32_t)get32(p))
                                                  : new_number(field->kind, p);
                if (UNLIKELY(value == NULL)) return field;
                SLOT(object, field->slot) = value;
            }
            continue;
        }
        if (field->kind == KIND_ARRAY)
            value = decode_array(in, field);
        else if (field->kind == KIND_STRING)
            value = decode_blob(in, field, 1, field->flags & FIELD_NULLABLE);
        else
            value = decode_field(in, field);
        if (UNLIKELY(value == NULL)) return field;
        SLOT(object, field->slot) = value;
        field++;
    }
    return end;
}

/* Everything after the fields inline: tags, and the defaults of what the bytes do not hold. */
static int decode_rest(reader *in, const struct_plan *plan, PyObject *object) {
    PyObject *unknown = NULL;
    if (plan->flexible) {
        uint32_t count;
        if (UNLIKELY(get_varint(in, &count))) return -1;
        if (UNLIKELY(count) && decode_tags(in, plan, object, count, &unknown)) {
            Py_XDECREF(unknown);
            return -1;
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
        if (UNLIKELY(value == NULL)) return -1;
        SLOT(object, field->slot) = value;
    }
    return 0;
}

/* An instance whose slots are empty but for those that decode_inline fills. */
static PyObject *new_struct(const struct_plan *plan) {
    if (UNLIKELY(!plan->bare)) return plan->type->tp_alloc(plan->type, 0);
    PyObject *object = PyObject_New(PyObject, plan->type);
    if (LIKELY(object != NULL)) {
        SLOT(object, plan->tags_slot) = NULL;
        for (const field_plan *field = TAGGED(plan); field < FIELDS_END(plan); field++)
            SLOT(object, field->slot) = NULL;
    }
    return object;
}

PyObject *decode_struct(reader *in, const struct_plan *plan) {
    PyObject *object = new_struct(plan);
    if (UNLIKELY(object == NULL)) return NULL;
    if (UNLIKELY(plan->collected)) PyObject_GC_UnTrack(object);
    const field_plan *unread = decode_inline(in, plan, object);
    if (UNLIKELY(unread < TAGGED(plan) || decode_rest(in, plan, object))) {
        for (; unread < TAGGED(plan); unread++) SLOT(object, unread->slot) = NULL;
        Py_DECREF(object);
        return NULL;
    }
    if (UNLIKELY(plan->collected)) PyObject_GC_Track(object);
    return object;
}
