/* The message path of a publication: the base class of aeron_async.publication.Publication. */
#ifndef AA_PUBLICATION_PATH_H
#define AA_PUBLICATION_PATH_H

#include "module.h"
#include "payload.h"
#include "publication.h"

#include <stdbool.h>

/* A publish loop that never waits lets other tasks run after this many messages or bytes; as in _pure_publication. */
#define AA_TURN_MESSAGES 256
#define AA_TURN_BYTES (1 << 20)

typedef struct
{
    PyObject_HEAD;
    aa_publication_t *publication; /* a reference of its own; NULL before __init__ */
    aa_state_t *state;
    size_t turn_messages;
    size_t turn_bytes;
    PyObject *stop; /* what publish() ends with, and the memory of what it returns, for the next one */
    void *spare;
} aa_publication_path_t;

static inline bool aa_publication_path_is_turn_over(aa_publication_path_t *self, size_t length, size_t messages)
{
    self->turn_messages += messages;
    self->turn_bytes += length;
    if (self->turn_messages <= AA_TURN_MESSAGES && self->turn_bytes <= AA_TURN_BYTES)
    {
        return false;
    }
    self->turn_messages = self->turn_bytes = 0;
    return true;
}

/* One attempt, as aa_publication_offer. */
static inline int64_t
aa_publication_path_append(aa_publication_path_t *self, const aa_payload_t *payload, int64_t reserved_value)
{
    if (payload->length <= AA_PAYLOAD_LONG)
    {
        return aa_publication_offer(self->publication, payload->data, payload->length, reserved_value);
    }
    int64_t result;
    Py_BEGIN_ALLOW_THREADS;
    result = aa_publication_offer(self->publication, payload->data, payload->length, reserved_value);
    Py_END_ALLOW_THREADS;
    return result;
}

/* 0 and the value of a reserved_value= that may be NULL, or -1 with an exception. */
int aa_publication_path_reserved_value(PyObject *object, int64_t *value);

/* What the Python class makes of a result: an OfferResult, or NULL with an exception. */
PyObject *aa_publication_path_refused(aa_publication_path_t *self, int64_t result, size_t length);

#endif
