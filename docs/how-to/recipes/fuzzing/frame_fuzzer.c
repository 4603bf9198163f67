// A libFuzzer target: a reader of ListPartitionReassignments' answer, version 0, the frame whole.
//
//   mockbroker fuzz seeds --format libfuzzer --api 46 --version 0 --mutated 200 --out corpus
//   clang -g -O1 -fsanitize=fuzzer,address,undefined frame_fuzzer.c -o frame_fuzzer
//   ./frame_fuzzer -runs=0 corpus         every seed once
//   ./frame_fuzzer -max_total_time=60 corpus
//
// In place of `read_answer` stands your decoder. What holds: it never reads beyond the frame, and it
// takes no more steps than the frame has bytes. With -DTRUSTING it believes what lengths say, and the
// damaged seeds alone make AddressSanitizer end the run.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const uint8_t *at, *end;
    bool failed;
};

static uint8_t byte(struct reader *in)
{
    if (in->failed || in->at == in->end) {
        in->failed = true;
        return 0;
    }
    return *in->at++;
}

static uint32_t int32(struct reader *in)
{
    uint32_t value = 0;
    for (int index = 0; index < 4; index++)
        value = value << 8 | byte(in);
    return value;
}

static uint32_t varint(struct reader *in)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        uint8_t next = byte(in);
        value |= (uint64_t)(next & 0x7f) << shift;
        if (next < 0x80 && value <= UINT32_MAX)
            return (uint32_t)value;
    }
    in->failed = true;
    return 0;
}

static void skip(struct reader *in, uint32_t length)
{
#ifndef TRUSTING
    if (length > (size_t)(in->end - in->at)) {
        in->failed = true;
        return;
    }
#endif
    in->at += length;
}

// A length or count is written as one more than it is; 0 is null.
static uint32_t length(struct reader *in, bool nullable)
{
    uint32_t said = varint(in);
    if (said == 0 && !nullable)
        in->failed = true;
    return said == 0 ? 0 : said - 1;
}

static void tags(struct reader *in)
{
    for (uint32_t left = varint(in); left > 0 && !in->failed; left--) {
        varint(in);
        skip(in, varint(in));
    }
}

static void replicas(struct reader *in)
{
    for (uint32_t left = length(in, false); left > 0 && !in->failed; left--)
        int32(in);
}

static void partition(struct reader *in)
{
    int32(in);
    replicas(in);
    replicas(in); // adding
    replicas(in); // removing
    tags(in);
}

static void topic(struct reader *in)
{
    skip(in, length(in, false));
    for (uint32_t left = length(in, false); left > 0 && !in->failed; left--)
        partition(in);
    tags(in);
}

static bool read_answer(const uint8_t *data, size_t size)
{
    struct reader in = {data, data + size, false};
    if (int32(&in) != size - 4)
        return false;
    int32(&in); // the correlation id
    tags(&in);  // the header's
    int32(&in); // the throttle time
    byte(&in), byte(&in); // the error code
    skip(&in, length(&in, true));
    for (uint32_t left = length(&in, false); left > 0 && !in.failed; left--)
        topic(&in);
    tags(&in);
    return !in.failed && in.at == in.end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_answer(data, size);
    return 0;
}
