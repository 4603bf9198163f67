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
                                  {"feed_rows", feed_rows, METH_VARARGS, NULL},
                                  {"steps", steps, METH_NOARGS, NULL},
                                  {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "wiredump.native._quick",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__quick(void) {
    if (PyType_Ready(&packets_type) || PyType_Ready(&exchange_rows_type) ||
        PyType_Ready(&open_requests_type) || PyType_Ready(&reading_type) || PyType_Ready(&runs_type) ||
        PyType_Ready(&gatherer_type) || PyType_Ready(&spans_type) || PyType_Ready(&held_type))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (PyModule_AddObjectRef(module, "Packets", (PyObject *)&packets_type) ||
        PyModule_AddObjectRef(module, "ExchangeRows", (PyObject *)&exchange_rows_type) ||
        PyModule_AddObjectRef(module, "OpenRequests", (PyObject *)&open_requests_type) ||
        PyModule_AddObjectRef(module, "Reading", (PyObject *)&reading_type) ||
        PyModule_AddObjectRef(module, "HeldRows", (PyObject *)&held_type) ||
        PyModule_AddObjectRef(module, "Runs", (PyObject *)&runs_type) ||
        PyModule_AddObjectRef(module, "Gatherer", (PyObject *)&gatherer_type)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
