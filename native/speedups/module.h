/* The CPython face of the C core: what its types share. Each file brings one concept into the module. */
#ifndef AA_MODULE_H
#define AA_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Nothing but references: the garbage collector walks over it as an array. */
typedef struct
{
    PyObject *str_refused; /* interned names */
} aa_state_t;

static inline aa_state_t *aa_module_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* Makes a type of this module and, where the package uses it by name, adds it to the module. A new reference. */
PyTypeObject *aa_module_make_type(PyObject *module, PyType_Spec *spec);
int aa_module_add_type(PyObject *module, PyType_Spec *spec);

/* One a concept: each adds its types and fills its part of the state. */
int aa_publication_path_add(PyObject *module);

#endif
