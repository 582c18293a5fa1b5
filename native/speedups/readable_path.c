#include "readable_path.h"

#include "arguments.h"
#include "docstrings.h"
#include "iteration.h"

#define DEFAULT_FRAGMENT_LIMIT 10
#define DEFAULT_BATCH_LIMIT 1024
#define DEFAULT_BATCH_BYTES ((size_t)4 << 20)

/* --- life ------------------------------------------------------------------------------------------------ */

static PyObject *readable_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    aa_readable_path_t *self = (aa_readable_path_t *)type->tp_alloc(type, 0);
    if (self != NULL)
    {
        self->state = aa_module_state_of(type);
    }
    return (PyObject *)self;
}

static int readable_traverse(aa_readable_path_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->reader);
    Py_VISIT(self->images.handles);
    return 0;
}

static int readable_clear(aa_readable_path_t *self)
{
    Py_CLEAR(self->reader);
    self->images.count = 0;
    Py_CLEAR(self->images.handles);
    return 0;
}

static void readable_dealloc(aa_readable_path_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    readable_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* --- what the subclass sets ------------------------------------------------------------------------------ */

static int has_reader(const aa_readable_path_t *self)
{
    if (self->reader == NULL)
    {
        PyErr_SetString(PyExc_AttributeError, "_reader is not set");
    }
    return self->reader != NULL;
}

static PyObject *readable_reader(aa_readable_path_t *self, void *Py_UNUSED(closure))
{
    return has_reader(self) ? Py_NewRef(self->reader) : NULL;
}

static int readable_set_reader(aa_readable_path_t *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL || !PyObject_TypeCheck(value, (PyTypeObject *)self->state->reader_path_type))
    {
        PyErr_SetString(PyExc_TypeError, "_reader is a ReaderPath");
        return -1;
    }
    Py_XSETREF(self->reader, (aa_reader_path_t *)Py_NewRef(value));
    return 0;
}

static PyObject *readable_handles(aa_readable_path_t *self, void *Py_UNUSED(closure))
{
    if (self->images.handles == NULL)
    {
        PyErr_SetString(PyExc_AttributeError, "_handles is not set");
        return NULL;
    }
    return Py_NewRef(self->images.handles);
}

static int readable_set_handles(aa_readable_path_t *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL)
    {
        PyErr_SetString(PyExc_TypeError, "_handles is never deleted");
        return -1;
    }
    PyObject *address = PyObject_GetAttr(value, self->state->str_address);
    PyObject *count = address == NULL ? NULL : PyObject_GetAttr(value, self->state->str_count);
    const aa_images_t images = {
        .handles = Py_NewRef(value),
        .images = address == NULL ? NULL : PyLong_AsVoidPtr(address),
        .count = count == NULL ? 0 : PyLong_AsSize_t(count),
    };
    Py_XDECREF(address);
    Py_XDECREF(count);
    if (PyErr_Occurred())
    {
        Py_DECREF(value);
        return -1;
    }
    PyObject *before = self->images.handles;
    self->images = images;
    Py_XDECREF(before);
    return 0;
}

/* --- polls and batches ----------------------------------------------------------------------------------- */

/* A number that is not negative; 0, or -1 with an exception. NULL leaves it as it is. */
static int to_size(PyObject *argument, size_t *size)
{
    if (argument == NULL)
    {
        return 0;
    }
    PyObject *number = PyLong_CheckExact(argument) ? Py_NewRef(argument) : PyNumber_Index(argument);
    if (number == NULL)
    {
        return -1;
    }
    *size = PyLong_AsSize_t(number);
    Py_DECREF(number);
    return *size == (size_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *readable_poll(aa_readable_path_t *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values[] = {NULL, NULL};
    size_t fragment_limit = DEFAULT_FRAGMENT_LIMIT;
    const aa_signature_t signature = {
        "poll", (PyObject *const[]){self->state->str_handler, self->state->str_fragment_limit}, 2, 1, 2};
    if (aa_arguments_get(&signature, args, nargs, names, values) < 0 || to_size(values[1], &fragment_limit) < 0 ||
        !has_reader(self) || aa_reader_path_claim(self->reader, (PyObject *)self) < 0)
    {
        return NULL;
    }

    aa_reader_path_t *reader = (aa_reader_path_t *)Py_NewRef(self->reader);
    Py_ssize_t fragments = aa_reader_path_poll(reader, &self->images, values[0], fragment_limit);
    aa_reader_path_release(reader);
    if (fragments == 0 && aa_reader_path_check_silence(reader, (PyObject *)self, &self->images) < 0)
    {
        fragments = -1;
    }
    Py_DECREF(reader);
    return fragments < 0 ? NULL : PyLong_FromSsize_t(fragments);
}

static PyObject *readable_poll_batch(aa_readable_path_t *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const aa_signature_t signature = {
        "poll_batch", (PyObject *const[]){self->state->str_limit, self->state->str_max_bytes}, 1, 0, 2};
    PyObject *values[] = {NULL, NULL};
    size_t limit = DEFAULT_BATCH_LIMIT;
    size_t max_bytes = DEFAULT_BATCH_BYTES;
    if (aa_arguments_get(&signature, args, nargs, names, values) < 0 || to_size(values[0], &limit) < 0 ||
        to_size(values[1], &max_bytes) < 0 || !has_reader(self) ||
        aa_reader_path_claim(self->reader, (PyObject *)self) < 0)
    {
        return NULL;
    }
    aa_reader_path_t *reader = (aa_reader_path_t *)Py_NewRef(self->reader);
    PyObject *batch = aa_reader_path_read_batch(reader, (PyObject *)self, &self->images, limit, max_bytes);
    aa_reader_path_release(reader);
    Py_DECREF(reader);
    return batch;
}

/* --- iterations ------------------------------------------------------------------------------------------ */

static PyObject *iterate(aa_readable_path_t *self, aa_iteration_kind_t kind, size_t limit, size_t max_bytes)
{
    return has_reader(self) ? aa_iteration_new(self, kind, limit, max_bytes) : NULL;
}

static PyObject *readable_iterate_messages(aa_readable_path_t *self, PyObject *Py_UNUSED(ignored))
{
    return iterate(self, AA_ITERATION_MESSAGES, 0, 0);
}

static PyObject *readable_iterate_payloads(aa_readable_path_t *self, PyObject *Py_UNUSED(ignored))
{
    return iterate(self, AA_ITERATION_PAYLOADS, 0, 0);
}

static PyObject *readable_iterate_batches(aa_readable_path_t *self, PyObject *args)
{
    PyObject *limit_argument, *max_bytes_argument;
    size_t limit = DEFAULT_BATCH_LIMIT;
    size_t max_bytes = DEFAULT_BATCH_BYTES;
    if (!PyArg_ParseTuple(args, "OO:_iterate_batches", &limit_argument, &max_bytes_argument) ||
        to_size(limit_argument, &limit) < 0 || to_size(max_bytes_argument, &max_bytes) < 0)
    {
        return NULL;
    }
    return iterate(self, AA_ITERATION_BATCHES, limit, max_bytes);
}

/* --- the type -------------------------------------------------------------------------------------------- */

static PyGetSetDef readable_properties[] = {
    {"_reader", (getter)readable_reader, (setter)readable_set_reader, NULL, NULL},
    {"_handles", (getter)readable_handles, (setter)readable_set_handles, "The images that are read now.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef readable_methods[] = {
    {"poll", (PyCFunction)(void (*)(void))readable_poll, METH_FASTCALL | METH_KEYWORDS, AA_DOC_ReadablePath_poll},
    {"poll_batch", (PyCFunction)(void (*)(void))readable_poll_batch, METH_FASTCALL | METH_KEYWORDS,
     AA_DOC_ReadablePath_poll_batch},
    {"_iterate_messages", (PyCFunction)readable_iterate_messages, METH_NOARGS, NULL},
    {"_iterate_payloads", (PyCFunction)readable_iterate_payloads, METH_NOARGS, NULL},
    {"_iterate_batches", (PyCFunction)readable_iterate_batches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot readable_slots[] = {
    {Py_tp_doc, AA_DOC_ReadablePath},    {Py_tp_new, readable_new},
    {Py_tp_traverse, readable_traverse}, {Py_tp_clear, readable_clear},
    {Py_tp_dealloc, readable_dealloc},   {Py_tp_getset, readable_properties},
    {Py_tp_methods, readable_methods},   {0, NULL},
};

static PyType_Spec readable_spec = {
    .name = "aeron_async._speedups.ReadablePath",
    .basicsize = sizeof(aa_readable_path_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = readable_slots,
};

int aa_readable_path_add(PyObject *module)
{
    return aa_module_add_type(module, &readable_spec);
}
