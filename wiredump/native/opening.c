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

static void begin(connection *on, int direction, const arrival *in) {
    const segment *of = &in->segment;
    on->opened.begun_ns[direction] = in->packet->time;
    on->opened.isn[direction] = of->sequence;
    on->opened.identifications[direction] = of->identification;
    on->streams[direction].next_sequence = of->sequence + 1;
}

/* Opens a connection at a SYN whose flow is unknown here. `known` has the flows of connections that
   Python reads. */
enum outcome open_connection(const arrival *in) {
    reading_object *self = in->reading;
    const segment *of = &in->segment;
    const packet *from = in->packet;
    uint8_t back[KEY];
    reverse(of->flow, back);
    /* Python determines the names of tunnels. */
    if ((of->flags & (CHANGES | ACK)) != SYN || of->size || self->opened == NULL ||
        of->tunnelled || memcmp(of->flow, back, KEY) == 0)
        return LEFT_PACKET;
    PyObject *flow = PyBytes_FromStringAndSize((const char *)of->flow, of->flow[KEY - 1]);
    int known = flow == NULL ? -1 : PyDict_Contains(self->known, flow);
    PyObject *made = NULL, *held_connection, *requests;
    if (known == 0)
        made = PyObject_CallFunction(self->opened, "OLiL", flow, (long long)from->time,
                                     (int)from->capture, (long long)from->place);
    Py_XDECREF(flow);
    if (known > 0 || made == Py_None) {
        Py_XDECREF(made);
        return LEFT_PACKET;
    }
    connection *on = NULL;
    if (made != NULL &&
        PyArg_ParseTuple(made, "OO!", &held_connection, &open_requests_type, &requests)) {
        on = PyMem_Calloc(1, sizeof(connection));
        if (on == NULL) PyErr_NoMemory();
    }
    if (on == NULL) {
        Py_XDECREF(made);
        return FAILED;
    }
    on->connection = Py_NewRef(held_connection);
    on->open = (open_requests *)Py_NewRef(requests);
    Py_DECREF(made);
    on->software = Py_NewRef(Py_None);
    on->id = (int64_t)from->capture << 48 | from->place;
    on->opened.stage = STAGE_SYN;
    memcpy(on->flows[CLIENT], of->flow, KEY);
    memcpy(on->flows[SERVER], back, KEY);
    begin(on, CLIENT, in);
    if (reading_put(self, on)) {
        connection_free(on);
        return FAILED;
    }
    arrival first = *in;
    first.on = on;
    note_packet(&first);
    return TAKEN;
}

/* ---- what it is ----------------------------------------------------------------------------- */

/* Whether a client's first bytes are a request, as frame_boundaries.RequestShape decides. Doubtful
   cases are left to Python. */
static int is_request(const reading_object *self, const uint8_t *at, uint32_t size) {
    if (size < REQUEST_PREFIX + 2) return 0;
    int64_t length = (int32_t)get32(at);
    int key = (int16_t)get16(at + 4), version = (int16_t)get16(at + 6);
    int client = (int16_t)get16(at + REQUEST_PREFIX);
    int is_known = key >= 0 && key < PyBytes_GET_SIZE(self->versions);
    /* One past the highest known version; 0 if the key is unknown. */
    int end = is_known ? (uint8_t)PyBytes_AS_STRING(self->versions)[key] : 0;
    if (version < 0 || version >= end || length < 10 || length > self->max_size ||
        (key == CONTROLLED_SHUTDOWN && version == 0) || client < -1 || client > MOST_CLIENT_ID ||
        client > length - 10 || (client > 0 && size < (uint32_t)(REQUEST_PREFIX + 2 + client)))
        return 0;
    int is_plain = 1;
    for (int i = 0; i < client; i++) {
        uint8_t letter = at[REQUEST_PREFIX + 2 + i];
        is_plain &= letter >= 0x20 && letter <= 0x7E;
    }
    return is_plain;
}

/* Whether the first request decodes. If not, the connection may use another protocol, and Python
   decides. */
enum outcome confirm(const arrival *in) {
    PyObject *decodes = in->reading->decodes;
    PyObject *raw =
        decodes == NULL ? NULL : stream_bytes(in->stream, in->chunk, in->stream->base, in->stream->need);
    PyObject *found = raw == NULL ? NULL : PyObject_CallOneArg(decodes, raw);
    Py_XDECREF(raw);
    if (found == NULL) return PyErr_Occurred() ? FAILED : LEFT_FRAME;
    in->on->confirmed = found == Py_True;
    Py_DECREF(found);
    return in->on->confirmed ? TAKEN : LEFT_FRAME;
}

/* Takes the client software from an ApiVersions request. LEFT_FRAME: Python has to read it. */
enum outcome learn_software(const arrival *in) {
    const reading_object *self = in->reading;
    connection *on = in->on;
    /* Exchanges that were not returned yet would get software that was not known at their time. */
    if (self->software == NULL || in->stream->need > MOST_SOFTWARE ||
        (!only_frames(self->rows) && on->any_request))
        return LEFT_FRAME;
    PyObject *raw = stream_bytes(in->stream, in->chunk, in->stream->base, in->stream->need);
    PyObject *found = raw == NULL ? NULL : PyObject_CallOneArg(self->software, raw);
    Py_XDECREF(raw);
    int failed = found == NULL;
    if (found != NULL && found != Py_None) {
        failed = PyObject_SetAttrString(on->connection, "software", found);
        Py_XSETREF(on->software, Py_NewRef(found));
    }
    Py_XDECREF(found);
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
static enum outcome end(reading_object *self, connection *on, const packet *from) {
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
    if (result == NULL) return FAILED;
    Py_DECREF(result);
    on->opened.stage = STAGE_CLOSED;
    on->opened.closed_at = from == NULL ? on->time : from->time;
    self->closed_bytes += on->streams[CLIENT].next + on->streams[SERVER].next;
    self->alive--;
    let_go(on);
    return TAKEN;
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
        if (end(self, on, NULL) == FAILED) return NULL;
    }
    Py_RETURN_NONE;
}

static enum outcome take_fin(const arrival *in) {
    connection *on = in->on;
    int is_first = !on->opened.ended;
    if (in->segment.size || on->opened.stage != STAGE_OPEN ||
        on->opened.ended >> in->direction & 1 ||
        in->segment.sequence != in->stream->next_sequence || acks_unseen(in) ||
        (!is_first && !is_clean(on)))
        return LEFT_PACKET;
    note_packet(in);
    on->opened.ended |= (uint8_t)(1 << in->direction);
    if (is_first) on->opened.ended_by = (uint8_t)in->direction;
    return is_first ? TAKEN : end(in->reading, on, in->packet);
}

/* The client's first segment after the SYN-ACK ends the handshake (TcpReassembler._shake). */
static int shake(const arrival *in) {
    int64_t took_ns = in->packet->time - in->on->opened.begun_ns[CLIENT];
    in->on->opened.shaken = 1;
    if (took_ns < 0) return 0;
    PyObject *tally = PyObject_GetAttrString(in->on->connection, "tally");
    PyObject *took = tally == NULL ? NULL : PyLong_FromLongLong(took_ns);
    int failed = took == NULL || PyObject_SetAttrString(tally, "handshake_ns", took);
    Py_XDECREF(tally);
    Py_XDECREF(took);
    return failed ? -1 : 0;
}

/* A segment of a closed connection, or the SYN of another one on its ports. */
static enum outcome take_late(const arrival *in) {
    connection *on = in->on;
    int64_t closed_at = on->opened.closed_at;
    int flags = in->segment.flags, is_old = closed_at > INT64_MAX - STALE_NS ||
                                            in->packet->time > closed_at + STALE_NS;
    int is_new = (flags & (CHANGES | ACK)) == SYN &&
                 in->segment.sequence != on->opened.isn[in->direction];
    if (in->segment.size || flags & RST || is_old || (flags & SYN && !is_new)) return LEFT_PACKET;
    if (is_new) {
        reading_drop(in->reading, on);
        return open_connection(in);
    }
    in->reading->packet_count++;
    return TAKEN;
}

/* ---- in between ----------------------------------------------------------------------------- */

static int count_syn_ack(const connection *on) {
    PyObject *tally = PyObject_GetAttrString(on->connection, "tally");
    PyObject *one = tally == NULL ? NULL : PyLong_FromLong(1);
    int failed = one == NULL || PyObject_SetAttrString(tally, "syn_acks", one);
    Py_XDECREF(tally);
    Py_XDECREF(one);
    return failed ? -1 : 0;
}

static enum outcome take_syn_ack(const arrival *in) {
    connection *on = in->on;
    if (on->opened.stage != STAGE_SYN || in->direction != SERVER || in->segment.size ||
        (in->segment.flags & (CHANGES | ACK)) != (SYN | ACK) ||
        in->segment.acknowledgement != on->streams[CLIENT].next_sequence)
        return LEFT_PACKET;
    begin(on, SERVER, in);
    on->opened.stage = STAGE_OPEN;
    note_packet(in);
    return count_syn_ack(on) ? FAILED : TAKEN;
}

/* Whether a payload may follow: neither behind a FIN, nor before the first request. */
static int may_carry(const arrival *in) {
    connection *on = in->on;
    if (!on->opened.recognised)
        on->opened.recognised =
            in->direction == CLIENT && !(on->opened.ended & 1) &&
            in->segment.sequence == in->stream->next_sequence && !acks_unseen(in) &&
            is_request(in->reading, in->chunk + in->segment.at, in->segment.size);
    return on->opened.recognised && !(on->opened.ended >> in->direction & 1);
}

enum outcome opened_segment(const arrival *in) {
    const connection *on = in->on;
    int flags = in->segment.flags;
    enum outcome outcome = LEFT_PACKET;
    if (on->opened.stage == STAGE_CLOSED) outcome = take_late(in);
    else if (UNLIKELY(!on->opened.shaken) && in->direction == CLIENT &&
             on->opened.stage == STAGE_OPEN && (flags & (SYN | RST | ACK)) == ACK && shake(in))
        outcome = FAILED;
    else if (flags & CHANGES)
        outcome = (flags & CHANGES) == FIN ? take_fin(in) : take_syn_ack(in);
    else if (on->opened.stage == STAGE_OPEN && (!in->segment.size || may_carry(in)))
        outcome = GOES_ON;
    return outcome;
}
