#include "publishing.h"

#include "awaitable.h"

typedef struct
{
    aa_awaitable_t awaitable;
    aa_publication_path_t *path;
    PyObject *data;
    PyObject *reserved_value; /* NULL where it was not given, as timeout */
    PyObject *timeout;
    PyObject *refusal; /* the OfferResult of the attempt, or NULL where none was made */
} publishing_t;

static PyObject *publishing_start(aa_awaitable_t *awaitable)
{
    publishing_t *self = (publishing_t *)awaitable;
    aa_publication_path_t *path = self->path;
    int64_t reserved_value;
    aa_payload_t payload;
    if (aa_publication_path_reserved_value(self->reserved_value, &reserved_value) < 0 ||
        aa_payload_get(path->state, self->data, &payload) < 0)
    {
        return NULL;
    }
    const size_t length = payload.length;
    if (aa_publication_path_is_turn_over(path, length, 1))
    {
        aa_payload_release(&payload);
        return NULL;
    }
    const int64_t result = aa_publication_path_append(path, &payload, reserved_value);
    aa_payload_release(&payload);
    if (result > 0)
    {
        return PyLong_FromLongLong(result);
    }
    self->refusal = aa_publication_path_refused(path, result, length);
    return NULL;
}

static PyObject *publishing_create_rest(aa_awaitable_t *awaitable)
{
    const publishing_t *self = (publishing_t *)awaitable;
    const aa_state_t *state = self->path->state;
    PyObject *arguments[] = {
        (PyObject *)self->path,
        self->data,
        self->reserved_value != NULL ? self->reserved_value : state->zero,
        self->timeout != NULL ? self->timeout : state->client_timeout,
        self->refusal != NULL ? self->refusal : Py_None,
    };
    return PyObject_VectorcallMethod(state->str_publish_when_possible, arguments, 5, NULL);
}

static const aa_awaitable_kind_t PUBLISHING = {
    .name = "publish",
    .qualified_name = "PublicationPath.publish",
    .start = publishing_start,
    .create_rest = publishing_create_rest,
};

PyObject *aa_publishing_create(aa_publication_path_t *path, PyObject *data, PyObject *reserved_value, PyObject *timeout)
{
    publishing_t *self = aa_awaitable_allocate((PyTypeObject *)path->state->publishing_type, &path->spare);
    if (self == NULL)
    {
        return NULL;
    }
    aa_awaitable_init(&self->awaitable, path->state, &PUBLISHING, &path->stop);
    self->path = (aa_publication_path_t *)Py_NewRef(path);
    self->data = Py_NewRef(data);
    self->reserved_value = Py_XNewRef(reserved_value);
    self->timeout = Py_XNewRef(timeout);
    self->refusal = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int publishing_traverse(publishing_t *self, visitproc visit, void *arg)
{
    Py_VISIT(self->path);
    Py_VISIT(self->data);
    Py_VISIT(self->reserved_value);
    Py_VISIT(self->timeout);
    Py_VISIT(self->refusal);
    return aa_awaitable_traverse(&self->awaitable, visit, arg);
}

/* What its steps need stays, as somebody may still make one; what leads back to it from there is cleared itself. */
static int publishing_clear(publishing_t *self)
{
    aa_awaitable_clear(&self->awaitable);
    return 0;
}

static void publishing_dealloc(publishing_t *self)
{
    if (aa_awaitable_begin_deallocation(&self->awaitable) < 0)
    {
        return;
    }
    aa_publication_path_t *path = self->path;
    Py_DECREF(self->data);
    Py_XDECREF(self->reserved_value);
    Py_XDECREF(self->timeout);
    Py_XDECREF(self->refusal);
    aa_awaitable_free(&self->awaitable, &path->spare);
    Py_DECREF(path);
}

static PyType_Slot publishing_slots[] = {
    {Py_tp_doc, "A coroutine that publishes one message."},
    {Py_tp_dealloc, publishing_dealloc},
    {Py_tp_finalize, aa_awaitable_finalize},
    {Py_tp_traverse, publishing_traverse},
    {Py_tp_clear, publishing_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, aa_awaitable_next},
    {Py_am_await, aa_awaitable_await},
    {Py_am_send, aa_awaitable_step},
    {Py_tp_methods, aa_awaitable_methods},
    {Py_tp_getset, aa_awaitable_attributes},
    {0, NULL},
};

static PyType_Spec publishing_spec = {
    .name = "aeron_async._speedups.Publishing",
    .basicsize = sizeof(publishing_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = publishing_slots,
};

int aa_publishing_add(PyObject *module)
{
    aa_state_t *state = aa_module_state(module);
    PyObject *control = PyImport_ImportModule("aeron_async._control");
    if (control == NULL)
    {
        return -1;
    }
    state->client_timeout = PyObject_GetAttrString(control, "CLIENT_TIMEOUT");
    Py_DECREF(control);
    state->zero = PyLong_FromLong(0);
    state->publishing_type = (PyObject *)aa_module_make_type(module, &publishing_spec);
    return state->client_timeout == NULL || state->zero == NULL || state->publishing_type == NULL ? -1 : 0;
}
