/* Take over connections from Python, and give them back: see wiredump/sources/lent.py. */
#include "wire.h"

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

static int enter_early(connection *on, PyObject *early) {
    Py_ssize_t count = PyList_GET_SIZE(early);
    on->early = PyMem_Malloc((size_t)(count ? count : 1) * sizeof(int32_t));
    if (on->early == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        long id = PyLong_AsLong(PyList_GET_ITEM(early, i));
        if (id == -1 && PyErr_Occurred()) return -1;
        on->early[i] = (int32_t)id;
    }
    on->early_count = count;
    return 0;
}

/* enter(flow, its reverse, id, connection, request_direction, software, client, server, at, open,
   early): the connection is read here until it is left. `open` is a Waiting, of no other. */
PyObject *lend_enter(PyObject *object, PyObject *args) {
    reading_object *self = (reading_object *)object;
    PyObject *flow, *back, *held_connection, *software, *streams[2], *at, *open, *early;
    long long id, time, place;
    int request_direction, capture;
    if (is_busy(self) ||
        !PyArg_ParseTuple(args, "OOLOiOOOO!O!O!", &flow, &back, &id, &held_connection,
                          &request_direction, &software, &streams[0], &streams[1], &PyTuple_Type,
                          &at, &waiting_type, &open, &PyList_Type, &early) ||
        !PyArg_ParseTuple(at, "LiL", &time, &capture, &place))
        return NULL;
    connection *on = PyMem_Calloc(1, sizeof(connection));
    if (on == NULL) return PyErr_NoMemory();
    on->id = id;
    on->request_direction = request_direction != 0;
    on->connection = Py_NewRef(held_connection);
    on->software = Py_NewRef(software);
    on->waiting = (waiting_object *)Py_NewRef(open);
    on->time = time;
    on->capture = capture;
    on->place = place;
    if (flow_key(flow, on->flows[0]) || flow_key(back, on->flows[1])) goto failed;
    if (reading_find(self, on->flows[0]) || reading_find(self, on->flows[1]) ||
        memcmp(on->flows[0], on->flows[1], KEY) == 0) {
        PyErr_SetString(PyExc_ValueError, "a flow that is here already");
        goto failed;
    }
    if (stream_enter(&on->streams[0], streams[0], self->recent_limit) ||
        stream_enter(&on->streams[1], streams[1], self->recent_limit) ||
        enter_early(on, early) || reading_put(self, on))
        goto failed;
    Py_RETURN_NONE;
failed:
    connection_free(on);
    return NULL;
}

/* leave(flow, of either direction) -> the connection's state, None where it is not here */
PyObject *lend_leave(PyObject *object, PyObject *flow) {
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
PyObject *lend_flows(PyObject *object, PyObject *over) {
    reading_object *self = (reading_object *)object;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < self->table_size; i++) {
        const connection *on = self->table[i].connection;
        if (on == NULL || self->table[i].direction) continue;
        if (on->life.stage == LIFE_OVER && over != Py_True) continue;
        PyObject *flow = PyBytes_FromStringAndSize((const char *)on->flows[0],
                                                   (Py_ssize_t)on->flows[0][KEY - 1]);
        if (flow == NULL || PyList_Append(list, flow)) Py_CLEAR(list);
        Py_XDECREF(flow);
    }
    return list;
}
