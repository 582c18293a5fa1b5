#include "publication.h"

#include "counters.h"
#include "message.h"

#include <errno.h>
#include <stdlib.h>

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

static void end_message(aa_publication_t *publication)
{
    aa_reservation_leave(publication);
    aa_waiters_wake(&publication->waiters);
}

int64_t aa_publication_offer(aa_publication_t *publication, const uint8_t *data, size_t length, int64_t reserved_value)
{
    if (aa_message_is_too_long(publication->log, length))
    {
        return AA_MESSAGE_TOO_LONG;
    }
    aa_slot_t slot;
    const int64_t result = aa_reservation_begin(publication, aa_reservation_length(publication->log, length), &slot);
    if (result > 0)
    {
        aa_message_write(publication, slot, data, length, reserved_value);
        end_message(publication);
    }
    return result;
}

int64_t aa_publication_offer_vectored(
    aa_publication_t *publication, const aa_slice_t *parts, size_t count, int64_t reserved_value)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
    {
        if (aa_message_is_too_long(publication->log, parts[i].length))
        {
            return AA_MESSAGE_TOO_LONG;
        }
        length += parts[i].length;
        if (aa_message_is_too_long(publication->log, length))
        {
            return AA_MESSAGE_TOO_LONG;
        }
    }

    aa_slot_t slot;
    const int64_t result = aa_reservation_begin(publication, aa_reservation_length(publication->log, length), &slot);
    if (result > 0)
    {
        aa_message_write_parts(publication, slot, parts, length, reserved_value);
        end_message(publication);
    }
    return result;
}
