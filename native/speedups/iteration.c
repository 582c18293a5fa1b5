#include "iteration.h"

#include "awaitable.h"
#include "batch_path.h"
#include "read_message.h"

#include <structmember.h>

/* How much an iteration delivers before other tasks get a turn: 1 a message, and 1 a KiB. */
#define TURN 256
#define WEIGHT_BITS 10

typedef struct
{
    PyObject_HEAD;
    const aa_state_t *state;
    aa_readable_path_t *source;
    aa_reader_path_t *reader;
    aa_iteration_kind_t kind;
    size_t limit;
    size_t max_bytes;
    Py_ssize_t left; /* of its turn */
    PyObject *stop;  /* what its steps end with */
    void *spare;     /* the memory of a step, for the next one */
} iteration_t;

/* What __anext__ returns. */
typedef struct
{
    aa_awaitable_t awaitable;
    iteration_t *iteration;
} step_t;

/* --- taking ---------------------------------------------------------------------------------------------- */

static PyObject *take_batch(iteration_t *self)
{
    PyObject *batch = aa_reader_path_read_batch(
        self->reader, (PyObject *)self->source, &self->source->images, self->limit, self->max_bytes);
    if (batch == NULL)
    {
        return NULL;
    }
    const aa_received_t *received = aa_batch_path_received(batch);
    if (received->count == 0)
    {
        Py_DECREF(batch);
        return NULL;
    }
    self->left -= (Py_ssize_t)(received->count + (received->nbytes >> WEIGHT_BITS));
    return batch;
}

/* A message of a length, and what it is told by. */
static PyObject *item_of(const iteration_t *self, const void *payload, Py_ssize_t length, const aa_row_t *row)
{
    PyObject *bytes = PyBytes_FromStringAndSize(payload, length);
    return self->kind == AA_ITERATION_MESSAGES ? aa_read_message_new(self->state, bytes, row) : bytes;
}

/* The next message, where the only image has it in one frame; NULL where it is to be read ahead. */
static PyObject *take_in_place(iteration_t *self, aa_image_t *image)
{
    int64_t position;
    aa_read_frame_t frame;
    if (!aa_image_has_frame(image) || aa_image_is_closed(image) || image->builder.is_active ||
        aa_image_begin_read(image, &position, NULL) != AA_OK || !aa_image_whole_message(image, position, &frame))
    {
        return NULL;
    }
    const Py_ssize_t length = frame.length - AA_FRAME_HEADER_LENGTH;
    aa_row_t row;
    aa_row_set(&row, image->log, frame.header, frame.length, frame.next_position);
    PyObject *item = item_of(self, frame.header + 1, length, &row);
    if (item != NULL)
    {
        aa_image_advance(image, frame.next_position);
        self->left -= 1 + (length >> WEIGHT_BITS);
    }
    return item;
}

static PyObject *take_ahead(iteration_t *self)
{
    aa_reader_path_t *reader = self->reader;
    if (aa_reader_path_next_ahead(reader, (PyObject *)self->source, &self->source->images) <= 0)
    {
        return NULL;
    }
    const aa_received_t *received = reader->batch->messages;
    const size_t i = reader->ahead_index;
    const int32_t begin = received->offsets[i];
    const Py_ssize_t length = received->offsets[i + 1] - begin;
    PyObject *item = item_of(self, received->data + begin, length, &received->rows[i]);
    if (item != NULL)
    {
        aa_reader_path_advance(reader);
        self->left -= 1 + (length >> WEIGHT_BITS);
    }
    return item;
}

/* The next item; NULL with an exception, or without one where there is none now. Whoever calls it has claimed the
 * reader. */
static PyObject *take(iteration_t *self)
{
    if (self->kind == AA_ITERATION_BATCHES)
    {
        return take_batch(self);
    }
    const aa_images_t *images = &self->source->images;
    PyObject *item = NULL;
    if (images->count == 1 && self->reader->ahead_source == NULL)
    {
        item = take_in_place(self, images->images[0]);
    }
    return item != NULL || PyErr_Occurred() ? item : take_ahead(self);
}

/* --- one step -------------------------------------------------------------------------------------------- */

static PyObject *step_start(aa_awaitable_t *awaitable)
{
    iteration_t *self = ((step_t *)awaitable)->iteration;
    if (self->left <= 0 || aa_reader_path_claim(self->reader, (PyObject *)self) < 0)
    {
        return NULL;
    }
    PyObject *item = take(self);
    aa_reader_path_release(self->reader);
    return item;
}

static PyObject *step_create_rest(aa_awaitable_t *awaitable)
{
    iteration_t *self = ((step_t *)awaitable)->iteration;
    return PyObject_CallMethodOneArg((PyObject *)self->reader, self->state->str_next_of, (PyObject *)self);
}

static const aa_awaitable_kind_t STEP = {
    .name = "__anext__",
    .qualified_name = "Iteration.__anext__",
    .start = step_start,
    .create_rest = step_create_rest,
};

static PyObject *iteration_anext(iteration_t *self)
{
    step_t *step = aa_awaitable_allocate((PyTypeObject *)self->state->step_type, &self->spare);
    if (step == NULL)
    {
        return NULL;
    }
    aa_awaitable_init(&step->awaitable, self->state, &STEP, &self->stop);
    step->iteration = (iteration_t *)Py_NewRef(self);
    PyObject_GC_Track(step);
    return (PyObject *)step;
}

static int step_traverse(step_t *self, visitproc visit, void *arg)
{
    Py_VISIT(self->iteration);
    return aa_awaitable_traverse(&self->awaitable, visit, arg);
}

static int step_clear(step_t *self)
{
    aa_awaitable_clear(&self->awaitable);
    return 0;
}

static void step_dealloc(step_t *self)
{
    if (aa_awaitable_begin_deallocation(&self->awaitable) < 0)
    {
        return;
    }
    iteration_t *iteration = self->iteration;
    aa_awaitable_free(&self->awaitable, &iteration->spare);
    Py_DECREF(iteration);
}

/* --- the iteration --------------------------------------------------------------------------------------- */

PyObject *aa_iteration_new(aa_readable_path_t *source, aa_iteration_kind_t kind, size_t limit, size_t max_bytes)
{
    iteration_t *self = PyObject_GC_New(iteration_t, (PyTypeObject *)source->state->iteration_type);
    if (self != NULL)
    {
        self->state = source->state;
        self->source = (aa_readable_path_t *)Py_NewRef(source);
        self->reader = (aa_reader_path_t *)Py_NewRef(source->reader);
        self->kind = kind;
        self->limit = limit;
        self->max_bytes = max_bytes;
        self->left = TURN;
        self->stop = NULL;
        self->spare = NULL;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

static int iteration_traverse(iteration_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->source);
    Py_VISIT(self->reader);
    Py_VISIT(self->stop);
    return 0;
}

static void iteration_dealloc(iteration_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_DECREF(self->source);
    Py_DECREF(self->reader);
    Py_XDECREF(self->stop);
    aa_awaitable_free_spare(self->spare);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *iteration_take(iteration_t *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *item = take(self);
    return item == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : item;
}

static PyObject *iteration_begin_turn(iteration_t *self, PyObject *Py_UNUSED(ignored))
{
    self->left = TURN;
    /* What it delivered last need not be kept while it waits. */
    Py_CLEAR(self->stop);
    Py_RETURN_NONE;
}

static PyObject *iteration_is_turn_over(iteration_t *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->left <= 0);
}

/* --- types ----------------------------------------------------------------------------------------------- */

static PyType_Slot step_slots[] = {
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_finalize, aa_awaitable_finalize},
    {Py_tp_traverse, step_traverse},
    {Py_tp_clear, step_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, aa_awaitable_next},
    /* Not aa_awaitable_await: anext() with a default asks for it again at every step. */
    {Py_am_await, PyObject_SelfIter},
    {Py_am_send, aa_awaitable_step},
    {Py_tp_methods, aa_awaitable_methods},
    {Py_tp_getset, aa_awaitable_attributes},
    {0, NULL},
};

static PyType_Spec step_spec = {
    .name = "aeron_async._speedups.Step",
    .basicsize = sizeof(step_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = step_slots,
};

static PyMemberDef iteration_members[] = {
    {"source", T_OBJECT, offsetof(iteration_t, source), READONLY, "What it is over."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef iteration_properties[] = {
    {"is_turn_over", (getter)iteration_is_turn_over, NULL, "Whether it is the turn of other tasks.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef iteration_methods[] = {
    {"take", (PyCFunction)iteration_take, METH_NOARGS,
     "The next item, or None where there is none now; called by the one who reads."},
    {"begin_turn", (PyCFunction)iteration_begin_turn, METH_NOARGS, "Others have had theirs."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot iteration_slots[] = {
    {Py_tp_doc, "An iteration over what a source delivers; leaving it in any way loses and repeats nothing."},
    {Py_tp_dealloc, iteration_dealloc},
    {Py_tp_traverse, iteration_traverse},
    {Py_am_aiter, PyObject_SelfIter},
    {Py_am_anext, iteration_anext},
    {Py_tp_members, iteration_members},
    {Py_tp_getset, iteration_properties},
    {Py_tp_methods, iteration_methods},
    {0, NULL},
};

static PyType_Spec iteration_spec = {
    .name = "aeron_async._speedups.Iteration",
    .basicsize = sizeof(iteration_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iteration_slots,
};

int aa_iteration_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->step_type = (PyObject *)aa_module_make_type(module, &step_spec);
    state->iteration_type = (PyObject *)aa_module_make_type(module, &iteration_spec);
    return state->step_type == NULL || state->iteration_type == NULL ? -1 : 0;
}
