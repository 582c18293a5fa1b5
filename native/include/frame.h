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

/* What the frames of a scan were like so far. */
typedef struct
{
    int32_t length;
    int32_t aligned;
} aa_pace_t;

/* How far it is to the next frame, from one of this length. While the lengths stay the same, the processor knows that
 * before it has read the length, and goes ahead, instead of waiting for one frame after the other. */
static inline int32_t aa_pace(aa_pace_t *pace, int32_t length)
{
    if (__builtin_expect(length != pace->length, 0))
    {
        *pace = (aa_pace_t){.length = length, .aligned = (int32_t)aa_align(length, AA_FRAME_ALIGNMENT)};
    }
    return pace->aligned;
}

#endif
