#include "reservation.h"

/* --- the raw tail of a term ------------------------------------------------------------------------------ */

static int32_t tail_term_id(int64_t raw_tail)
{
    return (int32_t)(raw_tail >> 32);
}

/* Publishers that found no room leave the tail past the end of the term. */
static int32_t tail_offset(const aa_log_t *log, int64_t raw_tail)
{
    int64_t offset = raw_tail & 0xFFFFFFFF;
    return offset < log->info.term_length ? (int32_t)offset : log->info.term_length;
}

static int64_t pack_tail(int32_t term_id, int64_t offset)
{
    return (int64_t)(((uint64_t)(uint32_t)term_id << 32) | (uint64_t)offset);
}

static int64_t position_of(const aa_log_t *log, int32_t term_id, int32_t offset)
{
    return (int64_t)aa_log_term_count(log, term_id) * log->info.term_length + offset;
}

static int32_t partition_of(int32_t term_count)
{
    return (int32_t)((uint32_t)term_count % AA_LOG_PARTITIONS);
}

int aa_reservation_adopt_tail(aa_publication_t *publication, aa_error_t *error)
{
    aa_log_t *log = publication->log;
    int32_t term_count = atomic_load_explicit(&log->metadata->active_term_count, memory_order_acquire);
    int64_t raw_tail = atomic_load_explicit(&log->metadata->term_tails[partition_of(term_count)], memory_order_acquire);
    int32_t offset = tail_offset(log, raw_tail);
    if (term_count < 0 || aa_log_term_count(log, tail_term_id(raw_tail)) != term_count ||
        offset % AA_FRAME_ALIGNMENT != 0)
    {
        return aa_error_set(
            error, AA_CORRUPT, "exclusive log with tail %#llx in term %d after initial term id %d",
            (unsigned long long)raw_tail, term_count, log->info.initial_term_id);
    }
    publication->exclusive.term_begin_position = (int64_t)term_count << log->position_bits;
    atomic_init(&publication->exclusive.position, publication->exclusive.term_begin_position + offset);
    return AA_OK;
}

int64_t aa_reservation_position(const aa_publication_t *publication)
{
    const aa_log_t *log = publication->log;
    if (publication->is_exclusive)
    {
        return atomic_load_explicit(&publication->exclusive.position, memory_order_acquire);
    }
    int32_t term_count = atomic_load_explicit(&log->metadata->active_term_count, memory_order_acquire);
    int64_t raw_tail = atomic_load_explicit(&log->metadata->term_tails[partition_of(term_count)], memory_order_acquire);
    return position_of(log, tail_term_id(raw_tail), tail_offset(log, raw_tail));
}

int64_t aa_reservation_limit(const aa_publication_t *publication)
{
    return atomic_load_explicit(publication->position_limit, memory_order_acquire);
}

aa_room_t aa_reservation_room(const aa_publication_t *publication)
{
    const int64_t position = aa_reservation_position(publication);
    return (aa_room_t){
        .position = position,
        .limit = aa_reservation_limit(publication),
        /* Between two terms, the full one's: whoever finds no room then learns so. */
        .term_end = ((position - 1) | (publication->log->info.term_length - 1)) + 1,
    };
}

/* --- reserving ------------------------------------------------------------------------------------------- */

int64_t aa_reservation_fragmented_length(const aa_log_t *log, size_t length)
{
    const size_t max_payload_length = (size_t)log->max_payload_length;
    const size_t full_frames = length / max_payload_length;
    const size_t rest = length % max_payload_length;
    int64_t framed = (int64_t)full_frames * log->info.mtu_length;
    if (rest > 0)
    {
        framed += aa_align((int64_t)rest + AA_FRAME_HEADER_LENGTH, AA_FRAME_ALIGNMENT);
    }
    return framed;
}

static aa_slot_t slot_in(const aa_publication_t *publication, int32_t partition, int32_t offset, int32_t term_id)
{
    return (aa_slot_t){
        .term = (uint8_t *)aa_log_frame(publication->log, partition, 0),
        .offset = offset,
        .term_id = term_id,
        .session_id = publication->session_id,
        .stream_id = publication->stream_id,
    };
}

static void pad_term(const aa_publication_t *publication, const aa_slot_t *slot)
{
    const int32_t length = publication->log->info.term_length - slot->offset;
    if (length > 0)
    {
        aa_slot_write_padding(slot, length);
    }
}

int64_t aa_reservation_refusal(const aa_publication_t *publication, int64_t position, int64_t required)
{
    if (position + required >= aa_log_max_possible_position(publication->log))
    {
        return AA_MAX_POSITION_EXCEEDED;
    }
    return aa_log_is_connected(publication->log) ? AA_BACK_PRESSURED : AA_NOT_CONNECTED;
}

/* Any publisher that ran over the end of a term may turn to the next one; the compare-and-sets let one succeed. */
static void rotate(aa_log_t *log, int32_t term_count, int32_t term_id)
{
    aa_log_metadata_t *metadata = log->metadata;
    const int32_t next_term_id = (int32_t)((uint32_t)term_id + 1);
    const int32_t next_term_count = term_count + 1;
    const int32_t expected_term_id = (int32_t)((uint32_t)next_term_id - AA_LOG_PARTITIONS);
    _Atomic int64_t *next_tail = &metadata->term_tails[partition_of(next_term_count)];

    int64_t raw_tail = atomic_load_explicit(next_tail, memory_order_acquire);
    while (tail_term_id(raw_tail) == expected_term_id &&
           !atomic_compare_exchange_weak_explicit(
               next_tail, &raw_tail, pack_tail(next_term_id, 0), memory_order_acq_rel, memory_order_acquire))
    {
    }
    atomic_compare_exchange_strong_explicit(
        &metadata->active_term_count, &term_count, next_term_count, memory_order_acq_rel, memory_order_relaxed);
}

static int64_t reserve_shared(aa_publication_t *publication, int64_t required, aa_slot_t *slot)
{
    aa_log_t *log = publication->log;
    const int64_t limit = aa_reservation_limit(publication);
    const int32_t term_count = atomic_load_explicit(&log->metadata->active_term_count, memory_order_acquire);
    if (term_count < 0)
    {
        return AA_ERROR;
    }
    const int32_t partition = partition_of(term_count);
    _Atomic int64_t *tail = &log->metadata->term_tails[partition];
    int64_t raw_tail = atomic_load_explicit(tail, memory_order_acquire);
    if (aa_log_term_count(log, tail_term_id(raw_tail)) != term_count)
    {
        return AA_ADMIN_ACTION;
    }
    const int64_t position = position_of(log, tail_term_id(raw_tail), tail_offset(log, raw_tail));
    if (position >= limit)
    {
        return aa_reservation_refusal(publication, position, required);
    }

    raw_tail = atomic_fetch_add_explicit(tail, required, memory_order_acq_rel);
    *slot = slot_in(publication, partition, tail_offset(log, raw_tail), tail_term_id(raw_tail));
    if (slot->offset % AA_FRAME_ALIGNMENT != 0)
    {
        return AA_ERROR;
    }
    if (slot->offset + required <= log->info.term_length)
    {
        return position_of(log, slot->term_id, slot->offset + (int32_t)required);
    }

    pad_term(publication, slot);
    if (position_of(log, slot->term_id, log->info.term_length) >= aa_log_max_possible_position(log))
    {
        return AA_MAX_POSITION_EXCEEDED;
    }
    rotate(log, aa_log_term_count(log, slot->term_id), slot->term_id);
    return AA_ADMIN_ACTION;
}

void aa_reservation_store_tail(aa_log_t *log, int64_t term_begin_position, int64_t offset, memory_order order)
{
    const int32_t term_id = aa_log_term_id(log, term_begin_position);
    atomic_store_explicit(
        &log->metadata->term_tails[partition_of(aa_log_term_count(log, term_id))], pack_tail(term_id, offset), order);
}

aa_slot_t aa_reservation_slot_at(const aa_publication_t *publication, int64_t position)
{
    const int64_t term_begin_position = publication->exclusive.term_begin_position;
    const int32_t term_id = aa_log_term_id(publication->log, term_begin_position);
    const int32_t partition = partition_of(aa_log_term_count(publication->log, term_id));
    return slot_in(publication, partition, (int32_t)(position - term_begin_position), term_id);
}

int64_t aa_reservation_rotate(aa_publication_t *publication)
{
    aa_log_t *log = publication->log;
    const int64_t next_begin = publication->exclusive.term_begin_position + log->info.term_length;
    if (next_begin >= aa_log_max_possible_position(log))
    {
        return AA_MAX_POSITION_EXCEEDED;
    }
    publication->exclusive.term_begin_position = next_begin;
    atomic_store_explicit(&publication->exclusive.position, next_begin, memory_order_release);
    aa_reservation_store_tail(log, next_begin, 0, memory_order_relaxed);
    /* Publishes the tail above too. */
    atomic_store_explicit(
        &log->metadata->active_term_count, (int32_t)(next_begin >> log->position_bits), memory_order_release);
    return AA_ADMIN_ACTION;
}

static int64_t reserve_alone(aa_publication_t *publication, int64_t required, aa_slot_t *slot)
{
    aa_log_t *log = publication->log;
    aa_exclusive_tail_t *exclusive = &publication->exclusive;
    const int64_t position = atomic_load_explicit(&exclusive->position, memory_order_relaxed);
    if (position >= aa_reservation_limit(publication))
    {
        return aa_reservation_refusal(publication, position, required);
    }

    *slot = aa_reservation_slot_at(publication, position);
    aa_reservation_store_tail(log, exclusive->term_begin_position, slot->offset + required, memory_order_release);
    if (slot->offset + required <= log->info.term_length)
    {
        atomic_store_explicit(&exclusive->position, position + required, memory_order_release);
        return position + required;
    }
    pad_term(publication, slot);
    return aa_reservation_rotate(publication);
}

int64_t aa_reservation_enter(aa_publication_t *publication)
{
    if (aa_publication_is_closed(publication))
    {
        return AA_CLOSED;
    }
    const bool is_busy = publication->is_exclusive &&
                         atomic_exchange_explicit(&publication->exclusive.is_busy, true, memory_order_acquire);
    return is_busy ? AA_ADMIN_ACTION : AA_OK;
}

void aa_reservation_leave(aa_publication_t *publication)
{
    if (publication->is_exclusive)
    {
        atomic_store_explicit(&publication->exclusive.is_busy, false, memory_order_release);
    }
}

int64_t aa_reservation_take(aa_publication_t *publication, int64_t required, aa_slot_t *slot)
{
    return publication->is_exclusive ? reserve_alone(publication, required, slot)
                                     : reserve_shared(publication, required, slot);
}

int64_t aa_reservation_begin(aa_publication_t *publication, int64_t required, aa_slot_t *slot)
{
    int64_t result = aa_reservation_enter(publication);
    if (result == AA_OK)
    {
        result = aa_reservation_take(publication, required, slot);
        if (result <= 0)
        {
            aa_reservation_leave(publication);
        }
    }
    return result;
}
