/* A file mapped whole, shared and writable. */
#ifndef AA_MAPPING_H
#define AA_MAPPING_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct
{
    uint8_t *address; /* NULL for an empty file */
    size_t length;
} aa_mapping_t;

/* AA_OK, AA_NOT_READY where there is no such file, AA_CORRUPT where it is no regular file, AA_SYSTEM. */
int aa_mapping_open(aa_mapping_t *mapping, const char *path, aa_error_t *error);
void aa_mapping_close(aa_mapping_t *mapping);

#endif
