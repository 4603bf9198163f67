/* Compiles a selection: marks on a copy of a plan's structure, which columns.c follows. Like a plan
   (plan.c) it is verified once: an invalid description is refused, and nothing is checked again
   later. */
#include "columns.h"

static int refuse(const char *why) {
    PyErr_Format(PyExc_ValueError, "invalid selection: %s", why);
    return -1;
}

static node *new_node(selection_object *self, const struct_plan *plan) {
    Py_ssize_t count = FIELDS_END(plan) - plan->fields;
    node *made = PyMem_Calloc(1, sizeof *made);
    mark *marks = PyMem_Calloc((size_t)count + 1, sizeof *marks);
    if (made == NULL || marks == NULL) {
        PyMem_Free(made);
        PyMem_Free(marks);
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) marks[i].column = -1;
    *made = (node){plan, marks, 1, self->nodes};
    return self->nodes = made;
}

/* The field at the end of a path of positions, and the node that contains it; structs on the path
   are entered. NULL and an exception if there is no such place, or it is in use. */
static const field_plan *find(selection_object *self, node *here, PyObject *path, node **place) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(path); i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(path, i));
        if (at == -1 && PyErr_Occurred()) return NULL;
        const struct_plan *plan = here->plan;
        if (at < 0 || at >= FIELDS_END(plan) - plan->fields) break;
        const field_plan *field = &plan->fields[at];
        mark *mark = &here->marks[at];
        if (at >= plan->inline_count) here->certain = 0;
        if (i == PyTuple_GET_SIZE(path) - 1) {
            if (mark->column >= 0 || mark->inner || mark->below) break;
            *place = here;
            return field;
        }
        if (field->kind != KIND_STRUCT || mark->column >= 0) break;
        here->certain = 0;
        if (mark->inner == NULL) mark->inner = new_node(self, field->inner);
        if (mark->inner == NULL) return NULL;
        here = mark->inner;
    }
    refuse("a path leads nowhere");
    return NULL;
}

/* A default must be readable like any other value, since it is not checked again. */
static int check_fallback(const field_plan *field, PyObject *fallback) {
    if (fallback == Py_None) return 0;
    if (!PyBytes_CheckExact(fallback)) return refuse("a default is not bytes");
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(fallback);
    reader in = {start, start + PyBytes_GET_SIZE(fallback)};
    if (validate_field(&in, field) || in.at != in.end) return refuse("a default does not fit");
    return 0;
}

/* (column, path, default) */
static int choose(selection_object *self, level *at, PyObject *given) {
    PyObject *path, *fallback;
    Py_ssize_t index;
    node *place;
    if (!PyTuple_Check(given)) return refuse("a column is not a tuple");
    if (!PyArg_ParseTuple(given, "nO!O", &index, &PyTuple_Type, &path, &fallback)) return -1;
    if (index < 0 || index >= self->column_count || self->columns[index].field)
        return refuse("a column out of place");
    const field_plan *field = find(self, at->root, path, &place);
    if (field == NULL) return -1;
    if (field->inner) return refuse("a struct cannot be a column");
    if (check_fallback(field, fallback)) return -1;
    place->marks[field - place->plan->fields].column = index;
    self->columns[index] = (chosen){field, Py_NewRef(fallback)};
    at->columns[at->column_count++] = index;
    return 0;
}

/* (path of the array that is the next level, or () for the last; columns) */
static int compile_level(selection_object *self, level *at, PyObject *given, int last) {
    PyObject *line, *columns;
    node *place;
    if (!PyTuple_Check(given)) return refuse("a level is not a tuple");
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &line, &PyTuple_Type, &columns)) return -1;
    at->columns = PyMem_Calloc((size_t)PyTuple_GET_SIZE(columns) + 1, sizeof *at->columns);
    if (at->columns == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++)
        if (choose(self, at, PyTuple_GET_ITEM(columns, i))) return -1;
    if (last) return PyTuple_GET_SIZE(line) ? refuse("a level is missing") : 0;
    const field_plan *field = find(self, at->root, line, &place);
    if (field == NULL) return -1;
    if (field->kind != KIND_ARRAY || !field->inner) return refuse("a level must be an array of structs");
    at->below = at + 1;
    place->marks[field - place->plan->fields].below = at->below;
    at->below->root = new_node(self, field->inner);
    return at->below->root ? 0 : -1;
}

static int compile(selection_object *self, PyObject *levels, Py_ssize_t column_count) {
    if (PyTuple_GET_SIZE(levels) == 0) return refuse("it has no level");
    if (column_count < 1) return refuse("it has no column");
    self->level_count = PyTuple_GET_SIZE(levels);
    self->levels = PyMem_Calloc((size_t)self->level_count + 1, sizeof *self->levels);
    self->columns = PyMem_Calloc((size_t)column_count + 1, sizeof *self->columns);
    if (self->levels == NULL || self->columns == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->column_count = column_count;
    self->levels[0].root = new_node(self, &self->plan->structs[self->plan->struct_count - 1]);
    if (self->levels[0].root == NULL) return -1;
    for (Py_ssize_t i = 0; i < self->level_count; i++) {
        int last = i == self->level_count - 1;
        if (compile_level(self, &self->levels[i], PyTuple_GET_ITEM(levels, i), last)) return -1;
    }
    for (Py_ssize_t i = 0; i < column_count; i++)
        if (self->columns[i].field == NULL) return refuse("a column is missing");
    return 0;
}

/* Plan.select(levels, count of columns) -> Selection */
PyObject *plan_select(PyObject *plan, PyObject *args) {
    PyObject *levels;
    Py_ssize_t column_count;
    if (!PyArg_ParseTuple(args, "O!n:select", &PyTuple_Type, &levels, &column_count)) return NULL;
    if (column_count > PY_SSIZE_T_MAX / (Py_ssize_t)sizeof(column)) return PyErr_NoMemory();
    selection_object *self = (selection_object *)selection_type.tp_alloc(&selection_type, 0);
    if (self == NULL) return NULL;
    self->plan = (plan_object *)Py_NewRef(plan);
    if (!compile(self, levels, column_count)) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void selection_free(selection_object *self) {
    PyObject_GC_UnTrack(self);
    for (node *each = self->nodes, *next; each; each = next) {
        next = each->created;
        PyMem_Free(each->marks);
        PyMem_Free(each);
    }
    for (Py_ssize_t i = 0; i < self->level_count && self->levels; i++)
        PyMem_Free(self->levels[i].columns);
    for (Py_ssize_t i = 0; i < self->column_count && self->columns; i++)
        Py_XDECREF(self->columns[i].fallback);
    PyMem_Free(self->levels);
    PyMem_Free(self->columns);
    Py_XDECREF(self->plan);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* No tp_clear, as plans have none. */
static int selection_traverse(selection_object *self, visitproc visit, void *arg) {
    Py_VISIT(self->plan);
    return 0;
}

static PyMethodDef selection_methods[] = {
    {"read", (PyCFunction)selection_read, METH_VARARGS,
     "read(bodies, limit, collect) -> (rows, frame, columns, failed, index of the body past the "
     "limit or -1); kproto/columns/pure.py says what they are"},
    {"locate", (PyCFunction)(void (*)(void))selection_locate, METH_FASTCALL,
     "locate(data, offset, header) -> (places, end) or None; kproto/columns/places.py says what "
     "they are"},
    {"export", selection_export, METH_O,
     "export(column) -> (capsule of an ArrowSchema, capsule of an ArrowArray)"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject selection_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.Selection",
    .tp_doc = "Fields of a plan that become columns; Plan.select makes it.",
    .tp_basicsize = sizeof(selection_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)selection_free,
    .tp_traverse = (traverseproc)selection_traverse,
    .tp_methods = selection_methods,
};
