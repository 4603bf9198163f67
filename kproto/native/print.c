/* Prints the bytes of a message as JSON text without making an object for each value.
   The text is that of kproto/codec/json_form.py, encoded by msgspec; as there, tagged fields at
   their default are left out. The printer accepts what validate.c accepts, except for floats and for
   tagged structs with defaults of their own: it then gives up, and Python prints the message.
   Beside the text it collects what readers of many messages need: the error codes other than 0, and
   the throttle time.
   No Python code runs here. */
#include "engine.h"
#include "records.h"

enum { MOST_CODES = 32, MOST_TEXT = 1 << 30, KEPT_TEXT = 1 << 22 };

/* A field to print, in the schema's order. */
typedef struct {
    const field_plan *field;
    const char *key; /* quoted, with its colon */
    Py_ssize_t key_size;
    const char *size_key; /* of PRINT_SIZE */
    Py_ssize_t size_key_size;
    int flags;
} print_step;

typedef struct {
    print_step *steps;
    Py_ssize_t count;
} struct_steps;

typedef struct {
    PyObject_HEAD
    plan_object *plan;
    PyObject *description; /* owns the keys */
    struct_steps *structs; /* one for each of the plan's */
    Py_ssize_t longest;    /* of longer bytes only the size is printed, as a text */
} printer_object;

typedef struct {
    const printer_object *printer;
    char *text;
    Py_ssize_t size, capacity;
    int is_ascii;
    int16_t codes[MOST_CODES];
    int code_count;
    int has_throttle;
    int32_t throttle;
} output;

/* The buffer of the last call, for the next one; the GIL protects it. */
static char *spare;
static Py_ssize_t spare_capacity;

static int SELDOM grow(output *out, Py_ssize_t more) {
    Py_ssize_t capacity = out->capacity ? out->capacity : 1024;
    while (capacity - out->size < more) {
        if (capacity >= MOST_TEXT) return -1;
        capacity *= 2;
    }
    char *text = PyMem_Realloc(out->text, (size_t)capacity);
    if (text == NULL) return -1;
    out->text = text;
    out->capacity = capacity;
    return 0;
}

static inline int need(output *out, Py_ssize_t more) {
    return LIKELY(out->capacity - out->size >= more) ? 0 : grow(out, more);
}

/* ---- values ----------------------------------------------------------------------------------- */

enum { LONGEST_NUMBER = 20 };

static inline void put_text(output *out, const char *text, Py_ssize_t size) {
    copy_bytes(out->text + out->size, text, size);
    out->size += size;
}

/* Needs room for LONGEST_NUMBER. */
static inline void put_number(output *out, int64_t value) {
    char digits[LONGEST_NUMBER], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0) *--at = '-';
    put_text(out, at, digits + sizeof digits - at);
}

static int put_string(output *out, const uint8_t *p, Py_ssize_t size) {
    static const char hex[] = "0123456789abcdef";
    if (!is_ascii(p, size)) {
        if (!is_utf8(p, size)) return -1;
        out->is_ascii = 0;
    }
    if (need(out, 6 * size + 2)) return -1;
    char *to = out->text + out->size;
    *to++ = '"';
    for (const uint8_t *end = p + size; p < end; p++) {
        if (LIKELY(*p >= 0x20 && *p != '"' && *p != '\\')) {
            *to++ = (char)*p;
            continue;
        }
        *to++ = '\\';
        switch (*p) {
        case '"': *to++ = '"'; break;
        case '\\': *to++ = '\\'; break;
        case '\b': *to++ = 'b'; break;
        case '\f': *to++ = 'f'; break;
        case '\n': *to++ = 'n'; break;
        case '\r': *to++ = 'r'; break;
        case '\t': *to++ = 't'; break;
        default:
            memcpy(to, "u00", 3);
            to[3] = hex[*p >> 4];
            to[4] = hex[*p & 15];
            to += 5;
        }
    }
    *to++ = '"';
    out->size = to - out->text;
    return 0;
}

static const char STANDARD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char URL_SAFE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int put_base64(output *out, const uint8_t *p, Py_ssize_t size, const char *alphabet,
                      int is_padded) {
    if (size >= MOST_TEXT / 2 || need(out, (size + 2) / 3 * 4 + 2)) return -1;
    char *to = out->text + out->size;
    *to++ = '"';
    for (; size >= 3; size -= 3, p += 3) {
        uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 63];
        *to++ = alphabet[bits >> 6 & 63];
        *to++ = alphabet[bits & 63];
    }
    if (size) {
        uint32_t bits = (uint32_t)p[0] << 16 | (size > 1 ? (uint32_t)p[1] << 8 : 0);
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 63];
        if (size > 1)
            *to++ = alphabet[bits >> 6 & 63];
        else if (is_padded)
            *to++ = '=';
        if (is_padded) *to++ = '=';
    }
    *to++ = '"';
    out->size = to - out->text;
    return 0;
}

static int put_bytes(output *out, const uint8_t *p, Py_ssize_t size) {
    if (size <= out->printer->longest) return put_base64(out, p, size, STANDARD, 1);
    if (need(out, LONGEST_NUMBER + 10)) return -1;
    put_text(out, "\"(", 2);
    put_number(out, size);
    put_text(out, " bytes)\"", 8);
    return 0;
}

static inline int64_t get_integer(int kind, const uint8_t *p) {
    switch (kind) {
    case KIND_BOOL: return *p != 0;
    case KIND_INT8: return (int8_t)*p;
    case KIND_INT16: return (int16_t)get16(p);
    case KIND_UINT16: return get16(p);
    case KIND_INT32: return (int32_t)get32(p);
    case KIND_UINT32: return get32(p);
    default: return (int64_t)get64(p);
    }
}

/* A value of a fixed width, which is known to be there. */
static inline int put_fixed(output *out, int kind, const uint8_t *p) {
    if (UNLIKELY(kind == KIND_FLOAT64)) return -1;
    if (kind == KIND_UUID) return put_base64(out, p, 16, URL_SAFE, 0);
    if (need(out, LONGEST_NUMBER)) return -1;
    if (kind == KIND_BOOL)
        put_text(out, *p ? "true" : "false", *p ? 4 : 5);
    else
        put_number(out, get_integer(kind, p));
    return 0;
}

static inline int put_null(output *out, int nullable) {
    if (!nullable || need(out, 4)) return -1;
    put_text(out, "null", 4);
    return 0;
}

/* ---- fields ----------------------------------------------------------------------------------- */

static int print_struct(output *out, reader *in, const struct_plan *plan);

static int print_blob(output *out, reader *in, const field_plan *field, int is_string,
                      int nullable) {
    int64_t size;
    if (UNLIKELY(get_length(in, field, is_string, &size))) return -1;
    if (size < 0) return put_null(out, nullable);
    if (UNLIKELY(size > left_of(in) || (is_string && size > MOST_STRING))) return -1;
    const uint8_t *p = in->at;
    in->at += size;
    return is_string ? put_string(out, p, (Py_ssize_t)size)
                     : put_bytes(out, p, (Py_ssize_t)size);
}

static int print_array(output *out, reader *in, const field_plan *field) {
    int64_t count;
    if (UNLIKELY(get_length(in, field, 0, &count))) return -1;
    if (count < 0) return put_null(out, field->flags & FIELD_NULLABLE);
    if (UNLIKELY(!may_hold(in, field, count)) || need(out, 2)) return -1;
    Py_ssize_t width = width_of[field->element];
    out->text[out->size++] = '[';
    for (int64_t i = 0; i < count; i++) {
        int failed;
        if (i) {
            if (need(out, 1)) return -1;
            out->text[out->size++] = ',';
        }
        if (width) {
            failed = put_fixed(out, field->element, in->at);
            in->at += width;
        } else if (field->element == KIND_STRUCT) {
            failed = print_struct(out, in, field->inner);
        } else {
            failed = print_blob(out, in, field, field->element == KIND_STRING, 0);
        }
        if (UNLIKELY(failed)) return -1;
    }
    if (need(out, 1)) return -1;
    out->text[out->size++] = ']';
    return 0;
}

static int print_value(output *out, reader *in, const field_plan *field) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return print_blob(out, in, field, 1, nullable);
    case KIND_BYTES: return print_blob(out, in, field, 0, nullable);
    case KIND_ARRAY: return print_array(out, in, field);
    case KIND_STRUCT:
        if (nullable) {
            int present = get_presence(in, field);
            if (present <= 0) return present ? -1 : put_null(out, 1);
        }
        return print_struct(out, in, field->inner);
    default: {
        const uint8_t *p = in->at;
        if (UNLIKELY(left_of(in) < width_of[field->kind])) return -1;
        in->at += width_of[field->kind];
        return put_fixed(out, field->kind, p);
    }
    }
}

static int note_code(output *out, int16_t code) {
    for (int i = 0; i < out->code_count; i++)
        if (out->codes[i] == code) return 0;
    if (out->code_count == MOST_CODES) return -1;
    out->codes[out->code_count++] = code;
    return 0;
}

static int print_size(output *out, reader *in, const print_step *step) {
    reader ahead = *in;
    int64_t size;
    if (get_length(&ahead, step->field, 0, &size) || size > left_of(&ahead)) return -1;
    if (size >= 0) {
        put_text(out, step->size_key, step->size_key_size);
        put_number(out, size);
        in->at = ahead.at + size;
        return 0;
    }
    put_text(out, step->key, step->key_size);
    return print_value(out, in, step->field);
}

static int print_step_of(output *out, reader *in, const print_step *step, int *is_first) {
    if (need(out, 1 + step->key_size + step->size_key_size + LONGEST_NUMBER)) return -1;
    if (!*is_first) out->text[out->size++] = ',';
    *is_first = 0;
    if (step->flags) {
        if (step->flags & PRINT_SIZE) return print_size(out, in, step);
        const uint8_t *p = in->at;
        if (left_of(in) < width_of[step->field->kind]) return -1;
        if (step->flags & PRINT_THROTTLE) {
            out->has_throttle = 1;
            out->throttle = (int32_t)get32(p);
        } else if (get16(p) && note_code(out, (int16_t)get16(p))) {
            return -1;
        }
    }
    put_text(out, step->key, step->key_size);
    return print_value(out, in, step->field);
}

/* ---- tagged fields ---------------------------------------------------------------------------- */

/* Whether the valid value in front is the field's default: 1, 0, or -1 where Python must decide. */
static int is_default_in(reader in, const field_plan *field) {
    PyObject *expected = field->default_value;
    int64_t size;
    int is_string = field->kind == KIND_STRING;
    if (field->default_mode == DEFAULT_STRUCT || field->kind == KIND_FLOAT64) return -1;
    if (field->kind == KIND_STRUCT)
        return field->flags & FIELD_NULLABLE ? !get_presence(&in, field) : -1;
    if (width_of[field->kind]) {
        uint8_t id[16];
        if (field->kind == KIND_UUID)
            return put_uuid(id, expected) ? -1 : !memcmp(id, in.at, sizeof id);
        if (!PyLong_Check(expected)) return -1;
        int64_t number = PyLong_AsLongLong(expected);
        if (number == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
        return number == get_integer(field->kind, in.at);
    }
    if (get_length(&in, field, is_string, &size)) return -1;
    if (field->default_mode == DEFAULT_LIST) return size == 0;
    if (expected == Py_None) return size < 0;
    const char *text;
    Py_ssize_t length;
    if (is_string && PyUnicode_Check(expected)) {
        text = PyUnicode_AsUTF8AndSize(expected, &length);
        if (text == NULL) {
            PyErr_Clear();
            return -1;
        }
    } else if (field->kind == KIND_BYTES && PyBytes_Check(expected)) {
        text = PyBytes_AS_STRING(expected);
        length = PyBytes_GET_SIZE(expected);
    } else {
        return -1;
    }
    return size == length && !memcmp(text, in.at, (size_t)length);
}

/* Reads the tagged section. `found` gets the values to print, by the place of the tagged field.
   Returns how many there are, or -1. */
static int find_tagged(reader *in, const struct_plan *plan, uint32_t count, reader *found) {
    if ((Py_ssize_t)count > left_of(in) / 2) return -1;
    int64_t last = -1;
    int number = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(in, plan, &last, &size)) return -1;
        const uint8_t *end = in->at + size;
        const field_plan *field = field_of_tag(plan, (uint32_t)last);
        if (field != NULL) {
            reader value = *in;
            if (validate_field(in, field) || in->at != end) return -1;
            int is_default = is_default_in(value, field);
            if (is_default < 0) return -1;
            if (!is_default) {
                found[field - TAGGED(plan)] = value;
                number++;
            }
        }
        in->at = end;
    }
    return number;
}

/* Prints a struct again, with tagged fields where the schema has them. */
static int SELDOM print_with_tagged(output *out, reader in, const struct_plan *plan,
                                    const struct_steps *steps, reader *found) {
    int is_first = 1;
    for (const print_step *step = steps->steps; step < steps->steps + steps->count; step++) {
        reader *from = &in;
        if (step->field->flags & FIELD_TAGGED) {
            from = &found[step->field - TAGGED(plan)];
            if (from->at == NULL) continue;
        }
        if (print_step_of(out, from, step, &is_first)) return -1;
    }
    return 0;
}

static int SELDOM print_tagged(output *out, reader *in, reader begin, Py_ssize_t start,
                               const struct_plan *plan, const struct_steps *steps, uint32_t count) {
    reader found[MOST_TAGGED] = {{0}};
    int number = find_tagged(in, plan, count, found);
    if (number <= 0) return number;
    out->size = start;
    return print_with_tagged(out, begin, plan, steps, found);
}

static int print_struct(output *out, reader *in, const struct_plan *plan) {
    const struct_steps *steps = &out->printer->structs[plan - out->printer->plan->structs];
    if (need(out, 2)) return -1;
    out->text[out->size++] = '{';
    Py_ssize_t start = out->size;
    reader begin = *in;
    int is_first = 1;
    for (const print_step *step = steps->steps; step < steps->steps + steps->count; step++)
        if (!(step->field->flags & FIELD_TAGGED) && print_step_of(out, in, step, &is_first))
            return -1;
    if (plan->flexible) {
        uint32_t count;
        if (UNLIKELY(get_varint(in, &count))) return -1;
        if (UNLIKELY(count) && print_tagged(out, in, begin, start, plan, steps, count)) return -1;
    }
    if (need(out, 1)) return -1;
    out->text[out->size++] = '}';
    return 0;
}

/* ---- the Python type -------------------------------------------------------------------------- */

static PyObject *result_of(const output *out, Py_ssize_t end) {
    PyObject *text, *codes = PyTuple_New(out->code_count), *throttle;
    if (out->is_ascii) {
        text = PyUnicode_New(out->size, 127);
        if (text != NULL) memcpy(PyUnicode_1BYTE_DATA(text), out->text, (size_t)out->size);
    } else {
        text = PyUnicode_DecodeUTF8(out->text, out->size, "strict");
    }
    throttle = out->has_throttle ? PyLong_FromLong(out->throttle) : Py_NewRef(Py_None);
    for (int i = 0; codes != NULL && i < out->code_count; i++) {
        PyObject *code = PyLong_FromLong(out->codes[i]);
        if (code == NULL) Py_CLEAR(codes);
        if (codes != NULL) PyTuple_SET_ITEM(codes, i, code);
    }
    if (text == NULL || codes == NULL || throttle == NULL) {
        Py_XDECREF(text);
        Py_XDECREF(codes);
        Py_XDECREF(throttle);
        return NULL;
    }
    return Py_BuildValue("(NnNN)", text, end, codes, throttle);
}

static PyObject *print_text(printer_object *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "print(bytes, offset)");
        return NULL;
    }
    Py_ssize_t offset = PyNumber_AsSsize_t(args[1], PyExc_OverflowError);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]);
    if (offset < 0 || offset > size) Py_RETURN_NONE;
    output out = {.printer = self, .text = spare, .capacity = spare_capacity, .is_ascii = 1};
    spare = NULL;
    spare_capacity = 0;
    reader in = {start + offset, start + size};
    const struct_plan *root = &self->plan->structs[self->plan->struct_count - 1];
    int failed = print_struct(&out, &in, root);
    PyObject *result = failed ? Py_NewRef(Py_None) : result_of(&out, in.at - start);
    if (spare == NULL && out.capacity <= KEPT_TEXT) {
        spare = out.text;
        spare_capacity = out.capacity;
    } else {
        PyMem_Free(out.text);
    }
    return result;
}

static void printer_free(printer_object *self) {
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; self->structs && i < self->plan->struct_count; i++)
        PyMem_Free(self->structs[i].steps);
    PyMem_Free(self->structs);
    Py_XDECREF(self->plan);
    Py_XDECREF(self->description);
    PyObject_GC_Del(self);
}

static int printer_traverse(printer_object *self, visitproc visit, void *arg) {
    Py_VISIT(self->plan);
    return 0;
}

/* (place among the inline and tagged fields, key, key of the size, flags) */
static int add_step(const struct_plan *plan, PyObject *given, print_step *step,
                    Py_ssize_t *next_inline) {
    Py_ssize_t place;
    if (!PyTuple_Check(given) ||
        !PyArg_ParseTuple(given, "ny#y#i", &place, &step->key, &step->key_size, &step->size_key,
                          &step->size_key_size, &step->flags))
        return -1;
    if (place < 0 || place >= ABSENT(plan) - plan->fields) return -1;
    const field_plan *field = step->field = &plan->fields[place];
    int is_inline = field < TAGGED(plan);
    if (is_inline != !(field->flags & FIELD_TAGGED)) return -1;
    if (is_inline && place != (*next_inline)++) return -1;
    if (step->flags & PRINT_SIZE) return field->kind == KIND_BYTES && step->flags == PRINT_SIZE ? 0 : -1;
    if (step->flags == PRINT_THROTTLE) return field->kind == KIND_INT32 ? 0 : -1;
    if (step->flags == PRINT_ERROR_CODE) return field->kind == KIND_INT16 ? 0 : -1;
    return step->flags ? -1 : 0;
}

static int add_steps(printer_object *self, Py_ssize_t index, PyObject *given) {
    const struct_plan *plan = &self->plan->structs[index];
    struct_steps *steps = &self->structs[index];
    Py_ssize_t count = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : -1, next_inline = 0;
    if (count != ABSENT(plan) - plan->fields) return -1;
    steps->steps = PyMem_Calloc((size_t)count + 1, sizeof *steps->steps);
    if (steps->steps == NULL) return -1;
    for (; steps->count < count; steps->count++)
        if (add_step(plan, PyTuple_GET_ITEM(given, steps->count), &steps->steps[steps->count],
                     &next_inline))
            return -1;
    return 0;
}

PyObject *plan_printer(PyObject *plan, PyObject *args) {
    PyObject *description;
    Py_ssize_t longest;
    if (!PyArg_ParseTuple(args, "O!n:printer", &PyTuple_Type, &description, &longest)) return NULL;
    if (PyTuple_GET_SIZE(description) != ((plan_object *)plan)->struct_count) {
        PyErr_SetString(PyExc_ValueError, "printer(one tuple for each struct, longest bytes)");
        return NULL;
    }
    printer_object *self = PyObject_GC_New(printer_object, &printer_type);
    if (self == NULL) return NULL;
    self->plan = (plan_object *)Py_NewRef(plan);
    self->description = Py_NewRef(description);
    self->longest = longest;
    self->structs = PyMem_Calloc((size_t)self->plan->struct_count, sizeof *self->structs);
    PyObject_GC_Track(self);
    int failed = self->structs == NULL;
    for (Py_ssize_t i = 0; !failed && i < self->plan->struct_count; i++)
        failed = add_steps(self, i, PyTuple_GET_ITEM(description, i));
    if (!failed) return (PyObject *)self;
    Py_DECREF(self);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the steps do not match the plan");
    return NULL;
}

static PyMethodDef printer_methods[] = {
    {"print", (PyCFunction)(void (*)(void))print_text, METH_FASTCALL,
     "print(data, offset) -> (text, end, error codes, throttle time or None); None where Python must "
     "print."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject printer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.Printer",
    .tp_doc = "A message at one version, printed as JSON. Plan.printer makes one.",
    .tp_basicsize = sizeof(printer_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = (destructor)printer_free,
    .tp_traverse = (traverseproc)printer_traverse,
    .tp_methods = printer_methods,
};
