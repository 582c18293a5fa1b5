#include "publication.h"

#include "counters.h"
#include "reservation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often a run of messages goes through a rotation, its own or that of another publisher, for one of them. */
#define ROTATION_ATTEMPTS 64

/* --- creation and state ---------------------------------------------------------------------------------- */

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
    aa_waiters_init(&created->waiters);
    created->log = aa_log_reference(log);
    created->cnc = aa_cnc_reference(cnc);
    created->session_id = session_id;
    created->stream_id = stream_id;
    created->is_exclusive = exclusive;
    created->position_limit = position_limit;
    created->channel_status = aa_counters_value(cnc, channel_status_counter_id);

    int result = exclusive ? aa_reservation_adopt_tail(created, error) : AA_OK;
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
        aa_waiters_destroy(&publication->waiters);
        aa_log_release(publication->log);
        aa_cnc_release(publication->cnc);
        free(publication);
    }
}

static int64_t current_channel_status(const aa_publication_t *publication)
{
    return publication->channel_status == NULL
               ? 1
               : atomic_load_explicit(publication->channel_status, memory_order_acquire);
}

void aa_publication_close(aa_publication_t *publication)
{
    if (!atomic_exchange_explicit(&publication->is_closing, true, memory_order_relaxed))
    {
        publication->last_position = aa_reservation_position(publication);
        publication->last_position_limit = aa_reservation_limit(publication);
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
    return !aa_publication_is_closed(publication) && aa_log_is_connected(publication->log);
}

int64_t aa_publication_position(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_position : aa_reservation_position(publication);
}

int64_t aa_publication_position_limit(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_position_limit : aa_reservation_limit(publication);
}

int64_t aa_publication_channel_status(const aa_publication_t *publication)
{
    return aa_publication_is_closed(publication) ? publication->last_channel_status
                                                 : current_channel_status(publication);
}

int aa_publication_add_waiter(
    aa_publication_t *publication, int32_t counter_id, int64_t registration_id, int descriptor)
{
    return aa_waiters_add(&publication->waiters, publication->cnc, counter_id, registration_id, descriptor);
}

void aa_publication_remove_waiter(aa_publication_t *publication, int64_t registration_id)
{
    aa_waiters_remove(&publication->waiters, registration_id);
}

int32_t aa_publication_max_payload_length(const aa_publication_t *publication)
{
    return publication->log->max_payload_length;
}

int32_t aa_publication_max_message_length(const aa_publication_t *publication)
{
    return publication->log->max_message_length;
}

/* --- one message ----------------------------------------------------------------------------------------- */

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

static void write_message(
    const aa_publication_t *publication, aa_slot_t slot, const aa_slice_t *parts, size_t length, int64_t reserved_value)
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

        aa_frame_t *frame = aa_slot_begin_frame(publication, &slot, frame_length);
        frame->flags = flags;
        frame->reserved_value = reserved_value;
        copy_from(&source, (uint8_t *)(frame + 1), payload_length);
        aa_frame_commit(frame, frame_length);

        flags = 0;
        slot.offset += (int32_t)aa_align(frame_length, AA_FRAME_ALIGNMENT);
    } while (length > 0);
}

/* One attempt. */
static int64_t append(aa_publication_t *publication, const aa_slice_t *parts, size_t length, int64_t reserved_value)
{
    int64_t result = aa_reservation_enter(publication);
    if (result == AA_OK)
    {
        aa_slot_t slot;
        result = aa_reservation_take(publication, aa_reservation_length(publication->log, length), &slot);
        if (result > 0)
        {
            write_message(publication, slot, parts, length, reserved_value);
        }
        aa_reservation_leave(publication);
    }
    return result;
}

/* One attempt, which wakes whoever waits for the message. */
static int64_t
append_and_wake(aa_publication_t *publication, const aa_slice_t *parts, size_t length, int64_t reserved_value)
{
    const int64_t result = append(publication, parts, length, reserved_value);
    if (result > 0)
    {
        aa_waiters_wake(&publication->waiters);
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
    return append_and_wake(publication, &(aa_slice_t){.data = data, .length = length}, length, reserved_value);
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
    return append_and_wake(publication, parts, length, reserved_value);
}

/* --- many messages --------------------------------------------------------------------------------------- */

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
    if (appended == 0)
    {
        return result;
    }
    aa_waiters_wake(&publication->waiters);
    return (int64_t)appended;
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
