/* Pins: what memoryviews of received messages hold, so that their memory stays and is not filled again. */
#ifndef AA_PIN_H
#define AA_PIN_H

#include "module.h"

#include "received.h"

typedef struct
{
    PyObject_HEAD;
    aa_received_t *received; /* NULL where another vouches for it */
    const void *data;
    Py_ssize_t length;
    Py_ssize_t item_size;
    const char *format;
} aa_pin_t;

/* Takes a reference to received, where it is not NULL. A new reference. */
PyObject *aa_pin_new(
    const aa_state_t *state, aa_received_t *received, const void *data, Py_ssize_t length, Py_ssize_t item_size,
    const char *format);
/* A read-only memoryview of a pin of its own. A new reference. */
PyObject *aa_pin_view(
    const aa_state_t *state, aa_received_t *received, const void *data, Py_ssize_t length, Py_ssize_t item_size,
    const char *format);

#endif
