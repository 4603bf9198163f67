/* Requests without a response: exchanged with Python, or kept for it. */
#include "wire.h"

waiting_object *waiting_new(void) {
    waiting_object *self = PyObject_New(waiting_object, &waiting_type);
    if (self == NULL) return NULL;
    self->entries = NULL;
    self->ids = NULL;
    self->first = self->end = self->room = self->count = 0;
    self->bytes = 0;
    return self;
}

/* Append; takes references of its own. */
int waiting_push(waiting_object *self, const asked *entry, int32_t id) {
    if (UNLIKELY(self->end == self->room)) {
        Py_ssize_t used = self->end - self->first;
        if (self->first && self->first >= used) { /* those at the front are answered */
            memmove(self->entries, self->entries + self->first, (size_t)used * sizeof(asked));
            memmove(self->ids, self->ids + self->first, (size_t)used * sizeof(int32_t));
            self->first = 0;
            self->end = used;
        } else {
            Py_ssize_t room = self->room ? self->room * 2 : 8;
            asked *grown = PyMem_Realloc(self->entries, (size_t)room * sizeof(asked));
            if (grown != NULL) self->entries = grown;
            int32_t *ids = PyMem_Realloc(self->ids, (size_t)room * sizeof(int32_t));
            if (ids != NULL) self->ids = ids;
            if (grown == NULL || ids == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            self->room = room;
        }
    }
    self->ids[self->end] = id;
    self->entries[self->end] = *entry;
    self->entries[self->end].answered = 0;
    Py_INCREF(entry->client_id);
    Py_XINCREF(entry->exchange);
    Py_XINCREF(entry->bytes);
    self->end++;
    self->count++;
    self->bytes += entry->raw;
    return 0;
}

/* all() -> what waits, oldest first: the exchange, or (of one that was made here) what it takes to
   make it: offset, size, first_ns, last_ns, capture, packet, key, version, id, client id, and the
   bytes or None. */
static PyObject *all(PyObject *object, PyObject *unused) {
    const waiting_object *self = (const waiting_object *)object;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (Py_ssize_t i = self->first; list != NULL && i < self->end; i++) {
        const asked *each = &self->entries[i];
        const frame *request = &each->request;
        if (each->answered) continue;
        PyObject *made =
            each->exchange != NULL
                ? Py_NewRef(each->exchange)
                : Py_BuildValue("(LLLLiLhhiOO)", (long long)request->offset,
                                (long long)request->size, (long long)request->first_ns,
                                (long long)request->last_ns, (int)request->capture,
                                (long long)request->place, each->key, each->version,
                                (int)self->ids[i], each->client_id,
                                each->bytes ? each->bytes : Py_None);
        if (made == NULL || PyList_Append(list, made)) Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

static Py_ssize_t length(PyObject *object) { return ((waiting_object *)object)->count; }

/* Waiting([(exchange, offset, size, missing, first_ns, last_ns, capture, packet, key, version, id,
   client id, how many bytes of it there are, those or None)...]) */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *open;
    (void)type;
    if (keywords != NULL && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Waiting takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &open)) return NULL;
    waiting_object *self = waiting_new();
    for (Py_ssize_t i = 0; self != NULL && i < PyList_GET_SIZE(open); i++) {
        asked entry = {0};
        long long offset, size, missing, first, last, place, raw;
        int capture, id;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(open, i), "OLLLLLiLhhiOLO", &entry.exchange, &offset,
                              &size, &missing, &first, &last, &capture, &place, &entry.key,
                              &entry.version, &id, &entry.client_id, &raw, &entry.bytes)) {
            Py_CLEAR(self);
            break;
        }
        frame request = {offset, size, missing, first, last, place, capture};
        entry.request = request;
        entry.raw = raw;
        if (!PyBytes_CheckExact(entry.bytes)) entry.bytes = NULL;
        if (waiting_push(self, &entry, id)) Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void dealloc(PyObject *object) {
    waiting_object *self = (waiting_object *)object;
    for (Py_ssize_t i = self->first; i < self->end; i++) {
        Py_CLEAR(self->entries[i].client_id);
        Py_CLEAR(self->entries[i].exchange);
        Py_CLEAR(self->entries[i].bytes);
    }
    PyMem_Free(self->entries);
    PyMem_Free(self->ids);
    PyObject_Free(self);
}

static PyMethodDef methods[] = {{"all", all, METH_NOARGS, NULL}, {0}};
static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject waiting_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Waiting",
    .tp_basicsize = sizeof(waiting_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = make,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_as_sequence = &as_sequence,
};
