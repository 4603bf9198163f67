/* The state of a connection, which wiredump/connection_state.py documents. `restore` takes a
   connection between two frames; `dump` returns it to Python at any packet. */
#include "wire.h"

static PyObject *id_or_none(int is_known, int32_t id) {
    return is_known ? PyLong_FromLong(id) : Py_NewRef(Py_None);
}

static PyObject *or_none(PyObject *object) { return object != NULL ? object : Py_None; }

/* ---- dump ------------------------------------------------------------------------------------- */

static PyObject *stream_state(const reading_object *self, const stream *of, const uint8_t *chunk) {
    return PyObject_CallFunction(self->states[STREAM_STATE], "LION", (long long)of->next,
                                 (unsigned int)of->next_sequence, or_none(of->tally),
                                 stream_recent(of, chunk));
}

static PyObject *opening_state(const reading_object *self, const connection *on) {
    if (!on->opened.stage) return Py_NewRef(Py_None);
    PyObject *server_isn = on->opened.stage == STAGE_SYN
                               ? Py_NewRef(Py_None)
                               : PyLong_FromUnsignedLong(on->opened.isn[1]);
    PyObject *syn_ns = on->opened.shaken ? Py_NewRef(Py_None)
                                         : PyLong_FromLongLong(on->opened.begun_ns[0]);
    PyObject *closed_ns = on->opened.stage == STAGE_CLOSED
                              ? PyLong_FromLongLong(on->opened.closed_at)
                              : Py_NewRef(Py_None);
    return PyObject_CallFunction(self->states[OPENING], "INNiiN((iL)(iL))",
                                 (unsigned int)on->opened.isn[0], server_isn, syn_ns,
                                 (int)on->opened.ended, (int)on->opened.ended_by, closed_ns,
                                 (int)on->opened.identifications[0],
                                 (long long)on->opened.begun_ns[0],
                                 (int)on->opened.identifications[1],
                                 (long long)on->opened.begun_ns[1]);
}

static PyObject *tcp_state(const reading_object *self, const connection *on, const uint8_t *chunk) {
    const uint8_t *flow = on->flows[0];
    return PyObject_CallFunction(self->states[TCP_STATE], "y#LiLNNN", (const char *)flow,
                                 (Py_ssize_t)flow[KEY - 1], (long long)on->time, (int)on->capture,
                                 (long long)on->place, stream_state(self, &on->streams[0], chunk),
                                 stream_state(self, &on->streams[1], chunk),
                                 opening_state(self, on));
}

static PyObject *frame_state(const reading_object *self, const stream *of, const uint8_t *chunk) {
    return PyObject_CallFunction(self->states[FRAME_STATE], "LNN", (long long)of->base,
                                 stream_bytes(of, chunk, of->base, of->next - of->base),
                                 stream_marks(of));
}

/* None if the connection opened here, and no request was recognised yet or it is closed. */
static PyObject *conversation_state(const reading_object *self, const connection *on,
                                    const uint8_t *chunk) {
    if (on->opened.stage == STAGE_CLOSED || (on->opened.stage && !on->opened.recognised))
        return Py_NewRef(Py_None);
    const stream *requests = &on->streams[on->request_direction];
    const stream *responses = &on->streams[!on->request_direction];
    PyObject *pairing = PyObject_CallFunction(
        self->states[PAIRING_STATE], "ONONN", (PyObject *)on->open,
        on->early != NULL ? Py_NewRef(on->early) : PyDict_New(), or_none(on->client_id), id_or_none(on->any_request, on->newest),
        id_or_none(on->any_response, on->answered));
    return PyObject_CallFunction(self->states[CONVERSATION_STATE], "ONNN",
                                 on->request_direction ? Py_True : Py_False,
                                 frame_state(self, requests, chunk),
                                 frame_state(self, responses, chunk), pairing);
}

static int flow_key(PyObject *flow, uint8_t *key) {
    if (!PyBytes_Check(flow) ||
        (PyBytes_GET_SIZE(flow) != FLOW_IPV4 && PyBytes_GET_SIZE(flow) != FLOW_IPV6)) {
        PyErr_SetString(PyExc_ValueError, "a flow has 12 or 36 bytes");
        return -1;
    }
    memset(key, 0, KEY);
    memcpy(key, PyBytes_AS_STRING(flow), (size_t)PyBytes_GET_SIZE(flow));
    key[KEY - 1] = (uint8_t)PyBytes_GET_SIZE(flow);
    return 0;
}

/* dump(flow, of either direction) -> ConnectionState of a connection that is removed from here; None
   if the flow is unknown */
PyObject *connection_dump(PyObject *object, PyObject *flow) {
    reading_object *self = (reading_object *)object;
    uint8_t key[KEY];
    if (is_busy(self) || flow_key(flow, key)) return NULL;
    struct slot *slot = reading_find(self, key);
    if (slot == NULL) Py_RETURN_NONE;
    connection *on = slot->connection;
    const uint8_t *chunk = self->packets != NULL ? chunk_of(self->packets) : NULL;
    PyObject *state = PyObject_CallFunction(
        self->states[CONNECTION_STATE], "ONN(LLL)", on->connection, tcp_state(self, on, chunk),
        conversation_state(self, on, chunk), (long long)on->requests,
        (long long)on->request_bytes, (long long)on->response_bytes);
    if (state != NULL) reading_drop(self, on);
    return state;
}

/* ---- restore ---------------------------------------------------------------------------------- */

typedef struct {
    long long next, base;
    unsigned int sequence;
    PyObject *tally, *recent, *held, *marks;
} direction_state;

static int restore_stream(stream *self, const direction_state *from) {
    if (from->base != from->next || PyBytes_GET_SIZE(from->held) || PyList_GET_SIZE(from->recent)) {
        PyErr_SetString(PyExc_ValueError, "the state is not between two frames");
        return -1;
    }
    self->next_sequence = from->sequence;
    self->next = self->base = self->kept_start = self->kept_end = from->next;
    if (from->tally == Py_None) return 0;
    self->tally = Py_NewRef(from->tally);
    return trips_enter(self);
}

static int restore_connection(connection *on, PyObject *state, PyObject **flow) {
    direction_state tcp[2], frames[2]; /* by client and server; by request and response */
    PyObject *opening, *requests, *early, *client_id, *newest, *answered, *counts;
    long long time, place;
    int flipped, capture;
    if (!PyArg_ParseTuple(
            state, "O(OLiL(LIOO!)(LIOO!)O)(p(LSS)(LSS)(O!O!OOO))O", &on->connection, flow, &time,
            &capture, &place, &tcp[0].next, &tcp[0].sequence, &tcp[0].tally, &PyList_Type,
            &tcp[0].recent, &tcp[1].next, &tcp[1].sequence, &tcp[1].tally, &PyList_Type,
            &tcp[1].recent, &opening, &flipped, &frames[0].base, &frames[0].held, &frames[0].marks,
            &frames[1].base, &frames[1].held, &frames[1].marks, &open_requests_type, &requests,
            &PyDict_Type, &early, &client_id, &newest, &answered, &counts)) {
        on->connection = NULL;
        return -1;
    }
    Py_INCREF(on->connection);
    if (opening != Py_None) {
        PyErr_SetString(PyExc_ValueError, "only Python continues a connection that opened here");
        return -1;
    }
    PyObject *id = PyObject_GetAttrString(on->connection, "id");
    on->id = id == NULL ? -1 : PyLong_AsLongLong(id);
    Py_XDECREF(id);
    on->software = PyObject_GetAttrString(on->connection, "software");
    on->open = (open_requests *)Py_NewRef(requests);
    on->early = Py_NewRef(early);
    on->request_direction = flipped != 0;
    on->confirmed = 1;
    on->time = time;
    on->capture = capture;
    on->place = place;
    for (int i = 0; i < 2; i++) {
        const direction_state *of = &frames[i ^ flipped];
        tcp[i].base = of->base;
        tcp[i].held = of->held;
        if (PyErr_Occurred() || restore_stream(&on->streams[i], &tcp[i])) return -1;
    }
    return flow_key(*flow, on->flows[0]);
}

/* restore(ConnectionState): the connection is read here until it is dumped */
PyObject *connection_restore(PyObject *object, PyObject *state) {
    reading_object *self = (reading_object *)object;
    PyObject *flow;
    if (is_busy(self)) return NULL;
    connection *on = PyMem_Calloc(1, sizeof(connection));
    if (on == NULL) return PyErr_NoMemory();
    if (!PyTuple_Check(state)) {
        PyErr_SetString(PyExc_TypeError, "restore takes a ConnectionState");
        goto failed;
    }
    if (restore_connection(on, state, &flow)) goto failed;
    reverse(on->flows[0], on->flows[1]);
    if (reading_find(self, on->flows[0]) || reading_find(self, on->flows[1]) ||
        memcmp(on->flows[0], on->flows[1], KEY) == 0) {
        PyErr_SetString(PyExc_ValueError, "the flow is already known");
        goto failed;
    }
    if (reading_put(self, on)) goto failed;
    Py_RETURN_NONE;
failed:
    connection_free(on);
    return NULL;
}

/* flows(with_closed) -> a flow of each connection that is here */
PyObject *connection_flows(PyObject *object, PyObject *with_closed) {
    reading_object *self = (reading_object *)object;
    PyObject *list = PyList_New(0);
    STEPS(self->table_size);
    for (size_t i = 0; list != NULL && i < self->table_size; i++) {
        const connection *on = self->table[i].connection;
        if (on == NULL || self->table[i].direction) continue;
        if (on->opened.stage == STAGE_CLOSED && with_closed != Py_True) continue;
        PyObject *flow = PyBytes_FromStringAndSize((const char *)on->flows[0],
                                                   (Py_ssize_t)on->flows[0][KEY - 1]);
        if (flow == NULL || PyList_Append(list, flow)) Py_CLEAR(list);
        Py_XDECREF(flow);
    }
    return list;
}
