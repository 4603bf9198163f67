/* A connection that is in order: its two streams, and the requests that wait for an answer. */
#include "wire.h"

void connection_free(connection *self) {
    if (self == NULL) return;
    stream_clear(&self->streams[0]);
    stream_clear(&self->streams[1]);
    for (Py_ssize_t i = self->open_first; i < self->open_end; i++) {
        Py_CLEAR(self->open[i].client_id);
        Py_CLEAR(self->open[i].exchange);
    }
    PyMem_Free(self->open);
    PyMem_Free(self->ids);
    PyMem_Free(self->early);
    PyMem_Free(self->client_raw);
    Py_XDECREF(self->connection);
    Py_XDECREF(self->software);
    Py_XDECREF(self->client_id);
    PyMem_Free(self);
}

/* Append; takes references of its own. */
int open_push(connection *on, const asked *entry, int32_t id) {
    if (UNLIKELY(on->open_end == on->open_room)) {
        Py_ssize_t used = on->open_end - on->open_first;
        if (on->open_first && on->open_first >= used) { /* those at the front are answered */
            memmove(on->open, on->open + on->open_first, (size_t)used * sizeof(asked));
            memmove(on->ids, on->ids + on->open_first, (size_t)used * sizeof(int32_t));
            on->open_first = 0;
            on->open_end = used;
        } else {
            Py_ssize_t room = on->open_room ? on->open_room * 2 : 8;
            asked *grown = PyMem_Realloc(on->open, (size_t)room * sizeof(asked));
            if (grown != NULL) on->open = grown;
            int32_t *ids = PyMem_Realloc(on->ids, (size_t)room * sizeof(int32_t));
            if (ids != NULL) on->ids = ids;
            if (grown == NULL || ids == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            on->open_room = room;
        }
    }
    on->ids[on->open_end] = id;
    on->open[on->open_end] = *entry;
    on->open[on->open_end].answered = 0;
    Py_INCREF(entry->client_id);
    Py_XINCREF(entry->exchange);
    on->open_end++;
    on->open_count++;
    on->open_bytes += entry->raw;
    return 0;
}

/* What waits, oldest first: the exchange, or (for one that was made here) what it takes to make
   it: offset, size, first_ns, last_ns, capture, packet, key, version, id, client id. */
static PyObject *open_state(const connection *self) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = self->open_first; list != NULL && i < self->open_end; i++) {
        const asked *each = &self->open[i];
        const frame *request = &each->request;
        if (each->answered) continue;
        PyObject *made =
            each->exchange != NULL
                ? Py_NewRef(each->exchange)
                : Py_BuildValue("(LLLLiLhhiO)", (long long)request->offset,
                                (long long)request->size, (long long)request->first_ns,
                                (long long)request->last_ns, (int)request->capture,
                                (long long)request->place, each->key, each->version,
                                (int)self->ids[i], each->client_id);
        if (made == NULL || PyList_Append(list, made)) Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

/* (client's stream, server's stream, (time, capture, packet), client id, whether there was a
   request, what waits, (requests, request bytes, response bytes)) */
PyObject *connection_state(const connection *self, const uint8_t *chunk) {
    PyObject *client = stream_state(&self->streams[0], chunk);
    PyObject *server = client ? stream_state(&self->streams[1], chunk) : NULL;
    PyObject *open = server ? open_state(self) : NULL;
    if (open == NULL) {
        Py_XDECREF(client);
        Py_XDECREF(server);
        return NULL;
    }
    return Py_BuildValue("(NN(LiL)OiN(LLL))", client, server, (long long)self->time,
                         (int)self->capture, (long long)self->place,
                         self->client_id ? self->client_id : Py_None, (int)self->any_request, open,
                         (long long)self->requests, (long long)self->request_bytes,
                         (long long)self->response_bytes);
}
