/* How many tokens the words of a text have, where all of them are known: token_counter.py without making a string of each
   word. It does without this where it could not be built; a test holds the two to the same answers.

   Only text in ASCII: words of others are told by Python. Not for threads, but with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define FIRST_SLOTS 4096
/* A word that is not found by then counts as unknown, whoever chose the words. */
#define MOST_STEPS 64

typedef struct {
    uint64_t hash;
    char *word; /* NULL for a free slot */
    Py_ssize_t length;
    long tokens;
} Slot;

typedef struct {
    PyObject_HEAD
    Slot *slots;
    size_t size, used;
    uint64_t seed;
} Counts;

static uint64_t add_letter(uint64_t hash, unsigned char letter)
{
    return (hash ^ letter) * UINT64_C(0x100000001b3);
}

static size_t place_of(const Counts *self, uint64_t hash)
{
    return (size_t)(hash ^ (hash >> 29)) & (self->size - 1);
}

/* The slot of a word, or the free one that it would be put in; NULL where it is looked for no longer. */
static Slot *find(const Counts *self, uint64_t hash, const char *word, Py_ssize_t length)
{
    size_t place = place_of(self, hash);
    for (int step = 0; step < MOST_STEPS; step++) {
        Slot *slot = &self->slots[place];
        if (slot->word == NULL || (slot->hash == hash && slot->length == length && !memcmp(slot->word, word, length)))
            return slot;
        place = (place + 1) & (self->size - 1);
    }
    return NULL;
}

static int grow(Counts *self)
{
    Slot *old = self->slots;
    size_t old_size = self->size, size = old_size ? 2 * old_size : FIRST_SLOTS;
    Slot *slots = PyMem_Calloc(size, sizeof(Slot));
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->slots = slots;
    self->size = size;
    self->used = 0;
    for (size_t at = 0; at < old_size; at++) {
        if (old[at].word == NULL)
            continue;
        Slot *slot = find(self, old[at].hash, old[at].word, old[at].length);
        if (slot == NULL)
            PyMem_Free(old[at].word);
        else {
            *slot = old[at];
            self->used++;
        }
    }
    PyMem_Free(old);
    return 0;
}

/* learn(word, tokens): of a word in ASCII without white space. */
static PyObject *counts_learn(Counts *self, PyObject *args)
{
    PyObject *text;
    long tokens;
    if (!PyArg_ParseTuple(args, "Ul", &text, &tokens))
        return NULL;
    if (!PyUnicode_IS_ASCII(text) || !PyUnicode_GET_LENGTH(text)) {
        PyErr_SetString(PyExc_ValueError, "a word in ASCII is needed");
        return NULL;
    }
    if (2 * (self->used + 1) > self->size && grow(self))
        return NULL;
    const char *word = PyUnicode_DATA(text);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    uint64_t hash = self->seed;
    for (Py_ssize_t at = 0; at < length; at++)
        hash = add_letter(hash, (unsigned char)word[at]);
    Slot *slot = find(self, hash, word, length);
    if (slot != NULL && slot->word == NULL) {
        char *own = PyMem_Malloc(length);
        if (own == NULL)
            return PyErr_NoMemory();
        memcpy(own, word, length);
        *slot = (Slot){hash, own, length, tokens};
        self->used++;
    } else if (slot != NULL)
        slot->tokens = tokens;
    Py_RETURN_NONE;
}

/* The white space of ASCII that a tokenizer parts words at too; other control characters are left to Python. */
static int is_space(unsigned char letter)
{
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

/* count(text): the tokens of all its words together; -1 if one of them is not known, or it is not all plain ASCII. */
static PyObject *counts_count(Counts *self, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is needed");
        return NULL;
    }
    if (!PyUnicode_IS_ASCII(text))
        return PyLong_FromLong(-1);
    const unsigned char *letters = PyUnicode_DATA(text);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text), at = 0;
    long total = 0;
    while (at < length) {
        if (is_space(letters[at])) {
            at++;
            continue;
        }
        Py_ssize_t start = at;
        uint64_t hash = self->seed;
        for (; at < length && !is_space(letters[at]); at++) {
            if (letters[at] < ' ')
                return PyLong_FromLong(-1);
            hash = add_letter(hash, letters[at]);
        }
        const Slot *slot = self->size ? find(self, hash, (const char *)letters + start, at - start) : NULL;
        if (slot == NULL || slot->word == NULL)
            return PyLong_FromLong(-1);
        total += slot->tokens;
    }
    return PyLong_FromLong(total);
}

static void forget(Counts *self)
{
    for (size_t at = 0; at < self->size; at++)
        PyMem_Free(self->slots[at].word);
    PyMem_Free(self->slots);
    self->slots = NULL;
    self->size = self->used = 0;
}

/* clear(): knows no word any more. */
static PyObject *counts_clear(Counts *self, PyObject *unused)
{
    forget(self);
    Py_RETURN_NONE;
}

/* Counts(seed): a number that nobody can guess, so that no file has words that are looked for in one place. */
static int counts_init(Counts *self, PyObject *args, PyObject *kwargs)
{
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "K", &seed))
        return -1;
    forget(self);
    self->seed = seed;
    return 0;
}

static void counts_dealloc(Counts *self)
{
    forget(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef counts_methods[] = {
    {"learn", (PyCFunction)counts_learn, METH_VARARGS, NULL},
    {"count", (PyCFunction)counts_count, METH_O, NULL},
    {"clear", (PyCFunction)counts_clear, METH_NOARGS, NULL},
    {NULL},
};

static PyTypeObject CountsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rag.flow._word_counts.Counts",
    .tp_basicsize = sizeof(Counts),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)counts_init,
    .tp_dealloc = (destructor)counts_dealloc,
    .tp_methods = counts_methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_word_counts", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__word_counts(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddType(module, &CountsType)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
