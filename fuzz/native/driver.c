/* libFuzzer as a Python module: run(arguments, check, mutate).
 *
 * Inputs are passed to `check` as bytes. An exception is printed and ends the process by abort(), on
 * which libFuzzer keeps the input. `mutate`, unless it is None, makes some of the mutations: it gets
 * the input, its maximum size and a seed, and returns a new input; mutate_plainly() is libFuzzer's own
 * mutation. The GIL is held throughout, as nothing else runs. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*callback)(const uint8_t *, size_t));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static PyObject *check;
static PyObject *mutate;

static void give_up(void)
{
    PyErr_Print();
    fflush(NULL);
    abort();
}

static int one_input(const uint8_t *data, size_t size)
{
    PyObject *result = PyObject_CallFunction(check, "y#", (const char *)data, (Py_ssize_t)size);
    if (result == NULL) {
        give_up();
    }
    Py_DECREF(result);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (mutate == NULL || mutate == Py_None || seed % 2 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    PyObject *result = PyObject_CallFunction(mutate, "y#nI", (const char *)data, (Py_ssize_t)size,
                                             (Py_ssize_t)max_size, seed);
    if (result == NULL || !PyBytes_CheckExact(result)) {
        give_up();
    }
    size_t made = (size_t)PyBytes_GET_SIZE(result);
    if (made > max_size) {
        made = max_size;
    }
    memcpy(data, PyBytes_AS_STRING(result), made);
    Py_DECREF(result);
    return made;
}

static PyObject *mutate_plainly(PyObject *module, PyObject *given)
{
    (void)module;
    const char *data;
    Py_ssize_t size, max_size;
    if (!PyArg_ParseTuple(given, "y#n", &data, &size, &max_size)) {
        return NULL;
    }
    if (max_size < 1) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    size_t room = (size_t)(size > max_size ? size : max_size);
    uint8_t *copy = malloc(room);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(copy, data, (size_t)size);
    size_t kept = (size_t)(size < max_size ? size : max_size);
    size_t made = LLVMFuzzerMutate(copy, kept, (size_t)max_size);
    PyObject *result = PyBytes_FromStringAndSize((const char *)copy, (Py_ssize_t)made);
    free(copy);
    return result;
}

static PyObject *run(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *list;
    if (!PyArg_ParseTuple(given, "O!OO", &PyList_Type, &list, &check, &mutate)) {
        return NULL;
    }
    int count = (int)PyList_GET_SIZE(list);
    /* libFuzzer keeps the arguments for as long as the process lives. */
    char **arguments = calloc((size_t)count + 1, sizeof *arguments);
    if (arguments == NULL) {
        return PyErr_NoMemory();
    }
    for (int at = 0; at < count; at++) {
        const char *text = PyUnicode_AsUTF8(PyList_GET_ITEM(list, at));
        if (text == NULL || (arguments[at] = strdup(text)) == NULL) {
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        }
    }
    return PyLong_FromLong(LLVMFuzzerRunDriver(&count, &arguments, one_input));
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "run(arguments, check, mutate): until libFuzzer has enough."},
    {"mutate_plainly", mutate_plainly, METH_VARARGS, "mutate_plainly(data, max_size)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_driver", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__driver(void)
{
    return PyModule_Create(&definition);
}
