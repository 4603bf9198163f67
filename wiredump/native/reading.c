/* Turns the packets of connections that are here into exchanges. `run` stops at a packet or a
   frame that Python has to read (wiredump/sources/native_connections.py). */
#include "wire.h"

static int touch(reading_object *self, connection *on) {
    if (self->touched_count == self->touched_room) {
        connection **grown = doubled(self->touched, &self->touched_room, sizeof(*grown), 64);
        if (grown == NULL) return -1;
        self->touched = grown;
    }
    self->touched[self->touched_count++] = on;
    on->touched = self->touched_count;
    return 0;
}

/* Releases the chunk, after copying the bytes that are still needed. */
static int fold(reading_object *self) {
    const uint8_t *chunk = chunk_of(self->packets);
    int failed = 0;
    for (Py_ssize_t i = 0; i < self->touched_count; i++) {
        connection *on = self->touched[i];
        STEPS(1);
        on->touched = 0;
        failed |= stream_fold(&on->streams[0], chunk) || stream_fold(&on->streams[1], chunk);
    }
    self->touched_count = 0;
    Py_CLEAR(self->packets);
    return failed ? -1 : 0;
}

/* ---- the share of a connection: wiredump/readers/share.py ---------------------------------------- */

static uint32_t hash_end(const uint8_t *address, int size, const uint8_t *port) {
    uint32_t found = UINT32_C(0x811C9DC5);
    for (int i = 0; i < size; i++) found = (found ^ address[i]) * UINT32_C(0x01000193);
    for (int i = 0; i < 2; i++) found = (found ^ port[i]) * UINT32_C(0x01000193);
    return found;
}

static int is_mine(const reading_object *self, const uint8_t *flow) {
    int size = (flow[KEY - 1] - 4) / 2;
    const uint8_t *ports = flow + 2 * size;
    uint32_t sum = hash_end(flow, size, ports) + hash_end(flow + size, size, ports + 2);
    return (sum * UINT32_C(0x9E3779B1) >> 16) % self->share_of == self->share;
}

/* ---- the way of a segment ----------------------------------------------------------------------- */

static int add_payload(const arrival *in) {
    const segment *of = &in->segment;
    stream *to = in->stream;
    int64_t start = to->next, now = in->packet->time;
    if ((!in->on->touched && touch(in->reading, in->on)) ||
        (UNLIKELY(to->trips == NULL) &&
         trips_begin(to, in->on->connection, in->direction, of->sequence)))
        return -1;
    trips_send(to->trips, of->sequence, of->size, now);
    trips_note(to->trips, of, now);
    to->next = start + of->size;
    to->next_sequence += of->size;
    return stream_mark(to, start, to->next, now, in->packet->place, in->packet->capture, of->at) ||
           stream_piece(to, start, of->size, of->at, in->reading->recent_limit);
}

/* GOES_ON: the current frame is complete; TAKEN: it is not; LEFT_FRAME: its size is invalid. */
static enum outcome find_frame(const arrival *in) {
    stream *from = in->stream;
    if (from->need == 0 && from->next - from->base >= 4) {
        uint8_t bytes[4];
        const uint8_t *at = bytes;
        int64_t within = from->base - from->next + in->segment.size; /* this segment */
        if (LIKELY(within >= 0)) at = in->chunk + in->segment.at + within;
        else stream_gather(from, in->chunk, from->base, 4, bytes);
        int64_t size = (int32_t)get32(at);
        if (size < 0 || size > in->reading->max_size) return LEFT_FRAME;
        from->need = 4 + size;
    }
    return from->need && from->base + from->need <= from->next ? GOES_ON : TAKEN;
}

static enum outcome take_frame(const arrival *in) {
    stream *from = in->stream;
    enum outcome outcome =
        in->direction == in->on->request_direction ? take_request(in) : take_response(in);
    if (LIKELY(outcome == TAKEN)) {
        from->base += from->need;
        from->need = 0;
        from->marks[0] = from->marks[from->mark_end - 1];
        from->mark_first = 0;
        from->mark_end = 1;
    }
    return outcome;
}

static enum outcome take_payload(const arrival *in) {
    enum outcome outcome = add_payload(in) ? FAILED : find_frame(in);
    while (outcome == GOES_ON && (outcome = take_frame(in)) == TAKEN) outcome = find_frame(in);
    return outcome;
}

/* Whether the segment was captured before, `ago`, by its IP identification and by its bytes, which
   are still here (round_trips.py: original). Python decides about all others. */
static int is_copy(const arrival *in, int64_t *ago) {
    const stream *to = in->stream;
    const segment *of = &in->segment;
    int64_t start = to->next - (int64_t)(uint32_t)(to->next_sequence - of->sequence);
    if (to->trips == NULL || !of->identification || start + of->size > to->next) return 0;
    const int64_t *noted = trips_noted(to->trips, of);
    unsigned left = noted == NULL ? 0 : to->piece_count;
    while (left--) {
        STEPS(1);
        const piece *each = &to->pieces[(to->piece_first + left) % MOST_PIECES];
        if (each->start > start) continue;
        const uint8_t *held = start < to->kept_end ? to->kept + to->kept_skip + (start - to->kept_start)
                                                   : in->chunk + each->at;
        *ago = in->packet->time < noted[0] ? noted[0] - in->packet->time : in->packet->time - noted[0];
        return *ago <= COPY_NS && each->start == start && each->size == of->size &&
               memcmp(held, in->chunk + of->at, of->size) == 0;
    }
    return 0;
}

static enum outcome take_copy(const arrival *in) {
    int64_t ago;
    if (!is_copy(in, &ago)) return LEFT_PACKET;
    note_packet(in);
    in->reading->copied += in->segment.size;
    PyObject *made = PyObject_CallMethod(in->stream->tally, "count_copy", "L", (long long)ago);
    Py_XDECREF(made);
    return made == NULL ? FAILED : TAKEN;
}

static enum outcome take_segment(const arrival *in) {
    enum outcome outcome = GOES_ON;
    if (in->on->opened.stage) outcome = opened_segment(in);
    else if (in->segment.flags & (FIN | SYN | RST)) outcome = LEFT_PACKET;
    if (LIKELY(outcome == GOES_ON)) {
        if (acks_unseen(in)) return LEFT_PACKET;
        if (in->segment.size && in->segment.sequence != in->stream->next_sequence)
            return take_copy(in);
        note_packet(in);
        in->reading->payload += in->segment.size;
        outcome = in->segment.size ? take_payload(in) : TAKEN;
    }
    return outcome;
}

static enum outcome take_packet(arrival *in) {
    reading_object *self = in->reading;
    enum outcome outcome = LEFT_PACKET;
    if (!read_segment(in->chunk, in->packet, &in->segment)) return outcome;
    struct slot *slot = NULL;
    if (self->share_of > 1 && !self->divided && !is_mine(self, in->segment.flow)) {
        self->packet_count++;
        outcome = TAKEN;
    } else if (LIKELY((slot = reading_find(self, in->segment.flow)) != NULL)) {
        in->on = slot->connection;
        in->direction = slot->direction;
        in->stream = &in->on->streams[in->direction];
        outcome = take_segment(in);
    } else if (in->segment.flags & SYN) {
        outcome = open_connection(in);
    }
    return outcome;
}

/* run(packets) -> the number of a packet that Python has to read; a flow whose next frame Python
   has to read, and whose connection must be dumped before the next call; None at the end of the
   packets. Call it with the same packets until it returns None. */
static PyObject *run(PyObject *object, PyObject *argument) {
    reading_object *self = (reading_object *)object;
    if (is_busy(self)) return NULL;
    if (!Py_IS_TYPE(argument, &packets_type)) {
        PyErr_SetString(PyExc_TypeError, "run takes Packets");
        return NULL;
    }
    if ((PyObject *)self->packets != argument) {
        if (self->packets != NULL) {
            PyErr_SetString(PyExc_ValueError, "the previous packets were not finished");
            return NULL;
        }
        self->packets = (packets_object *)Py_NewRef(argument);
        self->cursor = 0;
    }
    packets_object *packets = self->packets;
    const uint8_t *chunk = chunk_of(packets);
    while (self->cursor < packets->count) {
        Py_ssize_t number = self->cursor++;
        STEPS(1);
        arrival in = {.reading = self, .packet = &packets->packets[number], .chunk = chunk};
        self->busy = 1;
        enum outcome outcome = take_packet(&in);
        self->busy = 0;
        if (LIKELY(outcome == TAKEN)) continue;
        if (outcome == LEFT_PACKET) return PyLong_FromSsize_t(number);
        if (outcome == FAILED) return NULL;
        const uint8_t *flow = in.on->flows[in.direction];
        return PyBytes_FromStringAndSize((const char *)flow, flow[KEY - 1]);
    }
    if (fold(self)) return NULL;
    Py_RETURN_NONE;
}

/* ---- results ----------------------------------------------------------------------------------- */

/* counts() -> (packets, payload without copies, bytes of copies, bytes in exchanges, of these in exchanges of unknown APIs, of
   these behind a gap in their frame, readable requests, bytes of closed streams, [(capture, first
   time, last time)]) since the last call; items() -> the exchanges since the last call */
static PyObject *counts(PyObject *object, PyObject *unused) {
    reading_object *self = (reading_object *)object;
    (void)unused;
    PyObject *spans = listed_spans(self);
    if (spans == NULL) return NULL;
    PyObject *made = Py_BuildValue(
        "(LLLLLLLLN)", (long long)self->packet_count, (long long)self->payload,
        (long long)self->copied, (long long)self->frame_bytes, (long long)self->unknown_bytes, (long long)self->behind_gaps,
        (long long)self->request_count, (long long)self->closed_bytes, spans);
    if (made == NULL) return NULL;
    self->packet_count = self->payload = self->copied = self->frame_bytes = self->closed_bytes = 0;
    clear_spans(self);
    self->unknown_bytes = self->behind_gaps = self->request_count = 0;
    return made;
}

static Py_ssize_t length(PyObject *object) { return ((reading_object *)object)->alive; }

static PyObject *items(PyObject *object, PyObject *unused) {
    reading_object *self = (reading_object *)object;
    (void)unused;
    PyObject *next = PyList_New(0), *found = self->items;
    if (next == NULL) return NULL;
    self->items = next;
    return found;
}

/* ---- the object ----------------------------------------------------------------------------- */

static int note_versions(reading_object *self, PyObject *flexible) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(flexible); i++) {
        long version = PyLong_AsLong(PyTuple_GET_ITEM(flexible, i));
        if (version == -1 && PyErr_Occurred()) return -1;
        if (version >= 0 && version < (long)sizeof(self->flexible)) self->flexible[version] = 1;
    }
    return 0;
}

/* Reading(Frame, Exchange, Place, STATES, dialect, rows, limits, flexible, left, seed, share).
   `rows`: the ExchangeRows, or None if every exchange becomes an object. `limits`: the largest
   frame, the cost of recent bytes, and the requests and their bytes that may be open. `flexible`:
   the flexible versions of Produce. `left`: API keys whose requests Python reads. `share`: its
   number, the number of shares, and whether connections are divided. */
static PyObject *new_reading(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *frame_type, *exchange_type, *place_type, *states, *dialect, *rows, *flexible, *left;
    long long max_size, recent, most, most_bytes, seed;
    unsigned int share, share_of;
    int divided;
    if (refuse_keywords(keywords, "Reading")) return NULL;
    if (!PyArg_ParseTuple(args, "OOOO!OO(LLLL)O!O!L(IIp)", &frame_type, &exchange_type,
                          &place_type, &PyTuple_Type, &states, &dialect, &rows, &max_size, &recent, &most, &most_bytes,
                          &PyTuple_Type, &flexible, &PyTuple_Type, &left, &seed, &share,
                          &share_of, &divided))
        return NULL;
    if (share >= share_of) {
        PyErr_SetString(PyExc_ValueError, "invalid share");
        return NULL;
    }
    if (recent < 0 || recent > MOST_PIECES * PIECE_COST || max_size < 0 || max_size > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "invalid limits");
        return NULL;
    }
    if (rows != Py_None && !Py_IS_TYPE(rows, &exchange_rows_type)) {
        PyErr_SetString(PyExc_TypeError, "`rows` must be ExchangeRows or None");
        return NULL;
    }
    if (PyTuple_GET_SIZE(states) != STATES) {
        PyErr_Format(PyExc_ValueError, "expected %d types of states", (int)STATES);
        return NULL;
    }
    reading_object *self = (reading_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->frame_type = Py_NewRef(frame_type);
    self->exchange_type = Py_NewRef(exchange_type);
    self->place_type = Py_NewRef(place_type);
    for (int i = 0; i < STATES; i++) self->states[i] = Py_NewRef(PyTuple_GET_ITEM(states, i));
    self->dialect = Py_NewRef(dialect);
    self->rows = rows == Py_None ? NULL : (exchange_rows_object *)Py_NewRef(rows);
    self->max_size = max_size;
    self->recent_limit = recent;
    self->most_open = most;
    self->most_open_bytes = most_bytes;
    self->seed = (uint64_t)seed | 1;
    self->share = share;
    self->share_of = share_of;
    self->divided = divided;
    self->items = PyList_New(0);
    if (self->items == NULL || note_versions(self, flexible) || note_keys(self->left, left))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* The callbacks refer to connections of Python, which may refer to this object. */
#define EACH(DO)                                                                                   \
    DO(self->rows) DO(self->opened) DO(self->closed) DO(self->software) DO(self->decodes) DO(self->known)

static int traverse(PyObject *object, visitproc visit, void *arg) {
    reading_object *self = (reading_object *)object;
#define VISIT(each) Py_VISIT(each);
    EACH(VISIT)
    return 0;
}

static int clear(PyObject *object) {
    reading_object *self = (reading_object *)object;
#define CLEAR(each) Py_CLEAR(each);
    EACH(CLEAR)
    return 0;
}

static void dealloc(PyObject *object) {
    reading_object *self = (reading_object *)object;
    PyObject_GC_UnTrack(object);
    clear(object);
    for (size_t i = 0; i < self->table_size; i++)
        if (self->table[i].direction == 0) connection_free(self->table[i].connection);
    PyMem_Free(self->table);
    PyMem_Free(self->touched);
    PyMem_Free(self->scratch);
    PyMem_Free(self->spans);
    PyMem_Free(self->span_places);
    Py_XDECREF(self->frame_type);
    Py_XDECREF(self->exchange_type);
    Py_XDECREF(self->place_type);
    for (int i = 0; i < STATES; i++) Py_XDECREF(self->states[i]);
    Py_XDECREF(self->dialect);
    Py_XDECREF(self->packets);
    Py_XDECREF(self->items);
    Py_XDECREF(self->versions);
    Py_XDECREF(self->readable);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"run", run, METH_O, NULL},
    {"restore", connection_restore, METH_O, NULL}, {"dump", connection_dump, METH_O, NULL},
    {"flows", connection_flows, METH_O, NULL},       {"counts", counts, METH_NOARGS, NULL},
    {"items", items, METH_NOARGS, NULL},  {"open_with", open_with, METH_VARARGS, NULL},
    {"end", end_clean, METH_NOARGS, NULL}, {0}};
static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject reading_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Reading",
    .tp_basicsize = sizeof(reading_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_reading,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_as_sequence = &as_sequence,
};
