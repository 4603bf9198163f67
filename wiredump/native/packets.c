/* Walks the records of a chunk of a capture: where each begins, its time, and the place of its
   bytes. The walk stops at the first record that is incomplete or, in pcapng, not a usual
   enhanced packet block; the Python reader continues there. */
#include "wire.h"

packet *packets_add(packets_object *self) {
    if (UNLIKELY(self->count == self->room)) {
        packet *grown = doubled(self->packets, &self->room, sizeof(packet), 1024);
        if (grown == NULL) return NULL;
        self->packets = grown;
    }
    return &self->packets[self->count++];
}

packets_object *packets_new(PyObject *chunk, int64_t base) {
    packets_object *self = PyObject_New(packets_object, &packets_type);
    if (self == NULL) return NULL;
    self->chunk = Py_NewRef(chunk);
    self->packets = NULL;
    self->count = self->room = 0;
    self->base = base;
    return self;
}

static uint32_t word(const uint8_t *p, int big) {
    return big ? get32(p)
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static PyObject *walked(packets_object *self, Py_ssize_t position) {
    STEPS(1 + self->count);
    if (self->room > 2 * self->count && self->count) { /* there may be thousands of short walks */
        packet *less = PyMem_Realloc(self->packets, (size_t)self->count * sizeof(packet));
        if (less != NULL) {
            self->packets = less;
            self->room = self->count;
        }
    }
    if (self->count) return Py_BuildValue("(Nn)", self, position);
    Py_DECREF(self);
    return Py_BuildValue("(On)", Py_None, position);
}

static int bounds(PyObject *chunk, Py_ssize_t position) {
    if (position >= 0 && position <= PyBytes_GET_SIZE(chunk) && PyBytes_GET_SIZE(chunk) < INT32_MAX)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a place is outside its chunk, or the chunk is too large");
    return 0;
}

/* (chunk, position, base, big, scale, limit, link_type, capture[, stop]) -> (Packets or None,
   position of the first record that is incomplete or not plausible, or that begins at or behind
   `stop` in the file) */
PyObject *walk_pcap(PyObject *module, PyObject *args) {
    PyObject *chunk;
    Py_ssize_t position;
    long long base, scale, limit, stop = INT64_MAX;
    int big, link, capture;
    (void)module;
    if (!PyArg_ParseTuple(args, "SnLpLLii|L", &chunk, &position, &base, &big, &scale, &limit,
                          &link, &capture, &stop) || !bounds(chunk, position))
        return NULL;
    if (scale < 1 || scale > 1000 || limit < 0 || limit > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "invalid scale or limit");
        return NULL;
    }
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(chunk);
    Py_ssize_t size = PyBytes_GET_SIZE(chunk);
    packets_object *self = packets_new(chunk, base);
    if (self == NULL) return NULL;
    while (size - position >= 16 && base + position < stop) {
        const uint8_t *head = data + position;
        uint32_t captured = word(head + 8, big);
        if (captured > (uint64_t)limit || (Py_ssize_t)captured > size - position - 16) break;
        packet *each = packets_add(self);
        if (each == NULL) {
            Py_DECREF(self);
            return NULL;
        }
        each->place = base + position;
        each->time = (int64_t)word(head, big) * 1000000000 + (int64_t)word(head + 4, big) * scale;
        each->link = link;
        each->interface = 0;
        each->capture = capture;
        each->at = (uint32_t)(position + 16);
        each->captured = captured;
        each->original = word(head + 12, big);
        position += 16 + (Py_ssize_t)captured;
    }
    return walked(self, position);
}

enum { ENHANCED = 6, LARGEST_BLOCK = 16 << 20, MOST_INTERFACES = 64 };

/* (chunk, position, base, big, interfaces, first_interface, capture[, stop]) -> (Packets or None,
   position). `interfaces` are those of the section: (link type, multiplier, divisor, offset)
   each. */
PyObject *walk_pcapng(PyObject *module, PyObject *args) {
    PyObject *chunk, *interfaces;
    Py_ssize_t position;
    long long base, stop = INT64_MAX;
    int big, first, capture;
    (void)module;
    if (!PyArg_ParseTuple(args, "SnLpO!ii|L", &chunk, &position, &base, &big, &PyTuple_Type,
                          &interfaces, &first, &capture, &stop) || !bounds(chunk, position))
        return NULL;
    struct { int link; long long multiplier, divisor, offset; } clocks[MOST_INTERFACES];
    Py_ssize_t known = PyTuple_GET_SIZE(interfaces);
    if (known > MOST_INTERFACES) known = MOST_INTERFACES;
    for (Py_ssize_t i = 0; i < known; i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(interfaces, i), "iLLL", &clocks[i].link,
                              &clocks[i].multiplier, &clocks[i].divisor, &clocks[i].offset)) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
            PyErr_Clear(); /* the clock needs more than 64 bits */
            known = i;
            break;
        }
    }
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(chunk);
    Py_ssize_t size = PyBytes_GET_SIZE(chunk);
    packets_object *self = packets_new(chunk, base);
    if (self == NULL) return NULL;
    while (size - position >= 32 && base + position < stop) {
        const uint8_t *head = data + position;
        uint32_t length = word(head + 4, big), number = word(head + 8, big);
        if (word(head, big) != ENHANCED || length < 32 || length & 3 || length > LARGEST_BLOCK ||
            (Py_ssize_t)length > size - position || word(head + length - 4, big) != length ||
            number >= (size_t)known)
            break;
        uint32_t captured = word(head + 20, big);
        uint64_t ticks = (uint64_t)word(head + 12, big) << 32 | word(head + 16, big);
        long long multiplier = clocks[number].multiplier, offset = clocks[number].offset;
        if (captured > length - 32 || clocks[number].divisor != 1 || multiplier < 1 ||
            ticks > (uint64_t)(INT64_MAX / 2) / (uint64_t)multiplier || offset > INT64_MAX / 2 ||
            offset < -(INT64_MAX / 2))
            break;
        packet *each = packets_add(self);
        if (each == NULL) {
            Py_DECREF(self);
            return NULL;
        }
        each->place = base + position;
        each->time = (int64_t)ticks * multiplier + offset;
        each->link = clocks[number].link;
        each->interface = first + (int)number;
        each->capture = capture;
        each->at = (uint32_t)(position + 28);
        each->captured = captured;
        each->original = word(head + 24, big);
        position += (Py_ssize_t)length;
    }
    return walked(self, position);
}

/* pack([(offset, time, link type, bytes, original length, interface, capture)...]) -> Packets
   with a copy of all bytes as their chunk. For packets that do not come from a walk. */
PyObject *pack(PyObject *module, PyObject *given) {
    Py_ssize_t size = 0, at = 0;
    (void)module;
    if (!PyList_CheckExact(given)) {
        PyErr_SetString(PyExc_TypeError, "pack takes a list");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); i++) {
        PyObject *each = PyList_GET_ITEM(given, i);
        Py_ssize_t length = PyTuple_CheckExact(each) && PyTuple_GET_SIZE(each) == 7
                                ? PyObject_Length(PyTuple_GET_ITEM(each, 3)) : -1;
        if (length < 0 || length >= INT32_MAX - size) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no packets, or too many bytes for one chunk");
            return NULL;
        }
        size += length;
    }
    PyObject *chunk = PyBytes_FromStringAndSize(NULL, size);
    packets_object *self = chunk == NULL ? NULL : packets_new(chunk, 0);
    Py_XDECREF(chunk);
    for (Py_ssize_t i = 0; self != NULL && i < PyList_GET_SIZE(given); i++) {
        long long place, time;
        int link, interface, capture;
        unsigned int original;
        Py_buffer data;
        packet *each = NULL;
        if (PyArg_ParseTuple(PyList_GET_ITEM(given, i), "LLiy*Iii", &place, &time, &link, &data,
                             &original, &interface, &capture)) {
            if (data.len <= size - at && (each = packets_add(self)) != NULL) {
                *each = (packet){place, time, link, interface, capture, (uint32_t)at,
                                 (uint32_t)data.len, original};
                memcpy(PyBytes_AS_STRING(self->chunk) + at, data.buf, (size_t)data.len);
                at += data.len;
            } else if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "the size of a packet changed");
            }
            PyBuffer_Release(&data);
        }
        if (each == NULL) Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static Py_ssize_t length(PyObject *object) { return ((packets_object *)object)->count; }

/* The fields of Packet, except for its bytes: (offset, time, link type, begin and end of its
   bytes in the chunk, original length, interface, capture). */
static PyObject *item(PyObject *object, Py_ssize_t index) {
    packets_object *self = (packets_object *)object;
    if (index < 0 || index >= self->count) {
        PyErr_SetString(PyExc_IndexError, "packet index out of range");
        return NULL;
    }
    const packet *each = &self->packets[index];
    return Py_BuildValue("(LLiIIIii)", (long long)each->place, (long long)each->time, each->link,
                         each->at, each->at + each->captured, each->original, each->interface,
                         each->capture);
}

/* times() -> (offset of each packet in the file, time of each packet), as int64 */
static PyObject *times(PyObject *object, PyObject *unused) {
    packets_object *self = (packets_object *)object;
    Py_ssize_t size = self->count * (Py_ssize_t)sizeof(int64_t);
    PyObject *places = PyBytes_FromStringAndSize(NULL, size);
    PyObject *when = PyBytes_FromStringAndSize(NULL, size);
    (void)unused;
    if (places == NULL || when == NULL) {
        Py_XDECREF(places);
        Py_XDECREF(when);
        return NULL;
    }
    int64_t *to_place = (int64_t *)(void *)PyBytes_AS_STRING(places);
    int64_t *to_time = (int64_t *)(void *)PyBytes_AS_STRING(when);
    for (Py_ssize_t i = 0; i < self->count; i++) {
        to_place[i] = self->packets[i].place;
        to_time[i] = self->packets[i].time;
    }
    return Py_BuildValue("(NN)", places, when);
}

static PyObject *get_chunk(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef(((packets_object *)object)->chunk);
}

static void dealloc(PyObject *object) {
    packets_object *self = (packets_object *)object;
    Py_DECREF(self->chunk);
    PyMem_Free(self->packets);
    PyObject_Free(self);
}

static PyMethodDef methods[] = {{"times", times, METH_NOARGS, NULL}, {0}};
static PySequenceMethods as_sequence = {.sq_length = length, .sq_item = item};
static PyGetSetDef members[] = {{"chunk", get_chunk, NULL, NULL, NULL}, {0}};

PyTypeObject packets_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Packets",
    .tp_basicsize = sizeof(packets_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = dealloc,
    .tp_as_sequence = &as_sequence,
    .tp_methods = methods,
    .tp_getset = members,
};
