/* The asynchronous iterations over what is read. */
#ifndef AA_ITERATION_H
#define AA_ITERATION_H

#include "readable_path.h"

typedef enum
{
    AA_ITERATION_MESSAGES,
    AA_ITERATION_PAYLOADS,
    AA_ITERATION_BATCHES,
} aa_iteration_kind_t;

/* limit and max_bytes are for batches. A new reference. */
PyObject *aa_iteration_new(aa_readable_path_t *source, aa_iteration_kind_t kind, size_t limit, size_t max_bytes);

#endif
