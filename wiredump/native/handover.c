/* Connections pass from Python to here between two frames, and back at any packet, with a dump of
   their state: wiredump/sources/native_connections.py. */
#include "wire.h"

void connection_free(connection *self) {
    if (self == NULL) return;
    stream_clear(&self->streams[0]);
    stream_clear(&self->streams[1]);
    PyMem_Free(self->client_raw);
    Py_XDECREF(self->open);
    Py_XDECREF(self->early);
    Py_XDECREF(self->connection);
    Py_XDECREF(self->software);
    Py_XDECREF(self->client_id);
    PyMem_Free(self);
}

static PyObject *id_or_none(int there, int32_t id) {
    return there ? PyLong_FromLong(id) : Py_NewRef(Py_None);
}

/* (client's stream, server's stream, (time, capture, packet), client id, the newest request's id
   and the newest response's (None: there was none), what waits, (requests, request bytes, response
   bytes), opened_state) */
static PyObject *connection_state(const connection *self, const uint8_t *chunk) {
    PyObject *client = stream_state(&self->streams[0], chunk);
    PyObject *server = client ? stream_state(&self->streams[1], chunk) : NULL;
    if (server == NULL) {
        Py_XDECREF(client);
        return NULL;
    }
    return Py_BuildValue("(NN(LiL)ONNO(LLL)N)", client, server, (long long)self->time,
                         (int)self->capture, (long long)self->place,
                         self->client_id ? self->client_id : Py_None,
                         id_or_none(self->any_request, self->newest),
                         id_or_none(self->any_response, self->answered),
                         self->open ? (PyObject *)self->open : Py_None,
                         (long long)self->requests, (long long)self->request_bytes,
                         (long long)self->response_bytes, opened_state(self));
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

/* enter(flow, id, connection, request_direction, software, client, server, at, open,
   early): the connection is read here until it is left. */
PyObject *connection_enter(PyObject *object, PyObject *args) {
    reading_object *self = (reading_object *)object;
    PyObject *flow, *held_connection, *software, *streams[2], *at, *open, *early;
    long long id, time, place;
    int request_direction, capture;
    if (is_busy(self) ||
        !PyArg_ParseTuple(args, "OLOiOOOO!O!O!", &flow, &id, &held_connection,
                          &request_direction, &software, &streams[0], &streams[1], &PyTuple_Type,
                          &at, &open_requests_type, &open, &PyDict_Type, &early) ||
        !PyArg_ParseTuple(at, "LiL", &time, &capture, &place))
        return NULL;
    connection *on = PyMem_Calloc(1, sizeof(connection));
    if (on == NULL) return PyErr_NoMemory();
    on->id = id;
    on->request_direction = request_direction != 0;
    on->confirmed = 1;
    on->connection = Py_NewRef(held_connection);
    on->software = Py_NewRef(software);
    on->open = (open_requests *)Py_NewRef(open);
    on->early = Py_NewRef(early);
    on->time = time;
    on->capture = capture;
    on->place = place;
    if (flow_key(flow, on->flows[0])) goto failed;
    reverse(on->flows[0], on->flows[1]);
    if (reading_find(self, on->flows[0]) || reading_find(self, on->flows[1]) ||
        memcmp(on->flows[0], on->flows[1], KEY) == 0) {
        PyErr_SetString(PyExc_ValueError, "a flow that is here already");
        goto failed;
    }
    if (stream_enter(&on->streams[0], streams[0]) || stream_enter(&on->streams[1], streams[1]) ||
        reading_put(self, on))
        goto failed;
    Py_RETURN_NONE;
failed:
    connection_free(on);
    return NULL;
}

/* leave(flow, of either direction) -> the connection's state, None where it is not here */
PyObject *connection_leave(PyObject *object, PyObject *flow) {
    reading_object *self = (reading_object *)object;
    uint8_t key[KEY];
    if (is_busy(self) || flow_key(flow, key)) return NULL;
    struct slot *slot = reading_find(self, key);
    if (slot == NULL) Py_RETURN_NONE;
    connection *on = slot->connection;
    const uint8_t *chunk = self->packets != NULL ? chunk_of(self->packets) : NULL;
    PyObject *state = connection_state(on, chunk);
    if (state != NULL) reading_drop(self, on);
    return state;
}

/* flows(over) -> a flow of each connection that is here; `over`: also of those that are */
PyObject *connection_flows(PyObject *object, PyObject *over) {
    reading_object *self = (reading_object *)object;
    PyObject *list = PyList_New(0);
    STEPS(self->table_size);
    for (size_t i = 0; list != NULL && i < self->table_size; i++) {
        const connection *on = self->table[i].connection;
        if (on == NULL || self->table[i].direction) continue;
        if (on->opened.stage == STAGE_CLOSED && over != Py_True) continue;
        PyObject *flow = PyBytes_FromStringAndSize((const char *)on->flows[0],
                                                   (Py_ssize_t)on->flows[0][KEY - 1]);
        if (flow == NULL || PyList_Append(list, flow)) Py_CLEAR(list);
        Py_XDECREF(flow);
    }
    return list;
}
