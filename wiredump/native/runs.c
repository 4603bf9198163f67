/* Collects runs: packets between the same two ends, as positions in a file. Packets are added by
   the chunk and taken by their ends. wiredump/spark/columns.py makes the other columns of a row.
   */
#include "wire.h"

typedef struct {
    entry entry;
    uint32_t group, size; /* `size`: bytes of payload */
} member;

typedef struct {
    uint8_t key[KEY];
    Py_ssize_t count;
    int64_t newest;
    uint8_t stepped; /* a packet was older than the one before */
} group;

typedef struct {
    PyObject_HEAD
    int merged;
    Py_ssize_t longest;
    member *members;
    Py_ssize_t count, room;
    group *groups;
    Py_ssize_t group_count, group_room;
    uint32_t *table; /* the number of a group plus 1 */
    size_t table_size;
    uint64_t seed;
    uint32_t last;
    int64_t packets, payload;
} runs_object;

static int make_room(runs_object *self) {
    if (self->group_count == self->group_room) {
        group *grown = doubled(self->groups, &self->group_room, sizeof(group), 64);
        if (grown == NULL) return -1;
        self->groups = grown;
    }
    if ((size_t)(self->group_count + 1) * 2 <= self->table_size) return 0;
    size_t size = self->table_size ? self->table_size * 2 : 128;
    uint32_t *table = PyMem_Calloc(size, sizeof(uint32_t));
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->group_count; i++) {
        size_t at = (size_t)flow_hash(self->seed, self->groups[i].key) & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = (uint32_t)i + 1;
    }
    PyMem_Free(self->table);
    self->table = table;
    self->table_size = size;
    return 0;
}

/* The key of two ends, independent of the direction: the lower of the flow and its reverse. */
static void key_of(const uint8_t *flow, uint8_t *key) {
    int size = flow[KEY - 1], address = (size - 4) / 2;
    uint8_t back[KEY] = {0};
    memcpy(back, flow + address, (size_t)address);
    memcpy(back + address, flow, (size_t)address);
    memcpy(back + 2 * address, flow + 2 * address + 2, 2);
    memcpy(back + 2 * address + 2, flow + 2 * address, 2);
    back[KEY - 1] = (uint8_t)size;
    memcpy(key, memcmp(back, flow, (size_t)size) < 0 ? back : flow, KEY);
}

static group *group_of(runs_object *self, const uint8_t *key) {
    if (self->last < (uint32_t)self->group_count &&
        memcmp(self->groups[self->last].key, key, KEY) == 0)
        return &self->groups[self->last];
    if (make_room(self)) return NULL;
    size_t mask = self->table_size - 1, at = (size_t)flow_hash(self->seed, key) & mask;
    for (; self->table[at]; at = (at + 1) & mask) {
        group *each = &self->groups[self->table[at] - 1];
        if (memcmp(each->key, key, KEY)) continue;
        self->last = self->table[at] - 1;
        return each;
    }
    group *made = &self->groups[self->group_count];
    memset(made, 0, sizeof(*made));
    memcpy(made->key, key, KEY);
    made->newest = INT64_MIN;
    self->last = (uint32_t)self->group_count;
    self->table[at] = (uint32_t)++self->group_count;
    return made;
}

static int put(runs_object *self, const packet *from, const segment *of, int64_t base) {
    if (UNLIKELY(self->count == self->room)) {
        member *grown = doubled(self->members, &self->room, sizeof(member), 4096);
        if (grown == NULL) return -1;
        self->members = grown;
    }
    uint8_t key[KEY];
    key_of(of->flow, key);
    group *mine = group_of(self, key);
    if (mine == NULL) return -1;
    mine->stepped |= from->time < mine->newest;
    if (from->time > mine->newest) mine->newest = from->time;
    mine->count++;
    entry made = {from->place, from->time, from->captured, from->original, from->capture,
                  (uint16_t)from->link, (uint16_t)(base + from->at - from->place)};
    member member = {made, self->last, of->size};
    self->members[self->count++] = member;
    self->packets++;
    self->payload += of->size;
    return 0;
}

/* add(packets) -> the numbers of unusual packets, which were skipped */
static PyObject *add(PyObject *object, PyObject *argument) {
    runs_object *self = (runs_object *)object;
    if (!Py_IS_TYPE(argument, &packets_type)) {
        PyErr_SetString(PyExc_TypeError, "add takes Packets");
        return NULL;
    }
    packets_object *packets = (packets_object *)argument;
    const uint8_t *chunk = chunk_of(packets);
    PyObject *others = PyList_New(0);
    for (Py_ssize_t i = 0; others != NULL && i < packets->count; i++) {
        const packet *each = &packets->packets[i];
        segment of;
        if (LIKELY(read_segment(chunk, each, &of))) {
            if (self->count >= INT32_MAX / 64) PyErr_SetString(PyExc_ValueError, "too many packets");
            else if (put(self, each, &of, packets->base) == 0) continue;
            Py_CLEAR(others);
            break;
        }
        PyObject *number = PyLong_FromSsize_t(i);
        if (number == NULL || PyList_Append(others, number)) Py_CLEAR(others);
        Py_XDECREF(number);
    }
    return others;
}

/* ---- rows out of it ------------------------------------------------------------------------- */

static int by_time(const void *one, const void *other) {
    const entry *a = &((const member *)one)->entry, *b = &((const member *)other)->entry;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Returns all members by group in the order they came; sorted by time if captures are merged. */
static member *sorted_members(const runs_object *self) {
    member *sorted = PyMem_Malloc((size_t)(self->count ? self->count : 1) * sizeof(member));
    Py_ssize_t *next = PyMem_Malloc((size_t)(self->group_count + 1) * sizeof(Py_ssize_t));
    if (sorted == NULL || next == NULL) {
        PyMem_Free(sorted);
        PyMem_Free(next);
        PyErr_NoMemory();
        return NULL;
    }
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < self->group_count; at += self->groups[i++].count) next[i] = at;
    for (Py_ssize_t i = 0; i < self->count; i++)
        sorted[next[self->members[i].group]++] = self->members[i];
    for (Py_ssize_t i = 0; i < self->group_count; i++) {
        const group *each = &self->groups[i];
        if (self->merged && each->stepped)
            qsort(sorted + next[i] - each->count, (size_t)each->count, sizeof(member), by_time);
    }
    PyMem_Free(next);
    return sorted;
}

enum { KEYS_AT, KEYS, RUNS_AT, RUNS, PLACES, TIMES, ORDERS, SIZES, COUNTS, BUFFERS };

/* take() -> (number of rows, buffers), and remove all rows. The buffers: offsets of keys, keys,
   offsets of runs, runs; and for each run the place and the time of its first packet, the number
   to sort by before the place, bytes of payload, number of packets. A run has at most `longest`
   packets. */
static PyObject *take(PyObject *object, PyObject *unused) {
    runs_object *self = (runs_object *)object;
    Py_ssize_t rows = 0, key_bytes = 0;
    (void)unused;
    for (Py_ssize_t i = 0; i < self->group_count; i++) {
        Py_ssize_t pieces = (self->groups[i].count + self->longest - 1) / self->longest;
        rows += pieces;
        key_bytes += pieces * self->groups[i].key[KEY - 1];
    }
    const Py_ssize_t sizes[BUFFERS] = {(rows + 1) * 4, key_bytes, (rows + 1) * 4,
                                       self->count * (Py_ssize_t)sizeof(entry), rows * 8, rows * 8,
                                       rows * 8, rows * 4, rows * 4};
    member *sorted = sorted_members(self);
    PyObject *buffers = sorted == NULL ? NULL : PyTuple_New(BUFFERS);
    char *to[BUFFERS];
    for (int i = 0; buffers != NULL && i < BUFFERS; i++) {
        PyObject *made = PyBytes_FromStringAndSize(NULL, sizes[i]);
        if (made == NULL) {
            Py_CLEAR(buffers);
            break;
        }
        to[i] = PyBytes_AS_STRING(made);
        PyTuple_SET_ITEM(buffers, i, made);
    }
    if (buffers == NULL) {
        PyMem_Free(sorted);
        return NULL;
    }
    int32_t key_at = 0;
    Py_ssize_t at = 0, row = 0;
#define PUT(buffer, type, value) ((type *)(void *)to[buffer])[row] = (type)(value)
    for (Py_ssize_t i = 0; i < self->group_count; i++) {
        const group *mine = &self->groups[i];
        for (Py_ssize_t end = at + mine->count; at < end; row++) {
            Py_ssize_t last = end - at > self->longest ? at + self->longest : end;
            int64_t payload = 0;
            PUT(KEYS_AT, int32_t, key_at);
            memcpy(to[KEYS] + key_at, mine->key, mine->key[KEY - 1]);
            key_at += mine->key[KEY - 1];
            PUT(RUNS_AT, int32_t, at * (Py_ssize_t)sizeof(entry));
            PUT(PLACES, int64_t, sorted[at].entry.place);
            PUT(TIMES, int64_t, sorted[at].entry.time);
            PUT(ORDERS, int64_t, self->merged ? sorted[at].entry.time : 0);
            PUT(COUNTS, int32_t, last - at);
            for (; at < last; at++) {
                memcpy(to[RUNS] + at * (Py_ssize_t)sizeof(entry), &sorted[at].entry, sizeof(entry));
                payload += sorted[at].size;
            }
            PUT(SIZES, int32_t, payload);
        }
    }
    PUT(KEYS_AT, int32_t, key_at);
    PUT(RUNS_AT, int32_t, at * (Py_ssize_t)sizeof(entry));
#undef PUT
    PyMem_Free(sorted);
    if (self->table != NULL) memset(self->table, 0, self->table_size * sizeof(uint32_t));
    self->count = self->group_count = 0;
    self->last = 0;
    return Py_BuildValue("(nN)", rows, buffers);
}

/* counts() -> (packets, bytes of their payload) since the last call */
static PyObject *counts(PyObject *object, PyObject *unused) {
    runs_object *self = (runs_object *)object;
    (void)unused;
    PyObject *made = Py_BuildValue("(LL)", (long long)self->packets, (long long)self->payload);
    if (made != NULL) self->packets = self->payload = 0;
    return made;
}

static Py_ssize_t length(PyObject *object) { return ((runs_object *)object)->count; }

/* Runs(merged, longest, seed) */
static PyObject *new_runs(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    int merged;
    Py_ssize_t longest;
    long long seed;
    if (refuse_keywords(keywords, "Runs")) return NULL;
    if (!PyArg_ParseTuple(args, "pnL", &merged, &longest, &seed)) return NULL;
    if (longest < 1 || longest > 1 << 14) { /* payload is counted in 31 bits */
        PyErr_SetString(PyExc_ValueError, "invalid length of runs");
        return NULL;
    }
    runs_object *self = (runs_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->merged = merged;
    self->longest = longest;
    self->seed = (uint64_t)seed | 1;
    return (PyObject *)self;
}

static void dealloc(PyObject *object) {
    runs_object *self = (runs_object *)object;
    PyMem_Free(self->members);
    PyMem_Free(self->groups);
    PyMem_Free(self->table);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {{"add", add, METH_O, NULL},
                                {"take", take, METH_NOARGS, NULL},
                                {"counts", counts, METH_NOARGS, NULL},
                                {0}};
static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject runs_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Runs",
    .tp_basicsize = sizeof(runs_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_runs,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
    .tp_as_sequence = &as_sequence,
};
