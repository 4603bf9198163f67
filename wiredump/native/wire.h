/* Declarations that the files of the extension share: packets of a chunk, segments, connections,
   columns. The extension processes usual input in bulk: whole TCP segments in order, of
   connections without holes, and whole frames with valid headers. It stops at everything else,
   and Python reads that packet or frame (wiredump/sources/quick.py). A check that is too strict
   costs time, but never correctness. CPython 3.11 and newer, with a GIL. Every length is checked
   before it is used. */
#ifndef WIREDUMP_WIRE_H
#define WIREDUMP_WIRE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define LIKELY(x) (x)
#define UNLIKELY(x) (x)
#endif

/* Loops over pending data count their steps, so that tests can compare the steps of a capture
   with those of one twice as long. */
extern uint64_t native_steps;
#define STEPS(n) (native_steps += (uint64_t)(n))
/* The interface to wiredump, counted up with each change of it (wiredump/native/__init__.py). */
enum { INTERFACE = 4 };

enum { BYTES_A_STEP = 64 }; /* bytes copied or moved in one step */

/* Constructors take no keyword arguments. Returns -1 with an exception if there are any. */
static inline int refuse_keywords(PyObject *keywords, const char *type) {
    if (keywords == NULL || !PyDict_GET_SIZE(keywords)) return 0;
    PyErr_Format(PyExc_TypeError, "%s takes no keyword arguments", type);
    return -1;
}

/* Doubles an array of `*room` items, `first` of them at first. Returns NULL with an exception. */
static inline void *doubled(void *items, Py_ssize_t *room, size_t width, Py_ssize_t first) {
    Py_ssize_t more = *room ? *room * 2 : first;
    void *grown = PyMem_Realloc(items, (size_t)more * width);
    if (grown == NULL) PyErr_NoMemory();
    else *room = more;
    return grown;
}

static inline uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- packets.c ------------------------------------------------------------------------------ */

typedef struct {
    int64_t place; /* offset of its record in the file */
    int64_t time;
    int32_t link, interface, capture;
    uint32_t at, captured, original; /* `at`: offset in the chunk */
} packet;

typedef struct {
    PyObject_HEAD
    PyObject *chunk; /* bytes */
    packet *packets;
    Py_ssize_t count, room;
    int64_t base; /* offset of the chunk in the file */
} packets_object;

extern PyTypeObject packets_type;
packets_object *packets_new(PyObject *chunk, int64_t base);
packet *packets_add(packets_object *self);
PyObject *walk_pcap(PyObject *module, PyObject *args);
PyObject *walk_pcapng(PyObject *module, PyObject *args);
PyObject *pack(PyObject *module, PyObject *given);

static inline const uint8_t *chunk_of(const packets_object *self) {
    return (const uint8_t *)PyBytes_AS_STRING(self->chunk);
}

/* ---- segments.c ----------------------------------------------------------------------------- */

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10 };
enum { FLOW_IPV4 = 12, FLOW_IPV6 = 36, KEY = 40 };

typedef struct {
    uint8_t flow[KEY]; /* as in Segment.flow: padded with zeros, the length in the last byte */
    uint32_t sequence, acknowledgement;
    uint8_t flags;
    uint8_t tunnelled;
    uint16_t identification; /* of the IP header; 0 for IPv6 */
    uint32_t at, size; /* the payload's place in the chunk */
} segment;

int read_segment(const uint8_t *chunk, const packet *from, segment *out); /* 0: not usual */

/* tunnels.c: a header of EtherType `kind` begins at `at`; its packet ends at `size` */
enum { IPV4 = 0x0800, IPV6 = 0x86DD, MOST_STEPS = 16 };

typedef struct {
    unsigned kind;
    uint32_t at, size;
} layer;

/* Mixes a flow, padded as in `segment`, with a seed that peers cannot know. */
static inline uint64_t flow_hash(uint64_t seed, const uint8_t *flow) {
    uint64_t word;
    for (int i = 0; i < KEY; i += 8) {
        memcpy(&word, flow + i, 8);
        seed = (seed ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        seed ^= seed >> 32;
    }
    return seed;
}

int past_layer(const uint8_t *data, layer *self); /* 0: not usual */
unsigned past_tags(const uint8_t *data, uint32_t size, unsigned kind, uint32_t *at);

/* ---- runs.c collects runs; read_run.c reads their packets ---------------------------------------- */

/* As in wiredump/spark/runs.py. `ahead`: the number of bytes between the beginning of the record
   and those of the packet. */
typedef struct {
    int64_t place, time;
    uint32_t captured, original;
    int32_t capture;
    uint16_t link, ahead;
} entry;

_Static_assert(sizeof(entry) == 32, "as it is in Python");

extern PyTypeObject runs_type;
PyObject *read_run(PyObject *module, PyObject *args);
PyObject *carried_run(PyObject *module, PyObject *args);

extern PyTypeObject spans_type;
PyObject *order_runs(PyObject *module, PyObject *parts); /* spans.c */

/* ---- stream.c: one direction of a connection ------------------------------------------------ */

typedef struct {
    int64_t start, end; /* in the stream */
    int64_t time, place;
    int32_t capture;
    uint32_t at; /* offset of `start` in the chunk, unless the bytes were kept */
} mark;

_Static_assert(sizeof(mark) == 40, "as it is in Python");

typedef struct {
    int64_t start;
    uint32_t size, at;
} piece;

enum { MOST_PIECES = 256, PIECE_COST = 256 };

typedef struct {
    int64_t next; /* position of the next byte in the stream */
    uint32_t next_sequence;
    /* The current frame: its first byte, its size once that is known, and the packets that
       brought it. The last mark before it is kept until another one follows. */
    int64_t base, need;
    mark *marks;
    Py_ssize_t mark_first, mark_end, mark_room;
    /* The newest bytes, which retransmissions are compared with (readers/ledger.py: Recent). */
    piece *pieces;
    unsigned piece_first, piece_count;
    int64_t piece_cost;
    /* Bytes from kept_start to kept_end, copied from chunks that were released. */
    uint8_t *kept;
    int64_t kept_start, kept_end;
    Py_ssize_t kept_skip, kept_room;
    PyObject *tally;  /* its EndTally; NULL until the direction carries data */
    int64_t *trips;   /* the array of `tally.timing`, exported to `timing`; NULL: none yet */
    Py_buffer timing;
} stream;

/* ---- round_trips.c: the layout of wiredump/readers/round_trips.py --------------------------------- */

enum { TIMED = 32, BUCKETS = 208, NOTED_SEGMENTS = 64 };
enum {
    TRIPS_MINIMUM, TRIPS_MAXIMUM, TRIPS_ACKNOWLEDGED, TRIPS_FIRST, TRIPS_COUNT, TRIPS_RING,
    TRIPS_HISTOGRAM = TRIPS_RING + 2 * TIMED, TRIPS_NOTED = TRIPS_HISTOGRAM + BUCKETS,
    TRIPS_SIZE = TRIPS_NOTED + 1 + 2 * NOTED_SEGMENTS
};

#define COPY_NS INT64_C(1000000000) /* round_trips.py: _SAME_NS */

int trips_enter(stream *self); /* the stream has its tally */
int trips_begin(stream *self, PyObject *connection, int direction, uint32_t sequence);
void trips_take(int64_t *trips, uint32_t number, int64_t now);

static inline void trips_acknowledge(const stream *self, uint32_t number, int64_t now) {
    if (self->trips != NULL && (uint32_t)self->trips[TRIPS_ACKNOWLEDGED] != number)
        trips_take(self->trips, number, now);
}

static inline void trips_send(int64_t *trips, uint32_t sequence, uint32_t size, int64_t now) {
    uint32_t end = sequence + size, count = (uint32_t)trips[TRIPS_COUNT];
    if (UNLIKELY(count >= TIMED || (int32_t)((uint32_t)trips[TRIPS_ACKNOWLEDGED] - end) >= 0))
        return;
    int64_t *to = &trips[TRIPS_RING + 2 * (((uint32_t)trips[TRIPS_FIRST] + count) % TIMED)];
    to[0] = now;
    to[1] = (int64_t)((uint64_t)sequence << 32 | end);
    trips[TRIPS_COUNT] = (int64_t)count + 1;
}

static inline int64_t noted_key(const segment *of) {
    return (int64_t)((uint64_t)of->sequence << 32 | (uint64_t)(of->size & 0xFFFF) << 16 |
                     of->identification);
}

/* Keeps a segment, of which copies may follow. */
static inline void trips_note(int64_t *trips, const segment *of, int64_t now) {
    int64_t *to = &trips[TRIPS_NOTED + 1 + 2 * ((uint64_t)trips[TRIPS_NOTED]++ % NOTED_SEGMENTS)];
    to[0] = now;
    to[1] = noted_key(of);
}

/* Returns the newest equal segment that is kept, or NULL. */
static inline const int64_t *trips_noted(const int64_t *trips, const segment *of) {
    uint64_t number = (uint64_t)trips[TRIPS_NOTED];
    uint64_t oldest = number > NOTED_SEGMENTS ? number - NOTED_SEGMENTS : 0;
    while (number-- > oldest) {
        STEPS(1);
        const int64_t *at = &trips[TRIPS_NOTED + 1 + 2 * (number % NOTED_SEGMENTS)];
        if (at[1] == noted_key(of)) return at;
    }
    return NULL;
}

void stream_clear(stream *self);
int stream_mark(stream *self, int64_t start, int64_t end, int64_t time, int64_t place,
                int32_t capture, uint32_t at);
int stream_piece(stream *self, int64_t start, uint32_t size, uint32_t at, int64_t limit);
int stream_keep(stream *self, const uint8_t *from, int64_t size); /* appends at kept_end */
int stream_fold(stream *self, const uint8_t *chunk); /* copies what is needed before the chunk is released */
const uint8_t *stream_head(const stream *self, const uint8_t *chunk, int64_t from,
                           int64_t *available); /* the contiguous bytes from `from` on */
void stream_gather(const stream *self, const uint8_t *chunk, int64_t from, int64_t size,
                   uint8_t *out);
const mark *stream_first_mark(const stream *self, int64_t from);
PyObject *stream_bytes(const stream *self, const uint8_t *chunk, int64_t from, int64_t size);
PyObject *stream_recent(const stream *self, const uint8_t *chunk);
PyObject *stream_marks(const stream *self);

/* ---- connections and their frames ----------------------------------------------------------- */

typedef struct {
    int64_t offset, size, missing, first_ns, last_ns, place;
    int32_t capture;
} frame;

typedef struct {
    frame request;
    int64_t raw; /* number of its bytes that were captured */
    int16_t key, version;
    PyObject *client_id; /* str or None */
    PyObject *exchange;  /* the object, once Python needs it; or NULL */
    PyObject *bytes;     /* its bytes, if they are needed for rows */
    uint8_t answered, transactional;
} open_request;

enum { MOST_HALVES = 32 }; /* as in wiredump/open_requests.py */

/* open_requests.c: requests without a response, oldest first, from `first` to `end`; answered
   ones remain in between for a while. `heads`, `tails` and `following` index them by id. `make`
   makes the exchange of an entry that has none; entries before `made` have one. `halves`: the
   upper halves of their ids and perhaps of answered ones, at most one more than MOST_HALVES. */
typedef struct {
    PyObject_HEAD
    open_request *entries;
    int32_t *ids, *following, *heads, *tails;
    PyObject *make;
    Py_ssize_t first, end, room, count, pushed, made;
    int64_t bytes;
    uint32_t seed;
    int half_count;
    uint16_t halves[MOST_HALVES + 1];
} open_requests;

extern PyTypeObject open_requests_type;
int open_requests_push(open_requests *self, const open_request *entry, int32_t id);
Py_ssize_t open_requests_find(const open_requests *self, int32_t id);
void open_requests_remove(open_requests *self, Py_ssize_t index);

typedef struct {
    int64_t id;
    uint8_t request_direction; /* 0: requests come from the readers' client; 1: from the other end */
    uint8_t any_request, any_response;
    Py_ssize_t touched; /* its index in `touched` plus one; 0: it is not listed */
    int32_t newest, answered; /* the last correlation ids of requests and responses */
    stream streams[2];
    uint8_t flows[2][KEY];
    int64_t time, place;
    int32_t capture;
    PyObject *connection, *software, *client_id;
    char *client_raw; /* the bytes that client_id was decoded from */
    Py_ssize_t client_size, client_room;
    open_requests *open;
    PyObject *early; /* responses that came before their requests, by id: shared with Python; or NULL */
    int64_t requests, request_bytes, response_bytes; /* sums of exchanges that did not become items */
    uint8_t confirmed; /* a request has been decoded */
    /* All 0 unless the connection opened here. */
    struct {
        uint8_t stage;      /* LENT, ... */
        uint8_t recognised; /* its first bytes are a request */
        uint8_t ended;      /* a bit for each direction whose FIN was seen */
        uint8_t ended_by;   /* the direction of the first FIN */
        uint8_t shaken;     /* the handshake has ended */
        int64_t begun_ns[2]; /* times of SYN and SYN-ACK */
        uint32_t isn[2];
        uint16_t identifications[2];
        int64_t closed_at;
    } opened;
} connection;

enum { STAGE_ENTERED, STAGE_SYN, STAGE_OPEN, STAGE_CLOSED }; /* passed by Python; SYN seen, SYN-ACK seen, both FINs seen */

static inline int has_key(const uint8_t *keys, int key) {
    uint16_t bit = (uint16_t)key;
    return keys[bit >> 3] >> (bit & 7) & 1;
}

/* ---- rows.c: rows of a table, as columns ----------------------------------------------------- */

typedef struct {
    PyObject *bytes; /* NULL while the buffer is empty */
    Py_ssize_t size, room;
} buffer;

typedef struct cells {
    char code;
    Py_ssize_t count, nulls;
    buffer values, places, validity; /* `places`: offsets of texts or lists */
    struct cells *items;             /* the items of lists; NULL for other columns */
} cells;

typedef struct {
    PyObject_HEAD
    cells *columns;
    Py_ssize_t width, count;
    Py_ssize_t number, size; /* rows held elsewhere, and the length of all text */
    Py_ssize_t most_rows, most_size;
} held_object;

extern PyTypeObject held_type;
PyObject *feed_rows(PyObject *module, PyObject *args);

/* Returns a new reference; NULL for None, or with an exception if `given` is not HeldRows with
   these columns. */
held_object *held_of(PyObject *given, const char *codes);

/* Each appends the value of one row: 0, or -1 with an exception. Text may be None. */
int cells_number(cells *self, int64_t value); /* in the range of the column */
int cells_bool(cells *self, int value);
int cells_null(cells *self);
int cells_bytes(cells *self, const void *from, Py_ssize_t size);
int cells_text(cells *self, PyObject *text);
int cells_value(cells *self, PyObject *value);
/* Ends a row whose columns all have their value, with `size` characters of text, unless one
   `failed`. Returns 1 if there are enough rows for a row group, 0 if not, -1 with an exception.
   */
int held_end(held_object *self, Py_ssize_t size, int failed);

/* null unless the value `is_known` */
int cells_known(cells *self, int64_t value, int is_known);
/* These add the length of the text to `size`. */
int cells_sized_text(cells *self, PyObject *text, Py_ssize_t *size);
int cells_sized_literal(cells *self, const char *text, Py_ssize_t *size);

/* ---- gathering.c: the batches of a frame ------------------------------------------------------ */

extern PyTypeObject gatherer_type;

/* A frame that may have batches. */
typedef struct {
    int64_t connection, completed_ns;
    const frame *of;
    PyObject *on; /* the connection */
    int key, version;
    PyObject *raw; /* bytes */
} carrier;

/* Returns 1 if the frame's batches were collected, 0 if its exchange must become an object, -1
   with an exception. */
int gather(PyObject *gatherer, const carrier *from);

/* ---- exchange_rows.c: the rows of an exchange -------------------------------------------------- */

typedef struct {
    const connection *on;
    const frame *request, *response; /* `response` is NULL if the request has none */
    PyObject *raw, *response_raw;    /* bytes, if they are needed */
    PyObject *client_id;
    int key, version, response_version, in_order, transactional;
    int32_t id;
} whole_exchange;

typedef struct exchange_rows_object exchange_rows_object;
extern PyTypeObject exchange_rows_type;

/* What an exchange becomes: an object for Python, rows, or rows that need its bytes. */
enum kind { AN_ITEM, ROWS, ROWS_OF_BYTES };
enum kind exchange_kind(const exchange_rows_object *self, int key);

int note_keys(uint8_t *noted, PyObject *keys); /* sets the bits that `has_key` reads */

/* Whether only the table `frames` is made from exchanges. */
int only_frames(const exchange_rows_object *self);

/* Returns 1 if the rows were made, 0 if the exchange must become an object, -1 with an exception.
   */
int exchange_rows_add(exchange_rows_object *self, const whole_exchange *of);

/* The types that a state consists of, in the order of `connection_state.STATES`. */
enum {
    CONNECTION_STATE, TCP_STATE, STREAM_STATE, OPENING, CONVERSATION_STATE, FRAME_STATE,
    PAIRING_STATE, STATES
};

typedef struct {
    PyObject_HEAD
    /* constructor arguments */
    PyObject *frame_type, *exchange_type, *place_type, *dialect;
    PyObject *states[STATES]; /* the types of connection_state.py */
    exchange_rows_object *rows; /* NULL: every exchange becomes an object */
    int64_t max_size, recent_limit, most_open, most_open_bytes;
    uint8_t flexible[128];  /* versions of Produce */
    uint8_t left[1 << 13];  /* a bit for each API key (as uint16) whose requests Python reads */
    uint64_t seed;
    uint32_t share, share_of; /* the number of this process, and how many there are */
    int divided;              /* every connection is read, but only some exchanges are emitted */
    /* for opening.c: callbacks, NULL if no connection opens here; flows of connections in Python;
       the number of versions by API key */
    PyObject *opened, *closed, *software, *decodes, *known, *versions;
    PyObject *readable; /* the number of versions that can be decoded, by API key */
    /* connections by flow: open addressing */
    struct slot { connection *connection; uint8_t direction; } *table;
    size_t table_size, table_used;
    connection **touched;
    Py_ssize_t touched_count, touched_room;
    /* where it is */
    packets_object *packets;
    Py_ssize_t cursor;
    PyObject *items; /* a list of exchanges that were not returned yet */
    uint8_t *scratch;
    int busy; /* `run` is active; it may call Python, which must not change this object then */
    /* sums since the last call of `counts` */
    int64_t packet_count, payload, copied, frame_bytes, closed_bytes;
    /* parts of frame_bytes: in frames of unknown APIs, and behind a gap in their frame */
    int64_t unknown_bytes, behind_gaps;
    int64_t request_count; /* that can be decoded */
    Py_ssize_t alive; /* connections that are here and not closed */
    /* first and last time of exchanges, by capture */
    struct span { int32_t capture; int64_t first_ns, last_ns; } *spans;
    Py_ssize_t span_count, span_room;
    int32_t *span_places; /* by capture, open addressing: index in `spans` plus one; 2 * span_room entries */
} reading_object;

extern PyTypeObject reading_type;

enum { WINDOW = 1 << 30 };

/* flows.c: the connections that are here, by their flows */
void reverse(const uint8_t *flow, uint8_t *out);
void connection_free(connection *self);
int is_busy(const reading_object *self); /* with an exception if `run` is under way */
struct slot *reading_find(const reading_object *self, const uint8_t *flow);
int reading_put(reading_object *self, connection *on);   /* add */
void reading_drop(reading_object *self, connection *on); /* remove and free */

/* connection_state.c */
PyObject *connection_restore(PyObject *object, PyObject *state);
PyObject *connection_dump(PyObject *object, PyObject *flow);
PyObject *connection_flows(PyObject *object, PyObject *with_closed);

/* capture_times.c */
int note_span(reading_object *self, int32_t capture, int64_t first, int64_t last);
PyObject *listed_spans(const reading_object *self);
void clear_spans(reading_object *self);

/* What becomes of a packet or a frame. LEFT_PACKET and LEFT_FRAME: nothing was changed, and Python
   has to read it. GOES_ON: it is read like any other. */
enum outcome { FAILED = -1, LEFT_PACKET, TAKEN, LEFT_FRAME, GOES_ON };

/* A segment on its way: the connection and the direction that it belongs to. */
typedef struct {
    reading_object *reading;
    const packet *packet;
    const uint8_t *chunk;
    segment segment;
    connection *on;
    stream *stream; /* of its direction */
    int direction;
} arrival;

/* exchanges.c: take the current frame of in->stream, which is complete; LEFT_FRAME if it is not
   usual */
enum outcome take_request(const arrival *in);
enum outcome take_response(const arrival *in);

/* Whether the segment acknowledges bytes that were not seen, so that there may be a hole. A FIN
   counts as one byte. */
static inline int acks_unseen(const arrival *in) {
    const connection *on = in->on;
    uint32_t ahead = in->segment.acknowledgement - on->streams[!in->direction].next_sequence;
    return UNLIKELY(ahead != 0) && in->segment.flags & ACK && ahead < WINDOW &&
           ahead > (uint32_t)(on->opened.ended >> !in->direction & 1);
}

static inline void note_packet(const arrival *in) {
    in->reading->packet_count++;
    in->on->time = in->packet->time;
    in->on->place = in->packet->place;
    in->on->capture = in->packet->capture;
    if (LIKELY(in->segment.flags & ACK))
        trips_acknowledge(&in->on->streams[!in->direction], in->segment.acknowledgement,
                          in->packet->time);
}

/* candidates.c */
PyObject *find_request(PyObject *module, PyObject *args);

/* opening.c: connections from SYN to FIN */
enum outcome open_connection(const arrival *in);
enum outcome opened_segment(const arrival *in);
PyObject *open_with(PyObject *object, PyObject *args);
PyObject *end_clean(PyObject *object, PyObject *unused);
enum outcome confirm(const arrival *in);
enum outcome learn_software(const arrival *in);

#endif
