/* Compiles the description of a plan (kproto/native/describe.py) into tables and refuses what the
   engine does not support: an exception here means that pure Python handles the message.
   Members of objects are read and written at the offsets of their descriptors. Each offset is
   verified with an object that the class itself made, so that a class with anything but plain
   object slots is refused. */
#include "engine.h"
#include "records.h"

#include <structmember.h>

const uint8_t width_of[KINDS] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 0, 0, 0, 0};

static int refuse(const char *why, PyTypeObject *type) {
    PyErr_Format(PyExc_ValueError, "the native engine does not support %s: %s",
                 type ? type->tp_name : "this plan", why);
    return -1;
}

/* The offset of member `name` in instances of `type`; -1 and an exception if it is not a plain
   object slot. */
Py_ssize_t slot_of(PyTypeObject *type, PyObject *name) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL) return -1;
    Py_ssize_t offset = -1;
    if (Py_TYPE(found) == &PyMemberDescr_Type) {
        PyMemberDescrObject *member = (PyMemberDescrObject *)found;
        int inherited = PyType_IsSubtype(type, PyDescr_TYPE(member));
        if (inherited && member->d_member->type == T_OBJECT_EX) offset = member->d_member->offset;
    }
    Py_DECREF(found);
    if (offset < (Py_ssize_t)sizeof(PyObject) || offset % (Py_ssize_t)sizeof(PyObject *) ||
        offset + (Py_ssize_t)sizeof(PyObject *) > type->tp_basicsize) {
        PyErr_Format(PyExc_ValueError, "%s.%U is not a plain slot", type->tp_name, name);
        return -1;
    }
    return offset;
}

int check_type(PyObject *cls) {
    if (!PyType_Check(cls)) return refuse("it is not a class", NULL);
    PyTypeObject *type = (PyTypeObject *)cls;
    if (Py_TYPE(cls) != engine.struct_meta) return refuse("it is not a msgspec.Struct", type);
    if (type->tp_alloc != PyType_GenericAlloc || type->tp_itemsize || type->tp_dictoffset)
        return refuse("its instances are not plain", type);
#ifdef Py_TPFLAGS_MANAGED_DICT
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return refuse("it has a __dict__", type);
#endif
    return 0;
}

/* Whether PyObject_New makes a complete instance once every field is filled. */
static int is_bare(const struct_plan *plan) {
    Py_ssize_t slots = FIELDS_END(plan) - plan->fields + 1;
    unsigned long more = 0; /* kept before the head */
#ifdef Py_TPFLAGS_MANAGED_WEAKREF
    more |= Py_TPFLAGS_MANAGED_WEAKREF;
#endif
    return !plan->collected && !(plan->type->tp_flags & more) &&
           plan->type->tp_basicsize ==
               (Py_ssize_t)(sizeof(PyObject) + (size_t)slots * sizeof(PyObject *));
}

/* Lets the class make an object of values known by identity, and checks where they are stored. */
static int check_slots(const struct_plan *plan, PyObject *const *names, PyObject *tags_field) {
    Py_ssize_t count = FIELDS_END(plan) - plan->fields;
    int result = -1;
    PyObject *made = NULL, *nothing = PyTuple_New(0), *marks = PyDict_New();
    if (nothing == NULL || marks == NULL) goto done;
    for (Py_ssize_t i = 0; i <= count; i++) {
        PyObject *mark = PyList_New(0); /* no two are the same object */
        int failed = !mark || PyDict_SetItem(marks, i < count ? names[i] : tags_field, mark);
        Py_XDECREF(mark);
        if (failed) goto done;
    }
    if (PyDict_GET_SIZE(marks) != count + 1) {
        refuse("two fields have one name", plan->type);
        goto done;
    }
    made = PyObject_Call((PyObject *)plan->type, nothing, marks);
    if (made == NULL) goto done;
    result = Py_TYPE(made) == plan->type ? 0 : -1;
    for (Py_ssize_t i = 0; i <= count && !result; i++) {
        Py_ssize_t slot = i < count ? plan->fields[i].slot : plan->tags_slot;
        PyObject *mark = PyDict_GetItemWithError(marks, i < count ? names[i] : tags_field);
        if (mark == NULL || SLOT(made, slot) != mark) result = -1;
    }
    if (result) refuse("its members are not where its descriptors say", plan->type);
done:
    Py_XDECREF(made);
    Py_XDECREF(nothing);
    Py_XDECREF(marks);
    return result;
}

static int is_immutable(PyObject *value) {
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
           PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
           Py_TYPE(value) == engine.uuid_type;
}

/* (name, kind, element kind, flags, element_min, index of inner struct, tag, mode, default) */
static int compile_field(const plan_object *self, const struct_plan *plan, field_plan *field,
                         PyObject *given, PyObject **name) {
    int kind, element, flags, mode;
    Py_ssize_t element_min, inner;
    long long tag;
    PyObject *value;
    if (!PyTuple_Check(given)) return refuse("a field is not a tuple", plan->type);
    if (!PyArg_ParseTuple(given, "UiiinnLiO", name, &kind, &element, &flags, &element_min, &inner,
                          &tag, &mode, &value))
        return -1;
    int is_array = kind == KIND_ARRAY;
    int holds_struct = kind == KIND_STRUCT || (is_array && element == KIND_STRUCT);
    if (kind < 0 || kind >= KINDS || element < 0 || element >= KIND_ARRAY || flags & ~15 ||
        element_min < 1 || element_min > INT32_MAX || tag < 0 || tag > INT32_MAX)
        return refuse("a field of an unknown kind", plan->type);
    if (is_array && element_min < width_of[element])
        return refuse("an array of elements smaller than they are", plan->type);
    if (holds_struct ? inner < 0 || inner >= self->struct_count : inner != -1)
        return refuse("a struct that does not come before it", plan->type);
    if (mode == DEFAULT_STRUCT ? kind != KIND_STRUCT
                               : mode == DEFAULT_LIST ? !is_array : mode != DEFAULT_VALUE)
        return refuse("a default of an unknown kind", plan->type);
    if (mode == DEFAULT_VALUE && !is_immutable(value))
        return refuse("a default that may change", plan->type);
    field->kind = (uint8_t)kind;
    field->element = (uint8_t)element;
    field->flags = (uint8_t)flags;
    field->default_mode = (uint8_t)mode;
    field->tag = (uint32_t)tag;
    field->element_min = element_min;
    field->inner = holds_struct ? &self->structs[inner] : NULL;
    field->slot = slot_of(plan->type, *name);
    if (field->slot < 0) return -1;
    Py_INCREF(value);
    field->default_value = value;
    return 0;
}

/* One check of the remaining bytes serves all fixed-width fields in a row. */
static void mark_runs(struct_plan *plan) {
    field_plan *first = NULL;
    for (field_plan *field = INLINE(plan); field < TAGGED(plan); field++) {
        int32_t width = width_of[field->kind];
        if (!width) {
            first = NULL;
            continue;
        }
        if (first == NULL || first->run > MOST_RUN) first = field;
        first->run += width;
        first->run_fields++;
    }
}

static int compile_foreign(struct_plan *plan, PyObject *tags) {
    plan->foreign_count = PyTuple_GET_SIZE(tags);
    plan->foreign = PyMem_Calloc((size_t)plan->foreign_count + 1, sizeof *plan->foreign);
    if (plan->foreign == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < plan->foreign_count; i++) {
        unsigned long tag = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(tags, i));
        if (tag == (unsigned long)-1 && PyErr_Occurred()) return -1;
        if (tag > INT32_MAX) return refuse("a tag above 2^31 - 1", plan->type);
        plan->foreign[i] = (uint32_t)tag;
    }
    return 0;
}

/* (class, flexible, foreign tags, fields inline, fields tagged, fields absent) */
static int compile_struct(plan_object *self, struct_plan *plan, PyObject *given) {
    PyObject *cls, *foreign, *groups[3];
    if (!PyTuple_Check(given)) return refuse("a struct is not a tuple", NULL);
    if (!PyArg_ParseTuple(given, "OpO!O!O!O!", &cls, &plan->flexible, &PyTuple_Type, &foreign,
                          &PyTuple_Type, &groups[0], &PyTuple_Type, &groups[1], &PyTuple_Type,
                          &groups[2]))
        return -1;
    if (check_type(cls)) return -1;
    Py_INCREF(cls);
    plan->type = (PyTypeObject *)cls;
    plan->collected = PyType_IS_GC(plan->type);
    Py_ssize_t count = 0;
    for (int i = 0; i < 3; i++) count += PyTuple_GET_SIZE(groups[i]);
    plan->fields = PyMem_Calloc((size_t)count + 1, sizeof *plan->fields);
    PyObject **names = PyMem_Calloc((size_t)count + 1, sizeof *names); /* borrowed */
    PyObject *tags_slot = PyUnicode_FromString("_unknown_tags");
    PyObject *tags_field = PyUnicode_FromString("unknown_tags");
    int result = -1;
    if (!plan->fields || !names || !tags_slot || !tags_field) {
        PyErr_NoMemory();
        goto done;
    }
    plan->inline_count = PyTuple_GET_SIZE(groups[0]);
    plan->tagged_count = PyTuple_GET_SIZE(groups[1]);
    plan->absent_count = PyTuple_GET_SIZE(groups[2]);
    plan->tagged = plan->fields + plan->inline_count;
    plan->absent = plan->tagged + plan->tagged_count;
    plan->fields_end = plan->absent + plan->absent_count;
    if (plan->tagged_count > MOST_TAGGED) {
        refuse("more tagged fields than it has room for", plan->type);
        goto done;
    }
    Py_ssize_t done = 0;
    for (int group = 0; group < 3; group++) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(groups[group]); i++, done++) {
            field_plan *field = &plan->fields[done];
            PyObject *item = PyTuple_GET_ITEM(groups[group], i);
            if (compile_field(self, plan, field, item, &names[done])) goto done;
            if (field->inner && field->inner->depth >= plan->depth)
                plan->depth = field->inner->depth + 1;
            if ((group == 1) != !!(field->flags & FIELD_TAGGED) ||
                (group == 1 && i && field->tag <= field[-1].tag)) {
                refuse("tagged fields out of place", plan->type);
                goto done;
            }
        }
    }
    if (plan->depth > MOST_DEPTH) {
        refuse("structs nested deeper than it goes", plan->type);
        goto done;
    }
    if (plan->tagged_count && !plan->flexible) {
        refuse("tagged fields at a version without them", plan->type);
        goto done;
    }
    plan->tags_slot = slot_of(plan->type, tags_slot);
    if (plan->tags_slot < 0) goto done;
    plan->bare = is_bare(plan);
    mark_runs(plan);
    if (compile_foreign(plan, foreign) || check_slots(plan, names, tags_field)) goto done;
    result = 0;
done:
    PyMem_Free(names);
    Py_XDECREF(tags_slot);
    Py_XDECREF(tags_field);
    return result;
}

/* ---- the Python type ----------------------------------------------------------------------------- */

static void plan_free(plan_object *self) {
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; self->structs && self->structs[i].type; i++) {
        struct_plan *plan = &self->structs[i];
        for (field_plan *field = plan->fields; field && field < FIELDS_END(plan); field++)
            Py_XDECREF(field->default_value);
        PyMem_Free(plan->fields);
        PyMem_Free(plan->foreign);
        Py_DECREF(plan->type);
    }
    PyMem_Free(self->structs);
    Py_XDECREF(self->explain_decode);
    Py_XDECREF(self->explain_encode);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* No tp_clear: a plan may run until it is freed. Cycles through it are broken at the class, whose
   own dict holds the plan. */
static int plan_traverse(plan_object *self, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; self->structs && self->structs[i].type; i++)
        Py_VISIT(self->structs[i].type);
    Py_VISIT(self->explain_decode);
    Py_VISIT(self->explain_encode);
    return 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *given, *decode, *encode;
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Plan takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!OO:Plan", &PyTuple_Type, &given, &decode, &encode)) return NULL;
    if (engine.no_tags == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "set_up was not called");
        return NULL;
    }
    plan_object *self = (plan_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(decode);
    self->explain_decode = decode;
    Py_INCREF(encode);
    self->explain_encode = encode;
    Py_ssize_t count = PyTuple_GET_SIZE(given);
    /* One more than needed, zeroed: plan_free stops at a struct without a type. */
    self->structs = PyMem_Calloc((size_t)count + 1, sizeof *self->structs);
    if (self->structs == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    if (count == 0) {
        Py_DECREF(self);
        refuse("it has no struct", NULL);
        return NULL;
    }
    for (; self->struct_count < count; self->struct_count++) {
        struct_plan *plan = &self->structs[self->struct_count];
        if (compile_struct(self, plan, PyTuple_GET_ITEM(given, self->struct_count))) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

extern PyMethodDef plan_methods[]; /* module.c */

PyTypeObject plan_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kproto.native._engine.Plan",
    .tp_doc = "Plan(structs, explain_decode, explain_encode): a message at one version, compiled.",
    .tp_basicsize = sizeof(plan_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_free,
    .tp_traverse = (traverseproc)plan_traverse,
    .tp_methods = plan_methods,
};
