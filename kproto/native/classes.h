/* The engine's cache of message classes, for the methods of Message (entry.c). classes.c explains
   why it is reliable. */
#ifndef KPROTO_CLASSES_H
#define KPROTO_CLASSES_H

#include "engine.h"

enum { DECODERS, ENCODERS, VALIDATORS, CODEC_DICTS }; /* codecs by version, in the class's dict */
enum { BOUND_DECODE, BOUND_VALIDATE, BOUND_METHODS };

typedef struct { /* all references are borrowed */
    PyTypeObject *type;
    unsigned int number;
    struct {
        PyObject *codecs;
        PyObject *version; /* the version used last, NULL if none, and then: */
        plan_object *plan;
        uint64_t stamp; /* of the dict at the time of the lookup */
    } by_version[CODEC_DICTS];
    PyObject *bound[BOUND_METHODS];
} known_class;

enum { KNOWN_CLASSES = 128 };

extern known_class known_classes[KNOWN_CLASSES];

/* Two classes that share a place replace each other. */
static inline known_class *place_of(PyTypeObject *type) {
    uintptr_t address = (uintptr_t)type;
    return &known_classes[(address >> 5 ^ address >> 12) % KNOWN_CLASSES];
}

static inline int is_known(const known_class *entry, PyTypeObject *type) {
    return entry->type == type && entry->number == type->tp_version_tag;
}

/* A number that changes with every change of a dict that the engine uses. */
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

/* The plan of the codec that `type` keeps in one of its dicts for `version`; borrowed. NULL,
   perhaps with an exception, if there is none or it is not a plan's. */
static inline plan_object *plan_of(PyTypeObject *type, int dict, PyObject *version) {
    const known_class *entry = place_of(type);
    PyObject *codecs = entry->by_version[dict].codecs;
    if (LIKELY(is_known(entry, type) && entry->by_version[dict].version == version &&
               entry->by_version[dict].stamp == stamp_of(codecs)))
        return entry->by_version[dict].plan;
    return find_plan(type, dict, version);
}

/* Makes decode or validate for the dict of `type`; it binds to the class it is read from. */
PyObject *new_class_method(PyTypeObject *type, int which);

/* Called once, before the others, with the methods to bind. */
int set_up_classes(PyMethodDef *decode, PyMethodDef *validate);

#endif
