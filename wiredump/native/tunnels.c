/* Skips the header of a usual tunnel, as readers/tunnels.py does, which also determines its name.
   Headers that readers/tunnels.py reads only in part, or not at all, are left to it. */
#include "wire.h"

enum { ETHERNET = 0x6558, MPLS = 0x8847, MPLS_UPSTREAM = 0x8848, PPP = 0x880B, PPPOE = 0x8864 };
enum { ERSPAN = 0x88BE, ERSPAN_3 = 0x22EB, ARP = 0x0806, UDP = 17, MOST_LABELS = 16 };
enum { CHECKSUM = 0x8000, ROUTING = 0x4000, KEYED = 0x2000, SEQUENCE = 0x1000, ACKNOWLEDGED = 0x80 };

/* Returns the EtherType behind VLAN tags; 0 if the tags are incomplete. */
unsigned past_tags(const uint8_t *data, uint32_t size, unsigned kind, uint32_t *at) {
    while (kind == 0x8100 || kind == 0x88A8 || kind == 0x9100 || kind == 0x9200) {
        if (size < *at + 4) return 0;
        kind = get16(data + *at + 2);
        *at += 4;
    }
    return kind;
}

static int is_frame(const uint8_t *data, uint32_t size, uint32_t at) {
    if (size < 18 || at > size - 18) return 0;
    uint32_t next = at + 14;
    unsigned kind = past_tags(data, size, get16(data + at + 12), &next);
    return kind == IPV4 || kind == IPV6 || kind == ARP || kind == MPLS || kind == PPPOE;
}

static int past_labels(const uint8_t *data, uint32_t size, layer *self) {
    for (int i = 0; i < MOST_LABELS && size - self->at >= 5; i++) {
        uint32_t entry = get32(data + self->at);
        self->at += 4;
        if (!(entry & 0x100)) continue;
        int nibble = data[self->at] >> 4;
        if (nibble == 4 || nibble == 6) {
            self->kind = nibble == 4 ? IPV4 : IPV6;
            return 1;
        }
        self->kind = ETHERNET;
        if (nibble == 0 && is_frame(data, size, self->at + 4)) {
            self->at += 4;
            return 1;
        }
        return is_frame(data, size, self->at);
    }
    return 0;
}

static int past_ppp(const uint8_t *data, uint32_t size, layer *self) {
    if (size - self->at < 4) return 0;
    const uint8_t *head = data + self->at;
    if ((head[0] == 0xFF || head[0] == 0x0F || head[0] == 0x8F) && (head[1] == 3 || head[1] == 0)) {
        head += 2;
        self->at += 2;
    }
    unsigned protocol = *head;
    self->at += 1;
    if (!(protocol & 1)) {
        protocol = protocol << 8 | head[1];
        self->at += 1;
    }
    self->kind = protocol == 0x21                        ? IPV4
                 : protocol == 0x57                      ? IPV6
                 : protocol == 0x281 || protocol == 0x283 ? MPLS
                                                         : 0;
    return self->kind != 0;
}

static int past_gre(const uint8_t *data, uint32_t size, layer *self) {
    if (size - self->at < 28) return 0; /* more than the longest header */
    const uint8_t *head = data + self->at;
    unsigned flags = get16(head), version = flags & 7, kind = get16(head + 2);
    if (flags & ROUTING || version > 1) return 0;
    self->at += 4 + 4u * !!(flags & CHECKSUM) + 4u * !!(flags & KEYED) + 4u * !!(flags & SEQUENCE) +
                4u * (version && flags & ACKNOWLEDGED);
    self->kind = kind;
    if (kind == ERSPAN || kind == ERSPAN_3) {
        self->kind = ETHERNET;
        if (size - self->at < 12) return 0;
        if (kind == ERSPAN_3) self->at += 12 + 8u * (data[self->at + 11] & 1);
        else if (flags & SEQUENCE) self->at += 8;
    }
    return 1;
}

static int past_udp(const uint8_t *data, uint32_t size, layer *self) {
    if (size - self->at < 16) return 0;
    const uint8_t *head = data + self->at + 8;
    unsigned port = get16(data + self->at + 2);
    self->at += 16;
    switch (port) {
    case 4789:
    case 8472: /* VXLAN */
        self->kind = ETHERNET;
        return head[0] & 0x08;
    case 4790: { /* the P bit says that a protocol is given */
        static const unsigned kinds[] = {0, IPV4, IPV6, ETHERNET, 0, MPLS};
        unsigned next = head[0] & 0x04 ? head[3] : 3;
        self->kind = next < 6 ? kinds[next] : 0;
        return head[0] & 0x08 && self->kind != 0;
    }
    case 6081: /* GENEVE */
        self->at += (head[0] & 0x3Fu) * 4;
        self->kind = get16(head + 2);
        return !(head[0] >> 6) && !(head[1] & 0x80);
    case 6635:
        self->at -= 8;
        return past_labels(data, size, self);
    default:
        return 0;
    }
}

/* Skips the IP header of a complete datagram that carries a tunnel. */
static int past_ip(const uint8_t *data, layer *self) {
    const uint8_t *ip = data + self->at;
    uint32_t left = self->size - self->at, header, length;
    unsigned protocol;
    if (self->kind == IPV4) {
        if (left < 20) return 0;
        header = (uint32_t)(ip[0] & 15) << 2;
        length = get16(ip + 2);
        protocol = ip[9];
        if (ip[0] >> 4 != 4 || header < 20 || length < header || get16(ip + 6) & 0x3FFF) return 0;
    } else {
        if (left < 40) return 0;
        header = 40;
        length = get16(ip + 4);
        protocol = ip[6];
        if (ip[0] >> 4 != 6 || length == 0) return 0;
        length += 40;
    }
    if (length > left) return 0;
    self->size = self->at + length;
    self->at += header;
    switch (protocol) {
    case 4:
        self->kind = IPV4;
        return 1;
    case UDP:
        return past_udp(data, self->size, self);
    case 41:
        self->kind = IPV6;
        return 1;
    case 47:
        return past_gre(data, self->size, self);
    case 97: /* EtherIP */
        if (self->size - self->at < 2 || data[self->at] >> 4 != 3) return 0;
        self->kind = ETHERNET;
        self->at += 2;
        return 1;
    case 137:
        return past_labels(data, self->size, self);
    default:
        return 0;
    }
}

int past_layer(const uint8_t *data, layer *self) {
    uint32_t size = self->size;
    int found = 0;
    if (self->at > size) return 0;
    switch (self->kind) {
    case IPV4:
    case IPV6:
        found = past_ip(data, self);
        break;
    case ETHERNET:
        if (size - self->at < 14) return 0;
        self->at += 14;
        self->kind = past_tags(data, size, get16(data + self->at - 2), &self->at);
        return self->kind != 0;
    case MPLS:
    case MPLS_UPSTREAM:
        found = past_labels(data, size, self);
        break;
    case PPPOE:
        if (size - self->at < 6 || data[self->at] != 0x11 || data[self->at + 1] != 0) return 0;
        self->at += 6;
        self->kind = PPP;
        found = 1;
        break;
    case PPP:
        found = past_ppp(data, size, self);
        break;
    default:
        break;
    }
    return found && self->at <= self->size;
}
