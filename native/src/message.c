#include "message.h"

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

void aa_message_write_parts(
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

        aa_frame_t *frame = aa_slot_begin_frame(&slot, frame_length);
        frame->flags = flags;
        frame->reserved_value = reserved_value;
        copy_from(&source, (uint8_t *)(frame + 1), payload_length);
        aa_frame_commit(frame, frame_length);

        flags = 0;
        slot.offset += (int32_t)aa_align(frame_length, AA_FRAME_ALIGNMENT);
    } while (length > 0);
}
