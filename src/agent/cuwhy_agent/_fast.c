/*
 * _fast: the agent's C half in the user's process.
 *
 * Two things are here because Python is too slow for them. look() reads an index-like tensor on the
 * CPU and tells whether any element leaves its range. guard() and method() make a callable that
 * runs a check and then the original; unlike a Python wrapper it adds no frame to the user's
 * tracebacks and costs x[5] some 30 ns. Everything else about the original shows through: its
 * attributes, its hash, its pickling.
 *
 * Stable ABI of Python 3.8. Vectorcall is part of it only from 3.12 on, but the flags and the protocol
 * are the same since 3.9: they are used from there on by value, and PyObject_Vectorcall, which older
 * versions have only in their headers, by weak symbol.
 */
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03080000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FLAG_VECTORCALL (1UL << 11)        /* Py_TPFLAGS_HAVE_VECTORCALL */
#define FLAG_METHOD_DESCRIPTOR (1UL << 17) /* Py_TPFLAGS_METHOD_DESCRIPTOR */
#define OFFSET_FLAG ((size_t)1 << (8 * sizeof(size_t) - 1)) /* PY_VECTORCALL_ARGUMENTS_OFFSET */

typedef PyObject *(*vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
extern __attribute__((weak)) PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);

enum code { I64, I32, I16, I8, U8, F64, F32, F16, BF16, CODES };

static const char *const dtype_names[CODES] = {"int64", "int32", "int16", "int8", "uint8",
	"float64", "float32", "float16", "bfloat16"};
static const int item_size[CODES] = {8, 4, 2, 1, 1, 8, 4, 2, 2};

static PyObject *dtypes[CODES];
static PyObject *tensor_type, *parameter_type;
static PyObject *is_cpu; /* is_cpu(tensor): where it really is, whatever Tensor.is_cpu says */
static PyObject *s_dtype, *s_size, *s_stride, *s_data_ptr, *s_is_neg;

struct range {
	int64_t low, high, ignore;
	bool ignoring;
	double flow, fhigh;
};

#define MAX_DIMS 32

/* A tensor without its dimensions of one element or of stride 0: those repeat what was seen. */
struct view {
	const char *data;
	enum code code;
	int dims;
	int64_t size[MAX_DIMS], stride[MAX_DIMS]; /* stride in elements */
};

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#define BLOCK 4096 /* elements between two looks at the result: the early way out */

/* One unsigned comparison is both bounds: v - low wraps above high - low when v is outside. */
#define INT_RUN(name, type)                                                                        \
	CLONES static bool name(const type *p, int64_t n, int64_t step, const struct range *r)     \
	{                                                                                          \
		uint64_t low = (uint64_t)r->low, span = (uint64_t)r->high - low;                   \
		for (int64_t at = 0; at < n; at += BLOCK) {                                        \
			int64_t end = n - at < BLOCK ? n : at + BLOCK;                             \
			uint64_t bad = 0;                                                          \
			if (step == 1 && !r->ignoring)                                             \
				for (int64_t i = at; i < end; i++)                                 \
					bad |= (uint64_t)(int64_t)p[i] - low > span;               \
			else                                                                       \
				for (int64_t i = at; i < end; i++) {                               \
					int64_t v = (int64_t)p[i * step];                          \
					bad |= ((uint64_t)v - low > span) &                        \
						!(r->ignoring && v == r->ignore);                  \
				}                                                                  \
			if (bad)                                                                   \
				return true;                                                       \
		}                                                                                  \
		return false;                                                                      \
	}

INT_RUN(run_i64, int64_t)
INT_RUN(run_i32, int32_t)
INT_RUN(run_i16, int16_t)
INT_RUN(run_i8, int8_t)
INT_RUN(run_u8, uint8_t)

static double from_half(uint16_t h)
{
	int exponent = (h >> 10) & 31, fraction = h & 1023;
	double v = exponent == 31 ? (fraction ? NAN : INFINITY)
		: exponent	  ? ldexp(1024 + fraction, exponent - 25)
				  : ldexp(fraction, -24);
	return h >> 15 ? -v : v;
}

static double from_bfloat(uint16_t b)
{
	uint32_t bits = (uint32_t)b << 16;
	float v;
	memcpy(&v, &bits, sizeof(v));
	return v;
}

#define AS_IS(v) (v)

/* NaN fails both comparisons, so it is bad. */
#define REAL_RUN(name, type, wide, convert)                                                        \
	CLONES static bool name(const type *p, int64_t n, int64_t step, const struct range *r)     \
	{                                                                                          \
		wide low = (wide)r->flow, high = (wide)r->fhigh;                                   \
		for (int64_t at = 0; at < n; at += BLOCK) {                                        \
			int64_t end = n - at < BLOCK ? n : at + BLOCK;                             \
			int bad = 0;                                                               \
			for (int64_t i = at; i < end; i++) {                                       \
				wide v = convert(p[i * step]);                                     \
				bad |= !((v >= low) & (v <= high));                                \
			}                                                                          \
			if (bad)                                                                   \
				return true;                                                       \
		}                                                                                  \
		return false;                                                                      \
	}

REAL_RUN(run_f64, double, double, AS_IS)
REAL_RUN(run_f32, float, float, AS_IS)
REAL_RUN(run_f16, uint16_t, double, from_half)
REAL_RUN(run_bf16, uint16_t, double, from_bfloat)

static bool run(enum code code, const void *p, int64_t n, int64_t step, const struct range *r)
{
	switch (code) {
	case I64: return run_i64(p, n, step, r);
	case I32: return run_i32(p, n, step, r);
	case I16: return run_i16(p, n, step, r);
	case I8: return run_i8(p, n, step, r);
	case U8: return run_u8(p, n, step, r);
	case F64: return run_f64(p, n, step, r);
	case F32: return run_f32(p, n, step, r);
	case F16: return run_f16(p, n, step, r);
	case BF16: return run_bf16(p, n, step, r);
	case CODES: break;
	}
	return false;
}

static bool walk(const struct view *v, int dim, const char *data, const struct range *r)
{
	if (dim >= v->dims - 1)
		return run(v->code, data, v->dims ? v->size[dim] : 1, v->dims ? v->stride[dim] : 1, r);
	for (int64_t i = 0; i < v->size[dim]; i++)
		if (walk(v, dim + 1, data + i * v->stride[dim] * item_size[v->code], r))
			return true;
	return false;
}

/* Neighbouring dimensions that lie in one piece become one. */
static void view_add(struct view *v, int64_t size, int64_t stride)
{
	if (size == 1 || stride == 0)
		return;
	int last = v->dims - 1;
	if (last >= 0 && v->stride[last] == size * stride) {
		v->size[last] *= size;
		v->stride[last] = stride;
	} else {
		v->size[v->dims] = size;
		v->stride[v->dims++] = stride;
	}
}

/* Takes a reference: 1 for true, 0 for false, -1 with an error. */
static int truth(PyObject *value)
{
	int yes = value ? PyObject_IsTrue(value) : -1;
	Py_XDECREF(value);
	return yes;
}

static int dtype_code(PyObject *t)
{
	PyObject *dtype = PyObject_GetAttr(t, s_dtype);
	int code = 0;
	while (code < CODES && dtypes[code] != dtype)
		code++;
	Py_XDECREF(dtype);
	return code;
}

/* Fills the shape and strides; 0 when there is nothing to read, -1 when it cannot be read. */
static int view_shape(struct view *v, PyObject *t)
{
	PyObject *size = PyObject_CallMethodObjArgs(t, s_size, NULL);
	PyObject *stride = size ? PyObject_CallMethodObjArgs(t, s_stride, NULL) : NULL;
	int ret = -1;
	if (stride && PyTuple_Check(size) && PyTuple_Check(stride) && PyTuple_Size(size) <= MAX_DIMS &&
		PyTuple_Size(size) == PyTuple_Size(stride)) {
		ret = 1;
		for (Py_ssize_t i = 0; i < PyTuple_Size(size); i++) {
			int64_t n = PyLong_AsLongLong(PyTuple_GetItem(size, i));
			int64_t step = PyLong_AsLongLong(PyTuple_GetItem(stride, i));
			if (PyErr_Occurred()) {
				ret = -1;
				break;
			}
			if (n == 0)
				ret = 0;
			else
				view_add(v, n, step);
		}
	}
	Py_XDECREF(size);
	Py_XDECREF(stride);
	return ret;
}

/* 1: v can be read; 0: it is empty; -1: it cannot be looked at (no plain CPU tensor). */
static int view_of(struct view *v, PyObject *t)
{
	PyObject *type = (PyObject *)Py_TYPE(t);
	if (type != tensor_type && type != parameter_type)
		return -1;
	if (truth(PyObject_CallFunctionObjArgs(is_cpu, t, NULL)) != 1)
		return -1;
	int code = dtype_code(t);
	if (code == CODES || (code >= F64 && truth(PyObject_CallMethodObjArgs(t, s_is_neg, NULL)) != 0))
		return -1;
	v->code = (enum code)code;
	int ret = view_shape(v, t);
	if (ret <= 0)
		return ret;
	PyObject *address = PyObject_CallMethodObjArgs(t, s_data_ptr, NULL);
	v->data = address ? PyLong_AsVoidPtr(address) : NULL;
	Py_XDECREF(address);
	return v->data ? 1 : -1;
}

static bool bound(PyObject *o, double unbounded, int64_t *as_int, double *as_real)
{
	*as_real = o == Py_None ? unbounded : PyFloat_AsDouble(o);
	if (o == Py_None || PyFloat_Check(o))
		*as_int = unbounded < 0 ? INT64_MIN : INT64_MAX;
	else
		*as_int = PyLong_AsLongLong(o);
	return !PyErr_Occurred();
}

PyDoc_STRVAR(look_doc,
	"look(tensor, low, high, ignore): True when an element leaves [low, high] and is not `ignore`,\n"
	"False when none does, None when the tensor cannot be looked at. None is no bound; without a\n"
	"high bound infinity is bad, as NaN always is. Bounds that are floats are for tensors of reals,\n"
	"others for integers; the other way round the tensor cannot be looked at.");

static PyObject *look(PyObject *module, PyObject *args)
{
	PyObject *t, *low, *high, *ignore;
	struct view v = {.dims = 0};
	struct range r = {.ignoring = false};
	(void)module;
	if (!PyArg_ParseTuple(args, "OOOO", &t, &low, &high, &ignore) ||
		!bound(low, -DBL_MAX, &r.low, &r.flow) || !bound(high, DBL_MAX, &r.high, &r.fhigh))
		return NULL;
	r.ignoring = ignore != Py_None;
	if (r.ignoring && (r.ignore = PyLong_AsLongLong(ignore)) == -1 && PyErr_Occurred())
		return NULL;
	int have = view_of(&v, t);
	PyErr_Clear();
	if (have < 0 || (have > 0 && (PyFloat_Check(low) || PyFloat_Check(high)) != (v.code >= F64)))
		Py_RETURN_NONE;
	/* No value fits where there is no class, row or element at all. */
	if (have > 0 && r.low > r.high && v.code <= U8 && !r.ignoring)
		Py_RETURN_TRUE;
	if (r.low > r.high) { /* a range that no int64 is in: the span of INT_RUN has no such value */
		if (have == 0 || v.code > U8)
			Py_RETURN_FALSE;
		r.low = r.high = r.ignore;
	}
	/* float32 has no value for DBL_MAX: without a bound it is the largest float. */
	if (v.code == F32) {
		r.flow = r.flow < -FLT_MAX ? -FLT_MAX : r.flow;
		r.fhigh = r.fhigh > FLT_MAX ? FLT_MAX : r.fhigh;
	}
	return PyBool_FromLong(have > 0 && walk(&v, 0, v.data, &r));
}

struct guard {
	PyObject_HEAD
	vectorcall call;
	PyObject *original;
	PyObject *check;  /* check(args, kwargs or None), before the call */
	PyObject *failed; /* failed(args, kwargs or None, error), when the call raised; or None */
	binaryfunc slot;  /* of the original, when it wraps a slot of type: x[5] goes there at once */
	PyTypeObject *type;
	PyObject *weak;   /* the weak references to it: TorchScript and torch.compile keep such */
	int position;     /* only look at calls whose argument here can hold indices; -1: all */
};

/* While the agent works, in this thread, its own tensor operations are not looked at. */
static __thread int quiet;

/* x[5], x[:, 1], x[...], x[None] index nothing that could be out of range unnoticed. */
static bool plain_index(PyObject *key)
{
	return PyLong_Check(key) || Py_TYPE(key) == &PySlice_Type || key == Py_None ||
		key == Py_Ellipsis || PyUnicode_Check(key);
}

static bool worth_checking(const struct guard *g, PyObject *const *args, Py_ssize_t n)
{
	if (quiet || !g->check)
		return false;
	if (g->position < 0)
		return true;
	if (n <= g->position)
		return false;
	PyObject *key = args[g->position];
	if (!PyTuple_Check(key))
		return !plain_index(key);
	for (Py_ssize_t i = 0, len = PyTuple_Size(key); i < len; i++)
		if (!plain_index(PyTuple_GetItem(key, i)))
			return true;
	return false;
}

/* An error of the agent's own is dropped; the end of the program (Ctrl-C, exit) is not. */
static bool drop_error(PyObject *result)
{
	Py_XDECREF(result);
	if (!result && PyErr_ExceptionMatches(PyExc_Exception))
		PyErr_Clear();
	return result || !PyErr_Occurred();
}

static void tell_failed(const struct guard *g, PyObject *args, PyObject *kwargs)
{
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	quiet++;
	PyObject *result = PyObject_CallFunctionObjArgs(g->failed, args, kwargs, value, NULL);
	quiet--;
	Py_XDECREF(result);
	if (!result)
		PyErr_Clear();
	PyErr_Restore(type, value, trace);
}

static PyObject *checked_call(struct guard *g, PyObject *args, PyObject *kwargs)
{
	PyObject *words = kwargs ? kwargs : Py_None;
	quiet++;
	PyObject *result = PyObject_CallFunctionObjArgs(g->check, args, words, NULL);
	quiet--;
	if (!drop_error(result))
		return NULL;
	result = PyObject_Call(g->original, args, kwargs);
	if (!result && g->failed && PyErr_ExceptionMatches(PyExc_Exception))
		tell_failed(g, args, words);
	return result;
}

/* The arguments as a tuple and a dict, or NULL for none; false with an error. */
static bool pack(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **tuple, PyObject **kwargs)
{
	*kwargs = NULL;
	*tuple = PyTuple_New(n);
	if (!*tuple)
		return false;
	for (Py_ssize_t i = 0; i < n; i++) {
		Py_INCREF(args[i]);
		PyTuple_SetItem(*tuple, i, args[i]);
	}
	if (!names || PyTuple_Size(names) == 0)
		return true;
	*kwargs = PyDict_New();
	for (Py_ssize_t i = 0; *kwargs && i < PyTuple_Size(names); i++)
		if (PyDict_SetItem(*kwargs, PyTuple_GetItem(names, i), args[n + i]) < 0)
			Py_CLEAR(*kwargs);
	if (!*kwargs)
		Py_CLEAR(*tuple);
	return *kwargs != NULL;
}

static PyObject *guard_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
	struct guard *g = (struct guard *)self;
	Py_ssize_t n = (Py_ssize_t)(nargsf & ~OFFSET_FLAG);
	bool check = worth_checking(g, args, n);
	PyObject *result = NULL, *tuple, *kwargs;
	if (!check && g->slot && n == 2 && !names && PyType_IsSubtype(Py_TYPE(args[0]), g->type))
		return g->slot(args[0], args[1]);
	if (!check && PyObject_Vectorcall)
		return PyObject_Vectorcall(g->original, args, nargsf, names);
	if (!pack(args, n, names, &tuple, &kwargs))
		return NULL;
	result = check ? checked_call(g, tuple, kwargs) : PyObject_Call(g->original, tuple, kwargs);
	Py_DECREF(tuple);
	Py_XDECREF(kwargs);
	return result;
}

static PyObject *guard_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct guard *g = (struct guard *)self;
	Py_ssize_t n = PyTuple_Size(args);
	PyObject *key = g->position >= 0 && g->position < n ? PyTuple_GetItem(args, g->position) : NULL;
	struct guard one = {.check = g->check, .position = key ? 0 : g->position};
	if (!worth_checking(&one, &key, key ? 1 : 0))
		return PyObject_Call(g->original, args, kwargs);
	return checked_call(g, args, kwargs);
}

static PyObject *guard_getattr(PyObject *self, PyObject *name)
{
	struct guard *g = (struct guard *)self;
	if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
		Py_INCREF(g->original);
		return g->original;
	}
	return PyObject_GetAttr(g->original, name);
}

static Py_hash_t guard_hash(PyObject *self)
{
	return PyObject_Hash(((struct guard *)self)->original);
}

static PyObject *guard_repr(PyObject *self)
{
	return PyObject_Repr(((struct guard *)self)->original);
}

static PyTypeObject *guard_type, *method_type;

/* PyTorch hands the original to __torch_function__, the user's tables hold the guard: the same. */
static PyObject *guard_compare(PyObject *a, PyObject *b, int how)
{
	if (Py_TYPE(b) == guard_type || Py_TYPE(b) == method_type)
		b = ((struct guard *)b)->original;
	return PyObject_RichCompare(((struct guard *)a)->original, b, how);
}

static PyObject *method_get(PyObject *self, PyObject *instance, PyObject *owner)
{
	static PyObject *method;
	(void)owner;
	if (!instance || instance == Py_None) {
		Py_INCREF(self);
		return self;
	}
	if (!method) {
		PyObject *types = PyImport_ImportModule("types");
		method = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
		Py_XDECREF(types);
	}
	return method ? PyObject_CallFunctionObjArgs(method, self, instance, NULL) : NULL;
}

static void guard_dealloc(PyObject *self)
{
	struct guard *g = (struct guard *)self;
	PyObject *type = (PyObject *)Py_TYPE(self);
	if (g->weak)
		PyObject_ClearWeakRefs(self);
	Py_XDECREF(g->original);
	Py_XDECREF(g->check);
	Py_XDECREF(g->failed);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyMemberDef guard_members[] = {
	{"__weaklistoffset__", T_PYSSIZET, offsetof(struct guard, weak), READONLY, NULL},
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct guard, call), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};

#define GUARD_SLOTS                                                                                \
	{Py_tp_dealloc, guard_dealloc}, {Py_tp_call, guard_call}, {Py_tp_getattro, guard_getattr}, \
		{Py_tp_hash, guard_hash}, {Py_tp_repr, guard_repr},                                \
		{Py_tp_richcompare, guard_compare}, {Py_tp_members, guard_members}

static PyType_Slot guard_slots[] = {GUARD_SLOTS, {0, NULL}};
static PyType_Slot method_slots[] = {GUARD_SLOTS, {Py_tp_descr_get, method_get}, {0, NULL}};

static PyType_Spec guard_spec = {
	"cuwhy_agent.guard", sizeof(struct guard), 0, Py_TPFLAGS_DEFAULT, guard_slots};
static PyType_Spec method_spec = {
	"cuwhy_agent.method", sizeof(struct guard), 0, Py_TPFLAGS_DEFAULT, method_slots};

/* Types that are not on the heap give their slots from Python 3.10 on. */
static void find_slot(struct guard *g)
{
	PyObject *name = PyObject_GetAttrString(g->original, "__name__");
	PyObject *owner = PyObject_GetAttrString(g->original, "__objclass__");
	if (name && owner && PyType_Check(owner) && PyUnicode_Check(name) &&
		PyUnicode_CompareWithASCIIString(name, "__getitem__") == 0) {
		g->slot = (binaryfunc)PyType_GetSlot((PyTypeObject *)owner, Py_mp_subscript);
		g->type = (PyTypeObject *)owner; /* owned by the original */
	}
	PyErr_Clear();
	Py_XDECREF(name);
	Py_XDECREF(owner);
}

static PyObject *make(PyTypeObject *type, PyObject *args)
{
	PyObject *original, *check, *failed;
	int position;
	if (!PyArg_ParseTuple(args, "OOOi", &original, &check, &failed, &position))
		return NULL;
	struct guard *g = PyObject_New(struct guard, type);
	if (!g)
		return NULL;
	g->call = guard_vectorcall;
	g->original = original;
	g->check = check;
	g->failed = failed == Py_None ? NULL : failed;
	g->position = position;
	g->slot = NULL;
	g->weak = NULL;
	find_slot(g);
	Py_INCREF(original);
	Py_INCREF(check);
	Py_XINCREF(g->failed);
	return (PyObject *)g;
}

static PyObject *make_guard(PyObject *module, PyObject *args)
{
	(void)module;
	return make(guard_type, args);
}

static PyObject *make_method(PyObject *module, PyObject *args)
{
	(void)module;
	return make(method_type, args);
}

/*
 * x[i]. A method on torch.Tensor would have CPython fill the sequence slots of the type too, and whoever
 * asks PySequence_Check (torch.tensor([t0, t1]), NumPy) would then take 0-dim tensors for sequences. So
 * the guard goes into the mapping slots themselves. The limited API hides them; their place has been the
 * same since Python 3.8 (Include/cpython/object.h), and nothing is written unless PyType_GetSlot agrees.
 */
struct mapping { /* PyMappingMethods */
	lenfunc length;
	binaryfunc read;
	objobjargproc write;
};

struct type_layout { /* the first members of PyTypeObject */
	PyVarObject head;
	const char *name;
	Py_ssize_t basicsize, itemsize;
	destructor dealloc;
	Py_ssize_t vectorcall_offset;
	void *getattr, *setattr, *as_async, *repr, *as_number, *as_sequence;
	struct mapping *mapping;
};

static struct guard *reader, *writer;
static binaryfunc read_slot;
static objobjargproc write_slot;

static PyObject *read_item(PyObject *self, PyObject *key)
{
	PyObject *args[] = {self, key};
	if (!worth_checking(reader, args, 2))
		return read_slot(self, key);
	return guard_vectorcall((PyObject *)reader, args, 2, NULL);
}

static int write_item(PyObject *self, PyObject *key, PyObject *value)
{
	PyObject *args[] = {self, key, value};
	if (!value || !worth_checking(writer, args, 3)) /* no value: del x[i] */
		return write_slot(self, key, value);
	PyObject *result = guard_vectorcall((PyObject *)writer, args, 3, NULL);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static PyObject *guard_items(PyObject *module, PyObject *args)
{
	PyObject *both[2];
	(void)module;
	if (!PyArg_ParseTuple(args, "O!O!", method_type, &both[0], method_type, &both[1]))
		return NULL;
	struct type_layout *types[] = {(struct type_layout *)tensor_type, (struct type_layout *)parameter_type};
	for (int i = 0; i < 2; i++) {
		struct mapping *m = types[i]->mapping;
		binaryfunc read = (binaryfunc)PyType_GetSlot((PyTypeObject *)types[i], Py_mp_subscript);
		objobjargproc write = (objobjargproc)PyType_GetSlot((PyTypeObject *)types[i], Py_mp_ass_subscript);
		if (!m || !read || !write || m->read != read || m->write != write)
			Py_RETURN_FALSE;
		if (i && (read != read_slot || write != write_slot))
			Py_RETURN_FALSE;
		read_slot = read;
		write_slot = write;
	}
	reader = (struct guard *)both[0];
	writer = (struct guard *)both[1];
	Py_INCREF(reader);
	Py_INCREF(writer);
	for (int i = 0; i < 2; i++) {
		types[i]->mapping->read = read_item;
		types[i]->mapping->write = write_item;
	}
	Py_RETURN_TRUE;
}

static PyObject *set_quiet(PyObject *module, PyObject *args)
{
	int by;
	(void)module;
	if (!PyArg_ParseTuple(args, "i", &by))
		return NULL;
	quiet += by;
	Py_RETURN_NONE;
}

static PyObject *setup(PyObject *module, PyObject *args)
{
	PyObject *torch;
	(void)module;
	if (!PyArg_ParseTuple(args, "OO", &torch, &is_cpu))
		return NULL;
	Py_INCREF(is_cpu);
	for (int i = 0; i < CODES; i++)
		if (!(dtypes[i] = PyObject_GetAttrString(torch, dtype_names[i])))
			return NULL;
	PyObject *nn = PyObject_GetAttrString(torch, "nn");
	tensor_type = PyObject_GetAttrString(torch, "Tensor");
	parameter_type = nn ? PyObject_GetAttrString(nn, "Parameter") : NULL;
	Py_XDECREF(nn);
	if (!tensor_type || !parameter_type)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"setup", setup, METH_VARARGS, "setup(torch, is_cpu): learn its types, once, before anything else"},
	{"look", look, METH_VARARGS, look_doc},
	{"guard", make_guard, METH_VARARGS, "guard(original, check, failed or None, position): a function"},
	{"method", make_method, METH_VARARGS, "method(...): likewise, and binds like a method"},
	{"guard_items", guard_items, METH_VARARGS, "guard_items(read, write): methods that stand before x[i] and x[i] = y"},
	{"quiet", set_quiet, METH_VARARGS, "quiet(1) ... quiet(-1): no checks in this thread between them"},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "_fast", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fast(void)
{
	int minor = 0;
	if (sscanf(Py_GetVersion(), "3.%d", &minor) == 1 && minor >= 9) {
		guard_spec.flags |= FLAG_VECTORCALL;
		method_spec.flags |= FLAG_VECTORCALL;
	} else {
		guard_members[0].name = NULL; /* 3.8 knows neither */
	}
	method_spec.flags |= FLAG_METHOD_DESCRIPTOR;
	s_dtype = PyUnicode_InternFromString("dtype");
	s_size = PyUnicode_InternFromString("size");
	s_stride = PyUnicode_InternFromString("stride");
	s_data_ptr = PyUnicode_InternFromString("data_ptr");
	s_is_neg = PyUnicode_InternFromString("is_neg");
	guard_type = (PyTypeObject *)PyType_FromSpec(&guard_spec);
	method_type = (PyTypeObject *)PyType_FromSpec(&method_spec);
	if (!guard_type || !method_type || !s_is_neg)
		return NULL;
	return PyModule_Create(&definition);
}
