/* Many bodies -> columns, without an object for each value.

   A selection is a plan with marks on it: which fields become columns, and which array of structs is
   gone into, level below level; each element of the deepest is a row. Everything else is passed over
   by validate.c, so that what this file takes is what decode.c takes.

   While a struct is read, a chosen field leaves only where its value begins. The value is put into
   its column when the struct is whole and the rows below it are counted: once for each of them. A
   body that turns out bad takes its rows with it. Nothing is reserved for a count that is only
   announced.

   Python code may run where a body is no bytes object (its buffer is asked for), between bodies. It
   can reach neither the table being made nor the tuple of bodies. */
#include "columns.h"

typedef struct node node;
typedef struct level level;

typedef struct {
    Py_ssize_t column; /* -1: none */
    node *inner;       /* of a struct in which something was chosen */
    level *below;      /* of the array whose elements are the next level */
} mark;

/* A struct in which something was chosen. */
struct node {
    const struct_plan *plan;
    mark *marks;   /* one a field */
    int certain;   /* all that was chosen in it is among its inline fields, and in no inner struct */
    node *created; /* before this one: to free them all */
};

/* The message, or the elements of a chosen array. */
struct level {
    node *root;
    Py_ssize_t column_count, *columns; /* those whose values belong to it */
    level *below;
};

typedef struct {
    const field_plan *field;
    PyObject *fallback; /* bytes: as the wire would have the default; or None */
} chosen;

typedef struct {
    PyObject_HEAD
    plan_object *plan;
    Py_ssize_t level_count, column_count;
    level *levels;
    chosen *columns;
    node *nodes;
} selection_object;

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct {
    const selection_object *selection;
    table made;
} reading;

static int read_level(reading *self, reader *in, const level *at);

static inline void set_default(reading *self, Py_ssize_t index) {
    PyObject *fallback = self->selection->columns[index].fallback;
    reader *next = &self->made.columns[index].next;
    if (fallback == Py_None) {
        next->at = NULL;
    } else {
        next->at = (const uint8_t *)PyBytes_AS_STRING(fallback);
        next->end = next->at + PyBytes_GET_SIZE(fallback);
    }
}

/* What a struct holds before it is read: its defaults; or, where it is null itself, nulls. */
static void set_defaults(reading *self, const node *here, int is_null) {
    const struct_plan *plan = here->plan;
    for (const field_plan *field = plan->fields; field < FIELDS_END(plan); field++) {
        const mark *mark = &here->marks[field - plan->fields];
        if (mark->column >= 0) {
            if (is_null)
                self->made.columns[mark->column].next.at = NULL;
            else
                set_default(self, mark->column);
        } else if (mark->inner) {
            set_defaults(self, mark->inner, is_null || field->default_mode != DEFAULT_STRUCT);
        }
    }
}

static int read_struct(reading *self, reader *in, const node *here);

static int read_elements(reading *self, reader *in, const field_plan *field, const level *below) {
    int64_t count;
    if (UNLIKELY(get_length(in, field, 0, &count))) return -1;
    if (count < 0) return field->flags & FIELD_NULLABLE ? 0 : -1;
    if (UNLIKELY(count > left_of(in) / field->element_min)) return -1;
    for (int64_t i = 0; i < count; i++)
        if (UNLIKELY(read_level(self, in, below))) return -1;
    return 0;
}

static int read_inner(reading *self, reader *in, const field_plan *field, const node *inner) {
    if (field->flags & FIELD_NULLABLE) {
        int present = get_presence(in, field);
        if (present <= 0) {
            set_defaults(self, inner, 1);
            return present;
        }
    }
    if (!inner->certain) set_defaults(self, inner, 0);
    return read_struct(self, in, inner);
}

static int read_field(reading *self, reader *in, const node *here, const field_plan *field) {
    const mark *mark = &here->marks[field - here->plan->fields];
    if (mark->below) return read_elements(self, in, field, mark->below);
    if (mark->inner) return read_inner(self, in, field, mark->inner);
    if (mark->column >= 0) self->made.columns[mark->column].next = *in;
    return validate_field(in, field);
}

static int read_tags(reading *self, reader *in, const node *here, uint32_t count) {
    if ((Py_ssize_t)count > left_of(in) / 2) return -1;
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(in, here->plan, &last, &size)) return -1;
        const uint8_t *end = in->at + size;
        const field_plan *field = field_of_tag(here->plan, (uint32_t)last);
        if (field == NULL)
            in->at = end;
        else if (read_field(self, in, here, field) || in->at != end)
            return -1;
    }
    return 0;
}

static int read_struct(reading *self, reader *in, const node *here) {
    const struct_plan *plan = here->plan;
    const mark *mark = here->marks;
    for (const field_plan *field = INLINE(plan), *end = TAGGED(plan); field < end;) {
        if (field->run) { /* all of the run is there, or none of it is looked at */
            Py_ssize_t bytes = field->run;
            if (UNLIKELY(bytes > left_of(in))) return -1;
            for (; bytes; field++, mark++) {
                if (mark->column >= 0) self->made.columns[mark->column].next = *in;
                bytes -= width_of[field->kind];
                in->at += width_of[field->kind];
            }
        } else {
            if (UNLIKELY(read_field(self, in, here, field))) return -1;
            field++, mark++;
        }
    }
    if (!plan->flexible) return 0;
    uint32_t count;
    if (UNLIKELY(get_varint(in, &count))) return -1;
    return UNLIKELY(count) ? read_tags(self, in, here, count) : 0;
}

static int read_level(reading *self, reader *in, const level *at) {
    Py_ssize_t before = self->made.rows;
    if (!at->root->certain) set_defaults(self, at->root, 0);
    if (UNLIKELY(read_struct(self, in, at->root))) return -1;
    if (at->below == NULL) self->made.rows++;
    Py_ssize_t rows = self->made.rows - before;
    for (Py_ssize_t i = 0; rows && i < at->column_count; i++)
        if (UNLIKELY(put_rows(&self->made, &self->made.columns[at->columns[i]], rows))) return -1;
    return 0;
}

/* One body, which has to fill its bytes. 0; -1 with its rows taken back where it is bad or, `full`
   being set, takes more than the limit; -2 with an exception. */
static int read_body(reading *self, const uint8_t *start, Py_ssize_t size, Py_ssize_t index) {
    static const uint8_t nothing;
    if (start == NULL) start = &nothing;
    const struct_plan *root = self->selection->levels[0].root->plan;
    table *made = &self->made;
    table_mark(made);
    Py_ssize_t before = made->rows;
    reader in = {start, start + size};
    if (LIKELY(!read_level(self, &in, self->selection->levels) && in.at == in.end &&
               !put_frame(made, index, made->rows - before)))
        return 0;
    if (PyErr_Occurred()) return -2;
    int full = made->full;
    table_take_back(made);
    in = (reader){start, start + size};
    made->full = full && !validate_struct(&in, root) && in.at == in.end;
    return -1;
}

static int read_object(reading *self, PyObject *body, Py_ssize_t index, PyObject *failed) {
    Py_buffer view = {0};
    int result;
    if (LIKELY(PyBytes_CheckExact(body))) {
        const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(body);
        result = read_body(self, start, PyBytes_GET_SIZE(body), index);
    } else {
        if (PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)) return -2;
        result = read_body(self, view.buf, view.len, index);
    }
    if (result == -1 && !self->made.full) {
        /* The bytes as they were: whose buffer it is may change them before they are looked at. */
        PyObject *copy = view.obj ? PyBytes_FromStringAndSize(view.buf, view.len)
                                  : Py_NewRef(body);
        PyObject *item = copy ? Py_BuildValue("(nN)", index, copy) : NULL;
        if (item == NULL || PyList_Append(failed, item)) result = -2;
        Py_XDECREF(item);
    }
    if (view.obj) PyBuffer_Release(&view);
    return result;
}

static int begin(reading *self, const selection_object *selection, Py_ssize_t limit) {
    size_t count = (size_t)selection->column_count;
    table *made = &self->made;
    self->selection = selection;
    made->limit = limit;
    made->columns = PyMem_Calloc(count, sizeof *made->columns);
    if (made->columns == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    made->column_count = selection->column_count;
    for (size_t i = 0; i < count; i++) made->columns[i].field = selection->columns[i].field;
    return table_begin(made);
}

static PyObject *selection_read(selection_object *self, PyObject *args) {
    PyObject *bodies, *made = NULL;
    Py_ssize_t limit, full_at = -1;
    int collect;
    if (!PyArg_ParseTuple(args, "O!np:read", &PyTuple_Type, &bodies, &limit, &collect)) return NULL;
    if (limit < 4 || limit > INT32_MAX || PyTuple_GET_SIZE(bodies) > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a limit from 4 to 2^31 - 1, and bodies up to that many");
        return NULL;
    }
    PyObject *failed = PyList_New(0);
    reading state = {0};
    if (failed == NULL || begin(&state, self, limit)) goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bodies); i++) {
        int result = read_object(&state, PyTuple_GET_ITEM(bodies, i), i, failed);
        if (result == -2) goto done;
        if (state.made.full) full_at = i;
        if (state.made.full || (result && !collect)) break;
    }
    made = table_finish(&state.made, failed, full_at);
done:
    table_free(&state.made);
    Py_XDECREF(failed);
    return made;
}

/* ---- compiling ---------------------------------------------------------------------------------- */

static int refuse(const char *why) {
    PyErr_Format(PyExc_ValueError, "no selection: %s", why);
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

/* The field that a path of positions ends in, and the node it is in; structs on the way are entered.
   NULL and an exception where there is no such place, or it is taken. */
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

/* A default has to read like any other value: nothing looks at it again. */
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
    if (field->inner) return refuse("a struct is no column");
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
    if (field->kind != KIND_ARRAY || !field->inner) return refuse("a level is no array of structs");
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
