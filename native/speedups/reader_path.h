/* The base class of aeron_async._reader.Reader: what all the ways to read a subscription share. */
#ifndef AA_READER_PATH_H
#define AA_READER_PATH_H

#include "module.h"

#include "batch.h"

#include <stdbool.h>

typedef struct
{
    PyObject_HEAD;
    const aa_state_t *state;
    aa_batch_t *batch;
    aa_error_t error;
    PyObject *batch_type;
    PyObject *owner; /* who reads */
    size_t start;    /* the image that was the first to be read */

    PyObject *ahead_source; /* whose iterations the rest of the batch was read ahead for, or NULL */
    size_t ahead_index;

    /* Those that handlers of polls get, again and again as long as no handler keeps them. */
    PyObject *payload_view;
    PyObject *header;
} aa_reader_path_t;

typedef struct
{
    PyObject *handles; /* keeps the images, which are images[0] to images[count - 1] */
    aa_image_t *const *images;
    size_t count;
} aa_images_t;

/* Makes `owner` the one who reads: 0, or -1 where somebody else is. */
static inline int aa_reader_path_claim(aa_reader_path_t *self, PyObject *owner);
static inline void aa_reader_path_release(aa_reader_path_t *self);

/* As the methods of the Python twin. Whoever calls them has claimed the reader. */
PyObject *aa_reader_path_read_batch(
    aa_reader_path_t *self, PyObject *source, const aa_images_t *images, size_t limit, size_t max_bytes);
/* The number of fragments, or -1. */
Py_ssize_t aa_reader_path_poll(aa_reader_path_t *self, const aa_images_t *images, PyObject *handler, size_t limit);
/* Whether there is a next message for iterations over source; -1 with an exception. */
int aa_reader_path_next_ahead(aa_reader_path_t *self, PyObject *source, const aa_images_t *images);
void aa_reader_path_advance(aa_reader_path_t *self);
int aa_reader_path_check_silence(aa_reader_path_t *self, PyObject *source, const aa_images_t *images);

/* Raises what it raises where somebody reads already. */
int aa_reader_path_refuse(aa_reader_path_t *self);

static inline int aa_reader_path_claim(aa_reader_path_t *self, PyObject *owner)
{
    if (self->owner != NULL)
    {
        return aa_reader_path_refuse(self);
    }
    self->owner = Py_NewRef(owner);
    return 0;
}

static inline void aa_reader_path_release(aa_reader_path_t *self)
{
    Py_CLEAR(self->owner);
}

#endif
