#define _GNU_SOURCE
#include "batch.h"
#include "block.h"
#include "check.h"
#include "driver.h"
#include "fixture.h"

#include <string.h>

#define PAYLOAD (FIXTURE_MTU - AA_FRAME_HEADER_LENGTH)
#define TERM FIXTURE_TERM_LENGTH
#define NO_LIMIT SIZE_MAX

static int64_t position_of(const stream_t *stream)
{
    return atomic_load(stream->subscriber_position);
}

/* Writes a message of one frame; the position behind it. */
static int64_t write_frame(const stream_t *stream, int64_t position, int32_t payload_length)
{
    static const uint8_t zeros[PAYLOAD];
    driver_write_frame(stream->log, position, AA_FRAME_TYPE_DATA, AA_FRAME_BEGIN | AA_FRAME_END, zeros, payload_length);
    return position + aa_align(AA_FRAME_HEADER_LENGTH + payload_length, AA_FRAME_ALIGNMENT);
}

static int64_t write_padding(const stream_t *stream, int64_t position, int32_t length)
{
    driver_write_frame(
        stream->log, position, AA_FRAME_TYPE_PADDING, AA_FRAME_BEGIN | AA_FRAME_END, NULL,
        length - AA_FRAME_HEADER_LENGTH);
    return position + length;
}

static aa_block_t scan(aa_image_t *image, size_t limit)
{
    aa_block_t block;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_block_scan(image, limit, &block, &error), AA_OK);
    return block;
}

TEST(block_has_whole_frames_in_place_and_moves_the_position_when_it_is_committed)
{
    const int64_t start = TERM + 640;
    stream_t stream = open_stream(directory, NULL, start);
    aa_image_t *image = add_image(&stream);
    const int64_t second = write_frame(&stream, start, 10);
    const int64_t third = write_frame(&stream, second, 100);
    const int64_t end = write_frame(&stream, third, 0);

    const aa_block_t block = scan(image, NO_LIMIT);
    CHECK(aa_log_terms(stream.log) + block.log_offset == (const uint8_t *)aa_log_frame_at(stream.log, start));
    CHECK_EQUAL(block.position, start);
    CHECK_EQUAL(block.length, end - start);
    CHECK_EQUAL(block.term_id, aa_log_term_id(stream.log, start));
    CHECK_EQUAL(block.frame_count, 3);
    CHECK_EQUAL(block.payload_length, -1);
    int32_t begins[3], ends[3];
    CHECK_EQUAL(aa_block_index(image, &block, begins, ends, NULL), AA_OK);
    const int32_t expected_begins[] = {32, (int32_t)(second - start) + 32, (int32_t)(third - start) + 32};
    const int32_t expected_lengths[] = {10, 100, 0};
    for (int i = 0; i < 3; i++)
    {
        CHECK_EQUAL(begins[i], expected_begins[i]);
        CHECK_EQUAL(ends[i] - begins[i], expected_lengths[i]);
    }

    CHECK_EQUAL(position_of(&stream), start);
    aa_block_commit(image, &block);
    CHECK_EQUAL(position_of(&stream), end);
    CHECK_EQUAL(scan(image, NO_LIMIT).length, 0);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_knows_the_length_that_all_its_payloads_have)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    int64_t position = 0;
    for (int i = 0; i < 5; i++)
    {
        position = write_frame(&stream, position, 24);
    }
    CHECK_EQUAL(scan(image, NO_LIMIT).payload_length, 24);
    write_frame(&stream, position, 25);
    const aa_block_t mixed = scan(image, NO_LIMIT);
    CHECK_EQUAL(mixed.payload_length, -1);
    CHECK_EQUAL(mixed.frame_count, 6);
    CHECK_EQUAL(scan(image, 5 * 64).payload_length, 24);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_keeps_to_its_limit_in_whole_frames)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    for (int64_t position = 0; position < 4 * 128;)
    {
        position = write_frame(&stream, position, 90);
    }
    const struct
    {
        size_t limit;
        int32_t length;
    } cases[] = {{0, 0}, {1, 0}, {127, 0}, {128, 128}, {255, 128}, {256, 256}, {512, 512}, {SIZE_MAX, 512}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        CHECK_EQUAL(scan(image, cases[i].limit).length, cases[i].length);
    }
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_ends_before_padding_and_padding_is_a_block_of_its_own)
{
    const int64_t start = TERM - 256;
    stream_t stream = open_stream(directory, NULL, start);
    aa_image_t *image = add_image(&stream);
    const int64_t padding = write_frame(&stream, start, 32);
    CHECK_EQUAL(write_padding(&stream, padding, 192), TERM);
    write_frame(&stream, TERM, 7);

    const aa_block_t before = scan(image, NO_LIMIT);
    CHECK_EQUAL(before.length, 64);
    aa_block_commit(image, &before);
    /* The limit is for frames with something in them. */
    const aa_block_t only_padding = scan(image, 32);
    CHECK_EQUAL(only_padding.length, 192);
    CHECK_EQUAL(only_padding.frame_count, 0);
    CHECK_EQUAL(only_padding.payload_length, -1);
    aa_block_commit(image, &only_padding);
    CHECK_EQUAL(position_of(&stream), TERM);
    const aa_block_t behind = scan(image, NO_LIMIT);
    CHECK_EQUAL(behind.length, 64);
    CHECK_EQUAL(behind.term_id, aa_log_term_id(stream.log, TERM));
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_ends_with_its_term)
{
    const int64_t start = TERM - 128;
    stream_t stream = open_stream(directory, NULL, start);
    aa_image_t *image = add_image(&stream);
    for (int64_t position = start; position < TERM + 128;)
    {
        position = write_frame(&stream, position, 32);
    }
    const aa_block_t block = scan(image, NO_LIMIT);
    CHECK_EQUAL(block.length, 128);
    aa_block_commit(image, &block);
    CHECK_EQUAL(scan(image, NO_LIMIT).length, 128);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_after_a_scan_begins_at_the_position_and_the_scan_can_no_longer_be_committed)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    aa_batch_t *batch = aa_batch_create();
    write_frame(&stream, write_frame(&stream, 0, 1), 2);
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 2);
    CHECK_EQUAL(scan(image, NO_LIMIT).length, 128);
    aa_batch_commit(batch, 2);
    CHECK_EQUAL(position_of(&stream), 0);
    aa_batch_release(batch);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(image_is_within_a_message_while_its_beginning_is_in_the_builder)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    aa_batch_t *batch = aa_batch_create();
    CHECK(!aa_image_is_within_message(image));
    driver_write_frame(stream.log, 0, AA_FRAME_TYPE_DATA, AA_FRAME_BEGIN, "begin", 5);
    CHECK(!aa_image_is_within_message(image));
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK(aa_image_is_within_message(image));

    driver_write_frame(stream.log, 64, AA_FRAME_TYPE_DATA, AA_FRAME_END, "end", 3);
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 1);
    CHECK(aa_image_is_within_message(image));
    aa_batch_commit(batch, 1);
    CHECK(!aa_image_is_within_message(image));
    aa_batch_release(batch);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_of_a_closed_image_is_empty_and_a_late_commit_does_nothing)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    write_frame(&stream, 0, 1);
    const aa_block_t block = scan(image, NO_LIMIT);
    aa_image_close(image);
    aa_block_commit(image, &block);
    CHECK_EQUAL(position_of(&stream), 0);
    CHECK_EQUAL(scan(image, NO_LIMIT).length, 0);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_at_the_end_of_all_positions_is_empty_and_one_outside_is_corrupt)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    *stream.subscriber_position = (int64_t)TERM << 31;
    CHECK_EQUAL(scan(image, NO_LIMIT).length, 0);
    const int64_t nonsense[] = {-32, 31, ((int64_t)TERM << 31) + 32, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        *stream.subscriber_position = nonsense[i];
        aa_block_t block;
        CHECK_EQUAL(aa_block_scan(image, NO_LIMIT, &block, NULL), AA_CORRUPT);
        CHECK_EQUAL(block.length, 0);
    }
    aa_image_release(image);
    close_stream(&stream);
}

TEST(block_ends_before_a_frame_that_cannot_be_true_and_cannot_begin_with_it)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    write_frame(&stream, 0, 1);
    aa_log_frame_at(stream.log, 64)->length = 5;
    const aa_block_t block = scan(image, NO_LIMIT);
    CHECK_EQUAL(block.length, 64);
    aa_block_commit(image, &block);
    aa_block_t corrupt;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_block_scan(image, NO_LIMIT, &corrupt, &error), AA_CORRUPT);
    CHECK(strstr(error.text, "position 64") != NULL);
    CHECK_EQUAL(position_of(&stream), 64);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(index_of_a_block_that_was_overwritten_is_corrupt)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    write_frame(&stream, write_frame(&stream, 0, 1), 1);
    const aa_block_t block = scan(image, NO_LIMIT);
    const int32_t overwritten[] = {0, -64, 1, 128, TERM, INT32_MAX};
    for (size_t i = 0; i < sizeof(overwritten) / sizeof(overwritten[0]); i++)
    {
        aa_log_frame_at(stream.log, 64)->length = overwritten[i];
        int32_t begins[2], ends[2];
        CHECK_EQUAL(aa_block_index(image, &block, begins, ends, NULL), AA_CORRUPT);
    }
    aa_image_release(image);
    close_stream(&stream);
}

TEST(blocks_of_a_log_full_of_nonsense_stay_within_their_term)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = add_image(&stream);
    uint64_t state = 57;
    for (int round = 0; round < 300; round++)
    {
        for (int64_t position = 0; position < AA_LOG_PARTITIONS * TERM; position += 32)
        {
            aa_frame_t *frame = aa_log_frame_at(stream.log, position);
            frame->length = (int32_t)(next_random(&state) % (round % 2 == 0 ? 256 : 3000));
            frame->type = (int16_t)(next_random(&state) % 20 == 0 ? AA_FRAME_TYPE_PADDING : AA_FRAME_TYPE_DATA);
        }
        atomic_store(stream.subscriber_position, (int64_t)(next_random(&state) % (1 << 20)) * 32);
        for (int i = 0; i < 50; i++)
        {
            aa_block_t block;
            const size_t limit = next_random(&state) % (2 * TERM);
            if (aa_block_scan(image, limit, &block, NULL) != AA_OK)
            {
                break;
            }
            CHECK(aa_log_term_offset(stream.log, block.position) + block.length <= TERM);
            static int32_t begins[TERM / 32], ends[TERM / 32];
            CHECK_EQUAL(aa_block_index(image, &block, begins, ends, NULL), AA_OK);
            aa_block_commit(image, &block);
        }
    }
    aa_image_release(image);
    close_stream(&stream);
}
