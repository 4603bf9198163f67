/* CRC-32C (RFC 3720, B.4), the checksum of record batches of magic 2. On x86-64 the CRC32
   instruction of SSE4.2 is used if the processor has it; eight tables serve everywhere else.

   The instruction takes three cycles, but a new one can start in every cycle. Three thirds of a
   block are therefore computed side by side and joined: the checksum of A followed by B is that of
   A followed by as many zeros as B has bytes, XOR that of B (computed from 0). */
#include "engine.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, bits reversed */

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_INSTRUCTION 1
#include <nmmintrin.h>
#else
#define HAS_INSTRUCTION 0
#endif

static uint32_t tables[8][256];

#if HAS_INSTRUCTION
/* The sizes of a third, as powers of two: long ones for throughput, short ones for small batches. */
#define LONG_BITS 12
#define SHORT_BITS 7
typedef uint32_t ZeroTables[4][256]; /* by byte of a checksum: what it becomes behind zeros */
static ZeroTables after_long, after_short;

/* A linear function of a checksum is the list of what it makes of each bit. */
static uint32_t apply(const uint32_t function[32], uint32_t crc) {
    uint32_t result = 0;
    for (int bit = 0; crc; bit++, crc >>= 1)
        if (crc & 1) result ^= function[bit];
    return result;
}

static void fill_zero_tables(ZeroTables result, int size_bits) {
    uint32_t zeros[32], twice[32];
    for (int bit = 0; bit < 32; bit++) { /* one zero byte */
        uint32_t crc = (uint32_t)1 << bit;
        zeros[bit] = tables[0][crc & 0xff] ^ crc >> 8;
    }
    for (; size_bits > 0; size_bits--) {
        for (int bit = 0; bit < 32; bit++) twice[bit] = apply(zeros, zeros[bit]);
        memcpy(zeros, twice, sizeof zeros);
    }
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t value = 0; value < 256; value++)
            result[byte][value] = apply(zeros, value << 8 * byte);
}
#endif

void set_up_crc32c(void) {
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        tables[0][value] = crc;
    }
    for (uint32_t value = 0; value < 256; value++)
        for (int table = 1; table < 8; table++) {
            uint32_t before = tables[table - 1][value];
            tables[table][value] = tables[0][before & 0xff] ^ before >> 8;
        }
#if HAS_INSTRUCTION
    fill_zero_tables(after_long, LONG_BITS);
    fill_zero_tables(after_short, SHORT_BITS);
#endif
}

static uint32_t by_tables(uint32_t crc, const uint8_t *at, Py_ssize_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                              (uint32_t)at[3] << 24);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; size > 0; at++, size--) crc = tables[0][(crc ^ *at) & 0xff] ^ crc >> 8;
    return crc;
}

#if HAS_INSTRUCTION
static inline uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t behind_zeros(ZeroTables zeros, uint64_t crc) {
    return zeros[0][crc & 0xff] ^ zeros[1][crc >> 8 & 0xff] ^ zeros[2][crc >> 16 & 0xff] ^
           zeros[3][crc >> 24 & 0xff];
}

/* Of three thirds of `third` bytes each. */
__attribute__((target("sse4.2"))) static inline uint64_t of_thirds(uint64_t first,
                                                                   const uint8_t *at,
                                                                   Py_ssize_t third,
                                                                   ZeroTables zeros) {
    uint64_t second = 0, last = 0;
    for (const uint8_t *end = at + third; at < end; at += 8) {
        first = _mm_crc32_u64(first, word_at(at));
        second = _mm_crc32_u64(second, word_at(at + third));
        last = _mm_crc32_u64(last, word_at(at + 2 * third));
    }
    return behind_zeros(zeros, behind_zeros(zeros, first) ^ second) ^ last;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 Py_ssize_t size) {
    const Py_ssize_t long_third = (Py_ssize_t)1 << LONG_BITS;
    const Py_ssize_t short_third = (Py_ssize_t)1 << SHORT_BITS;
    uint64_t wide = crc;
    for (; size >= 3 * long_third; at += 3 * long_third, size -= 3 * long_third)
        wide = of_thirds(wide, at, long_third, after_long);
    for (; size >= 3 * short_third; at += 3 * short_third, size -= 3 * short_third)
        wide = of_thirds(wide, at, short_third, after_short);
    for (; size >= 8; at += 8, size -= 8) wide = _mm_crc32_u64(wide, word_at(at));
    crc = (uint32_t)wide;
    for (; size > 0; at++, size--) crc = _mm_crc32_u8(crc, *at);
    return crc;
}
#endif

PyObject *crc32c(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t from = 0, to = PY_SSIZE_T_MAX;
    int plain = 0;
    (void)module;
    if (count < 1 || count > 4) {
        PyErr_SetString(PyExc_TypeError, "crc32c(data, start=0, end=len(data), plain=False)");
        return NULL;
    }
    if (count > 1 && (from = PyNumber_AsSsize_t(args[1], PyExc_OverflowError)) == -1 &&
        PyErr_Occurred())
        return NULL;
    if (count > 2 && (to = PyNumber_AsSsize_t(args[2], PyExc_OverflowError)) == -1 &&
        PyErr_Occurred())
        return NULL;
    if (count > 3 && (plain = PyObject_IsTrue(args[3])) < 0) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE)) return NULL;
    if (to > view.len) to = view.len;
    uint32_t crc = 0xffffffffu;
    if (from >= 0 && from < to) {
        const uint8_t *at = (const uint8_t *)view.buf + from;
#if HAS_INSTRUCTION
        if (!plain && __builtin_cpu_supports("sse4.2"))
            crc = by_instruction(crc, at, to - from);
        else
#endif
            crc = by_tables(crc, at, to - from);
    }
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc ^ 0xffffffffu);
}
