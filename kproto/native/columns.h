/* What these files share: selection.c compiles a selection, columns.c reads bodies by it, buffers.c
   writes columns, places.c notes places instead, and arrow.c exports columns. */
#ifndef KPROTO_COLUMNS_H
#define KPROTO_COLUMNS_H

#include "engine.h"

/* ---- what is made ----------------------------------------------------------------------------- */

/* A buffer that grows. It is a Python object from the start, so that it need not be copied at the
   end. */
typedef struct {
    PyObject *bytes; /* its size is the capacity; NULL at first */
    Py_ssize_t size; /* bytes in use */
} buffer;

/* Values of one kind other than array: a column's, or the elements of a column of arrays. */
typedef struct {
    buffer offsets; /* of strings and bytes: int32, one more than there are values */
    buffer data;    /* numbers in the machine's byte order; of bools a bit each, the lowest first */
    Py_ssize_t count;
} values;

typedef struct {
    const field_plan *field;
    reader next; /* the encoded value of the next row; NULL for null */
    Py_ssize_t rows, nulls;
    Py_ssize_t nulls_before; /* at the table's mark */
    buffer validity; /* one bit per row; empty as long as no row is null */
    buffer offsets;  /* of arrays */
    values values;
} column;

/* The result of one call of Selection.read. */
typedef struct {
    Py_ssize_t limit; /* of the bytes, and of the values, in any buffer; at most INT32_MAX */
    int full;         /* the limit was reached */
    Py_ssize_t rows;
    buffer frame; /* the number of each row's body: int32 */
    Py_ssize_t column_count;
    column *columns;
} table;

/* In buffers.c. The first three return 0, or -1 at the limit (`full`) or with a MemoryError. */
int table_begin(table *made);
int put_rows(table *made, column *to, Py_ssize_t rows); /* the next row's value */
int put_frame(table *made, Py_ssize_t frame, Py_ssize_t rows);
void table_mark(table *made);      /* a body begins */
void table_take_back(table *made); /* back to the state at the mark */
PyObject *table_finish(table *made, PyObject *failed, Py_ssize_t full_at); /* new reference */
void table_free(table *made);

/* ---- a selection (selection.c makes it; nothing changes it afterwards) ------------------------ */

typedef struct node node;
typedef struct level level;

typedef struct {
    Py_ssize_t column; /* -1: none */
    node *inner;       /* of a struct with a selected field */
    level *below;      /* of the array whose elements are the next level */
} mark;

/* A struct with a selected field. */
struct node {
    const struct_plan *plan;
    mark *marks;   /* one a field */
    int certain;   /* all selected fields are inline fields of it, and none is in an inner struct */
    node *created; /* before this one: to free them all */
};

/* The message, or the elements of a selected array. */
struct level {
    node *root;
    Py_ssize_t column_count, *columns; /* the columns whose values belong to it */
    level *below;
};

typedef struct {
    const field_plan *field;
    PyObject *fallback; /* bytes: the default as encoded; or None */
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
PyObject *selection_locate(selection_object *self, PyObject *const *args,
                           Py_ssize_t count);                           /* places.c */
PyObject *selection_export(PyObject *self, PyObject *column);           /* arrow.c */
/* ---- reading by a selection ------------------------------------------------------------------- */

/* Where the values of one body are: (start, size) of each column, row by row; (-1, -1) of nulls and
   of defaults that are not in the bytes. */
typedef struct {
    const uint8_t *start, *end; /* of the body */
    PyObject *bytes;            /* NULL before the first row */
} places;

typedef struct {
    int32_t start, size;
} place;

typedef struct {
    const selection_object *selection;
    table made;
    places *noted; /* NULL: values are put into columns */
} reading;

/* In columns.c: both return 0, or -1 for an invalid body, at the limit or with a MemoryError. */
int reading_begin(reading *self, const selection_object *selection, Py_ssize_t limit);
int read_level(reading *self, reader *in, const level *at);

#endif
