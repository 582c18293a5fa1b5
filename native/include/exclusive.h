/* What only exclusive publications do: padding, and blocks of frames that somebody else has written. */
#ifndef AA_EXCLUSIVE_H
#define AA_EXCLUSIVE_H

#include "publication.h"

int64_t aa_publication_append_padding(aa_publication_t *publication, size_t length);
int32_t aa_publication_max_padding_length(const aa_publication_t *publication);
int64_t
aa_publication_offer_block(aa_publication_t *publication, const uint8_t *block, size_t length, aa_error_t *error);

#endif
