/* How fast can a decoded message be made at all? Clones one, object by object, and parses nothing.

   What decode.c makes is made here in the same way: structs by their type's allocator, lists by
   PyList_New, taken from the collector's view on the same conditions. Strings and numbers are
   shared with the original: what is left is the graph of structs and lists.

   A plan is a tuple of structs, children first: (class, slots), a slot being (name, what, index of
   the inner struct). It is trusted, as are the objects: this is for benchmarks, and never in the
   wheel. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

enum what { ATOM, STRUCT, ATOMS, STRUCTS, WHATS };

typedef struct plan plan;

typedef struct {
    Py_ssize_t offset;
    enum what what;
    const plan *inner;
} slot;

struct plan {
    PyTypeObject *type;
    int collected;
    Py_ssize_t count;
    slot *slots;
};

typedef struct {
    PyObject_HEAD
    Py_ssize_t count;
    plan *plans;
} floor_object;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* ---- cloning ---------------------------------------------------------------------------------- */

static inline PyObject *shared(PyObject *value) {
    Py_INCREF(value);
    return value;
}

static PyObject *clone_struct(const plan *made, PyObject *source);

static PyObject *clone_list(const slot *place, PyObject *source) {
    Py_ssize_t count = PyList_GET_SIZE(source);
    PyObject *list = PyList_New(count);
    if (!list) return NULL;
    PyObject_GC_UnTrack(list);
    PyObject **from = ((PyListObject *)source)->ob_item, **to = ((PyListObject *)list)->ob_item;
    for (Py_ssize_t i = 0; i < count; i++) {
        to[i] = place->what == STRUCTS ? clone_struct(place->inner, from[i]) : shared(from[i]);
        if (!to[i]) {
            Py_DECREF(list);
            return NULL;
        }
    }
    if (place->inner && place->inner->collected) PyObject_GC_Track(list);
    return list;
}

static PyObject *clone_struct(const plan *made, PyObject *source) {
    PyObject *object = made->type->tp_alloc(made->type, 0);
    if (!object) return NULL;
    if (made->collected) PyObject_GC_UnTrack(object);
    const slot *end = made->slots + made->count;
    for (const slot *place = made->slots; place < end; place++) {
        PyObject *value = SLOT(source, place->offset);
        if (place->what == ATOM || value == Py_None) value = shared(value);
        else if (place->what == STRUCT) value = clone_struct(place->inner, value);
        else value = clone_list(place, value);
        if (!value) {
            Py_DECREF(object);
            return NULL;
        }
        SLOT(object, place->offset) = value;
    }
    if (made->collected) PyObject_GC_Track(object);
    return object;
}

static PyObject *floor_clone(PyObject *object, PyObject *source) {
    floor_object *self = (floor_object *)object;
    const plan *root = &self->plans[self->count - 1];
    if (Py_TYPE(source) != root->type)
        return PyErr_Format(PyExc_TypeError, "not a %s", root->type->tp_name);
    return clone_struct(root, source);
}

/* ---- the plan --------------------------------------------------------------------------------- */

static void floor_dealloc(PyObject *object) {
    floor_object *self = (floor_object *)object;
    for (Py_ssize_t i = 0; self->plans && i < self->count; i++) {
        PyMem_Free(self->plans[i].slots);
        Py_XDECREF(self->plans[i].type);
    }
    PyMem_Free(self->plans);
    Py_TYPE(object)->tp_free(object);
}

static int set_slot(slot *place, const plan *plans, Py_ssize_t index, PyTypeObject *type,
                    PyObject *row) {
    PyObject *name;
    int what;
    Py_ssize_t inner;
    if (!PyArg_ParseTuple(row, "Uin", &name, &what, &inner)) return -1;
    PyObject *member = PyObject_GetAttr((PyObject *)type, name);
    if (!member) return -1;
    PyMemberDef *found = Py_TYPE(member) == &PyMemberDescr_Type
                             ? ((PyMemberDescrObject *)member)->d_member : NULL;
    Py_DECREF(member); /* its type keeps it */
    int has_inner = what == STRUCT || what == STRUCTS;
    if (!found || found->type != T_OBJECT_EX || what < 0 || what >= WHATS ||
        (has_inner && (inner < 0 || inner >= index))) {
        PyErr_Format(PyExc_ValueError, "%U is not a slot to clone", name);
        return -1;
    }
    *place = (slot){found->offset, (enum what)what, has_inner ? &plans[inner] : NULL};
    return 0;
}

static int set_plan(plan *made, const plan *plans, Py_ssize_t index, PyObject *row) {
    PyObject *type, *slots;
    if (!PyArg_ParseTuple(row, "O!O!", &PyType_Type, &type, &PyTuple_Type, &slots)) return -1;
    Py_INCREF(type);
    made->type = (PyTypeObject *)type;
    made->collected = PyType_IS_GC(made->type);
    made->count = PyTuple_GET_SIZE(slots);
    made->slots = PyMem_Calloc((size_t)made->count + 1, sizeof(slot));
    if (!made->slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < made->count; i++)
        if (set_slot(&made->slots[i], plans, index, made->type, PyTuple_GET_ITEM(slots, i)))
            return -1;
    return 0;
}

static PyObject *floor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *rows;
    if (kwargs || !PyArg_ParseTuple(args, "O!", &PyTuple_Type, &rows)) return NULL;
    if (PyTuple_GET_SIZE(rows) == 0) {
        PyErr_SetString(PyExc_ValueError, "no structs");
        return NULL;
    }
    floor_object *self = (floor_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->count = PyTuple_GET_SIZE(rows);
    self->plans = PyMem_Calloc((size_t)self->count, sizeof(plan));
    if (!self->plans) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < self->count; i++)
        if (set_plan(&self->plans[i], self->plans, i, PyTuple_GET_ITEM(rows, i))) {
            Py_DECREF(self);
            return NULL;
        }
    return (PyObject *)self;
}

static PyMethodDef floor_methods[] = {
    {"clone", floor_clone, METH_O, "The graph anew, its strings and numbers shared."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject floor_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "floor.Floor",
    .tp_basicsize = sizeof(floor_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = floor_new,
    .tp_dealloc = floor_dealloc,
    .tp_methods = floor_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "floor", .m_doc = "See floor.c.", .m_size = -1,
};

PyMODINIT_FUNC PyInit_floor(void) {
    if (PyType_Ready(&floor_type)) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Floor", (PyObject *)&floor_type)) Py_CLEAR(made);
    return made;
}
