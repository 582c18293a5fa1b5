/* Messages in a log: the frames they become, and how these are written. */
#ifndef AA_MESSAGE_H
#define AA_MESSAGE_H

#include "reservation.h"

#include <string.h>

static inline bool aa_message_is_too_long(const aa_log_t *log, size_t length)
{
    return length > (size_t)log->max_message_length && length > (size_t)log->max_payload_length;
}

/* A message of several parts, or one that takes several frames. */
void aa_message_write_parts(
    const aa_publication_t *publication, aa_slot_t slot, const aa_slice_t *parts, size_t length,
    int64_t reserved_value);

/* A short copy costs less than the call of memcpy; the two halves of each overlap. */
static inline void aa_message_copy(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 128)
    {
        memcpy(to, from, length);
    }
    else if (length >= 64)
    {
        memcpy(to, from, 64);
        memcpy(to + length - 64, from + length - 64, 64);
    }
    else if (length >= 32)
    {
        memcpy(to, from, 32);
        memcpy(to + length - 32, from + length - 32, 32);
    }
    else if (length >= 16)
    {
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    }
    else if (length >= 8)
    {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
    }
    else if (length > 0)
    {
        memcpy(to, from, length);
    }
}

/* A message that is one frame. */
static inline void aa_message_write_whole(aa_slot_t slot, const uint8_t *data, size_t length, int64_t reserved_value)
{
    const int32_t frame_length = (int32_t)length + AA_FRAME_HEADER_LENGTH;
    aa_frame_t *frame = aa_slot_begin_frame(&slot, frame_length);
    frame->reserved_value = reserved_value;
    aa_message_copy((uint8_t *)(frame + 1), data, length);
    aa_frame_commit(frame, frame_length);
}

static inline void aa_message_write(
    const aa_publication_t *publication, aa_slot_t slot, const uint8_t *data, size_t length, int64_t reserved_value)
{
    if (length <= (size_t)publication->log->max_payload_length)
    {
        aa_message_write_whole(slot, data, length, reserved_value);
    }
    else
    {
        aa_message_write_parts(
            publication, slot, &(aa_slice_t){.data = data, .length = length}, length, reserved_value);
    }
}

#endif
