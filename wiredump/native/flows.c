/* The connections of a `Reading` by their flows, in either direction: a hash table with open
   addressing. */
#include "wire.h"

int is_busy(const reading_object *self) {
    if (self->busy) PyErr_SetString(PyExc_RuntimeError, "the object is in use by `run`");
    return self->busy;
}

void reverse(const uint8_t *flow, uint8_t *out) {
    int size = (flow[KEY - 1] - 4) / 2;
    memset(out, 0, KEY);
    memcpy(out, flow + size, (size_t)size);
    memcpy(out + size, flow, (size_t)size);
    memcpy(out + 2 * size, flow + 2 * size + 2, 2);
    memcpy(out + 2 * size + 2, flow + 2 * size, 2);
    out[KEY - 1] = flow[KEY - 1];
}

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

struct slot *reading_find(const reading_object *self, const uint8_t *flow) {
    size_t mask = self->table_size - 1;
    if (self->table_size == 0) return NULL;
    for (size_t at = (size_t)flow_hash(self->seed, flow) & mask;; at = (at + 1) & mask) {
        struct slot *each = &self->table[at];
        STEPS(1);
        if (each->connection == NULL) return NULL;
        if (memcmp(each->connection->flows[each->direction], flow, KEY) == 0) return each;
    }
}

static void put(reading_object *self, connection *on, int direction) {
    size_t mask = self->table_size - 1;
    size_t at = (size_t)flow_hash(self->seed, on->flows[direction]) & mask;
    for (; self->table[at].connection != NULL; at = (at + 1) & mask) STEPS(1);
    self->table[at].connection = on;
    self->table[at].direction = (uint8_t)direction;
    self->table_used++;
}

static int make_room(reading_object *self) {
    if ((self->table_used + 2) * 2 <= self->table_size) return 0;
    size_t size = self->table_size ? self->table_size * 2 : 64, before = self->table_size;
    struct slot *table = PyMem_Calloc(size, sizeof(struct slot)), *old = self->table;
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->table = table;
    self->table_size = size;
    self->table_used = 0;
    STEPS(before);
    for (size_t i = 0; i < before; i++)
        if (old[i].connection != NULL) put(self, old[i].connection, old[i].direction);
    PyMem_Free(old);
    return 0;
}

static void take_out(reading_object *self, struct slot *gone) {
    size_t mask = self->table_size - 1, hole = (size_t)(gone - self->table);
    self->table[hole].connection = NULL;
    self->table_used--;
    /* Entries that were displaced past the hole move up. */
    for (size_t at = (hole + 1) & mask; self->table[at].connection != NULL; at = (at + 1) & mask) {
        STEPS(1);
        struct slot each = self->table[at];
        size_t home = (size_t)flow_hash(self->seed, each.connection->flows[each.direction]) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            self->table[hole] = each;
            self->table[at].connection = NULL;
            hole = at;
        }
    }
}

int reading_put(reading_object *self, connection *on) {
    if (make_room(self)) return -1;
    put(self, on, 0);
    put(self, on, 1);
    self->alive++;
    return 0;
}

void reading_drop(reading_object *self, connection *on) {
    take_out(self, reading_find(self, on->flows[0]));
    take_out(self, reading_find(self, on->flows[1]));
    if (on->touched) {
        connection *last = self->touched[--self->touched_count];
        self->touched[on->touched - 1] = last;
        last->touched = on->touched;
    }
    self->alive -= on->opened.stage != STAGE_CLOSED;
    connection_free(on);
}
