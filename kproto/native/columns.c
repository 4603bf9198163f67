/* Reads many bodies into columns without making an object for each value.
   A selection is a plan with marks: which fields become columns, and which array of structs is
   entered at each level. Each element of the deepest array is a row. validate.c skips everything
   else, so this file accepts what decode.c accepts.
   While a struct is read, a selected field only records where its value begins. Once the struct is
   complete and the rows below it are counted, the value is put into its column, once per row; or, of
   `locate`, only its place is noted (places.c). An
   invalid body removes its rows. Nothing is reserved for a count that is only announced.
   Python code may run where a body is not a bytes object (its buffer is requested), between bodies.
   It can reach neither the table being made nor the tuple of bodies. */
#include "columns.h"

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

/* The initial values of a struct: its defaults, or nulls if it is null itself. */
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
        if (field->run) { /* the run is complete, or none of it is read */
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

/* ---- places of `locate` (places.c) --------------------------------------------------------------- */

enum { FIRST_ROWS = 8 };

static const place nowhere = {-1, -1};

static place place_of(const places *in, const column *of) {
    reader value = of->next;
    int64_t size = width_of[of->field->kind];
    if (value.at == NULL || value.end != in->end) return nowhere; /* a null, or a default */
    if (!size && (get_length(&value, of->field, of->field->kind == KIND_STRING, &size) || size < 0))
        return nowhere;
    return (place){(int32_t)(value.at - in->start), (int32_t)size};
}

/* Room for so many rows in all. */
static int make_room(places *in, Py_ssize_t rows, Py_ssize_t row_size) {
    if (in->bytes == NULL) {
        in->bytes = PyBytes_FromStringAndSize(NULL, row_size * (rows + FIRST_ROWS));
        return in->bytes ? 0 : -1;
    }
    if (rows * row_size <= PyBytes_GET_SIZE(in->bytes)) return 0;
    return _PyBytes_Resize(&in->bytes, row_size * (rows + rows / 2));
}

static int note_places(reading *self, const level *at, Py_ssize_t before) {
    table *made = &self->made;
    Py_ssize_t row_size = made->column_count * (Py_ssize_t)sizeof(place);
    if (UNLIKELY(made->rows > made->limit / row_size)) {
        made->full = 1;
        return -1;
    }
    if (made->rows == before) return 0;
    if (UNLIKELY(make_room(self->noted, made->rows, row_size))) return -1;
    char *rows = PyBytes_AS_STRING(self->noted->bytes);
    for (Py_ssize_t i = 0; i < at->column_count; i++) {
        Py_ssize_t index = at->columns[i];
        place found = place_of(self->noted, &made->columns[index]);
        char *to = rows + before * row_size + index * (Py_ssize_t)sizeof found;
        for (Py_ssize_t row = before; row < made->rows; row++, to += row_size)
            memcpy(to, &found, sizeof found);
    }
    return 0;
}

int read_level(reading *self, reader *in, const level *at) {
    Py_ssize_t before = self->made.rows;
    if (!at->root->certain) set_defaults(self, at->root, 0);
    if (UNLIKELY(read_struct(self, in, at->root))) return -1;
    if (at->below == NULL) self->made.rows++;
    if (self->noted != NULL) return note_places(self, at, before);
    Py_ssize_t rows = self->made.rows - before;
    for (Py_ssize_t i = 0; rows && i < at->column_count; i++)
        if (UNLIKELY(put_rows(&self->made, &self->made.columns[at->columns[i]], rows))) return -1;
    return 0;
}

/* Reads one body, which must fill its bytes. Returns 0; -1 with its rows removed if it is invalid
   or, with `full` set, exceeds the limit; -2 with an exception. */
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
        /* Copies the bytes: the owner of the buffer may change them before they are read. */
        PyObject *copy = view.obj ? PyBytes_FromStringAndSize(view.buf, view.len)
                                  : Py_NewRef(body);
        PyObject *item = copy ? Py_BuildValue("(nN)", index, copy) : NULL;
        if (item == NULL || PyList_Append(failed, item)) result = -2;
        Py_XDECREF(item);
    }
    if (view.obj) PyBuffer_Release(&view);
    return result;
}

int reading_begin(reading *self, const selection_object *selection, Py_ssize_t limit) {
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

PyObject *selection_read(selection_object *self, PyObject *args) {
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
    if (failed == NULL || reading_begin(&state, self, limit)) goto done;
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
