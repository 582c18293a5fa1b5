/* Methods that give coroutines, which inspect.iscoroutinefunction has to know: frameworks ask it before they call. */
#ifndef AA_COROUTINE_METHOD_H
#define AA_COROUTINE_METHOD_H

#include "module.h"

/* Of a call by vectorcall, without what is always the same: self is an instance of the type. */
typedef PyObject *(*aa_coroutine_method_t)(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

/* Adds a method to a type of this module. documentation is as in a PyMethodDef, with the signature. */
int aa_coroutine_method_add(
    PyObject *module, PyTypeObject *type, const char *name, aa_coroutine_method_t method, const char *documentation);

int aa_coroutine_method_ready(PyObject *module);

#endif
