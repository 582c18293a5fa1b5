#include "image.h"

#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUILDER_CAPACITY_MIN 4096

int aa_image_create(
    aa_log_t *log, aa_cnc_t *cnc, int32_t subscriber_position_counter_id, aa_image_t **image, aa_error_t *error)
{
    _Atomic int64_t *position = aa_counters_value(cnc, subscriber_position_counter_id);
    if (position == NULL)
    {
        return aa_error_set(
            error, AA_CORRUPT, "subscriber position counter %d, the largest is %d", subscriber_position_counter_id,
            aa_counters_max_id(cnc));
    }
    const int64_t join_position = atomic_load_explicit(position, memory_order_acquire);
    if (!aa_log_is_position_valid(log, join_position))
    {
        return aa_error_set(
            error, AA_CORRUPT, "join position %lld in a log of term length %d", (long long)join_position,
            log->info.term_length);
    }

    aa_image_t *created = calloc(1, sizeof(*created));
    if (created == NULL)
    {
        return aa_error_system(error, ENOMEM, "no memory for an image");
    }
    atomic_init(&created->references, 1);
    created->log = aa_log_reference(log);
    created->cnc = aa_cnc_reference(cnc);
    created->position = position;
    created->join_position = join_position;
    *image = created;
    return AA_OK;
}

aa_image_t *aa_image_reference(aa_image_t *image)
{
    aa_references_take(&image->references);
    return image;
}

void aa_image_release(aa_image_t *image)
{
    if (image != NULL && aa_references_drop(&image->references))
    {
        free(image->builder.data);
        aa_log_release(image->log);
        aa_cnc_release(image->cnc);
        free(image);
    }
}

static int64_t current_end_of_stream_position(const aa_image_t *image)
{
    return atomic_load_explicit(&image->log->metadata->end_of_stream_position, memory_order_acquire);
}

static bool is_revoked_now(const aa_image_t *image)
{
    return atomic_load_explicit(&image->log->metadata->is_publication_revoked, memory_order_acquire) != 0;
}

void aa_image_close(aa_image_t *image)
{
    if (!aa_image_is_closed(image))
    {
        image->last_position = aa_image_current_position(image);
        image->last_end_of_stream_position = current_end_of_stream_position(image);
        image->last_is_publication_revoked = is_revoked_now(image);
        atomic_store_explicit(&image->is_closed, true, memory_order_release);
    }
}

int64_t aa_image_join_position(const aa_image_t *image)
{
    return image->join_position;
}

bool aa_image_is_end_of_stream(const aa_image_t *image)
{
    return aa_image_position(image) >= aa_image_end_of_stream_position(image);
}

int64_t aa_image_end_of_stream_position(const aa_image_t *image)
{
    return aa_image_is_closed(image) ? image->last_end_of_stream_position : current_end_of_stream_position(image);
}

int32_t aa_image_active_transport_count(const aa_image_t *image)
{
    return aa_image_is_closed(image)
               ? 0
               : atomic_load_explicit(&image->log->metadata->active_transport_count, memory_order_acquire);
}

bool aa_image_is_publication_revoked(const aa_image_t *image)
{
    return aa_image_is_closed(image) ? image->last_is_publication_revoked : is_revoked_now(image);
}

int aa_image_refuse_position(const aa_image_t *image, int64_t position, aa_error_t *error)
{
    return aa_error_set(
        error, AA_CORRUPT, "subscriber position %lld, term length %d", (long long)position,
        image->log->info.term_length);
}

bool aa_builder_append(aa_builder_t *builder, const uint8_t *data, size_t length)
{
    const size_t needed = builder->length + length;
    if (needed > builder->capacity)
    {
        size_t capacity = builder->capacity < BUILDER_CAPACITY_MIN ? BUILDER_CAPACITY_MIN : builder->capacity;
        while (capacity < needed)
        {
            capacity *= 2;
        }
        uint8_t *grown = realloc(builder->data, capacity);
        if (grown == NULL)
        {
            return false;
        }
        builder->data = grown;
        builder->capacity = capacity;
    }
    if (length > 0)
    {
        memcpy(builder->data + builder->length, data, length);
    }
    builder->length = needed;
    return true;
}
