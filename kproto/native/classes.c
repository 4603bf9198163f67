/* Finds what a message class keeps for the engine: the dicts of its codecs by version, and decode
   and validate bound to the class. Results are cached in a small table.
   Entries are verified on each use:
   - CPython numbers the current attributes of a class (tp_version_tag; 0 means none) and withdraws
   the number when the class or a base of it changes. No two classes ever get the same number. An
   entry that matches both the address and the number of a class therefore describes its attributes,
   which the class keeps alive. CPython's own attribute caches rely on the same rule.
   - A dict that has not changed since a codec was found in it still contains the codec and keeps it
   alive. On 3.11 a dict has a version number of its own; later CPythons notify watchers.
   - Versions are compared by identity, so only numbers that CPython shares are cached.
   Without this table, decoding a heartbeat takes 1.34 times as long and encoding it 1.14 times. */
#include "classes.h"

known_class known_classes[KNOWN_CLASSES];

static PyMethodDef *methods[BOUND_METHODS];
static PyObject *dict_names[CODEC_DICTS], *bound_name;

/* ---- what a class has ---------------------------------------------------------------------------- */

/* The two bound methods in a tuple if `type` itself has them; borrowed. */
static PyObject *own_bound(PyTypeObject *type) {
    PyObject *both = _PyType_Lookup(type, bound_name);
    if (both == NULL || !PyTuple_CheckExact(both) || PyTuple_GET_SIZE(both) != BOUND_METHODS)
        return NULL;
    for (int i = 0; i < BOUND_METHODS; i++) {
        PyObject *bound = PyTuple_GET_ITEM(both, i);
        if (!PyCFunction_CheckExact(bound) || PyCFunction_GET_SELF(bound) != (PyObject *)type ||
            ((PyCFunctionObject *)bound)->m_ml != methods[i])
            return NULL;
    }
    return both;
}

/* Looks everything up. NULL where the result would not be valid until the class changes. */
static known_class *learn(PyTypeObject *type) {
    known_class found = {.type = type};
    PyObject *both = own_bound(type);
    found.number = type->tp_version_tag;
    for (int i = 0; i < BOUND_METHODS && both; i++) found.bound[i] = PyTuple_GET_ITEM(both, i);
    for (int i = 0; i < CODEC_DICTS; i++) {
        PyObject *dict = _PyType_Lookup(type, dict_names[i]);
        if (dict != NULL && PyDict_CheckExact(dict)) found.by_version[i].codecs = dict;
    }
    /* Comparing an unusual key in a class's dict may run Python code. */
    if (found.number == 0 || found.number != type->tp_version_tag) return NULL;
    known_class *entry = place_of(type);
    *entry = found;
    return entry;
}

static inline known_class *known(PyTypeObject *type) {
    known_class *entry = place_of(type);
    return LIKELY(is_known(entry, type)) ? entry : learn(type);
}

/* ---- codecs -------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX < 0x030C0000
static int watch(PyObject *dict) {
    (void)dict;
    return 1;
}
#else
uint64_t dict_changes;
static int watcher = -1;

static int note_change(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value) {
    (void)event, (void)dict, (void)key, (void)value;
    dict_changes++;
    return 0;
}

/* Whether changes of `dict` are counted from now on. An interpreter has few places for watchers. */
static int watch(PyObject *dict) {
    static int tried;
    if (!tried++) watcher = PyDict_AddWatcher(note_change);
    if (watcher >= 0 && !PyDict_Watch(watcher, dict)) return 1;
    PyErr_Clear();
    return 0;
}
#endif

static int is_shared(PyObject *version) {
    for (int i = -SMALLEST; i < SMALL_INTS; i++)
        if (engine.small_ints[i] == version) return 1;
    return 0;
}

plan_object *find_plan(PyTypeObject *type, int dict, PyObject *version) {
    known_class *entry = known(type);
    PyObject *codecs = entry ? entry->by_version[dict].codecs : NULL;
    if (codecs == NULL || !PyLong_CheckExact(version)) return NULL; /* hashing runs no Python code */
    PyObject *codec = PyDict_GetItemWithError(codecs, version);
    if (codec == NULL || !PyCFunction_CheckExact(codec)) return NULL;
    PyObject *self = PyCFunction_GET_SELF(codec);
    if (self == NULL || Py_TYPE(self) != &plan_type) return NULL;
    /* Comparing a key that is not an int may have run Python code. */
    if (is_known(entry, type) && is_shared(version) && watch(codecs)) {
        entry->by_version[dict].version = version;
        entry->by_version[dict].plan = (plan_object *)self;
        entry->by_version[dict].stamp = stamp_of(codecs);
    }
    return (plan_object *)self;
}

/* ---- bound methods ------------------------------------------------------------------------------- */

/* Makes both methods and stores them on the class. Returns the requested one. */
static PyObject *first_bound(PyTypeObject *type, int which) {
    PyObject *both = PyTuple_New(BOUND_METHODS);
    for (int i = 0; i < BOUND_METHODS && both; i++) {
        PyObject *bound = PyCFunction_New(methods[i], (PyObject *)type);
        if (bound != NULL)
            PyTuple_SET_ITEM(both, i, bound);
        else
            Py_CLEAR(both);
    }
    if (both == NULL) return NULL;
    if (PyType_Type.tp_setattro((PyObject *)type, bound_name, both)) PyErr_Clear();
    PyObject *result = PyTuple_GET_ITEM(both, which);
    Py_INCREF(result);
    Py_DECREF(both);
    return result;
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *type, int which) {
    PyTypeObject *cls = (PyTypeObject *)type;
    if (UNLIKELY(type == NULL || !PyType_Check(type)))
        return PyClassMethodDescr_Type.tp_descr_get(self, instance, type);
    known_class *entry = known(cls);
    PyObject *bound = LIKELY(entry != NULL) ? entry->bound[which] : NULL;
    if (LIKELY(bound != NULL)) {
        Py_INCREF(bound);
        return bound;
    }
    if (entry == NULL || !PyType_IsSubtype(cls, PyDescr_TYPE(self)))
        return PyClassMethodDescr_Type.tp_descr_get(self, instance, type);
    return first_bound(cls, which);
}

static PyObject *bind_decode(PyObject *self, PyObject *instance, PyObject *type) {
    return bind(self, instance, type, BOUND_DECODE);
}

static PyObject *bind_validate(PyObject *self, PyObject *instance, PyObject *type) {
    return bind(self, instance, type, BOUND_VALIDATE);
}

/* As classmethod_descriptor, except that each method is bound once per class. */
static PyTypeObject descriptor_types[BOUND_METHODS] = {
    {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.decode_descriptor",
     .tp_descr_get = bind_decode},
    {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.validate_descriptor",
     .tp_descr_get = bind_validate},
};

PyObject *new_class_method(PyTypeObject *type, int which) {
    PyObject *made = PyDescr_NewClassMethod(type, methods[which]);
    if (made != NULL) Py_SET_TYPE(made, &descriptor_types[which]);
    return made;
}

int set_up_classes(PyMethodDef *decode, PyMethodDef *validate) {
    static const char *const texts[CODEC_DICTS] = {"_DECODERS", "_ENCODERS", "_VALIDATORS"};
    methods[BOUND_DECODE] = decode;
    methods[BOUND_VALIDATE] = validate;
    for (int i = 0; i < CODEC_DICTS; i++)
        if (!dict_names[i] && !(dict_names[i] = PyUnicode_InternFromString(texts[i]))) return -1;
    if (!bound_name && !(bound_name = PyUnicode_InternFromString("_BOUND"))) return -1;
    for (int i = 0; i < BOUND_METHODS; i++) {
        PyTypeObject *type = &descriptor_types[i];
        type->tp_flags |= Py_TPFLAGS_DEFAULT;
        type->tp_base = &PyClassMethodDescr_Type; /* not a constant on Windows */
        if (PyType_Ready(type)) return -1;
    }
    return 0;
}
