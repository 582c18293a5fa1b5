/* Header: what a message came with. */
#ifndef AA_HEADER_H
#define AA_HEADER_H

#include "module.h"

#include "received.h"

#include <stdbool.h>

typedef struct
{
    PyObject_HEAD;
    aa_row_t row;
} aa_header_t;

/* A new reference. */
PyObject *aa_header_new(const aa_state_t *state, const aa_row_t *row);

/* Makes *header, which may be NULL, the header of a row: the same object again unless somebody keeps it. False with an
 * exception. */
static inline bool aa_header_set(const aa_state_t *state, PyObject **header, const aa_row_t *row)
{
    if (*header != NULL && Py_REFCNT(*header) == 1)
    {
        ((aa_header_t *)*header)->row = *row;
    }
    else
    {
        Py_XSETREF(*header, aa_header_new(state, row));
    }
    return *header != NULL;
}

#endif
