#include "batch_path.h"

#include "header.h"
#include "pin.h"

typedef struct
{
    PyObject_HEAD;
    const aa_state_t *state;
    aa_received_t *received;
} batch_t;

PyObject *aa_batch_path_new(PyTypeObject *type, aa_received_t *received)
{
    batch_t *self = (batch_t *)type->tp_alloc(type, 0);
    if (self == NULL)
    {
        aa_received_release(received);
        return NULL;
    }
    self->state = aa_module_state_of(type);
    self->received = received;
    return (PyObject *)self;
}

const aa_received_t *aa_batch_path_received(PyObject *batch)
{
    return ((batch_t *)batch)->received;
}

static PyObject *batch_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    PyErr_Format(PyExc_TypeError, "a %s comes from reading", type->tp_name);
    return NULL;
}

static void batch_dealloc(batch_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    aa_received_release(self->received);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *payload_at(const aa_received_t *received, size_t i)
{
    const int32_t begin = received->offsets[i];
    return PyBytes_FromStringAndSize((const char *)received->data + begin, received->offsets[i + 1] - begin);
}

/* --- a sequence of payloads ------------------------------------------------------------------------------ */

typedef struct
{
    PyObject_HEAD;
    aa_received_t *received;
    size_t next;
} batch_iterator_t;

static PyObject *batch_iter(batch_t *self)
{
    batch_iterator_t *iterator = PyObject_New(batch_iterator_t, (PyTypeObject *)self->state->batch_iterator_type);
    if (iterator != NULL)
    {
        iterator->received = aa_received_reference(self->received);
        iterator->next = 0;
    }
    return (PyObject *)iterator;
}

static PyObject *iterator_next(batch_iterator_t *self)
{
    return self->next < self->received->count ? payload_at(self->received, self->next++) : NULL;
}

static PyObject *iterator_length_hint(batch_iterator_t *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSize_t(self->received->count - self->next);
}

static void iterator_dealloc(batch_iterator_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    aa_received_release(self->received);
    type->tp_free(self);
    Py_DECREF(type);
}

static Py_ssize_t batch_length(batch_t *self)
{
    return (Py_ssize_t)self->received->count;
}

static PyObject *slice_of(const batch_t *self, PyObject *slice)
{
    Py_ssize_t begin, end, step;
    if (PySlice_Unpack(slice, &begin, &end, &step) < 0)
    {
        return NULL;
    }
    const Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)self->received->count, &begin, &end, step);
    PyObject *payloads = PyList_New(count);
    for (Py_ssize_t i = 0; payloads != NULL && i < count; i++)
    {
        PyObject *payload = payload_at(self->received, (size_t)(begin + i * step));
        if (payload == NULL)
        {
            Py_CLEAR(payloads);
        }
        else
        {
            PyList_SET_ITEM(payloads, i, payload);
        }
    }
    return payloads;
}

static PyObject *batch_item(batch_t *self, PyObject *key)
{
    if (PySlice_Check(key))
    {
        return slice_of(self, key);
    }
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
    {
        return NULL;
    }
    const Py_ssize_t count = (Py_ssize_t)self->received->count;
    index += index < 0 ? count : 0;
    if (index < 0 || index >= count)
    {
        PyErr_SetString(PyExc_IndexError, "message index out of range");
        return NULL;
    }
    return payload_at(self->received, (size_t)index);
}

/* --- columns --------------------------------------------------------------------------------------------- */

static PyObject *batch_nbytes(batch_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(self->received->nbytes);
}

static PyObject *batch_payload_length(batch_t *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(self->received->payload_length);
}

static PyObject *batch_buffer(batch_t *self, void *Py_UNUSED(closure))
{
    aa_received_t *received = self->received;
    return aa_pin_view(
        self->state, &AA_HOLDING_RECEIVED, received, received->data, (Py_ssize_t)received->nbytes, 1, "B");
}

static PyObject *batch_offsets(batch_t *self, void *Py_UNUSED(closure))
{
    aa_received_t *received = self->received;
    return aa_pin_view(
        self->state, &AA_HOLDING_RECEIVED, received, received->offsets, (Py_ssize_t)received->count + 1,
        sizeof(int32_t), "i");
}

static PyObject *batch_column(batch_t *self, PyObject *args)
{
    Py_ssize_t field, size;
    if (!PyArg_ParseTuple(args, "nn:_column", &field, &size))
    {
        return NULL;
    }
    if (field < 0 || size < 0 || (size_t)field + (size_t)size > sizeof(aa_row_t))
    {
        PyErr_SetString(PyExc_ValueError, "no such field of a row");
        return NULL;
    }
    PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)self->received->count * size);
    if (column != NULL)
    {
        aa_received_copy_column(self->received, (size_t)field, (size_t)size, (uint8_t *)PyBytes_AS_STRING(column));
    }
    return column;
}

static PyObject *batch_header(batch_t *self, PyObject *key)
{
    const size_t index = PyLong_AsSize_t(key);
    if (index >= self->received->count)
    {
        if (!PyErr_Occurred())
        {
            PyErr_SetString(PyExc_IndexError, "message index out of range");
        }
        return NULL;
    }
    return aa_header_new(self->state, &self->received->rows[index]);
}

/* --- types ----------------------------------------------------------------------------------------------- */

static PyMethodDef iterator_methods[] = {
    {"__length_hint__", (PyCFunction)iterator_length_hint, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot iterator_slots[] = {
    {Py_tp_dealloc, iterator_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, iterator_next},
    {Py_tp_methods, iterator_methods},
    {0, NULL},
};

static PyType_Spec iterator_spec = {
    .name = "aeron_async._speedups.BatchIterator",
    .basicsize = sizeof(batch_iterator_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iterator_slots,
};

static PyGetSetDef batch_properties[] = {
    {"nbytes", (getter)batch_nbytes, NULL, "Payload bytes of all messages together.", NULL},
    {"buffer", (getter)batch_buffer, NULL, "All payloads back to back, as uint8.", NULL},
    {"offsets", (getter)batch_offsets, NULL,
     "Where each payload starts in `buffer`, in bytes, and where the last ends: int32, n + 1 entries.", NULL},
    {"_payload_length", (getter)batch_payload_length, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef batch_methods[] = {
    {"_column", (PyCFunction)batch_column, METH_VARARGS, NULL},
    {"_header", (PyCFunction)batch_header, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_doc, "What a batch is made of, over messages that were taken from a native batch."},
    {Py_tp_new, batch_new},
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_iter, batch_iter},
    {Py_sq_length, batch_length},
    {Py_mp_length, batch_length},
    {Py_mp_subscript, batch_item},
    {Py_tp_getset, batch_properties},
    {Py_tp_methods, batch_methods},
    {0, NULL},
};

static PyType_Spec batch_spec = {
    .name = "aeron_async._speedups.BatchPath",
    .basicsize = sizeof(batch_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = batch_slots,
};

int aa_batch_path_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->batch_iterator_type = (PyObject *)aa_module_make_type(module, &iterator_spec);
    state->batch_path_type = (PyObject *)aa_module_make_type(module, &batch_spec);
    return state->batch_iterator_type == NULL || state->batch_path_type == NULL
               ? -1
               : PyModule_AddType(module, (PyTypeObject *)state->batch_path_type);
}
