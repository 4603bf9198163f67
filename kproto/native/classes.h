/* What the engine remembers of a message class, for the methods of Message (entry.c). Why it can
   be relied on: classes.c. */
#ifndef KPROTO_CLASSES_H
#define KPROTO_CLASSES_H

#include "engine.h"

enum { DECODERS, ENCODERS, VALIDATORS, CODEC_DICTS }; /* codecs by version, in the class's dict */
enum { BOUND_DECODE, BOUND_VALIDATE, BOUND_METHODS };

typedef struct { /* nothing in it is owned */
    PyTypeObject *type;
    unsigned int number;
    struct {
        PyObject *codecs;
        PyObject *version; /* the one asked for last, NULL if none, and then: */
        plan_object *plan;
        uint64_t stamp; /* of the dict when it was looked up */
    } by_version[CODEC_DICTS];
    PyObject *bound[BOUND_METHODS];
} known_class;

enum { KNOWN_CLASSES = 128 };

extern known_class known_classes[KNOWN_CLASSES];

/* Two classes that share a place take turns. */
static inline known_class *place_of(PyTypeObject *type) {
    uintptr_t address = (uintptr_t)type;
    return &known_classes[(address >> 5 ^ address >> 12) % KNOWN_CLASSES];
}

static inline int is_known(const known_class *entry, PyTypeObject *type) {
    return entry->type == type && entry->number == type->tp_version_tag;
}

/* What differs after every change of a dict that the engine looked into. */
#if PY_VERSION_HEX < 0x030C0000
static inline uint64_t stamp_of(PyObject *dict) { return ((PyDictObject *)dict)->ma_version_tag; }
#else
extern uint64_t dict_changes;
static inline uint64_t stamp_of(PyObject *dict) {
    (void)dict;
    return dict_changes;
}
#endif

plan_object *find_plan(PyTypeObject *type, int dict, PyObject *version);

/* The plan behind the codec that `type` keeps in one of its dicts for `version`; borrowed. NULL,
   perhaps with an exception, where there is none or it is something else. */
static inline plan_object *plan_of(PyTypeObject *type, int dict, PyObject *version) {
    const known_class *entry = place_of(type);
    PyObject *codecs = entry->by_version[dict].codecs;
    if (LIKELY(is_known(entry, type) && entry->by_version[dict].version == version &&
               entry->by_version[dict].stamp == stamp_of(codecs)))
        return entry->by_version[dict].plan;
    return find_plan(type, dict, version);
}

/* For the dict of `type`: decode or validate, bound to the class it is asked of. */
PyObject *new_class_method(PyTypeObject *type, int which);

/* Once, before the others: the methods to be bound. */
int set_up_classes(PyMethodDef *decode, PyMethodDef *validate);

#endif
