/* Finds where a request may begin, among any bytes. */
#include "wire.h"

enum { PREFIX = 8, KEYS = 1 << 13, MOST_SIZE = 0x07, MOST_VERSION = 0x1F };

/* A size up to 128 MiB, a known API key and a version: the pattern of frame_boundaries.RequestShape. */
static int may_begin(const uint8_t *at, const uint8_t *keys) {
    uint32_t size = get32(at), key = get16(at + 4);
    return at[0] <= MOST_SIZE && size > MOST_SIZE && keys[key >> 3] >> (key & 7) & 1 &&
           at[7] <= MOST_VERSION;
}

/* find_request(data, start, keys) -> the first place from `start` on at which a request may begin,
   or -1; `keys` has a bit for each API key. A version's first byte is 0, which few bytes are. */
PyObject *find_request(PyObject *module, PyObject *args) {
    Py_buffer data, keys;
    Py_ssize_t start, found = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*ny*", &data, &start, &keys)) return NULL;
    if (keys.len == KEYS && start >= 0 && data.len - start >= PREFIX) {
        const uint8_t *first = data.buf, *end = first + data.len - 1;
        const uint8_t *at = first + start + PREFIX - 2;
        while (at < end && (at = memchr(at, 0, (size_t)(end - at))) != NULL) {
            STEPS(1);
            if (may_begin(at - (PREFIX - 2), keys.buf)) {
                found = at - (PREFIX - 2) - first;
                break;
            }
            at++;
        }
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&keys);
    return PyLong_FromSsize_t(found);
}
