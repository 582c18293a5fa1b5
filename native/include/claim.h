/* Claims: frames that a publication has reserved and the caller fills in place. */
#ifndef AA_CLAIM_H
#define AA_CLAIM_H

#include "log_buffer.h"

typedef struct aa_claim
{
    aa_log_t *log;
    aa_frame_t *frame;
    int32_t frame_length;
    int32_t term_id;
    _Atomic bool is_open;
} aa_claim_t;

/* A claim of nothing yet; NULL without memory. */
aa_claim_t *aa_claim_create(aa_log_t *log);
/* frame has its header, with the negative length. */
void aa_claim_begin(aa_claim_t *claim, aa_frame_t *frame, int32_t frame_length);
void aa_claim_release(aa_claim_t *claim);
uint8_t *aa_claim_data(aa_claim_t *claim);
int aa_claim_commit(aa_claim_t *claim, uint8_t flags, int64_t reserved_value);
int aa_claim_abort(aa_claim_t *claim);

#endif
