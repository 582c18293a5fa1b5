/* Batches: whole messages copied out of images. */
#ifndef AA_BATCH_H
#define AA_BATCH_H

#include "image.h"
#include "received.h"

typedef struct
{
    size_t count;
    size_t fragments;
    aa_received_t *messages;
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
aa_received_t *aa_batch_take(aa_batch_t *batch);
void aa_batch_clear(aa_batch_t *batch);

#endif
