#include "batch.h"

#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MIN 16
#define BYTES_MIN 1024
/* Longer payloads are worth a call. */
#define INLINE_MAX 128
/* Offsets into the data are int32_t. */
#define BYTES_MAX ((size_t)1 << 30)

/* How many memories a batch fills in turn: one for whoever holds what the last scan found while the next one runs, and
 * one for whoever looks back. */
#define POOL_COUNT 3
/* Larger ones are not kept for the next scan. */
#define POOL_LENGTH_MAX ((size_t)16 << 20)

/* What one image contributed to the last scan. */
typedef struct
{
    aa_image_t *image;
    uint64_t epoch;
    size_t first_row;
    size_t end_row;
    int64_t end_position; /* behind the last message and what was passed over after it */
} share_t;

typedef struct
{
    aa_batch_t found; /* first, so that a pointer to it is one to the whole */
    aa_received_t *pool[POOL_COUNT];
    size_t filled; /* the one in the pool that found.messages is */
    share_t *shares;
    size_t share_count;
    size_t share_capacity;
    size_t committed_shares;
} batch_t;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- memory ---------------------------------------------------------------------------------------------- */

static void fill_from_now(batch_t *batch, size_t i, aa_received_t *messages)
{
    aa_received_release(batch->pool[i]);
    batch->pool[i] = messages;
    batch->filled = i;
    batch->found.messages = messages;
}

/* Twice as much as is needed, so that growing costs little in the long run; data_length bytes are kept. */
static bool grow(batch_t *batch, size_t data_length, size_t rows_needed, size_t data_needed)
{
    const aa_received_t *messages = batch->found.messages;
    const size_t rows = rows_needed > messages->row_capacity ? 2 * rows_needed : messages->row_capacity;
    const size_t data = data_needed > messages->data_capacity ? 2 * data_needed : messages->data_capacity;
    aa_received_t *grown = aa_received_copy(messages, data_length, rows, data);
    if (grown == NULL)
    {
        return false;
    }
    fill_from_now(batch, batch->filled, grown);
    return true;
}

/* Memory that nobody else holds, for another scan. */
static bool begin_messages(batch_t *batch)
{
    const size_t rows = batch->found.messages->count;
    const size_t nbytes = batch->found.messages->nbytes;
    for (size_t i = 0; i < POOL_COUNT; i++)
    {
        const size_t next = (batch->filled + i) % POOL_COUNT;
        aa_received_t *messages = batch->pool[next];
        if (messages != NULL && messages->length > POOL_LENGTH_MAX)
        {
            aa_received_release(messages);
            batch->pool[next] = NULL;
        }
        else if (messages != NULL && aa_received_is_ours_alone(messages))
        {
            messages->count = 0;
            messages->nbytes = 0;
            messages->payload_length = -1;
            batch->filled = next;
            batch->found.messages = messages;
            return true;
        }
    }

    /* Most scans find as much as the one before. */
    aa_received_t *messages =
        aa_received_create(rows < ROWS_MIN ? ROWS_MIN : rows, nbytes < BYTES_MIN ? BYTES_MIN : nbytes);
    if (messages != NULL)
    {
        fill_from_now(batch, (batch->filled + 1) % POOL_COUNT, messages);
    }
    return messages != NULL;
}

static bool reserve_share(batch_t *batch)
{
    if (batch->share_count < batch->share_capacity)
    {
        return true;
    }
    size_t capacity = batch->share_capacity == 0 ? 1 : batch->share_capacity * 2;
    share_t *shares = realloc(batch->shares, capacity * sizeof(*shares));
    if (shares == NULL)
    {
        return false;
    }
    batch->shares = shares;
    batch->share_capacity = capacity;
    return true;
}

static int out_of_memory(aa_error_t *error)
{
    return aa_error_system(error, ENOMEM, "no memory for a batch");
}

aa_batch_t *aa_batch_create(void)
{
    batch_t *batch = calloc(1, sizeof(*batch));
    aa_received_t *messages = aa_received_create(ROWS_MIN, BYTES_MIN);
    if (batch == NULL || messages == NULL)
    {
        aa_received_release(messages);
        free(batch);
        return NULL;
    }
    fill_from_now(batch, 0, messages);
    return &batch->found;
}

void aa_batch_clear(aa_batch_t *found)
{
    batch_t *batch = (batch_t *)found;
    for (size_t i = 0; i < batch->share_count; i++)
    {
        aa_image_release(batch->shares[i].image);
    }
    batch->share_count = 0;
    batch->committed_shares = 0;
    found->count = 0;
    found->fragments = 0;
}

void aa_batch_release(aa_batch_t *found)
{
    if (found != NULL)
    {
        batch_t *batch = (batch_t *)found;
        aa_batch_clear(found);
        for (size_t i = 0; i < POOL_COUNT; i++)
        {
            aa_received_release(batch->pool[i]);
        }
        free(batch->shares);
        free(batch);
    }
}

/* --- scanning one image ---------------------------------------------------------------------------------- */

/* A message between its first and last fragment. What this scan copied of it lies behind the batch's payloads, after
 * room for what the builder keeps. */
typedef struct
{
    bool is_active;
    bool continues_builder;
    size_t kept;
    size_t copied;
    size_t fragments;
    int64_t first_position;
} message_t;

typedef struct
{
    batch_t *batch;
    aa_image_t *image;
    share_t share;
    message_t message;
    int64_t settled; /* everything before is in whole messages, or passed over */
    int64_t cursor;
    size_t fragment_limit;
    size_t message_limit;
    size_t max_bytes;
    int64_t limit_position;
    bool is_full;
    aa_error_t *error;
} scan_t;

static aa_received_t *messages_of(const scan_t *scan)
{
    return scan->batch->found.messages;
}

static bool has_rows(const scan_t *scan)
{
    return scan->share.first_row < messages_of(scan)->count;
}

static bool is_within_limits(const scan_t *scan, int64_t end)
{
    return !scan->is_full && scan->cursor < end && scan->batch->found.fragments < scan->fragment_limit &&
           messages_of(scan)->count < scan->message_limit;
}

/* What was passed over before the first message of the image needs nobody to take it. */
static void settle_before_first_row(const scan_t *scan)
{
    if (!has_rows(scan))
    {
        aa_image_advance(scan->image, scan->settled);
    }
}

static void add_length(aa_received_t *messages, int32_t payload_length)
{
    const bool is_common = messages->count == 0 || messages->payload_length == payload_length;
    messages->payload_length = is_common ? payload_length : -1;
    messages->nbytes += (size_t)payload_length;
    messages->offsets[++messages->count] = (int32_t)messages->nbytes;
}

/* Both have room for what the last step copies too much. */
static void copy_in_steps(uint8_t *to, const uint8_t *from, size_t length)
{
    for (size_t i = 0; i < length; i += AA_RECEIVED_STEP)
    {
        memcpy(to + i, from + i, AA_RECEIVED_STEP);
    }
}

/* Messages of one frame each, which most are, as long as there is room for them in the batch and nothing else comes;
 * whether there was any. Nothing else may be under way. */
static bool take_whole_messages(scan_t *scan, int64_t end)
{
    aa_received_t *messages = messages_of(scan);
    const aa_log_t *log = scan->image->log;
    const size_t first_row = messages->count;
    const size_t fragments = scan->batch->found.fragments;
    const size_t row_end = smaller(
        smaller(messages->row_capacity, scan->message_limit),
        first_row + smaller(scan->fragment_limit - fragments, messages->row_capacity));
    const size_t data_end = smaller(messages->data_capacity, scan->max_bytes);
    const int32_t term_offset = aa_log_term_offset(log, scan->cursor);
    const int64_t term_position = scan->cursor - term_offset;
    const int32_t term_end = (int32_t)aa_least(end - term_position, log->info.term_length);
    const uint8_t *term = (const uint8_t *)aa_log_frame_at(log, scan->cursor) - term_offset;

    aa_pace_t pace = {0};
    int32_t offset = term_offset;
    while (offset < term_end && messages->count < row_end)
    {
        const aa_frame_t *frame = (const aa_frame_t *)(term + offset);
        /* Pairs as in aa_frame_read, which tells what is wrong with what ends the loop. */
        const int32_t length = atomic_load_explicit(&frame->length, memory_order_acquire);
        if (length < AA_FRAME_HEADER_LENGTH || length > log->info.term_length - offset ||
            frame->type == AA_FRAME_TYPE_PADDING || (frame->flags & AA_FRAME_WHOLE) != AA_FRAME_WHOLE ||
            messages->nbytes + (size_t)length - AA_FRAME_HEADER_LENGTH > data_end)
        {
            break;
        }
        offset += aa_pace(&pace, length);

        aa_row_t *row = &messages->rows[messages->count];
        aa_row_set(row, log, frame, length, term_position + offset);
        row->fragment_end = (int32_t)(fragments + messages->count - first_row + 1);

        const int32_t payload_length = length - AA_FRAME_HEADER_LENGTH;
        uint8_t *to = messages->data + messages->nbytes;
        if (payload_length <= INLINE_MAX)
        {
            copy_in_steps(to, (const uint8_t *)(frame + 1), (size_t)payload_length);
        }
        else
        {
            memcpy(to, frame + 1, (size_t)payload_length);
        }
        add_length(messages, payload_length);
    }
    if (offset == term_offset)
    {
        return false;
    }

    if (scan->share.first_row == first_row)
    {
        aa_image_advance(scan->image, scan->settled);
    }
    scan->batch->found.fragments += messages->count - first_row;
    scan->cursor = scan->settled = term_position + offset;
    return true;
}

/* The fragments so far lead nowhere: their message is broken off by padding or by another one. */
static void abandon_message(scan_t *scan)
{
    if (scan->message.continues_builder)
    {
        aa_builder_reset(&scan->image->builder);
    }
    scan->message = (message_t){.is_active = false};
    scan->settled = scan->cursor;
}

static int copy_fragment(scan_t *scan, const aa_read_frame_t *frame)
{
    message_t *message = &scan->message;
    const aa_received_t *messages = messages_of(scan);
    const size_t payload_length = (size_t)frame->length - AA_FRAME_HEADER_LENGTH;
    const size_t before = message->kept + message->copied;
    const bool is_whole = before == 0 && (frame->flags & AA_FRAME_END) != 0;
    if (!is_whole && before + payload_length > (size_t)scan->image->log->max_message_length)
    {
        return aa_error_set(
            scan->error, AA_CORRUPT, "message at position %lld is longer than %d, term length %d",
            (long long)message->first_position, scan->image->log->max_message_length,
            scan->image->log->info.term_length);
    }
    const size_t data_needed = messages->nbytes + before + payload_length;
    if (messages->count > 0 && data_needed > scan->max_bytes)
    {
        scan->is_full = true;
        return AA_OK;
    }
    /* What is kept elsewhere comes in between at the end: before something was copied behind it, it has no place here.
     */
    const size_t written = messages->nbytes + (message->copied > 0 ? before : 0);
    if ((messages->count == messages->row_capacity || data_needed > messages->data_capacity) &&
        !grow(scan->batch, written, messages->count + 1, data_needed))
    {
        return out_of_memory(scan->error);
    }
    memcpy(messages_of(scan)->data + data_needed - payload_length, frame->header + 1, payload_length);
    message->copied += payload_length;
    message->fragments++;
    scan->batch->found.fragments++;
    return AA_OK;
}

/* copy_fragment made sure of the row. */
static void add_row(scan_t *scan, const aa_read_frame_t *last)
{
    aa_received_t *messages = messages_of(scan);
    const message_t *message = &scan->message;
    const aa_log_t *log = scan->image->log;
    const int32_t length = (int32_t)(message->kept + message->copied);
    settle_before_first_row(scan);
    if (message->kept > 0)
    {
        memcpy(messages->data + messages->nbytes, scan->image->builder.data, message->kept);
    }

    aa_row_t *row = &messages->rows[messages->count];
    aa_row_set(row, log, last->header, length + AA_FRAME_HEADER_LENGTH, last->next_position);
    row->flags = last->flags | AA_FRAME_BEGIN;
    row->term_id = aa_log_term_id(log, message->first_position);
    row->term_offset = aa_log_term_offset(log, message->first_position);
    row->fragment_end = (int32_t)scan->batch->found.fragments;
    add_length(messages, length);

    scan->message = (message_t){.is_active = false};
    scan->settled = last->next_position;
}

static int take_frame(scan_t *scan, const aa_read_frame_t *frame)
{
    if (frame->is_padding)
    {
        scan->cursor = frame->next_position;
        abandon_message(scan);
        return AA_OK;
    }
    if ((frame->flags & AA_FRAME_BEGIN) != 0)
    {
        abandon_message(scan);
        scan->message = (message_t){.is_active = true, .first_position = scan->cursor};
    }
    else if (!scan->message.is_active)
    {
        scan->batch->found.fragments++;
        scan->cursor = scan->settled = frame->next_position;
        return AA_OK;
    }

    int result = copy_fragment(scan, frame);
    if (result == AA_OK && !scan->is_full)
    {
        scan->cursor = frame->next_position;
        if ((frame->flags & AA_FRAME_END) != 0)
        {
            add_row(scan, frame);
        }
    }
    return result;
}

/* What is left of a message without its end goes to the builder where nothing uncommitted lies before it; otherwise a
 * later scan reads it again. */
static int settle_rest(scan_t *scan)
{
    const message_t *message = &scan->message;
    aa_builder_t *builder = &scan->image->builder;
    if (message->fragments == 0)
    {
        return AA_OK;
    }
    if (has_rows(scan))
    {
        scan->batch->found.fragments -= message->fragments;
        return AA_OK;
    }

    if (!message->continues_builder)
    {
        aa_builder_reset(builder);
        builder->first_position = message->first_position;
    }
    const uint8_t *copied = messages_of(scan)->data + messages_of(scan)->nbytes + message->kept;
    if (!aa_builder_append(builder, copied, message->copied))
    {
        return out_of_memory(scan->error);
    }
    builder->is_active = true;
    builder->next_position = scan->cursor;
    scan->settled = scan->cursor;
    return AA_OK;
}

static int begin_image(scan_t *scan)
{
    aa_image_t *image = scan->image;
    aa_builder_t *builder = &image->builder;
    int64_t position;
    const int result = aa_image_begin_read(image, &position, scan->error);
    if (result != AA_OK)
    {
        return result;
    }
    scan->message = (message_t){
        .is_active = builder->is_active,
        .continues_builder = builder->is_active,
        .kept = builder->length,
        .first_position = builder->first_position,
    };
    scan->cursor = scan->settled = position;
    scan->share = (share_t){.image = image, .epoch = image->epoch, .first_row = messages_of(scan)->count};
    return AA_OK;
}

static int scan_image(scan_t *scan)
{
    batch_t *batch = scan->batch;
    if (!reserve_share(batch))
    {
        return out_of_memory(scan->error);
    }
    int result = begin_image(scan);
    if (result != AA_OK)
    {
        return result;
    }

    /* A publisher never gets further ahead than a term; what lies there is old. */
    const int64_t end = aa_least(
        aa_least(scan->cursor + scan->image->log->info.term_length, aa_log_max_possible_position(scan->image->log)),
        scan->limit_position);
    while (result == AA_OK && is_within_limits(scan, end))
    {
        if (!scan->message.is_active && take_whole_messages(scan, end))
        {
            continue;
        }
        aa_read_frame_t frame;
        result = aa_frame_read(scan->image->log, scan->cursor, &frame, scan->error);
        if (result == AA_OK)
        {
            result = take_frame(scan, &frame);
        }
    }

    int settled = settle_rest(scan);
    if (has_rows(scan))
    {
        scan->share.end_row = messages_of(scan)->count;
        scan->share.end_position = scan->settled;
        aa_image_reference(scan->image);
        batch->shares[batch->share_count++] = scan->share;
    }
    else
    {
        aa_image_advance(scan->image, scan->settled);
    }
    return result == AA_OK || result == AA_NOTHING ? settled : result;
}

/* --- scans and commits ----------------------------------------------------------------------------------- */

static int begin_scan(
    scan_t *scan, aa_batch_t *found, size_t fragment_limit, size_t message_limit, size_t max_bytes, aa_error_t *error)
{
    aa_batch_clear(found);
    /* begin_image sets the rest; zeroing all of it would cost more than a scan that finds nothing. */
    scan->batch = (batch_t *)found;
    scan->cursor = 0;
    scan->fragment_limit = fragment_limit;
    scan->message_limit = message_limit;
    scan->max_bytes = smaller(max_bytes, BYTES_MAX);
    scan->limit_position = INT64_MAX;
    scan->is_full = false;
    scan->error = error;
    return begin_messages(scan->batch) ? AA_OK : out_of_memory(error);
}

int aa_batch_scan(
    aa_batch_t *found, aa_image_t *const *images, size_t image_count, size_t start, size_t fragment_limit,
    size_t message_limit, size_t max_bytes, aa_error_t *error)
{
    scan_t scan;
    int result = begin_scan(&scan, found, fragment_limit, message_limit, max_bytes, error);
    if (result != AA_OK)
    {
        return result;
    }
    for (size_t i = 0; i < image_count && result == AA_OK && is_within_limits(&scan, INT64_MAX); i++)
    {
        /* Without a division, which would be the dearest part of a scan that finds little. */
        const size_t next = start + i;
        scan.image = images[next < image_count ? next : next % image_count];
        if (aa_image_has_frame(scan.image) && !aa_image_is_closed(scan.image))
        {
            result = scan_image(&scan);
        }
    }
    found->count = found->messages->count;
    return result;
}

int aa_batch_scan_image(
    aa_batch_t *found, aa_image_t *image, int64_t limit_position, size_t fragment_limit, size_t max_bytes,
    aa_error_t *error)
{
    scan_t scan;
    int result = begin_scan(&scan, found, fragment_limit, SIZE_MAX, max_bytes, error);
    if (result != AA_OK || aa_image_is_closed(image))
    {
        return result;
    }
    scan.image = image;
    scan.limit_position = limit_position;
    result = scan_image(&scan);
    found->count = found->messages->count;
    return result;
}

static void commit_share(const aa_received_t *messages, const share_t *share, size_t count)
{
    if (share->epoch == share->image->epoch)
    {
        aa_image_advance(
            share->image, count < share->end_row ? messages->rows[count - 1].position : share->end_position);
    }
}

void aa_batch_commit(aa_batch_t *found, size_t count)
{
    batch_t *batch = (batch_t *)found;
    count = smaller(count, found->count);
    for (size_t i = batch->committed_shares; i < batch->share_count && batch->shares[i].first_row < count; i++)
    {
        commit_share(found->messages, &batch->shares[i], count);
        if (batch->shares[i].end_row <= count)
        {
            batch->committed_shares = i + 1;
        }
    }
}

aa_received_t *aa_batch_take(aa_batch_t *found)
{
    aa_received_t *messages = found->messages;
    const size_t needed = aa_received_length(messages->count, messages->nbytes);
    return messages->length <= 2 * needed
               ? aa_received_reference(messages)
               : aa_received_copy(messages, messages->nbytes, messages->count, messages->nbytes);
}
