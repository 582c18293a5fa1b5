#include "pin.h"

static void take_log(void *log)
{
    aa_log_reference(log);
}

static void release_log(void *log)
{
    aa_log_release(log);
}

static void take_received(void *received)
{
    aa_received_reference(received);
}

static void release_received(void *received)
{
    aa_received_release(received);
}

const aa_holding_t AA_HOLDING_LOG = {take_log, release_log};
const aa_holding_t AA_HOLDING_RECEIVED = {take_received, release_received};

void aa_pin_hold(aa_pin_t *pin, const aa_holding_t *holding, void *memory)
{
    holding->take(memory);
    pin->holding = holding;
    pin->memory = memory;
}

PyObject *aa_pin_view(
    const aa_state_t *state, const aa_holding_t *holding, void *memory, const void *data, Py_ssize_t count,
    Py_ssize_t item_size, const char *format)
{
    aa_pin_t *pin = PyObject_New(aa_pin_t, (PyTypeObject *)state->pin_type);
    if (pin == NULL)
    {
        return NULL;
    }
    pin->holding = NULL;
    pin->data = data;
    pin->count = count;
    pin->item_size = item_size;
    pin->format = format;
    if (holding != NULL)
    {
        aa_pin_hold(pin, holding, memory);
    }
    PyObject *view = PyMemoryView_FromObject((PyObject *)pin);
    Py_DECREF(pin);
    return view;
}

static void pin_dealloc(aa_pin_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->holding != NULL)
    {
        self->holding->release(self->memory);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static int pin_get_buffer(aa_pin_t *self, Py_buffer *view, int flags)
{
    const Py_ssize_t item_size = self->item_size;
    if (PyBuffer_FillInfo(view, (PyObject *)self, (void *)self->data, self->count * item_size, 1, flags) < 0)
    {
        return -1;
    }
    if (view->format != NULL)
    {
        view->format = (char *)self->format;
        view->itemsize = item_size;
    }
    if (view->shape != NULL)
    {
        view->shape = &self->count;
    }
    if (view->strides != NULL)
    {
        view->strides = &self->item_size;
    }
    return 0;
}

static PyType_Slot pin_slots[] = {
    {Py_tp_dealloc, pin_dealloc},
    {Py_bf_getbuffer, pin_get_buffer},
    {0, NULL},
};

static PyType_Spec pin_spec = {
    .name = "aeron_async._speedups.Pin",
    .basicsize = sizeof(aa_pin_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = pin_slots,
};

int aa_pin_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    state->pin_type = (PyObject *)aa_module_make_type(module, &pin_spec);
    return state->pin_type == NULL ? -1 : 0;
}
