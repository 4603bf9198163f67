/* What selection.c, which compiles a selection, columns.c, which walks bodies by it, buffers.c, which
   writes columns, and arrow.c, which hands them out, share. */
#ifndef KPROTO_COLUMNS_H
#define KPROTO_COLUMNS_H

#include "engine.h"

/* ---- what is made ----------------------------------------------------------------------------- */

/* Bytes that grow: an object of Python's from the start, so that nothing is copied in the end. */
typedef struct {
    PyObject *bytes; /* as long as there is room; NULL at first */
    Py_ssize_t size; /* of which these are in use */
} buffer;

/* Values of one kind that is no array: a column's, or the elements of a column of arrays. */
typedef struct {
    buffer offsets; /* of strings and bytes: int32, one more than there are values */
    buffer data;    /* numbers in the machine's byte order; of bools a bit each, the lowest first */
    Py_ssize_t count;
} values;

typedef struct {
    const field_plan *field;
    reader next; /* at the next row's value as the wire has it; at NULL for null */
    Py_ssize_t rows, nulls;
    Py_ssize_t nulls_before; /* at the table's mark */
    buffer validity; /* a bit a row; nothing as long as no row is null */
    buffer offsets;  /* of arrays */
    values values;
} column;

/* What one call of Selection.read makes. */
typedef struct {
    Py_ssize_t limit; /* of the bytes, and of the values, in any one buffer; at most INT32_MAX */
    int full;         /* it was met */
    Py_ssize_t rows;
    buffer frame; /* of a row, the number of its body: int32 */
    Py_ssize_t column_count;
    column *columns;
} table;

/* buffers.c. The first three: 0, or -1 at the limit (`full`) or with a MemoryError. */
int table_begin(table *made);
int put_rows(table *made, column *to, Py_ssize_t rows); /* the next row's value */
int put_frame(table *made, Py_ssize_t frame, Py_ssize_t rows);
void table_mark(table *made);      /* a body begins */
void table_take_back(table *made); /* to how it was at the mark */
PyObject *table_finish(table *made, PyObject *failed, Py_ssize_t full_at); /* new reference */
void table_free(table *made);

/* ---- a selection (selection.c makes it; nothing changes it afterwards) ------------------------ */

typedef struct node node;
typedef struct level level;

typedef struct {
    Py_ssize_t column; /* -1: none */
    node *inner;       /* of a struct in which something was chosen */
    level *below;      /* of the array whose elements are the next level */
} mark;

/* A struct in which something was chosen. */
struct node {
    const struct_plan *plan;
    mark *marks;   /* one a field */
    int certain;   /* all that was chosen in it is among its inline fields, and in no inner struct */
    node *created; /* before this one: to free them all */
};

/* The message, or the elements of a chosen array. */
struct level {
    node *root;
    Py_ssize_t column_count, *columns; /* those whose values belong to it */
    level *below;
};

typedef struct {
    const field_plan *field;
    PyObject *fallback; /* bytes: as the wire would have the default; or None */
} chosen;

typedef struct {
    PyObject_HEAD
    plan_object *plan;
    Py_ssize_t level_count, column_count;
    level *levels;
    chosen *columns;
    node *nodes;
} selection_object;

extern PyTypeObject selection_type;
PyObject *plan_select(PyObject *plan, PyObject *args);                  /* Plan.select */
PyObject *selection_read(selection_object *self, PyObject *args);       /* columns.c */
PyObject *selection_export(PyObject *self, PyObject *column);           /* arrow.c */

#endif
