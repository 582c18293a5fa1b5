#include "publication.h"

#include "claim.h"
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often offer_many goes through a rotation, its own or that of another publisher, for one message. */
#define ROTATION_ATTEMPTS 64

/* The tail of an exclusive publication, which nobody else moves. */
typedef struct
{
    _Atomic bool is_busy;     /* one writer at a time, even if user threads forget that */
    _Atomic int64_t position; /* read from any thread */
    int64_t term_begin_position;
} exclusive_t;

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
    exclusive_t exclusive;

    _Atomic bool is_closing;
    _Atomic bool is_closed;
    int64_t last_position; /* these three are written before is_closed */
    int64_t last_position_limit;
    int64_t last_channel_status;
};

/* --- the raw tail of a term -------------------------------------------------------------------------------------- */

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

/* --- creation and state ------------------------------------------------------------------------------------------- */

static int adopt_tail(aa_publication_t *publication, aa_error_t *error)
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

int aa_publication_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t session_id, int32_t stream_id, int32_t position_limit_counter_id,
    int32_t channel_status_counter_id, bool exclusive, aa_publication_t **publication, aa_error_t *error)
{
    _Atomic int64_t *position_limit = aa_counters_value(cnc, position_limit_counter_id);
    if (position_limit == NULL)
    {
        return aa_error_set(
            error, AA_CORRUPT, "position limit counter %d, the largest is %d", position_limit_counter_id,
            aa_counters_max_id(cnc));
    }

    aa_publication_t *created = calloc(1, sizeof(*created));
    if (created == NULL)
    {
        return aa_error_system(error, ENOMEM, "no memory for a publication");
    }
    atomic_init(&created->references, 1);
    created->log = aa_log_reference(log);
    created->cnc = aa_cnc_reference(cnc);
    created->session_id = session_id;
    created->stream_id = stream_id;
    created->is_exclusive = exclusive;
    created->position_limit = position_limit;
    created->channel_status = aa_counters_value(cnc, channel_status_counter_id);

    int result = exclusive ? adopt_tail(created, error) : AA_OK;
    if (result != AA_OK)
    {
        aa_publication_release(created);
        return result;
    }
    *publication = created;
    return AA_OK;
}

aa_publication_t *aa_publication_reference(aa_publication_t *publication)
{
    aa_references_take(&publication->references);
    return publication;
}

void aa_publication_release(aa_publication_t *publication)
{
    if (publication != NULL && aa_references_drop(&publication->references))
    {
        aa_log_release(publication->log);
        aa_cnc_release(publication->cnc);
        free(publication);
    }
}

static int64_t current_position(const aa_publication_t *publication)
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

static int64_t current_limit(const aa_publication_t *publication)
{
    return atomic_load_explicit(publication->position_limit, memory_order_acquire);
}

static int64_t current_channel_status(const aa_publication_t *publication)
{
    return publication->channel_status == NULL
               ? 1
               : atomic_load_explicit(publication->channel_status, memory_order_acquire);
}

static bool is_log_connected(const aa_log_t *log)
{
    return atomic_load_explicit(&log->metadata->is_connected, memory_order_acquire) == 1;
}

void aa_publication_close(aa_publication_t *publication)
{
    if (!atomic_exchange_explicit(&publication->is_closing, true, memory_order_relaxed))
    {
        publication->last_position = current_position(publication);
        publication->last_position_limit = current_limit(publication);
        publication->last_channel_status = current_channel_status(publication);
        atomic_store_explicit(&publication->is_closed, true, memory_order_release);
    }
}

/* Acquire pairs with the release in close: whoever sees it closed sees the last values. */
bool aa_publication_is_closed(const aa_publication_t *publication)
{
    return atomic_load_explicit(&publication->is_closed, memory_order_acquire);
}

bool aa_publication_is_connected(const aa_publication_t *publication)
{
    return !aa_publication_is_closed(publication) && is_log_connected(publication->log);
}

int64_t aa_publication_position(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_position : current_position(publication);
}

int64_t aa_publication_position_limit(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_position_limit : current_limit(publication);
}

int64_t aa_publication_channel_status(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_channel_status
                                                 : current_channel_status(publication);
}

int32_t aa_publication_max_payload_length(const aa_publication_t *publication)
{
    return publication->log->max_payload_length;
}

int32_t aa_publication_max_message_length(const aa_publication_t *publication)
{
    return publication->log->max_message_length;
}

/* --- frames ---------------------------------------------------------------------------------------------------------
 */

/* Where the next byte of a message comes from. */
typedef struct
{
    const aa_slice_t *part;
    size_t offset;
} source_t;

static void copy_from(source_t *source, uint8_t *to, size_t length)
{
    while (length > 0)
    {
        size_t available = source->part->length - source->offset;
        if (available == 0)
        {
            source->part++;
            source->offset = 0;
            continue;
        }
        size_t chunk = available < length ? available : length;
        memcpy(to, source->part->data + source->offset, chunk);
        source->offset += chunk;
        to += chunk;
        length -= chunk;
    }
}

/* Room in a term that a publisher has for itself. */
typedef struct
{
    int32_t partition;
    int32_t offset;
    int32_t term_id;
} slot_t;

/* The negative length says that the frame is claimed, so that the driver can unblock it should its writer die; the
 * fence keeps the other stores behind it. */
static aa_frame_t *begin_frame(const aa_publication_t *publication, const slot_t *slot, int32_t length)
{
    aa_frame_t *frame = aa_log_frame(publication->log, slot->partition, slot->offset);
    atomic_store_explicit(&frame->length, -length, memory_order_release);
    atomic_thread_fence(memory_order_release);
    frame->version = 0;
    frame->flags = AA_FRAME_BEGIN | AA_FRAME_END;
    frame->type = AA_FRAME_TYPE_DATA;
    frame->term_offset = slot->offset;
    frame->session_id = publication->session_id;
    frame->stream_id = publication->stream_id;
    frame->term_id = slot->term_id;
    frame->reserved_value = 0;
    return frame;
}

/* Pairs with the acquire of whoever reads the length: subscribers and the driver. */
static void commit_frame(aa_frame_t *frame, int32_t length)
{
    atomic_store_explicit(&frame->length, length, memory_order_release);
}

static void write_message(
    const aa_publication_t *publication, slot_t slot, const aa_slice_t *parts, size_t length, int64_t reserved_value)
{
    const size_t max_payload_length = (size_t)publication->log->max_payload_length;
    source_t source = {.part = parts};
    uint8_t flags = AA_FRAME_BEGIN;
    do
    {
        size_t payload_length = length < max_payload_length ? length : max_payload_length;
        int32_t frame_length = (int32_t)payload_length + AA_FRAME_HEADER_LENGTH;
        length -= payload_length;
        if (length == 0)
        {
            flags |= AA_FRAME_END;
        }

        aa_frame_t *frame = begin_frame(publication, &slot, frame_length);
        frame->flags = flags;
        frame->reserved_value = reserved_value;
        copy_from(&source, (uint8_t *)(frame + 1), payload_length);
        commit_frame(frame, frame_length);

        flags = 0;
        slot.offset += (int32_t)aa_align(frame_length, AA_FRAME_ALIGNMENT);
    } while (length > 0);
}

static void write_padding(const aa_publication_t *publication, const slot_t *slot, int32_t length)
{
    aa_frame_t *frame = begin_frame(publication, slot, length);
    frame->type = AA_FRAME_TYPE_PADDING;
    commit_frame(frame, length);
}

static void pad_term(const aa_publication_t *publication, const slot_t *slot)
{
    const int32_t length = publication->log->info.term_length - slot->offset;
    if (length > 0)
    {
        write_padding(publication, slot, length);
    }
}

/* The room that a message takes in a term. */
static int64_t framed_length(const aa_log_t *log, size_t length)
{
    const size_t max_payload_length = (size_t)log->max_payload_length;
    const size_t full_frames = length / max_payload_length;
    const size_t rest = length % max_payload_length;
    int64_t framed = (int64_t)full_frames * log->info.mtu_length;
    if (rest > 0 || full_frames == 0)
    {
        framed += aa_align((int64_t)rest + AA_FRAME_HEADER_LENGTH, AA_FRAME_ALIGNMENT);
    }
    return framed;
}

/* --- appending ------------------------------------------------------------------------------------------------------
 */

static int64_t back_pressure_status(const aa_publication_t *publication, int64_t position, int64_t required)
{
    if (position + required >= aa_log_max_possible_position(publication->log))
    {
        return AA_MAX_POSITION_EXCEEDED;
    }
    return is_log_connected(publication->log) ? AA_BACK_PRESSURED : AA_NOT_CONNECTED;
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

static int64_t reserve_shared(aa_publication_t *publication, int64_t required, slot_t *slot)
{
    aa_log_t *log = publication->log;
    const int64_t limit = current_limit(publication);
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
        return back_pressure_status(publication, position, required);
    }

    raw_tail = atomic_fetch_add_explicit(tail, required, memory_order_acq_rel);
    *slot = (slot_t){.partition = partition, .offset = tail_offset(log, raw_tail), .term_id = tail_term_id(raw_tail)};
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

static void store_tail(aa_log_t *log, int64_t term_begin_position, int64_t offset, memory_order order)
{
    const int32_t term_id = aa_log_term_id(log, term_begin_position);
    atomic_store_explicit(
        &log->metadata->term_tails[partition_of(aa_log_term_count(log, term_id))], pack_tail(term_id, offset), order);
}

static slot_t slot_at(const aa_publication_t *publication, int64_t position)
{
    const int64_t term_begin_position = publication->exclusive.term_begin_position;
    const int32_t term_id = aa_log_term_id(publication->log, term_begin_position);
    return (slot_t){
        .partition = partition_of(aa_log_term_count(publication->log, term_id)),
        .offset = (int32_t)(position - term_begin_position),
        .term_id = term_id,
    };
}

static int64_t rotate_alone(aa_publication_t *publication)
{
    aa_log_t *log = publication->log;
    const int64_t next_begin = publication->exclusive.term_begin_position + log->info.term_length;
    if (next_begin >= aa_log_max_possible_position(log))
    {
        return AA_MAX_POSITION_EXCEEDED;
    }
    publication->exclusive.term_begin_position = next_begin;
    atomic_store_explicit(&publication->exclusive.position, next_begin, memory_order_release);
    store_tail(log, next_begin, 0, memory_order_relaxed);
    /* Publishes the tail above too. */
    atomic_store_explicit(
        &log->metadata->active_term_count, (int32_t)(next_begin >> log->position_bits), memory_order_release);
    return AA_ADMIN_ACTION;
}

static int64_t reserve_alone(aa_publication_t *publication, int64_t required, slot_t *slot)
{
    aa_log_t *log = publication->log;
    exclusive_t *exclusive = &publication->exclusive;
    const int64_t position = atomic_load_explicit(&exclusive->position, memory_order_relaxed);
    if (position >= current_limit(publication))
    {
        return back_pressure_status(publication, position, required);
    }

    *slot = slot_at(publication, position);
    store_tail(log, exclusive->term_begin_position, slot->offset + required, memory_order_release);
    if (slot->offset + required <= log->info.term_length)
    {
        atomic_store_explicit(&exclusive->position, position + required, memory_order_release);
        return position + required;
    }
    pad_term(publication, slot);
    return rotate_alone(publication);
}

/* Begins an attempt, which leave ends unless this is AA_CLOSED or AA_ADMIN_ACTION: whoever finds an exclusive
 * publication busy may try again, as with any other administrative action. */
static int64_t enter(aa_publication_t *publication)
{
    if (aa_publication_is_closed(publication))
    {
        return AA_CLOSED;
    }
    const bool is_busy = publication->is_exclusive &&
                         atomic_exchange_explicit(&publication->exclusive.is_busy, true, memory_order_acquire);
    return is_busy ? AA_ADMIN_ACTION : AA_OK;
}

static void leave(aa_publication_t *publication)
{
    if (publication->is_exclusive)
    {
        atomic_store_explicit(&publication->exclusive.is_busy, false, memory_order_release);
    }
}

/* The position after the room in slot, or a result of offers. */
static int64_t reserve(aa_publication_t *publication, int64_t required, slot_t *slot)
{
    return publication->is_exclusive ? reserve_alone(publication, required, slot)
                                     : reserve_shared(publication, required, slot);
}

/* One attempt. */
static int64_t append(aa_publication_t *publication, const aa_slice_t *parts, size_t length, int64_t reserved_value)
{
    int64_t result = enter(publication);
    if (result == AA_OK)
    {
        slot_t slot;
        result = reserve(publication, framed_length(publication->log, length), &slot);
        if (result > 0)
        {
            write_message(publication, slot, parts, length, reserved_value);
        }
        leave(publication);
    }
    return result;
}

static bool is_too_long(const aa_log_t *log, size_t length)
{
    return length > (size_t)log->max_message_length && length > (size_t)log->max_payload_length;
}

int64_t aa_publication_offer(aa_publication_t *publication, const uint8_t *data, size_t length, int64_t reserved_value)
{
    if (is_too_long(publication->log, length))
    {
        return AA_MESSAGE_TOO_LONG;
    }
    return append(publication, &(aa_slice_t){.data = data, .length = length}, length, reserved_value);
}

int64_t aa_publication_offer_vectored(
    aa_publication_t *publication, const aa_slice_t *parts, size_t count, int64_t reserved_value)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
    {
        if (is_too_long(publication->log, parts[i].length))
        {
            return AA_MESSAGE_TOO_LONG;
        }
        length += parts[i].length;
        if (is_too_long(publication->log, length))
        {
            return AA_MESSAGE_TOO_LONG;
        }
    }
    return append(publication, parts, length, reserved_value);
}

static int64_t check_lengths(const aa_log_t *log, size_t data_length, const int32_t *lengths, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
    {
        if (lengths[i] < 0 || (size_t)lengths[i] > data_length - total)
        {
            return AA_ARGUMENT;
        }
        total += (size_t)lengths[i];
        if (is_too_long(log, (size_t)lengths[i]))
        {
            return AA_MESSAGE_TOO_LONG;
        }
    }
    return AA_OK;
}

/* Messages that lie in one buffer: each with a length of its own, or all equally long and as far apart. */
typedef struct
{
    const uint8_t *data;
    const int32_t *lengths; /* NULL where they are equal */
    size_t length;
    size_t stride;
    size_t count;
} run_t;

static int64_t append_run(aa_publication_t *publication, const run_t *run, int64_t *position)
{
    int64_t result = AA_OK;
    size_t appended = 0, offset = 0;
    int attempts = 0;
    while (appended < run->count)
    {
        const size_t length = run->lengths == NULL ? run->length : (size_t)run->lengths[appended];
        const uint8_t *data = offset == 0 ? run->data : run->data + offset;
        result = append(publication, &(aa_slice_t){.data = data, .length = length}, length, 0);
        if (result > 0)
        {
            if (position != NULL)
            {
                *position = result;
            }
            offset += run->lengths == NULL ? run->stride : length;
            appended++;
            attempts = 0;
        }
        else if (result != AA_ADMIN_ACTION || ++attempts == ROTATION_ATTEMPTS)
        {
            break;
        }
    }
    return appended > 0 ? (int64_t)appended : result;
}

int64_t aa_publication_offer_many(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, const int32_t *lengths, size_t count,
    int64_t *position)
{
    const int64_t result = check_lengths(publication->log, data_length, lengths, count);
    if (result != AA_OK)
    {
        return result;
    }
    const run_t run = {.data = data, .lengths = lengths, .count = count};
    return append_run(publication, &run, position);
}

int64_t aa_publication_offer_equal(
    aa_publication_t *publication, const uint8_t *data, size_t data_length, size_t length, size_t stride, size_t count,
    int64_t *position)
{
    if (count > 0 && (length > data_length || (stride > 0 && count - 1 > (data_length - length) / stride)))
    {
        return AA_ARGUMENT;
    }
    if (is_too_long(publication->log, length))
    {
        return AA_MESSAGE_TOO_LONG;
    }
    const run_t run = {.data = data, .length = length, .stride = stride, .count = count};
    return append_run(publication, &run, position);
}

/* --- claims ----------------------------------------------------------------------------------------------------------
 */

int64_t aa_publication_try_claim(aa_publication_t *publication, size_t length, aa_claim_t **claim)
{
    if (length > (size_t)publication->log->max_payload_length)
    {
        return AA_MESSAGE_TOO_LONG;
    }
    aa_claim_t *claimed = aa_claim_create(publication->log);
    if (claimed == NULL)
    {
        return AA_SYSTEM;
    }

    int64_t result = enter(publication);
    if (result == AA_OK)
    {
        slot_t slot;
        result = reserve(publication, framed_length(publication->log, length), &slot);
        if (result > 0)
        {
            const int32_t frame_length = (int32_t)length + AA_FRAME_HEADER_LENGTH;
            aa_claim_begin(claimed, begin_frame(publication, &slot, frame_length), frame_length);
        }
        leave(publication);
    }

    if (result > 0)
    {
        *claim = claimed;
    }
    else
    {
        aa_claim_release(claimed);
    }
    return result;
}

/* --- what only exclusive publications do ---------------------------------------------------------------------------
 */

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

    int64_t result = enter(publication);
    if (result == AA_OK)
    {
        const int32_t frame_length = (int32_t)length + AA_FRAME_HEADER_LENGTH;
        slot_t slot;
        result = reserve(publication, aa_align(frame_length, AA_FRAME_ALIGNMENT), &slot);
        if (result > 0)
        {
            write_padding(publication, &slot, frame_length);
        }
        leave(publication);
    }
    return result;
}

int32_t aa_publication_max_padding_length(const aa_publication_t *publication)
{
    return (int32_t)framed_length(publication->log, (size_t)publication->log->max_message_length);
}

/* Whether frames that fill the block follow each other as this publication would have written them at slot. */
static int check_block(
    const aa_publication_t *publication, const slot_t *slot, const uint8_t *block, size_t length, aa_error_t *error)
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
static void write_block(const aa_publication_t *publication, const slot_t *slot, const uint8_t *block, size_t length)
{
    int32_t first_length;
    memcpy(&first_length, block, sizeof(first_length));
    aa_frame_t *frame = aa_log_frame(publication->log, slot->partition, slot->offset);
    atomic_store_explicit(&frame->length, -first_length, memory_order_release);
    atomic_thread_fence(memory_order_release);
    memcpy((uint8_t *)frame + sizeof(first_length), block + sizeof(first_length), length - sizeof(first_length));
    commit_frame(frame, first_length);
}

static int64_t append_block(aa_publication_t *publication, const uint8_t *block, size_t length, aa_error_t *error)
{
    aa_log_t *log = publication->log;
    exclusive_t *exclusive = &publication->exclusive;
    int64_t position = atomic_load_explicit(&exclusive->position, memory_order_relaxed);
    if (position >= current_limit(publication))
    {
        return back_pressure_status(publication, position, (int64_t)length);
    }
    if (position == exclusive->term_begin_position + log->info.term_length &&
        rotate_alone(publication) == AA_MAX_POSITION_EXCEEDED)
    {
        return AA_MAX_POSITION_EXCEEDED;
    }

    const slot_t slot = slot_at(publication, position);
    const int result = check_block(publication, &slot, block, length, error);
    if (result != AA_OK)
    {
        return result;
    }
    position += (int64_t)length;
    store_tail(log, exclusive->term_begin_position, slot.offset + (int64_t)length, memory_order_release);
    write_block(publication, &slot, block, length);
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
    int64_t result = enter(publication);
    if (result == AA_OK)
    {
        result = append_block(publication, block, length, error);
        leave(publication);
    }
    return result;
}
