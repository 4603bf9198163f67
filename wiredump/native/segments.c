/* Turns a usual packet into its TCP segment, as readers/segments.py does. Python reads fragments,
   extension headers, lengths of 0, windows of 0, and packets that were not captured whole. */
#include "wire.h"

enum { TCP = 6, TCP_HEADER = 20 };

static unsigned locate(const uint8_t *data, uint32_t size, int32_t link, uint32_t *at) {
    uint32_t family, swapped;
    switch (link) {
    case 1: /* Ethernet */
        *at = 14;
        return size < 14 ? 0 : past_tags(data, size, get16(data + 12), at);
    case 113: /* Linux cooked */
        *at = 16;
        return size < 16 ? 0 : past_tags(data, size, get16(data + 14), at);
    case 276: /* Linux cooked, version 2 */
        *at = 20;
        return size < 20 ? 0 : past_tags(data, size, get16(data), at);
    case 0:
    case 108: /* BSD loopback: a family in either byte order */
        *at = 4;
        if (size < 4) return 0;
        family = get32(data);
        swapped = (uint32_t)data[3] << 24 | (uint32_t)data[2] << 16 | (uint32_t)data[1] << 8 |
                  data[0];
        if (swapped < family) family = swapped;
        if (family == 2) return IPV4;
        return family == 10 || family == 23 || family == 24 || family == 28 || family == 30 ? IPV6
                                                                                            : 0;
    case 12:
    case 14:
    case 101: /* raw */
        *at = 0;
        if (size < 1) return 0;
        return data[0] >> 4 == 4 ? IPV4 : data[0] >> 4 == 6 ? IPV6 : 0;
    case 9:
    case 50: /* PPP */
        *at = 0;
        return 0x880B;
    case 51: /* PPPoE */
        *at = 0;
        return 0x8864;
    case 228:
        *at = 0;
        return IPV4;
    case 229:
        *at = 0;
        return IPV6;
    default:
        return 0;
    }
}

/* Reads the segment at the IP header at `at`; the payload is an offset into `data`. */
static int read_ip(const uint8_t *data, uint32_t size, unsigned kind, uint32_t at, segment *out) {
    uint32_t tcp, end, addresses, length;
    if (kind == IPV4) {
        if (size < at + 20) return 0;
        const uint8_t *ip = data + at;
        uint32_t header = (uint32_t)(ip[0] & 15) << 2;
        length = get16(ip + 2);
        if (ip[0] >> 4 != 4 || header < 20 || ip[9] != TCP || get16(ip + 6) & 0x3FFF ||
            length < header)
            return 0;
        tcp = at + header;
        end = at + length;
        memset(out->flow, 0, KEY);
        memcpy(out->flow, ip + 12, 8);
        out->identification = get16(ip + 4);
        addresses = 8;
    } else if (kind == IPV6) {
        if (size < at + 40) return 0;
        const uint8_t *ip = data + at;
        length = get16(ip + 4);
        if (ip[0] >> 4 != 6 || ip[6] != TCP || length == 0) return 0;
        tcp = at + 40;
        end = tcp + length;
        memset(out->flow, 0, KEY);
        memcpy(out->flow, ip + 8, 32);
        out->identification = 0;
        addresses = 32;
    } else {
        return 0;
    }
    if (end > size || tcp + TCP_HEADER > end) return 0;
    const uint8_t *head = data + tcp;
    uint32_t header = (uint32_t)(head[12] >> 4) << 2;
    if (header < TCP_HEADER || tcp + header > end) return 0;
    memcpy(out->flow + addresses, head, 4);
    out->flow[KEY - 1] = (uint8_t)(addresses + 4);
    out->sequence = get32(head + 4);
    out->acknowledgement = get32(head + 8);
    out->flags = head[13];
    if (UNLIKELY(get16(head + 14) == 0)) return 0; /* Python counts windows of 0 */
    out->at = tcp + header;
    out->size = end - tcp - header;
    return 1;
}

static int read_inside(const uint8_t *data, layer *around, segment *out) {
    for (int step = 1; step < MOST_STEPS && past_layer(data, around); step++)
        if (read_ip(data, around->size, around->kind, around->at, out)) return 1;
    return 0;
}

int read_segment(const uint8_t *chunk, const packet *from, segment *out) {
    const uint8_t *data = chunk + from->at;
    layer link = {.at = 0, .size = from->captured};
    link.kind = locate(data, link.size, from->link, &link.at);
    out->tunnelled = 0;
    if (UNLIKELY(!read_ip(data, link.size, link.kind, link.at, out))) {
        if (!link.kind || !read_inside(data, &link, out)) return 0;
        out->tunnelled = 1;
    }
    out->at += from->at;
    return 1;
}
