/* What paragraphs.py asks of every line of a page, for all lines in one call: how far lines of each size stand apart, and
   which of them plainly go on with the one before. It does without this where it could not be built; a test holds the
   two to the same answers. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <descrobject.h>
#include <math.h>
#include <structmember.h>

/* A page with more sizes of type is left to Python. */
#define MAX_SIZES 16
/* In which the number of a list's item ends, if it is one. */
#define ITEM_LETTERS 5

/* Where a line has them. */
static PyTypeObject *line_type;
static struct { Py_ssize_t text, left, base, size, hyphened, block; } at;

static PyObject *field(PyObject *line, Py_ssize_t offset)
{
    return *(PyObject **)((char *)line + offset);
}

static double number(PyObject *line, Py_ssize_t offset)
{
    return PyFloat_AsDouble(field(line, offset));
}

/* Borrows the lines of a list or tuple, and counts them; -1 with an error if it is none of them. */
static Py_ssize_t borrow(PyObject *lines, PyObject ***items)
{
    if (line_type == NULL || !(PyList_Check(lines) || PyTuple_Check(lines))) {
        PyErr_SetString(PyExc_TypeError, "a list or tuple of lines is needed");
        return -1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(lines);
    *items = PySequence_Fast_ITEMS(lines);
    for (Py_ssize_t index = 0; index < count; index++) {
        if (!Py_IS_TYPE((*items)[index], line_type)) {
            PyErr_SetString(PyExc_TypeError, "this is no line");
            return -1;
        }
    }
    return count;
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static double median(double *steps, Py_ssize_t count)
{
    qsort(steps, count, sizeof *steps, by_size);
    return count % 2 ? steps[count / 2] : (steps[count / 2 - 1] + steps[count / 2]) / 2;
}

/* The median step of the lines whose size is about `rounded`; 0 if there is none. */
static double usual_step(PyObject **lines, Py_ssize_t count, double rounded, double *steps)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t index = 1; index < count; index++) {
        double step = number(lines[index], at.base) - number(lines[index - 1], at.base);
        if (step > 1 && nearbyint(number(lines[index], at.size)) == rounded)
            steps[found++] = step;
    }
    return found ? median(steps, found) : 0.0;
}

static int add_pitches(PyObject *pitches, PyObject **lines, Py_ssize_t count, double *steps)
{
    double rounded[MAX_SIZES], usual[MAX_SIZES];
    int known = 0, last = -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *size = field(lines[index], at.size);
        double value = PyFloat_AsDouble(size), whole = nearbyint(value);
        if (index && value == number(lines[index - 1], at.size))
            continue;
        for (last = 0; last < known && rounded[last] != whole; last++)
            ;
        if (last == known) {
            if (known == MAX_SIZES || !isfinite(value))
                return 1;
            rounded[known] = whole;
            usual[known] = usual_step(lines, count, whole, steps);
            if (usual[known] && usual[known] < whole)
                return 1; /* pieces of formulas */
            known++;
        }
        PyObject *pitch = PyFloat_FromDouble(usual[last]);
        int failed = pitch == NULL || PyDict_SetItem(pitches, size, pitch);
        Py_XDECREF(pitch);
        if (failed)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* pitches(lines): from line to line, by the sizes of the lines; None where paragraphs.py has to tell. */
static PyObject *pitches(PyObject *module, PyObject *arg)
{
    PyObject **lines, *found;
    Py_ssize_t count = borrow(arg, &lines);
    if (count < 0 || (found = PyDict_New()) == NULL)
        return NULL;
    double *steps = PyMem_New(double, count + 1);
    int failed = steps == NULL ? -1 : add_pitches(found, lines, count, steps);
    PyMem_Free(steps);
    if (!failed)
        return found;
    Py_DECREF(found);
    if (failed > 0)
        Py_RETURN_NONE;
    return steps == NULL ? PyErr_NoMemory() : NULL;
}

/* Whether a text starts with a letter, and with none that is followed by a dot or a bracket as an item's is. */
static int is_plain_start(PyObject *text)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (!length || !Py_UNICODE_ISALPHA(PyUnicode_READ_CHAR(text, 0)))
        return 0;
    for (Py_ssize_t index = 1; index < length && index < ITEM_LETTERS; index++) {
        Py_UCS4 letter = PyUnicode_READ_CHAR(text, index);
        if (letter == '.' || letter == ')')
            return 0;
    }
    return 1;
}

static int ends_with(PyObject *text, PyObject *ends)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    return length && PyUnicode_FindChar(ends, PyUnicode_READ_CHAR(text, length - 1), 0, PyUnicode_GET_LENGTH(ends), 1) >= 0;
}

/* 1 for a line that goes on with the one before, 2 for one that does unless that one ends early, 0 for all else. */
static char follows(PyObject *last, PyObject *line, double pitch, double plain_below, PyObject *ends)
{
    double size = number(last, at.size), own = number(line, at.size);
    if (own >= plain_below || fabs(own - size) > 0.12 * size || field(line, at.block) != Py_None ||
        field(last, at.block) != Py_None || !is_plain_start(field(line, at.text)))
        return 0;
    if (field(last, at.hyphened) == Py_True)
        return 1;
    double step = number(line, at.base) - number(last, at.base), most = 1.8 * size;
    if (pitch < most)
        most = pitch;
    if (step < 0.5 * size || step > 1.3 * most || number(line, at.left) - number(last, at.left) > 0.8 * size)
        return 0;
    return ends_with(field(last, at.text), ends) ? 2 : 1;
}

/* goes_on(lines, pitches, plain_below, ends): a byte for each line, as `follows` tells, of those that are read from left to
   right and whose page has no dot leaders. */
static PyObject *goes_on(PyObject *module, PyObject *args)
{
    PyObject *sequence, *pitches, *ends;
    double plain_below, pitch = 0, of_size = -1;
    if (!PyArg_ParseTuple(args, "OO!dU", &sequence, &PyDict_Type, &pitches, &plain_below, &ends))
        return NULL;
    PyObject **lines;
    Py_ssize_t count = borrow(sequence, &lines);
    PyObject *answer = count >= 0 ? PyBytes_FromStringAndSize(NULL, count) : NULL;
    if (answer == NULL)
        return NULL;
    char *told = PyBytes_AS_STRING(answer);
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *size = field(lines[index], at.size);
        if (PyFloat_AsDouble(size) != of_size) {
            PyObject *known = PyDict_GetItemWithError(pitches, size);
            of_size = PyFloat_AsDouble(size);
            pitch = known ? PyFloat_AsDouble(known) : 0;
        }
        told[index] = index ? follows(lines[index - 1], lines[index], pitch, plain_below, ends) : 0;
    }
    if (PyErr_Occurred())
        Py_CLEAR(answer);
    return answer;
}

static int find_field(PyTypeObject *type, const char *name, Py_ssize_t *offset)
{
    PyObject *member = PyObject_GetAttrString((PyObject *)type, name);
    if (member == NULL)
        return -1;
    int is_member = Py_IS_TYPE(member, &PyMemberDescr_Type);
    if (is_member)
        *offset = ((PyMemberDescrObject *)member)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is no field of a line", name);
    Py_DECREF(member);
    return is_member ? 0 : -1;
}

/* bind(Line): the type of page_lines.py, which is final. */
static PyObject *bind(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a type is needed");
        return NULL;
    }
    PyTypeObject *found = (PyTypeObject *)type;
    if (find_field(found, "text", &at.text) || find_field(found, "left", &at.left) ||
        find_field(found, "base", &at.base) || find_field(found, "size", &at.size) ||
        find_field(found, "hyphened", &at.hyphened) || find_field(found, "block", &at.block))
        return NULL;
    Py_XSETREF(line_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_O, NULL},
    {"pitches", pitches, METH_O, NULL},
    {"goes_on", goes_on, METH_VARARGS, NULL},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_line_runs", NULL, -1, functions};

PyMODINIT_FUNC PyInit__line_runs(void)
{
    return PyModule_Create(&definition);
}
