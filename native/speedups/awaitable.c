#include "awaitable.h"

/* --- life ------------------------------------------------------------------------------------------------ */

void *aa_awaitable_allocate(PyTypeObject *type, void **spare)
{
    void *self = *spare;
    if (self == NULL)
    {
        return PyObject_GC_New(aa_awaitable_t, type);
    }
    *spare = NULL;
    PyObject_Init(self, type);
    /* The memory has had a reference to it already. */
    Py_DECREF(type);
    return self;
}

int aa_awaitable_begin_deallocation(aa_awaitable_t *self)
{
    if (!self->is_started && PyObject_CallFinalizerFromDealloc((PyObject *)self) < 0)
    {
        return -1;
    }
    PyObject_GC_UnTrack(self);
    aa_awaitable_clear(self);
    return 0;
}

void aa_awaitable_free(aa_awaitable_t *self, void **spare)
{
    if (*spare == NULL && !PyObject_GC_IsFinalized((PyObject *)self))
    {
        *spare = self;
    }
    else
    {
        aa_awaitable_free_spare(self);
    }
}

void aa_awaitable_free_spare(void *spare)
{
    if (spare != NULL)
    {
        PyTypeObject *type = Py_TYPE(spare);
        PyObject_GC_Del(spare);
        Py_DECREF(type);
    }
}

void aa_awaitable_init(aa_awaitable_t *self, const aa_state_t *state, const aa_awaitable_kind_t *kind, PyObject **stop)
{
    self->state = state;
    self->kind = kind;
    self->is_started = false;
    self->is_running = false;
    self->rest = NULL;
    self->stop = stop;
}

int aa_awaitable_traverse(aa_awaitable_t *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->rest);
    return 0;
}

void aa_awaitable_clear(aa_awaitable_t *self)
{
    Py_CLEAR(self->rest);
}

void aa_awaitable_finalize(aa_awaitable_t *self)
{
    if (!self->is_started)
    {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "coroutine '%s' was never awaited", self->kind->qualified_name) <
            0)
        {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        PyErr_Restore(type, value, traceback);
    }
}

/* --- how it ends ----------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
/* Whether nobody has kept it or added to it since it was raised. */
static bool is_as_new(PyObject *exception)
{
    const PyBaseExceptionObject *stop = (PyBaseExceptionObject *)exception;
    return Py_REFCNT(exception) == 1 && stop->traceback == NULL && stop->context == NULL && stop->cause == NULL &&
           stop->dict == NULL;
}
#endif

/* From CPython 3.12 on an await goes by tp_iternext, so that every one ends with a StopIteration, of which making one
 * anew would be the dearest part. Takes over the reference to value. */
static void raise_stop(PyObject **cache, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (*cache == NULL || !is_as_new(*cache))
    {
        Py_XSETREF(*cache, PyObject_CallNoArgs(PyExc_StopIteration));
        if (*cache == NULL)
        {
            Py_DECREF(value);
            return;
        }
    }
    PyStopIterationObject *stop = (PyStopIterationObject *)*cache;
    Py_XSETREF(stop->value, value);
    PyErr_SetRaisedException(Py_NewRef(stop));
#else
    (void)cache;
    /* By an instance: a value that is a tuple or an exception would be taken for something else. */
    PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, value);
    Py_DECREF(value);
    if (stop != NULL)
    {
        PyErr_SetObject(PyExc_StopIteration, stop);
        Py_DECREF(stop);
    }
#endif
}

/* --- steps ----------------------------------------------------------------------------------------------- */

/* The coroutine, for a step of it that leave_rest ends. What it does may come back here: NULL with an exception. */
static PyObject *enter_rest(aa_awaitable_t *self)
{
    if (self->is_running)
    {
        PyErr_SetString(PyExc_ValueError, "coroutine already executing");
        return NULL;
    }
    self->is_running = true;
    return Py_NewRef(self->rest);
}

static void leave_rest(aa_awaitable_t *self, PyObject *rest, bool is_over)
{
    self->is_running = false;
    if (is_over)
    {
        Py_CLEAR(self->rest);
    }
    Py_DECREF(rest);
}

static PySendResult go_on(aa_awaitable_t *self, PyObject *sent, PyObject **value)
{
    PyObject *rest = enter_rest(self);
    if (rest == NULL)
    {
        return PYGEN_ERROR;
    }
    const PySendResult result = PyIter_Send(rest, sent, value);
    leave_rest(self, rest, result != PYGEN_NEXT);
    return result;
}

static int begin(aa_awaitable_t *self)
{
    if (self->is_started)
    {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
        return -1;
    }
    self->is_started = true;
    return 0;
}

PySendResult aa_awaitable_step(aa_awaitable_t *self, PyObject *sent, PyObject **value)
{
    *value = NULL;
    if (self->rest != NULL)
    {
        return go_on(self, sent, value);
    }
    if (sent != Py_None && !self->is_started)
    {
        PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started coroutine");
        return PYGEN_ERROR;
    }
    if (begin(self) < 0)
    {
        return PYGEN_ERROR;
    }
    *value = self->kind->start(self);
    if (*value != NULL)
    {
        return PYGEN_RETURN;
    }
    if (PyErr_Occurred() || (self->rest = self->kind->create_rest(self)) == NULL)
    {
        return PYGEN_ERROR;
    }
    return go_on(self, Py_None, value);
}

PyObject *aa_awaitable_next(aa_awaitable_t *self)
{
    PyObject *value;
    if (aa_awaitable_step(self, Py_None, &value) == PYGEN_RETURN)
    {
        raise_stop(self->stop, value);
        return NULL;
    }
    return value;
}

static PyObject *awaitable_send(aa_awaitable_t *self, PyObject *sent)
{
    PyObject *value;
    if (aa_awaitable_step(self, sent, &value) == PYGEN_RETURN)
    {
        PyObject *cache = NULL;
        raise_stop(&cache, value);
        Py_XDECREF(cache);
        return NULL;
    }
    return value;
}

/* What is thrown in goes to the Python coroutine, even where that begins with it. */
static PyObject *awaitable_throw(aa_awaitable_t *self, PyObject *args)
{
    if (self->rest == NULL && (begin(self) < 0 || (self->rest = self->kind->create_rest(self)) == NULL))
    {
        return NULL;
    }
    PyObject *rest = enter_rest(self);
    if (rest == NULL)
    {
        return NULL;
    }
    PyObject *throw = PyObject_GetAttr(rest, self->state->str_throw);
    PyObject *yielded = throw == NULL ? NULL : PyObject_CallObject(throw, args);
    Py_XDECREF(throw);
    leave_rest(self, rest, yielded == NULL);
    return yielded;
}

static PyObject *awaitable_close(aa_awaitable_t *self, PyObject *Py_UNUSED(ignored))
{
    self->is_started = true;
    if (self->rest == NULL)
    {
        Py_RETURN_NONE;
    }
    PyObject *rest = enter_rest(self);
    if (rest == NULL)
    {
        return NULL;
    }
    PyObject *result = PyObject_CallMethodNoArgs(rest, self->state->str_close);
    leave_rest(self, rest, true);
    return result;
}

PyObject *aa_awaitable_await(PyObject *self)
{
    if (((aa_awaitable_t *)self)->rest != NULL)
    {
        PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
        return NULL;
    }
    return Py_NewRef(self);
}

PyMethodDef aa_awaitable_methods[] = {
    {"send", (PyCFunction)awaitable_send, METH_O, NULL},
    {"throw", (PyCFunction)awaitable_throw, METH_VARARGS, NULL},
    {"close", (PyCFunction)awaitable_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- what is seen from outside --------------------------------------------------------------------------- */

static PyObject *name_of(const aa_awaitable_t *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(self->kind->name);
}

static PyObject *qualified_name_of(const aa_awaitable_t *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(self->kind->qualified_name);
}

static PyObject *awaited_by(const aa_awaitable_t *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->rest != NULL ? self->rest : Py_None);
}

static PyObject *attribute_of_rest(const aa_awaitable_t *self, void *name)
{
    return self->rest != NULL ? PyObject_GetAttrString(self->rest, name) : Py_NewRef(Py_None);
}

static PyObject *flag_of_rest(const aa_awaitable_t *self, void *name)
{
    return self->rest != NULL ? PyObject_GetAttrString(self->rest, name) : Py_NewRef(Py_False);
}

/* inspect.iscoroutine asks for it, and what starts tasks may ask that. */
static PyObject *class_of(const aa_awaitable_t *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)&PyCoro_Type);
}

PyGetSetDef aa_awaitable_attributes[] = {
    {"__class__", (getter)class_of, NULL, NULL, NULL},
    {"__name__", (getter)name_of, NULL, NULL, NULL},
    {"__qualname__", (getter)qualified_name_of, NULL, NULL, NULL},
    {"cr_await", (getter)awaited_by, NULL, NULL, NULL},
    {"cr_frame", (getter)attribute_of_rest, NULL, NULL, "cr_frame"},
    {"cr_running", (getter)flag_of_rest, NULL, NULL, "cr_running"},
    {"cr_suspended", (getter)flag_of_rest, NULL, NULL, "cr_suspended"},
    {NULL, NULL, NULL, NULL, NULL},
};
