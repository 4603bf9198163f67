/* Turns whole, usual frames into exchanges as wiredump/pairing.py does: finds the request of each
   response, and the version of the response. */
#include "wire.h"

enum { PRODUCE = 0, CONTROLLED_SHUTDOWN = 7, SASL_HANDSHAKE = 17, API_VERSIONS = 18 };
enum { REQUEST_PREFIX = 12, UNSUPPORTED_VERSION = 35, SCRATCH = 1 << 16, RANGE_BITS = 12 };

/* ---- what a frame is read by ---------------------------------------------------------------- */

typedef struct {
    const uint8_t *at;
    int64_t size; /* of the frame */
    int64_t seen; /* the number of bytes at `at` */
} head;

/* The first bytes of the current frame, at least `least` if it is that long; `seen` 0 at first. */
static int see(const arrival *in, head *frame, int64_t least) {
    reading_object *self = in->reading;
    const stream *from = in->stream;
    if (frame->at == NULL) {
        frame->size = from->need;
        frame->at = stream_head(from, in->chunk, from->base, &frame->seen);
        if (frame->seen > frame->size) frame->seen = frame->size;
    }
    if (least > frame->size) least = frame->size;
    if (frame->seen >= least) return 0;
    if (self->scratch == NULL && (self->scratch = PyMem_Malloc(SCRATCH)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    frame->seen = frame->size < SCRATCH ? frame->size : SCRATCH;
    stream_gather(from, in->chunk, from->base, frame->seen, self->scratch);
    frame->at = self->scratch;
    return 0;
}

static int varint(const head *in, int64_t *at, uint64_t *value) {
    *value = 0;
    for (int shift = 0; *at < in->seen && shift < 35; shift += 7) {
        uint8_t byte = in->at[(*at)++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return 1;
    }
    return 0;
}

enum { NO_ACKS = 1 << 20, TOO_FAR = 1 << 21 };

/* Returns `acks` of a Produce request whose header ends at `at`; NO_ACKS if it has none; TOO_FAR
   if it is beyond the bytes at hand. Also determines whether the request belongs to a
   transaction. */
static int32_t acks_of(const head *in, int64_t at, int version, int flexible, int *transactional) {
    int32_t short_of = in->seen < in->size ? TOO_FAR : NO_ACKS;
    uint64_t count, size;
    if (flexible) {
        if (!varint(in, &at, &count)) return short_of;
        if (count > (uint64_t)in->size) return NO_ACKS;
        while (count--) {
            STEPS(1);
            uint64_t tag;
            if (!varint(in, &at, &tag) || !varint(in, &at, &size)) return short_of;
            at += (int64_t)size; /* below 2^35, and `at` is within the frame: no overflow */
        }
        if (!varint(in, &at, &size)) return short_of;
        *transactional = size > 1;
        at += size ? (int64_t)size - 1 : 0;
    } else if (version >= 3) {
        if (at + 2 > in->size) return NO_ACKS;
        if (at + 2 > in->seen) return TOO_FAR;
        int16_t length = (int16_t)get16(in->at + at);
        if (length < -1) return NO_ACKS;
        *transactional = length > 0;
        at += 2 + (length > 0 ? length : 0);
        if (at > in->size) return NO_ACKS;
    }
    if (at + 2 > in->size) return NO_ACKS;
    if (at + 2 > in->seen) return TOO_FAR;
    return (int16_t)get16(in->at + at);
}

static int note_client(connection *on, const uint8_t *raw, Py_ssize_t size) {
    if (on->client_raw != NULL && on->client_size == size &&
        memcmp(on->client_raw, raw, (size_t)size) == 0)
        return 0;
    PyObject *made = PyUnicode_DecodeUTF8((const char *)raw, size, "replace");
    if (made == NULL) return -1;
    if (size + 1 > on->client_room) {
        char *grown = PyMem_Realloc(on->client_raw, (size_t)size + 1);
        if (grown == NULL) {
            Py_DECREF(made);
            PyErr_NoMemory();
            return -1;
        }
        on->client_raw = grown;
        on->client_room = size + 1;
    }
    memcpy(on->client_raw, raw, (size_t)size);
    on->client_size = size;
    Py_XSETREF(on->client_id, made);
    return 0;
}

/* ---- what comes out ------------------------------------------------------------------------- */

static void frame_of(const stream *from, int64_t size, frame *out) {
    const mark *first = stream_first_mark(from, from->base);
    out->offset = from->base;
    out->size = size;
    out->missing = 0;
    out->first_ns = first->time;
    out->last_ns = from->marks[from->mark_end - 1].time;
    out->place = first->place;
    out->capture = first->capture;
}

/* Steals the reference to `raw`, which may be NULL with an exception. */
static PyObject *frame_object(reading_object *self, PyObject *raw, const frame *of,
                              PyObject *direction) {
    if (raw == NULL) return NULL;
    PyObject *place = PyObject_CallFunction(self->place_type, "iL", (int)of->capture,
                                            (long long)of->place);
    PyObject *made = place == NULL ? NULL
                                   : PyObject_CallFunction(self->frame_type, "OLLOiLLO", direction,
                                                           (long long)of->offset,
                                                           (long long)of->size, raw, 0,
                                                           (long long)of->first_ns,
                                                           (long long)of->last_ns, place);
    Py_DECREF(raw);
    Py_XDECREF(place);
    return made;
}

static PyObject *request_name, *response_name, *version_name, *in_order_name;

static int intern_names(void) {
    if (in_order_name != NULL) return 0;
    request_name = PyUnicode_InternFromString("request");
    response_name = PyUnicode_InternFromString("response");
    version_name = PyUnicode_InternFromString("response_version");
    in_order_name = PyUnicode_InternFromString("in_order");
    return request_name && response_name && version_name && in_order_name ? 0 : -1;
}

/* A response whose bytes are still in its stream. */
typedef struct {
    frame of;
    const stream *from;
    const uint8_t *chunk;
    int version, in_order;
} answer;

static PyObject *bytes_of(const answer *response) {
    return stream_bytes(response->from, response->chunk, response->of.offset, response->of.size);
}

/* Makes the exchange of a request without its response. */
static PyObject *exchange_object(reading_object *self, const connection *on, const open_request *entry,
                                 int32_t id, PyObject *raw, int expected) {
    PyObject *request = frame_object(self, raw, &entry->request, request_name);
    if (request == NULL) return NULL;
    PyObject *made = PyObject_CallFunction(
        self->exchange_type, "OOOiiiOOOOO", on->connection, request, Py_None, (int)entry->key,
        (int)entry->version, (int)id, entry->client_id, on->software, self->dialect, Py_None,
        expected ? Py_True : Py_False);
    Py_DECREF(request);
    return made;
}

static int complete(reading_object *self, PyObject *exchange, const answer *response) {
    PyObject *made = frame_object(self, bytes_of(response), &response->of, response_name);
    PyObject *number = made == NULL ? NULL : PyLong_FromLong(response->version);
    int failed = number == NULL || PyObject_SetAttr(exchange, response_name, made) ||
                 PyObject_SetAttr(exchange, version_name, number) ||
                 PyObject_SetAttr(exchange, in_order_name, response->in_order ? Py_True : Py_False);
    Py_XDECREF(made);
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

static int give_item(reading_object *self, const connection *on, const open_request *entry, int32_t id,
                     const answer *response) {
    if (entry->exchange == NULL && entry->bytes == NULL) {
        PyErr_SetString(PyExc_SystemError, "the bytes of a request were not kept");
        return -1;
    }
    if (intern_names()) return -1;
    PyObject *made = entry->exchange != NULL
                         ? Py_NewRef(entry->exchange)
                         : exchange_object(self, on, entry, id, Py_NewRef(entry->bytes),
                                           response != NULL);
    int failed = made == NULL || (response != NULL && complete(self, made, response)) ||
                 PyList_Append(self->items, made);
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

/* Makes rows of an exchange. Returns 1; 0 if it must become an object; -1 with an exception. */
static int give_rows(reading_object *self, const connection *on, const open_request *entry, int32_t id,
                     const answer *response, enum kind kind) {
    whole_exchange of = {.on = on, .request = &entry->request, .raw = entry->bytes,
                         .client_id = entry->client_id, .key = entry->key,
                         .version = entry->version, .in_order = 1,
                         .transactional = entry->transactional, .id = id};
    if (kind == ROWS_OF_BYTES && entry->bytes == NULL) return 0;
    if (response != NULL) {
        of.response = &response->of;
        of.response_version = response->version;
        of.in_order = response->in_order;
        of.response_raw = kind == ROWS_OF_BYTES ? bytes_of(response) : NULL;
        if (kind == ROWS_OF_BYTES && of.response_raw == NULL) return -1;
    }
    int taken = exchange_rows_add(self->rows, &of);
    Py_XDECREF(of.response_raw);
    return taken;
}

/* Whether the exchange belongs to this process's share (wiredump/readers/share.py). */
static int is_mine(const reading_object *self, const connection *on, int64_t offset) {
    if (LIKELY(!self->divided)) return 1;
    uint32_t range = (uint32_t)((uint64_t)on->id + (uint64_t)(offset >> RANGE_BITS));
    return (uint64_t)(range * UINT32_C(0x9E3779B1)) * self->share_of >> 32 == self->share;
}

/* Whether the dialect can decode the request (wiredump/readable.py). */
static int is_readable(const reading_object *self, int key, int version) {
    if (key < 0 || version < 0 || self->readable == NULL) return 0;
    return key < PyBytes_GET_SIZE(self->readable) &&
           version < (uint8_t)PyBytes_AS_STRING(self->readable)[key];
}

/* Emits a complete exchange. `response` is NULL if the request has none. */
static int give_out(reading_object *self, connection *on, const open_request *entry, int32_t id,
                    const answer *response, enum kind kind) {
    int64_t first = entry->request.first_ns, last = entry->request.last_ns;
    int64_t size = entry->request.size - entry->request.missing;
    int readable = is_readable(self, entry->key, entry->version);
    self->frame_bytes += size;
    self->request_count += readable;
    if (readable) self->behind_gaps += size - entry->raw;
    else self->unknown_bytes += size + (response != NULL ? response->of.size : 0);
    if (response != NULL) {
        self->frame_bytes += response->of.size;
        if (response->of.first_ns < first) first = response->of.first_ns;
        if (response->of.last_ns > last) last = response->of.last_ns;
    }
    if (first && note_span(self, entry->request.capture, first, last)) return -1;
    if (is_mine(self, on, entry->request.offset)) {
        int taken = kind == AN_ITEM ? 0 : give_rows(self, on, entry, id, response, kind);
        if (taken != 1) return taken ? -1 : give_item(self, on, entry, id, response);
    }
    on->requests++; /* items are counted in Python */
    on->request_bytes += size;
    if (response != NULL) on->response_bytes += response->of.size;
    return 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Returns 1 if Python already has the response, 0 if not, -1 with an exception. */
static int is_early(const connection *on, int32_t id) {
    if (on->early == NULL || !PyDict_GET_SIZE(on->early)) return 0;
    PyObject *number = PyLong_FromLong(id);
    int found = number == NULL ? -1 : PyDict_Contains(on->early, number);
    Py_XDECREF(number);
    return found;
}

/* The header of a request. `length` is that of the client id, -1 for none; the id ends at `end`. */
typedef struct {
    head frame;
    int key, version, has_client;
    int32_t id;
    int64_t length, end;
} request_header;

static int read_header(const arrival *in, request_header *out) {
    if (see(in, &out->frame, REQUEST_PREFIX + 2)) return -1;
    const uint8_t *at = out->frame.at;
    out->key = (int16_t)get16(at + 4);
    out->version = (int16_t)get16(at + 6);
    out->id = (int32_t)get32(at + 8);
    out->length = -1;
    out->end = REQUEST_PREFIX + 2;
    out->has_client = out->frame.size >= out->end &&
                      !(out->key == CONTROLLED_SHUTDOWN && out->version == 0);
    if (!out->has_client) return 0;
    out->length = (int16_t)get16(at + REQUEST_PREFIX);
    if (out->length > 0) out->end += out->length;
    out->has_client = out->length >= -1 && out->end <= out->frame.size;
    return out->has_client ? see(in, &out->frame, out->end) : 0;
}

/* Whether a request may be read here: TAKEN, LEFT_FRAME or FAILED. */
static enum outcome admit(const arrival *in, const request_header *header) {
    const reading_object *self = in->reading;
    connection *on = in->on;
    if (UNLIKELY(!on->confirmed)) {
        on->confirmed = header->has_client && header->length > 0;
        if (!on->confirmed && confirm(in) != TAKEN) return PyErr_Occurred() ? FAILED : LEFT_FRAME;
    }
    int is_full = on->open->count >= self->most_open ||
                  on->open->bytes + header->frame.size > self->most_open_bytes;
    int early = is_full ? 0 : is_early(on, header->id);
    if (early < 0) return FAILED;
    if (is_full || early) return LEFT_FRAME;
    return header->key == API_VERSIONS && header->version >= 3 ? learn_software(in) : TAKEN;
}

/* Reads the body of a Produce request as far as `acks`. */
static enum outcome read_acks(const arrival *in, request_header *header, int *expected,
                              int *transactional) {
    const reading_object *self = in->reading;
    int version = header->version;
    if (version < 0 || version >= (int)sizeof(self->flexible)) return LEFT_FRAME;
    int32_t acks = NO_ACKS;
    for (int64_t least = 0; header->has_client && least <= SCRATCH; least += SCRATCH) {
        if (see(in, &header->frame, least)) return FAILED;
        acks = acks_of(&header->frame, header->end, version, self->flexible[version], transactional);
        if (LIKELY(acks != TOO_FAR)) break;
    }
    *expected = acks != 0;
    return acks == TOO_FAR ? LEFT_FRAME : TAKEN;
}

/* Keeps the bytes of a request, or its exchange, if it needs them. */
static int keep_request(const arrival *in, open_request *entry, int32_t id, int expected,
                        enum kind kind) {
    if (kind == ROWS) return 0;
    if (intern_names()) return -1;
    PyObject *raw = stream_bytes(in->stream, in->chunk, in->stream->base, in->stream->need);
    if (kind == ROWS_OF_BYTES) entry->bytes = raw;
    else entry->exchange = exchange_object(in->reading, in->on, entry, id, raw, expected);
    return entry->bytes == NULL && entry->exchange == NULL ? -1 : 0;
}

enum outcome take_request(const arrival *in) {
    connection *on = in->on;
    request_header header = {0};
    int expected = 1, transactional = 0;
    if (in->stream->need < REQUEST_PREFIX) return LEFT_FRAME;
    if (read_header(in, &header)) return FAILED;
    enum outcome outcome = has_key(in->reading->left, header.key) ? LEFT_FRAME : admit(in, &header);
    if (outcome == TAKEN && header.key == PRODUCE)
        outcome = read_acks(in, &header, &expected, &transactional);
    if (outcome != TAKEN) return outcome;
    int is_named = header.has_client && header.length >= 0;
    if (is_named && note_client(on, header.frame.at + REQUEST_PREFIX + 2, header.length))
        return FAILED;
    open_request entry = {.raw = header.frame.size, .key = (int16_t)header.key,
                          .version = (int16_t)header.version,
                          .transactional = (uint8_t)transactional,
                          .client_id = is_named ? on->client_id : Py_None};
    frame_of(in->stream, header.frame.size, &entry.request);
    enum kind kind = is_mine(in->reading, on, in->stream->base)
                         ? exchange_kind(in->reading->rows, header.key)
                         : ROWS;
    int failed = keep_request(in, &entry, header.id, expected, kind);
    if (!failed) {
        on->any_request = 1;
        on->newest = header.id;
        failed = expected ? open_requests_push(on->open, &entry, header.id)
                          : give_out(in->reading, on, &entry, header.id, NULL, kind);
    }
    Py_XDECREF(entry.exchange);
    Py_XDECREF(entry.bytes);
    return failed ? FAILED : TAKEN;
}

/* ---- responses ------------------------------------------------------------------------------ */

enum outcome take_response(const arrival *in) {
    connection *on = in->on;
    const reading_object *self = in->reading;
    head frame = {0};
    if (in->stream->need < 8) return LEFT_FRAME;
    if (see(in, &frame, 10)) return FAILED;
    int32_t id = (int32_t)get32(frame.at + 4);
    Py_ssize_t index = open_requests_find(on->open, id);
    if (index < 0 || on->open->entries[index].key == SASL_HANDSHAKE) return LEFT_FRAME;
    open_request *entry = &on->open->entries[index];
    answer response = {.from = in->stream, .chunk = in->chunk, .version = entry->version,
                       .in_order = index == on->open->first};
    if (entry->key == API_VERSIONS && frame.size >= 10 &&
        get16(frame.at + 8) == UNSUPPORTED_VERSION)
        response.version = 0;
    frame_of(in->stream, frame.size, &response.of);
    enum kind kind = entry->exchange != NULL && !only_frames(self->rows)
                         ? AN_ITEM /* Python may have added fields to it */
                         : exchange_kind(self->rows, entry->key);
    int failed = give_out(in->reading, on, entry, id, &response, kind);
    if (!failed) {
        on->any_response = 1;
        on->answered = id;
        open_requests_remove(on->open, index);
    }
    return failed ? FAILED : TAKEN;
}
