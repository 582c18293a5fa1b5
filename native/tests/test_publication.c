#define _GNU_SOURCE
#include "check.h"
#include "counters.h"
#include "driver.h"
#include "exclusive.h"
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAYLOAD (FIXTURE_MTU - AA_FRAME_HEADER_LENGTH)
#define TERM FIXTURE_TERM_LENGTH

static uint8_t zeros[TERM];

static int64_t max_position(const stream_t *stream)
{
    return aa_log_max_possible_position(stream->log);
}

static int64_t align_frame(int64_t payload_length)
{
    return aa_align(payload_length + AA_FRAME_HEADER_LENGTH, AA_FRAME_ALIGNMENT);
}

static void offers_one_frame(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    CHECK_EQUAL(aa_publication_max_payload_length(publication), PAYLOAD);
    CHECK_EQUAL(aa_publication_max_message_length(publication), TERM / 8);
    CHECK_EQUAL(aa_publication_position(publication), 0);
    CHECK_EQUAL(aa_publication_offer(publication, (const uint8_t *)"hello", 5, -3), 64);
    CHECK_EQUAL(aa_publication_offer(publication, NULL, 0, 0), 96);
    CHECK_EQUAL(aa_publication_position(publication), 96);
    check_header(stream.log, 0, 37, AA_FRAME_BEGIN | AA_FRAME_END, -3);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, 0) + 1, "hello", 5), 0);
    check_header(stream.log, 64, 32, AA_FRAME_BEGIN | AA_FRAME_END, 0);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 96)->length, 0);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_offers_a_message_as_one_frame)
{
    for_both_kinds(directory, offers_one_frame);
}

static void offers_fragments(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    uint8_t message[2 * PAYLOAD + 100];
    for (size_t i = 0; i < sizeof(message); i++)
    {
        message[i] = (uint8_t)(i * 7);
    }
    const int64_t end = 2 * FIXTURE_MTU + align_frame(100);
    CHECK_EQUAL(aa_publication_offer(publication, message, sizeof(message), 9), end);
    check_header(stream.log, 0, FIXTURE_MTU, AA_FRAME_BEGIN, 9);
    check_header(stream.log, FIXTURE_MTU, FIXTURE_MTU, 0, 9);
    check_header(stream.log, 2 * FIXTURE_MTU, 132, AA_FRAME_END, 9);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, FIXTURE_MTU) + 1, message + PAYLOAD, PAYLOAD), 0);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, 2 * FIXTURE_MTU) + 1, message + 2 * PAYLOAD, 100), 0);

    /* Exactly two full frames: no empty third one. */
    CHECK_EQUAL(aa_publication_offer(publication, message, 2 * PAYLOAD, 0), end + 2 * FIXTURE_MTU);
    check_header(stream.log, end + FIXTURE_MTU, FIXTURE_MTU, AA_FRAME_END, 0);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_offers_a_long_message_as_fragments)
{
    for_both_kinds(directory, offers_fragments);
}

static void offers_vectors(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    uint8_t message[3 * PAYLOAD];
    uint64_t state = 5;
    for (size_t i = 0; i < sizeof(message); i++)
    {
        message[i] = (uint8_t)next_random(&state);
    }
    for (size_t length = 0; length < sizeof(message); length += 1 + length / 3)
    {
        aa_slice_t parts[64] = {{NULL, 0}};
        size_t count = 1;
        for (size_t used = 0; used < length && count < 63; count++)
        {
            const size_t wanted = count == 62 ? length - used : next_random(&state) % 200;
            const size_t part = wanted < length - used ? wanted : length - used;
            parts[count] = (aa_slice_t){message + used, part};
            used += part;
        }
        const int64_t from = aa_publication_position(publication);
        const int64_t position = aa_publication_offer_vectored(publication, parts, count, 4);
        CHECK(position > from);
        size_t compared = 0;
        for (int64_t at = from; at < position;)
        {
            const aa_frame_t *frame = aa_log_frame_at(stream.log, at);
            const size_t payload = (size_t)frame->length - sizeof(*frame);
            CHECK_EQUAL(frame->reserved_value, 4);
            CHECK_EQUAL(memcmp(frame + 1, message + compared, payload), 0);
            compared += payload;
            at += aa_align(frame->length, AA_FRAME_ALIGNMENT);
        }
        CHECK_EQUAL(compared, length);
    }
    CHECK(aa_publication_offer_vectored(publication, NULL, 0, 0) > 0);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_offers_pieces_as_one_message)
{
    for_both_kinds(directory, offers_vectors);
}

static void refuses_long(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, TERM / 8 + 1, 0), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, SIZE_MAX, 0), AA_MESSAGE_TOO_LONG);
    const aa_slice_t parts[] = {{zeros, TERM / 8}, {zeros, 1}};
    CHECK_EQUAL(aa_publication_offer_vectored(publication, parts, 2, 0), AA_MESSAGE_TOO_LONG);
    const aa_slice_t overflowing[] = {{zeros, SIZE_MAX}, {zeros, 2}};
    CHECK_EQUAL(aa_publication_offer_vectored(publication, overflowing, 2, 0), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_position(publication), 0);
    CHECK(aa_publication_offer(publication, zeros, TERM / 8, 0) > 0);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_refuses_messages_that_are_too_long)
{
    for_both_kinds(directory, refuses_long);
}

static void tells_why_not(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    *stream.limit = 0;
    CHECK(aa_publication_is_connected(publication));
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), AA_BACK_PRESSURED);
    stream.log->metadata->is_connected = 0;
    CHECK(!aa_publication_is_connected(publication));
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), AA_NOT_CONNECTED);
    *stream.limit = 64;
    CHECK_EQUAL(aa_publication_position_limit(publication), 64);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), 64);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), AA_NOT_CONNECTED);
    CHECK_EQUAL(aa_publication_position(publication), 64);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_tells_not_connected_from_back_pressured)
{
    for_both_kinds(directory, tells_why_not);
}

static void rotates(const char *directory, bool exclusive)
{
    const int64_t start = 5 * (int64_t)TERM - 96;
    stream_t stream = open_stream(directory, NULL, start);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    *stream.limit = start + TERM;
    CHECK_EQUAL(aa_publication_position(publication), start);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), start + 64);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), AA_ADMIN_ACTION);
    const aa_frame_t *padding = aa_log_frame_at(stream.log, start + 64);
    CHECK_EQUAL(padding->type, AA_FRAME_TYPE_PADDING);
    CHECK_EQUAL(padding->length, 32);
    CHECK_EQUAL(aa_publication_position(publication), 5 * (int64_t)TERM);
    CHECK_EQUAL(stream.log->metadata->active_term_count, 5);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), 5 * (int64_t)TERM + 64);
    check_header(stream.log, 5 * (int64_t)TERM, 33, AA_FRAME_BEGIN | AA_FRAME_END, 0);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_pads_the_rest_of_a_term_and_turns_to_the_next)
{
    for_both_kinds(directory, rotates);
}

static void ends_exactly(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, TERM - 64);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), TERM);
    CHECK_EQUAL(aa_publication_position(publication), TERM);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), AA_ADMIN_ACTION);
    CHECK_EQUAL(aa_publication_position(publication), TERM);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), TERM + 64);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_may_fill_a_term_to_its_last_byte)
{
    for_both_kinds(directory, ends_exactly);
}

static void stops_at_the_end(const char *directory, bool exclusive)
{
    const int64_t end = (int64_t)TERM << 31;
    stream_t stream = open_stream(directory, NULL, end - 96);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    *stream.limit = INT64_MAX;
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), end - 32);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), AA_MAX_POSITION_EXCEEDED);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), AA_MAX_POSITION_EXCEEDED);
    *stream.limit = end - 32;
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 32, 0), AA_MAX_POSITION_EXCEEDED);
    CHECK_EQUAL(stream.log->metadata->active_term_count, INT32_MAX);
    CHECK_EQUAL(max_position(&stream), end);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_says_so_at_the_end_of_the_stream)
{
    for_both_kinds(directory, stops_at_the_end);
}

static void is_safe_after_close(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = NULL;
    CHECK_EQUAL(
        aa_publication_create(stream.log, stream.cnc, 1, 2, stream.limit_counter_id, 9, exclusive, &publication, NULL),
        AA_OK);
    *aa_counters_value(stream.cnc, 9) = 1;
    CHECK_EQUAL(aa_publication_channel_status(publication), 1);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 100, 0), 160);
    const int64_t limit = *stream.limit;
    CHECK(!aa_publication_is_closed(publication));
    aa_publication_close(publication);
    aa_publication_close(publication);
    *stream.limit = 5 * TERM;
    *aa_counters_value(stream.cnc, 9) = 2;
    close_stream(&stream);

    CHECK(aa_publication_is_closed(publication));
    CHECK(!aa_publication_is_connected(publication));
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 100, 0), AA_CLOSED);
    CHECK_EQUAL(aa_publication_offer_vectored(publication, NULL, 0, 0), AA_CLOSED);
    const int32_t length = 100;
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 100, &length, 1, NULL), AA_CLOSED);
    CHECK_EQUAL(aa_publication_position(publication), 160);
    CHECK_EQUAL(aa_publication_position_limit(publication), limit);
    CHECK_EQUAL(aa_publication_channel_status(publication), 1);
    CHECK_EQUAL(aa_publication_max_payload_length(publication), PAYLOAD);
    aa_publication_release(publication);
    aa_publication_release(NULL);
}

TEST(publication_after_close_appends_nothing_and_keeps_its_last_values)
{
    for_both_kinds(directory, is_safe_after_close);
}

TEST(publication_with_counters_outside_the_file_is_corrupt)
{
    stream_t stream = open_stream(directory, NULL, 0);
    const int32_t ids[] = {-1, INT32_MIN, FIXTURE_COUNTERS, INT32_MAX};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
    {
        aa_publication_t *publication = NULL;
        aa_error_t error = {0};
        CHECK_EQUAL(
            aa_publication_create(stream.log, stream.cnc, 1, 2, ids[i], -1, false, &publication, &error), AA_CORRUPT);
        CHECK(publication == NULL && error.text[0] != '\0');
        CHECK_EQUAL(aa_publication_create(stream.log, stream.cnc, 1, 2, 0, ids[i], false, &publication, &error), AA_OK);
        CHECK_EQUAL(aa_publication_channel_status(publication), 1);
        aa_publication_release(publication);
    }
    close_stream(&stream);
}

TEST(publication_on_a_log_with_impossible_tails_gives_an_error)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    aa_log_metadata_t *metadata = stream.log->metadata;
    const int64_t first_tail = (int64_t)((uint64_t)(uint32_t)FIXTURE_INITIAL_TERM_ID << 32);
    const struct
    {
        int32_t term_count;
        int64_t tail;
        int64_t result;
    } cases[] = {
        {-1, first_tail, AA_ERROR},       {INT32_MIN, first_tail, AA_ERROR},
        {0, first_tail + 1, AA_ERROR},    {0, first_tail + 31, AA_ERROR},
        {1, first_tail, AA_ADMIN_ACTION}, {0, -1, AA_ADMIN_ACTION},
        {0, INT64_MIN, AA_ADMIN_ACTION},  {0, first_tail + 0xFFFFFFE0, AA_ADMIN_ACTION},
    };
    *stream.limit = INT64_MAX;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        metadata->active_term_count = cases[i].term_count;
        metadata->term_tails[0] = cases[i].tail;
        CHECK_EQUAL(aa_publication_offer(publication, zeros, 64, 0), cases[i].result);
        aa_publication_position(publication);

        metadata->active_term_count = cases[i].term_count;
        metadata->term_tails[0] = cases[i].tail;
        aa_publication_t *exclusive = NULL;
        const int result = aa_publication_create(stream.log, stream.cnc, 1, 2, 3, -1, true, &exclusive, NULL);
        CHECK_EQUAL(result, i == 7 ? AA_OK : AA_CORRUPT);
        aa_publication_release(exclusive);
    }
    aa_publication_release(publication);
    close_stream(&stream);
}

/* --- what only exclusive publications do ----------------------------------------------------------------- */

TEST(publication_appends_padding_that_readers_pass_over)
{
    stream_t stream = open_stream(directory, NULL, TERM - 256);
    aa_publication_t *publication = add_publication(&stream, true);
    CHECK_EQUAL(aa_publication_append_padding(publication, 0), TERM - 224);
    CHECK_EQUAL(aa_publication_append_padding(publication, 33), TERM - 128);
    const aa_frame_t *frame = aa_log_frame_at(stream.log, TERM - 224);
    CHECK_EQUAL(frame->type, AA_FRAME_TYPE_PADDING);
    CHECK_EQUAL(frame->length, 65);
    CHECK_EQUAL(frame->flags, AA_FRAME_BEGIN | AA_FRAME_END);
    CHECK_EQUAL(aa_publication_append_padding(publication, 200), AA_ADMIN_ACTION);
    CHECK_EQUAL(aa_publication_append_padding(publication, 200), TERM + 256);

    const size_t longest = TERM / 8 + (TERM / 8 / PAYLOAD + 1) * AA_FRAME_HEADER_LENGTH;
    CHECK_EQUAL(aa_publication_max_padding_length(publication), aa_align((int64_t)longest, AA_FRAME_ALIGNMENT));
    CHECK_EQUAL(aa_publication_append_padding(publication, longest + AA_FRAME_ALIGNMENT), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_append_padding(publication, SIZE_MAX), AA_MESSAGE_TOO_LONG);
    *stream.limit = 0;
    CHECK_EQUAL(aa_publication_append_padding(publication, 1), AA_BACK_PRESSURED);
    aa_publication_close(publication);
    CHECK_EQUAL(aa_publication_append_padding(publication, 1), AA_CLOSED);
    aa_publication_release(publication);

    publication = add_publication(&stream, false);
    CHECK_EQUAL(aa_publication_append_padding(publication, 1), AA_ARGUMENT);
    aa_publication_release(publication);
    close_stream(&stream);
}

/* A frame as the publication would write it at a position, header and payload; the bytes it takes. */
static size_t make_frame(uint8_t *to, const stream_t *stream, int64_t position, const char *payload)
{
    const int32_t length = (int32_t)(AA_FRAME_HEADER_LENGTH + strlen(payload));
    aa_frame_t frame = {
        .flags = AA_FRAME_BEGIN | AA_FRAME_END,
        .type = AA_FRAME_TYPE_DATA,
        .term_offset = aa_log_term_offset(stream->log, position),
        .session_id = FIXTURE_SESSION_ID,
        .stream_id = FIXTURE_STREAM_ID,
        .term_id = aa_log_term_id(stream->log, position),
        .reserved_value = position,
    };
    atomic_init(&frame.length, length);
    const size_t taken = (size_t)aa_align(length, AA_FRAME_ALIGNMENT);
    memset(to, 0, taken);
    memcpy(to, &frame, sizeof(frame));
    memcpy(to + sizeof(frame), payload, strlen(payload));
    return taken;
}

TEST(publication_offers_a_block_of_whole_frames)
{
    stream_t stream = open_stream(directory, NULL, TERM - 128);
    aa_publication_t *publication = add_publication(&stream, true);
    uint8_t block[256];
    aa_error_t error = {0};
    size_t length = make_frame(block, &stream, TERM - 128, "one");
    length += make_frame(block + length, &stream, TERM - 64, "two");
    CHECK_EQUAL(aa_publication_offer_block(publication, block, length, &error), TERM);
    check_header(stream.log, TERM - 128, 35, AA_FRAME_BEGIN | AA_FRAME_END, TERM - 128);
    check_header(stream.log, TERM - 64, 35, AA_FRAME_BEGIN | AA_FRAME_END, TERM - 64);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, TERM - 64) + 1, "two", 3), 0);
    CHECK_EQUAL(aa_publication_position(publication), TERM);

    /* The term is full: the next block begins the next term. */
    length = make_frame(block, &stream, TERM, "three");
    CHECK_EQUAL(aa_publication_offer_block(publication, block, length, &error), TERM + 64);
    check_header(stream.log, TERM, 37, AA_FRAME_BEGIN | AA_FRAME_END, TERM);
    CHECK_EQUAL(stream.log->metadata->active_term_count, 1);
    CHECK_EQUAL(aa_publication_offer(publication, zeros, 1, 0), TERM + 128);

    *stream.limit = 0;
    CHECK_EQUAL(aa_publication_offer_block(publication, block, length, &error), AA_BACK_PRESSURED);
    aa_publication_close(publication);
    CHECK_EQUAL(aa_publication_offer_block(publication, block, length, &error), AA_CLOSED);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(publication_refuses_a_block_that_it_would_not_have_written)
{
    const int64_t start = TERM - 256;
    stream_t stream = open_stream(directory, NULL, start);
    aa_publication_t *publication = add_publication(&stream, true);
    uint8_t good[128], bad[128];
    CHECK_EQUAL(make_frame(good, &stream, start, "one") + make_frame(good + 64, &stream, start + 64, "two"), 128);

    const struct
    {
        size_t offset; /* of the header field that is wrong */
        size_t width;
        int32_t value;
    } wrong[] = {
        {offsetof(aa_frame_t, length), 4, 0},
        {offsetof(aa_frame_t, length), 4, -35},
        {offsetof(aa_frame_t, length), 4, 31},
        {offsetof(aa_frame_t, length), 4, 129},
        {offsetof(aa_frame_t, length), 4, INT32_MAX},
        {offsetof(aa_frame_t, type), 2, 5},
        {offsetof(aa_frame_t, type), 2, AA_FRAME_TYPE_PADDING},
        {offsetof(aa_frame_t, term_offset), 4, 0},
        {offsetof(aa_frame_t, session_id), 4, FIXTURE_SESSION_ID + 1},
        {offsetof(aa_frame_t, stream_id), 4, FIXTURE_STREAM_ID + 1},
        {offsetof(aa_frame_t, term_id), 4, FIXTURE_INITIAL_TERM_ID + 1},
        {64 + offsetof(aa_frame_t, length), 4, 65},
        {64 + offsetof(aa_frame_t, type), 2, 5},
        {64 + offsetof(aa_frame_t, term_offset), 4, TERM - 256},
        {64 + offsetof(aa_frame_t, term_id), 4, 0},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    {
        memcpy(bad, good, sizeof(bad));
        memcpy(bad + wrong[i].offset, &wrong[i].value, wrong[i].width);
        aa_error_t error = {0};
        CHECK_EQUAL(aa_publication_offer_block(publication, bad, sizeof(bad), &error), AA_ARGUMENT);
        CHECK(error.text[0] != '\0');
    }
    CHECK_EQUAL(aa_publication_offer_block(publication, good, 0, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_block(publication, good, 100, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_block(publication, good, 96, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_block(publication, zeros, 257, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_position(publication), start);
    CHECK_EQUAL(aa_log_frame_at(stream.log, start)->length, 0);
    CHECK_EQUAL(aa_publication_offer_block(publication, good, sizeof(good), NULL), start + 128);
    aa_publication_release(publication);

    publication = add_publication(&stream, false);
    CHECK_EQUAL(aa_publication_offer_block(publication, good, sizeof(good), NULL), AA_ARGUMENT);
    aa_publication_release(publication);
    close_stream(&stream);
}

/* --- dying publishers ------------------------------------------------------------------------------------ */

TEST(publication_whose_process_dies_while_writing_leaves_a_frame_that_can_be_unblocked)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    pid_t child = fork();
    if (child == 0)
    {
        signal(SIGSEGV, SIG_DFL);
        uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(pages + 4096, 4096, PROT_NONE);
        aa_publication_offer(publication, pages + 4096 - 8, 100, 0);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->length, -132);
    CHECK_EQUAL(aa_publication_offer(publication, (const uint8_t *)"behind", 6, 0), 160 + 64);
    CHECK(driver_unblock_log(stream.log, 0));
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->type, AA_FRAME_TYPE_PADDING);
    check_header(stream.log, 160, 38, AA_FRAME_BEGIN | AA_FRAME_END, 0);
    aa_publication_release(publication);
    close_stream(&stream);
}
