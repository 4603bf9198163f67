/* Single values: Python objects from bytes, uuids in both directions, and whether a value is a
   default.
   No Python code runs here, except make_uuid where this interpreter's UUID is not the class with
   the two slots that the engine knows. */
#include "engine.h"

PyObject *new_string(const uint8_t *p, Py_ssize_t size) {
    /* CPython shares strings of one character, and its decoder returns the shared ones. */
    if (LIKELY(size > 1 && is_ascii(p, size))) {
        PyObject *text = PyUnicode_New(size, 127);
        if (LIKELY(text != NULL)) copy_bytes((PyASCIIObject *)text + 1, p, size);
        return text;
    }
    return PyUnicode_DecodeUTF8((const char *)p, size, "strict");
}

static PyObject *long_of_uuid(const uint8_t *p) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyLong_FromUnsignedNativeBytes(p, 16, Py_ASNATIVEBYTES_BIG_ENDIAN);
#else
    return _PyLong_FromByteArray(p, 16, 0, 0);
#endif
}

static PyObject *new_uuid(const uint8_t *p) {
    if (UNLIKELY(engine.uuid_int < 0)) {
        PyObject *raw = PyBytes_FromStringAndSize((const char *)p, 16);
        PyObject *made = raw ? PyObject_CallOneArg(engine.make_uuid, raw) : NULL;
        Py_XDECREF(raw);
        return made;
    }
    PyObject *number = long_of_uuid(p);
    if (number == NULL) return NULL;
    PyObject *made = engine.uuid_type->tp_alloc(engine.uuid_type, 0);
    if (made == NULL) {
        Py_DECREF(number);
        return NULL;
    }
    /* It holds an int and a member of an enumeration, so no cycle can pass through it. */
    if (PyType_IS_GC(engine.uuid_type)) PyObject_GC_UnTrack(made);
    Py_INCREF(engine.uuid_safe);
    SLOT(made, engine.uuid_is_safe) = engine.uuid_safe;
    SLOT(made, engine.uuid_int) = number;
    return made;
}

PyObject *new_number(int kind, const uint8_t *p) {
    switch (kind) {
    case KIND_BOOL: return PyBool_FromLong(*p);
    case KIND_INT8: return new_int32((int8_t)*p);
    case KIND_INT16: return new_int32((int16_t)get16(p));
    case KIND_UINT16: return new_int32(get16(p));
    case KIND_INT32: return new_int32((int32_t)get32(p));
    case KIND_UINT32: return PyLong_FromUnsignedLong(get32(p));
    case KIND_INT64: return PyLong_FromLongLong((int64_t)get64(p));
    case KIND_FLOAT64: {
        uint64_t bits = get64(p);
        double value;
        memcpy(&value, &bits, 8);
        return PyFloat_FromDouble(value);
    }
    default: return new_uuid(p);
    }
}

/* The int of an exact UUID; borrowed, NULL where Python must handle it. */
static PyObject *number_of_uuid(PyObject *value) {
    if (Py_TYPE(value) != engine.uuid_type || engine.uuid_int < 0) return NULL;
    PyObject *number = SLOT(value, engine.uuid_int);
    return number != NULL && PyLong_CheckExact(number) ? number : NULL;
}

int put_uuid(uint8_t *p, PyObject *value) {
    PyObject *number = number_of_uuid(value);
    if (number == NULL) return -1;
#if PY_VERSION_HEX >= 0x030D0000
    int flags = Py_ASNATIVEBYTES_BIG_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER |
                Py_ASNATIVEBYTES_REJECT_NEGATIVE;
    Py_ssize_t size = PyLong_AsNativeBytes(number, p, 16, flags);
    if (size >= 0 && size <= 16) return 0;
#else
    if (!_PyLong_AsByteArray((PyLongObject *)number, p, 16, 0, 0)) return 0;
#endif
    PyErr_Clear();
    return -1;
}

/* ---- is it the default? ------------------------------------------------------------------------

   As interpreter.is_default, for values of exactly the default's type: whatever else compares equal
   (False and 0, a subclass with an __eq__ of its own) is left to Python. */

static int same_value(PyObject *value, PyObject *expected) {
    if (expected == Py_None || value == Py_None) return value == expected;
    if (Py_TYPE(value) != Py_TYPE(expected)) return -1;
    if (PyFloat_CheckExact(expected)) {
        double number = PyFloat_AS_DOUBLE(expected);
        return number != number ? -1 : PyFloat_AS_DOUBLE(value) == number;
    }
    if (Py_TYPE(expected) == engine.uuid_type) {
        value = number_of_uuid(value);
        expected = number_of_uuid(expected);
        if (value == NULL || expected == NULL) return -1;
    } else if (!PyLong_CheckExact(expected) && !PyBool_Check(expected) &&
               !PyUnicode_CheckExact(expected) && !PyBytes_CheckExact(expected)) {
        return -1;
    }
    return PyObject_RichCompareBool(value, expected, Py_EQ);
}

/* Whether a struct equals a new one of its class. Inside it, unlike in a field, () differs from []. */
static int is_new_struct(const struct_plan *plan, PyObject *value) {
    if (Py_TYPE(value) != plan->type) return value == Py_None ? 0 : -1;
    PyObject *tags = SLOT(value, plan->tags_slot);
    int same = tags == engine.no_tags;
    if (!same) {
        if (tags == NULL || !PyDict_CheckExact(tags)) return -1;
        if (PyDict_GET_SIZE(tags)) return 0;
    }
    for (const field_plan *field = plan->fields; field < FIELDS_END(plan); field++) {
        PyObject *current = SLOT(value, field->slot);
        if (current == NULL) return -1;
        if (field->default_mode == DEFAULT_LIST && current != Py_None &&
            !PyList_CheckExact(current))
            return -1;
        same = is_at_default(field, current);
        if (same != 1) return same;
    }
    return 1;
}

int is_at_default(const field_plan *field, PyObject *value) {
    switch (field->default_mode) {
    case DEFAULT_LIST:
        if (PyList_CheckExact(value)) return PyList_GET_SIZE(value) == 0;
        if (PyTuple_CheckExact(value)) return PyTuple_GET_SIZE(value) == 0;
        return value == Py_None ? 0 : -1;
    case DEFAULT_STRUCT: return is_new_struct(field->inner, value);
    default: return same_value(value, field->default_value);
    }
}

/* ---- how this interpreter lays out a UUID ------------------------------------------------------ */

static int assembles_right(void) {
    static const uint8_t sample[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
    PyObject *raw = PyBytes_FromStringAndSize((const char *)sample, 16);
    PyObject *expected = raw ? PyObject_CallOneArg(engine.make_uuid, raw) : NULL;
    PyObject *made = expected ? new_uuid(sample) : NULL;
    PyObject *expected_text = made ? PyObject_Repr(expected) : NULL;
    PyObject *text = expected_text ? PyObject_Repr(made) : NULL;
    int same = 0;
    if (text != NULL && Py_TYPE(expected) == engine.uuid_type) {
        same = PyObject_RichCompareBool(text, expected_text, Py_EQ);
        if (same == 1) same = PyObject_RichCompareBool(made, expected, Py_EQ);
    }
    if (same == 1) {
        PyObject *number = PyObject_GetAttrString(expected, "int");
        same = number && PyObject_RichCompareBool(number, number_of_uuid(made), Py_EQ) == 1;
        Py_XDECREF(number);
    }
    Py_XDECREF(raw);
    Py_XDECREF(expected);
    Py_XDECREF(made);
    Py_XDECREF(expected_text);
    Py_XDECREF(text);
    return same == 1;
}

/* Finds the two slots and tries them. Returns 1 if UUIDs can be assembled, else 0: make_uuid then
   makes them, and Python writes them. */
int find_uuid_slots(void) {
    PyObject *number = PyUnicode_FromString("int"), *safe = PyUnicode_FromString("is_safe");
    engine.uuid_int = number ? slot_of(engine.uuid_type, number) : -1;
    engine.uuid_is_safe = safe ? slot_of(engine.uuid_type, safe) : -1;
    Py_XDECREF(number);
    Py_XDECREF(safe);
    if (engine.uuid_int < 0 || engine.uuid_is_safe < 0 || !assembles_right()) {
        engine.uuid_int = engine.uuid_is_safe = -1;
    }
    PyErr_Clear();
    return engine.uuid_int >= 0;
}
