#include "publishing.h"

#include "completion.h"

#define QUALIFIED_NAME "PublicationPath.publish"

typedef struct
{
    PyObject_HEAD;
    aa_publication_path_t *path;
    PyObject *data; /* NULL once it was started */
    PyObject *reserved_value;
    PyObject *timeout;
    PyObject *rest; /* the Python coroutine that goes on where it has to wait */
} publishing_t;

/* --- life ------------------------------------------------------------------------------------------------ */

PyObject *aa_publishing_create(aa_publication_path_t *path, PyObject *data, PyObject *reserved_value, PyObject *timeout)
{
    PyTypeObject *type = (PyTypeObject *)path->state->publishing_type;
    publishing_t *self = path->spare;
    if (self != NULL)
    {
        path->spare = NULL;
        PyObject_Init((PyObject *)self, type);
    }
    else
    {
        self = PyObject_GC_New(publishing_t, type);
        if (self == NULL)
        {
            return NULL;
        }
    }
    self->path = (aa_publication_path_t *)Py_NewRef(path);
    self->data = Py_NewRef(data);
    self->reserved_value = Py_XNewRef(reserved_value);
    self->timeout = Py_XNewRef(timeout);
    self->rest = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void aa_publishing_free(void *spare)
{
    if (spare != NULL)
    {
        PyObject_GC_Del(spare);
    }
}

static int publishing_traverse(publishing_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->path);
    Py_VISIT(self->data);
    Py_VISIT(self->reserved_value);
    Py_VISIT(self->timeout);
    Py_VISIT(self->rest);
    return 0;
}

static void let_go_of_arguments(publishing_t *self)
{
    Py_CLEAR(self->data);
    Py_CLEAR(self->reserved_value);
    Py_CLEAR(self->timeout);
}

static int publishing_clear(publishing_t *self)
{
    let_go_of_arguments(self);
    Py_CLEAR(self->rest);
    return 0;
}

/* As for a coroutine that nobody awaited. */
static void publishing_finalize(publishing_t *self)
{
    if (self->data != NULL)
    {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyErr_WarnEx(PyExc_RuntimeWarning, "coroutine '" QUALIFIED_NAME "' was never awaited", 1) < 0)
        {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        PyErr_Restore(type, value, traceback);
    }
}

static void publishing_dealloc(publishing_t *self)
{
    if (self->data != NULL && PyObject_CallFinalizerFromDealloc((PyObject *)self) < 0)
    {
        return;
    }
    PyObject_GC_UnTrack(self);
    publishing_clear(self);
    aa_publication_path_t *path = self->path;
    Py_DECREF(Py_TYPE(self));
    if (path->spare == NULL && !PyObject_GC_IsFinalized((PyObject *)self))
    {
        path->spare = self;
    }
    else
    {
        PyObject_GC_Del(self);
    }
    Py_DECREF(path);
}

/* --- steps ----------------------------------------------------------------------------------------------- */

/* What publish() was called with, taken out of the object: while the message is written, others may call it too. */
typedef struct
{
    PyObject *data;
    PyObject *reserved_value;
    PyObject *timeout;
} arguments_t;

static arguments_t take_arguments(publishing_t *self)
{
    const arguments_t arguments = {self->data, self->reserved_value, self->timeout};
    self->data = self->reserved_value = self->timeout = NULL;
    return arguments;
}

static void release_arguments(arguments_t *arguments)
{
    Py_DECREF(arguments->data);
    Py_XDECREF(arguments->reserved_value);
    Py_XDECREF(arguments->timeout);
}

/* The coroutine that goes on; refusal is the OfferResult of an offer that was made, or None. */
static PyObject *create_rest(const publishing_t *self, const arguments_t *arguments, PyObject *refusal)
{
    const aa_state_t *state = self->path->state;
    PyObject *values[] = {
        (PyObject *)self->path,
        arguments->data,
        arguments->reserved_value != NULL ? arguments->reserved_value : state->zero,
        arguments->timeout != NULL ? arguments->timeout : state->client_timeout,
        refusal,
    };
    return PyObject_VectorcallMethod(state->str_publish_when_possible, values, 5, NULL);
}

/* The position after the message, where it was taken at once; else NULL, with the coroutine in self->rest or an
 * exception. */
static PyObject *start(publishing_t *self, const arguments_t *arguments)
{
    aa_publication_path_t *path = self->path;
    int64_t reserved_value;
    aa_payload_t payload;
    if (aa_publication_path_reserved_value(arguments->reserved_value, &reserved_value) < 0 ||
        aa_payload_get(path->state, arguments->data, &payload) < 0)
    {
        return NULL;
    }
    const size_t length = payload.length;
    PyObject *refusal;
    if (aa_publication_path_is_turn_over(path, length, 1))
    {
        aa_payload_release(&payload);
        refusal = Py_NewRef(Py_None);
    }
    else
    {
        const int64_t result = aa_publication_path_append(path, &payload, reserved_value);
        aa_payload_release(&payload);
        if (result > 0)
        {
            return PyLong_FromLongLong(result);
        }
        refusal = aa_publication_path_refused(path, result, length);
    }
    if (refusal != NULL)
    {
        self->rest = create_rest(self, arguments, refusal);
        Py_DECREF(refusal);
    }
    return NULL;
}

static void refuse_another_start(void)
{
    PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
}

static PySendResult go_on(publishing_t *self, PyObject *sent, PyObject **value)
{
    PyObject *rest = Py_NewRef(self->rest);
    const PySendResult result = PyIter_Send(rest, sent, value);
    if (result != PYGEN_NEXT)
    {
        Py_CLEAR(self->rest);
    }
    Py_DECREF(rest);
    return result;
}

static PySendResult publishing_step(publishing_t *self, PyObject *sent, PyObject **value)
{
    *value = NULL;
    if (self->rest != NULL)
    {
        return go_on(self, sent, value);
    }
    if (self->data == NULL)
    {
        refuse_another_start();
        return PYGEN_ERROR;
    }
    if (sent != Py_None)
    {
        PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started coroutine");
        return PYGEN_ERROR;
    }
    arguments_t arguments = take_arguments(self);
    *value = start(self, &arguments);
    release_arguments(&arguments);
    if (*value != NULL)
    {
        return PYGEN_RETURN;
    }
    return self->rest == NULL ? PYGEN_ERROR : go_on(self, sent, value);
}

static PyObject *publishing_send(publishing_t *self, PyObject *sent)
{
    PyObject *value;
    if (publishing_step(self, sent, &value) == PYGEN_RETURN)
    {
        PyErr_SetObject(PyExc_StopIteration, value);
        Py_CLEAR(value);
    }
    return value;
}

static PyObject *publishing_next(publishing_t *self)
{
    PyObject *value;
    return publishing_step(self, Py_None, &value) == PYGEN_RETURN ? aa_completion_stop(self->path->state, value)
                                                                  : value;
}

/* What is thrown in goes to the Python coroutine, even where that begins with it. */
static PyObject *publishing_throw(publishing_t *self, PyObject *args)
{
    if (self->rest == NULL && self->data == NULL)
    {
        refuse_another_start();
        return NULL;
    }
    if (self->rest == NULL)
    {
        arguments_t arguments = take_arguments(self);
        self->rest = create_rest(self, &arguments, Py_None);
        release_arguments(&arguments);
        if (self->rest == NULL)
        {
            return NULL;
        }
    }

    PyObject *rest = Py_NewRef(self->rest);
    PyObject *throw = PyObject_GetAttr(rest, self->path->state->str_throw);
    PyObject *yielded = throw == NULL ? NULL : PyObject_CallObject(throw, args);
    if (yielded == NULL)
    {
        Py_CLEAR(self->rest);
    }
    Py_XDECREF(throw);
    Py_DECREF(rest);
    return yielded;
}

static PyObject *publishing_close(publishing_t *self, PyObject *Py_UNUSED(ignored))
{
    let_go_of_arguments(self);
    PyObject *rest = self->rest;
    if (rest == NULL)
    {
        Py_RETURN_NONE;
    }
    self->rest = NULL;
    PyObject *result = PyObject_CallMethodNoArgs(rest, self->path->state->str_close);
    Py_DECREF(rest);
    return result;
}

/* --- what is seen from outside --------------------------------------------------------------------------- */

static PyObject *attribute_of_rest(const publishing_t *self, const char *name, PyObject *without)
{
    return self->rest != NULL ? PyObject_GetAttrString(self->rest, name) : Py_NewRef(without);
}

static PyObject *publishing_await(const publishing_t *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->rest != NULL ? self->rest : Py_None);
}

static PyObject *publishing_frame(const publishing_t *self, void *Py_UNUSED(closure))
{
    return attribute_of_rest(self, "cr_frame", Py_None);
}

static PyObject *publishing_running(const publishing_t *self, void *Py_UNUSED(closure))
{
    return attribute_of_rest(self, "cr_running", Py_False);
}

static PyObject *publishing_suspended(const publishing_t *self, void *Py_UNUSED(closure))
{
    return attribute_of_rest(self, "cr_suspended", Py_False);
}

static PyObject *publishing_name(const publishing_t *Py_UNUSED(self), void *name)
{
    return PyUnicode_FromString(name);
}

/* inspect.iscoroutine asks for it, and what starts tasks may ask that. */
static PyObject *publishing_class(const publishing_t *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)&PyCoro_Type);
}

static PyGetSetDef publishing_attributes[] = {
    {"__class__", (getter)publishing_class, NULL, NULL, NULL},
    {"__name__", (getter)publishing_name, NULL, NULL, "publish"},
    {"__qualname__", (getter)publishing_name, NULL, NULL, QUALIFIED_NAME},
    {"cr_await", (getter)publishing_await, NULL, NULL, NULL},
    {"cr_frame", (getter)publishing_frame, NULL, NULL, NULL},
    {"cr_running", (getter)publishing_running, NULL, NULL, NULL},
    {"cr_suspended", (getter)publishing_suspended, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef publishing_methods[] = {
    {"send", (PyCFunction)publishing_send, METH_O, NULL},
    {"throw", (PyCFunction)publishing_throw, METH_VARARGS, NULL},
    {"close", (PyCFunction)publishing_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot publishing_slots[] = {
    {Py_tp_doc, "A coroutine that publishes one message."},
    {Py_tp_traverse, publishing_traverse},
    {Py_tp_clear, publishing_clear},
    {Py_tp_finalize, publishing_finalize},
    {Py_tp_dealloc, publishing_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, publishing_next},
    {Py_am_await, PyObject_SelfIter},
    {Py_am_send, publishing_step},
    {Py_tp_getset, publishing_attributes},
    {Py_tp_methods, publishing_methods},
    {0, NULL},
};

static PyType_Spec publishing_spec = {
    .name = "aeron_async._speedups.Publishing",
    .basicsize = sizeof(publishing_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
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
