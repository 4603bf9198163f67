/* What the files of the extension share: packets of a chunk, segments, connections, columns.

   The extension processes usual input in bulk: whole TCP segments in order, of connections where
   nothing waits, and whole frames with valid headers. It stops at everything else, and Python reads
   that packet or frame with the code that reads all of them without the extension
   (wiredump/sources/quick.py). So being too strict here costs time, but never correctness.

   CPython 3.11 and newer, with a GIL. No length is trusted before it was checked. */
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

static inline uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- packets.c ------------------------------------------------------------------------------ */

typedef struct {
    int64_t place; /* of its record in the file */
    int64_t time;
    int32_t link, interface, capture;
    uint32_t at, captured, original; /* `at`: where in the chunk */
} packet;

typedef struct {
    PyObject_HEAD
    PyObject *chunk; /* bytes */
    packet *packets;
    Py_ssize_t count, room;
    int64_t base; /* where in the file the chunk begins */
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
    uint8_t flow[KEY]; /* as Segment.flow has it, its length in the last byte, zeros between */
    uint32_t sequence, acknowledgement;
    uint8_t flags;
    uint8_t tunnelled;
    uint32_t at, size; /* the payload, in the chunk */
} segment;

int read_segment(const uint8_t *chunk, const packet *from, segment *out); /* 0: not a usual one */
unsigned past_tags(const uint8_t *data, uint32_t size, unsigned kind, uint32_t *at);

/* tunnels.c: a header of this EtherType begins at `at`, its packet ends at `size` */
enum { IPV4 = 0x0800, IPV6 = 0x86DD, MOST_STEPS = 16 };

typedef struct {
    unsigned kind;
    uint32_t at, size;
} layer;

int past_layer(const uint8_t *data, layer *self); /* 0: not a usual one */

/* ---- runs.c: which packets there are between two ends; read_run.c: and back ------------------- */

/* As wiredump/spark/runs.py has it. `ahead`: of the packet's bytes, behind its record's beginning. */
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

/* ---- fields.c: the records of a frame; gathering.c: to where they are gathered ---------------- */

typedef struct walk walk;
/* Has a field of records that is not empty: 1, or -1 with an exception. */
typedef int (*keeper)(const walk *self, const uint8_t *at, int64_t size);

struct walk {
    const uint8_t *at, *end;
    const uint8_t *name; /* of the topic where this is, ASCII; NULL: none */
    int64_t name_size;
    const uint8_t *id;   /* likewise, ID_SIZE bytes */
    int32_t partition;
    keeper keep;         /* NULL while the frame is only looked through */
    void *to;
};

enum { ID_SIZE = 16 };

/* 1; 0 where the frame is not exactly what the program says: then nothing was kept; or -1. Both are
   bytes. */
int walk_frame(PyObject *program, PyObject *frame, keeper keep, void *to);
PyObject *find_records(PyObject *module, PyObject *args);

extern PyTypeObject gatherer_type;
/* 1 where the frame's records are gathered, 0 where its exchange is wanted instead, -1. */
int gather(PyObject *gatherer, int64_t connection, int key, int version, int64_t offset,
           int64_t completed_ns, PyObject *frame);

extern PyTypeObject spans_type;
PyObject *order_runs(PyObject *module, PyObject *parts); /* spans.c */

/* ---- stream.c: one direction of a connection ------------------------------------------------ */

typedef struct {
    int64_t start, end; /* in the stream */
    int64_t time, place;
    int32_t capture;
    uint32_t at; /* where in the chunk `start` is, if it is past what was kept */
} mark;

typedef struct {
    int64_t start;
    uint32_t size, at;
    PyObject *data; /* bytes that Python had before; NULL: kept here, or still in the chunk */
} piece;

enum { MOST_PIECES = 256, PIECE_COST = 256 };

typedef struct {
    int64_t next; /* the stream's offset of the next byte */
    uint32_t next_sequence;
    /* Of the frame that has begun: its first byte, its size once that is known, the packets that
       brought it. The mark in front of it stays as long as none follows. */
    int64_t base, need;
    mark *marks;
    Py_ssize_t mark_first, mark_end, mark_room;
    /* The newest bytes, to compare repetitions with: as Recent has them. */
    piece *pieces;
    unsigned piece_first, piece_count;
    int64_t piece_cost;
    /* Bytes from kept_start to kept_end, copied out of chunks that are gone. */
    uint8_t *kept;
    int64_t kept_start, kept_end;
    Py_ssize_t kept_skip, kept_room;
    PyObject *tally;  /* its EndTally; NULL until it is needed, of one that was opened here */
    int64_t *trips;   /* the array that `tally.timing` is, by `timing`; NULL: it has none yet */
    Py_buffer timing;
} stream;

/* ---- round_trips.c: as wiredump/readers/round_trips.py has it -------------------------------- */

enum { TIMED = 32, BUCKETS = 208 };
enum {
    TRIPS_MINIMUM, TRIPS_MAXIMUM, TRIPS_ACKNOWLEDGED, TRIPS_FIRST, TRIPS_COUNT, TRIPS_RING,
    TRIPS_HISTOGRAM = TRIPS_RING + 2 * TIMED
};

int trips_enter(stream *self); /* of a stream that has its tally */
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

void stream_clear(stream *self);
int stream_mark(stream *self, int64_t start, int64_t end, int64_t time, int64_t place,
                int32_t capture, uint32_t at);
int stream_piece(stream *self, int64_t start, uint32_t size, uint32_t at, PyObject *data,
                 int64_t limit);
int stream_keep(stream *self, const uint8_t *from, int64_t size); /* appends at kept_end */
int stream_fold(stream *self, const uint8_t *chunk); /* the chunk goes: keep what is needed */
const uint8_t *stream_head(const stream *self, const uint8_t *chunk, int64_t from,
                           int64_t *available); /* what is there in one piece from `from` on */
void stream_gather(const stream *self, const uint8_t *chunk, int64_t from, int64_t size,
                   uint8_t *out);
const mark *stream_first_mark(const stream *self, int64_t from);
PyObject *stream_bytes(const stream *self, const uint8_t *chunk, int64_t from, int64_t size);
PyObject *stream_state(const stream *self, const uint8_t *chunk); /* as `enter` takes it */
int stream_enter(stream *self, PyObject *state, int64_t limit);

/* ---- connections and their frames ----------------------------------------------------------- */

typedef struct {
    int64_t offset, size, missing, first_ns, last_ns, place;
    int32_t capture;
} frame;

typedef struct {
    frame request;
    int64_t raw; /* bytes that there are of it */
    int16_t key, version;
    PyObject *client_id; /* str or None */
    PyObject *exchange;  /* what Python has of it, or NULL */
    PyObject *bytes;     /* of a request that may have records, where those alone are wanted */
    uint8_t answered;
} asked;

/* Requests without an answer yet, oldest first; `ids` apart, to be looked through. An object of its
   own, so that it can stay as it is while Python has the rest of its connection. */
typedef struct {
    PyObject_HEAD
    asked *entries;
    int32_t *ids;
    Py_ssize_t first, end, room, count;
    int64_t bytes;
} waiting_object;

extern PyTypeObject waiting_type;
waiting_object *waiting_new(void);
int waiting_push(waiting_object *self, const asked *entry, int32_t id);

typedef struct {
    int64_t id;
    uint8_t request_direction; /* 0: what the client of the readers sends, 1: the other */
    uint8_t touched, any_request, any_response;
    int32_t newest, answered; /* the last correlation ids of either */
    stream streams[2];
    uint8_t flows[2][KEY];
    int64_t time, place;
    int32_t capture;
    PyObject *connection, *software, *client_id;
    char *client_raw; /* the bytes that client_id was read from */
    Py_ssize_t client_size, client_room;
    waiting_object *waiting;
    int32_t *early; /* ids of answers that came before their requests: these are Python's */
    Py_ssize_t early_count;
    int64_t requests, request_bytes, response_bytes; /* of exchanges that came out here */
    /* Of one that was opened here. Of one that Python has lent, all of it is 0. */
    struct {
        uint8_t stage;      /* LENT, ... */
        uint8_t recognised; /* its first bytes were a request */
        uint8_t ended;      /* a bit a direction: its FIN was seen */
        uint8_t ended_by;   /* the first one's direction */
        uint8_t shaken;     /* the handshake is over */
        int64_t syn_ns;     /* when its SYN came */
        uint32_t isn[2];
        int64_t closed_at;
    } life;
} connection;

enum { LIFE_LENT, LIFE_ASKED, LIFE_OPEN, LIFE_OVER }; /* lent; SYN, SYN-ACK, both FINs seen */

void connection_free(connection *self);
PyObject *connection_state(const connection *self, const uint8_t *chunk);

typedef struct {
    int64_t connection, offset, size, missing, first_ns, last_ns, packet;
    int32_t capture, correlation_id;
    int16_t api_key, api_version;
    uint8_t flags;
} frame_row;

static inline int has_key(const uint8_t *keys, int key) {
    uint16_t bit = (uint16_t)key;
    return keys[bit >> 3] >> (bit & 7) & 1;
}

enum { NULL_SIZE = 1, NULL_KEY = 2, NULL_VERSION = 4, NULL_CORRELATION = 8, RESPONSE = 16, SASL = 32 };

/* An array each of what a row has, so that one can go as it is taken out: a row group is never held
   twice. */
typedef struct {
    PyObject_HEAD
    int64_t *connection, *offset, *size, *missing, *first_ns, *last_ns, *packet;
    int32_t *capture, *correlation_id;
    int16_t *api_key, *api_version;
    uint8_t *flags;
    Py_ssize_t count, room;
} columns_object;

extern PyTypeObject columns_type;
int columns_add(columns_object *self, const frame_row *row);

typedef struct {
    PyObject_HEAD
    /* what it was made with */
    PyObject *frame_type, *exchange_type, *place_type, *dialect;
    columns_object *columns; /* NULL: exchanges become objects */
    int64_t max_size, recent_limit, most_open, most_open_bytes;
    uint8_t flexible[128];  /* versions of Produce */
    uint8_t left[1 << 13];  /* a bit an api key (as uint16) whose requests are Python's */
    /* Where only some exchanges are wanted: those of these keys, and the records of those. */
    PyObject *gatherer; /* who has the records; NULL: every exchange is wanted */
    uint8_t wanted[1 << 13], carrying[1 << 13];
    uint64_t seed;
    uint32_t share, share_of; /* of several processes, which this is */
    /* for opening.c: what to tell, NULL where nothing is opened here; flows that Python has; by api
       key, how many versions it may have */
    PyObject *opened, *closed, *software, *known, *versions;
    /* connections by flow: open addressing */
    struct slot { connection *connection; uint8_t direction; } *table;
    size_t table_size, table_used;
    connection **touched;
    Py_ssize_t touched_count, touched_room;
    /* where it is */
    packets_object *packets;
    Py_ssize_t cursor;
    PyObject *items; /* a list of exchanges that nobody took yet */
    uint8_t *scratch;
    int busy; /* in `run`, which may call Python: nobody else is to change anything then */
    /* sums since `counts` was asked last */
    int64_t packet_count, payload, frame_bytes, closed_bytes;
    Py_ssize_t alive; /* connections that are here and not over */
    /* first and last time of what went to columns, by capture */
    struct span { int32_t capture; int64_t first_ns, last_ns; } *spans;
    Py_ssize_t span_count, span_room;
} reading_object;

extern PyTypeObject reading_type;

enum { WINDOW = 1 << 30 };

/* flows.c: which connections are here */
struct slot *reading_find(const reading_object *self, const uint8_t *flow);
int reading_put(reading_object *self, connection *on);   /* it is from now on */
void reading_drop(reading_object *self, connection *on); /* and no longer */

/* lending.c */
PyObject *lend_enter(PyObject *object, PyObject *args);
PyObject *lend_leave(PyObject *object, PyObject *flow);
PyObject *lend_flows(PyObject *object, PyObject *over);

int is_busy(const reading_object *self); /* with an exception, where `run` is under way */

enum taken { TAKEN = 0, LEFT = 1, FAILED = -1 };

/* exchanges.c: a whole frame at stream->base of so many bytes; LEFT without any change where it is
   not usual */
enum taken take_request(reading_object *self, connection *on, const uint8_t *chunk, int64_t size);
enum taken take_response(reading_object *self, connection *on, const uint8_t *chunk, int64_t size);

/* Whether bytes are acknowledged that were never seen: a hole, perhaps. A FIN counts as one. */
static inline int acks_unseen(const connection *on, int direction, const segment *of) {
    if (!(of->flags & ACK)) return 0;
    uint32_t ahead = of->acknowledgement - on->streams[!direction].next_sequence;
    return UNLIKELY(ahead != 0) && ahead > (uint32_t)(on->life.ended >> !direction & 1) &&
           ahead < WINDOW;
}

/* opening.c: connections from SYN to FIN */
enum { LIFE_GOES_ON = 2 };
int life_open(reading_object *self, const segment *of, const packet *from);
int life_segment(reading_object *self, connection *on, int direction, const segment *of,
                 const packet *from, const uint8_t *chunk);
PyObject *life_state(const connection *on);
PyObject *live(PyObject *object, PyObject *args);
PyObject *end_clean(PyObject *object, PyObject *unused);
enum taken learn_software(reading_object *self, connection *on, const uint8_t *chunk, int64_t size);

/* ---- rows.c --------------------------------------------------------------------------------- */

extern PyTypeObject held_type;
PyObject *feed_rows(PyObject *module, PyObject *args);
PyObject *columns_of(PyObject *module, PyObject *args);

#endif
