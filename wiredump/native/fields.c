/* Find the records of a whole frame, with a program that wiredump/rows/field_walks.py makes of a
   message's plan: what to skip, and what to keep. gathering.c processes the batches.

   The program is strict where that costs only time: for text that is not ASCII, a tagged field, a
   length that does not fit or bytes left over, Python decodes the frame. */
#include "wire.h"

enum { SKIP, TEXT, BLOB, ARRAY, TAGS, ID, PARTITION };
enum { COMPACT = 1, NULLABLE = 2, KEPT = 4 };
enum { OP = 4, DEEPEST = 8 };

static int64_t left_in(const walk *self) { return self->end - self->at; }

/* A length or a count as it is on the wire, -1 for null; -2: there is none. */
static int64_t length(walk *self, int flags, int width) {
    if (flags & COMPACT) {
        uint64_t value = 0;
        for (int shift = 0; shift < 35; shift += 7) {
            if (self->at == self->end) return -2;
            uint8_t byte = *self->at++;
            value |= (uint64_t)(byte & 0x7F) << shift;
            if (byte < 0x80) return value > INT32_MAX ? -2 : (int64_t)value - 1;
        }
        return -2;
    }
    if (left_in(self) < width) return -2;
    int64_t value = width == 2 ? (int16_t)get16(self->at) : (int32_t)get32(self->at);
    self->at += width;
    return value < -1 ? -2 : value;
}

static int is_ascii(const uint8_t *at, int64_t size) {
    uint8_t seen = 0;
    for (int64_t i = 0; i < size; i++) seen |= at[i];
    return seen < 0x80;
}

/* The next `size` bytes; NULL: there are not as many. */
static const uint8_t *take(walk *self, int64_t size) {
    const uint8_t *taken = self->at;
    if (size < 0 || size > left_in(self)) return NULL;
    self->at += size;
    return taken;
}

/* 1: gone through; 0: not as it should be; -1: failed. */
static int go(walk *self, const uint8_t *op, const uint8_t *end, int depth);

static int elements(walk *self, int flags, const uint8_t *op, const uint8_t *end, int depth) {
    int64_t count = length(self, flags, 4);
    if (count == -1) return (flags & NULLABLE) != 0;
    if (count < 0 || count > left_in(self)) return 0;
    while (count--) {
        const uint8_t *before = self->at;
        int gone = go(self, op, end, depth + 1);
        if (gone != 1) return gone;
        if (self->at == before) return 0; /* none takes nothing: counts are bounded by bytes */
    }
    return 1;
}

static int sized(walk *self, int kind, int flags) {
    int64_t size = length(self, flags, kind == TEXT ? 2 : 4);
    if (size == -1 && !(flags & NULLABLE)) return 0;
    const uint8_t *at = size == -1 ? NULL : take(self, size);
    if (size != -1 && at == NULL) return 0;
    if (kind == TEXT && at != NULL && !is_ascii(at, size)) return 0;
    if (!(flags & KEPT)) return 1;
    if (kind == TEXT) {
        self->name = at;
        self->name_size = size;
        return 1;
    }
    return size > 0 && self->keep != NULL ? self->keep(self, at, size) : 1;
}

static int go(walk *self, const uint8_t *op, const uint8_t *end, int depth) {
    if (depth > DEEPEST) return 0;
    for (; end - op >= OP; op += OP) {
        int kind = op[0], flags = op[1], operand = op[2] | op[3] << 8, gone = 1;
        const uint8_t *at;
        switch (kind) {
        case SKIP: gone = take(self, operand) != NULL; break;
        case TEXT:
        case BLOB: gone = sized(self, kind, flags); break;
        case ARRAY:
            if (operand * OP > end - op - OP) return 0;
            gone = elements(self, flags, op + OP, op + OP + operand * OP, depth);
            op += operand * OP;
            break;
        case TAGS:
            at = take(self, 1);
            gone = at != NULL && *at == 0;
            break;
        case ID:
            self->id = at = take(self, ID_SIZE);
            gone = at != NULL;
            if (gone) {
                int bits = 0;
                for (int i = 0; i < ID_SIZE; i++) bits |= at[i];
                if (!bits) self->id = NULL; /* it stands for none */
            }
            break;
        case PARTITION:
            at = take(self, 4);
            gone = at != NULL;
            if (gone) self->partition = (int32_t)get32(at);
            break;
        default: return 0;
        }
        if (gone != 1) return gone;
    }
    return 1;
}

int walk_frame(PyObject *program, PyObject *frame, keeper keep, void *to) {
    const uint8_t *ops = (const uint8_t *)PyBytes_AS_STRING(program);
    const uint8_t *ops_end = ops + PyBytes_GET_SIZE(program);
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(frame);
    Py_ssize_t size = PyBytes_GET_SIZE(frame);
    if (size < 4 || (int32_t)get32(start) != size - 4) return 0;
    const walk begin = {.at = start + 4, .end = start + size};
    walk self = begin;
    /* Once through all of it, and only then again for what there is to keep. */
    if (go(&self, ops, ops_end, 0) != 1 || self.at != self.end) return 0;
    self = begin;
    self.keep = keep;
    self.to = to;
    return go(&self, ops, ops_end, 0);
}

static int listed(const walk *self, const uint8_t *at, int64_t size) {
    PyObject *made = Py_BuildValue("(s#y#iy#)", (const char *)self->name, (Py_ssize_t)self->name_size,
                                   (const char *)self->id, (Py_ssize_t)ID_SIZE,
                                   (int)self->partition, (const char *)at, (Py_ssize_t)size);
    int failed = made == NULL || PyList_Append(self->to, made);
    Py_XDECREF(made);
    return failed ? -1 : 1;
}

/* find_records(program, frame) -> [(topic's name or None, its id or None, partition, records)...]
   of the fields that are not empty; None where the frame, whose size comes first, is not exactly what
   the program says. */
PyObject *find_records(PyObject *module, PyObject *args) {
    PyObject *program, *frame;
    (void)module;
    if (!PyArg_ParseTuple(args, "SS", &program, &frame)) return NULL;
    PyObject *found = PyList_New(0);
    if (found == NULL) return NULL;
    int gone = walk_frame(program, frame, listed, found);
    if (gone == 1) return found;
    Py_DECREF(found);
    if (gone < 0) return NULL;
    Py_RETURN_NONE;
}
