#include "reader_path.h"

#include "batch_path.h"
#include "header.h"
#include "payload_view.h"

/* What an iteration reads ahead of its caller. */
#define AHEAD_MESSAGES 256
#define AHEAD_BYTES (256 * 1024)

/* A scan that is likely to copy more gives up the GIL. */
#define LONG_SCAN (256 * 1024)

/* --- life ------------------------------------------------------------------------------------------------ */

static PyObject *reader_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    aa_reader_path_t *self = (aa_reader_path_t *)type->tp_alloc(type, 0);
    if (self != NULL)
    {
        self->state = aa_module_state_of(type);
        self->batch = aa_batch_create();
        if (self->batch == NULL)
        {
            Py_DECREF(self);
            PyErr_SetString(PyExc_MemoryError, "no memory for a batch");
            return NULL;
        }
    }
    return (PyObject *)self;
}

static int reader_init(aa_reader_path_t *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"batch_type", NULL};
    PyObject *batch_type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:ReaderPath", names, &PyType_Type, &batch_type))
    {
        return -1;
    }
    if (!PyType_IsSubtype((PyTypeObject *)batch_type, (PyTypeObject *)self->state->batch_path_type))
    {
        PyErr_SetString(PyExc_TypeError, "batch_type is no subclass of BatchPath");
        return -1;
    }
    Py_XSETREF(self->batch_type, Py_NewRef(batch_type));
    return 0;
}

static int reader_traverse(aa_reader_path_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->batch_type);
    Py_VISIT(self->owner);
    Py_VISIT(self->ahead_source);
    Py_VISIT(self->payload_view);
    Py_VISIT(self->header);
    return 0;
}

static int reader_clear(aa_reader_path_t *self)
{
    Py_CLEAR(self->batch_type);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->ahead_source);
    Py_CLEAR(self->payload_view);
    Py_CLEAR(self->header);
    return 0;
}

static void reader_dealloc(aa_reader_path_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    aa_batch_release(self->batch);
    type->tp_free(self);
    Py_DECREF(type);
}

/* --- the rare cases, in Python --------------------------------------------------------------------------- */

/* Calls a method that raises; -1. */
static int raise_by(aa_reader_path_t *self, PyObject *method)
{
    PyObject *result = PyObject_CallMethodNoArgs((PyObject *)self, method);
    if (result != NULL)
    {
        Py_DECREF(result);
        PyErr_Format(PyExc_SystemError, "%U() has raised nothing", method);
    }
    return -1;
}

int aa_reader_path_refuse(aa_reader_path_t *self)
{
    return raise_by(self, self->state->str_refuse);
}

int aa_reader_path_check_silence(aa_reader_path_t *self, PyObject *source, const aa_images_t *images)
{
    /* What can be read is not closed. */
    if (images->count > 1 || (images->count == 1 && !aa_image_is_closed(images->images[0])))
    {
        return 0;
    }
    PyObject *result = PyObject_CallMethodOneArg((PyObject *)self, self->state->str_check_silence, source);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* --- scans ----------------------------------------------------------------------------------------------- */

static void drop_ahead(aa_reader_path_t *self)
{
    aa_batch_clear(self->batch);
    Py_CLEAR(self->ahead_source);
}

static size_t next_start(aa_reader_path_t *self, size_t count)
{
    if (count < 2)
    {
        return 0;
    }
    self->start = (self->start + 1) % count;
    return self->start;
}

int aa_reader_path_scan(
    aa_reader_path_t *self, const aa_images_t *images, size_t fragments, size_t messages, size_t max_bytes)
{
    Py_CLEAR(self->ahead_source);
    const size_t start = next_start(self, images->count);
    int code;
    if (max_bytes > LONG_SCAN && self->batch->messages->nbytes > LONG_SCAN)
    {
        /* The images may be exchanged for others meanwhile. */
        const aa_images_t kept = {Py_NewRef(images->handles), images->images, images->count};
        Py_BEGIN_ALLOW_THREADS code =
            aa_batch_scan(self->batch, kept.images, kept.count, start, fragments, messages, max_bytes, &self->error);
        Py_END_ALLOW_THREADS Py_DECREF(kept.handles);
    }
    else
    {
        code = aa_batch_scan(
            self->batch, images->images, images->count, start, fragments, messages, max_bytes, &self->error);
    }
    return code != AA_OK && self->batch->count == 0 ? raise_by(self, self->state->str_fail) : 0;
}

static PyObject *take_batch(aa_reader_path_t *self)
{
    aa_received_t *received = aa_batch_take(self->batch);
    if (received == NULL)
    {
        PyErr_SetString(PyExc_MemoryError, "no memory for a batch");
        return NULL;
    }
    return aa_batch_path_new((PyTypeObject *)self->batch_type, received);
}

PyObject *aa_reader_path_read_batch(
    aa_reader_path_t *self, PyObject *source, const aa_images_t *images, size_t limit, size_t max_bytes)
{
    if (aa_reader_path_scan(self, images, SIZE_MAX, limit, max_bytes) < 0)
    {
        return NULL;
    }
    PyObject *batch = take_batch(self);
    if (batch != NULL)
    {
        aa_batch_commit(self->batch, self->batch->count);
    }
    const bool is_empty = self->batch->count == 0;
    aa_batch_clear(self->batch);
    if (batch != NULL && is_empty && aa_reader_path_check_silence(self, source, images) < 0)
    {
        Py_CLEAR(batch);
    }
    return batch;
}

Py_ssize_t aa_reader_path_hand_out(aa_reader_path_t *self, PyObject *handler)
{
    aa_batch_t *batch = self->batch;
    aa_received_t *received = batch->messages;
    const size_t count = batch->count;
    const Py_ssize_t fragments = (Py_ssize_t)batch->fragments;
    size_t taken = 0;
    bool is_good = true;
    while (is_good && taken < count)
    {
        const size_t i = taken++;
        const int32_t begin = received->offsets[i];
        PyObject *result = NULL;
        if (aa_payload_view_set(
                self->state, &self->payload_view, received->data + begin, received->offsets[i + 1] - begin) &&
            aa_header_set(self->state, &self->header, &received->rows[i]))
        {
            PyObject *arguments[] = {NULL, self->payload_view, self->header};
            result = PyObject_Vectorcall(handler, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        }
        is_good = aa_payload_view_end(self->state, &self->payload_view, received) && result != NULL;
        Py_XDECREF(result);
    }
    if (self->payload_view != NULL)
    {
        aa_payload_view_rest(self->payload_view);
    }
    aa_batch_commit(batch, taken);
    aa_batch_clear(batch);
    return is_good ? fragments : -1;
}

/* --- reading ahead --------------------------------------------------------------------------------------- */

int aa_reader_path_next_ahead(aa_reader_path_t *self, PyObject *source, const aa_images_t *images)
{
    if (self->ahead_source == source)
    {
        return 1;
    }
    if (aa_reader_path_scan(self, images, SIZE_MAX, AHEAD_MESSAGES, AHEAD_BYTES) < 0)
    {
        return -1;
    }
    if (self->batch->count == 0)
    {
        aa_batch_clear(self->batch);
        return 0;
    }
    self->ahead_source = Py_NewRef(source);
    self->ahead_index = 0;
    return 1;
}

void aa_reader_path_advance(aa_reader_path_t *self)
{
    aa_batch_commit(self->batch, ++self->ahead_index);
    if (self->ahead_index == self->batch->count)
    {
        drop_ahead(self);
    }
}

/* --- methods --------------------------------------------------------------------------------------------- */

static PyObject *reader_claim(aa_reader_path_t *self, PyObject *owner)
{
    if (aa_reader_path_claim(self, owner) < 0)
    {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *reader_release(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    aa_reader_path_release(self);
    Py_RETURN_NONE;
}

static PyObject *reader_drop_ahead(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    drop_ahead(self);
    Py_RETURN_NONE;
}

static PyObject *reader_has_ahead(aa_reader_path_t *self, PyObject *source)
{
    return PyBool_FromLong(self->ahead_source == source);
}

static PyObject *reader_next_start(aa_reader_path_t *self, PyObject *argument)
{
    const size_t count = PyLong_AsSize_t(argument);
    return count == (size_t)-1 && PyErr_Occurred() ? NULL : PyLong_FromSize_t(next_start(self, count));
}

static PyObject *reader_take_batch(aa_reader_path_t *self, PyObject *Py_UNUSED(ignored))
{
    return take_batch(self);
}

static PyObject *reader_batch_address(aa_reader_path_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(self->batch);
}

static PyObject *reader_error_address(aa_reader_path_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(&self->error);
}

static PyGetSetDef reader_properties[] = {
    {"_batch_address", (getter)reader_batch_address, NULL, NULL, NULL},
    {"_error_address", (getter)reader_error_address, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef reader_methods[] = {
    {"claim", (PyCFunction)reader_claim, METH_O, NULL},
    {"release", (PyCFunction)reader_release, METH_NOARGS, NULL},
    {"drop_ahead", (PyCFunction)reader_drop_ahead, METH_NOARGS, NULL},
    {"has_ahead", (PyCFunction)reader_has_ahead, METH_O, NULL},
    {"next_start", (PyCFunction)reader_next_start, METH_O, NULL},
    {"take_batch", (PyCFunction)reader_take_batch, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "What all the ways to read share: the native batch, who reads, the turn among the images, the "
                "read-ahead."},
    {Py_tp_new, reader_new},
    {Py_tp_init, reader_init},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_getset, reader_properties},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "aeron_async._speedups.ReaderPath",
    .basicsize = sizeof(aa_reader_path_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

int aa_reader_path_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->reader_path_type = (PyObject *)aa_module_make_type(module, &reader_spec);
    return state->reader_path_type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)state->reader_path_type);
}
