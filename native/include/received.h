/* Messages in memory of their own: payloads back to back, where each begins, and a row of header fields for each. */
#ifndef AA_RECEIVED_H
#define AA_RECEIVED_H

#include "log_buffer.h"

/* The beginning is laid out as a frame's header is, so that filling it is one copy. */
typedef struct
{
    int32_t frame_length;
    uint8_t version;
    uint8_t flags;
    int16_t type;
    int32_t term_offset;
    int32_t session_id;
    int32_t stream_id;
    int32_t term_id;
    int64_t reserved_value;
    int64_t position;
    int32_t initial_term_id;
    int32_t fragment_end;
} aa_row_t;

_Static_assert(sizeof(aa_row_t) == 48, "rows have no gaps");
_Static_assert(offsetof(aa_row_t, position) == AA_FRAME_HEADER_LENGTH, "rows begin with a frame's header");

typedef struct aa_received
{
    aa_references_t references;
    int32_t payload_length;
    size_t count;
    size_t nbytes;
    uint8_t *data;
    int32_t *offsets;
    aa_row_t *rows;
    size_t row_capacity;
    size_t data_capacity;
    size_t length; /* of all this in memory */
} aa_received_t;

/* Copies of payloads go in steps of this many bytes, so this much of the memory behind data_capacity is there too. */
#define AA_RECEIVED_STEP 32

/* Empty, in one piece of memory; NULL without. */
aa_received_t *aa_received_create(size_t row_capacity, size_t data_capacity);
/* The same messages in new memory, with data_length bytes of their data, where more than theirs may lie; NULL without.
 */
aa_received_t *
aa_received_copy(const aa_received_t *messages, size_t data_length, size_t row_capacity, size_t data_capacity);
aa_received_t *aa_received_reference(aa_received_t *messages);
void aa_received_release(aa_received_t *messages);
/* What messages of this size take in memory. */
size_t aa_received_length(size_t row_count, size_t data_length);
void aa_received_copy_column(const aa_received_t *messages, size_t field, size_t size, uint8_t *out);

/* The row of a message in one frame, whose length was read. */
static inline void
aa_row_set(aa_row_t *row, const aa_log_t *log, const aa_frame_t *frame, int32_t frame_length, int64_t next_position)
{
    __builtin_memcpy(row, frame, AA_FRAME_HEADER_LENGTH);
    row->frame_length = frame_length;
    row->position = next_position;
    row->initial_term_id = log->info.initial_term_id;
}

/* Whether nobody else holds it: acquire pairs with the release of who let go last, whose reads come before whatever is
 * written next. */
static inline bool aa_received_is_ours_alone(const aa_received_t *messages)
{
    return atomic_load_explicit(&messages->references, memory_order_acquire) == 1;
}

#endif
