/* Batches: whole messages copied out of images, in columns. */
#ifndef AA_BATCH_H
#define AA_BATCH_H

#include "image.h"

typedef struct
{
    size_t count;
    size_t nbytes;
    size_t fragments;
    const uint8_t *data;
    const int32_t *offsets;
    const int32_t *session_ids;
    const int64_t *stream_positions;
    const int64_t *reserved_values;
    const int32_t *term_ids;
    const int32_t *term_offsets;
    const int32_t *frame_lengths;
    const int32_t *initial_term_ids;
    const int32_t *stream_ids;
    const int16_t *types;
    const uint8_t *flags;
    const uint8_t *versions;
    const size_t *fragment_ends;
} aa_batch_t;

aa_batch_t *aa_batch_create(void);
void aa_batch_release(aa_batch_t *batch);
int aa_batch_scan(
    aa_batch_t *batch, aa_image_t *const *images, size_t image_count, size_t start, size_t fragment_limit,
    size_t message_limit, size_t max_bytes, aa_error_t *error);
int aa_batch_scan_image(
    aa_batch_t *batch, aa_image_t *image, int64_t limit_position, size_t fragment_limit, size_t max_bytes,
    aa_error_t *error);
void aa_batch_commit(aa_batch_t *batch, size_t count);
void aa_batch_copy_columns(const aa_batch_t *batch, uint8_t *out);
void aa_batch_clear(aa_batch_t *batch);

#endif
