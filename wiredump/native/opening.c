/* Reads connections from their SYN to their last FIN: SYN, SYN-ACK, Kafka requests from the first
   byte on, and a FIN from each side with no request open. At anything else the connection passes
   to Python (connection_state.c), in whichever state it is. Each decision is that of
   readers/tcp.py. */
#include "wire.h"

enum { REQUEST_PREFIX = 12, CONTROLLED_SHUTDOWN = 7, MOST_CLIENT_ID = 1024, MOST_SOFTWARE = 1 << 12 };
enum { CHANGES = FIN | SYN | RST, CLIENT = 0, SERVER = 1 };
#define STALE_NS INT64_C(60000000000)

/* ---- what is called -------------------------------------------------------------------------- */

/* open_with(opened, closed, software, decodes, known, versions, readable): from now on
   connections may open and close here. wiredump/sources/native_connections.py documents the
   callbacks. */
PyObject *open_with(PyObject *object, PyObject *args) {
    reading_object *self = (reading_object *)object;
    PyObject *opened, *closed, *software, *decodes, *known, *versions, *readable;
    if (!PyArg_ParseTuple(args, "OOOOO!SS", &opened, &closed, &software, &decodes, &PyDict_Type,
                          &known, &versions, &readable))
        return NULL;
    Py_XSETREF(self->opened, Py_NewRef(opened));
    Py_XSETREF(self->closed, Py_NewRef(closed));
    Py_XSETREF(self->software, Py_NewRef(software));
    Py_XSETREF(self->decodes, Py_NewRef(decodes));
    Py_XSETREF(self->known, Py_NewRef(known));
    Py_XSETREF(self->versions, Py_NewRef(versions));
    Py_XSETREF(self->readable, Py_NewRef(readable));
    Py_RETURN_NONE;
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void begin(connection *on, int direction, uint32_t sequence) {
    on->opened.isn[direction] = sequence;
    on->streams[direction].next_sequence = sequence + 1;
}

static void saw(connection *on, const packet *from) {
    on->time = from->time;
    on->place = from->place;
    on->capture = from->capture;
}

/* Opens a connection at a SYN whose flow is unknown here. `known` has the flows of connections
   that Python reads. */
int open_connection(reading_object *self, const segment *of, const packet *from) {
    uint8_t back[KEY];
    if ((of->flags & (CHANGES | ACK)) != SYN || of->size || self->opened == NULL) return 0;
    if (of->tunnelled) return 0; /* Python determines the names of tunnels */
    reverse(of->flow, back);
    if (memcmp(of->flow, back, KEY) == 0) return 0;
    PyObject *flow = PyBytes_FromStringAndSize((const char *)of->flow, of->flow[KEY - 1]);
    int known = flow == NULL ? -1 : PyDict_Contains(self->known, flow);
    PyObject *made = NULL, *held_connection, *requests;
    if (known == 0)
        made = PyObject_CallFunction(self->opened, "OLiL", flow, (long long)from->time,
                                     (int)from->capture, (long long)from->place);
    Py_XDECREF(flow);
    if (known > 0 || made == Py_None) {
        Py_XDECREF(made);
        return 0;
    }
    connection *on = NULL;
    if (made != NULL && PyArg_ParseTuple(made, "OO!", &held_connection, &open_requests_type, &requests)) {
        on = PyMem_Calloc(1, sizeof(connection));
        if (on == NULL) PyErr_NoMemory();
    }
    if (on == NULL) {
        Py_XDECREF(made);
        return -1;
    }
    on->connection = Py_NewRef(held_connection);
    on->open = (open_requests *)Py_NewRef(requests);
    Py_DECREF(made);
    on->software = Py_NewRef(Py_None);
    on->id = (int64_t)from->capture << 48 | from->place;
    on->opened.stage = STAGE_SYN;
    memcpy(on->flows[CLIENT], of->flow, KEY);
    memcpy(on->flows[SERVER], back, KEY);
    begin(on, CLIENT, of->sequence);
    on->opened.syn_ns = from->time;
    saw(on, from);
    if (reading_put(self, on)) {
        connection_free(on);
        return -1;
    }
    self->packet_count++;
    return 1;
}

/* ---- what it is ----------------------------------------------------------------------------- */

/* Whether a client's first bytes are a request, as frame_boundaries.RequestShape decides.
   Doubtful cases are left to Python. */
static int is_request(const reading_object *self, const uint8_t *at, uint32_t size) {
    if (size < REQUEST_PREFIX + 2) return 0;
    int64_t length = (int32_t)get32(at);
    int key = (int16_t)get16(at + 4), version = (int16_t)get16(at + 6);
    int client = (int16_t)get16(at + REQUEST_PREFIX);
    if (key < 0 || key >= PyBytes_GET_SIZE(self->versions)) return 0;
    /* One past the highest known version; 0 if the key is unknown. */
    if (version < 0 || version >= (uint8_t)PyBytes_AS_STRING(self->versions)[key]) return 0;
    if (length < 10 || length > self->max_size || (key == CONTROLLED_SHUTDOWN && version == 0))
        return 0;
    if (client < -1 || client > MOST_CLIENT_ID || client > length - 10) return 0;
    if (client > 0 && size < (uint32_t)(REQUEST_PREFIX + 2 + client)) return 0;
    for (int i = 0; i < client; i++) {
        uint8_t letter = at[REQUEST_PREFIX + 2 + i];
        if (letter < 0x20 || letter > 0x7E) return 0;
    }
    return 1;
}

/* Whether the first request decodes. If not, the connection may use another protocol, and Python
   decides. */
enum taken confirm(reading_object *self, connection *on, const uint8_t *chunk, int64_t size) {
    const stream *from = &on->streams[on->request_direction];
    PyObject *raw = self->decodes == NULL ? NULL : stream_bytes(from, chunk, from->base, size);
    PyObject *found = raw == NULL ? NULL : PyObject_CallOneArg(self->decodes, raw);
    Py_XDECREF(raw);
    if (found == NULL) return PyErr_Occurred() ? FAILED : LEFT;
    on->confirmed = found == Py_True;
    Py_DECREF(found);
    return on->confirmed ? TAKEN : LEFT;
}

/* Takes the client software from an ApiVersions request. LEFT: Python has to read the request. */
enum taken learn_software(reading_object *self, connection *on, const uint8_t *chunk,
                          int64_t size) {
    const stream *from = &on->streams[on->request_direction];
    /* Exchanges that were not returned yet would get software that was not known at their time.
       */
    if (self->software == NULL || size > MOST_SOFTWARE || (!only_frames(self->rows) && on->any_request))
        return LEFT;
    PyObject *raw = stream_bytes(from, chunk, from->base, size);
    PyObject *found = raw == NULL ? NULL : PyObject_CallOneArg(self->software, raw);
    Py_XDECREF(raw);
    if (found == NULL) return FAILED;
    if (found == Py_None) {
        Py_DECREF(found);
        return TAKEN;
    }
    int failed = PyObject_SetAttrString(on->connection, "software", found);
    Py_SETREF(on->software, found);
    return failed ? FAILED : TAKEN;
}

/* ---- the end -------------------------------------------------------------------------------- */

static int is_clean(const connection *on) {
    return on->open->count == 0 && on->streams[CLIENT].base == on->streams[CLIENT].next &&
           on->streams[SERVER].base == on->streams[SERVER].next;
}

/* Frees everything of a closed connection that is not needed to judge later packets. */
static void let_go(connection *on) {
    for (int i = 0; i < 2; i++) {
        stream *each = &on->streams[i];
        int64_t next = each->next;
        uint32_t sequence = each->next_sequence;
        stream_clear(each);
        each->next = each->base = next;
        each->next_sequence = sequence;
    }
    PyMem_Free(on->client_raw);
    on->client_raw = NULL;
    on->client_size = on->client_room = 0;
    Py_CLEAR(on->client_id);
    Py_CLEAR(on->software);
    Py_CLEAR(on->open);
}

/* Closes a connection. `from` is its last packet, or NULL at the end of the captures. */
static int end(reading_object *self, connection *on, const packet *from) {
    PyObject *time = from == NULL ? Py_NewRef(Py_None) : PyLong_FromLongLong(from->time);
    PyObject *by = on->opened.ended ? PyLong_FromLong(on->opened.ended_by) : Py_NewRef(Py_None);
    PyObject *result = NULL;
    if (time != NULL && by != NULL)
        result = PyObject_CallFunction(self->closed, "OOOOiLLL", on->connection, time, by,
                                     on->client_id ? on->client_id : Py_None, on->any_request,
                                     (long long)on->requests, (long long)on->request_bytes,
                                     (long long)on->response_bytes);
    Py_XDECREF(time);
    Py_XDECREF(by);
    if (result == NULL) return -1;
    Py_DECREF(result);
    on->opened.stage = STAGE_CLOSED;
    on->opened.closed_at = from == NULL ? on->time : from->time;
    self->closed_bytes += on->streams[CLIENT].next + on->streams[SERVER].next;
    self->alive--;
    let_go(on);
    return 1;
}

/* end(): the captures end. Connections that opened here and have nothing to report, such as those
   of a flood of SYNs, are closed. The others stay. */
PyObject *end_clean(PyObject *object, PyObject *unused) {
    reading_object *self = (reading_object *)object;
    (void)unused;
    if (is_busy(self)) return NULL;
    STEPS(self->table_size);
    for (size_t i = 0; i < self->table_size; i++) {
        connection *on = self->table[i].connection;
        if (on == NULL || self->table[i].direction || on->opened.stage == STAGE_ENTERED ||
            on->opened.stage == STAGE_CLOSED || !is_clean(on))
            continue;
        if (end(self, on, NULL) < 0) return NULL;
    }
    Py_RETURN_NONE;
}

static int take_fin(reading_object *self, connection *on, int direction, const segment *of,
                    const packet *from) {
    int first = !on->opened.ended;
    if (of->size || on->opened.stage != STAGE_OPEN || on->opened.ended >> direction & 1 ||
        of->sequence != on->streams[direction].next_sequence || acks_unseen(on, direction, of) ||
        (!first && !is_clean(on)))
        return 0;
    self->packet_count++;
    saw(on, from);
    if (of->flags & ACK)
        trips_acknowledge(&on->streams[!direction], of->acknowledgement, from->time);
    on->opened.ended |= (uint8_t)(1 << direction);
    if (!first) return end(self, on, from);
    on->opened.ended_by = (uint8_t)direction;
    return 1;
}

/* The client's first segment after the SYN-ACK ends the handshake (TcpReassembler._shake). */
static int shake(connection *on, const packet *from) {
    on->opened.shaken = 1;
    if (from->time < on->opened.syn_ns) return 0;
    PyObject *tally = PyObject_GetAttrString(on->connection, "tally");
    PyObject *took = tally == NULL ? NULL : PyLong_FromLongLong(from->time - on->opened.syn_ns);
    int failed = took == NULL || PyObject_SetAttrString(tally, "handshake_ns", took);
    Py_XDECREF(tally);
    Py_XDECREF(took);
    return failed ? -1 : 0;
}

static int take_after(reading_object *self, connection *on, int direction, const segment *of,
                      const packet *from) {
    int64_t closed_at = on->opened.closed_at;
    if (of->size || of->flags & RST || closed_at > INT64_MAX - STALE_NS || from->time > closed_at + STALE_NS) return 0;
    if (of->flags & SYN) {
        if ((of->flags & (CHANGES | ACK)) != SYN || of->sequence == on->opened.isn[direction])
            return 0;
        reading_drop(self, on); /* Another connection begins on these ports, here or in Python. */
        return open_connection(self, of, from);
    }
    self->packet_count++;
    return 1;
}

/* ---- in between ----------------------------------------------------------------------------- */

static int take_answer(reading_object *self, connection *on, int direction, const segment *of,
                       const packet *from) {
    if (on->opened.stage != STAGE_SYN || direction != SERVER || of->size ||
        (of->flags & (CHANGES | ACK)) != (SYN | ACK) ||
        of->acknowledgement != on->streams[CLIENT].next_sequence)
        return 0;
    begin(on, SERVER, of->sequence);
    on->opened.stage = STAGE_OPEN;
    self->packet_count++;
    saw(on, from);
    return 1;
}

/* Returns 1 if the segment is done, 0 if Python has to read it, -1 with an exception, GOES_ON if
   it is read like that of any other connection. */
int opened_segment(reading_object *self, connection *on, int direction, const segment *of,
                 const packet *from, const uint8_t *chunk) {
    if (on->opened.stage == STAGE_CLOSED) return take_after(self, on, direction, of, from);
    if (UNLIKELY(!on->opened.shaken) && direction == CLIENT && on->opened.stage == STAGE_OPEN &&
        (of->flags & (SYN | RST | ACK)) == ACK && shake(on, from))
        return -1;
    if (of->flags & CHANGES)
        return (of->flags & CHANGES) == FIN ? take_fin(self, on, direction, of, from)
                                            : take_answer(self, on, direction, of, from);
    if (on->opened.stage != STAGE_OPEN) return 0;
    if (!of->size) return GOES_ON;
    if (on->opened.ended >> direction & 1) return 0;
    if (!on->opened.recognised) {
        if (direction != CLIENT || of->sequence != on->streams[CLIENT].next_sequence ||
            acks_unseen(on, direction, of) || !is_request(self, chunk + of->at, of->size))
            return 0;
        on->opened.recognised = 1;
    }
    return GOES_ON;
}
