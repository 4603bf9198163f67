/* Makes the rows of complete, usual exchanges without an object for each: rows of `frames`,
   `requests` and `bodies` as wiredump/rows/exchanges.py makes them, and those of batches with
   gathering.c. Unusual exchanges become objects for Python instead. */
#include "wire.h"

enum { PRODUCE = 0, API_VERSIONS = 18, UNSUPPORTED_VERSION = 35, PRINTERS = 128 };

static const char FRAME_CODES[] = "quqqqqqiqhhi?", REQUEST_CODES[] = "qqqqqqqhuhhuiuuuuuqq??Uiu",
                  BODY_CODES[] = "quqhuhiuuu";

/* How the messages of an API version are printed. */
typedef struct {
    int key, version;
    PyObject *api;     /* its name; NULL: not looked up yet; None: its messages are not printed */
    PyObject *message; /* its name */
    PyObject *header, *body;
} printers;

struct exchange_rows_object {
    PyObject_HEAD
    held_object *frames, *requests, *bodies; /* NULL: this table is not written */
    PyObject *printers_of, *left_over, *errors_of, *follow, *full, *gatherer, *dialect;
    PyObject *start; /* the offset at which a header begins */
    int prints_all;  /* print all messages, not only those for `follow` */
    uint8_t items[1 << 13], followed[1 << 13], carrying[1 << 13];
    int is_filtered, any_key, any_connection;
    uint8_t wanted[1 << 13]; /* API keys, unless `any_key` */
    int64_t *connections;    /* sorted ids, unless `any_connection` */
    Py_ssize_t connection_count;
    int64_t since, until;
    printers known[2][PRINTERS]; /* by whether they are responses */
};

/* The printed text of a request or response. The references are owned; all are NULL if the
   message is not printed. */
typedef struct {
    PyObject *header, *body; /* their texts */
    PyObject *codes, *throttle;
    PyObject *problem; /* NULL: none */
    const printers *by;
} printed;

static PyObject *client_name, *broker_name, *name_name, *version_name;

int only_frames(const exchange_rows_object *self) {
    return self != NULL && self->requests == NULL && self->bodies == NULL &&
           self->gatherer == NULL && self->follow == NULL && !self->prints_all;
}

/* Whether Python follows the exchange, besides its rows. */
static int is_followed(const exchange_rows_object *self, int key, int is_transactional) {
    return self->follow != NULL && has_key(self->followed, key) &&
           (key != PRODUCE || is_transactional);
}

static int is_printed(const exchange_rows_object *self, int key, int is_transactional) {
    return self->prints_all || is_followed(self, key, is_transactional);
}

static int is_carrying(const exchange_rows_object *self, int key) {
    return self->gatherer != NULL && has_key(self->carrying, key);
}

/* ---- which exchanges get rows: wiredump/rows/exchange_filter.py --------------------------------- */

static int passes_key(const exchange_rows_object *self, int key) {
    return !self->is_filtered || self->any_key || has_key(self->wanted, key);
}

static int passes(const exchange_rows_object *self, const whole_exchange *of) {
    if (LIKELY(!self->is_filtered)) return 1;
    const frame *sent = of->request, *reply = of->response;
    int64_t first = sent->first_ns, last = sent->last_ns;
    if (reply != NULL && reply->first_ns < first) first = reply->first_ns;
    if (reply != NULL && reply->last_ns > last) last = reply->last_ns;
    if (!passes_key(self, of->key) || first > self->until || last < self->since) return 0;
    if (self->any_connection) return 1;
    for (Py_ssize_t low = 0, high = self->connection_count; low < high;) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (self->connections[middle] == of->on->id) return 1;
        if (self->connections[middle] < of->on->id) low = middle + 1;
        else high = middle;
    }
    return 0;
}

/* only(API keys or None, sorted ids of connections or None, since, until): exchanges that do not
   pass get no rows, unless Python follows them */
static PyObject *only(PyObject *object, PyObject *args) {
    exchange_rows_object *self = (exchange_rows_object *)object;
    PyObject *keys, *ids;
    long long since, until;
    if (!PyArg_ParseTuple(args, "OOLL", &keys, &ids, &since, &until)) return NULL;
    if ((keys != Py_None && !PyTuple_CheckExact(keys)) ||
        (ids != Py_None && !PyTuple_CheckExact(ids))) {
        PyErr_SetString(PyExc_TypeError, "expected tuples or None");
        return NULL;
    }
    memset(self->wanted, 0, sizeof(self->wanted));
    if (keys != Py_None && note_keys(self->wanted, keys)) return NULL;
    Py_ssize_t count = ids == Py_None ? 0 : PyTuple_GET_SIZE(ids);
    int64_t *made = PyMem_Malloc((size_t)(count ? count : 1) * sizeof(int64_t));
    if (made == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        made[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(ids, i));
        if (made[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(made);
            return NULL;
        }
    }
    PyMem_Free(self->connections);
    self->connections = made;
    self->connection_count = count;
    self->any_key = keys == Py_None;
    self->any_connection = ids == Py_None;
    self->since = since;
    self->until = until;
    self->is_filtered = 1;
    Py_RETURN_NONE;
}

enum kind exchange_kind(const exchange_rows_object *self, int key) {
    if (self == NULL || has_key(self->items, key)) return AN_ITEM;
    if (!passes_key(self, key) && !is_followed(self, key, 1)) return ROWS;
    /* If the response is lost, the exchange goes to Python, which then needs the bytes of the
       request. */
    return is_printed(self, key, 1) || is_carrying(self, key) ? ROWS_OF_BYTES : ROWS;
}

int note_keys(uint8_t *noted, PyObject *keys) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        long key = PyLong_AsLong(PyTuple_GET_ITEM(keys, i));
        if (key == -1 && PyErr_Occurred()) return -1;
        uint16_t bit = (uint16_t)key;
        noted[bit >> 3] |= (uint8_t)(1 << (bit & 7));
    }
    return 0;
}

/* ---- bodies as text --------------------------------------------------------------------------- */

/* Borrowed; NULL with an exception. */
static const printers *printers_of(exchange_rows_object *self, int key, int version,
                                   int is_response) {
    unsigned at = ((unsigned)key * 16 + (unsigned)version) % PRINTERS;
    printers *each = &self->known[is_response][at];
    if (each->api != NULL && each->key == key && each->version == version) return each;
    PyObject *found = PyObject_CallFunction(self->printers_of, "iii", key, version, !is_response);
    if (found == NULL) return NULL;
    printers made = {key, version, Py_None, Py_None, Py_None, Py_None};
    if (found != Py_None &&
        !PyArg_ParseTuple(found, "UUOO", &made.api, &made.message, &made.header, &made.body)) {
        Py_DECREF(found);
        return NULL;
    }
    Py_INCREF(made.api);
    Py_INCREF(made.message);
    Py_INCREF(made.header);
    Py_INCREF(made.body);
    Py_DECREF(found);
    const printers before = *each;
    *each = made;
    Py_XDECREF(before.api);
    Py_XDECREF(before.message);
    Py_XDECREF(before.header);
    Py_XDECREF(before.body);
    return each;
}

/* Calls a printer. Returns 1 with its (text, end, error codes, throttle time), 0 if the message
   cannot be printed, -1 with an exception. */
static int print(PyObject *printer, PyObject *raw, PyObject *at, PyObject **out) {
    PyObject *given[] = {raw, at};
    *out = PyObject_Vectorcall(printer, given, 2, NULL);
    if (*out == NULL) return -1;
    if (*out != Py_None && PyTuple_CheckExact(*out) && PyTuple_GET_SIZE(*out) == 4 &&
        PyUnicode_Check(PyTuple_GET_ITEM(*out, 0)) && PyLong_Check(PyTuple_GET_ITEM(*out, 1)) &&
        PyTuple_Check(PyTuple_GET_ITEM(*out, 2)))
        return 1;
    int is_none = *out == Py_None;
    if (!is_none)
        PyErr_Format(PyExc_TypeError, "expected (text, end, codes, throttle time) from the printer, got %.200s",
                     Py_TYPE(*out)->tp_name);
    Py_CLEAR(*out);
    return is_none ? 0 : -1;
}

static int print_side(exchange_rows_object *self, PyObject *raw, int key, int version,
                      int is_response, printed *out) {
    PyObject *header, *body;
    out->by = printers_of(self, key, version, is_response);
    if (out->by == NULL) return -1;
    if (out->by->api == Py_None) return 0;
    int done = print(out->by->header, raw, self->start, &header);
    if (done != 1) return done;
    done = print(out->by->body, raw, PyTuple_GET_ITEM(header, 1), &body);
    if (done == 1) {
        out->header = Py_NewRef(PyTuple_GET_ITEM(header, 0));
        out->body = Py_NewRef(PyTuple_GET_ITEM(body, 0));
        out->codes = Py_NewRef(PyTuple_GET_ITEM(body, 2));
        out->throttle = Py_NewRef(PyTuple_GET_ITEM(body, 3));
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(body, 1)) != PyBytes_GET_SIZE(raw)) {
            out->problem = PyObject_CallFunctionObjArgs(self->left_over, raw,
                                                        PyTuple_GET_ITEM(body, 1), NULL);
            if (out->problem == NULL) done = -1;
        }
        Py_DECREF(body);
    }
    Py_DECREF(header);
    return done;
}

static void forget_side(printed *side) {
    Py_XDECREF(side->header);
    Py_XDECREF(side->body);
    Py_XDECREF(side->codes);
    Py_XDECREF(side->throttle);
    Py_XDECREF(side->problem);
}

/* Python adds an explanation if the broker lacks the version. ApiVersions itself is the
   exception: its rows are the same either way. */
static int has_fallen_back(const printed *response) {
    for (Py_ssize_t i = 0; response->codes && i < PyTuple_GET_SIZE(response->codes); i++)
        if (PyLong_AsLong(PyTuple_GET_ITEM(response->codes, i)) == UNSUPPORTED_VERSION) return 1;
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static const char *const DIRECTIONS[2] = {"request", "response"};

static int finish(exchange_rows_object *self, held_object *rows, const char *table,
                  Py_ssize_t size, int failed) {
    int full = held_end(rows, size, failed);
    if (full <= 0) return full;
    PyObject *done = PyObject_CallFunction(self->full, "s", table);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int frame_row(exchange_rows_object *self, const whole_exchange *of, const frame *from,
                     int is_response) {
    cells *at = self->frames->columns;
    Py_ssize_t size = 0;
    int version = is_response ? of->response_version : of->version;
    int failed = cells_number(at++, of->on->id) ||
                 cells_sized_literal(at++, DIRECTIONS[is_response], &size) ||
                 cells_number(at++, from->offset) || cells_number(at++, from->size) ||
                 cells_number(at++, from->missing) || cells_number(at++, from->first_ns) ||
                 cells_number(at++, from->last_ns) || cells_number(at++, from->capture) ||
                 cells_number(at++, from->place) || cells_known(at++, of->key, of->key >= 0) ||
                 cells_known(at++, version, is_response || version >= 0) ||
                 cells_number(at++, of->id) || cells_bool(at++, 0);
    return finish(self, self->frames, "frames", size, failed);
}

static int body_row(exchange_rows_object *self, const whole_exchange *of, const frame *from,
                    const printed *side, int is_response) {
    cells *at = self->bodies->columns;
    Py_ssize_t size = 0;
    int failed = cells_number(at++, of->on->id) ||
                 cells_sized_literal(at++, DIRECTIONS[is_response], &size) ||
                 cells_number(at++, from->offset) || cells_number(at++, of->key) ||
                 cells_sized_text(at++, side->by->message, &size) ||
                 cells_number(at++, is_response ? of->response_version : of->version) ||
                 cells_number(at++, of->id) || cells_sized_text(at++, side->header, &size) ||
                 cells_sized_text(at++, side->body, &size) || cells_sized_text(at++, side->problem, &size);
    return finish(self, self->bodies, "bodies", size, failed);
}

static int attribute(cells *to, PyObject *of, PyObject *name, Py_ssize_t *size) {
    if (of == Py_None) return cells_null(to);
    PyObject *value = PyObject_GetAttr(of, name);
    int failed = value == NULL || cells_sized_text(to, value, size);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static int errors(exchange_rows_object *self, cells *to, const printed *response) {
    PyObject *codes = response->codes;
    PyObject *names = codes != NULL && PyTuple_GET_SIZE(codes)
                          ? PyObject_CallOneArg(self->errors_of, codes)
                          : PyTuple_New(0);
    int failed = names == NULL || cells_value(to, names);
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

/* Joins the problems of the request and the response. */
static int problems(cells *to, const printed *request, const printed *response, Py_ssize_t *size) {
    if (request->problem == NULL && response->problem == NULL) return cells_null(to);
    PyObject *text;
    if (response->problem == NULL)
        text = PyUnicode_FromFormat("request: %U", request->problem);
    else if (request->problem == NULL)
        text = PyUnicode_FromFormat("response: %U", response->problem);
    else
        text = PyUnicode_FromFormat("request: %U; response: %U", request->problem,
                                    response->problem);
    int failed = text == NULL || cells_sized_text(to, text, size);
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

static int request_row(exchange_rows_object *self, const whole_exchange *of,
                       const printed *request, const printed *response) {
    cells *at = self->requests->columns;
    const frame *sent = of->request, *reply = of->response;
    PyObject *software = of->on->software, *connection = of->on->connection;
    const printers *by = reply != NULL ? response->by : request->by;
    Py_ssize_t size = 0;
    int64_t end = reply == NULL ? 0 : reply->last_ns;
    int there = reply != NULL, known = there && end >= sent->first_ns;
    int failed = cells_number(at++, of->on->id) || cells_number(at++, sent->offset) ||
                 cells_known(at++, there ? reply->offset : 0, there) ||
                 cells_number(at++, sent->first_ns) || cells_known(at++, end, there) ||
                 cells_known(at++, end, there) ||
                 cells_known(at++, known ? end - sent->first_ns : 0, known) ||
                 cells_known(at++, of->key, of->key >= 0) ||
                 cells_sized_text(at++, by == NULL ? NULL : by->api, &size) ||
                 cells_known(at++, of->version, of->version >= 0) ||
                 cells_known(at++, of->response_version, there) ||
                 cells_sized_text(at++, self->dialect, &size) || cells_number(at++, of->id) ||
                 cells_sized_text(at++, of->client_id, &size) ||
                 attribute(at++, software, name_name, &size) ||
                 attribute(at++, software, version_name, &size) ||
                 attribute(at++, connection, client_name, &size) ||
                 attribute(at++, connection, broker_name, &size) ||
                 cells_known(at++, sent->size, sent->size != 0) ||
                 cells_known(at++, there ? reply->size : 0, there && reply->size != 0) ||
                 cells_bool(at++, there) || cells_bool(at++, of->in_order) ||
                 errors(self, at++, response) ||
                 cells_value(at++, response->throttle ? response->throttle : Py_None) ||
                 problems(at++, request, response, &size);
    return finish(self, self->requests, "requests", size, failed);
}

static int hand_over(exchange_rows_object *self, const whole_exchange *of,
                     const printed *request, const printed *response) {
    PyObject *end = of->response == NULL ? Py_NewRef(Py_None)
                                         : PyLong_FromLongLong(of->response->last_ns);
    if (end == NULL) return -1;
    PyObject *done = PyObject_CallFunction(
        self->follow, "OLLLOOOiiOO", of->on->connection, (long long)of->on->id,
        (long long)of->request->offset, (long long)of->request->first_ns, end, of->client_id,
        of->on->software, of->key, of->version, request->body,
        response->body != NULL ? response->body : Py_None);
    Py_DECREF(end);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Returns 1; 0 if the exchange must go to Python; -1 with an exception. */
static int gather_batches(exchange_rows_object *self, const whole_exchange *of) {
    int is_request = of->key == PRODUCE;
    const frame *last = of->response != NULL ? of->response : of->request;
    carrier from = {
        .connection = of->on->id,
        .completed_ns = last->last_ns,
        .of = is_request ? of->request : of->response,
        .on = of->on->connection,
        .key = of->key,
        .version = is_request ? of->version : of->response_version,
        .raw = is_request ? of->raw : of->response_raw,
    };
    return from.of == NULL ? 1 : gather(self->gatherer, &from);
}

static int add_rows(exchange_rows_object *self, const whole_exchange *of, const printed *request,
                    const printed *response) {
    if (self->frames != NULL && (frame_row(self, of, of->request, 0) ||
                                 (of->response != NULL && frame_row(self, of, of->response, 1))))
        return -1;
    if (self->requests != NULL && request_row(self, of, request, response)) return -1;
    if (self->bodies != NULL && request->body != NULL && (body_row(self, of, of->request, request, 0) ||
        (of->response != NULL && body_row(self, of, of->response, response, 1))))
        return -1;
    if (!is_followed(self, of->key, of->transactional)) return 0;
    return hand_over(self, of, request, response);
}

int exchange_rows_add(exchange_rows_object *self, const whole_exchange *of) {
    printed request = {0}, response = {0};
    if (self->full == NULL) { /* the object is being destroyed */
        PyErr_SetString(PyExc_RuntimeError, "the ExchangeRows object was destroyed");
        return -1;
    }
    int taken = 1;
    if (!passes(self, of) && !is_followed(self, of->key, of->transactional)) return 1;
    if (is_printed(self, of->key, of->transactional)) {
        taken = print_side(self, of->raw, of->key, of->version, 0, &request);
        if (taken == 1 && of->response != NULL)
            taken = print_side(self, of->response_raw, of->key, of->response_version, 1, &response);
        if (taken == 1 && of->key != API_VERSIONS && has_fallen_back(&response)) taken = 0;
    }
    if (taken == 1 && is_carrying(self, of->key)) taken = gather_batches(self, of);
    if (taken == 1 && add_rows(self, of, &request, &response)) taken = -1;
    forget_side(&request);
    forget_side(&response);
    return taken;
}

/* ---- the object ------------------------------------------------------------------------------- */

#define EACH(DO)                                                                                   \
    DO(self->frames) DO(self->requests) DO(self->bodies) DO(self->printers_of)                     \
    DO(self->left_over) DO(self->errors_of) DO(self->follow) DO(self->full) DO(self->gatherer) DO(self->dialect)      \
    DO(self->start)

static int note_names(void) {
    if (version_name != NULL) return 0;
    client_name = PyUnicode_InternFromString("client");
    broker_name = PyUnicode_InternFromString("broker");
    name_name = PyUnicode_InternFromString("name");
    version_name = PyUnicode_InternFromString("version");
    return client_name && broker_name && name_name && version_name ? 0 : -1;
}

static PyObject *some(PyObject *given) { return given == Py_None ? NULL : Py_NewRef(given); }

/* ExchangeRows(frames, requests, bodies, prints_all, printers_of, left_over, errors_of, follow,
   followed, full, gatherer, dialect, items, carrying). `frames`, `requests`, `bodies`: the
   HeldRows of these tables, or None. `prints_all`: whether every message is printed, or only
   those for `follow`. printers_of(api key, version, whether it is a request) returns (name of the
   API, name of the message, printer of the header, printer of the body), or None if Python
   prints. left_over(frame, end of its message) describes the bytes behind a message.
   errors_of(codes) returns the names of error codes. follow(connection, id, offset, requested,
   responded, client id, software, api key, version, request's text, response's text or None) is
   called with each exchange of an API key in `followed`, of Produce only with those of
   transactions; None: not called. full(table) is called when there are enough rows for a row
   group. `gatherer`: takes batches, or None. `dialect`: its name. `items`: API keys whose
   exchanges become objects. `carrying`: API keys whose messages may contain batches. */
static PyObject *new_rows(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *frames, *requests, *bodies, *printers_of, *left_over, *errors_of, *follow, *followed;
    PyObject *full, *gatherer, *dialect, *items, *carrying;
    int prints_all;
    if (refuse_keywords(keywords, "ExchangeRows")) return NULL;
    if (!PyArg_ParseTuple(args, "OOOpOOOOO!OOUO!O!", &frames, &requests, &bodies, &prints_all,
                          &printers_of, &left_over, &errors_of, &follow, &PyTuple_Type, &followed, &full,
                          &gatherer, &dialect, &PyTuple_Type, &items, &PyTuple_Type, &carrying))
        return NULL;
    if (gatherer != Py_None && !Py_IS_TYPE(gatherer, &gatherer_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Gatherer or None");
        return NULL;
    }
    exchange_rows_object *self = (exchange_rows_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->prints_all = prints_all;
    self->printers_of = Py_NewRef(printers_of);
    self->left_over = Py_NewRef(left_over);
    self->errors_of = Py_NewRef(errors_of);
    self->follow = some(follow);
    self->full = Py_NewRef(full);
    self->gatherer = some(gatherer);
    self->dialect = Py_NewRef(dialect);
    self->start = PyLong_FromLong(4);
    self->frames = held_of(frames, FRAME_CODES);
    if (!PyErr_Occurred()) self->requests = held_of(requests, REQUEST_CODES);
    if (!PyErr_Occurred()) self->bodies = held_of(bodies, BODY_CODES);
    if (PyErr_Occurred() || note_names() || note_keys(self->items, items) ||
        note_keys(self->followed, followed) || note_keys(self->carrying, carrying))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* The callbacks may refer to this object. */
static int traverse(PyObject *object, visitproc visit, void *arg) {
    exchange_rows_object *self = (exchange_rows_object *)object;
#define VISIT(each) Py_VISIT(each);
    EACH(VISIT)
    return 0;
}

static int clear(PyObject *object) {
    exchange_rows_object *self = (exchange_rows_object *)object;
#define CLEAR(each) Py_CLEAR(each);
    EACH(CLEAR)
    return 0;
}

static void dealloc(PyObject *object) {
    exchange_rows_object *self = (exchange_rows_object *)object;
    PyObject_GC_UnTrack(object);
    clear(object);
    for (int i = 0; i < 2 * PRINTERS; i++) {
        printers *each = &self->known[i / PRINTERS][i % PRINTERS];
        Py_XDECREF(each->api);
        Py_XDECREF(each->message);
        Py_XDECREF(each->header);
        Py_XDECREF(each->body);
    }
    PyMem_Free(((exchange_rows_object *)object)->connections);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {{"only", only, METH_VARARGS, NULL}, {0}};

PyTypeObject exchange_rows_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "wiredump.native._quick.ExchangeRows",
    .tp_basicsize = sizeof(exchange_rows_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_rows,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
};
