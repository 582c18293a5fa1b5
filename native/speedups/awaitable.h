/* Awaitables that are done at once where they can be, and leave the rest to a Python coroutine where they cannot. They
 * count as coroutines: send, throw, close, and no work before they are awaited. */
#ifndef AA_AWAITABLE_H
#define AA_AWAITABLE_H

#include "module.h"

#include <stdbool.h>

typedef struct aa_awaitable aa_awaitable_t;

typedef struct
{
    const char *name;
    const char *qualified_name;
    /* What it comes to; NULL with an exception, or without one where it has to wait. */
    PyObject *(*start)(aa_awaitable_t *self);
    /* The coroutine that it is left to where it has to wait. */
    PyObject *(*create_rest)(aa_awaitable_t *self);
} aa_awaitable_kind_t;

/* Types of awaitables begin with it. */
struct aa_awaitable
{
    PyObject_HEAD;
    const aa_state_t *state;
    const aa_awaitable_kind_t *kind;
    bool is_started;
    bool is_running; /* the coroutine is in the middle of a step */
    PyObject *rest;
    PyObject **stop; /* what it ends with, kept by whoever makes one after the other of these */
};

/* An object of a type of awaitables, not yet tracked; NULL with an exception. Who makes one after the other of them
 * keeps the memory of one in *spare. */
void *aa_awaitable_allocate(PyTypeObject *type, void **spare);
/* The two ends of tp_dealloc. Not 0 where it lives on. */
int aa_awaitable_begin_deallocation(aa_awaitable_t *self);
void aa_awaitable_free(aa_awaitable_t *self, void **spare); /* which then has a reference to the type */
/* NULL is allowed. */
void aa_awaitable_free_spare(void *spare);

void aa_awaitable_init(aa_awaitable_t *self, const aa_state_t *state, const aa_awaitable_kind_t *kind, PyObject **stop);
int aa_awaitable_traverse(aa_awaitable_t *self, visitproc visit, void *arg);
void aa_awaitable_clear(aa_awaitable_t *self);
/* Warns where nobody has awaited it. */
void aa_awaitable_finalize(aa_awaitable_t *self);

/* The slots and the tables of a type. */
PyObject *aa_awaitable_await(PyObject *self); /* refuses a second await beside the first */
PyObject *aa_awaitable_next(aa_awaitable_t *self);
PySendResult aa_awaitable_step(aa_awaitable_t *self, PyObject *sent, PyObject **value);
extern PyMethodDef aa_awaitable_methods[];
extern PyGetSetDef aa_awaitable_attributes[];

#endif
