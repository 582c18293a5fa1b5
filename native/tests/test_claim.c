#define _GNU_SOURCE
#include "batch.h"
#include "check.h"
#include "claim.h"
#include "driver.h"
#include "fixture.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAYLOAD (FIXTURE_MTU - AA_FRAME_HEADER_LENGTH)
#define TERM FIXTURE_TERM_LENGTH
#define UNFRAGMENTED (AA_FRAME_BEGIN | AA_FRAME_END)

static aa_claim_t *take_claim(aa_publication_t *publication, size_t length, int64_t position)
{
    aa_claim_t *claim = NULL;
    CHECK_EQUAL(aa_publication_try_claim(publication, length, &claim), position);
    return claim;
}

static void commits(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    const aa_frame_t *frame = aa_log_frame_at(stream.log, 0);
    aa_claim_t *claim = take_claim(publication, 5, 64);
    CHECK_EQUAL(aa_publication_position(publication), 64);
    CHECK_EQUAL(frame->length, -37);
    CHECK(aa_claim_data(claim) == (const uint8_t *)(frame + 1));
    memcpy(aa_claim_data(claim), "hello", 5);
    CHECK_EQUAL(aa_claim_commit(claim, UNFRAGMENTED, -9), AA_OK);
    CHECK_EQUAL(frame->length, 37);
    CHECK_EQUAL(frame->type, AA_FRAME_TYPE_DATA);
    CHECK_EQUAL(frame->flags, UNFRAGMENTED);
    CHECK_EQUAL(frame->reserved_value, -9);
    CHECK_EQUAL(frame->session_id, FIXTURE_SESSION_ID);
    CHECK_EQUAL(frame->stream_id, FIXTURE_STREAM_ID);
    CHECK_EQUAL(frame->term_id, FIXTURE_INITIAL_TERM_ID);
    CHECK_EQUAL(aa_claim_commit(claim, 0, 0), AA_ARGUMENT);
    CHECK_EQUAL(aa_claim_abort(claim), AA_ARGUMENT);
    CHECK_EQUAL(frame->type, AA_FRAME_TYPE_DATA);
    CHECK_EQUAL(frame->reserved_value, -9);
    aa_claim_release(claim);
    aa_claim_release(NULL);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(claim_that_is_committed_is_a_message)
{
    for_both_kinds(directory, commits);
}

static void aborts(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    aa_image_t *image = add_image(&stream);
    aa_claim_t *claim = take_claim(publication, 100, 160);
    CHECK_EQUAL(aa_publication_offer(publication, (const uint8_t *)"behind", 6, 0), 224);

    aa_batch_t *batch = aa_batch_create();
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, 10, 10, 1000, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 0);
    CHECK_EQUAL(aa_claim_abort(claim), AA_OK);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->type, AA_FRAME_TYPE_PADDING);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->length, 132);
    CHECK_EQUAL(aa_batch_scan(batch, &image, 1, 0, 10, 10, 1000, NULL), AA_OK);
    CHECK_EQUAL(batch->count, 1);
    CHECK_EQUAL(memcmp(batch->messages->data, "behind", 6), 0);

    CHECK_EQUAL(aa_claim_abort(claim), AA_ARGUMENT);
    CHECK_EQUAL(aa_claim_commit(claim, UNFRAGMENTED, 0), AA_ARGUMENT);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->type, AA_FRAME_TYPE_PADDING);
    aa_claim_release(claim);
    aa_batch_release(batch);
    aa_image_release(image);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(claim_that_is_aborted_is_passed_over)
{
    for_both_kinds(directory, aborts);
}

static void is_refused(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, TERM - 64);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    aa_claim_t *claim = NULL;
    CHECK_EQUAL(aa_publication_try_claim(publication, PAYLOAD + 1, &claim), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_try_claim(publication, SIZE_MAX, &claim), AA_MESSAGE_TOO_LONG);
    CHECK_EQUAL(aa_publication_try_claim(publication, 100, &claim), AA_ADMIN_ACTION);
    CHECK(claim == NULL);
    aa_claim_t *longest = take_claim(publication, PAYLOAD, TERM + FIXTURE_MTU);
    aa_claim_t *empty = take_claim(publication, 0, TERM + FIXTURE_MTU + 32);
    CHECK_EQUAL(aa_claim_commit(empty, UNFRAGMENTED, 0), AA_OK);
    CHECK_EQUAL(aa_claim_commit(longest, UNFRAGMENTED, 0), AA_OK);
    *stream.limit = 0;
    CHECK_EQUAL(aa_publication_try_claim(publication, 1, &claim), AA_BACK_PRESSURED);
    stream.log->metadata->is_connected = 0;
    CHECK_EQUAL(aa_publication_try_claim(publication, 1, &claim), AA_NOT_CONNECTED);
    aa_publication_close(publication);
    CHECK_EQUAL(aa_publication_try_claim(publication, 1, &claim), AA_CLOSED);
    CHECK(claim == NULL);
    aa_claim_release(longest);
    aa_claim_release(empty);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(claim_is_refused_as_an_offer_is_and_where_it_needs_more_than_a_frame)
{
    for_both_kinds(directory, is_refused);
}

static void outlives(const char *directory, bool exclusive)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, exclusive);
    aa_claim_t *claim = take_claim(publication, 8, 64);
    aa_publication_close(publication);
    aa_publication_release(publication);
    close_stream(&stream);
    memcpy(aa_claim_data(claim), "in time", 8);
    CHECK_EQUAL(aa_claim_commit(claim, UNFRAGMENTED, 0), AA_OK);
    memcpy(aa_claim_data(claim), "too late", 8);
    aa_claim_release(claim);
}

TEST(claim_keeps_its_memory_mapped_until_it_is_released)
{
    for_both_kinds(directory, outlives);
}

TEST(claim_that_the_driver_has_unblocked_changes_nothing_any_more)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    aa_claim_t *committed = take_claim(publication, 100, 160);
    aa_claim_t *aborted = take_claim(publication, 100, 320);
    CHECK(driver_unblock_log(stream.log, 0));
    CHECK(driver_unblock_log(stream.log, 160));
    CHECK_EQUAL(aa_claim_commit(committed, UNFRAGMENTED, 7), AA_CLOSED);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->type, AA_FRAME_TYPE_PADDING);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->reserved_value, 0);

    /* The place has come to another frame, some terms later, that is claimed just so. */
    aa_frame_t *frame = aa_log_frame_at(stream.log, 160);
    frame->type = AA_FRAME_TYPE_DATA;
    frame->term_id = (int32_t)((uint32_t)FIXTURE_INITIAL_TERM_ID + AA_LOG_PARTITIONS);
    frame->length = -132;
    CHECK_EQUAL(aa_claim_abort(aborted), AA_CLOSED);
    CHECK_EQUAL(frame->length, -132);
    CHECK_EQUAL(frame->type, AA_FRAME_TYPE_DATA);
    aa_claim_release(committed);
    aa_claim_release(aborted);
    aa_publication_release(publication);
    close_stream(&stream);
}

TEST(claim_of_a_process_that_died_can_be_unblocked)
{
    stream_t stream = open_stream(directory, NULL, 0);
    aa_publication_t *publication = add_publication(&stream, false);
    pid_t child = fork();
    if (child == 0)
    {
        aa_claim_t *claim = take_claim(publication, 100, 160);
        memset(aa_claim_data(claim), 1, 50);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->length, -132);
    CHECK_EQUAL(aa_publication_offer(publication, (const uint8_t *)"behind", 6, 0), 224);
    CHECK(driver_unblock_log(stream.log, 0));
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->type, AA_FRAME_TYPE_PADDING);
    CHECK_EQUAL(aa_log_frame_at(stream.log, 0)->length, 132);
    aa_publication_release(publication);
    close_stream(&stream);
}
