/* What the engine's files share: the compiled plan, and readers and writers of numbers.
   The engine runs a plan made by Python (kproto/codegen/plan.py, which contains every wire rule;
   kproto/native/describe.py describes it to C). The engine does not explain errors: any problem
   makes a function return NULL or -1, mostly without an exception, and module.c then passes the
   bytes or the object to the Python interpreter of the same plan. Being too strict here costs time
   and never correctness; being too lax would be a bug.
   Requires CPython 3.11 or newer with a GIL. No function here releases the GIL; decode.c and
   encode.c say where Python code may run. */
#ifndef KPROTO_ENGINE_H
#define KPROTO_ENGINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SELDOM __attribute__((cold, noinline))
#else
#define LIKELY(x) (x)
#define UNLIKELY(x) (x)
#define SELDOM
#endif

/* ---- the compiled plan (plan.c makes it; nothing changes it afterwards) ---------------------- */

enum kind {
    KIND_BOOL,
    KIND_INT8,
    KIND_INT16,
    KIND_UINT16,
    KIND_INT32,
    KIND_UINT32,
    KIND_INT64,
    KIND_FLOAT64,
    KIND_UUID, /* the last that has a fixed width */
    KIND_STRING,
    KIND_BYTES, /* records too: they are bytes on the wire */
    KIND_STRUCT,
    KIND_ARRAY,
    KINDS
};

enum field_flag {
    FIELD_COMPACT = 1,   /* lengths are unsigned varints of length + 1 */
    FIELD_NULLABLE = 2,
    FIELD_IGNORABLE = 4, /* a version that lacks the field drops it */
    FIELD_TAGGED = 8
};

enum print_flag {
    PRINT_SIZE = 1,       /* only the size of the bytes, under another name */
    PRINT_ERROR_CODE = 2, /* is collected, too */
    PRINT_THROTTLE = 4    /* likewise */
};

enum default_mode {
    DEFAULT_VALUE, /* an immutable object, shared */
    DEFAULT_LIST,  /* an empty list, new each time */
    DEFAULT_STRUCT /* an instance of the field's struct with its own defaults, new each time */
};

typedef struct struct_plan struct_plan;

typedef struct {
    uint8_t kind, element, flags, default_mode;
    uint32_t tag;
    Py_ssize_t slot;        /* offset of the member in the object */
    int32_t run, run_fields; /* bytes and fields of the fixed-width run that begins here, or 0 */
    Py_ssize_t element_min; /* least size of one element of an array, at least 1 */
    const struct_plan *inner;
    PyObject *default_value; /* of DEFAULT_VALUE */
} field_plan;

struct struct_plan {
    PyTypeObject *type;
    Py_ssize_t tags_slot;
    int flexible, depth;
    int collected; /* its instances are tracked by the garbage collector */
    int bare;      /* its instances consist of an object's head and these fields */
    Py_ssize_t inline_count, tagged_count, absent_count, foreign_count;
    field_plan *fields; /* inline fields, then tagged, then absent */
    field_plan *tagged, *absent, *fields_end; /* where in it each begins, for speed */
    uint32_t *foreign;  /* tags the schema uses at other versions only */
};

#define INLINE(plan) ((plan)->fields)
#define TAGGED(plan) ((plan)->tagged)
#define ABSENT(plan) ((plan)->absent)
#define FIELDS_END(plan) ((plan)->fields_end)

enum { MOST_TAGGED = 64, MOST_DEPTH = 64, MOST_STRING = 0x7FFF, MOST_RUN = 1 << 20 };

typedef struct {
    PyObject_HEAD
    struct_plan *structs; /* children first, the message itself last */
    Py_ssize_t struct_count;
    PyObject *explain_decode, *explain_encode;
    Py_ssize_t size_hint; /* of the bodies encoded recently, to start with a buffer that fits */
} plan_object;

/* ---- what the module knows for good ----------------------------------------------------------- */

enum { SMALLEST = -5, SMALL_INTS = 5 + 257 }; /* the numbers that CPython shares */

typedef struct {
    PyObject *small_ints[SMALL_INTS];
    PyObject *no_tags; /* the shared dict of a struct without unknown tags */
    PyTypeObject *uuid_type;
    PyObject *uuid_safe;  /* SafeUUID.unknown */
    PyObject *make_uuid;  /* Python's constructor, where the slots have another layout */
    Py_ssize_t uuid_int, uuid_is_safe; /* slots, -1 where make_uuid makes UUIDs */
    PyTypeObject *struct_meta;         /* msgspec's metaclass: the type of all filled classes */
} engine_state;

extern engine_state engine;
extern PyTypeObject plan_type;
extern PyTypeObject printer_type; /* print.c */

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

Py_ssize_t slot_of(PyTypeObject *type, PyObject *name); /* plan.c */
extern const uint8_t width_of[KINDS];                   /* plan.c; 0 where not fixed */

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
} reader;

static inline Py_ssize_t left_of(const reader *in) { return in->end - in->at; }

static inline uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint64_t get64(const uint8_t *p) {
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

/* An unsigned varint of up to 32 bits in up to five bytes (KIP-482); -1 where it is not one. */
static inline int get_varint(reader *in, uint32_t *out) {
    const uint8_t *p = in->at;
    uint32_t value = 0;
    if (LIKELY(p < in->end && *p < 0x80)) {
        *out = *p;
        in->at = p + 1;
        return 0;
    }
    for (int shift = 0; shift < 35; shift += 7) {
        if (p >= in->end) return -1;
        uint32_t byte = *p++;
        if (shift == 28 && byte > 0x0F) return -1;
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80) {
            *out = value;
            in->at = p;
            return 0;
        }
    }
    return -1;
}

/* The length of a string or bytes, or the count of an array; -1 is null. */
static inline int get_length(reader *in, const field_plan *field, int is_string, int64_t *out) {
    if (field->flags & FIELD_COMPACT) {
        uint32_t value;
        if (get_varint(in, &value)) return -1;
        *out = (int64_t)value - 1;
    } else if (is_string) {
        if (left_of(in) < 2) return -1;
        *out = (int16_t)get16(in->at);
        in->at += 2;
    } else {
        if (left_of(in) < 4) return -1;
        *out = (int32_t)get32(in->at);
        in->at += 4;
    }
    return *out < -1 || *out > INT32_MAX ? -1 : 0;
}

/* Whether the bytes left may hold `count` elements. Both factors are below 2^31. */
static inline int may_hold(const reader *in, const field_plan *field, int64_t count) {
    return count * (int64_t)field->element_min <= left_of(in);
}

/* Whether a nullable struct is present: 1, 0, or -1 for an invalid marker. */
static inline int get_presence(reader *in, const field_plan *field) {
    if (field->flags & FIELD_TAGGED) {
        uint32_t marker;
        if (get_varint(in, &marker)) return -1;
        return marker > 1 ? -1 : (int)marker;
    }
    if (left_of(in) < 1) return -1;
    uint8_t marker = *in->at++;
    return marker == 0xFF ? 0 : marker == 1 ? 1 : -1;
}

/* Reads the next tag and its size. Tags must ascend, the schema must define each at this version or
   not at all, and the bytes must exist; -1 otherwise. `last` is the previous tag, -1 at first. */
static inline int get_tag(reader *in, const struct_plan *plan, int64_t *last, uint32_t *size) {
    uint32_t tag;
    if (get_varint(in, &tag) || tag > INT32_MAX || (int64_t)tag <= *last) return -1;
    if (get_varint(in, size) || *size > INT32_MAX || (Py_ssize_t)*size > left_of(in)) return -1;
    for (Py_ssize_t i = 0; i < plan->foreign_count; i++)
        if (plan->foreign[i] == tag) return -1;
    *last = tag;
    return 0;
}

static inline const field_plan *field_of_tag(const struct_plan *plan, uint32_t tag) {
    for (const field_plan *field = TAGGED(plan); field < ABSENT(plan); field++)
        if (field->tag == tag) return field;
    return NULL;
}

static inline PyObject *new_int32(int32_t value) {
    if (LIKELY(value >= SMALLEST && value < SMALLEST + SMALL_INTS)) {
        PyObject *shared = engine.small_ints[value - SMALLEST];
        Py_INCREF(shared);
        return shared;
    }
    return PyLong_FromLong(value);
}

/* Whether all bytes are below 0x80. */
static inline int is_ascii(const uint8_t *p, Py_ssize_t size) {
    uint64_t seen = 0, word;
    if (LIKELY(size >= 8)) { /* reads the last bytes twice rather than one by one */
        const uint8_t *last = p + size - 8;
        for (; p < last; p += 8) {
            memcpy(&word, p, 8);
            seen |= word;
        }
        memcpy(&word, last, 8);
        seen |= word;
    } else {
        while (size--) seen |= *p++;
    }
    return !(seen & UINT64_C(0x8080808080808080));
}

/* memcpy for mostly short data: a call of it takes longer than copying a name. */
static inline void copy_bytes(void *to, const void *from, Py_ssize_t size) {
    char *t = to;
    const char *f = from;
    /* Copies the last bytes twice rather than one by one. */
    if (LIKELY(size >= 16 && size <= 64)) {
        memcpy(t, f, 16);
        if (size > 32) {
            memcpy(t + 16, f + 16, 16);
            memcpy(t + size - 32, f + size - 32, 16);
        }
        memcpy(t + size - 16, f + size - 16, 16);
    } else if (size > 64) {
        memcpy(t, f, (size_t)size);
    } else if (size >= 8) {
        memcpy(t, f, 8);
        memcpy(t + size - 8, f + size - 8, 8);
    } else {
        while (size--) *t++ = *f++;
    }
}

/* ---- the engine's doors ------------------------------------------------------------------ */

PyObject *decode_struct(reader *in, const struct_plan *plan);        /* decode.c; new reference */
int validate_struct(reader *in, const struct_plan *plan);            /* validate.c */
int validate_elements(reader *in, const field_plan *field, int64_t count);
int validate_field(reader *in, const field_plan *field);
PyObject *plan_printer(PyObject *plan, PyObject *args);              /* print.c */
PyObject *encode_message(plan_object *self, PyObject *message);      /* encode.c; new reference */

PyObject *methods_of(PyObject *module, PyObject *args); /* entry.c: the methods of Message */
int add_record_types(PyObject *module);                 /* records_read.c */
void set_up_crc32c(void);                               /* crc32c.c */
PyObject *crc32c(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* frames.c */
PyObject *requests_alike(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *answers_in_order(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *is_untagged(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* Clears an error of C, so that Python can raise its own; -1 for errors that must propagate
   (KeyboardInterrupt and the like). */
static inline int forget_error(void) {
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

static inline void keep(PyObject **place, PyObject *value) {
    PyObject *before = *place;
    Py_INCREF(value);
    *place = value;
    Py_XDECREF(before);
}

/* values.c */
PyObject *new_number(int kind, const uint8_t *p); /* any kind of fixed width, uuid included */
PyObject *new_string(const uint8_t *p, Py_ssize_t size);
int put_uuid(uint8_t *p, PyObject *value); /* 16 bytes; -1 where Python must handle `value` */
int find_uuid_slots(void);
int is_at_default(const field_plan *field, PyObject *value); /* 1, 0, or -1: Python must decide */

#endif
