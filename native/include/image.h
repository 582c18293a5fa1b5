/* Images: one publisher's stream as a subscription sees it, with its position and the builder of its next message. */
#ifndef AA_IMAGE_H
#define AA_IMAGE_H

#include "cnc.h"
#include "frame.h"
#include "log_buffer.h"

/* The beginning of a message whose rest has not arrived: fragments that the image's position is past already. */
typedef struct
{
    uint8_t *data;
    size_t length;
    size_t capacity;
    bool is_active;
    int64_t first_position; /* of the first fragment */
    int64_t next_position;  /* where the next fragment must be */
} aa_builder_t;

typedef struct aa_image
{
    aa_references_t references;
    aa_log_t *log;
    aa_cnc_t *cnc;
    _Atomic int64_t *position; /* the subscriber position counter */
    int64_t join_position;
    uint64_t epoch; /* counts reads, so that a batch knows whether it holds the last one */
    aa_builder_t builder;

    _Atomic bool is_closed;
    int64_t last_position; /* these three are written before is_closed */
    int64_t last_end_of_stream_position;
    bool last_is_publication_revoked;
} aa_image_t;

int aa_image_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t subscriber_position_counter_id, aa_image_t **image, aa_error_t *error);
aa_image_t *aa_image_reference(aa_image_t *image);
void aa_image_release(aa_image_t *image);
void aa_image_close(aa_image_t *image);
int64_t aa_image_join_position(const aa_image_t *image);
bool aa_image_is_end_of_stream(const aa_image_t *image);
int64_t aa_image_end_of_stream_position(const aa_image_t *image);
int32_t aa_image_active_transport_count(const aa_image_t *image);
bool aa_image_is_publication_revoked(const aa_image_t *image);

/* --- the path of every read ------------------------------------------------------------------------------ */

/* False without memory. */
bool aa_builder_append(aa_builder_t *builder, const uint8_t *data, size_t length);

/* Keeps the memory. */
static inline void aa_builder_reset(aa_builder_t *builder)
{
    builder->length = 0;
    builder->is_active = false;
}

static inline int64_t aa_image_current_position(const aa_image_t *image)
{
    return atomic_load_explicit(image->position, memory_order_acquire);
}

/* Acquire pairs with the release in close: whoever sees it closed sees the last values. */
static inline bool aa_image_is_closed(const aa_image_t *image)
{
    return atomic_load_explicit(&image->is_closed, memory_order_acquire);
}

static inline int64_t aa_image_position(const aa_image_t *image)
{
    return aa_image_is_closed(image) ? image->last_position : aa_image_current_position(image);
}

/* Whether the position lies within a message, whose beginning is in the builder. */
static inline bool aa_image_is_within_message(const aa_image_t *image)
{
    return image->builder.is_active && image->builder.next_position == aa_image_position(image);
}

/* Whether a scan would find something: a frame at the position, or that the position cannot be true. From any thread.
 */
static inline bool aa_image_has_frame(const aa_image_t *image)
{
    const int64_t position = aa_image_current_position(image);
    if (!aa_log_is_position_valid(image->log, position))
    {
        return true;
    }
    return position < aa_log_max_possible_position(image->log) &&
           atomic_load_explicit(&aa_log_frame_at(image->log, position)->length, memory_order_acquire) > 0;
}

/* AA_CORRUPT. */
int aa_image_refuse_position(const aa_image_t *image, int64_t position, aa_error_t *error);

/* Where reading goes on. What earlier reads found and nobody committed cannot be committed any more, and a builder that
 * the position has left behind is reset. AA_OK, AA_CORRUPT. */
static inline int aa_image_begin_read(aa_image_t *image, int64_t *position, aa_error_t *error)
{
    *position = aa_image_position(image);
    if (!aa_log_is_position_valid(image->log, *position))
    {
        return aa_image_refuse_position(image, *position, error);
    }
    if (!aa_image_is_within_message(image))
    {
        aa_builder_reset(&image->builder);
    }
    image->epoch++;
    return AA_OK;
}

/* The message in one frame that lies at a position before the end of the stream; false where there is nothing or
 * something else, which a scan tells. */
static inline bool aa_image_whole_message(const aa_image_t *image, int64_t position, aa_read_frame_t *frame)
{
    const aa_log_t *log = image->log;
    return aa_frame_read(log, position, frame, NULL) == AA_OK && !frame->is_padding &&
           (frame->flags & AA_FRAME_WHOLE) == AA_FRAME_WHOLE;
}

/* Moves the position forwards; does nothing where it is there already, or after close. */
static inline void aa_image_advance(aa_image_t *image, int64_t position)
{
    if (!aa_image_is_closed(image) && position > aa_image_current_position(image))
    {
        /* Release: the driver may clean and reuse what lies before, so all reads of it come first. */
        atomic_store_explicit(image->position, position, memory_order_release);
    }
}

#endif
