/* One direction of a connection in order: its newest bytes, the current frame, and the packets that
   brought them.

   Bytes stay in the chunk as long as it exists; `stream_fold` then copies what may still be needed:
   an incomplete frame, and the bytes that retransmissions are compared with (readers/ledger.py:
   Recent). */
#include "wire.h"

void stream_clear(stream *self) {
    PyMem_Free(self->marks);
    PyMem_Free(self->pieces);
    PyMem_Free(self->kept);
    if (self->trips != NULL) PyBuffer_Release(&self->timing);
    Py_XDECREF(self->tally);
    memset(self, 0, sizeof(*self));
}

int stream_mark(stream *self, int64_t start, int64_t end, int64_t time, int64_t place,
                int32_t capture, uint32_t at) {
    if (UNLIKELY(self->mark_end == self->mark_room)) {
        mark *grown = doubled(self->marks, &self->mark_room, sizeof(mark), 16);
        if (grown == NULL) return -1;
        self->marks = grown;
    }
    mark *each = &self->marks[self->mark_end++];
    each->start = start;
    each->end = end;
    each->time = time;
    each->place = place;
    each->capture = capture;
    each->at = at;
    return 0;
}

/* Adds the newest bytes as one piece, and drops the oldest pieces until the rest costs no more
   than `limit`, this one included. */
int stream_piece(stream *self, int64_t start, uint32_t size, uint32_t at, int64_t limit) {
    if (UNLIKELY(self->pieces == NULL)) {
        self->pieces = PyMem_Calloc(MOST_PIECES, sizeof(piece));
        if (self->pieces == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    self->piece_cost += (int64_t)size + PIECE_COST;
    while (self->piece_count && self->piece_cost > limit) {
        STEPS(1);
        piece *oldest = &self->pieces[self->piece_first];
        self->piece_cost -= (int64_t)oldest->size + PIECE_COST;
        self->piece_first = (self->piece_first + 1) % MOST_PIECES;
        self->piece_count--;
    }
    if (self->piece_cost > limit) {
        self->piece_cost = 0;
        return 0;
    }
    /* `limit` is at most MOST_PIECES * PIECE_COST, and no piece is empty: there is room. */
    piece *each = &self->pieces[(self->piece_first + self->piece_count++) % MOST_PIECES];
    each->start = start;
    each->size = size;
    each->at = at;
    return 0;
}

int stream_keep(stream *self, const uint8_t *from, int64_t size) {
    int64_t used = self->kept_end - self->kept_start;
    STEPS(1 + size / BYTES_A_STEP);
    if (self->kept_skip + used + size > self->kept_room) {
        STEPS(used / BYTES_A_STEP);
        if (self->kept_skip && used) memmove(self->kept, self->kept + self->kept_skip, (size_t)used);
        self->kept_skip = 0;
        if (used + size > self->kept_room) {
            int64_t room = used + size + (used + size) / 4;
            uint8_t *grown = PyMem_Realloc(self->kept, (size_t)room);
            if (grown == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            self->kept = grown;
            self->kept_room = (Py_ssize_t)room;
        }
    }
    if (size) memcpy(self->kept + self->kept_skip + used, from, (size_t)size);
    self->kept_end += size;
    return 0;
}

/* Returns the index of the mark of the byte at `from`. Older marks may remain, and a large frame
   has thousands. */
static Py_ssize_t first_mark(const stream *self, int64_t from) {
    Py_ssize_t low = self->mark_first, high = self->mark_end;
    if (low < high && self->marks[low].end > from) return low;
    while (low < high) {
        STEPS(1);
        Py_ssize_t middle = low + (high - low) / 2;
        if (self->marks[middle].end > from) high = middle;
        else low = middle + 1;
    }
    return low;
}

const mark *stream_first_mark(const stream *self, int64_t from) {
    return &self->marks[first_mark(self, from)];
}

int stream_fold(stream *self, const uint8_t *chunk) {
    int64_t pieces_from = self->piece_count ? self->pieces[self->piece_first].start : self->next;
    int64_t needed = self->base < pieces_from ? self->base : pieces_from;
    if (needed >= self->kept_end) {
        self->kept_start = self->kept_end = needed;
        self->kept_skip = 0;
    } else if (needed > self->kept_start) {
        self->kept_skip += (Py_ssize_t)(needed - self->kept_start);
        self->kept_start = needed;
    }
    for (Py_ssize_t i = first_mark(self, self->kept_end);
         i < self->mark_end && self->kept_end < pieces_from; i++) {
        STEPS(1);
        const mark *each = &self->marks[i];
        int64_t end = each->end < pieces_from ? each->end : pieces_from;
        if (stream_keep(self, chunk + each->at + (self->kept_end - each->start),
                        end - self->kept_end))
            return -1;
    }
    unsigned fresh = self->piece_count; /* the first piece that is not kept yet */
    for (; fresh; fresh--) {
        STEPS(1);
        if (self->pieces[(self->piece_first + fresh - 1) % MOST_PIECES].start < self->kept_end)
            break;
    }
    for (unsigned i = fresh; i < self->piece_count; i++) {
        const piece *each = &self->pieces[(self->piece_first + i) % MOST_PIECES];
        if (stream_keep(self, chunk + each->at, each->size)) return -1;
    }
    int64_t used = self->kept_end - self->kept_start;
    if (self->mark_room > 4096 && self->mark_room > 4 * self->mark_end) {
        Py_ssize_t room = 2 * self->mark_end + 16;
        mark *less = PyMem_Realloc(self->marks, (size_t)room * sizeof(mark));
        if (less != NULL) {
            self->marks = less;
            self->mark_room = room;
        }
    }
    if (self->kept_room > 4 * used + (1 << 18)) { /* a large frame was completed */
        STEPS(used / BYTES_A_STEP);
        if (used) memmove(self->kept, self->kept + self->kept_skip, (size_t)used);
        self->kept_skip = 0;
        uint8_t *less = PyMem_Realloc(self->kept, (size_t)(used ? used : 1));
        if (less != NULL) {
            self->kept = less;
            self->kept_room = (Py_ssize_t)(used ? used : 1);
        }
    }
    return 0;
}

const uint8_t *stream_head(const stream *self, const uint8_t *chunk, int64_t from,
                           int64_t *available) {
    if (from < self->kept_end) {
        *available = self->kept_end - from;
        return self->kept + self->kept_skip + (from - self->kept_start);
    }
    const mark *each = stream_first_mark(self, from);
    *available = each->end - from;
    return chunk + each->at + (from - each->start);
}

void stream_gather(const stream *self, const uint8_t *chunk, int64_t from, int64_t size,
                   uint8_t *out) {
    int64_t end = from + size;
    STEPS(1 + size / BYTES_A_STEP);
    if (from < self->kept_end) {
        int64_t part = (self->kept_end < end ? self->kept_end : end) - from;
        memcpy(out, self->kept + self->kept_skip + (from - self->kept_start), (size_t)part);
        out += part;
        from += part;
    }
    for (Py_ssize_t i = first_mark(self, from); from < end && i < self->mark_end; i++) {
        STEPS(1);
        const mark *each = &self->marks[i];
        int64_t part = (each->end < end ? each->end : end) - from;
        memcpy(out, chunk + each->at + (from - each->start), (size_t)part);
        out += part;
        from += part;
    }
}

PyObject *stream_bytes(const stream *self, const uint8_t *chunk, int64_t from, int64_t size) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (made != NULL) stream_gather(self, chunk, from, size, (uint8_t *)PyBytes_AS_STRING(made));
    return made;
}

/* ---- parts of a connection's state --------------------------------------------------------------- */

/* Returns [(start, bytes)], the newest bytes; NULL with an exception. */
PyObject *stream_recent(const stream *self, const uint8_t *chunk) {
    PyObject *list = PyList_New((Py_ssize_t)self->piece_count);
    STEPS(self->piece_count);
    for (unsigned i = 0; list != NULL && i < self->piece_count; i++) {
        const piece *each = &self->pieces[(self->piece_first + i) % MOST_PIECES];
        const uint8_t *from = each->start < self->kept_end
                                  ? self->kept + self->kept_skip + (each->start - self->kept_start)
                                  : chunk + each->at;
        PyObject *made = Py_BuildValue("(Ly#)", (long long)each->start, (const char *)from,
                                       (Py_ssize_t)each->size);
        if (made == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, made);
    }
    return list;
}

/* Returns the packets that brought the current frame, packed as `mark`. */
PyObject *stream_marks(const stream *self) {
    Py_ssize_t count = self->mark_end - self->mark_first;
    STEPS(count);
    return PyBytes_FromStringAndSize(count ? (const char *)(self->marks + self->mark_first) : "",
                                     count * (Py_ssize_t)sizeof(mark));
}
