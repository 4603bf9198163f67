/* Reads the messages within a wrapper of magic 0 or 1 into Record objects, all at once.
   kproto/records/message_set.py describes their layout and reads again what is given up here.
   Objects are made as in records_read.c. Each message has a CRC-32, which zlib computes; its
   function may run other threads, which see neither the list nor its content. */
#include "records.h"

enum { ENTRY_HEADER = 12, CRC_END = 16, CODEC_MASK = 7, LEAST_MESSAGE = 14 };

/* The wrapper's facts. */
typedef struct {
    int magic;
    int64_t last_offset;
    PyObject *crc32; /* a function of bytes; None if checksums are not checked */
    int is_appended; /* `appended` is every record's timestamp */
    int64_t appended;
} wrapper_facts;

/* The bytes of the message at the start of `in`, which are complete. */
static int get_message(reader *in, reader *out) {
    if (left_of(in) < ENTRY_HEADER) return -1;
    int32_t size = (int32_t)get32(in->at + 8);
    if (size < LEAST_MESSAGE || size > left_of(in) - ENTRY_HEADER) return -1;
    *out = (reader){in->at, in->at + ENTRY_HEADER + size};
    in->at = out->end;
    return 0;
}

/* The number of messages, and the offset of the last; -1 if one is truncated. */
static Py_ssize_t count_messages(reader in, int64_t *last) {
    Py_ssize_t count = 0;
    for (reader message; in.at < in.end; count++) {
        if (get_message(&in, &message)) return -1;
        *last = (int64_t)get64(message.at);
    }
    return count;
}

/* Bytes that may be null, their length an int32. */
static int get_long_span(reader *in, span *out) {
    if (left_of(in) < 4) return -1;
    int32_t size = (int32_t)get32(in->at);
    in->at += 4;
    if (size < NULL_SIZE || size > left_of(in)) return -1;
    *out = (span){in->at, size};
    if (size > 0) in->at += size;
    return 0;
}

static int crc_is_right(const wrapper_facts *wrapper, const reader *message) {
    if (wrapper->crc32 == Py_None) return 1;
    const uint8_t *start = message->at + CRC_END;
    PyObject *raw = PyBytes_FromStringAndSize((const char *)start, message->end - start);
    PyObject *found = raw ? PyObject_CallOneArg(wrapper->crc32, raw) : NULL;
    int64_t crc = -1;
    if (found != NULL && int64_of(found, &crc)) crc = -1;
    Py_XDECREF(raw);
    Py_XDECREF(found);
    return crc == (int64_t)get32(message->at + ENTRY_HEADER);
}

/* A message's content, with `base` added to its offset. */
static int get_record_of(reader message, const wrapper_facts *wrapper, int64_t base,
                         record_view *out) {
    if (!crc_is_right(wrapper, &message)) return -1;
    int64_t offset = (int64_t)get64(message.at);
    if (base > 0 ? offset > INT64_MAX - base : offset < INT64_MIN - base) return -1;
    out->offset = base + offset;
    message.at += CRC_END;
    if (message.at[0] != wrapper->magic || message.at[1] & CODEC_MASK) return -1;
    message.at += 2; /* within LEAST_MESSAGE, as are the eight bytes after them */
    out->timestamp = -1;
    if (wrapper->magic == 1) {
        out->timestamp = (int64_t)get64(message.at);
        message.at += 8;
    }
    if (wrapper->is_appended) out->timestamp = wrapper->appended;
    if (get_long_span(&message, &out->key) || get_long_span(&message, &out->value)) return -1;
    return message.at == message.end ? 0 : -1;
}

static int fill(const record_codec *self, reader in, const wrapper_facts *wrapper, int64_t base,
                PyObject **items) {
    while (in.at < in.end) {
        reader message;
        record_view record = {0};
        if (get_message(&in, &message) || get_record_of(message, wrapper, base, &record))
            return -1;
        if (!(*items++ = new_plain_record(self, &record))) return -1;
    }
    return 0;
}

static int get_wrapper(PyObject *const *args, reader *in, wrapper_facts *wrapper) {
    int64_t at, end, magic;
    if (!PyBytes_CheckExact(args[0]) || int64_of(args[1], &at) || int64_of(args[2], &end) ||
        int64_of(args[3], &magic) || int64_of(args[4], &wrapper->last_offset))
        return 0;
    wrapper->crc32 = args[5];
    wrapper->is_appended = args[6] != Py_None;
    if (wrapper->is_appended && int64_of(args[6], &wrapper->appended)) return 0;
    if (at < 0 || end < at || end > PyBytes_GET_SIZE(args[0])) return 0;
    if (magic != 0 && magic != 1) return 0;
    wrapper->magic = (int)magic;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    *in = (reader){start + at, start + end};
    return 1;
}

PyObject *read_messages(record_codec *self, PyObject *const *args, Py_ssize_t count) {
    reader in;
    wrapper_facts wrapper = {0};
    int64_t last = 0, base = 0;
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "read_messages takes 7 arguments");
        return NULL;
    }
    if (!get_wrapper(args, &in, &wrapper)) Py_RETURN_NONE;
    Py_ssize_t messages = count_messages(in, &last);
    if (messages <= 0) Py_RETURN_NONE;
    if (wrapper.magic == 1 && wrapper.last_offset != 0) { /* KIP-31; 0: as librdkafka did */
        if (wrapper.last_offset < last || last < 0) Py_RETURN_NONE;
        base = wrapper.last_offset - last;
    }
    PyObject *list = PyList_New(messages);
    if (list == NULL) return NULL;
    PyObject_GC_UnTrack(list);
    if (!fill(self, in, &wrapper, base, ((PyListObject *)list)->ob_item)) {
        PyObject_GC_Track(list);
        return list;
    }
    Py_DECREF(list);
    if (forget_error()) return NULL;
    Py_RETURN_NONE;
}
