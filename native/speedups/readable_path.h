/* The base class of aeron_async._readable.Readable: what is read, a subscription or an image. */
#ifndef AA_READABLE_PATH_H
#define AA_READABLE_PATH_H

#include "reader_path.h"

typedef struct
{
    PyObject_HEAD;
    aa_state_t *state;
    aa_reader_path_t *reader; /* NULL until it is set */
    aa_images_t images;       /* read now */
} aa_readable_path_t;

#endif
