/* CRC-32C (RFC 3720, B.4), the checksum of record batches of magic 2. On x86-64 the CRC32
   instruction of SSE4.2 is used if the processor has it; eight tables serve everywhere else. */
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
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 Py_ssize_t size) {
    uint64_t wide = crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
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
