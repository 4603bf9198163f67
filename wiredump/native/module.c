/* wiredump.native._quick: reads the usual packets, segments and frames of captures in bulk. */
#include "wire.h"

uint64_t native_steps;

/* steps() -> the number of steps that loops took since the module was loaded */
static PyObject *steps(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(native_steps);
}

static PyMethodDef functions[] = {{"walk_pcap", walk_pcap, METH_VARARGS, NULL},
                                  {"walk_pcapng", walk_pcapng, METH_VARARGS, NULL},
                                  {"pack", pack, METH_O, NULL},
                                  {"read_run", read_run, METH_VARARGS, NULL},
                                  {"carried_run", carried_run, METH_VARARGS, NULL},
                                  {"order_runs", order_runs, METH_O, NULL},
                                  {"find_request", find_request, METH_VARARGS, NULL},
                                  {"feed_rows", feed_rows, METH_VARARGS, NULL},
                                  {"steps", steps, METH_NOARGS, NULL},
                                  {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "wiredump.native._quick",
    .m_size = -1,
    .m_methods = functions,
};

static const struct {
    const char *name; /* NULL: not a name of the module */
    PyTypeObject *type;
} types[] = {{"Packets", &packets_type}, {"ExchangeRows", &exchange_rows_type},
             {"OpenRequests", &open_requests_type}, {"Reading", &reading_type},
             {"HeldRows", &held_type}, {"Runs", &runs_type}, {"Gatherer", &gatherer_type},
             {NULL, &spans_type}};

PyMODINIT_FUNC PyInit__quick(void) {
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < sizeof types / sizeof *types; i++)
        if (PyType_Ready(types[i].type) ||
            (types[i].name != NULL &&
             PyModule_AddObjectRef(module, types[i].name, (PyObject *)types[i].type)))
            Py_CLEAR(module);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE)) Py_CLEAR(module);
    return module;
}
