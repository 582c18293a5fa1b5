/* How an awaitable of ours says that it is done. */
#ifndef AA_COMPLETION_H
#define AA_COMPLETION_H

#include "module.h"

/* For tp_iternext, which `await` calls: NULL, with the StopIteration that carries value, or with an exception. Takes
 * over the reference to value.
 *
 * To make an exception costs more than all the rest of an await that need not wait. The interpreter takes the value out
 * and drops it, so the next one can be the same; one that somebody has kept, or that has come by a traceback or a
 * context, is left to them. */
PyObject *aa_completion_stop(aa_state_t *state, PyObject *value);

#endif
