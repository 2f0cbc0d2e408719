/* Where a line of a PDF page stands and how it is set, in one call instead of the five that pdf_measure.py makes.

   pdfium's functions are handed in by their addresses, so nothing is linked. What is asked and how the answers are
   taken together is the same as in pdf_measure.py, which does without this where it could not be built; a test holds
   the two to the same answers. One process reads one page at a time: nothing here is for threads. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#define MAX_NAME 128
#define MAX_RECTS 1000

typedef struct { float a, b, c, d, e, f; } Matrix;

static int (*get_matrix)(void *, int, Matrix *);
static double (*get_font_size)(void *, int);
static unsigned long (*get_font_info)(void *, int, void *, unsigned long, int *);
static int (*count_rects)(void *, int, int);
static int (*get_rect)(void *, int, double *, double *, double *, double *);

/* Asked once for every font: lines after each other mostly have the same. */
static PyObject *style_of;
static char known_name[MAX_NAME];
static unsigned long known_length;
static int known_flags;
static long known_style;

static int style_at(void *textpage, int index, long *style)
{
    char name[MAX_NAME];
    int flags = 0;
    unsigned long length = get_font_info(textpage, index, name, MAX_NAME, &flags);
    if (!length) /* a space that pdfium put in */
        length = get_font_info(textpage, index + 1, name, MAX_NAME, &flags);
    if (!length || length > MAX_NAME) {
        *style = 0;
        return 0;
    }
    if (length != known_length || flags != known_flags || memcmp(name, known_name, length)) {
        PyObject *answer = PyObject_CallFunction(style_of, "y#i", name, (Py_ssize_t)strnlen(name, length), flags);
        if (answer == NULL)
            return -1;
        known_style = PyLong_AsLong(answer);
        Py_DECREF(answer);
        if (known_style == -1 && PyErr_Occurred())
            return -1;
        memcpy(known_name, name, length);
        known_length = length;
        known_flags = flags;
    }
    *style = known_style;
    return 0;
}

static int add_stretch(PyObject *found, double start, double end)
{
    PyObject *stretch = Py_BuildValue("(dd)", start, end);
    int failed = stretch == NULL || PyList_Append(found, stretch);
    Py_XDECREF(stretch);
    return failed ? -1 : 0;
}

/* The box around the pieces of the line that was counted last, and its stretches between gaps wider than `gap`. */
static PyObject *stretches_of(void *textpage, int count, double offset, double gap, double box[4])
{
    double left, top, right, bottom, start, end;
    PyObject *found = PyList_New(0);
    if (found == NULL)
        return NULL;
    get_rect(textpage, 0, &box[0], &box[1], &box[2], &box[3]);
    start = box[0] - offset;
    end = box[2] - offset;
    for (int index = 1; index < count; index++) {
        get_rect(textpage, index, &left, &top, &right, &bottom);
        if (left < box[0])
            box[0] = left;
        if (right > box[2])
            box[2] = right;
        if (top > box[1])
            box[1] = top;
        if (bottom < box[3])
            box[3] = bottom;
        left -= offset;
        right -= offset;
        if (left > end + gap) {
            if (add_stretch(found, start, end))
                goto failed;
            start = left;
            end = right;
        } else if (right > end)
            end = right;
    }
    if (!add_stretch(found, start, end))
        return found;
failed:
    Py_DECREF(found);
    return NULL;
}

typedef struct {
    PyObject_HEAD
    void *textpage;
    double left, top, least_gap;
} Measure;

/* Measure(textpage, left, top, least_gap): of a page that is not turned, whose text is at this address. */
static int measure_init(Measure *self, PyObject *args, PyObject *kwargs)
{
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "Kddd", &address, &self->left, &self->top, &self->least_gap))
        return -1;
    self->textpage = (void *)(uintptr_t)address;
    if (self->textpage == NULL || style_of == NULL) {
        PyErr_SetString(PyExc_ValueError, style_of ? "there is no page" : "bind was not called");
        return -1;
    }
    return 0;
}

/* line(first, last): size, base, style, how many pieces, left, top, right, bottom, and the stretches of several. */
static PyObject *measure_line(Measure *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "line takes the first and the last letter");
        return NULL;
    }
    long first = PyLong_AsLong(args[0]), last = PyLong_AsLong(args[1]);
    if ((first == -1 || last == -1) && PyErr_Occurred())
        return NULL;
    void *textpage = self->textpage;
    /* In the middle: a bullet or a footnote's mark is set in another size, and higher up. */
    int index = (int)((first + last) / 2);
    Matrix matrix = {0, 0, 0, 0, 0, 0};
    get_matrix(textpage, index, &matrix);
    if (matrix.e == 0 && matrix.f == 0 && matrix.a == 1) {
        /* A space that pdfium put in has no type and no place of its own. */
        index = (int)first;
        get_matrix(textpage, index, &matrix);
    }
    double c = matrix.c, d = matrix.d, scale = c == 0 && d > 0 ? d : sqrt(c * c + d * d);
    double size = get_font_size(textpage, index) * (scale ? scale : 1.0);
    long style;
    if (style_at(textpage, (int)first, &style))
        return NULL;
    int count = count_rects(textpage, (int)first, (int)(last - first + 1));
    double box[4] = {0, 0, 0, 0};
    PyObject *stretches = Py_None;
    if (count == 1)
        get_rect(textpage, 0, &box[0], &box[1], &box[2], &box[3]);
    else if (count > 1) {
        double gap = size > self->least_gap ? size : self->least_gap;
        stretches = stretches_of(textpage, count < MAX_RECTS ? count : MAX_RECTS, self->left, gap, box);
        if (stretches == NULL)
            return NULL;
    }
    PyObject *parts[] = {
        PyFloat_FromDouble(size),
        PyFloat_FromDouble(self->top - matrix.f),
        PyLong_FromLong(style),
        PyLong_FromLong(count),
        PyFloat_FromDouble(box[0] - self->left),
        PyFloat_FromDouble(self->top - box[1]),
        PyFloat_FromDouble(box[2] - self->left),
        PyFloat_FromDouble(self->top - box[3]),
        stretches == Py_None ? Py_NewRef(Py_None) : stretches,
    };
    Py_ssize_t size_of = sizeof parts / sizeof *parts;
    PyObject *answer = PyTuple_New(size_of);
    for (Py_ssize_t at = 0; at < size_of; at++) {
        if (answer != NULL && parts[at] != NULL)
            PyTuple_SET_ITEM(answer, at, parts[at]);
        else {
            Py_XDECREF(parts[at]);
            Py_CLEAR(answer);
        }
    }
    return answer;
}

static PyMethodDef measure_methods[] = {
    {"line", (PyCFunction)(void (*)(void))measure_line, METH_FASTCALL, NULL},
    {NULL},
};

static PyTypeObject MeasureType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rag.parser._pdf_sweep.Measure",
    .tp_basicsize = sizeof(Measure),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)measure_init,
    .tp_methods = measure_methods,
};

/* bind((get_matrix, get_font_size, get_font_info, count_rects, get_rect), style_of): addresses, and what tells a
   font's style by its name and flags. */
static PyObject *bind(PyObject *module, PyObject *args)
{
    unsigned long long at[5];
    PyObject *callable;
    if (!PyArg_ParseTuple(args, "(KKKKK)O", &at[0], &at[1], &at[2], &at[3], &at[4], &callable))
        return NULL;
    get_matrix = (int (*)(void *, int, Matrix *))(uintptr_t)at[0];
    get_font_size = (double (*)(void *, int))(uintptr_t)at[1];
    get_font_info = (unsigned long (*)(void *, int, void *, unsigned long, int *))(uintptr_t)at[2];
    count_rects = (int (*)(void *, int, int))(uintptr_t)at[3];
    get_rect = (int (*)(void *, int, double *, double *, double *, double *))(uintptr_t)at[4];
    Py_XSETREF(style_of, Py_NewRef(callable));
    known_length = 0;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"bind", bind, METH_VARARGS, NULL}, {NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_pdf_sweep", NULL, -1, functions};

PyMODINIT_FUNC PyInit__pdf_sweep(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddType(module, &MeasureType)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
