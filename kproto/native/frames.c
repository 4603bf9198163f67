/* Runs of frames for mockbroker.proxy: kproto.native's counterpart of mockbroker/proxy/frame_runs.py,
   which says what the arguments and results are. */
#include "engine.h"

enum { SIZE_LENGTH = 4, ANSWER_HEAD = 8, REQUEST_HEAD = 12 };

/* The bytes and the offset that every function here begins with; -1 with an exception. */
static int parse_frames(const char *name, PyObject *const *args, Py_ssize_t count,
                        Py_ssize_t expected, const uint8_t **data, Py_ssize_t *size,
                        Py_ssize_t *at) {
    if (count != expected || !PyBytes_CheckExact(args[0])) {
        PyErr_Format(PyExc_TypeError, "%s: wrong arguments", name);
        return -1;
    }
    *data = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    *size = PyBytes_GET_SIZE(args[0]);
    *at = PyLong_AsSsize_t(args[1]);
    if (*at == -1 && PyErr_Occurred()) return -1;
    if (*at < 0 || *at > *size) {
        PyErr_Format(PyExc_ValueError, "%s: the offset is outside the data", name);
        return -1;
    }
    return 0;
}

static int append_number(PyObject *list, int32_t value) {
    PyObject *number = new_int32(value);
    if (number == NULL) return -1;
    int failed = PyList_Append(list, number);
    Py_DECREF(number);
    return failed;
}

PyObject *requests_alike(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const uint8_t *data;
    Py_ssize_t size, at;
    (void)module;
    if (parse_frames("requests_alike", args, count, 4, &data, &size, &at)) return NULL;
    Py_ssize_t rest = PyLong_AsSsize_t(args[2]);
    if (rest == -1 && PyErr_Occurred()) return NULL;
    Py_ssize_t most = PyLong_AsSsize_t(args[3]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    if (rest < 0 || size - at < REQUEST_HEAD || size - at - REQUEST_HEAD < rest ||
        (int32_t)get32(data + at) < 0) {
        PyErr_SetString(PyExc_ValueError, "requests_alike: the first head is incomplete");
        return NULL;
    }
    PyObject *ids = PyList_New(0);
    if (ids == NULL) return NULL;
    const uint8_t *first = data + at;
    Py_ssize_t last = size - REQUEST_HEAD - rest; /* where a complete head may begin */
    Py_ssize_t least = REQUEST_HEAD - SIZE_LENGTH + rest;
    for (;;) {
        if (append_number(ids, (int32_t)get32(data + at + 8))) {
            Py_DECREF(ids);
            return NULL;
        }
        at += SIZE_LENGTH + (Py_ssize_t)(int32_t)get32(data + at);
        if (at > last) break;
        const uint8_t *next = data + at;
        Py_ssize_t frame = (int32_t)get32(next);
        if (frame < least || frame > most || memcmp(next + 4, first + 4, 4) ||
            memcmp(next + REQUEST_HEAD, first + REQUEST_HEAD, (size_t)rest))
            break;
    }
    return Py_BuildValue("(Nn)", ids, at);
}

/* ---- frames in parts --------------------------------------------------------------------------- */

/* A frame that arrived in parts, read without joining them. `left` counts the bytes of all parts
   from `at` on. */
typedef struct {
    PyObject *const *next, *const *last; /* the parts behind this one */
    const uint8_t *at, *end;
    int64_t left;
} cursor;

static int skip(cursor *in, int64_t count) {
    if (count < 0 || count > in->left) return -1;
    in->left -= count;
    while (count > in->end - in->at) {
        count -= in->end - in->at;
        in->at = (const uint8_t *)PyBytes_AS_STRING(*in->next);
        in->end = in->at + PyBytes_GET_SIZE(*in->next++);
    }
    in->at += count;
    return 0;
}

/* Returns the next byte, or -1 at the end of the frame. */
static int next_byte(cursor *in) {
    while (in->at == in->end) {
        if (in->next == in->last) return -1;
        in->at = (const uint8_t *)PyBytes_AS_STRING(*in->next);
        in->end = in->at + PyBytes_GET_SIZE(*in->next++);
    }
    in->left--;
    return *in->at++;
}

/* A big-endian number of this many bytes, or a varint where `bytes` is 0; -1 where there is none. */
static int next_number(cursor *in, int bytes, uint32_t *out) {
    uint8_t raw[5];
    int count = 0, byte;
    do {
        if ((byte = next_byte(in)) < 0) return -1;
        raw[count++] = (uint8_t)byte;
    } while (count < (bytes ? bytes : 5) && (bytes || byte >= 0x80));
    if (bytes == 2) *out = get16(raw);
    if (bytes == 4) *out = get32(raw);
    if (bytes) return 0;
    reader number = {raw, raw + count};
    return get_varint(&number, out);
}

/* As get_length of engine.h. */
static int next_length(cursor *in, const field_plan *field, int is_string, int64_t *out) {
    uint32_t value;
    int compact = field->flags & FIELD_COMPACT;
    if (next_number(in, compact ? 0 : is_string ? 2 : 4, &value)) return -1;
    *out = compact ? (int64_t)value - 1 : is_string ? (int16_t)value : (int32_t)value;
    return *out < -1 || *out > INT32_MAX ? -1 : 0;
}

static int pass_struct(cursor *in, const struct_plan *plan);

static int pass_blob(cursor *in, const field_plan *field, int is_string) {
    int64_t size;
    if (next_length(in, field, is_string, &size)) return -1;
    return size < 0 ? 0 : skip(in, size);
}

static int pass_array(cursor *in, const field_plan *field) {
    int64_t count;
    if (next_length(in, field, 0, &count)) return -1;
    if (count < 0) return 0;
    if (count * (int64_t)field->element_min > in->left) return -1;
    if (width_of[field->element]) return skip(in, count * width_of[field->element]);
    for (int64_t i = 0; i < count; i++)
        if (field->element == KIND_STRUCT ? pass_struct(in, field->inner)
                                          : pass_blob(in, field, field->element == KIND_STRING))
            return -1;
    return 0;
}

static int pass_field(cursor *in, const field_plan *field) {
    switch (field->kind) {
    case KIND_STRING: return pass_blob(in, field, 1);
    case KIND_BYTES: return pass_blob(in, field, 0);
    case KIND_ARRAY: return pass_array(in, field);
    case KIND_STRUCT:
        if (field->flags & FIELD_NULLABLE) {
            int marker = next_byte(in);
            if (marker != 1) return marker == 0xFF ? 0 : -1;
        }
        return pass_struct(in, field->inner);
    default: return skip(in, width_of[field->kind]);
    }
}

static int pass_inline(cursor *in, const struct_plan *plan) {
    for (const field_plan *field = INLINE(plan), *end = TAGGED(plan); field < end;) {
        if (field->run) {
            if (skip(in, field->run)) return -1;
            field += field->run_fields;
        } else if (pass_field(in, field++)) {
            return -1;
        }
    }
    return 0;
}

static int pass_struct(cursor *in, const struct_plan *plan) {
    uint32_t count, number;
    if (pass_inline(in, plan)) return -1;
    if (!plan->flexible) return 0;
    if (next_number(in, 0, &count)) return -1;
    while (count--)
        if (next_number(in, 0, &number) || next_number(in, 0, &number) || skip(in, number))
            return -1;
    return 0;
}

/* Whether a response of this plan has no tagged fields in its header and none of its body's own, and
   nothing behind it. Text and tags within are not validated: clients get what the upstream sent. */
static int lacks_tags(cursor *in, const struct_plan *root) {
    if (skip(in, ANSWER_HEAD) || (root->flexible && next_byte(in) != 0)) return 0;
    if (pass_inline(in, root) || (root->flexible && next_byte(in) != 0)) return 0;
    return in->left == 0;
}

static const struct_plan *root_of(PyObject *plan) {
    if (!Py_IS_TYPE(plan, &plan_type)) return NULL;
    return &((plan_object *)plan)->structs[((plan_object *)plan)->struct_count - 1];
}

PyObject *is_untagged(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    const struct_plan *root = count == 2 && PyList_CheckExact(args[0]) ? root_of(args[1]) : NULL;
    if (root == NULL) return PyErr_Format(PyExc_TypeError, "is_untagged: wrong arguments");
    static const uint8_t nothing;
    PyObject *const *parts = ((PyListObject *)args[0])->ob_item;
    cursor in = {parts, parts + PyList_GET_SIZE(args[0]), &nothing, &nothing, 0};
    for (PyObject *const *part = parts; part < in.last; part++) {
        if (!PyBytes_CheckExact(*part))
            return PyErr_Format(PyExc_TypeError, "is_untagged: a part is not bytes");
        in.left += PyBytes_GET_SIZE(*part);
    }
    return PyBool_FromLong(lacks_tags(&in, root));
}

/* ---- runs of answers --------------------------------------------------------------------------- */

/* Whether the frame is complete and lacks tags. */
static int may_pass(const uint8_t *frame, int64_t size, int64_t received,
                    const struct_plan *root) {
    cursor in = {NULL, NULL, frame, frame + size, size};
    return size <= received && lacks_tags(&in, root);
}

PyObject *answers_in_order(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const uint8_t *data;
    Py_ssize_t size, at, answered = 0;
    (void)module;
    if (parse_frames("answers_in_order", args, count, 6, &data, &size, &at)) return NULL;
    Py_ssize_t place = PyLong_AsSsize_t(args[3]);
    if (place == -1 && PyErr_Occurred()) return NULL;
    Py_ssize_t most = PyLong_AsSsize_t(args[4]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    const struct_plan *root = args[5] == Py_None ? NULL : root_of(args[5]);
    if (!PyList_CheckExact(args[2]) || place < 0 || (root == NULL && args[5] != Py_None)) {
        PyErr_SetString(PyExc_TypeError, "answers_in_order: wrong arguments");
        return NULL;
    }
    PyObject *ids = args[2];
    while (at <= size - ANSWER_HEAD && place + answered < PyList_GET_SIZE(ids)) {
        Py_ssize_t frame = (int32_t)get32(data + at);
        long expected = PyLong_AsLong(PyList_GET_ITEM(ids, place + answered));
        if (expected == -1 && PyErr_Occurred()) return NULL;
        if ((int32_t)get32(data + at + 4) != expected || frame < ANSWER_HEAD - SIZE_LENGTH ||
            frame > most)
            break;
        if (root && !may_pass(data + at, SIZE_LENGTH + frame, size - at, root)) break;
        answered++;
        at += SIZE_LENGTH + frame;
    }
    return Py_BuildValue("(nn)", answered, at);
}
