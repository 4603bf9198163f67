/* A connection in order, and its state in the form in which Python takes it back. */
#include "wire.h"

void connection_free(connection *self) {
    if (self == NULL) return;
    stream_clear(&self->streams[0]);
    stream_clear(&self->streams[1]);
    PyMem_Free(self->early);
    PyMem_Free(self->client_raw);
    Py_XDECREF(self->waiting);
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
   bytes), life_state) */
PyObject *connection_state(const connection *self, const uint8_t *chunk) {
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
                         self->waiting ? (PyObject *)self->waiting : Py_None,
                         (long long)self->requests, (long long)self->request_bytes,
                         (long long)self->response_bytes, life_state(self));
}
