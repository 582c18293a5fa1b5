/* Room for frames in a log: where a publication may write next, and how it comes by that place. */
#ifndef AA_RESERVATION_H
#define AA_RESERVATION_H

#include "publication.h"
#include "waiters.h"

/* The tail of an exclusive publication, which nobody else moves. */
typedef struct
{
    _Atomic bool is_busy;     /* one writer at a time, even if user threads forget that */
    _Atomic int64_t position; /* read from any thread */
    int64_t term_begin_position;
} aa_exclusive_tail_t;

struct aa_publication
{
    aa_references_t references;
    aa_log_t *log;
    aa_cnc_t *cnc;
    int32_t session_id;
    int32_t stream_id;
    bool is_exclusive;
    _Atomic int64_t *position_limit;
    _Atomic int64_t *channel_status; /* NULL without one */
    aa_exclusive_tail_t exclusive;
    aa_waiters_t waiters;

    _Atomic bool is_closing;
    _Atomic bool is_closed;
    int64_t last_position; /* these three are written before is_closed */
    int64_t last_position_limit;
    int64_t last_channel_status;
};

/* Room in a term that a publisher has for itself, and what the headers of its frames say. */
typedef struct
{
    uint8_t *term;
    int32_t offset;
    int32_t term_id;
    int32_t session_id;
    int32_t stream_id;
} aa_slot_t;

/* What room there was at one moment: where the next message begins, before where it has to, and where the term ends. */
typedef struct
{
    int64_t position;
    int64_t limit;
    int64_t term_end;
} aa_room_t;

/* As aa_reservation_length, for messages of several frames. */
int64_t aa_reservation_fragmented_length(const aa_log_t *log, size_t length);

/* The room that a message takes in a term. */
static inline int64_t aa_reservation_length(const aa_log_t *log, size_t length)
{
    return length <= (size_t)log->max_payload_length
               ? aa_align((int64_t)length + AA_FRAME_HEADER_LENGTH, AA_FRAME_ALIGNMENT)
               : aa_reservation_fragmented_length(log, length);
}

/* Begins an attempt, which leave ends unless this is AA_CLOSED or AA_ADMIN_ACTION: whoever finds an exclusive
 * publication busy may try again, as with any other administrative action. */
int64_t aa_reservation_enter(aa_publication_t *publication);
void aa_reservation_leave(aa_publication_t *publication);
/* The position after the room in slot, or a result of offers. */
int64_t aa_reservation_take(aa_publication_t *publication, int64_t required, aa_slot_t *slot);
/* Enters and takes: an attempt has begun only where there is a position. */
int64_t aa_reservation_begin(aa_publication_t *publication, int64_t required, aa_slot_t *slot);

int64_t aa_reservation_position(const aa_publication_t *publication);
int64_t aa_reservation_limit(const aa_publication_t *publication);
aa_room_t aa_reservation_room(const aa_publication_t *publication);
/* Why nothing can be appended at a position that is at the limit. */
int64_t aa_reservation_refusal(const aa_publication_t *publication, int64_t position, int64_t required);

/* Of exclusive publications, between enter and leave but for the first. */
int aa_reservation_adopt_tail(aa_publication_t *publication, aa_error_t *error);
aa_slot_t aa_reservation_slot_at(const aa_publication_t *publication, int64_t position);
void aa_reservation_store_tail(aa_log_t *log, int64_t term_begin_position, int64_t offset, memory_order order);
/* Turns to the next term: AA_ADMIN_ACTION, or AA_MAX_POSITION_EXCEEDED. */
int64_t aa_reservation_rotate(aa_publication_t *publication);

static inline aa_frame_t *aa_slot_frame(const aa_slot_t *slot)
{
    return (aa_frame_t *)(slot->term + slot->offset);
}

/* The negative length says that the frame is claimed, so that the driver can unblock it should its writer die; the
 * fence keeps the other stores behind it. */
static inline aa_frame_t *aa_slot_begin_frame(const aa_slot_t *slot, int32_t length)
{
    aa_frame_t *frame = aa_slot_frame(slot);
    atomic_store_explicit(&frame->length, -length, memory_order_release);
    atomic_thread_fence(memory_order_release);
    frame->version = 0;
    frame->flags = AA_FRAME_BEGIN | AA_FRAME_END;
    frame->type = AA_FRAME_TYPE_DATA;
    frame->term_offset = slot->offset;
    frame->session_id = slot->session_id;
    frame->stream_id = slot->stream_id;
    frame->term_id = slot->term_id;
    frame->reserved_value = 0;
    return frame;
}

/* Pairs with the acquire of whoever reads the length: subscribers and the driver. */
static inline void aa_frame_commit(aa_frame_t *frame, int32_t length)
{
    atomic_store_explicit(&frame->length, length, memory_order_release);
}

static inline void aa_slot_write_padding(const aa_slot_t *slot, int32_t length)
{
    aa_frame_t *frame = aa_slot_begin_frame(slot, length);
    frame->type = AA_FRAME_TYPE_PADDING;
    aa_frame_commit(frame, length);
}

#endif
