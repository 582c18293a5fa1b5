/* Pins: what memoryviews of the core's memory hold, so that it stays as long as they do. */
#ifndef AA_PIN_H
#define AA_PIN_H

#include "module.h"

#include "received.h"

/* What can be held, and how. */
typedef struct
{
    void (*take)(void *memory);
    void (*release)(void *memory);
} aa_holding_t;

extern const aa_holding_t AA_HOLDING_LOG;
extern const aa_holding_t AA_HOLDING_RECEIVED;

typedef struct
{
    PyObject_HEAD;
    const aa_holding_t *holding; /* NULL as long as somebody else vouches for the memory */
    void *memory;
    const void *data;
    Py_ssize_t count;
    Py_ssize_t item_size;
    const char *format;
} aa_pin_t;

/* A read-only memoryview of `count` items; holding may be NULL. A new reference. */
PyObject *aa_pin_view(
    const aa_state_t *state, const aa_holding_t *holding, void *memory, const void *data, Py_ssize_t count,
    Py_ssize_t item_size, const char *format);
/* Takes what had no holding. */
void aa_pin_hold(aa_pin_t *pin, const aa_holding_t *holding, void *memory);

#endif
