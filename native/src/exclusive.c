#include "exclusive.h"

#include "reservation.h"

#include <string.h>

int64_t aa_publication_append_padding(aa_publication_t *publication, size_t length)
{
    if (!publication->is_exclusive)
    {
        return AA_ARGUMENT;
    }
    if (length > (size_t)aa_publication_max_padding_length(publication))
    {
        return AA_MESSAGE_TOO_LONG;
    }

    const int32_t frame_length = (int32_t)length + AA_FRAME_HEADER_LENGTH;
    aa_slot_t slot;
    const int64_t result = aa_reservation_begin(publication, aa_align(frame_length, AA_FRAME_ALIGNMENT), &slot);
    if (result > 0)
    {
        aa_slot_write_padding(&slot, frame_length);
        aa_reservation_leave(publication);
    }
    return result;
}

int32_t aa_publication_max_padding_length(const aa_publication_t *publication)
{
    return (int32_t)aa_reservation_length(publication->log, (size_t)publication->log->max_message_length);
}

/* Whether frames that fill the block follow each other as this publication would have written them at slot. */
static int check_block(
    const aa_publication_t *publication, const aa_slot_t *slot, const uint8_t *block, size_t length, aa_error_t *error)
{
    const size_t room = (size_t)(publication->log->info.term_length - slot->offset);
    if (length > room)
    {
        return aa_error_set(error, AA_ARGUMENT, "block of %zu bytes, but %zu are left in the term", length, room);
    }
    size_t offset = 0;
    while (offset < length)
    {
        aa_frame_t frame;
        if (length - offset < sizeof(frame))
        {
            return aa_error_set(
                error, AA_ARGUMENT, "block of %zu bytes ends within a frame's header at %zu", length, offset);
        }
        memcpy(&frame, block + offset, sizeof(frame));
        const int64_t aligned = aa_align(frame.length, AA_FRAME_ALIGNMENT);
        const int32_t term_offset = slot->offset + (int32_t)offset;
        if (frame.length < AA_FRAME_HEADER_LENGTH || (uint64_t)aligned > length - offset)
        {
            return aa_error_set(error, AA_ARGUMENT, "block has a frame of %d bytes at %zu", frame.length, offset);
        }
        if (frame.session_id != publication->session_id || frame.stream_id != publication->stream_id ||
            frame.term_id != slot->term_id || frame.term_offset != term_offset ||
            (frame.type != AA_FRAME_TYPE_DATA && (offset == 0 || frame.type != AA_FRAME_TYPE_PADDING)))
        {
            return aa_error_set(
                error, AA_ARGUMENT,
                "block has at %zu a frame of type %d with session id %d, stream id %d, term id %d, term offset %d; "
                "here "
                "belongs type %d with session id %d, stream id %d, term id %d, term offset %d",
                offset, frame.type, frame.session_id, frame.stream_id, frame.term_id, frame.term_offset,
                AA_FRAME_TYPE_DATA, publication->session_id, publication->stream_id, slot->term_id, term_offset);
        }
        offset += (size_t)aligned;
    }
    return AA_OK;
}

/* The first frame's length comes last: nobody looks behind it before. */
static void write_block(const aa_slot_t *slot, const uint8_t *block, size_t length)
{
    int32_t first_length;
    memcpy(&first_length, block, sizeof(first_length));
    aa_frame_t *frame = aa_slot_frame(slot);
    atomic_store_explicit(&frame->length, -first_length, memory_order_release);
    atomic_thread_fence(memory_order_release);
    memcpy((uint8_t *)frame + sizeof(first_length), block + sizeof(first_length), length - sizeof(first_length));
    aa_frame_commit(frame, first_length);
}

static int64_t append_block(aa_publication_t *publication, const uint8_t *block, size_t length, aa_error_t *error)
{
    aa_log_t *log = publication->log;
    aa_exclusive_tail_t *exclusive = &publication->exclusive;
    int64_t position = atomic_load_explicit(&exclusive->position, memory_order_relaxed);
    if (position >= aa_reservation_limit(publication))
    {
        return aa_reservation_refusal(publication, position, (int64_t)length);
    }
    if (position == exclusive->term_begin_position + log->info.term_length &&
        aa_reservation_rotate(publication) == AA_MAX_POSITION_EXCEEDED)
    {
        return AA_MAX_POSITION_EXCEEDED;
    }

    const aa_slot_t slot = aa_reservation_slot_at(publication, position);
    const int result = check_block(publication, &slot, block, length, error);
    if (result != AA_OK)
    {
        return result;
    }
    position += (int64_t)length;
    aa_reservation_store_tail(log, exclusive->term_begin_position, slot.offset + (int64_t)length, memory_order_release);
    write_block(&slot, block, length);
    atomic_store_explicit(&exclusive->position, position, memory_order_release);
    return position;
}

int64_t
aa_publication_offer_block(aa_publication_t *publication, const uint8_t *block, size_t length, aa_error_t *error)
{
    if (!publication->is_exclusive || length == 0)
    {
        return aa_error_set(error, AA_ARGUMENT, "a block has at least one frame, and needs an exclusive publication");
    }
    int64_t result = aa_reservation_enter(publication);
    if (result == AA_OK)
    {
        result = append_block(publication, block, length, error);
        aa_reservation_leave(publication);
    }
    if (result > 0)
    {
        aa_waiters_wake(&publication->waiters);
    }
    return result;
}
