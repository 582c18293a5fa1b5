#include "block.h"

#include "frame.h"

#define NO_COMMON_LENGTH -1

static void add_frame(aa_block_t *block, const aa_read_frame_t *frame)
{
    const int32_t payload_length = frame->length - AA_FRAME_HEADER_LENGTH;
    const bool is_common = block->frame_count == 0 || block->payload_length == payload_length;
    block->payload_length = is_common ? payload_length : NO_COMMON_LENGTH;
    block->frame_count++;
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
    if (result != AA_OK || block->position == aa_log_max_possible_position(log))
    {
        return result;
    }

    block->frames = (const uint8_t *)aa_log_frame_at(log, block->position);
    const size_t room = (size_t)(log->info.term_length - aa_log_term_offset(log, block->position));
    const int64_t end = block->position + (int64_t)(limit < room ? limit : room);
    int64_t cursor = block->position;
    aa_read_frame_t frame;
    while (cursor < end && (result = aa_frame_read(log, cursor, &frame, error)) == AA_OK)
    {
        const bool is_first = cursor == block->position;
        if (frame.is_padding ? !is_first : frame.next_position > end)
        {
            break;
        }
        cursor = frame.next_position;
        if (frame.is_padding)
        {
            break;
        }
        add_frame(block, &frame);
    }
    block->length = (int32_t)(cursor - block->position);
    return result == AA_CORRUPT && block->length == 0 ? AA_CORRUPT : AA_OK;
}

void aa_block_commit(aa_image_t *image, const aa_block_t *block)
{
    aa_image_advance(image, block->position + block->length);
}

int aa_block_index(
    const aa_image_t *image, const aa_block_t *block, int32_t *offsets, int32_t *lengths, aa_error_t *error)
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
        offsets[i] = (int32_t)(cursor - block->position) + AA_FRAME_HEADER_LENGTH;
        lengths[i] = frame.length - AA_FRAME_HEADER_LENGTH;
        cursor = frame.next_position;
    }
    return AA_OK;
}
