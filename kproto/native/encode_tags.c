/* The tagged section of a struct: known fields that differ from their default, and the unknown
   fields kept by decoding, in the order of their tags. Like encode.c, it runs no Python code. */
#include "writer.h"

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
    if (!(at = encode_field(out, at, field, value))) return NULL;
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

uint8_t *encode_tags(writer *out, uint8_t *at, const struct_plan *plan, PyObject *object,
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
