#define _GNU_SOURCE
/* Runs: many messages in one call. */
#include "batch.h"
#include "check.h"
#include "driver.h"
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TERM FIXTURE_TERM_LENGTH

static uint8_t zeros[TERM];

static void offers_many(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, TERM - 256);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    int32_t lengths[100];
    size_t total = 0;
    for (int32_t i = 0; i < 100; i++)
    {
        lengths[i] = i;
        total += (size_t)i;
    }
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, total, lengths, 100, NULL), 100);
    CHECK(aa_publication_position(publication) > TERM);
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 0, lengths, 0, NULL), 0);

    *stream.limit = aa_publication_position(publication) + 64 * 3;
    const int32_t equal[] = {32, 32, 32, 32, 32};
    int64_t position = -1;
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 160, equal, 5, &position), 3);
    CHECK_EQUAL(position, aa_publication_position(publication));
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 160, equal, 5, NULL), AA_BACK_PRESSURED);

    const int64_t before = aa_publication_position(publication);
    *stream.limit = INT64_MAX;
    const int32_t negative[] = {32, -1}, beyond[] = {32, 129}, too_long[] = {32, TERM / 8 + 1};
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 160, negative, 2, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, 160, beyond, 2, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_many(publication, zeros, sizeof(zeros), too_long, 2, NULL), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_position(publication), before);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(run_of_messages_goes_through_rotations_until_back_pressure)
{
    for_both_kinds(directory, offers_many);
}

static void offers_equal(const char *directory, bool exclusive)
{
    const int64_t start = TERM - 256;
    stream_t stream = open_stream(directory, NULL, start);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    const uint8_t data[] = "abcdefghij";
    int64_t position = -1;

    CHECK_EQUAL(aa_publication_offer_equal(publication, data, 10, 4, 3, 3, &position), 3);
    CHECK_EQUAL(position, start + 3 * 64);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, start) + 1, "abcd", 4), 0);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, start + 64) + 1, "defg", 4), 0);
    CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, start + 128) + 1, "ghij", 4), 0);

    CHECK_EQUAL(aa_publication_offer_equal(publication, data, 10, 10, 0, 5, &position), 5);
    CHECK_EQUAL(position, TERM + 4 * 64);
    for (int64_t at = TERM; at < position; at += 64)
    {
        check_header(stream.log, at, 42, AA_FRAME_BEGIN | AA_FRAME_END, 0);
        CHECK_EQUAL(memcmp(aa_log_frame_at(stream.log, at) + 1, data, 10), 0);
    }

    *stream.limit = position + 3 * 32;
    CHECK_EQUAL(aa_publication_offer_equal(publication, NULL, 0, 0, 0, 5, NULL), 3);
    CHECK_EQUAL(aa_publication_offer_equal(publication, NULL, 0, 0, 0, 5, NULL), AA_BACK_PRESSURED);
    CHECK_EQUAL(aa_publication_offer_equal(publication, NULL, 0, 0, 0, 0, NULL), 0);

    *stream.limit = INT64_MAX;
    const int64_t before = aa_publication_position(publication);
    CHECK_EQUAL(aa_publication_offer_equal(publication, data, 10, 11, 0, 1, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_equal(publication, data, 10, 4, 4, 3, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_equal(publication, data, 10, 4, SIZE_MAX / 2, 3, NULL), AA_ARGUMENT);
    CHECK_EQUAL(aa_publication_offer_equal(publication, zeros, TERM, TERM / 8 + 1, 0, 2, NULL), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_position(publication), before);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(run_is_of_equal_records_or_of_one_record_many_times)
{
    for_both_kinds(directory, offers_equal);
}

/* --- the same as one by one ------------------------------------------------------------------------------ */

#define MESSAGES 200
#define ROUNDS 300

/* Lengths as a run has them: mostly short, some of several frames, some of none. */
static size_t random_length(uint64_t *state)
{
    const uint64_t kind = next_random(state) % 10;
    return kind == 0 ? next_random(state) % (TERM / 8 + 1) : kind == 1 ? 0 : next_random(state) % 300;
}

static size_t offer_one_by_one(aa_publication_t *publication, const aa_slice_t *messages, size_t count, int64_t *last)
{
    size_t appended = 0;
    while (appended < count)
    {
        const int64_t result = aa_publication_offer(publication, messages[appended].data, messages[appended].length, 0);
        if (result > 0)
        {
            *last = result;
            appended++;
        }
        else if (result != AA_ADMIN_ACTION)
        {
            break;
        }
    }
    return appended;
}

static void appends_the_same(const char *directory, bool exclusive)
{
    stream_t one = open_stream(directory, NULL, 0), many = open_stream(directory, NULL, 0);
    aa_publication_t *by_one = add_publication(&one, exclusive), *by_run = add_publication(&many, exclusive);
    uint8_t data[TERM / 8 + MESSAGES];
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof(data); i++)
    {
        data[i] = (uint8_t)next_random(&state);
    }

    for (int round = 0; round < ROUNDS; round++)
    {
        aa_slice_t messages[MESSAGES];
        int32_t lengths[MESSAGES];
        uint8_t *joined = malloc(MESSAGES * (TERM / 8));
        size_t total = 0;
        CHECK(joined != NULL);
        const bool is_equal = round % 3 == 0;
        for (size_t i = 0; i < MESSAGES; i++)
        {
            const size_t length = is_equal && i > 0 ? messages[0].length : random_length(&state);
            messages[i] = (aa_slice_t){data + i, length};
            lengths[i] = (int32_t)length;
            memcpy(joined + total, data + i, length);
            total += length;
        }

        const int64_t from = aa_publication_position(by_one);
        const int64_t limit = from + (int64_t)(next_random(&state) % (TERM + TERM / 2));
        *one.limit = *many.limit = limit;
        int64_t last_of_one = 0, last_of_run = 0, appended;
        const size_t expected = offer_one_by_one(by_one, messages, MESSAGES, &last_of_one);
        if (is_equal)
        {
            appended = aa_publication_offer_equal(
                by_run, joined, total, messages[0].length, messages[0].length, MESSAGES, &last_of_run);
        }
        else if (round % 3 == 1)
        {
            appended = aa_publication_offer_many(by_run, joined, total, lengths, MESSAGES, &last_of_run);
        }
        else
        {
            appended = aa_publication_offer_slices(by_run, messages, MESSAGES, &last_of_run);
        }
        CHECK_EQUAL(appended, expected > 0 ? (int64_t)expected : AA_BACK_PRESSURED);
        CHECK_EQUAL(last_of_run, last_of_one);
        CHECK_EQUAL(aa_publication_position(by_run), aa_publication_position(by_one));
        CHECK_EQUAL(memcmp(one.log->mapping.address, many.log->mapping.address, AA_LOG_PARTITIONS * TERM), 0);
        CHECK_EQUAL(
            memcmp(one.log->metadata->term_tails, many.log->metadata->term_tails, sizeof(int64_t) * AA_LOG_PARTITIONS),
            0);
        driver_clean(one.log, from, aa_publication_position(by_one));
        driver_clean(many.log, from, aa_publication_position(by_run));
        free(joined);
    }
    aa_publication_release(by_one);
    aa_publication_release(by_run);
    close_stream(&one);
    close_stream(&many);
}

TEST(run_appends_to_the_byte_what_the_same_messages_one_by_one_would)
{
    for_both_kinds(directory, appends_the_same);
}

static void says_so_at_the_end(const char *directory, bool exclusive)
{
    const log_shape_t shape = default_log_shape();
    const int64_t end = (int64_t)shape.term_length << 31;
    stream_t stream = open_stream(directory, NULL, end - 256);
    *stream.limit = INT64_MAX;
    aa_publication_t *publication = add_publication(&stream, exclusive);
    CHECK_EQUAL(aa_publication_offer_equal(publication, zeros, 32, 32, 0, 9, NULL), 4);
    CHECK_EQUAL(aa_publication_offer_equal(publication, zeros, 32, 32, 0, 9, NULL), AA_MAX_POSITION_EXCEEDED);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(run_ends_where_the_stream_does)
{
    for_both_kinds(directory, says_so_at_the_end);
}

TEST(run_with_a_message_that_is_too_long_appends_nothing)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    const aa_slice_t messages[] = {{zeros, 32}, {zeros, TERM / 8 + 1}};
    CHECK_EQUAL(aa_publication_offer_slices(publication, messages, 2, NULL), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_position(publication), 0);
    CHECK_EQUAL(aa_publication_offer_slices(publication, messages, 0, NULL), 0);
    aa_publication_close(publication);
    CHECK_EQUAL(aa_publication_offer_slices(publication, messages, 1, NULL), AA_CLOSED);
    aa_publication_release(publication);
    close_stream(&stream);
}

/* --- beside other publishers ----------------------------------------------------------------------------- */

#define THREADS 4

static void *offer_until_refused(void *publication)
{
    int64_t result;
    do
    {
        result = aa_publication_offer_equal(publication, zeros, 100, 100, 0, 500, NULL);
    } while (result > 0 || result == AA_ADMIN_ACTION);
    CHECK_EQUAL(result, AA_BACK_PRESSURED);
    return NULL;
}

TEST(run_passes_the_limit_by_no_more_than_one_long_message_a_publisher)
{
    const int64_t longest = aa_align(TERM / 8 + (TERM / 8 / (FIXTURE_MTU - 32) + 1) * 32, 32);
    for (int round = 0; round < 50; round++)
    {
        stream_t stream = open_stream(directory, NULL, 0);
        pthread_t threads[THREADS];
        aa_publication_t *publications[THREADS];
        for (int i = 0; i < THREADS; i++)
        {
            publications[i] = add_publication(&stream, false);
            CHECK_EQUAL(pthread_create(&threads[i], NULL, offer_until_refused, publications[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
        {
            pthread_join(threads[i], NULL);
            aa_publication_release(publications[i]);
        }
        const int32_t tail = (int32_t)stream.log->metadata->term_tails[0];
        CHECK(tail >= *stream.limit);
        CHECK(tail < *stream.limit + THREADS * longest);
        close_stream(&stream);
    }
}

/* A child offers two messages and one whose payload ends in a page that it may not read. */
static void die_in_the_third_message(aa_publication_t *publication)
{
    pid_t child = fork();
    if (child == 0)
    {
        signal(SIGSEGV, SIG_DFL);
        uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(pages + 4096, 4096, PROT_NONE);
        const aa_slice_t messages[] = {
            {(const uint8_t *)"one", 3}, {(const uint8_t *)"two", 3}, {pages + 4096 - 8, 100}, {zeros, 500}};
        aa_publication_offer_slices(publication, messages, 4, NULL);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
}

TEST(run_whose_writer_dies_can_be_unblocked_and_keeps_what_was_written)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    die_in_the_third_message(publication);
    const int64_t third = 128, fourth = third + 160, behind = fourth + 544;
    check_header(stream.log, 0, 35, AA_FRAME_BEGIN | AA_FRAME_END, 0);
    check_header(stream.log, 64, 35, AA_FRAME_BEGIN | AA_FRAME_END, 0);
    CHECK_EQUAL(aa_log_frame_at(stream.log, third)->length, -132);
    CHECK_EQUAL(aa_log_frame_at(stream.log, fourth)->length, 0);
    CHECK_EQUAL(aa_publication_position(publication), behind);

    CHECK(driver_unblock_log(stream.log, third));
    CHECK(!driver_unblock_log(stream.log, fourth)); /* nobody waits behind it yet */
    CHECK_EQUAL(aa_publication_offer(publication, (const uint8_t *)"behind", 6, 0), behind + 64);
    CHECK(driver_unblock_log(stream.log, fourth));

    aa_image_t *image = add_image(&stream);
    aa_batch_t *batch = aa_batch_create();
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL), AA_OK);
    CHECK_EQUAL(batch->messages->count, 3);
    CHECK_EQUAL(memcmp(batch->messages->data, "onetwobehind", 12), 0);
    aa_batch_release(batch);
    aa_image_release(image);
    aa_publication_release(publication);
    close_stream(&stream);
}
