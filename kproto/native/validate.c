/* Validates the bytes of a message without making an object, as strictly as decode.c. A reader is
   passed by value and the offset after the data is returned, NULL if it is invalid; both stay in
   registers. */
#include "engine.h"
#include "records.h"

/* UTF-8 as CPython's strict decoder defines it: no overlong forms, no surrogates, nothing above
   U+10FFFF (the table of well-formed sequences in chapter 3 of the Unicode standard). */
int is_utf8(const uint8_t *p, Py_ssize_t size) {
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

static const uint8_t *skip_struct(reader in, const struct_plan *plan);

static inline const uint8_t *skip_blob(reader in, const field_plan *field, int is_string,
                                       int nullable) {
    int64_t size;
    if (UNLIKELY(get_length(&in, field, is_string, &size))) return NULL;
    if (size < 0) return nullable ? in.at : NULL;
    if (UNLIKELY(size > left_of(&in) || (is_string && size > MOST_STRING))) return NULL;
    return is_string && !is_utf8(in.at, (Py_ssize_t)size) ? NULL : in.at + size;
}

/* Skips `count` elements; the caller knows that the remaining bytes may hold them. */
static const uint8_t *skip_elements(reader in, const field_plan *field, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        in.at = field->element == KIND_STRUCT
                    ? skip_struct(in, field->inner)
                    : skip_blob(in, field, field->element == KIND_STRING, 0);
        if (UNLIKELY(in.at == NULL)) return NULL;
    }
    return in.at;
}

static inline const uint8_t *skip_array(reader in, const field_plan *field) {
    int64_t count;
    if (UNLIKELY(get_length(&in, field, 0, &count))) return NULL;
    if (UNLIKELY(count < 0)) return field->flags & FIELD_NULLABLE ? in.at : NULL;
    if (UNLIKELY(!may_hold(&in, field, count))) return NULL;
    Py_ssize_t width = width_of[field->element];
    return width ? in.at + count * width : skip_elements(in, field, count);
}

static inline const uint8_t *skip_field(reader in, const field_plan *field) {
    int nullable = field->flags & FIELD_NULLABLE;
    switch (field->kind) {
    case KIND_STRING: return skip_blob(in, field, 1, nullable);
    case KIND_BYTES: return skip_blob(in, field, 0, nullable);
    case KIND_ARRAY: return skip_array(in, field);
    case KIND_STRUCT:
        if (nullable) {
            int present = get_presence(&in, field);
            if (present <= 0) return present ? NULL : in.at;
        }
        return skip_struct(in, field->inner);
    default:
        if (left_of(&in) < width_of[field->kind]) return NULL;
        return in.at + width_of[field->kind];
    }
}

static const uint8_t *skip_tags(reader in, const struct_plan *plan, uint32_t count) {
    if ((Py_ssize_t)count > left_of(&in) / 2) return NULL;
    int64_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;
        if (get_tag(&in, plan, &last, &size)) return NULL;
        const uint8_t *end = in.at + size;
        const field_plan *field = field_of_tag(plan, (uint32_t)last);
        if (field != NULL && skip_field(in, field) != end) return NULL;
        in.at = end;
    }
    return in.at;
}

static const uint8_t *skip_struct(reader in, const struct_plan *plan) {
    for (const field_plan *field = INLINE(plan), *end = TAGGED(plan); field < end;) {
        if (field->run) { /* skips the whole run at once */
            if (UNLIKELY(field->run > left_of(&in))) return NULL;
            in.at += field->run;
            field += field->run_fields;
        } else if (UNLIKELY(!(in.at = skip_field(in, field++)))) {
            return NULL;
        }
    }
    if (!plan->flexible) return in.at;
    uint32_t count;
    if (UNLIKELY(get_varint(&in, &count))) return NULL;
    return UNLIKELY(count) ? skip_tags(in, plan, count) : in.at;
}

/* ---- for others --------------------------------------------------------------------------------- */

static int moved(reader *in, const uint8_t *at) {
    if (UNLIKELY(at == NULL)) return -1;
    in->at = at;
    return 0;
}

int validate_struct(reader *in, const struct_plan *plan) {
    return moved(in, skip_struct(*in, plan));
}

/* As with skip_elements, of a fixed width too. */
int validate_elements(reader *in, const field_plan *field, int64_t count) {
    Py_ssize_t width = width_of[field->element];
    return moved(in, width ? in->at + count * width : skip_elements(*in, field, count));
}

int validate_field(reader *in, const field_plan *field) {
    return moved(in, skip_field(*in, field));
}
