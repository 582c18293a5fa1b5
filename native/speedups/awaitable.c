#include "awaitable.h"

#include "completion.h"

void aa_awaitable_init(aa_awaitable_t *self, aa_state_t *state, const aa_awaitable_kind_t *kind)
{
    self->state = state;
    self->kind = kind;
    self->is_started = false;
    self->rest = NULL;
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

/* --- steps ----------------------------------------------------------------------------------------------- */

static PySendResult go_on(aa_awaitable_t *self, PyObject *sent, PyObject **value)
{
    /* It may be closed meanwhile. */
    PyObject *rest = Py_NewRef(self->rest);
    const PySendResult result = PyIter_Send(rest, sent, value);
    if (result != PYGEN_NEXT)
    {
        Py_CLEAR(self->rest);
    }
    Py_DECREF(rest);
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
    return aa_awaitable_step(self, Py_None, &value) == PYGEN_RETURN ? aa_completion_stop(self->state, value) : value;
}

static PyObject *awaitable_send(aa_awaitable_t *self, PyObject *sent)
{
    PyObject *value;
    if (aa_awaitable_step(self, sent, &value) == PYGEN_RETURN)
    {
        /* By an instance: a value that is a tuple or an exception would be taken for something else. */
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, value);
        if (stop != NULL)
        {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
        Py_CLEAR(value);
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
    PyObject *rest = Py_NewRef(self->rest);
    PyObject *throw = PyObject_GetAttr(rest, self->state->str_throw);
    PyObject *yielded = throw == NULL ? NULL : PyObject_CallObject(throw, args);
    if (yielded == NULL)
    {
        Py_CLEAR(self->rest);
    }
    Py_XDECREF(throw);
    Py_DECREF(rest);
    return yielded;
}

static PyObject *awaitable_close(aa_awaitable_t *self, PyObject *Py_UNUSED(ignored))
{
    self->is_started = true;
    PyObject *rest = self->rest;
    if (rest == NULL)
    {
        Py_RETURN_NONE;
    }
    self->rest = NULL;
    PyObject *result = PyObject_CallMethodNoArgs(rest, self->state->str_close);
    Py_DECREF(rest);
    return result;
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
