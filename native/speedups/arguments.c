#include "arguments.h"

#include <stdbool.h>

/* The number of the parameter with a name; -1 where there is none, -2 with an exception. */
static Py_ssize_t find(const aa_signature_t *signature, PyObject *name)
{
    for (Py_ssize_t i = 0; i < signature->count; i++)
    {
        if (signature->names[i] == name)
        {
            return i;
        }
    }
    for (Py_ssize_t i = 0; i < signature->count; i++)
    {
        const int is_equal = PyObject_RichCompareBool(signature->names[i], name, Py_EQ);
        if (is_equal != 0)
        {
            return is_equal < 0 ? -2 : i;
        }
    }
    return -1;
}

int aa_arguments_sort(
    const aa_signature_t *signature, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **values)
{
    if (nargs > signature->by_place)
    {
        PyErr_Format(
            PyExc_TypeError, "%s() takes %zd positional arguments but %zd were given", signature->method,
            signature->by_place + 1, nargs + 1);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
    {
        values[i] = args[i];
    }

    const Py_ssize_t by_name = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < by_name; i++)
    {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        const Py_ssize_t place = find(signature, name);
        if (place < 0)
        {
            if (place == -1)
            {
                PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", signature->method, name);
            }
            return -1;
        }
        if (place < nargs)
        {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", signature->method, name);
            return -1;
        }
        values[place] = args[nargs + i];
    }

    for (Py_ssize_t i = 0; i < signature->required; i++)
    {
        if (values[i] == NULL)
        {
            PyErr_Format(
                PyExc_TypeError, "%s() missing 1 required positional argument: '%U'", signature->method,
                signature->names[i]);
            return -1;
        }
    }
    return 0;
}
