/* The module kproto.native._engine: plans as Python objects, and the fallback to Python where the
   engine gives up. */
#include "columns.h"
#include "engine.h"

engine_state engine;

static int parse_place(const char *name, PyObject *const *args, Py_ssize_t count,
                       Py_ssize_t *offset) {
    *offset = 0;
    if (count < 1 || count > 2) {
        PyErr_Format(PyExc_TypeError, "%s(data, offset=0)", name);
        return -1;
    }
    if (count == 2) {
        *offset = PyNumber_AsSsize_t(args[1], PyExc_OverflowError);
        if (*offset == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* Runs `door` over the bytes from `offset`. Returns 1 if it accepted them, 0 if it gave up, and -1
   with an exception if `data` is not a contiguous buffer. */
static int read_with(const plan_object *self, PyObject *data, Py_ssize_t offset, int build,
                     PyObject **made, Py_ssize_t *end) {
    Py_buffer view = {0};
    const uint8_t *start;
    Py_ssize_t size;
    if (LIKELY(PyBytes_CheckExact(data))) {
        start = (const uint8_t *)PyBytes_AS_STRING(data);
        size = PyBytes_GET_SIZE(data);
    } else {
        if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)) return -1;
        start = view.buf;
        size = view.len;
    }
    int taken = 0;
    if (offset >= 0 && offset <= size) {
        const struct_plan *root = &self->structs[self->struct_count - 1];
        static const uint8_t nothing;
        if (start == NULL) start = &nothing;
        reader in = {start + offset, start + size};
        if (build)
            taken = (*made = decode_struct(&in, root)) != NULL;
        else
            taken = !validate_struct(&in, root);
        *end = in.at - start;
    }
    if (view.obj) PyBuffer_Release(&view);
    return taken;
}

static PyObject *pair(PyObject *message, Py_ssize_t end) {
    PyObject *result = PyTuple_New(2), *place = PyLong_FromSsize_t(end);
    if (result == NULL || place == NULL) {
        Py_XDECREF(result);
        Py_XDECREF(place);
        Py_DECREF(message);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, message);
    PyTuple_SET_ITEM(result, 1, place);
    return result;
}

static PyObject *plan_decode(plan_object *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t offset, end;
    PyObject *message = NULL;
    if (parse_place("decode", args, count, &offset)) return NULL;
    int taken = read_with(self, args[0], offset, 1, &message, &end);
    if (LIKELY(taken > 0)) return pair(message, end);
    if (taken < 0 || forget_error()) return NULL;
    PyObject *place = PyLong_FromSsize_t(offset);
    if (place == NULL) return NULL;
    PyObject *result =
        PyObject_CallFunctionObjArgs(self->explain_decode, args[0], place, (PyObject *)NULL);
    Py_DECREF(place);
    return result;
}

static PyObject *plan_validate(plan_object *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t offset, end;
    if (parse_place("validate", args, count, &offset)) return NULL;
    int taken = read_with(self, args[0], offset, 0, NULL, &end);
    if (LIKELY(taken > 0)) return PyLong_FromSsize_t(end);
    if (taken < 0 || forget_error()) return NULL;
    PyObject *place = PyLong_FromSsize_t(offset);
    if (place == NULL) return NULL;
    PyObject *result =
        PyObject_CallFunctionObjArgs(self->explain_decode, args[0], place, (PyObject *)NULL);
    Py_DECREF(place);
    if (result == NULL) return NULL;
    PyObject *after = PySequence_GetItem(result, 1); /* the interpreter accepted it */
    Py_DECREF(result);
    return after;
}

static PyObject *plan_encode(plan_object *self, PyObject *message) {
    PyObject *body = encode_message(self, message);
    if (LIKELY(body != NULL)) return body;
    if (forget_error()) return NULL;
    return PyObject_CallOneArg(self->explain_encode, message);
}

/* For tests: the engine's own verdict, without the interpreter. */
static PyObject *plan_takes(plan_object *self, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t offset, end;
    PyObject *made = NULL;
    if (parse_place("takes", args, count, &offset)) return NULL;
    int decoded = read_with(self, args[0], offset, 1, &made, &end);
    Py_XDECREF(made);
    if (decoded < 0 || forget_error()) return NULL;
    int validated = read_with(self, args[0], offset, 0, NULL, &end);
    if (validated < 0 || forget_error()) return NULL;
    return Py_BuildValue("(NN)", PyBool_FromLong(decoded), PyBool_FromLong(validated));
}

PyMethodDef plan_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))plan_decode, METH_FASTCALL,
     "decode(data, offset=0) -> (message, end)"},
    {"encode", (PyCFunction)plan_encode, METH_O, "encode(message) -> bytes"},
    {"validate", (PyCFunction)(void (*)(void))plan_validate, METH_FASTCALL,
     "validate(data, offset=0) -> end"},
    {"takes", (PyCFunction)(void (*)(void))plan_takes, METH_FASTCALL,
     "takes(data, offset=0) -> (decoder took it, validator took it), without asking Python"},
    {"select", plan_select, METH_VARARGS,
     "select(levels, count of columns) -> Selection; see kproto.columns"},
    {"printer", plan_printer, METH_VARARGS,
     "printer(fields of each struct, longest bytes) -> Printer; see kproto.codec.json_text"},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ---------------------------------------------------------------------------------- */

static PyObject *set_up(PyObject *module, PyObject *args) {
    PyObject *no_tags, *uuid_type, *uuid_safe, *make_uuid, *struct_meta;
    int assemble;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OOO!p:set_up", &PyDict_Type, &no_tags, &PyType_Type,
                          &uuid_type, &uuid_safe, &make_uuid, &PyType_Type, &struct_meta,
                          &assemble))
        return NULL;
    if (engine.no_tags != NULL && engine.no_tags != no_tags) {
        PyErr_SetString(PyExc_RuntimeError, "the engine is already set up for other classes");
        return NULL;
    }
    for (int i = 0; i < SMALL_INTS; i++) {
        if (engine.small_ints[i] == NULL) engine.small_ints[i] = PyLong_FromLong(SMALLEST + i);
        if (engine.small_ints[i] == NULL) return NULL;
    }
    keep(&engine.no_tags, no_tags);
    keep((PyObject **)&engine.uuid_type, uuid_type);
    keep(&engine.uuid_safe, uuid_safe);
    keep(&engine.make_uuid, make_uuid);
    keep((PyObject **)&engine.struct_meta, struct_meta);
    engine.uuid_int = engine.uuid_is_safe = -1;
    return PyBool_FromLong(assemble && find_uuid_slots());
}

static PyMethodDef functions[] = {
    {"set_up", set_up, METH_VARARGS,
     "set_up(no_tags, UUID, SafeUUID.unknown, make_uuid, StructMeta, assemble) -> whether UUIDs are "
     "assembled in C. Once, before the first Plan; again only with another `assemble`."},
    {"methods_of", methods_of, METH_VARARGS,
     "methods_of(Message, decode, encode, validate) -> {name: C method} that call those functions "
     "for all but the usual."},
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_FASTCALL,
     "crc32c(data, start=0, end=len(data), plain=False) -> CRC-32C of data[start:end]; plain: without "
     "the processor's instruction."},
    {"requests_alike", (PyCFunction)(void (*)(void))requests_alike, METH_FASTCALL,
     "requests_alike(data, at, rest, max_size) -> (correlation ids, end)"},
    {"answers_in_order", (PyCFunction)(void (*)(void))answers_in_order, METH_FASTCALL,
     "answers_in_order(data, at, ids, place, max_size, plan or None) -> (count, end)"},
    {"is_untagged", (PyCFunction)(void (*)(void))is_untagged, METH_FASTCALL,
     "is_untagged(parts, plan) -> whether a response has no tagged fields of header and body"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kproto.native._engine",
    .m_doc = "The C engine; kproto.native is its Python side.",
    .m_size = -1,
    .m_methods = functions,
};

/* Single-phase: the state belongs to the process. A free-threaded interpreter enables its GIL for
   it. */
PyMODINIT_FUNC PyInit__engine(void) {
    set_up_crc32c();
    if (PyType_Ready(&plan_type) < 0 || PyType_Ready(&selection_type) < 0 ||
        PyType_Ready(&printer_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
#define CONSTANT(name, value) \
    if (PyModule_AddIntConstant(module, name, value)) goto failed
    CONSTANT("INTERFACE", 8); /* what compiled.py expects */
    CONSTANT("COMPACT", FIELD_COMPACT);
    CONSTANT("NULLABLE", FIELD_NULLABLE);
    CONSTANT("IGNORABLE", FIELD_IGNORABLE);
    CONSTANT("TAGGED", FIELD_TAGGED);
    CONSTANT("PRINT_SIZE", PRINT_SIZE);
    CONSTANT("PRINT_ERROR_CODE", PRINT_ERROR_CODE);
    CONSTANT("PRINT_THROTTLE", PRINT_THROTTLE);
    CONSTANT("DEFAULT_VALUE", DEFAULT_VALUE);
    CONSTANT("DEFAULT_LIST", DEFAULT_LIST);
    CONSTANT("DEFAULT_STRUCT", DEFAULT_STRUCT);
    PyObject *kinds = Py_BuildValue("(sssssssssssss)", "bool", "int8", "int16", "uint16", "int32",
                                    "uint32", "int64", "float64", "uuid", "string", "bytes",
                                    "struct", "array");
    if (kinds == NULL) goto failed;
    int failed = PyModule_AddObjectRef(module, "KINDS", kinds) ||
                 PyModule_AddObjectRef(module, "Plan", (PyObject *)&plan_type) ||
                 add_record_types(module);
    Py_DECREF(kinds);
    if (!failed) return module;
failed:
    Py_DECREF(module);
    return NULL;
}
