#define _GNU_SOURCE
/* Scans against a model: a list of the messages that a stream holds, and how many of them were committed. */
#include "batch.h"
#include "check.h"
#include "driver.h"
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD (FIXTURE_MTU - AA_FRAME_HEADER_LENGTH)
#define MESSAGES_MAX 100000

typedef struct
{
    int64_t end_position;
    int32_t length;
    uint8_t seed;
} message_t;

/* A claimed message whose fragments are written one after the other. */
typedef struct
{
    int64_t position;
    int32_t written;
    int32_t length;
    uint8_t seed;
} pending_t;

typedef struct
{
    stream_t stream;
    aa_publication_t *publication;
    aa_image_t *image;
    aa_batch_t *batch;
    uint64_t random;
    int64_t cleaned;
    message_t *messages;
    size_t count;     /* messages that are whole, and those behind the pending one */
    size_t available; /* messages before the pending one */
    size_t committed;
    bool is_pending;
    pending_t pending;
    uint8_t scratch[FIXTURE_TERM_LENGTH / 8];
} model_t;

static uint64_t below(model_t *model, uint64_t bound)
{
    return next_random(&model->random) % bound;
}

static const uint8_t *content_of(model_t *model, uint8_t seed, int32_t length)
{
    for (int32_t i = 0; i < length; i++)
    {
        model->scratch[i] = (uint8_t)(seed + i * 31 + i / 256);
    }
    return model->scratch;
}

static void remember(model_t *model, int64_t end_position, int32_t length, uint8_t seed)
{
    CHECK(model->count < MESSAGES_MAX);
    model->messages[model->count++] = (message_t){end_position, length, seed};
    if (!model->is_pending)
    {
        model->available = model->count;
    }
}

static int32_t random_length(model_t *model)
{
    return (int32_t)(below(model, 3) == 0 ? below(model, sizeof(model->scratch) + 1) : below(model, 300));
}

static void publish(model_t *model)
{
    const int32_t length = random_length(model);
    const uint8_t seed = (uint8_t)below(model, 256);
    const int64_t result = aa_publication_offer(model->publication, content_of(model, seed, length), (size_t)length, 0);
    if (result > 0)
    {
        remember(model, result, length, seed);
    }
}

/* Takes room at the tail as a publisher would, -1 where there is none before the end of the term or the limit. */
static int64_t claim(model_t *model, int32_t length)
{
    const int64_t position = aa_publication_position(model->publication);
    const int64_t in_term = aa_log_term_offset(model->stream.log, position);
    if (position >= *model->stream.limit || in_term == 0 || in_term + length > FIXTURE_TERM_LENGTH)
    {
        return -1;
    }
    const int64_t partition = (position >> model->stream.log->position_bits) % AA_LOG_PARTITIONS;
    model->stream.log->metadata->term_tails[partition] += length;
    return position;
}

static void begin_pending(model_t *model)
{
    const int32_t fragments = 2 + (int32_t)below(model, 4);
    if (model->is_pending)
    {
        return;
    }
    const int64_t position = claim(model, fragments * FIXTURE_MTU);
    if (position >= 0)
    {
        model->pending = (pending_t){position, 0, fragments * PAYLOAD, (uint8_t)below(model, 256)};
        remember(model, position + fragments * FIXTURE_MTU, fragments * PAYLOAD, model->pending.seed);
        model->available = model->count - 1;
        model->is_pending = true;
    }
}

static void write_pending(model_t *model)
{
    pending_t *pending = &model->pending;
    if (!model->is_pending)
    {
        return;
    }
    const uint8_t *content = content_of(model, pending->seed, pending->length);
    const bool is_first = pending->written == 0, is_last = pending->written + PAYLOAD == pending->length;
    driver_write_frame(
        model->stream.log, pending->position + pending->written / PAYLOAD * FIXTURE_MTU, AA_FRAME_TYPE_DATA,
        (uint8_t)((is_first ? AA_FRAME_BEGIN : 0) | (is_last ? AA_FRAME_END : 0)), content + pending->written, PAYLOAD);
    pending->written += PAYLOAD;
    if (is_last)
    {
        model->is_pending = false;
        model->available = model->count;
    }
}

/* Frames that no reader may be given: padding, and parts of messages whose rest was lost. */
static void write_debris(model_t *model)
{
    const uint64_t kind = below(model, 4);
    const int64_t position = claim(model, 2 * 64);
    if (position < 0)
    {
        return;
    }
    const uint8_t first_flags = kind == 1 ? AA_FRAME_BEGIN : kind == 2 ? AA_FRAME_END : 0;
    driver_write_frame(
        model->stream.log, position, kind == 0 ? AA_FRAME_TYPE_PADDING : AA_FRAME_TYPE_DATA, first_flags, "debris", 6);
    driver_write_frame(model->stream.log, position + 64, AA_FRAME_TYPE_PADDING, 0xC0, NULL, 32);
}

static int64_t position_of(const model_t *model)
{
    return atomic_load(model->stream.subscriber_position);
}

static void check_position(const model_t *model)
{
    const int64_t position = position_of(model);
    CHECK(model->committed == 0 || position >= model->messages[model->committed - 1].end_position);
    CHECK(model->committed == model->count || position < model->messages[model->committed].end_position);
}

static void scan_and_commit(model_t *model)
{
    const bool is_bounded = below(model, 4) == 0;
    const bool has_limits = below(model, 2) == 0;
    const size_t fragment_limit = has_limits ? 1 + below(model, 20) : SIZE_MAX;
    const size_t message_limit = has_limits && !is_bounded ? 1 + below(model, 20) : SIZE_MAX;
    const size_t max_bytes = has_limits ? below(model, 10000) : SIZE_MAX;
    aa_batch_t *batch = model->batch;
    const int64_t limit_position = position_of(model) + (int64_t)below(model, 20000);
    if (is_bounded)
    {
        CHECK_EQUAL(aa_batch_scan_image(batch, model->image, limit_position, fragment_limit, max_bytes, NULL), AA_OK);
        CHECK(batch->count == 0 || batch->messages->rows[batch->count - 1].position < limit_position + FIXTURE_MTU);
    }
    else
    {
        CHECK_EQUAL(aa_batch_scan(batch, &model->image, 1, 0, fragment_limit, message_limit, max_bytes, NULL), AA_OK);
    }
    CHECK(batch->fragments <= fragment_limit);
    CHECK(batch->count <= message_limit);
    CHECK(batch->count <= 1 || batch->messages->nbytes <= max_bytes);
    CHECK_EQUAL(batch->messages->offsets[batch->count], batch->messages->nbytes);
    if (has_limits || is_bounded)
    {
        CHECK(batch->count <= model->available - model->committed);
    }
    else
    {
        CHECK_EQUAL(batch->count, model->available - model->committed);
    }
    for (size_t row = 0; row < batch->count; row++)
    {
        const message_t *message = &model->messages[model->committed + row];
        CHECK_EQUAL(batch->messages->rows[row].position, message->end_position);
        CHECK_EQUAL(batch->messages->offsets[row + 1] - batch->messages->offsets[row], message->length);
        CHECK_EQUAL(
            memcmp(
                batch->messages->data + batch->messages->offsets[row],
                content_of(model, message->seed, message->length), (size_t)message->length),
            0);
    }
    check_position(model);

    for (uint64_t commits = below(model, 3), given = 0; commits > 0; commits--)
    {
        const size_t count = given + below(model, batch->count - given + 1);
        aa_batch_commit(batch, count);
        model->committed += count - given;
        given = count;
        check_position(model);
    }
}

static void replace_batch(model_t *model)
{
    if (below(model, 2) == 0)
    {
        aa_batch_clear(model->batch);
        return;
    }
    aa_batch_t *stale = model->batch;
    model->batch = aa_batch_create();
    scan_and_commit(model);
    aa_batch_commit(stale, SIZE_MAX);
    check_position(model);
    aa_batch_release(stale);
}

static void run_driver(model_t *model)
{
    driver_clean(model->stream.log, model->cleaned, position_of(model));
    model->cleaned = position_of(model);
    *model->stream.limit = model->cleaned + FIXTURE_TERM_LENGTH / 2;
}

static void run_model(const char *directory, uint64_t seed, int steps)
{
    model_t *model = calloc(1, sizeof(*model));
    model->stream = open_stream(directory, NULL, 0);
    model->publication = add_publication(&model->stream, false);
    model->image = add_image(&model->stream);
    model->batch = aa_batch_create();
    model->messages = calloc(MESSAGES_MAX, sizeof(message_t));
    model->random = seed;

    void (*const actions[])(model_t *) = {
        publish,      publish,         publish,         begin_pending, write_pending, write_pending,
        write_debris, scan_and_commit, scan_and_commit, replace_batch, run_driver,
    };
    for (int step = 0; step < steps; step++)
    {
        actions[below(model, sizeof(actions) / sizeof(actions[0]))](model);
    }

    while (model->is_pending)
    {
        write_pending(model);
    }
    while (model->committed < model->count)
    {
        scan_and_commit(model);
    }
    CHECK(model->count > (size_t)steps / 100);
    aa_batch_release(model->batch);
    aa_image_release(model->image);
    aa_publication_release(model->publication);
    close_stream(&model->stream);
    free(model->messages);
    free(model);
}

TEST(scans_and_commits_agree_with_a_simple_model)
{
    for (uint64_t seed = 1; seed <= 40; seed++)
    {
        run_model(directory, seed, 5000);
    }
}
