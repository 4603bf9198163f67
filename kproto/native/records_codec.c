/* RecordCodec: the class whose methods read and write the records of batches. */
#include "records.h"

static void codec_free(record_codec *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->type);
    Py_TYPE(self)->tp_free(self);
}

static int codec_traverse(record_codec *self, visitproc visit, void *arg) {
    Py_VISIT(self->type);
    return 0;
}

/* Lets the class make a record of values known by identity, and checks where they are stored. */
static int find_members(record_codec *self) {
    static const char *const names[] = {"offset", "timestamp", "key", "value", "headers"};
    Py_ssize_t *const slots[] = {&self->offset, &self->timestamp, &self->key, &self->value,
                                 &self->headers};
    PyObject *marks = PyTuple_New(5), *made = NULL;
    int result = -1;
    if (marks == NULL) return -1;
    for (int i = 0; i < 5; i++) {
        PyObject *mark = PyList_New(0); /* no two are the same object */
        if (mark == NULL) goto done;
        PyTuple_SET_ITEM(marks, i, mark);
    }
    made = PyObject_Call((PyObject *)self->type, marks, NULL);
    if (made == NULL) goto done;
    for (int i = 0; i < 5; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        *slots[i] = name ? slot_of(self->type, name) : -1;
        Py_XDECREF(name);
        if (*slots[i] < 0) goto done;
        if (Py_TYPE(made) != self->type || SLOT(made, *slots[i]) != PyTuple_GET_ITEM(marks, i)) {
            PyErr_Format(PyExc_ValueError, "%s.%s is not at its descriptor's offset",
                         self->type->tp_name, names[i]);
            goto done;
        }
    }
    result = 0;
done:
    Py_XDECREF(made);
    Py_DECREF(marks);
    return result;
}

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *cls;
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "RecordCodec takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O:RecordCodec", &cls)) return NULL;
    if (engine.struct_meta == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "set_up was not called");
        return NULL;
    }
    if (check_type(cls)) return NULL;
    if (PyType_IS_GC((PyTypeObject *)cls)) {
        PyErr_SetString(PyExc_ValueError, "the class of records is made with gc=False");
        return NULL;
    }
    record_codec *self = (record_codec *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(cls);
    self->type = (PyTypeObject *)cls;
    if (!find_members(self)) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyMethodDef codec_methods[] = {
    {"read", (PyCFunction)(void (*)(void))read_records, METH_FASTCALL,
     "read(data, at, end, count, base_offset, base_timestamp, appended) -> list of records, or "
     "None where data[at:end] is not exactly that many"},
    {"survey", (PyCFunction)(void (*)(void))survey_records, METH_FASTCALL,
     "survey(data, at, end, count, base_offset, base_timestamp, appended) -> (least timestamp, "
     "largest timestamp, whether the offsets are consecutive), or None where read returns None or "
     "there is no record"},
    {"read_messages", (PyCFunction)(void (*)(void))read_messages, METH_FASTCALL,
     "read_messages(data, at, end, magic, last_offset, crc32, appended) -> list of records, or None "
     "where data[at:end] is not messages of a wrapper of that magic and offset"},
    {"write", (PyCFunction)(void (*)(void))write_records, METH_FASTCALL,
     "write(records, base_offset, base_timestamp) -> (bytes, last offset, largest timestamp), or "
     "None where a record is not as it usually is"},
    {"sink", (PyCFunction)new_sink, METH_VARARGS,
     "sink(columns, limit) -> RecordSink: columns is a sum of 1 for offset, 2 timestamp, 4 key, "
     "8 value, 16 header_count, 32 headers; limit is of the bytes in one buffer"},
    {NULL, NULL, 0, NULL},
};

PyTypeObject record_codec_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.RecordCodec",
    .tp_doc = "RecordCodec(Record): reads and writes the records of batches of magic 2.",
    .tp_basicsize = sizeof(record_codec),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = codec_new,
    .tp_dealloc = (destructor)codec_free,
    .tp_traverse = (traverseproc)codec_traverse,
    .tp_methods = codec_methods,
};

int add_record_types(PyObject *module) {
    if (PyType_Ready(&record_codec_type) < 0 || PyType_Ready(&record_sink_type) < 0) return -1;
    return PyModule_AddObjectRef(module, "RecordCodec", (PyObject *)&record_codec_type);
}
