/* What Publication.publish returns: a coroutine that is done at once where the offer is taken. */
#ifndef AA_PUBLISHING_H
#define AA_PUBLISHING_H

#include "publication_path.h"

/* reserved_value and timeout may be NULL. */
PyObject *
aa_publishing_create(aa_publication_path_t *path, PyObject *data, PyObject *reserved_value, PyObject *timeout);

#endif
