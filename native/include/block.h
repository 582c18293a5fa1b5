/* Blocks: whole frames of an image as they lie in the log, without a copy. */
#ifndef AA_BLOCK_H
#define AA_BLOCK_H

#include "image.h"

typedef struct
{
    int64_t log_offset;
    int64_t position;
    int32_t length;
    int32_t term_id;
    int32_t frame_count;
    int32_t payload_length;
} aa_block_t;

int aa_block_scan(aa_image_t *image, size_t limit, aa_block_t *block, aa_error_t *error);
void aa_block_commit(aa_image_t *image, const aa_block_t *block);
int aa_block_index(const aa_image_t *image, const aa_block_t *block, int32_t *begins, int32_t *ends, aa_error_t *error);

#endif
