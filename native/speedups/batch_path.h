/* The base class of aeron_async.batch.MessageBatch: messages that were taken from a native batch. */
#ifndef AA_BATCH_PATH_H
#define AA_BATCH_PATH_H

#include "module.h"

#include "received.h"

/* A batch of the subclass `type`. Takes over the reference to received. A new reference. */
PyObject *aa_batch_path_new(PyTypeObject *type, aa_received_t *received);
/* What a batch is of: there as long as the batch is. */
const aa_received_t *aa_batch_path_received(PyObject *batch);

#endif
