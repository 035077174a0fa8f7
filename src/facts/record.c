#include "facts/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value value_int(int64_t i)
{
	return (struct value){.kind = VALUE_INT, .i = i, .d = (double)i};
}

struct value value_real(double d)
{
	return (struct value){.kind = VALUE_REAL, .d = d};
}

bool value_known(struct value v)
{
	return v.kind != VALUE_NONE;
}

char *value_text(struct value v, char out[static 32])
{
	if (v.kind == VALUE_INT)
		snprintf(out, 32, "%" PRId64, v.i);
	else if (v.kind == VALUE_NONE)
		strcpy(out, "?");
	else if (isnan(v.d))
		strcpy(out, "nan");
	else
		snprintf(out, 32, "%.7g", v.d);
	return out;
}

json_t *value_json(struct value v)
{
	if (v.kind == VALUE_INT)
		return json_integer(v.i);
	if (v.kind == VALUE_NONE)
		return json_null();
	if (isnan(v.d))
		return json_string("nan");
	if (isinf(v.d))
		return json_string(v.d > 0 ? "inf" : "-inf");
	return json_real(v.d);
}

struct value value_from_json(const json_t *json)
{
	if (json_is_integer(json))
		return value_int(json_integer_value(json));
	if (json_is_real(json))
		return value_real(json_real_value(json));
	if (json_is_string(json)) {
		const char *text = json_string_value(json);

		if (strcmp(text, "nan") == 0)
			return value_real(NAN);
		if (strcmp(text, "inf") == 0)
			return value_real(INFINITY);
		if (strcmp(text, "-inf") == 0)
			return value_real(-INFINITY);
	}
	return (struct value){.kind = VALUE_NONE};
}

/*
 * The arrays of a record carry no capacity: a power of two is full, and the next add doubles.
 * Records live long and grow seldom, so the two words are better saved.
 */
static void *grow_for_one(void *v, size_t n, size_t size)
{
	return (n & (n - 1)) == 0 ? xrealloc(v, (n ? 2 * n : 1) * size) : v;
}

void strs_add(struct strs *s, const char *text)
{
	s->v = grow_for_one(s->v, s->n, sizeof *s->v);
	s->v[s->n++] = xstrdup(text);
}

void strs_done(struct strs *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strs){0};
}

void ints_add(struct ints *s, int64_t i)
{
	s->v = grow_for_one(s->v, s->n, sizeof *s->v);
	s->v[s->n++] = i;
}

void values_add(struct values *s, struct value v)
{
	s->v = grow_for_one(s->v, s->n, sizeof *s->v);
	s->v[s->n++] = v;
}

void *list_add(struct list *l, const struct record *r)
{
	l->v = grow_for_one(l->v, l->n, r->size);
	void *slot = (char *)l->v + l->n++ * r->size;

	record_init(r, slot);
	return slot;
}

void list_done(struct list *l, const struct record *r)
{
	for (size_t i = 0; i < l->n; i++)
		record_done(r, (char *)l->v + i * r->size);
	free(l->v);
	*l = (struct list){0};
}

static void *at(const void *obj, const struct field *f)
{
	return (char *)obj + f->offset;
}

void record_init(const struct record *r, void *obj)
{
	memset(obj, 0, r->size);
	for (const struct field *f = r->fields; f->name; f++) {
		if (f->type == FIELD_INT)
			*(int64_t *)at(obj, f) = INT_UNKNOWN;
		else if (f->type == FIELD_RECORD)
			record_init(f->of, at(obj, f));
	}
}

void record_done(const struct record *r, void *obj)
{
	for (const struct field *f = r->fields; f->name; f++) {
		void *p = at(obj, f);

		switch (f->type) {
		case FIELD_STR:
			free(*(char **)p);
			break;
		case FIELD_STRS:
			strs_done(p);
			break;
		case FIELD_INTS:
			free(((struct ints *)p)->v);
			break;
		case FIELD_VALUES:
			free(((struct values *)p)->v);
			break;
		case FIELD_RECORD:
			record_done(f->of, p);
			break;
		case FIELD_LIST:
			list_done(p, f->of);
			break;
		case FIELD_INT:
		case FIELD_BOOL:
		case FIELD_SECONDS:
		case FIELD_VALUE:
			break;
		}
	}
	record_init(r, obj);
}

void record_copy(const struct record *r, void *dst, const void *src)
{
	json_t *json = record_encode(r, src, false);

	record_decode(r, json, dst, NULL);
	json_decref(json);
}

json_t *text_json(const char *text)
{
	json_t *json = text ? json_string(text) : json_null();

	if (json)
		return json;
	/* Bytes that are no UTF-8: keep what is ASCII, show the rest as the replacement character. */
	struct buf b = {0};

	for (; *text; text++) {
		if ((unsigned char)*text < 0x80)
			buf_chr(&b, *text);
		else
			buf_str(&b, "\xef\xbf\xbd");
	}
	json = json_string(b.data ? b.data : "");
	buf_done(&b);
	return json;
}

/* NULL when the field is unknown. */
static json_t *encode_field(const struct field *f, const void *p, bool all)
{
	const struct strs *s = p;
	const struct ints *n = p;
	const struct values *v = p;
	const struct list *l = p;
	json_t *array;

	switch (f->type) {
	case FIELD_STR:
		return *(char *const *)p ? text_json(*(char *const *)p) : NULL;
	case FIELD_INT:
		return *(const int64_t *)p == INT_UNKNOWN ? NULL : json_integer(*(const int64_t *)p);
	case FIELD_BOOL:
		return *(const bool *)p ? json_true() : all ? json_false() : NULL;
	case FIELD_SECONDS:
		return json_real(round(*(const double *)p * 1000) / 1000);
	case FIELD_VALUE:
		return value_known(*(const struct value *)p) ? value_json(*(const struct value *)p) : NULL;
	case FIELD_STRS:
		array = json_array();
		for (size_t i = 0; i < s->n; i++)
			json_array_append_new(array, text_json(s->v[i]));
		return array;
	case FIELD_INTS:
		if (n->n == 0 && !n->v)
			return NULL;
		array = json_array();
		for (size_t i = 0; i < n->n; i++)
			json_array_append_new(array, json_integer(n->v[i]));
		return array;
	case FIELD_VALUES:
		array = json_array();
		for (size_t i = 0; i < v->n; i++)
			json_array_append_new(array, value_json(v->v[i]));
		return array;
	case FIELD_RECORD:
		return record_encode(f->of, p, all);
	case FIELD_LIST:
		array = json_array();
		for (size_t i = 0; i < l->n; i++)
			json_array_append_new(array, record_encode(f->of, (char *)l->v + i * f->of->size, all));
		return array;
	}
	return NULL;
}

json_t *record_encode(const struct record *r, const void *obj, bool all)
{
	json_t *json = json_object();

	for (const struct field *f = r->fields; f->name; f++) {
		json_t *value = encode_field(f, at(obj, f), all);

		if (value || all)
			json_object_set_new(json, f->name, value ? value : json_null());
	}
	return json;
}

static void decode_array(const struct field *f, const json_t *json, void *p)
{
	size_t n = json_array_size(json);

	if (n > RECORD_MAX_ITEMS)
		n = RECORD_MAX_ITEMS;
	/* An empty array is known, a missing one is not: shape [] is a scalar's. */
	if (f->type == FIELD_INTS && n == 0)
		((struct ints *)p)->v = xmalloc(1);
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(json, i);

		if (f->type == FIELD_STRS)
			strs_add(p, json_is_string(item) ? json_string_value(item) : "");
		else if (f->type == FIELD_INTS)
			ints_add(p, json_is_integer(item) ? json_integer_value(item) : 0);
		else if (f->type == FIELD_VALUES)
			values_add(p, value_from_json(item));
		else
			record_decode(f->of, item, list_add(p, f->of), NULL);
	}
}

static void decode_field(const struct field *f, const json_t *json, void *p)
{
	switch (f->type) {
	case FIELD_STR:
		if (json_is_string(json))
			*(char **)p = xstrdup(json_string_value(json));
		break;
	case FIELD_INT:
		if (json_is_integer(json))
			*(int64_t *)p = json_integer_value(json);
		break;
	case FIELD_BOOL:
		*(bool *)p = json_is_true(json);
		break;
	case FIELD_SECONDS:
		if (json_is_number(json))
			*(double *)p = json_number_value(json);
		break;
	case FIELD_VALUE:
		*(struct value *)p = value_from_json(json);
		break;
	case FIELD_RECORD:
		record_decode(f->of, json, p, NULL);
		break;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_VALUES:
	case FIELD_LIST:
		if (json_is_array(json))
			decode_array(f, json, p);
		break;
	}
}

bool record_decode(const struct record *r, const json_t *json, void *obj, struct error *e)
{
	record_init(r, obj);
	if (!json_is_object(json))
		return error_set(e, "expected a JSON object");
	for (const struct field *f = r->fields; f->name; f++)
		decode_field(f, json_object_get(json, f->name), at(obj, f));
	return true;
}
