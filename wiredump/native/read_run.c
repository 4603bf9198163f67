/* Reads the packets of runs by their positions, in as few reads as possible, or from bytes that
   came with the run. */
#include "wire.h"

#ifndef _WIN32
#include <errno.h>
#include <unistd.h>
#endif

enum { MOST_GAP = 4096, LARGEST = 16 << 20, MOST = 64 << 20 };

static entry entry_at(const Py_buffer *run, Py_ssize_t number) {
    entry found;
    memcpy(&found, (const char *)run->buf + number * (Py_ssize_t)sizeof(entry), sizeof(entry));
    return found;
}

/* Whether `next` is so close behind the current position that one read covers both. */
static int follows(const entry *next, int32_t capture, int64_t end) {
    int64_t begin = next->place + next->ahead;
    return next->capture == capture && begin >= end && begin - end <= MOST_GAP;
}

/* Reads `size` bytes at `place`. Returns 1 if the file is shorter. */
static int read_at(int file, char *to, int64_t size, int64_t place) {
#ifdef _WIN32
    (void)file, (void)to, (void)size, (void)place;
    return 1;
#else
    int failed = 0;
    Py_BEGIN_ALLOW_THREADS
    while (size > 0) {
        ssize_t got = pread(file, to, (size_t)size, (off_t)place);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            failed = got < 0 ? -1 : 1;
            break;
        }
        to += got;
        size -= got;
        place += got;
    }
    Py_END_ALLOW_THREADS
    if (failed < 0) PyErr_SetFromErrno(PyExc_OSError);
    return failed;
#endif
}

static int file_of(PyObject *files, int32_t capture, int *file) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(files); i++) {
        int number, found;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(files, i), "ii", &number, &found)) return -1;
        if (number == capture) {
            *file = found;
            return 1;
        }
    }
    return 0;
}

/* read_run(run, number, files, most) -> (Packets, number of the next packet). Reads packets from
   `number` on, at least one, and no more than `most` bytes. `files` are (capture, file
   descriptor). (None, number): the file of that packet is not open. EOFError: the file is
   shorter. */
PyObject *read_run(PyObject *module, PyObject *args) {
    Py_buffer run;
    Py_ssize_t number, most;
    PyObject *files;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*nO!n", &run, &number, &PyTuple_Type, &files, &most)) return NULL;
    PyObject *chunk = NULL;
    packets_object *packets = NULL;
    Py_ssize_t count = run.len / (Py_ssize_t)sizeof(entry), last;
    int64_t size = 0, end = 0;
    int32_t capture = 0;
    int file = -1;
    if (run.len % (Py_ssize_t)sizeof(entry) || number < 0 || number >= count || most > MOST) {
        PyErr_SetString(PyExc_ValueError, "packet index outside the run");
        goto done;
    }
    for (last = number; last < count; last++) {
        entry each = entry_at(&run, last);
        if (each.place < 0 || each.place > INT64_MAX / 2 || !each.captured ||
            each.captured > LARGEST) {
            PyErr_SetString(PyExc_ValueError, "not a packet");
            goto done;
        }
        if (last == number || each.capture != capture) {
            int known = file_of(files, each.capture, &file);
            if (known < 0) goto done;
            if (!known) break;
        }
        int64_t begin = each.place + each.ahead, more = each.captured;
        if (last > number && follows(&each, capture, end)) more += begin - end;
        if (last > number && size + more > most) break;
        size += more;
        end = begin + each.captured;
        capture = each.capture;
    }
    if (last == number) {
        PyBuffer_Release(&run);
        return Py_BuildValue("(On)", Py_None, number);
    }
    chunk = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    packets = chunk == NULL ? NULL : packets_new(chunk, 0);
    if (packets == NULL) goto done;
    for (int64_t filled = 0; number < last;) {
        entry each = entry_at(&run, number);
        int64_t from = each.place + each.ahead, at = filled;
        capture = each.capture;
        end = from;
        for (; number < last; number++) {
            each = entry_at(&run, number);
            if (end != from && !follows(&each, capture, end)) break;
            int64_t begin = each.place + each.ahead;
            packet *made = packets_add(packets);
            if (made == NULL) goto failed;
            made->place = each.place;
            made->time = each.time;
            made->link = each.link;
            made->interface = 0;
            made->capture = capture;
            made->at = (uint32_t)(at + (begin - from));
            made->captured = each.captured;
            made->original = each.original;
            end = begin + each.captured;
        }
        filled = at + (end - from);
        if (file_of(files, capture, &file) != 1) goto failed;
        int short_of = read_at(file, PyBytes_AS_STRING(chunk) + at, end - from, from);
        if (short_of > 0) PyErr_Format(PyExc_EOFError, "%d", (int)capture);
        if (short_of) goto failed;
    }
    PyBuffer_Release(&run);
    Py_DECREF(chunk);
    return Py_BuildValue("(Nn)", packets, last);
failed:
    Py_CLEAR(packets);
done:
    Py_XDECREF(packets);
    Py_XDECREF(chunk);
    PyBuffer_Release(&run);
    return NULL;
}

/* carried_run(run, data) -> Packets whose bytes are concatenated in `data` */
PyObject *carried_run(PyObject *module, PyObject *args) {
    Py_buffer run;
    PyObject *data;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*O!", &run, &PyBytes_Type, &data)) return NULL;
    packets_object *packets = packets_new(data, 0);
    Py_ssize_t count = run.len / (Py_ssize_t)sizeof(entry), size = PyBytes_GET_SIZE(data), at = 0;
    int fits = run.len % (Py_ssize_t)sizeof(entry) == 0 && size <= UINT32_MAX;
    for (Py_ssize_t number = 0; packets != NULL && fits && number < count; number++) {
        entry each = entry_at(&run, number);
        fits = each.captured && (Py_ssize_t)each.captured <= size - at;
        if (!fits) break;
        packet *made = packets_add(packets);
        if (made == NULL) {
            Py_CLEAR(packets);
            break;
        }
        made->place = each.place;
        made->time = each.time;
        made->link = each.link;
        made->interface = 0;
        made->capture = each.capture;
        made->at = (uint32_t)at;
        made->captured = each.captured;
        made->original = each.original;
        at += each.captured;
    }
    if (packets != NULL && (!fits || at != size)) {
        Py_CLEAR(packets);
        PyErr_SetString(PyExc_ValueError, "the bytes do not match the run");
    }
    PyBuffer_Release(&run);
    return (PyObject *)packets;
}
