/* Frames as readers see them: one at a position of a log, once its length is known to be true. */
#ifndef AA_FRAME_H
#define AA_FRAME_H

#include "log_buffer.h"

typedef struct
{
    const aa_frame_t *header;
    int32_t length;
    int64_t next_position;
    uint8_t flags;
    bool is_padding;
} aa_read_frame_t;

/* position must be valid and before the end of the stream. AA_OK, AA_NOTHING, AA_CORRUPT. */
static inline int aa_frame_read(const aa_log_t *log, int64_t position, aa_read_frame_t *frame, aa_error_t *error)
{
    const aa_frame_t *header = aa_log_frame_at(log, position);
    /* Pairs with the release of whoever wrote the frame: the publisher, or the driver's receiver. */
    const int32_t length = atomic_load_explicit(&header->length, memory_order_acquire);
    if (length <= 0)
    {
        return AA_NOTHING;
    }
    if (length < AA_FRAME_HEADER_LENGTH || length > log->info.term_length - aa_log_term_offset(log, position))
    {
        aa_error_set(
            error, AA_CORRUPT, "frame of length %d at position %lld, term length %d", length, (long long)position,
            log->info.term_length);
        return AA_CORRUPT;
    }
    *frame = (aa_read_frame_t){
        .header = header,
        .length = length,
        .next_position = position + aa_align(length, AA_FRAME_ALIGNMENT),
        .flags = header->flags,
        .is_padding = header->type == AA_FRAME_TYPE_PADDING,
    };
    return AA_OK;
}

#endif
