/* Puts the rows of many pieces in the order of their table. Runs are sorted instead of rows, and
   then each column is copied run by run (span_columns.c; wiredump/tables/merging.py). The meaning
   of columns does not matter here. */
#include "spans.h"

enum { MOST_KEYS = 8 };

typedef struct {
    span at;
    int64_t keys[MOST_KEYS], lowest, highest; /* and the numbers that rows are sorted by within their run */
} run_entry;

typedef struct {
    run_entry *runs;
    Py_ssize_t count, room;
    int keys;
} run_list;

static int add_run(run_list *self, const run_entry *run) {
    if (self->count == self->room) {
        run_entry *grown = doubled(self->runs, &self->room, sizeof *grown, 1024);
        if (grown == NULL) return -1;
        self->runs = grown;
    }
    self->runs[self->count++] = *run;
    return 0;
}

/* Reads the runs of a part, of which only the rows from `first` to `stop` are used. `within` has
   a number for each row, or is NULL. DOES_NOT_FIT: the rows of a run are not sorted. */
static int add_part(run_list *self, int32_t part, const numbers *counts, const numbers *keys,
                    const numbers *within, int64_t first, int64_t stop) {
    int64_t row = 0;
    for (Py_ssize_t run = 0; run < how_many(counts) && row < stop; run++) {
        int64_t count = number_at(counts, run);
        if (count < 0 || count > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "invalid number of rows");
            return -1;
        }
        int64_t begin = row < first ? first : row, end = row + count < stop ? row + count : stop;
        row += count;
        if (begin >= end) continue;
        run_entry made = {.at = {part, run, begin, end - begin}};
        for (int i = 0; i < self->keys; i++) made.keys[i] = number_at(&keys[i], run);
        if (within != NULL) {
            made.lowest = made.highest = number_at(within, begin);
            for (int64_t each = begin + 1; each < end; each++) {
                int64_t next = number_at(within, each);
                if (next < made.highest) return DOES_NOT_FIT;
                made.highest = next;
            }
        }
        if (add_run(self, &made)) return -1;
    }
    if (row >= stop) return 0;
    PyErr_SetString(PyExc_ValueError, "a part has fewer rows than stated");
    return -1;
}

static int compare_keys(const run_entry *a, const run_entry *b) {
    for (int i = 0; i < MOST_KEYS; i++)
        if (a->keys[i] != b->keys[i]) return a->keys[i] < b->keys[i] ? -1 : 1;
    return 0;
}

static int compare(const void *left, const void *right) {
    const run_entry *a = *(run_entry *const *)left, *b = *(run_entry *const *)right;
    int found = compare_keys(a, b);
    return found ? found : a < b ? -1 : a > b; /* as they came */
}

/* Sorts into `to`. DOES_NOT_FIT: rows of two runs interleave. */
static int sort_runs(const run_list *from, span *to) {
    const run_entry **order = PyMem_Malloc(((size_t)from->count + 1) * sizeof *order);
    if (order == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int result = 0;
    for (Py_ssize_t i = 0; i < from->count; i++) order[i] = &from->runs[i];
    if (from->keys) qsort(order, (size_t)from->count, sizeof *order, compare);
    for (Py_ssize_t i = 0; i < from->count && !result; i++) {
        to[i] = order[i]->at;
        if (i && from->keys && !compare_keys(order[i - 1], order[i]) &&
            order[i - 1]->highest > order[i]->lowest)
            result = DOES_NOT_FIT;
    }
    PyMem_Free(order);
    return result;
}

/* (counts, keys, within or None, first, stop) */
static int parse_part(run_list *self, int32_t number, PyObject *given) {
    PyObject *keys, *counted, *sorted;
    long long first, stop;
    numbers counts = {0}, within = {0}, key[MOST_KEYS] = {0};
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a part must be a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "OO!OLL;a part", &counted, &PyTuple_Type, &keys, &sorted, &first,
                          &stop))
        return -1;
    Py_ssize_t key_count = PyTuple_GET_SIZE(keys);
    if (key_count > MOST_KEYS || (number && key_count != self->keys) || first < 0 || stop < first ||
        (sorted == Py_None) != (key_count == 0)) {
        PyErr_SetString(PyExc_ValueError, "invalid keys or rows");
        return -1;
    }
    self->keys = (int)key_count;
    int result = numbers_of(counted, &counts);
    if (!result && sorted != Py_None) {
        result = numbers_of(sorted, &within);
        if (!result && how_many(&within) < stop) {
            PyErr_SetString(PyExc_ValueError, "a part has fewer rows than requested");
            result = -1;
        }
    }
    for (Py_ssize_t i = 0; i < key_count && !result; i++) {
        result = numbers_of(PyTuple_GET_ITEM(keys, i), &key[i]);
        if (!result && how_many(&key[i]) != how_many(&counts)) {
            PyErr_SetString(PyExc_ValueError, "expected a key for each run");
            result = -1;
        }
    }
    if (!result)
        result = add_part(self, number, &counts, key, sorted == Py_None ? NULL : &within, first,
                          stop);
    for (Py_ssize_t i = 0; i < key_count; i++) numbers_free(&key[i]);
    numbers_free(&within);
    numbers_free(&counts);
    return result;
}

/* order_runs([(counts, keys, within, first, stop)...]) -> Spans; None if sorting runs is not
   enough. Of each part, the rows from `first` to `stop` are used. `counts` are the lengths of its
   runs, `keys` the numbers that runs are sorted by, in that order, `within` a number for each
   row; all are int64. Without keys and `within` the runs keep their order. */
PyObject *order_runs(PyObject *module, PyObject *parts) {
    (void)module;
    run_list runs = {0};
    int result = 0;
    spans_object *made = NULL;
    if (!PyList_Check(parts) || PyList_GET_SIZE(parts) > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "parts must be a list");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts) && !result; i++)
        result = parse_part(&runs, (int32_t)i, PyList_GET_ITEM(parts, i));
    if (!result && (made = PyObject_New(spans_object, &spans_type)) == NULL) result = -1;
    if (!result) {
        made->parts = PyList_GET_SIZE(parts);
        made->count = runs.count;
        made->rows = 0;
        made->spans = PyMem_Malloc(((size_t)runs.count + 1) * sizeof *made->spans);
        made->begins = PyMem_Calloc((size_t)made->parts + 1, sizeof *made->begins);
        made->ends = PyMem_Calloc((size_t)made->parts + 1, sizeof *made->ends);
        int has_room = made->spans != NULL && made->begins != NULL && made->ends != NULL;
        for (Py_ssize_t i = 0; i < runs.count && has_room; i++) {
            const span *at = &runs.runs[i].at;
            made->rows += at->count;
            /* The parts are already in order. */
            if (made->ends[at->part] == 0) made->begins[at->part] = at->first;
            made->ends[at->part] = at->first + at->count;
        }
        if (!has_room) {
            PyErr_NoMemory();
            result = -1;
        } else if (made->rows > INT32_MAX / 16) { /* so that no buffer of numbers is too large */
            PyErr_SetString(PyExc_ValueError, "too many rows");
            result = -1;
        } else {
            result = sort_runs(&runs, made->spans);
        }
    }
    PyMem_Free(runs.runs);
    if (!result) return (PyObject *)made;
    Py_XDECREF(made);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

static Py_ssize_t length(PyObject *object) { return (Py_ssize_t)((spans_object *)object)->rows; }

static void dealloc(PyObject *object) {
    PyMem_Free(((spans_object *)object)->spans);
    PyMem_Free(((spans_object *)object)->begins);
    PyMem_Free(((spans_object *)object)->ends);
    PyObject_Free(object);
}

static PySequenceMethods as_sequence = {.sq_length = length};

PyTypeObject spans_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.Spans",
    .tp_basicsize = sizeof(spans_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = dealloc,
    .tp_methods = span_columns,
    .tp_as_sequence = &as_sequence,
};
