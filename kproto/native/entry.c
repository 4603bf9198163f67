/* Message.decode, .encode and .validate as C methods. For a small message, one more call of Python
   takes as long as the decoding: without them, decoding a heartbeat takes 2.55 times as long.
   They handle one case: the usual arguments, a version that the class has used before, a plan's
   codec, and success. All else goes to the Python methods that they replace, which start over.
   Arguments are thus parsed, codecs made and errors raised in only one place. */
#include "classes.h"

static PyObject *python_decode, *python_encode, *python_validate; /* self or cls first */

/* Calls the Python method with all arguments. */
static PyObject *in_python(PyObject *function, PyObject *self, PyObject *const *args,
                           Py_ssize_t count, PyObject *names) {
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject **all = PyMem_Malloc((size_t)(total + 1) * sizeof *all);
    if (all == NULL) return PyErr_NoMemory();
    all[0] = self;
    for (Py_ssize_t i = 0; i < total; i++) all[i + 1] = args[i];
    PyObject *result = PyObject_Vectorcall(function, all, (size_t)count + 1, names);
    PyMem_Free(all);
    return result;
}

/* Runs a plan over all of `data`. Returns 1 if it took exactly that. `*made` stays NULL when
   validating. */
static int reads_all(plan_object *plan, PyObject *data, PyObject **made) {
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    const struct_plan *root = &plan->structs[plan->struct_count - 1];
    reader in = {start, start + PyBytes_GET_SIZE(data)};
    Py_INCREF(plan); /* Python code that runs meanwhile may empty the dict that holds the plan */
    int taken = made ? (*made = decode_struct(&in, root)) != NULL : !validate_struct(&in, root);
    Py_DECREF(plan);
    if (LIKELY(taken && in.at == in.end)) return 1;
    if (made) Py_CLEAR(*made);
    return 0;
}

/* Whether these are the arguments that C handles: data as bytes, and a version. */
static inline int is_usual(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return count == 2 && names == NULL && PyBytes_CheckExact(args[0]);
}

static PyObject *decode(PyObject *cls, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *message = NULL;
    if (LIKELY(is_usual(args, count, names))) {
        plan_object *plan = plan_of((PyTypeObject *)cls, DECODERS, args[1]);
        if (LIKELY(plan != NULL && reads_all(plan, args[0], &message))) return message;
        if (forget_error()) return NULL;
    }
    return in_python(python_decode, cls, args, count, names);
}

static PyObject *validate(PyObject *cls, PyObject *const *args, Py_ssize_t count,
                          PyObject *names) {
    if (LIKELY(is_usual(args, count, names))) {
        plan_object *plan = plan_of((PyTypeObject *)cls, VALIDATORS, args[1]);
        if (LIKELY(plan != NULL && reads_all(plan, args[0], NULL))) Py_RETURN_NONE;
        if (forget_error()) return NULL;
    }
    return in_python(python_validate, cls, args, count, names);
}

static PyObject *encode(PyObject *self, PyObject *const *args, Py_ssize_t count,
                        PyObject *names) {
    if (LIKELY(count == 1 && names == NULL)) {
        plan_object *plan = plan_of(Py_TYPE(self), ENCODERS, args[0]);
        PyObject *body = LIKELY(plan != NULL) ? encode_message(plan, self) : NULL;
        if (LIKELY(body != NULL)) return body;
        if (forget_error()) return NULL;
    }
    return in_python(python_encode, self, args, count, names);
}

/* The same for `message.encode(version)`, which makes no bound method: method_descriptor's own path
   to `encode` takes longer than finding the plan. Unusual calls take that path. */
static vectorcallfunc call_descriptor;

static PyObject *call_encode(PyObject *descriptor, PyObject *const *args, size_t count,
                             PyObject *names) {
    if (LIKELY(PyVectorcall_NARGS(count) == 2 && names == NULL)) {
        plan_object *plan = plan_of(Py_TYPE(args[0]), ENCODERS, args[1]);
        PyObject *body = LIKELY(plan != NULL) ? encode_message(plan, args[0]) : NULL;
        if (LIKELY(body != NULL)) return body;
        if (forget_error()) return NULL;
    }
    return call_descriptor(descriptor, args, count, names);
}

#define FLAGS (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef decode_method = {
    "decode", (PyCFunction)(void (*)(void))decode, FLAGS,
    "decode($type, data, version, *, allow_trailing=False)\n--\n\n"
    "Read one body that fills ``data``. Raises DecodeError with offset and path."};
static PyMethodDef validate_method = {
    "validate", (PyCFunction)(void (*)(void))validate, FLAGS,
    "validate($type, data, version, *, allow_trailing=False)\n--\n\n"
    "As ``decode``, and raises what it raises, but makes no message."};
static PyMethodDef encode_method = {
    "encode", (PyCFunction)(void (*)(void))encode, FLAGS,
    "encode($self, version)\n--\n\n"
    "The body's bytes at ``version``: no size, no header. Raises UnsupportedVersionError and "
    "EncodeError."};

static PyObject *new_encode(PyTypeObject *type) {
    PyObject *made = PyDescr_NewMethod(type, &encode_method);
    if (made == NULL) return NULL;
    call_descriptor = ((PyMethodDescrObject *)made)->vectorcall;
    ((PyMethodDescrObject *)made)->vectorcall = call_encode;
    return made;
}

/* methods_of(Message, decode, encode, validate) -> the C methods, by name, for that class. */
PyObject *methods_of(PyObject *module, PyObject *args) {
    PyObject *cls, *functions[3];
    PyTypeObject *type;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOO:methods_of", &PyType_Type, &cls, &functions[0],
                          &functions[1], &functions[2]))
        return NULL;
    type = (PyTypeObject *)cls;
    PyObject **places[3] = {&python_decode, &python_encode, &python_validate};
    for (int i = 0; i < 3; i++) keep(places[i], functions[i]);
    if (set_up_classes(&decode_method, &validate_method)) return NULL;
    return Py_BuildValue("{sNsNsN}", "decode", new_class_method(type, BOUND_DECODE), "encode",
                         new_encode(type), "validate",
                         new_class_method(type, BOUND_VALIDATE));
}
