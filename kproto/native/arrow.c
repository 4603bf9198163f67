/* Exports buffers through Arrow's C data interface, in the capsules of its PyCapsule interface
   (https://arrow.apache.org/docs/format/CDataInterface.html and PyCapsuleInterface.html). Arrow
   defines the two structs: they are a binary interface, so the order of their fields is fixed.
   Exported data holds references to the bytes objects it points into. The consumer may release it,
   or any part that was moved elsewhere, in any order, on any thread, with or without the GIL. */
#include "columns.h"

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum { NULLABLE_FLAG = 2, MOST_BUFFERS = 3 };

typedef struct {
    const void *buffers[MOST_BUFFERS];
    PyObject *held[MOST_BUFFERS];
} held_buffers;

static void release_schema(struct ArrowSchema *self) {
    for (int64_t i = 0; i < self->n_children; i++) {
        struct ArrowSchema *child = self->children[i];
        if (child && child->release) child->release(child);
        PyMem_RawFree(child);
    }
    PyMem_RawFree(self->children);
    PyMem_RawFree((char *)self->format);
    PyMem_RawFree((char *)self->name);
    self->release = NULL;
}

static void release_array(struct ArrowArray *self) {
    for (int64_t i = 0; i < self->n_children; i++) {
        struct ArrowArray *child = self->children[i];
        if (child && child->release) child->release(child);
        PyMem_RawFree(child);
    }
    PyMem_RawFree(self->children);
    held_buffers *own = self->private_data;
    if (own && Py_IsInitialized()) { /* after the interpreter has ended there is nothing to release */
        PyGILState_STATE state = PyGILState_Ensure();
        for (int i = 0; i < MOST_BUFFERS; i++) Py_XDECREF(own->held[i]);
        PyGILState_Release(state);
    }
    PyMem_RawFree(own);
    self->release = NULL;
}

static const char *copy_of(const char *text) {
    size_t size = strlen(text) + 1;
    char *made = PyMem_RawMalloc(size);
    if (made == NULL) PyErr_NoMemory();
    return made ? memcpy(made, text, size) : NULL;
}

/* A column as Python passes it, and the columns below it. */
typedef struct {
    const char *name, *format;
    int nullable;
    Py_ssize_t length, nulls;
    PyObject *buffers, *children;
} given;

/* (name, format, nullable, length, nulls, buffers, children) */
static int parse(PyObject *from, given *to) {
    if (!PyTuple_Check(from)) {
        PyErr_SetString(PyExc_TypeError, "a column is not a tuple");
        return -1;
    }
    return PyArg_ParseTuple(from, "sspnnO!O!:export", &to->name, &to->format, &to->nullable,
                            &to->length, &to->nulls, &PyTuple_Type, &to->buffers, &PyTuple_Type,
                            &to->children)
               ? 0
               : -1;
}

/* Both leave `*to` in a state that its release function can free, even on an error. */

static int fill_schema(struct ArrowSchema *to, PyObject *from) {
    given column;
    *to = (struct ArrowSchema){.release = release_schema};
    if (parse(from, &column)) return -1;
    to->flags = column.nullable ? NULLABLE_FLAG : 0;
    to->format = copy_of(column.format);
    to->name = to->format ? copy_of(column.name) : NULL;
    if (to->name == NULL) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(column.children);
    to->children = PyMem_RawCalloc((size_t)count + 1, sizeof *to->children);
    for (; to->children && to->n_children < count; to->n_children++) {
        struct ArrowSchema *child = PyMem_RawMalloc(sizeof *child);
        if (child == NULL) break;
        to->children[to->n_children] = child;
        if (fill_schema(child, PyTuple_GET_ITEM(column.children, to->n_children))) {
            to->n_children++;
            return -1;
        }
    }
    if (to->children && to->n_children == count) return 0;
    PyErr_NoMemory();
    return -1;
}

static int hold_buffers(struct ArrowArray *to, PyObject *buffers) {
    held_buffers *own = PyMem_RawCalloc(1, sizeof *own);
    if (own == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    to->private_data = own;
    to->buffers = own->buffers;
    to->n_buffers = PyTuple_GET_SIZE(buffers);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(buffers); i++) {
        PyObject *each = PyTuple_GET_ITEM(buffers, i);
        if (i >= MOST_BUFFERS || (each != Py_None && !PyBytes_CheckExact(each))) {
            PyErr_SetString(PyExc_TypeError, "buffers are up to three bytes objects, or None");
            return -1;
        }
        if (each != Py_None) own->buffers[i] = PyBytes_AS_STRING(each);
        own->held[i] = Py_NewRef(each);
    }
    return 0;
}

static int fill_array(struct ArrowArray *to, PyObject *from) {
    given column;
    *to = (struct ArrowArray){.release = release_array};
    if (parse(from, &column) || hold_buffers(to, column.buffers)) return -1;
    to->length = column.length;
    to->null_count = column.nulls;
    Py_ssize_t count = PyTuple_GET_SIZE(column.children);
    to->children = PyMem_RawCalloc((size_t)count + 1, sizeof *to->children);
    for (; to->children && to->n_children < count; to->n_children++) {
        struct ArrowArray *child = PyMem_RawMalloc(sizeof *child);
        if (child == NULL) break;
        to->children[to->n_children] = child;
        if (fill_array(child, PyTuple_GET_ITEM(column.children, to->n_children))) {
            to->n_children++;
            return -1;
        }
    }
    if (to->children && to->n_children == count) return 0;
    PyErr_NoMemory();
    return -1;
}

/* ---- capsules ------------------------------------------------------------------------------------ */

static void free_schema(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release) schema->release(schema); /* no consumer took it over */
    PyMem_RawFree(schema);
}

static void free_array(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release) array->release(array);
    PyMem_RawFree(array);
}

static PyObject *schema_capsule(PyObject *column) {
    struct ArrowSchema *schema = PyMem_RawMalloc(sizeof *schema);
    if (schema == NULL) return PyErr_NoMemory();
    PyObject *capsule = NULL;
    if (!fill_schema(schema, column)) capsule = PyCapsule_New(schema, "arrow_schema", free_schema);
    if (capsule == NULL) {
        schema->release(schema);
        PyMem_RawFree(schema);
    }
    return capsule;
}

static PyObject *array_capsule(PyObject *column) {
    struct ArrowArray *array = PyMem_RawMalloc(sizeof *array);
    if (array == NULL) return PyErr_NoMemory();
    PyObject *capsule = NULL;
    if (!fill_array(array, column)) capsule = PyCapsule_New(array, "arrow_array", free_array);
    if (capsule == NULL) {
        array->release(array);
        PyMem_RawFree(array);
    }
    return capsule;
}

/* export(column) -> (capsule of an ArrowSchema, capsule of an ArrowArray). A table is a column of
   structs, "+s". The caller ensures that the buffers are as long as they claim. */
PyObject *selection_export(PyObject *self, PyObject *column) {
    (void)self;
    PyObject *schema = schema_capsule(column);
    PyObject *array = schema ? array_capsule(column) : NULL;
    if (array == NULL) {
        Py_XDECREF(schema);
        return NULL;
    }
    return Py_BuildValue("(NN)", schema, array);
}
