/* Whether bytes are a message, without making an object of any of it: as strict as decode.c. */
#include "engine.h"

/* UTF-8 as CPython's strict decoder has it: nothing overlong, no surrogate, nothing above U+10FFFF
   (the table of well-formed sequences in chapter 3 of the Unicode standard). */
static int is_utf8(const uint8_t *p, Py_ssize_t size) {
    const uint8_t *end = p + size;
    if (LIKELY(is_ascii(p, size))) return 1;
    while (p < end) {
        uint8_t lead = *p++;
        if (lead < 0x80) continue;
        int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        if (lead < 0xC2 || lead > 0xF4 || end - p < more) return 0;
        uint8_t lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        uint8_t highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (*p < lowest || *p > highest) return 0;
        for (p++; --more; p++)
            if ((*p & 0xC0) != 0x80) return 0;
    }
    return 1;
}

static int validate_blob(reader *in, const field_plan *field, int is_string, int nullable) {
    int64_t size;
    if (UNLIKELY(get_length(in, field, is_string, &size))) return -1;
    if (size < 0) return nullable ? 0 : -1;
    if (UNLIKELY(size > left_of(in) || (is_string && size > MOST_STRING))) return -1;
    const uint8_t *p = in->at;
    in->at += size;
    return is_string && !is_utf8(p, (Py_ssize_t)size) ? -1 : 0;
}

/* `count` elements, of which the caller knows that the bytes left may hold them. */
int validate_elements(reader *in, const field_plan *field, int64_t count) {
    if (width_of[field->element]) {
        in->at += count * width_of[field->element];
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        int failed = field->element == KIND_STRUCT
                         ? validate_struct(in, field->inner)
                         : validate_blob(in, field, field->element == KIND_STRING, 0);
        if (UNLIKELY(failed)) return -1;
    }
    return 0;
}

static int validate_array(reader *in, const field_plan *field) {
    int64_t count;
    if (UNLIKELY(get_length(in, field, 0, &count))) return -1;
    if (count < 0) return field->flags & FIELD_NULLABLE ? 0 : -1;
    if (UNLIKELY(count > left_of(in) / field->element_min)) return -1;
    return validate_elements(in, field, count);
}

int validate_field(reader *in, const field_plan *field) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return validate_blob(in, field, 1, nullable);
    case KIND_BYTES: return validate_blob(in, field, 0, nullable);
    case KIND_ARRAY: return validate_array(in, field);
    case KIND_STRUCT:
        if (nullable) {
            int present = get_presence(in, field);
            if (present <= 0) return present;
        }
        return validate_struct(in, field->inner);
    default:
        if (left_of(in) < width_of[field->kind]) return -1;
        in->at += width_of[field->kind];
        return 0;
    }
}

static int validate_tags(reader *in, const struct_plan *plan, uint32_t count) {
    if ((Py_ssize_t)count > left_of(in) / 2) return -1;
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(in, plan, &last, &size)) return -1;
        const uint8_t *end = in->at + size;
        const field_plan *field = field_of_tag(plan, (uint32_t)last);
        if (field == NULL)
            in->at = end;
        else if (validate_field(in, field) || in->at != end)
            return -1;
    }
    return 0;
}

int validate_struct(reader *in, const struct_plan *plan) {
    for (const field_plan *field = INLINE(plan), *end = TAGGED(plan); field < end;) {
        if (field->run) { /* skip all of the run at once */
            Py_ssize_t bytes = field->run;
            if (UNLIKELY(bytes > left_of(in))) return -1;
            in->at += bytes;
            while (bytes) bytes -= width_of[field++->kind];
        } else if (UNLIKELY(validate_field(in, field++))) {
            return -1;
        }
    }
    if (!plan->flexible) return 0;
    uint32_t count;
    if (UNLIKELY(get_varint(in, &count))) return -1;
    return UNLIKELY(count) ? validate_tags(in, plan, count) : 0;
}
