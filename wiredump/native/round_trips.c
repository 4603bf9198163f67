/* Measures the round-trip times of the data that one end sends, in the array of
   wiredump/readers/round_trips.py. Python handles retransmissions. */
#include "wire.h"

/* Makes the stream record its times in `tally.timing`, if that exists. */
int trips_enter(stream *self) {
    PyObject *timing = PyObject_GetAttrString(self->tally, "timing");
    if (timing == NULL) return -1;
    int failed = 0;
    if (timing != Py_None) {
        failed = PyObject_GetBuffer(timing, &self->timing, PyBUF_WRITABLE);
        if (!failed && self->timing.len != TRIPS_SIZE * (Py_ssize_t)sizeof(int64_t)) {
            PyBuffer_Release(&self->timing);
            PyErr_SetString(PyExc_ValueError, "the round-trip state has the wrong size");
            failed = -1;
        }
        if (!failed) self->trips = self->timing.buf;
    }
    Py_DECREF(timing);
    return failed;
}

/* Called at the first segment with data of a direction. */
int trips_begin(stream *self, PyObject *connection, int direction, uint32_t sequence) {
    if (self->tally == NULL) {
        PyObject *both = PyObject_GetAttrString(connection, "tally");
        if (both == NULL) return -1;
        self->tally = PyObject_GetAttrString(both, direction ? "broker" : "client");
        Py_DECREF(both);
        if (self->tally == NULL) return -1;
    }
    PyObject *made = PyObject_CallMethod(self->tally, "time_from", "I", (unsigned int)sequence);
    if (made == NULL) return -1;
    Py_DECREF(made);
    return trips_enter(self);
}

static void measured(int64_t *trips, int64_t took) {
    if (took < 0) return; /* the clock of the capture was set back */
    if (took < trips[TRIPS_MINIMUM]) trips[TRIPS_MINIMUM] = took;
    if (took > trips[TRIPS_MAXIMUM]) trips[TRIPS_MAXIMUM] = took;
    uint64_t units = (uint64_t)took >> 8;
    int power = 0;
#if defined(__GNUC__) || defined(__clang__)
    power = 60 - __builtin_clzll(units | 8);
#else
    while (units >> power >= 16) power++;
#endif
    uint64_t bucket = 8 * (uint64_t)power + (units >> power);
    trips[TRIPS_HISTOGRAM + (bucket < BUCKETS ? bucket : BUCKETS - 1)]++;
}

void trips_take(int64_t *trips, uint32_t number, int64_t now) {
    if ((int32_t)(number - (uint32_t)trips[TRIPS_ACKNOWLEDGED]) <= 0) return;
    trips[TRIPS_ACKNOWLEDGED] = number;
    uint32_t first = (uint32_t)trips[TRIPS_FIRST], count = (uint32_t)trips[TRIPS_COUNT];
    for (; count; count--) {
        const int64_t *each = &trips[TRIPS_RING + 2 * (first % TIMED)];
        if ((int32_t)(number - (uint32_t)each[1]) < 0) break;
        measured(trips, now - each[0]);
        first = (first + 1) % TIMED;
    }
    trips[TRIPS_FIRST] = first;
    trips[TRIPS_COUNT] = count;
}
