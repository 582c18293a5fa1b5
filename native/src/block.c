#include "block.h"

#include "frame.h"

#define NO_COMMON_LENGTH -1

/* The frames in the first `limit` bytes, aligned, up to padding or what cannot be true. */
static void take_frames(const uint8_t *frames, int32_t limit, aa_block_t *block)
{
    aa_pace_t pace = {0};
    int32_t offset = 0;
    int32_t first_length = 0;
    int32_t differences = 0;
    while (offset < limit)
    {
        const aa_frame_t *frame = (const aa_frame_t *)(frames + offset);
        /* Pairs as in aa_frame_read. */
        const int32_t length = atomic_load_explicit(&frame->length, memory_order_acquire);
        if (length < AA_FRAME_HEADER_LENGTH || length > limit - offset || frame->type == AA_FRAME_TYPE_PADDING)
        {
            break;
        }
        first_length = block->frame_count == 0 ? length : first_length;
        differences |= length ^ first_length;
        offset += aa_pace(&pace, length);
        block->frame_count++;
    }
    block->length = offset;
    if (block->frame_count > 0 && differences == 0)
    {
        block->payload_length = first_length - AA_FRAME_HEADER_LENGTH;
    }
}

int aa_block_scan(aa_image_t *image, size_t limit, aa_block_t *block, aa_error_t *error)
{
    const aa_log_t *log = image->log;
    *block = (aa_block_t){.position = aa_image_position(image), .payload_length = NO_COMMON_LENGTH};
    block->term_id = aa_log_term_id(log, block->position);
    if (aa_image_is_closed(image))
    {
        return AA_OK;
    }
    int result = aa_image_begin_read(image, &block->position, error);
    if (result != AA_OK || block->position == aa_log_max_possible_position(log) || limit == 0)
    {
        return result;
    }

    const uint8_t *frames = (const uint8_t *)aa_log_frame_at(log, block->position);
    block->log_offset = frames - aa_log_terms(log);
    const int32_t room = log->info.term_length - aa_log_term_offset(log, block->position);
    take_frames(frames, (limit < (size_t)room ? (int32_t)limit : room) & -AA_FRAME_ALIGNMENT, block);
    if (block->frame_count == 0)
    {
        aa_read_frame_t frame;
        result = aa_frame_read(log, block->position, &frame, error);
        if (result == AA_OK && frame.is_padding)
        {
            block->length = (int32_t)(frame.next_position - block->position);
        }
    }
    return result == AA_CORRUPT ? AA_CORRUPT : AA_OK;
}

void aa_block_commit(aa_image_t *image, const aa_block_t *block)
{
    aa_image_advance(image, block->position + block->length);
}

int aa_block_index(const aa_image_t *image, const aa_block_t *block, int32_t *begins, int32_t *ends, aa_error_t *error)
{
    int64_t cursor = block->position;
    for (int32_t i = 0; i < block->frame_count; i++)
    {
        aa_read_frame_t frame;
        const int result = aa_frame_read(image->log, cursor, &frame, error);
        if (result == AA_NOTHING || (result == AA_OK && frame.next_position > block->position + block->length))
        {
            return aa_error_set(
                error, AA_CORRUPT, "the frame at position %lld has changed since it was read", (long long)cursor);
        }
        if (result != AA_OK)
        {
            return result;
        }
        const int32_t frame_begin = (int32_t)(cursor - block->position);
        begins[i] = frame_begin + AA_FRAME_HEADER_LENGTH;
        ends[i] = frame_begin + frame.length;
        cursor = frame.next_position;
    }
    return AA_OK;
}
