/* The first and last times of exchanges by the capture of their requests: a hash table with open
   addressing. */
#include "wire.h"

static int32_t *place_of_span(reading_object *self, int32_t capture) {
    size_t mask = 2 * (size_t)self->span_room - 1;
    size_t at = (size_t)((uint32_t)capture * UINT32_C(0x9E3779B1) >> 7) & mask;
    for (; self->span_places[at]; at = (at + 1) & mask) {
        STEPS(1);
        if (self->spans[self->span_places[at] - 1].capture == capture) break;
    }
    return &self->span_places[at];
}

static int grow_spans(reading_object *self) {
    Py_ssize_t room = self->span_room ? self->span_room * 2 : 2;
    int32_t *places = PyMem_Calloc(2 * (size_t)room, sizeof(*places));
    struct span *grown = PyMem_Realloc(self->spans, (size_t)room * sizeof(*grown));
    if (grown != NULL) self->spans = grown;
    if (grown == NULL || places == NULL) {
        PyMem_Free(places);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(self->span_places);
    self->span_places = places;
    self->span_room = room;
    for (Py_ssize_t i = 0; i < self->span_count; i++)
        *place_of_span(self, self->spans[i].capture) = (int32_t)i + 1;
    return 0;
}

int note_span(reading_object *self, int32_t capture, int64_t first, int64_t last) {
    if (self->span_count == self->span_room && grow_spans(self)) return -1;
    int32_t *place = place_of_span(self, capture);
    if (!*place) {
        struct span made = {capture, first, last};
        self->spans[self->span_count++] = made;
        *place = (int32_t)self->span_count;
        return 0;
    }
    struct span *each = &self->spans[*place - 1];
    if (first < each->first_ns) each->first_ns = first;
    if (last > each->last_ns) each->last_ns = last;
    return 0;
}

/* [(capture, first time, last time)]; NULL with an exception. */
PyObject *listed_spans(const reading_object *self) {
    PyObject *spans = PyList_New(self->span_count);
    for (Py_ssize_t i = 0; spans != NULL && i < self->span_count; i++) {
        const struct span *each = &self->spans[i];
        PyObject *made = Py_BuildValue("(iLL)", (int)each->capture, (long long)each->first_ns,
                                       (long long)each->last_ns);
        if (made == NULL) Py_CLEAR(spans);
        else PyList_SET_ITEM(spans, i, made);
    }
    return spans;
}

void clear_spans(reading_object *self) {
    while (self->span_count) *place_of_span(self, self->spans[--self->span_count].capture) = 0;
}
