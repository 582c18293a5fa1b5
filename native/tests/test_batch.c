#define _GNU_SOURCE
#include "batch.h"
#include "check.h"
#include "counters.h"
#include "driver.h"
#include "fixture.h"

#include <string.h>

#define PAYLOAD (FIXTURE_MTU - AA_FRAME_HEADER_LENGTH)
#define TERM FIXTURE_TERM_LENGTH
#define NO_LIMIT SIZE_MAX

/* A stream with a publication, an image and a batch. */
typedef struct
{
    stream_t stream;
    aa_publication_t *publication;
    aa_image_t *image;
    aa_batch_t *batch;
    aa_error_t error;
} reading_t;

static reading_t open_reading(const char *directory, int64_t position)
{
    reading_t reading = {.stream = open_stream(directory, NULL, position)};
    *reading.stream.limit = position + TERM;
    reading.publication = add_publication(&reading.stream, false);
    reading.image = add_image(&reading.stream);
    reading.batch = aa_batch_create();
    CHECK(reading.batch != NULL);
    return reading;
}

static void close_reading(reading_t *reading)
{
    aa_batch_release(reading->batch);
    aa_image_release(reading->image);
    aa_publication_release(reading->publication);
    close_stream(&reading->stream);
}

static int64_t publish(reading_t *reading, const void *text, size_t length)
{
    int64_t position;
    while ((position = aa_publication_offer(reading->publication, text, length, 0)) == AA_ADMIN_ACTION)
    {
    }
    CHECK(position > 0);
    return position;
}

static size_t scan(reading_t *reading)
{
    CHECK_EQUAL(
        aa_batch_scan(reading->batch, &reading->image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &reading->error), AA_OK);
    return reading->batch->count;
}

static int64_t position_of(const reading_t *reading)
{
    return atomic_load(reading->stream.subscriber_position);
}

static void check_message(const aa_batch_t *batch, size_t row, const void *content, size_t length)
{
    CHECK(row < batch->count);
    CHECK_EQUAL(batch->messages->offsets[row + 1] - batch->messages->offsets[row], length);
    CHECK_EQUAL(batch->messages->rows[row].frame_length, length + AA_FRAME_HEADER_LENGTH);
    CHECK_EQUAL(memcmp(batch->messages->data + batch->messages->offsets[row], content, length), 0);
}

static uint8_t pattern[TERM];

static void fill_pattern(void)
{
    uint64_t state = 17;
    for (size_t i = 0; i < sizeof(pattern); i++)
    {
        pattern[i] = (uint8_t)next_random(&state);
    }
}

/* --- columns --------------------------------------------------------------------------------------------- */

TEST(batch_has_messages_in_columns)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(reading.batch->messages->offsets[0], 0);
    CHECK_EQUAL(aa_publication_offer(reading.publication, (const uint8_t *)"one", 3, 11), 64);
    CHECK_EQUAL(aa_publication_offer(reading.publication, NULL, 0, 12), 96);
    const int64_t end = aa_publication_offer(reading.publication, pattern, 2 * PAYLOAD + 1, 13);

    CHECK_EQUAL(scan(&reading), 3);
    const aa_batch_t *batch = reading.batch;
    CHECK_EQUAL(batch->fragments, 5);
    CHECK_EQUAL(batch->messages->nbytes, 3 + 2 * PAYLOAD + 1);
    check_message(batch, 0, "one", 3);
    check_message(batch, 1, "", 0);
    check_message(batch, 2, pattern, 2 * PAYLOAD + 1);
    const int64_t positions[] = {64, 96, end};
    const int32_t offsets[] = {0, 64, 96};
    for (size_t row = 0; row < 3; row++)
    {
        CHECK_EQUAL(batch->messages->rows[row].position, positions[row]);
        CHECK_EQUAL(batch->messages->rows[row].reserved_value, 11 + row);
        CHECK_EQUAL(batch->messages->rows[row].session_id, FIXTURE_SESSION_ID);
        CHECK_EQUAL(batch->messages->rows[row].stream_id, FIXTURE_STREAM_ID);
        CHECK_EQUAL(batch->messages->rows[row].initial_term_id, FIXTURE_INITIAL_TERM_ID);
        CHECK_EQUAL(batch->messages->rows[row].term_id, FIXTURE_INITIAL_TERM_ID);
        CHECK_EQUAL(batch->messages->rows[row].term_offset, offsets[row]);
        CHECK_EQUAL(batch->messages->rows[row].type, AA_FRAME_TYPE_DATA);
        CHECK_EQUAL(batch->messages->rows[row].flags, AA_FRAME_BEGIN | AA_FRAME_END);
        CHECK_EQUAL(batch->messages->rows[row].version, 0);
    }
    close_reading(&reading);
}

TEST(column_is_gathered_from_the_rows)
{
    reading_t reading = open_reading(directory, 0);
    for (int64_t i = 0; i < 37; i++)
    {
        CHECK(aa_publication_offer(reading.publication, (const uint8_t *)"payload", (size_t)i % 8, -i) > 0);
    }
    CHECK_EQUAL(scan(&reading), 37);
    const aa_received_t *messages = reading.batch->messages;
    int64_t positions[37];
    int64_t reserved_values[37];
    int32_t session_ids[37];
    aa_received_copy_column(messages, offsetof(aa_row_t, position), 8, (uint8_t *)positions);
    aa_received_copy_column(messages, offsetof(aa_row_t, reserved_value), 8, (uint8_t *)reserved_values);
    aa_received_copy_column(messages, offsetof(aa_row_t, session_id), 4, (uint8_t *)session_ids);
    for (int64_t i = 0; i < 37; i++)
    {
        CHECK_EQUAL(positions[i], messages->rows[i].position);
        CHECK_EQUAL(reserved_values[i], -i);
        CHECK_EQUAL(session_ids[i], FIXTURE_SESSION_ID);
    }
    close_reading(&reading);
}

TEST(batch_knows_the_length_that_all_its_payloads_have)
{
    fill_pattern();
    const struct
    {
        size_t lengths[3];
        int32_t common;
    } cases[] = {
        {{5, 5, 5}, 5},
        {{0, 0, 0}, 0},
        {{5, 5, 6}, -1},
        {{6, 5, 5}, -1},
        {{5, 6, 5}, -1},
        {{2 * PAYLOAD, 2 * PAYLOAD, 2 * PAYLOAD}, 2 * PAYLOAD},
        {{PAYLOAD, PAYLOAD + 1, PAYLOAD}, -1},
    };
    reading_t reading = open_reading(directory, 0);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(reading.batch->messages->payload_length, -1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        for (size_t k = 0; k < 3; k++)
        {
            publish(&reading, pattern, cases[i].lengths[k]);
        }
        CHECK_EQUAL(scan(&reading), 3);
        CHECK_EQUAL(reading.batch->messages->payload_length, cases[i].common);
        aa_batch_commit(reading.batch, 3);
    }
    close_reading(&reading);
}

TEST(payload_of_any_length_is_copied_and_nothing_else)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    int64_t cleaned = 0;
    for (size_t length = 0; length <= PAYLOAD; length++)
    {
        publish(&reading, pattern + length, length);
        publish(&reading, pattern, 1);
        CHECK_EQUAL(scan(&reading), 2);
        check_message(reading.batch, 0, pattern + length, length);
        check_message(reading.batch, 1, pattern, 1);
        aa_batch_commit(reading.batch, 2);
        driver_clean(reading.stream.log, cleaned, position_of(&reading));
        cleaned = position_of(&reading);
        *reading.stream.limit = cleaned + TERM / 2;
    }
    close_reading(&reading);
}

/* --- memory ---------------------------------------------------------------------------------------------- */

TEST(what_was_taken_stays_while_later_scans_fill_other_memory)
{
    reading_t reading = open_reading(directory, 0);
    aa_received_t *taken[10];
    for (int i = 0; i < 10; i++)
    {
        for (int k = 0; k < 16; k++)
        {
            publish(&reading, &"0123456789"[i], 1);
        }
        CHECK_EQUAL(scan(&reading), 16);
        taken[i] = aa_batch_take(reading.batch);
        aa_batch_commit(reading.batch, 16);
    }
    aa_batch_release(reading.batch);
    for (int i = 0; i < 10; i++)
    {
        CHECK_EQUAL(taken[i]->count, 16);
        for (int k = 0; k < 16; k++)
        {
            CHECK_EQUAL(taken[i]->data[k], '0' + i);
            CHECK_EQUAL(taken[i]->rows[k].position, 64 * (16 * i + k + 1));
        }
        aa_received_release(taken[i]);
    }
    reading.batch = aa_batch_create();
    close_reading(&reading);
}

TEST(memory_that_was_let_go_of_is_filled_again)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    const aa_received_t *seen[8];
    aa_received_t *held = NULL;
    for (int i = 0; i < 8; i++)
    {
        for (int k = 0; k < 20; k++)
        {
            publish(&reading, pattern, 60);
        }
        CHECK_EQUAL(scan(&reading), 20);
        aa_received_t *taken = aa_batch_take(reading.batch);
        CHECK(taken == reading.batch->messages);
        aa_received_release(held);
        seen[i] = held = taken;
        aa_batch_commit(reading.batch, 20);
        *reading.stream.limit = position_of(&reading) + TERM / 2;
    }
    for (int i = 2; i < 8; i++)
    {
        CHECK(seen[i] == seen[i - 2]);
        CHECK(seen[i] != seen[i - 1]);
    }
    aa_received_release(held);
    close_reading(&reading);
}

TEST(few_messages_in_much_memory_are_taken_as_a_copy_that_fits)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    for (int i = 0; i < 100; i++)
    {
        publish(&reading, pattern, 100);
    }
    CHECK_EQUAL(scan(&reading), 100);
    aa_batch_commit(reading.batch, 100);
    publish(&reading, "few", 3);
    CHECK_EQUAL(scan(&reading), 1);
    aa_received_t *taken = aa_batch_take(reading.batch);
    CHECK(taken != reading.batch->messages);
    CHECK_EQUAL(taken->count, 1);
    CHECK_EQUAL(taken->row_capacity, 1);
    CHECK_EQUAL(taken->data_capacity, 3);
    CHECK_EQUAL(taken->payload_length, 3);
    CHECK_EQUAL(taken->offsets[1], 3);
    CHECK_EQUAL(memcmp(taken->data, "few", 3), 0);
    CHECK_EQUAL(taken->rows[0].frame_length, 35);
    aa_received_release(taken);
    close_reading(&reading);
}

TEST(scan_after_one_whose_messages_are_all_held_is_empty_again)
{
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "message", 7);
    CHECK_EQUAL(scan(&reading), 1);
    aa_received_t *taken = aa_batch_take(reading.batch);
    aa_batch_commit(reading.batch, 1);
    aa_batch_clear(reading.batch);
    CHECK_EQUAL(reading.batch->count, 0);
    CHECK_EQUAL(taken->count, 1);
    CHECK_EQUAL(scan(&reading), 0);
    aa_received_t *empty = aa_batch_take(reading.batch);
    CHECK_EQUAL(empty->count, 0);
    CHECK_EQUAL(empty->nbytes, 0);
    CHECK_EQUAL(empty->offsets[0], 0);
    aa_received_release(empty);
    CHECK_EQUAL(taken->count, 1);
    aa_received_release(taken);
    close_reading(&reading);
}

TEST(batch_grows_with_what_it_holds)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    *reading.stream.limit = TERM - 1;
    int32_t published = 0;
    while (aa_publication_offer(reading.publication, pattern + published, 1, 0) > 0)
    {
        published++;
    }
    CHECK_EQUAL(published, TERM / 64);
    CHECK_EQUAL(scan(&reading), published);
    for (int32_t row = 0; row < published; row++)
    {
        check_message(reading.batch, (size_t)row, pattern + row, 1);
        CHECK_EQUAL(reading.batch->messages->rows[row].position, 64 * (row + 1));
    }
    close_reading(&reading);
}

/* --- scans and commits ----------------------------------------------------------------------------------- */

TEST(scan_moves_no_position_and_commit_moves_past_what_was_given)
{
    reading_t reading = open_reading(directory, 0);
    for (int i = 0; i < 5; i++)
    {
        publish(&reading, &"abcde"[i], 1);
    }
    CHECK_EQUAL(scan(&reading), 5);
    CHECK_EQUAL(position_of(&reading), 0);
    CHECK_EQUAL(scan(&reading), 5);
    check_message(reading.batch, 0, "a", 1);

    aa_batch_commit(reading.batch, 2);
    CHECK_EQUAL(position_of(&reading), 128);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), 128);
    aa_batch_commit(reading.batch, 0);
    CHECK_EQUAL(position_of(&reading), 128);
    aa_batch_commit(reading.batch, 3);
    CHECK_EQUAL(position_of(&reading), 192);

    CHECK_EQUAL(scan(&reading), 2);
    check_message(reading.batch, 0, "d", 1);
    aa_batch_commit(reading.batch, 99);
    CHECK_EQUAL(position_of(&reading), 320);
    CHECK_EQUAL(scan(&reading), 0);
    close_reading(&reading);
}

TEST(scan_after_clear_or_in_another_batch_finds_uncommitted_messages_again)
{
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "message", 7);
    CHECK_EQUAL(scan(&reading), 1);
    aa_batch_clear(reading.batch);
    CHECK_EQUAL(reading.batch->count, 0);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), 0);
    CHECK_EQUAL(scan(&reading), 1);

    aa_batch_t *other = aa_batch_create();
    CHECK_EQUAL(aa_batch_scan(other, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(other->count, 1);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), 0);
    aa_batch_commit(other, 1);
    CHECK_EQUAL(position_of(&reading), 64);
    aa_batch_release(other);
    close_reading(&reading);
}

TEST(scan_stops_at_each_limit)
{
    reading_t reading = open_reading(directory, 0);
    for (int i = 0; i < 10; i++)
    {
        publish(&reading, "0123456789", 10);
    }
    const struct
    {
        size_t fragments;
        size_t messages;
        size_t bytes;
        size_t found;
    } cases[] = {
        {3, NO_LIMIT, NO_LIMIT, 3},  {NO_LIMIT, 4, NO_LIMIT, 4}, {NO_LIMIT, NO_LIMIT, 50, 5},
        {NO_LIMIT, NO_LIMIT, 59, 5}, {NO_LIMIT, NO_LIMIT, 1, 1}, {NO_LIMIT, NO_LIMIT, 0, 1},
        {0, NO_LIMIT, NO_LIMIT, 0},  {NO_LIMIT, 0, NO_LIMIT, 0}, {NO_LIMIT, NO_LIMIT, NO_LIMIT, 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        CHECK_EQUAL(
            aa_batch_scan(
                reading.batch, &reading.image, 1, 0, cases[i].fragments, cases[i].messages, cases[i].bytes, NULL),
            AA_OK);
        CHECK_EQUAL(reading.batch->count, cases[i].found);
        CHECK_EQUAL(reading.batch->fragments, cases[i].found);
    }
    close_reading(&reading);
}

TEST(scan_goes_through_padding_into_the_next_term)
{
    reading_t reading = open_reading(directory, TERM - 96);
    publish(&reading, "before", 6);
    publish(&reading, "after", 5);
    CHECK_EQUAL(scan(&reading), 2);
    check_message(reading.batch, 1, "after", 5);
    CHECK_EQUAL(reading.batch->messages->rows[1].term_offset, 0);
    CHECK_EQUAL(reading.batch->messages->rows[1].term_id, INT32_MAX);
    CHECK_EQUAL(reading.batch->messages->rows[1].position, TERM + 64);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), TERM - 32);
    close_reading(&reading);
}

TEST(commit_of_all_goes_past_padding_that_follows)
{
    reading_t reading = open_reading(directory, TERM - 96);
    publish(&reading, "last", 4);
    CHECK_EQUAL(aa_publication_offer(reading.publication, pattern, 100, 0), AA_ADMIN_ACTION);
    CHECK_EQUAL(scan(&reading), 1);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), TERM);
    close_reading(&reading);
}

TEST(padding_with_nothing_uncommitted_before_it_is_passed_at_once)
{
    reading_t reading = open_reading(directory, TERM - 32);
    CHECK_EQUAL(aa_publication_offer(reading.publication, pattern, 100, 0), AA_ADMIN_ACTION);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(position_of(&reading), TERM);
    close_reading(&reading);

    reading = open_reading(directory, TERM - 32);
    publish(&reading, "after", 5);
    CHECK_EQUAL(scan(&reading), 1);
    CHECK_EQUAL(position_of(&reading), TERM);
    close_reading(&reading);
}

TEST(frame_of_a_dead_publisher_that_was_unblocked_is_passed_over)
{
    reading_t reading = open_reading(directory, 0);
    driver_write_frame(reading.stream.log, 0, AA_FRAME_TYPE_PADDING, 0xC0, NULL, 96);
    driver_write_frame(reading.stream.log, 128, AA_FRAME_TYPE_DATA, 0xC0, "alive", 5);
    CHECK_EQUAL(scan(&reading), 1);
    check_message(reading.batch, 0, "alive", 5);
    close_reading(&reading);
}

TEST(frame_that_is_being_written_ends_the_scan)
{
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "done", 4);
    publish(&reading, "behind", 6);
    aa_frame_t *frame = aa_log_frame_at(reading.stream.log, 64);
    const int32_t length = frame->length;
    frame->length = -length;
    CHECK_EQUAL(scan(&reading), 1);
    CHECK(aa_image_has_frame(reading.image));
    aa_batch_commit(reading.batch, 1);
    CHECK(!aa_image_has_frame(reading.image));
    CHECK_EQUAL(scan(&reading), 0);
    frame->length = length;
    CHECK(aa_image_has_frame(reading.image));
    CHECK_EQUAL(scan(&reading), 1);
    check_message(reading.batch, 0, "behind", 6);
    close_reading(&reading);
}

/* --- the builder ----------------------------------------------------------------------------------------- */

/* Writes the i-th fragment of the pattern at its place. */
static void write_fragment(reading_t *reading, int64_t begin, int32_t i, uint8_t flags)
{
    driver_write_frame(
        reading->stream.log, begin + (int64_t)i * FIXTURE_MTU, AA_FRAME_TYPE_DATA, flags, pattern + (size_t)i * PAYLOAD,
        PAYLOAD);
}

TEST(fragments_of_an_incomplete_message_are_kept_and_the_position_moves_on)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    write_fragment(&reading, 0, 0, AA_FRAME_BEGIN);
    write_fragment(&reading, 0, 1, 0);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(reading.batch->fragments, 2);
    CHECK_EQUAL(position_of(&reading), 2 * FIXTURE_MTU);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(reading.batch->fragments, 0);

    write_fragment(&reading, 0, 2, AA_FRAME_END);
    CHECK_EQUAL(scan(&reading), 1);
    CHECK_EQUAL(reading.batch->fragments, 1);
    check_message(reading.batch, 0, pattern, 3 * PAYLOAD);
    CHECK_EQUAL(reading.batch->messages->rows[0].term_offset, 0);
    CHECK_EQUAL(reading.batch->messages->rows[0].flags, AA_FRAME_BEGIN | AA_FRAME_END);
    CHECK_EQUAL(reading.batch->messages->rows[0].reserved_value, 2 * FIXTURE_MTU);
    CHECK_EQUAL(position_of(&reading), 2 * FIXTURE_MTU);
    close_reading(&reading);
}

TEST(message_completed_from_the_builder_is_found_again_until_it_is_committed)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    write_fragment(&reading, 0, 0, AA_FRAME_BEGIN);
    CHECK_EQUAL(scan(&reading), 0);
    write_fragment(&reading, 0, 1, 0);
    write_fragment(&reading, 0, 2, AA_FRAME_END);
    for (int i = 0; i < 3; i++)
    {
        CHECK_EQUAL(scan(&reading), 1);
        check_message(reading.batch, 0, pattern, 3 * PAYLOAD);
        aa_batch_clear(reading.batch);
    }
    CHECK_EQUAL(scan(&reading), 1);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), 3 * FIXTURE_MTU);
    CHECK_EQUAL(scan(&reading), 0);

    write_fragment(&reading, 0, 3, AA_FRAME_BEGIN | AA_FRAME_END);
    CHECK_EQUAL(scan(&reading), 1);
    check_message(reading.batch, 0, pattern + 3 * PAYLOAD, PAYLOAD);
    close_reading(&reading);
}

TEST(incomplete_message_behind_an_uncommitted_one_stays_in_the_log)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    write_fragment(&reading, 0, 0, AA_FRAME_BEGIN | AA_FRAME_END);
    write_fragment(&reading, 0, 1, AA_FRAME_BEGIN);
    write_fragment(&reading, 0, 2, 0);
    CHECK_EQUAL(scan(&reading), 1);
    CHECK_EQUAL(reading.batch->fragments, 1);
    CHECK_EQUAL(position_of(&reading), 0);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), FIXTURE_MTU);

    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(position_of(&reading), 3 * FIXTURE_MTU);
    write_fragment(&reading, 0, 3, AA_FRAME_END);
    CHECK_EQUAL(scan(&reading), 1);
    check_message(reading.batch, 0, pattern + PAYLOAD, 3 * PAYLOAD);
    CHECK_EQUAL(reading.batch->messages->rows[0].term_offset, FIXTURE_MTU);
    close_reading(&reading);
}

TEST(fragment_limit_in_mid_message_keeps_what_was_read)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    publish(&reading, pattern, 5 * PAYLOAD);
    for (int i = 0; i < 4; i++)
    {
        CHECK_EQUAL(aa_batch_scan(reading.batch, &reading.image, 1, 0, 1, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
        CHECK_EQUAL(reading.batch->count, 0);
        CHECK_EQUAL(reading.batch->fragments, 1);
        CHECK_EQUAL(position_of(&reading), (i + 1) * FIXTURE_MTU);
    }
    CHECK_EQUAL(aa_batch_scan(reading.batch, &reading.image, 1, 0, 1, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(reading.batch->count, 1);
    check_message(reading.batch, 0, pattern, 5 * PAYLOAD);
    close_reading(&reading);
}

static size_t scan_to(reading_t *reading, int64_t limit_position)
{
    CHECK_EQUAL(
        aa_batch_scan_image(reading->batch, reading->image, limit_position, NO_LIMIT, NO_LIMIT, &reading->error),
        AA_OK);
    return reading->batch->count;
}

TEST(bounded_scan_reads_what_begins_before_its_limit)
{
    reading_t reading = open_reading(directory, 0);
    for (int i = 0; i < 4; i++)
    {
        publish(&reading, "message", 7);
    }
    const struct
    {
        int64_t limit;
        size_t count;
    } cases[] = {{INT64_MIN, 0}, {0, 0}, {1, 1}, {64, 1}, {65, 2}, {256, 4}, {INT64_MAX, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        CHECK_EQUAL(scan_to(&reading, cases[i].limit), cases[i].count);
    }
    CHECK_EQUAL(scan_to(&reading, 128), 2);
    aa_batch_commit(reading.batch, 2);
    CHECK_EQUAL(position_of(&reading), 128);
    CHECK_EQUAL(scan_to(&reading, 128), 0);
    aa_image_close(reading.image);
    CHECK_EQUAL(scan_to(&reading, INT64_MAX), 0);
    close_reading(&reading);
}

TEST(message_that_goes_over_the_limit_of_a_bounded_scan_is_kept_up_to_it)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    publish(&reading, pattern, 4 * PAYLOAD);
    CHECK_EQUAL(scan_to(&reading, FIXTURE_MTU + 1), 0);
    CHECK_EQUAL(reading.batch->fragments, 2);
    CHECK_EQUAL(position_of(&reading), 2 * FIXTURE_MTU);
    CHECK_EQUAL(scan_to(&reading, 4 * FIXTURE_MTU), 1);
    check_message(reading.batch, 0, pattern, 4 * PAYLOAD);
    close_reading(&reading);
}

TEST(batch_knows_how_many_fragments_were_read_up_to_each_message)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    const size_t fragments[] = {1, 3, 1, 2};
    for (size_t i = 0; i < 4; i++)
    {
        publish(&reading, pattern, fragments[i] * PAYLOAD);
    }
    publish(&reading, pattern, 4 * PAYLOAD);
    CHECK_EQUAL(aa_batch_scan_image(reading.batch, reading.image, INT64_MAX, 9, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(reading.batch->count, 4);
    size_t read = 0;
    for (size_t i = 0; i < 4; i++)
    {
        read += fragments[i];
        CHECK_EQUAL(reading.batch->messages->rows[i].fragment_end, read);
    }
    CHECK_EQUAL(reading.batch->fragments, read);
    close_reading(&reading);
}

TEST(message_that_would_go_over_the_byte_limit_waits_for_the_next_scan)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "small", 5);
    publish(&reading, pattern, 3 * PAYLOAD);
    const size_t max_bytes = 2 * PAYLOAD;
    CHECK_EQUAL(aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, max_bytes, NULL), AA_OK);
    CHECK_EQUAL(reading.batch->count, 1);
    CHECK_EQUAL(reading.batch->fragments, 1);
    aa_batch_commit(reading.batch, 1);
    CHECK_EQUAL(position_of(&reading), 64);
    CHECK_EQUAL(aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, max_bytes, NULL), AA_OK);
    CHECK_EQUAL(reading.batch->count, 1);
    check_message(reading.batch, 0, pattern, 3 * PAYLOAD);
    close_reading(&reading);
}

TEST(fragments_that_lead_nowhere_are_dropped)
{
    fill_pattern();
    const struct
    {
        const char *what;
        int scan_after; /* how many frames are there at the first scan */
        uint8_t flags[5];
        bool is_padding[5];
        int32_t first; /* fragments of the one message that comes out */
        int32_t count;
    } cases[] = {
        {"padding in the middle", 5, {0x80, 0, 0x40, 0xC0, 0}, {0, 1, 0, 0, 0}, 3, 1},
        {"padding behind the builder", 1, {0x80, 0, 0x40, 0xC0, 0}, {0, 1, 0, 0, 0}, 3, 1},
        {"a new beginning", 5, {0x80, 0, 0x80, 0x40, 0}, {0}, 2, 2},
        {"a new beginning behind the builder", 2, {0x80, 0, 0x80, 0x40, 0}, {0}, 2, 2},
        {"a whole message behind the builder", 2, {0x80, 0, 0xC0, 0x40, 0}, {0}, 2, 1},
        {"an end without a beginning", 5, {0x40, 0xC0, 0, 0, 0}, {0}, 1, 1},
        {"a middle without a beginning", 1, {0, 0, 0x40, 0x80, 0x40}, {0}, 3, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        reading_t reading = open_reading(directory, 0);
        size_t found = 0;
        for (int frame = 0; frame < 5; frame++)
        {
            if (frame == cases[i].scan_after)
            {
                CHECK_EQUAL(scan(&reading), 0);
            }
            if (cases[i].is_padding[frame])
            {
                driver_write_frame(reading.stream.log, frame * FIXTURE_MTU, AA_FRAME_TYPE_PADDING, 0xC0, NULL, PAYLOAD);
            }
            else
            {
                write_fragment(&reading, 0, frame, cases[i].flags[frame]);
            }
        }
        found = scan(&reading);
        if (found != 1)
        {
            check_failed(__FILE__, __LINE__, "%s: %zu messages", cases[i].what, found);
        }
        const size_t length = (size_t)cases[i].count * PAYLOAD;
        check_message(reading.batch, 0, pattern + (size_t)cases[i].first * PAYLOAD, length);
        CHECK_EQUAL(position_of(&reading), cases[i].first * FIXTURE_MTU);
        aa_batch_commit(reading.batch, 1);
        CHECK_EQUAL(position_of(&reading), 5 * FIXTURE_MTU);
        CHECK_EQUAL(scan(&reading), 0);
        close_reading(&reading);
    }
}

TEST(builder_is_dropped_where_the_position_was_moved_by_somebody_else)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    write_fragment(&reading, 0, 0, AA_FRAME_BEGIN);
    CHECK_EQUAL(scan(&reading), 0);
    write_fragment(&reading, 0, 1, 0);
    write_fragment(&reading, 0, 2, AA_FRAME_END);
    atomic_store(reading.stream.subscriber_position, 2 * FIXTURE_MTU);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(position_of(&reading), 3 * FIXTURE_MTU);
    close_reading(&reading);
}

TEST(message_that_never_ends_is_corrupt)
{
    fill_pattern();
    reading_t reading = open_reading(directory, 0);
    write_fragment(&reading, 0, 0, AA_FRAME_BEGIN);
    for (int32_t i = 1; i < 40; i++)
    {
        write_fragment(&reading, 0, i, 0);
    }
    CHECK_EQUAL(
        aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &reading.error), AA_CORRUPT);
    CHECK_EQUAL(reading.error.code, AA_CORRUPT);
    CHECK(reading.image->builder.length <= (size_t)reading.stream.log->max_message_length);
    CHECK_EQUAL(
        aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &reading.error), AA_CORRUPT);
    close_reading(&reading);
}

/* --- several images -------------------------------------------------------------------------------------- */

TEST(scan_goes_round_the_images_from_the_one_named)
{
    reading_t first = open_reading(directory, 0);
    reading_t second = open_reading(directory, 0);
    reading_t third = open_reading(directory, 0);
    publish(&first, "first", 5);
    publish(&second, "second", 6);
    publish(&second, "another", 7);
    publish(&third, "third", 5);
    aa_image_t *const images[] = {first.image, second.image, third.image};
    aa_batch_t *batch = first.batch;

    CHECK_EQUAL(aa_batch_scan(batch, images, 3, 1, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 4);
    check_message(batch, 0, "second", 6);
    check_message(batch, 1, "another", 7);
    check_message(batch, 2, "third", 5);
    check_message(batch, 3, "first", 5);
    aa_batch_commit(batch, 1);
    CHECK_EQUAL(position_of(&second), 64);
    CHECK_EQUAL(position_of(&third), 0);
    aa_batch_commit(batch, 3);
    CHECK_EQUAL(position_of(&second), 128);
    CHECK_EQUAL(position_of(&third), 64);
    CHECK_EQUAL(position_of(&first), 0);
    aa_batch_commit(batch, 4);
    CHECK_EQUAL(position_of(&first), 64);

    CHECK_EQUAL(aa_batch_scan(batch, images, 0, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 0);
    close_reading(&first);
    close_reading(&second);
    close_reading(&third);
}

TEST(limits_are_for_the_whole_scan)
{
    reading_t first = open_reading(directory, 0);
    reading_t second = open_reading(directory, 0);
    publish(&first, "first", 5);
    publish(&second, "second", 6);
    aa_image_t *const images[] = {first.image, second.image};
    CHECK_EQUAL(aa_batch_scan(first.batch, images, 2, 7, NO_LIMIT, 1, NO_LIMIT, NULL), AA_OK);
    CHECK_EQUAL(first.batch->count, 1);
    check_message(first.batch, 0, "second", 6);
    CHECK_EQUAL(aa_batch_scan(first.batch, images, 2, 0, NO_LIMIT, NO_LIMIT, 10, NULL), AA_OK);
    CHECK_EQUAL(first.batch->count, 1);
    check_message(first.batch, 0, "first", 5);
    close_reading(&first);
    close_reading(&second);
}

TEST(batch_keeps_its_images_and_their_logs_alive)
{
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "message", 7);
    CHECK_EQUAL(scan(&reading), 1);
    aa_image_release(reading.image);
    aa_publication_release(reading.publication);
    close_stream(&reading.stream);
    aa_batch_commit(reading.batch, 1);
    check_message(reading.batch, 0, "message", 7);
    aa_batch_release(reading.batch);
    aa_batch_release(NULL);
}

/* --- closed images --------------------------------------------------------------------------------------- */

TEST(image_after_close_gives_nothing_writes_nothing_and_keeps_its_last_values)
{
    reading_t reading = open_reading(directory, 0);
    publish(&reading, "message", 7);
    publish(&reading, "message", 7);
    CHECK_EQUAL(scan(&reading), 2);
    aa_batch_commit(reading.batch, 1);
    reading.stream.log->metadata->end_of_stream_position = 64;
    reading.stream.log->metadata->is_publication_revoked = 1;
    CHECK(aa_image_is_end_of_stream(reading.image));
    aa_image_close(reading.image);
    aa_image_close(reading.image);
    reading.stream.log->metadata->end_of_stream_position = 1024;
    reading.stream.log->metadata->is_publication_revoked = 0;

    aa_batch_commit(reading.batch, 2);
    CHECK_EQUAL(position_of(&reading), 64);
    CHECK_EQUAL(scan(&reading), 0);
    atomic_store(reading.stream.subscriber_position, 4096);
    CHECK(aa_image_is_closed(reading.image));
    CHECK_EQUAL(aa_image_position(reading.image), 64);
    CHECK_EQUAL(aa_image_join_position(reading.image), 0);
    CHECK_EQUAL(aa_image_end_of_stream_position(reading.image), 64);
    CHECK(aa_image_is_end_of_stream(reading.image));
    CHECK(aa_image_is_publication_revoked(reading.image));
    CHECK_EQUAL(aa_image_active_transport_count(reading.image), 0);
    close_reading(&reading);
}

TEST(image_tells_the_state_of_its_stream)
{
    reading_t reading = open_reading(directory, 128);
    CHECK_EQUAL(aa_image_join_position(reading.image), 128);
    CHECK_EQUAL(aa_image_position(reading.image), 128);
    CHECK_EQUAL(aa_image_active_transport_count(reading.image), 1);
    CHECK(!aa_image_is_end_of_stream(reading.image));
    CHECK(!aa_image_is_publication_revoked(reading.image));
    CHECK(!aa_image_is_closed(reading.image));
    reading.stream.log->metadata->end_of_stream_position = 128;
    CHECK(aa_image_is_end_of_stream(reading.image));
    aa_image_release(NULL);
    close_reading(&reading);
}

/* --- nonsense ------------------------------------------------------------------------------------------------- */

TEST(image_with_impossible_counter_or_position_is_corrupt)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_image_t *image = NULL;
    aa_error_t error = {0};
    CHECK_EQUAL(aa_image_create(stream.log, stream.cnc, -1, &image, &error), AA_CORRUPT);
    CHECK_EQUAL(aa_image_create(stream.log, stream.cnc, FIXTURE_COUNTERS, &image, &error), AA_CORRUPT);
    const int64_t nonsense[] = {-32, 1, 31, INT64_MAX, INT64_MIN, ((int64_t)TERM << 31) + 32};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        *stream.subscriber_position = nonsense[i];
        CHECK_EQUAL(aa_image_create(stream.log, stream.cnc, stream.position_counter_id, &image, &error), AA_CORRUPT);
    }
    CHECK(image == NULL);

    *stream.subscriber_position = 0;
    image = add_image(&stream);
    aa_batch_t *batch = aa_batch_create();
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        *stream.subscriber_position = nonsense[i];
        CHECK(aa_image_has_frame(image));
        CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &error), AA_CORRUPT);
        CHECK_EQUAL(*stream.subscriber_position, nonsense[i]);
    }
    *stream.subscriber_position = (int64_t)TERM << 31;
    CHECK(!aa_image_has_frame(image));
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &error), AA_OK);
    aa_batch_release(batch);
    aa_image_release(image);
    close_stream(&stream);
}

TEST(frame_with_an_impossible_length_is_corrupt_and_what_was_before_it_is_kept)
{
    const int32_t nonsense[] = {1, 31, TERM, TERM - 63, INT32_MAX};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        reading_t reading = open_reading(directory, 0);
        publish(&reading, "message", 7);
        aa_log_frame_at(reading.stream.log, 64)->length = nonsense[i];
        CHECK_EQUAL(
            aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &reading.error),
            AA_CORRUPT);
        CHECK(strstr(reading.error.text, "position 64") != NULL);
        CHECK_EQUAL(reading.batch->count, 1);
        check_message(reading.batch, 0, "message", 7);
        aa_batch_commit(reading.batch, 1);
        CHECK_EQUAL(position_of(&reading), 64);
        close_reading(&reading);
    }
}

TEST(scan_of_a_log_full_of_frames_goes_no_further_than_a_term)
{
    reading_t reading = open_reading(directory, 0);
    for (int64_t position = 0; position < AA_LOG_PARTITIONS * TERM; position += 64)
    {
        driver_write_frame(reading.stream.log, position, AA_FRAME_TYPE_PADDING, 0xC0, NULL, 32);
    }
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(position_of(&reading), TERM);
    const int64_t last_term = ((int64_t)TERM << 31) - TERM / 2;
    atomic_store(reading.stream.subscriber_position, last_term);
    CHECK_EQUAL(scan(&reading), 0);
    CHECK_EQUAL(position_of(&reading), (int64_t)TERM << 31);
    close_reading(&reading);
}

TEST(log_full_of_nonsense_never_crashes_nor_hangs)
{
    reading_t reading = open_reading(directory, 0);
    uint64_t state = 31;
    for (int round = 0; round < 300; round++)
    {
        for (int64_t position = 0; position < AA_LOG_PARTITIONS * TERM; position += 32)
        {
            aa_frame_t *frame = aa_log_frame_at(reading.stream.log, position);
            frame->length = (int32_t)(next_random(&state) % (round % 2 == 0 ? 256 : 3000));
            frame->flags = (uint8_t)next_random(&state);
            frame->type = (int16_t)(round % 7 == 0 ? 0 : next_random(&state) % 3);
        }
        atomic_store(reading.stream.subscriber_position, (int64_t)(next_random(&state) % (1 << 20)) * 32);
        for (int i = 0; i < 5; i++)
        {
            aa_batch_scan(reading.batch, &reading.image, 1, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT, &reading.error);
            aa_batch_commit(reading.batch, next_random(&state) % (reading.batch->count + 1));
        }
    }
    close_reading(&reading);
}
