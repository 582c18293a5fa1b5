/* Arguments of methods that are called without a tuple and a dict. */
#ifndef AA_ARGUMENTS_H
#define AA_ARGUMENTS_H

#include "module.h"

/* What a method takes: the first may be given by place, all by their names. */
typedef struct
{
    const char *method;
    PyObject *const *names; /* interned */
    Py_ssize_t by_place;
    Py_ssize_t required;
    Py_ssize_t count;
} aa_signature_t;

/* Sorts what was given by the signature's names; what is missing stays as it is. 0, or -1 with a TypeError. */
int aa_arguments_sort(
    const aa_signature_t *signature, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **values);

/* The same, and at once for the usual call: the first argument alone, by its place. */
static inline int aa_arguments_get(
    const aa_signature_t *signature, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **values)
{
    if (nargs != 1 || names != NULL || signature->by_place < 1 || signature->required > 1)
    {
        return aa_arguments_sort(signature, args, nargs, names, values);
    }
    values[0] = args[0];
    return 0;
}

#endif
