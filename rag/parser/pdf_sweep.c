/* The lines of a PDF page with their places, in one call for the page; and where one line stands and how it is set, in
   one call instead of the five that pdf_measure.py makes.

   pdfium's functions are handed in by their addresses, so nothing is linked. What is asked and how the answers are
   taken together is the same as in pdf_measure.py, pdf_lines.py and pdf_spans.py, which do without this where it could
   not be built; a test holds the two to the same answers. A line that is not plain is left to them: bold or set in type
   of one width, off the page, with gaps that no word is found behind. One process reads one page at a time: nothing
   here is for threads. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#define MAX_NAME 128
#define MAX_RECTS 1000
/* As in pdf_lines.py: what ends a line that goes on with its word, and the width of a letter against its size. */
#define HYPHEN 0xfffe
#define WIDE 0.56

typedef struct { float a, b, c, d, e, f; } Matrix;

static int (*get_matrix)(void *, int, Matrix *);
static double (*get_font_size)(void *, int);
static unsigned long (*get_font_info)(void *, int, void *, unsigned long, int *);
static int (*count_rects)(void *, int, int);
static int (*get_rect)(void *, int, double *, double *, double *, double *);
static int (*get_char_box)(void *, int, float *);
static int (*count_chars)(void *);
static int (*get_text)(void *, int, int, unsigned short *);

/* Of page_lines.py. */
static PyTypeObject *line_type, *span_type;
static PyObject *no_spans;

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
    double left, top, width, height, least_gap;
} Measure;

/* How a line is set, in how many pieces it is drawn, and left, top, right and bottom of these as they are shown. */
typedef struct {
    double size, base, left, top, right, bottom;
    long style;
    int count;
    PyObject *stretches; /* None for a line of one piece or none; owned */
} Measured;

/* Measure(textpage, left, top, width, height, least_gap): of a page that is not turned, whose text is at this
   address. */
static int measure_init(Measure *self, PyObject *args, PyObject *kwargs)
{
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "Kddddd", &address, &self->left, &self->top, &self->width, &self->height,
                          &self->least_gap))
        return -1;
    self->textpage = (void *)(uintptr_t)address;
    if (self->textpage == NULL || style_of == NULL) {
        PyErr_SetString(PyExc_ValueError, style_of ? "there is no page" : "bind was not called");
        return -1;
    }
    return 0;
}

static double gap_of(const Measure *self, double size)
{
    return size > self->least_gap ? size : self->least_gap;
}

static int measure(const Measure *self, long first, long last, Measured *found)
{
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
    found->size = get_font_size(textpage, index) * (scale ? scale : 1.0);
    found->base = self->top - matrix.f;
    if (style_at(textpage, (int)first, &found->style))
        return -1;
    found->count = count_rects(textpage, (int)first, (int)(last - first + 1));
    double box[4] = {0, 0, 0, 0};
    found->stretches = Py_None;
    if (found->count == 1)
        get_rect(textpage, 0, &box[0], &box[1], &box[2], &box[3]);
    else if (found->count > 1) {
        if (found->count > MAX_RECTS)
            found->count = MAX_RECTS;
        found->stretches = stretches_of(textpage, found->count, self->left, gap_of(self, found->size), box);
        if (found->stretches == NULL)
            return -1;
    }
    if (found->stretches == Py_None)
        Py_INCREF(Py_None);
    found->left = box[0] - self->left;
    found->top = self->top - box[1];
    found->right = box[2] - self->left;
    found->bottom = self->top - box[3];
    return 0;
}

/* A tuple of new references, which it takes; NULL if one of them is. */
static PyObject *tuple_of(PyObject **parts, Py_ssize_t count)
{
    PyObject *answer = PyTuple_New(count);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (answer != NULL && parts[at] != NULL)
            PyTuple_SET_ITEM(answer, at, parts[at]);
        else {
            Py_XDECREF(parts[at]);
            Py_CLEAR(answer);
        }
    }
    return answer;
}

/* Takes the stretches. */
static PyObject *as_tuple(Measured *found)
{
    PyObject *parts[] = {
        PyFloat_FromDouble(found->size),
        PyFloat_FromDouble(found->base),
        PyLong_FromLong(found->style),
        PyLong_FromLong(found->count),
        PyFloat_FromDouble(found->left),
        PyFloat_FromDouble(found->top),
        PyFloat_FromDouble(found->right),
        PyFloat_FromDouble(found->bottom),
        found->stretches,
    };
    return tuple_of(parts, sizeof parts / sizeof *parts);
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
    Measured found;
    return measure(self, first, last, &found) ? NULL : as_tuple(&found);
}

/* The part of the page's text that is looked at: letters from one up to but without another. */
typedef struct {
    int kind;
    const void *data;
    Py_ssize_t start, end;
} Stretch;

static Py_UCS4 letter(const Stretch *text, Py_ssize_t at)
{
    return PyUnicode_READ(text->kind, text->data, at);
}

/* Where the word starts that is nearest to a place, counted from the start; 0 where another has to be looked for. */
static Py_ssize_t word_near(const Stretch *shown, Py_ssize_t likely)
{
    Py_ssize_t length = shown->end - shown->start, at = likely, before = likely < length ? likely : length;
    while (at < length && letter(shown, shown->start + at) != ' ')
        at++;
    at = at < length ? at + 1 : 0;
    while (before > 0 && letter(shown, shown->start + before - 1) != ' ')
        before--;
    if (!at || likely - before < at - likely)
        at = before;
    return at && !Py_UNICODE_ISSPACE(letter(shown, shown->start + at)) ? at : 0;
}

static PyObject *to_span(double left, double right, Py_ssize_t at)
{
    PyObject *parts[] = {PyFloat_FromDouble(left), PyFloat_FromDouble(right), PyLong_FromSsize_t(at)};
    PyObject *span, *fields = tuple_of(parts, 3), *args = fields ? PyTuple_Pack(1, fields) : NULL;
    Py_XDECREF(fields);
    span = args ? PyTuple_Type.tp_new(span_type, args, NULL) : NULL;
    Py_XDECREF(args);
    return span;
}

/* The stretches with the words that they start with; None if one is not where it is likely to be. */
static PyObject *spans_of(const Measure *self, const Measured *found, const Stretch *shown)
{
    Py_ssize_t count = PyList_GET_SIZE(found->stretches), at = 0;
    double all_ink = 0, ink = 0, near = gap_of(self, found->size) / 5;
    PyObject *spans = PyTuple_New(count);
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *stretch = PyList_GET_ITEM(found->stretches, number);
        all_ink += PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(stretch, 1)) - PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(stretch, 0));
    }
    double letters_a_point = 0 < all_ink && all_ink < INFINITY ? (shown->end - shown->start) / all_ink : 0.0;
    for (Py_ssize_t number = 0; spans != NULL && number < count; number++) {
        PyObject *stretch = PyList_GET_ITEM(found->stretches, number);
        double left = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(stretch, 0));
        double right = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(stretch, 1));
        int is_there = 0 <= left && left <= right && right <= self->width;
        if (is_there && number) {
            double likely = ink * letters_a_point;
            float box[4] = {0, 0, 0, 0};
            at = word_near(shown, likely > (double)at ? (Py_ssize_t)likely : at);
            is_there = at && get_char_box(self->textpage, (int)(shown->start + at), box);
            double off = box[0] - self->left - left;
            is_there = is_there && -near <= off && off <= near;
        }
        if (!is_there) {
            Py_DECREF(spans);
            Py_RETURN_NONE;
        }
        PyObject *span = to_span(left, right, at);
        if (span == NULL)
            Py_CLEAR(spans);
        else
            PyTuple_SET_ITEM(spans, number, span);
        ink += right - left;
    }
    return spans;
}

/* Whether it can be taken as it is measured: of plain type, on the page, not wider than its letters make it. */
static int is_plain(const Measure *self, const Measured *found, const Stretch *shown)
{
    return !found->style && found->count > 0 && !Py_UNICODE_ISDECIMAL(letter(shown, shown->start)) &&
           0 <= found->left && found->left <= found->right && found->right <= self->width && 0 <= found->top &&
           found->top <= found->bottom && found->bottom <= self->height && 0 <= found->base &&
           found->base <= self->height && 0 < found->size && found->size <= self->height &&
           (found->count > 1 ||
            found->right - found->left <= WIDE * found->size * (double)(shown->end - shown->start));
}

/* Takes the spans. */
static PyObject *to_line(const Measured *found, PyObject *text, PyObject *spans, int hyphened, long first, long last)
{
    PyObject *args[] = {
        Py_NewRef(text),
        PyFloat_FromDouble(found->left),
        PyFloat_FromDouble(found->right),
        PyFloat_FromDouble(found->top),
        PyFloat_FromDouble(found->bottom),
        PyFloat_FromDouble(found->base),
        PyFloat_FromDouble(found->size),
        PyBool_FromLong(hyphened),
        spans,
        Py_NewRef(Py_False),
        PyLong_FromLong(first),
        PyLong_FromLong(last - first + 1),
    };
    size_t count = sizeof args / sizeof *args;
    int failed = 0;
    for (size_t at = 0; at < count; at++)
        failed = failed || args[at] == NULL;
    PyObject *line = failed ? NULL : PyObject_Vectorcall((PyObject *)line_type, args, count, NULL);
    for (size_t at = 0; at < count; at++)
        Py_XDECREF(args[at]);
    return line;
}

/* The line whose text is `part` of the page's, of which some is shown; `slow` makes it if it is not plain. */
static PyObject *read_line(const Measure *self, PyObject *text, const Stretch *part, const Stretch *shown, int hyphened,
                           PyObject *slow, Py_ssize_t *pieces)
{
    Measured found;
    long last = (long)part->end - 1;
    long first = (long)(letter(part, part->start) <= ' ' ? shown->start : part->start);
    if (measure(self, first, last, &found))
        return NULL;
    *pieces += found.count;
    PyObject *line = NULL, *spans = Py_NewRef(Py_None), *own = PyUnicode_Substring(text, shown->start, shown->end);
    if (own != NULL && is_plain(self, &found, shown)) {
        Py_DECREF(spans);
        int has_gaps = found.stretches != Py_None && PyList_GET_SIZE(found.stretches) > 1;
        spans = has_gaps ? spans_of(self, &found, shown) : Py_NewRef(no_spans);
    }
    if (own == NULL || spans == NULL) {
        Py_XDECREF(spans);
        Py_DECREF(found.stretches);
    } else if (spans != Py_None) {
        line = to_line(&found, own, spans, hyphened, first, last);
        Py_DECREF(found.stretches);
    } else {
        PyObject *measures = as_tuple(&found), *whole = PyUnicode_Substring(text, part->start, part->end);
        if (measures != NULL && whole != NULL)
            line = PyObject_CallFunction(slow, "OOnllOO", whole, own, part->start, first, last,
                                         hyphened ? Py_True : Py_False, measures);
        Py_XDECREF(measures);
        Py_XDECREF(whole);
        Py_DECREF(spans);
    }
    Py_XDECREF(own);
    return line;
}

/* lines(text, most, slow): the lines of the page's text, at most so many, and in how many pieces they are drawn. `slow`
   is LineReader.made. */
static PyObject *measure_lines(Measure *self, PyObject *args)
{
    PyObject *text, *slow;
    Py_ssize_t most, pieces = 0;
    if (!PyArg_ParseTuple(args, "UnO", &text, &most, &slow))
        return NULL;
    PyObject *lines = PyList_New(0);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text), end;
    Stretch part = {PyUnicode_KIND(text), PyUnicode_DATA(text), 0, 0};
    for (Py_ssize_t start = 0; lines != NULL && start <= length && PyList_GET_SIZE(lines) < most; start = end) {
        for (end = start; end < length; end++) {
            Py_UCS4 at = letter(&part, end);
            if (at == HYPHEN || (at == '\r' && end + 1 < length && letter(&part, end + 1) == '\n'))
                break;
        }
        Stretch shown = part;
        part.start = shown.start = start;
        part.end = shown.end = end;
        while (shown.start < end && Py_UNICODE_ISSPACE(letter(&part, shown.start)))
            shown.start++;
        while (shown.end > shown.start && Py_UNICODE_ISSPACE(letter(&part, shown.end - 1)))
            shown.end--;
        int hyphened = end < length && letter(&part, end) == HYPHEN;
        if (shown.start < shown.end) {
            PyObject *line = read_line(self, text, &part, &shown, hyphened, slow, &pieces);
            if (line == NULL || PyList_Append(lines, line))
                Py_CLEAR(lines);
            Py_XDECREF(line);
        }
        end += hyphened ? 1 : 2;
    }
    return lines ? Py_BuildValue("Nn", lines, pieces) : NULL;
}

static PyMethodDef measure_methods[] = {
    {"line", (PyCFunction)(void (*)(void))measure_line, METH_FASTCALL, NULL},
    {"lines", (PyCFunction)measure_lines, METH_VARARGS, NULL},
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

/* bind(addresses, style_of, Line, Span): of pdfium's functions, eight of them, what tells a font's style by its
   name and flags, and the types of what is found. */
static PyObject *bind(PyObject *module, PyObject *args)
{
    unsigned long long at[8];
    PyObject *callable;
    PyTypeObject *line, *span;
    if (!PyArg_ParseTuple(args, "(KKKKKKKK)OO!O!", &at[0], &at[1], &at[2], &at[3], &at[4], &at[5], &at[6], &at[7],
                          &callable, &PyType_Type, &line, &PyType_Type, &span))
        return NULL;
    if (!PyType_IsSubtype(span, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a span is a tuple");
        return NULL;
    }
    get_matrix = (int (*)(void *, int, Matrix *))(uintptr_t)at[0];
    get_font_size = (double (*)(void *, int))(uintptr_t)at[1];
    get_font_info = (unsigned long (*)(void *, int, void *, unsigned long, int *))(uintptr_t)at[2];
    count_rects = (int (*)(void *, int, int))(uintptr_t)at[3];
    get_rect = (int (*)(void *, int, double *, double *, double *, double *))(uintptr_t)at[4];
    get_char_box = (int (*)(void *, int, float *))(uintptr_t)at[5];
    count_chars = (int (*)(void *))(uintptr_t)at[6];
    get_text = (int (*)(void *, int, int, unsigned short *))(uintptr_t)at[7];
    Py_XSETREF(style_of, Py_NewRef(callable));
    Py_XSETREF(line_type, (PyTypeObject *)Py_NewRef(line));
    Py_XSETREF(span_type, (PyTypeObject *)Py_NewRef(span));
    Py_XSETREF(no_spans, PyTuple_New(0));
    known_length = 0;
    Py_RETURN_NONE;
}

/* text(textpage, most): the text at this address as pdfium gives it, at most so many characters. */
static PyObject *page_text(PyObject *module, PyObject *args)
{
    unsigned long long address;
    int most;
    if (!PyArg_ParseTuple(args, "Ki", &address, &most))
        return NULL;
    void *textpage = (void *)(uintptr_t)address;
    if (textpage == NULL || count_chars == NULL) {
        PyErr_SetString(PyExc_ValueError, count_chars ? "there is no page" : "bind was not called");
        return NULL;
    }
    int count = count_chars(textpage);
    if (count > most)
        count = most;
    if (count <= 0)
        return PyUnicode_New(0, 0);
    /* Letters beyond the first plane take two units. */
    unsigned short *room = PyMem_New(unsigned short, 2 * ((size_t)count + 1));
    if (room == NULL)
        return PyErr_NoMemory();
    int units = get_text(textpage, 0, count, room), order = -1;
    PyObject *text = PyUnicode_DecodeUTF16((const char *)room, units > 1 ? 2 * ((Py_ssize_t)units - 1) : 0, "replace", &order);
    PyMem_Free(room);
    return text;
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"text", page_text, METH_VARARGS, NULL},
    {NULL},
};

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
