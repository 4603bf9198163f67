/* The requests of a connection that have no response yet, oldest first: wiredump/open_requests.py
   in C. The pairing of a connection and the bulk reader share one object. The exchange of a
   request that was read in bulk is made when Python first needs it. */
#include "wire.h"

#include <structmember.h>
#include <time.h>

static open_requests *make_empty(void) {
    open_requests *self = PyObject_New(open_requests, &open_requests_type);
    if (self == NULL) return NULL;
    self->entries = NULL;
    self->ids = self->following = self->heads = self->tails = NULL;
    self->make = NULL;
    self->first = self->end = self->room = self->count = self->pushed = self->made = 0;
    self->bytes = 0;
    self->half_count = 0;
    /* The multiplier is odd; peers cannot know it, so that they cannot choose ids that collide. */
    self->seed = (uint32_t)((uintptr_t)self >> 4 ^ (uintptr_t)time(NULL) * 2654435761u) | 1;
    return self;
}

/* Requests whose hashes have the same last bits form a list from `heads` on, oldest first. */
static size_t bucket_of(const open_requests *self, int32_t id) {
    uint32_t hash = (uint32_t)id * self->seed;
    return (size_t)(hash ^ hash >> 16) & (size_t)(self->room - 1);
}

static void note_half(open_requests *self, int32_t id) {
    uint16_t half = (uint16_t)((uint32_t)id >> 16);
    for (int i = self->half_count - 1; i >= 0; i--) {
        STEPS(1);
        if (self->halves[i] == half) return;
    }
    if (self->half_count <= MOST_HALVES) self->halves[self->half_count++] = half;
}

static void link_entry(open_requests *self, Py_ssize_t index) {
    size_t bucket = bucket_of(self, self->ids[index]);
    self->following[index] = -1;
    if (self->heads[bucket] < 0) self->heads[bucket] = (int32_t)index;
    else self->following[self->tails[bucket]] = (int32_t)index;
    self->tails[bucket] = (int32_t)index;
    if (self->half_count <= MOST_HALVES) note_half(self, self->ids[index]);
}

static void unlink_entry(open_requests *self, Py_ssize_t index) {
    size_t bucket = bucket_of(self, self->ids[index]);
    int32_t before = -1, at = self->heads[bucket];
    for (; at != index; at = self->following[at]) {
        STEPS(1);
        before = at;
    }
    if (before < 0) self->heads[bucket] = self->following[index];
    else self->following[before] = self->following[index];
    if (self->tails[bucket] == index) self->tails[bucket] = before;
}

static int grow(open_requests *self) {
    Py_ssize_t room = self->room ? self->room * 2 : 8;
    if (room > INT32_MAX / 2) {
        PyErr_NoMemory();
        return -1;
    }
    open_request *grown = PyMem_Realloc(self->entries, (size_t)room * sizeof(open_request));
    if (grown != NULL) self->entries = grown;
    int32_t **each[] = {&self->ids, &self->following, &self->heads, &self->tails};
    int failed = grown == NULL;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        int32_t *more = PyMem_Realloc(*each[i], (size_t)room * sizeof(int32_t));
        if (more != NULL) *each[i] = more;
        failed |= more == NULL;
    }
    if (failed) {
        PyErr_NoMemory();
        return -1;
    }
    self->room = room;
    return 0;
}

/* Makes room for one more: drops the answered requests if they are half of all, or else grows.
   Either costs no more than the requests pushed since. */
static int reserve(open_requests *self) {
    if (self->count * 2 > self->end || !self->room) {
        if (grow(self)) return -1;
    }
    Py_ssize_t kept = 0, made = 0;
    for (Py_ssize_t i = self->first; i < self->end; i++) {
        STEPS(1);
        if (self->entries[i].answered) continue;
        made += i < self->made;
        self->entries[kept] = self->entries[i];
        self->ids[kept++] = self->ids[i];
    }
    self->first = 0;
    self->end = kept;
    self->made = made;
    self->half_count = 0;
    for (Py_ssize_t i = 0; i < self->room; i++) self->heads[i] = -1;
    for (Py_ssize_t i = 0; i < kept; i++) link_entry(self, i);
    return 0;
}

/* Appends a request, with references of its own. */
int open_requests_push(open_requests *self, const open_request *entry, int32_t id) {
    if (UNLIKELY(self->end == self->room) && reserve(self)) return -1;
    self->ids[self->end] = id;
    self->entries[self->end] = *entry;
    self->entries[self->end].answered = 0;
    Py_INCREF(entry->client_id);
    Py_XINCREF(entry->exchange);
    Py_XINCREF(entry->bytes);
    link_entry(self, self->end);
    self->end++;
    self->count++;
    self->pushed++;
    self->bytes += entry->raw;
    return 0;
}

/* Returns the index of the oldest request with this correlation id; -1 if there is none. */
Py_ssize_t open_requests_find(const open_requests *self, int32_t id) {
    if (!self->count) return -1;
    Py_ssize_t at = self->heads[bucket_of(self, id)];
    for (; at >= 0; at = self->following[at]) {
        STEPS(1);
        if (self->ids[at] == id) break;
    }
    return at;
}

void open_requests_remove(open_requests *self, Py_ssize_t index) {
    open_request *entry = &self->entries[index];
    unlink_entry(self, index);
    entry->answered = 1;
    self->count--;
    self->bytes -= entry->raw;
    Py_CLEAR(entry->client_id);
    Py_CLEAR(entry->exchange);
    Py_CLEAR(entry->bytes);
    for (; self->first < self->end && self->entries[self->first].answered; self->first++) STEPS(1);
    if (self->first == self->end) {
        self->first = self->end = self->made = 0;
        self->half_count = 0;
    }
}

/* ---- methods ---------------------------------------------------------------------------------- */

/* Returns a new reference to the exchange of an entry, which keeps one too. */
static PyObject *exchange_at(open_requests *self, Py_ssize_t index) {
    open_request *each = &self->entries[index];
    const frame *of = &each->request;
    if (each->exchange == NULL) {
        if (self->make == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "`make` is not set");
            return NULL;
        }
        PyObject *made = PyObject_CallFunction(
            self->make, "LLLLiLhhiOO", (long long)of->offset, (long long)of->size,
            (long long)of->first_ns, (long long)of->last_ns, (int)of->capture,
            (long long)of->place, each->key, each->version, (int)self->ids[index],
            each->client_id, each->bytes ? each->bytes : Py_None);
        if (made == NULL) return NULL;
        self->entries[index].exchange = made;
    }
    return Py_NewRef(self->entries[index].exchange);
}

static int number_of(PyObject *of, const char *name, int64_t *out) {
    PyObject *found = PyObject_GetAttrString(of, name);
    *out = found == NULL ? -1 : PyLong_AsLongLong(found);
    Py_XDECREF(found);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int frame_from(PyObject *of, frame *out) {
    int64_t capture = 0;
    PyObject *place = PyObject_GetAttrString(of, "place");
    int failed = place == NULL || number_of(place, "capture", &capture) ||
                 number_of(place, "offset", &out->place) || number_of(of, "offset", &out->offset) ||
                 number_of(of, "size", &out->size) || number_of(of, "missing", &out->missing) ||
                 number_of(of, "first_ns", &out->first_ns) ||
                 number_of(of, "last_ns", &out->last_ns);
    Py_XDECREF(place);
    out->capture = (int32_t)capture;
    return failed;
}

/* push(exchange) */
static PyObject *push(PyObject *object, PyObject *exchange) {
    open_request entry = {.exchange = exchange};
    int64_t key, version, id, read;
    PyObject *request = PyObject_GetAttrString(exchange, "request");
    PyObject *bytes = request == NULL ? NULL : PyObject_GetAttrString(request, "raw");
    PyObject *client = bytes == NULL ? NULL : PyObject_GetAttrString(exchange, "client_id");
    int failed = client == NULL || frame_from(request, &entry.request) ||
                 number_of(request, "read_size", &read) || number_of(exchange, "api_key", &key) ||
                 number_of(exchange, "api_version", &version) ||
                 number_of(exchange, "correlation_id", &id);
    if (!failed) {
        entry.raw = read;
        entry.key = (int16_t)key;
        entry.version = (int16_t)version;
        entry.client_id = client;
        entry.bytes = PyBytes_CheckExact(bytes) ? bytes : NULL;
        failed = open_requests_push((open_requests *)object, &entry, (int32_t)id);
    }
    Py_XDECREF(request);
    Py_XDECREF(bytes);
    Py_XDECREF(client);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static int parsed_index(const open_requests *self, PyObject *number, Py_ssize_t *index) {
    long id = PyLong_AsLong(number);
    if (id == -1 && PyErr_Occurred()) return -1;
    *index = id < INT32_MIN || id > INT32_MAX ? -1 : open_requests_find(self, (int32_t)id);
    return 0;
}

static PyObject *oldest(PyObject *object, PyObject *number) {
    Py_ssize_t index;
    if (parsed_index((open_requests *)object, number, &index)) return NULL;
    if (index < 0) Py_RETURN_NONE;
    return exchange_at((open_requests *)object, index);
}

static PyObject *taken(open_requests *self, Py_ssize_t index) {
    PyObject *found = exchange_at(self, index);
    if (found != NULL) open_requests_remove(self, index);
    return found;
}

/* take(id) -> (the oldest exchange with this id, whether it is the oldest of all), or None */
static PyObject *take(PyObject *object, PyObject *number) {
    open_requests *self = (open_requests *)object;
    Py_ssize_t index;
    if (parsed_index(self, number, &index)) return NULL;
    if (index < 0) Py_RETURN_NONE;
    PyObject *in_order = index == self->first ? Py_True : Py_False;
    PyObject *found = taken(self, index);
    return found == NULL ? NULL : Py_BuildValue("(NO)", found, in_order);
}

static PyObject *take_oldest(PyObject *object, PyObject *unused) {
    open_requests *self = (open_requests *)object;
    (void)unused;
    if (!self->count) {
        PyErr_SetString(PyExc_IndexError, "no request is open");
        return NULL;
    }
    return taken(self, self->first);
}

static PyObject *listed(open_requests *self, PyObject *(*each)(open_requests *, Py_ssize_t)) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = self->first; list != NULL && i < self->end; i++) {
        STEPS(1);
        if (self->entries[i].answered) continue;
        PyObject *made = each(self, i);
        if (made == NULL || PyList_Append(list, made)) Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

static PyObject *id_at(open_requests *self, Py_ssize_t index) {
    return PyLong_FromLong(self->ids[index]);
}

static PyObject *all(PyObject *object, PyObject *unused) {
    (void)unused;
    return listed((open_requests *)object, exchange_at);
}

/* make_all(): make the exchanges of requests that were read in bulk since the last call */
static PyObject *make_all(PyObject *object, PyObject *unused) {
    open_requests *self = (open_requests *)object;
    (void)unused;
    for (; self->made < self->end; self->made++) {
        STEPS(1);
        if (self->made < self->first || self->entries[self->made].answered) continue;
        PyObject *made = exchange_at(self, self->made);
        if (made == NULL) return NULL;
        Py_DECREF(made);
    }
    Py_RETURN_NONE;
}

/* halves: frozenset */
static PyObject *get_halves(PyObject *object, void *unused) {
    open_requests *self = (open_requests *)object;
    PyObject *found = PyFrozenSet_New(NULL);
    (void)unused;
    for (int i = 0; found != NULL && i < self->half_count; i++) {
        PyObject *half = PyLong_FromLong(self->halves[i]);
        if (half == NULL || PySet_Add(found, half)) Py_CLEAR(found);
        Py_XDECREF(half);
    }
    return found;
}

static PyObject *iter(PyObject *object) {
    PyObject *list = listed((open_requests *)object, id_at);
    PyObject *found = list == NULL ? NULL : PyObject_GetIter(list);
    Py_XDECREF(list);
    return found;
}

static Py_ssize_t length(PyObject *object) { return ((open_requests *)object)->count; }

static int contains(PyObject *object, PyObject *number) {
    Py_ssize_t index;
    return parsed_index((open_requests *)object, number, &index) ? -1 : index >= 0;
}

static PyObject *new_open_requests(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *make;
    (void)type;
    if (refuse_keywords(keywords, "OpenRequests")) return NULL;
    if (!PyArg_ParseTuple(args, "O", &make)) return NULL;
    open_requests *self = make_empty();
    if (self != NULL) self->make = Py_NewRef(make);
    return (PyObject *)self;
}

static void dealloc(PyObject *object) {
    open_requests *self = (open_requests *)object;
    for (Py_ssize_t i = self->first; i < self->end; i++) {
        Py_CLEAR(self->entries[i].client_id);
        Py_CLEAR(self->entries[i].exchange);
        Py_CLEAR(self->entries[i].bytes);
    }
    Py_XDECREF(self->make);
    PyMem_Free(self->entries);
    PyMem_Free(self->ids);
    PyMem_Free(self->following);
    PyMem_Free(self->heads);
    PyMem_Free(self->tails);
    PyObject_Free(self);
}

static PyMethodDef methods[] = {
    {"push", push, METH_O, NULL},   {"oldest", oldest, METH_O, NULL},
    {"take", take, METH_O, NULL},         {"take_oldest", take_oldest, METH_NOARGS, NULL},
    {"all", all, METH_NOARGS, NULL},      {"make_all", make_all, METH_NOARGS, NULL},
    {0}};
static PyGetSetDef attributes[] = {{"halves", get_halves, NULL, NULL, NULL}, {0}};
static PyMemberDef members[] = {
    {"size", T_LONGLONG, offsetof(open_requests, bytes), READONLY, NULL},
    {"pushed", T_PYSSIZET, offsetof(open_requests, pushed), READONLY, NULL},
    {0}};
static PySequenceMethods as_sequence = {.sq_length = length, .sq_contains = contains};

PyTypeObject open_requests_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.OpenRequests",
    .tp_basicsize = sizeof(open_requests),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_open_requests,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = attributes,
    .tp_iter = iter,
    .tp_as_sequence = &as_sequence,
};
