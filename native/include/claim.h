/* Claims: frames that are reserved in a log and filled in place. */
#ifndef AA_CLAIM_H
#define AA_CLAIM_H

#include "publication.h"

typedef struct aa_claim aa_claim_t;

int64_t aa_publication_try_claim(aa_publication_t *publication, size_t length, aa_claim_t **claim);
void aa_claim_release(aa_claim_t *claim);
uint8_t *aa_claim_data(aa_claim_t *claim);
int aa_claim_commit(aa_claim_t *claim, uint8_t flags, int64_t reserved_value);
int aa_claim_abort(aa_claim_t *claim);

#endif
