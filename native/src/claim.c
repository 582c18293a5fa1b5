#include "claim.h"

#include "reservation.h"

#include <stdlib.h>

struct aa_claim
{
    aa_publication_t *publication;
    aa_frame_t *frame;
    int32_t frame_length;
    int32_t term_id;
    _Atomic bool is_open;
};

static void begin(aa_claim_t *claim, aa_publication_t *publication, const aa_slot_t *slot, size_t length)
{
    claim->publication = aa_publication_reference(publication);
    claim->frame_length = (int32_t)length + AA_FRAME_HEADER_LENGTH;
    claim->frame = aa_slot_begin_frame(slot, claim->frame_length);
    claim->term_id = slot->term_id;
    atomic_init(&claim->is_open, true);
}

int64_t aa_publication_try_claim(aa_publication_t *publication, size_t length, aa_claim_t **claim)
{
    if (length > (size_t)publication->log->max_payload_length)
    {
        return AA_MESSAGE_TOO_LONG;
    }
    aa_claim_t *claimed = calloc(1, sizeof(*claimed));
    if (claimed == NULL)
    {
        return AA_SYSTEM;
    }

    aa_slot_t slot;
    const int64_t result = aa_reservation_begin(publication, aa_reservation_length(publication->log, length), &slot);
    if (result > 0)
    {
        begin(claimed, publication, &slot, length);
        aa_reservation_leave(publication);
        *claim = claimed;
    }
    else
    {
        free(claimed);
    }
    return result;
}

void aa_claim_release(aa_claim_t *claim)
{
    if (claim != NULL)
    {
        aa_publication_release(claim->publication);
        free(claim);
    }
}

uint8_t *aa_claim_data(aa_claim_t *claim)
{
    return (uint8_t *)(claim->frame + 1);
}

/* Whether the frame is still ours: the driver makes padding of one that was held for too long, and uses its place
 * again some terms later. */
static bool is_held(const aa_claim_t *claim)
{
    return atomic_load_explicit(&claim->frame->length, memory_order_acquire) == -claim->frame_length &&
           claim->frame->term_id == claim->term_id;
}

/* AA_OK, or AA_CLOSED. Release pairs with the acquire of whoever reads the length: subscribers and the driver. */
static int publish(aa_claim_t *claim)
{
    int32_t held_length = -claim->frame_length;
    if (!atomic_compare_exchange_strong_explicit(
            &claim->frame->length, &held_length, claim->frame_length, memory_order_release, memory_order_relaxed))
    {
        return AA_CLOSED;
    }
    /* It, or what is behind it where it is passed over, can be read. */
    aa_waiters_wake(&claim->publication->waiters);
    return AA_OK;
}

int aa_claim_commit(aa_claim_t *claim, uint8_t flags, int64_t reserved_value)
{
    if (!atomic_exchange_explicit(&claim->is_open, false, memory_order_relaxed))
    {
        return AA_ARGUMENT;
    }
    if (!is_held(claim))
    {
        return AA_CLOSED;
    }
    claim->frame->flags = flags;
    claim->frame->reserved_value = reserved_value;
    return publish(claim);
}

int aa_claim_abort(aa_claim_t *claim)
{
    if (!atomic_exchange_explicit(&claim->is_open, false, memory_order_relaxed))
    {
        return AA_ARGUMENT;
    }
    if (!is_held(claim))
    {
        return AA_CLOSED;
    }
    claim->frame->type = AA_FRAME_TYPE_PADDING;
    return publish(claim);
}
