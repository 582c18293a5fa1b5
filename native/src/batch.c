#include "batch.h"

#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MIN 16
#define BYTES_MIN 1024
/* Offsets into the data are int32_t. */
#define BYTES_MAX ((size_t)1 << 30)

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
    aa_batch_t columns; /* first, so that a pointer to it is one to the whole */
    uint8_t *data;
    size_t data_capacity;
    uint8_t *rows; /* all columns in one block */
    size_t row_capacity;
    share_t *shares;
    size_t share_count;
    size_t share_capacity;
    size_t committed_shares;
} batch_t;

/* --- memory ---------------------------------------------------------------------------------------------- */

/* In the order of aa_batch_copy_columns, which keeps every column aligned without gaps. */
static const struct
{
    size_t field; /* of the pointer in aa_batch_t */
    size_t item_size;
} COLUMNS[] = {
    {offsetof(aa_batch_t, stream_positions), sizeof(int64_t)},
    {offsetof(aa_batch_t, reserved_values), sizeof(int64_t)},
    {offsetof(aa_batch_t, offsets), sizeof(int32_t)},
    {offsetof(aa_batch_t, session_ids), sizeof(int32_t)},
    {offsetof(aa_batch_t, term_ids), sizeof(int32_t)},
    {offsetof(aa_batch_t, term_offsets), sizeof(int32_t)},
    {offsetof(aa_batch_t, frame_lengths), sizeof(int32_t)},
    {offsetof(aa_batch_t, initial_term_ids), sizeof(int32_t)},
    {offsetof(aa_batch_t, stream_ids), sizeof(int32_t)},
    {offsetof(aa_batch_t, types), sizeof(int16_t)},
    {offsetof(aa_batch_t, flags), sizeof(uint8_t)},
    {offsetof(aa_batch_t, versions), sizeof(uint8_t)},
    {offsetof(aa_batch_t, fragment_ends), sizeof(size_t)},
};
#define COLUMN_COUNT (sizeof(COLUMNS) / sizeof(COLUMNS[0]))
/* fragment_ends is for whoever commits, and no part of the messages. */
#define COPIED_COLUMN_COUNT (COLUMN_COUNT - 1)

static const uint8_t *column_at(const aa_batch_t *columns, size_t i)
{
    const uint8_t *column;
    memcpy(&column, (const uint8_t *)columns + COLUMNS[i].field, sizeof(column));
    return column;
}

static size_t items_in(size_t i, size_t rows)
{
    return COLUMNS[i].field == offsetof(aa_batch_t, offsets) ? rows + 1 : rows;
}

static size_t column_length(size_t i, size_t capacity)
{
    return (size_t)aa_align((int64_t)(COLUMNS[i].item_size * items_in(i, capacity)), sizeof(int64_t));
}

static bool grow_rows(batch_t *batch, size_t capacity)
{
    size_t length = 0;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
    {
        length += column_length(i, capacity);
    }
    uint8_t *rows = malloc(length);
    if (rows == NULL)
    {
        return false;
    }

    uint8_t *column = rows;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
    {
        if (batch->rows != NULL)
        {
            memcpy(column, column_at(&batch->columns, i), COLUMNS[i].item_size * items_in(i, batch->columns.count));
        }
        memcpy((uint8_t *)&batch->columns + COLUMNS[i].field, &column, sizeof(column));
        column += column_length(i, capacity);
    }
    free(batch->rows);
    batch->rows = rows;
    batch->row_capacity = capacity;
    return true;
}

static bool reserve_row(batch_t *batch)
{
    return batch->columns.count < batch->row_capacity || grow_rows(batch, batch->row_capacity * 2);
}

static bool reserve_data(batch_t *batch, size_t length)
{
    if (length <= batch->data_capacity)
    {
        return true;
    }
    size_t capacity = batch->data_capacity < BYTES_MIN ? BYTES_MIN : batch->data_capacity;
    while (capacity < length)
    {
        capacity *= 2;
    }
    uint8_t *data = realloc(batch->data, capacity);
    if (data == NULL)
    {
        return false;
    }
    batch->data = data;
    batch->columns.data = data;
    batch->data_capacity = capacity;
    return true;
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
    if (batch == NULL)
    {
        return NULL;
    }
    if (!grow_rows(batch, ROWS_MIN) || !reserve_data(batch, BYTES_MIN))
    {
        aa_batch_release(&batch->columns);
        return NULL;
    }
    aa_batch_clear(&batch->columns);
    return &batch->columns;
}

void aa_batch_clear(aa_batch_t *columns)
{
    batch_t *batch = (batch_t *)columns;
    for (size_t i = 0; i < batch->share_count; i++)
    {
        aa_image_release(batch->shares[i].image);
    }
    batch->share_count = 0;
    batch->committed_shares = 0;
    columns->count = 0;
    columns->nbytes = 0;
    columns->fragments = 0;
    if (batch->rows != NULL)
    {
        ((int32_t *)columns->offsets)[0] = 0;
    }
}

void aa_batch_release(aa_batch_t *columns)
{
    if (columns != NULL)
    {
        batch_t *batch = (batch_t *)columns;
        aa_batch_clear(columns);
        free(batch->data);
        free(batch->rows);
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

static bool has_rows(const scan_t *scan)
{
    return scan->share.first_row < scan->batch->columns.count;
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
    const aa_batch_t *columns = &scan->batch->columns;
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
    if (columns->count > 0 && columns->nbytes + before + payload_length > scan->max_bytes)
    {
        scan->is_full = true;
        return AA_OK;
    }
    if (!reserve_row(scan->batch) || !reserve_data(scan->batch, columns->nbytes + before + payload_length))
    {
        return out_of_memory(scan->error);
    }
    memcpy(scan->batch->data + columns->nbytes + before, frame->header + 1, payload_length);
    message->copied += payload_length;
    message->fragments++;
    scan->batch->columns.fragments++;
    return AA_OK;
}

/* copy_fragment made sure of the row. */
static void add_row(scan_t *scan, const aa_read_frame_t *last)
{
    batch_t *batch = scan->batch;
    aa_batch_t *columns = &batch->columns;
    const message_t *message = &scan->message;
    const aa_log_t *log = scan->image->log;
    const size_t length = message->kept + message->copied;
    if (!has_rows(scan))
    {
        aa_image_advance(scan->image, scan->settled);
    }
    if (message->kept > 0)
    {
        memcpy(batch->data + columns->nbytes, scan->image->builder.data, message->kept);
    }

    const size_t row = columns->count++;
    columns->nbytes += length;
    ((int32_t *)columns->offsets)[row + 1] = (int32_t)columns->nbytes;
    ((int32_t *)columns->session_ids)[row] = last->header->session_id;
    ((int64_t *)columns->stream_positions)[row] = last->next_position;
    ((int64_t *)columns->reserved_values)[row] = last->header->reserved_value;
    ((int32_t *)columns->term_ids)[row] = aa_log_term_id(log, message->first_position);
    ((int32_t *)columns->term_offsets)[row] = aa_log_term_offset(log, message->first_position);
    ((int32_t *)columns->frame_lengths)[row] = (int32_t)length + AA_FRAME_HEADER_LENGTH;
    ((int32_t *)columns->initial_term_ids)[row] = log->info.initial_term_id;
    ((int32_t *)columns->stream_ids)[row] = last->header->stream_id;
    ((int16_t *)columns->types)[row] = last->header->type;
    ((uint8_t *)columns->flags)[row] = last->flags | AA_FRAME_BEGIN;
    ((uint8_t *)columns->versions)[row] = last->header->version;
    ((size_t *)columns->fragment_ends)[row] = columns->fragments;

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
        scan->batch->columns.fragments++;
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
        scan->batch->columns.fragments -= message->fragments;
        return AA_OK;
    }

    if (!message->continues_builder)
    {
        aa_builder_reset(builder);
        builder->first_position = message->first_position;
    }
    const uint8_t *copied = scan->batch->data + scan->batch->columns.nbytes + message->kept;
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
    scan->share = (share_t){.image = image, .epoch = image->epoch, .first_row = scan->batch->columns.count};
    return AA_OK;
}

static int64_t smallest(int64_t a, int64_t b, int64_t c)
{
    const int64_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
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
    const int64_t end = smallest(
        scan->cursor + scan->image->log->info.term_length, aa_log_max_possible_position(scan->image->log),
        scan->limit_position);
    while (result == AA_OK && !scan->is_full && scan->cursor < end && batch->columns.fragments < scan->fragment_limit &&
           batch->columns.count < scan->message_limit)
    {
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
        scan->share.end_row = batch->columns.count;
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

static scan_t begin_scan(aa_batch_t *columns, size_t fragment_limit, size_t max_bytes, aa_error_t *error)
{
    aa_batch_clear(columns);
    return (scan_t){
        .batch = (batch_t *)columns,
        .fragment_limit = fragment_limit,
        .message_limit = SIZE_MAX,
        .max_bytes = max_bytes < BYTES_MAX ? max_bytes : BYTES_MAX,
        .limit_position = INT64_MAX,
        .error = error,
    };
}

int aa_batch_scan(
    aa_batch_t *columns, aa_image_t *const *images, size_t image_count, size_t start, size_t fragment_limit,
    size_t message_limit, size_t max_bytes, aa_error_t *error)
{
    scan_t scan = begin_scan(columns, fragment_limit, max_bytes, error);
    scan.message_limit = message_limit;
    int result = AA_OK;
    for (size_t i = 0; i < image_count && result == AA_OK && !scan.is_full; i++)
    {
        scan.image = images[(start + i) % image_count];
        if (columns->fragments >= fragment_limit || columns->count >= message_limit)
        {
            break;
        }
        if (!aa_image_is_closed(scan.image))
        {
            result = scan_image(&scan);
        }
    }
    return result;
}

int aa_batch_scan_image(
    aa_batch_t *columns, aa_image_t *image, int64_t limit_position, size_t fragment_limit, size_t max_bytes,
    aa_error_t *error)
{
    scan_t scan = begin_scan(columns, fragment_limit, max_bytes, error);
    scan.image = image;
    scan.limit_position = limit_position;
    return aa_image_is_closed(image) ? AA_OK : scan_image(&scan);
}

static void commit_share(const aa_batch_t *columns, const share_t *share, size_t count)
{
    if (share->epoch == share->image->epoch)
    {
        aa_image_advance(
            share->image, count < share->end_row ? columns->stream_positions[count - 1] : share->end_position);
    }
}

void aa_batch_commit(aa_batch_t *columns, size_t count)
{
    batch_t *batch = (batch_t *)columns;
    count = count < columns->count ? count : columns->count;
    for (size_t i = batch->committed_shares; i < batch->share_count && batch->shares[i].first_row < count; i++)
    {
        commit_share(columns, &batch->shares[i], count);
        if (batch->shares[i].end_row <= count)
        {
            batch->committed_shares = i + 1;
        }
    }
}

void aa_batch_copy_columns(const aa_batch_t *columns, uint8_t *out)
{
    for (size_t i = 0; i < COPIED_COLUMN_COUNT; i++)
    {
        const size_t length = COLUMNS[i].item_size * items_in(i, columns->count);
        memcpy(out, column_at(columns, i), length);
        out += length;
    }
}
