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

PyObject *answers_in_order(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const uint8_t *data;
    Py_ssize_t size, at, answered = 0;
    (void)module;
    if (parse_frames("answers_in_order", args, count, 5, &data, &size, &at)) return NULL;
    Py_ssize_t place = PyLong_AsSsize_t(args[3]);
    if (place == -1 && PyErr_Occurred()) return NULL;
    Py_ssize_t most = PyLong_AsSsize_t(args[4]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    if (!PyList_CheckExact(args[2]) || place < 0) {
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
        answered++;
        at += SIZE_LENGTH + frame;
    }
    return Py_BuildValue("(nn)", answered, at);
}
