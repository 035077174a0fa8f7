/*
 * record: a plain struct described by a table of its fields.
 *
 * One table gives JSON out, JSON in, and free, so the wire, the session file and replay cannot
 * drift apart. Unknown is a value: an unknown integer is INT_UNKNOWN, an unknown text is NULL, an
 * unknown value has kind VALUE_NONE; all of them are null in JSON. JSON fields that a table does
 * not name are ignored on reading, so a newer agent or session can say more.
 */
#ifndef CUWHY_RECORD_H
#define CUWHY_RECORD_H

#include <jansson.h>

#include "base/util.h"

#define INT_UNKNOWN INT64_MIN

/* One number of a tensor: exact for integers, and NaN and infinities are values too. */
struct value {
	enum { VALUE_NONE, VALUE_INT, VALUE_REAL } kind;
	int64_t i;
	double d;
};

struct value value_int(int64_t i);
struct value value_real(double d);
bool value_known(struct value v);
/* As a person reads it: 10, 0.5, nan, inf. Returns out. */
char *value_text(struct value v, char out[static 32]);

struct strs {
	char **v;
	size_t n;
};

struct ints {
	int64_t *v;
	size_t n;
};

struct values {
	struct value *v;
	size_t n;
};

/* An array of records; the field's table says of which. */
struct list {
	void *v;
	size_t n;
};

void strs_add(struct strs *s, const char *text); /* copies */
void strs_done(struct strs *s);
void ints_add(struct ints *s, int64_t i);
void values_add(struct values *s, struct value v);

enum field_type {
	FIELD_STR,     /* char *, owned */
	FIELD_INT,     /* int64_t */
	FIELD_BOOL,    /* bool; false when unknown */
	FIELD_SECONDS, /* double */
	FIELD_VALUE,   /* struct value */
	FIELD_STRS,    /* struct strs, owned */
	FIELD_INTS,    /* struct ints, owned */
	FIELD_VALUES,  /* struct values, owned */
	FIELD_RECORD,  /* the struct itself, embedded */
	FIELD_LIST,    /* struct list of records, owned */
};

struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	const struct record *of; /* FIELD_RECORD, FIELD_LIST */
};

struct record {
	size_t size;
	const struct field *fields; /* ends with a NULL name */
};

#define FIELD(type_, struct_, member_) {#member_, FIELD_##type_, offsetof(struct struct_, member_), NULL}
/* Defines <name>_record for struct name from its fields; storage is static or empty. */
#define RECORD(storage_, name_, ...) \
	static const struct field name_##_fields[] = {__VA_ARGS__, {0}}; \
	storage_ const struct record name_##_record = {sizeof(struct name_), name_##_fields}
#define FIELD_OF(type_, struct_, member_, record_) \
	{#member_, FIELD_##type_, offsetof(struct struct_, member_), record_}

/* Everything unknown. obj needs no record_done until something is put in. */
void record_init(const struct record *r, void *obj);
/* Frees what obj owns and makes it unknown again. */
void record_done(const struct record *r, void *obj);
/* A deep copy into dst, which is overwritten, not freed. */
void record_copy(const struct record *r, void *dst, const void *src);
/* New reference; unknown fields are left out unless all, then they are null. */
json_t *record_encode(const struct record *r, const void *obj, bool all);
/*
 * Reads what is there and has the right type; the rest stays unknown. Sizes are bounded
 * (RECORD_MAX_ITEMS an array), so that a stranger's session cannot make us allocate without end.
 * obj is initialised here. False when json is no object.
 */
bool record_decode(const struct record *r, const json_t *json, void *obj, struct error *e);

#define RECORD_MAX_ITEMS 100000

/* Appends a record to a list and returns it, initialised. The pointer is good until the next add. */
void *list_add(struct list *l, const struct record *r);
void list_done(struct list *l, const struct record *r);

json_t *value_json(struct value v);
/* Never NULL: bytes that are no UTF-8 become U+FFFD, and NULL becomes null. */
json_t *text_json(const char *text);
struct value value_from_json(const json_t *json);

#endif
