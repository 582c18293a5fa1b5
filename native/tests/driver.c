#include "driver.h"

#include "broadcast.h"
#include "check.h"

#include <string.h>

int driver_read_commands(aa_ring_buffer_t *ring_buffer, command_handler_t handler, void *context)
{
    aa_ring_buffer_trailer_t *trailer = ring_buffer->trailer;
    const int64_t head = atomic_load_explicit(&trailer->head_position, memory_order_relaxed);
    const int64_t head_index = head & (ring_buffer->capacity - 1);
    int64_t bytes = 0;
    int commands = 0;
    while (head_index + bytes < ring_buffer->capacity)
    {
        aa_ring_buffer_record_t *record = (aa_ring_buffer_record_t *)(ring_buffer->records + head_index + bytes);
        const int32_t length = atomic_load_explicit(&record->length, memory_order_acquire);
        if (length <= 0)
        {
            break;
        }
        bytes += aa_align(length, AA_RING_BUFFER_ALIGNMENT);
        if (record->type_id != AA_RING_BUFFER_PADDING_TYPE_ID)
        {
            handler(context, record->type_id, (const uint8_t *)(record + 1), (size_t)length - sizeof(*record));
            commands++;
        }
    }
    if (bytes > 0)
    {
        memset(ring_buffer->records + head_index, 0, (size_t)bytes);
        atomic_store_explicit(&trailer->head_position, head + bytes, memory_order_release);
    }
    return commands;
}

bool driver_unblock_commands(aa_ring_buffer_t *ring_buffer)
{
    const int64_t head = atomic_load_explicit(&ring_buffer->trailer->head_position, memory_order_acquire);
    aa_ring_buffer_record_t *record =
        (aa_ring_buffer_record_t *)(ring_buffer->records + (head & (ring_buffer->capacity - 1)));
    const int32_t length = atomic_load_explicit(&record->length, memory_order_acquire);
    if (length >= 0)
    {
        return false;
    }
    record->type_id = AA_RING_BUFFER_PADDING_TYPE_ID;
    atomic_store_explicit(&record->length, -length, memory_order_release);
    return true;
}

/* Stores that may race with the receiver's copy. */
static void store_racing(uint8_t *to, const void *from, size_t length)
{
    _Atomic uint8_t *bytes = (_Atomic uint8_t *)to;
    for (size_t i = 0; i < length; i++)
    {
        atomic_store_explicit(&bytes[i], ((const uint8_t *)from)[i], memory_order_relaxed);
    }
}

static void put_record(uint8_t *at, int32_t type_id, int32_t length)
{
    aa_broadcast_record_t *record = (aa_broadcast_record_t *)at;
    atomic_store_explicit(&record->length, length, memory_order_relaxed);
    atomic_store_explicit(&record->type_id, type_id, memory_order_relaxed);
}

void driver_broadcast(aa_cnc_t *cnc, int32_t type_id, const void *content, size_t length)
{
    const int64_t capacity = cnc->info.to_clients_buffer_length - (int64_t)sizeof(aa_broadcast_trailer_t);
    aa_broadcast_trailer_t *trailer = (aa_broadcast_trailer_t *)(cnc->to_clients + capacity);
    CHECK(length <= (size_t)capacity / 8);

    int64_t tail = atomic_load_explicit(&trailer->tail, memory_order_relaxed);
    const int64_t record_length = (int64_t)(length + sizeof(aa_broadcast_record_t));
    const int64_t required = aa_align(record_length, AA_BROADCAST_ALIGNMENT);
    const int64_t to_end = capacity - (tail & (capacity - 1));
    const int64_t padding = to_end < required ? to_end : 0;

    atomic_store_explicit(&trailer->tail_intent, tail + padding + required, memory_order_release);
    atomic_thread_fence(memory_order_release);
    if (padding > 0)
    {
        put_record(cnc->to_clients + (tail & (capacity - 1)), AA_BROADCAST_PADDING_TYPE_ID, (int32_t)padding);
        tail += padding;
    }
    uint8_t *record = cnc->to_clients + (tail & (capacity - 1));
    put_record(record, type_id, (int32_t)record_length);
    store_racing(record + sizeof(aa_broadcast_record_t), content, length);
    atomic_store_explicit(&trailer->latest, tail, memory_order_release);
    atomic_store_explicit(&trailer->tail, tail + required, memory_order_release);
}

void driver_clean(aa_log_t *log, int64_t from, int64_t to)
{
    while (from < to)
    {
        const int32_t offset = aa_log_term_offset(log, from);
        const int64_t in_term = log->info.term_length - offset;
        const int64_t length = to - from < in_term ? to - from : in_term;
        /* Watchers may still look at what was read. */
        _Atomic uint64_t *words = (_Atomic uint64_t *)aa_log_frame_at(log, from);
        for (int64_t i = 0; i < length / (int64_t)sizeof(words[0]); i++)
        {
            atomic_store_explicit(&words[i], 0, memory_order_relaxed);
        }
        from += length;
    }
}

/* How much is claimed and not begun at a position, up to a frame that was or the end of the term; 0 where the tail
 * comes first. */
static int32_t gap_at(const aa_log_t *log, int64_t position)
{
    const int32_t begin = aa_log_term_offset(log, position);
    const int32_t partition = (int32_t)((position >> log->position_bits) % AA_LOG_PARTITIONS);
    const int64_t tail = atomic_load_explicit(&log->metadata->term_tails[partition], memory_order_acquire) & 0xFFFFFFFF;
    int32_t end = begin;
    while (end < log->info.term_length && end < tail &&
           atomic_load_explicit(&aa_log_frame(log, partition, end)->length, memory_order_acquire) == 0)
    {
        end += AA_FRAME_ALIGNMENT;
    }
    return end < tail || end == log->info.term_length ? end - begin : 0;
}

bool driver_unblock_log(aa_log_t *log, int64_t position)
{
    aa_frame_t *frame = aa_log_frame_at(log, position);
    const int32_t claimed = -atomic_load_explicit(&frame->length, memory_order_acquire);
    const int32_t length = claimed == 0 ? gap_at(log, position) : claimed;
    if (length <= 0)
    {
        return false;
    }
    frame->type = AA_FRAME_TYPE_PADDING;
    frame->flags = AA_FRAME_BEGIN | AA_FRAME_END;
    frame->term_offset = aa_log_term_offset(log, position);
    frame->term_id = aa_log_term_id(log, position);
    atomic_store_explicit(&frame->length, length, memory_order_release);
    return true;
}

void driver_write_frame(
    aa_log_t *log, int64_t position, int16_t type, uint8_t flags, const void *payload, int32_t payload_length)
{
    aa_frame_t *frame = aa_log_frame_at(log, position);
    frame->version = 0;
    frame->flags = flags;
    frame->type = type;
    frame->term_offset = aa_log_term_offset(log, position);
    frame->session_id = log->info.session_id;
    frame->stream_id = log->info.stream_id;
    frame->term_id = aa_log_term_id(log, position);
    frame->reserved_value = position;
    if (payload != NULL)
    {
        memcpy(frame + 1, payload, (size_t)payload_length);
    }
    atomic_store_explicit(&frame->length, payload_length + AA_FRAME_HEADER_LENGTH, memory_order_release);
}
