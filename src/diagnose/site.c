#include "diagnose/site.h"

#include <ctype.h>
#include <string.h>

#include "diagnose/pattern.h"

static bool identifier(int c)
{
	return isalnum((unsigned char)c) || c == '_';
}

void site_squeeze(const char *text, char out[static SITE_CONDITION_MAX])
{
	size_t n = 0;

	for (const char *s = text; *s && n < SITE_CONDITION_MAX - 1; s++) {
		if (isspace((unsigned char)*s))
			continue;
		if (*s == '_' && n && identifier(out[n - 1]) && !identifier(s[1]))
			continue;
		out[n++] = *s;
	}
	out[n] = '\0';
}

/* Cuts `&&"text"` off a squeezed condition. */
static void cut_text(char *condition)
{
	size_t len = strlen(condition);
	char *last = NULL;

	if (len == 0 || condition[len - 1] != '"')
		return;
	for (char *s = condition; (s = strstr(s, "&&\"")) != NULL; s++)
		last = s;
	if (last)
		*last = '\0';
}

void site_sight(const struct assertion *a, struct sighting *s)
{
	const char *source = a->source ? a->source : "";
	size_t len = strlen(source), digits = len;

	while (digits && isdigit((unsigned char)source[digits - 1]))
		digits--;
	if (digits && digits < len && source[digits - 1] == ':')
		len = digits - 1;
	const char *start = len < SITE_PATH_MAX ? source : source + len - (SITE_PATH_MAX - 1);

	len -= (size_t)(start - source);
	for (size_t i = 0; i < len; i++)
		s->path[i] = start[i] == '\\' ? '/' : start[i];
	s->path[len] = '\0';
	s->base = strrchr(s->path, '/') ? strrchr(s->path, '/') + 1 : s->path;
	s->kernel = a->kernel;
	s->signature = a->signature;
	site_squeeze(a->condition ? a->condition : "", s->full);
	memcpy(s->bare, s->full, sizeof(s->bare));
	cut_text(s->bare);
	s->windows = a->form && strcmp(a->form, "windows") == 0;
}

/* Does name stand in text as a whole identifier. */
static bool has_name(const char *text, const char *name, size_t len)
{
	for (const char *s = text; s && (s = strstr(s, name)) != NULL; s++)
		if ((s == text || !identifier(s[-1]) || !identifier(name[0])) &&
		    (!identifier(s[len]) || !identifier(name[len - 1])))
			return true;
	return false;
}

/* The next word of a cell, copied to word; NULL after the last. */
static const char *next_word(const char *cell, char *word, size_t size)
{
	cell += strspn(cell, " ");
	size_t len = strcspn(cell, " ");

	if (len == 0)
		return NULL;
	size_t kept = len < size - 1 ? len : size - 1;

	memcpy(word, cell, kept);
	word[kept] = '\0';
	return cell + len;
}

enum kernel_match { KERNEL_OTHER, KERNEL_STAR, KERNEL_NAMED };

/* operator() names every C++ lambda: it tells no kernel from another, so it is no name. */
static enum kernel_match match_kernel(const char *cell, const struct sighting *s)
{
	enum kernel_match best = KERNEL_OTHER;
	char word[128];

	while ((cell = next_word(cell, word, sizeof(word))) != NULL) {
		size_t len = strlen(word);

		if (strcmp(word, "*") == 0) {
			if (best == KERNEL_OTHER)
				best = KERNEL_STAR;
		} else if (has_name(s->kernel, word, len) || has_name(s->signature, word, len)) {
			if (strcmp(word, "operator()") != 0)
				return KERNEL_NAMED;
			best = KERNEL_STAR;
		}
	}
	return best;
}

/* Loss.cu is Loss.hip in a ROCm build. */
static bool same_base(const char *a, const char *b)
{
	const char *hip = strcmp(a + strcspn(a, "."), ".hip") == 0 ? a : b;
	const char *cuda = hip == a ? b : a;
	size_t stem = strcspn(hip, ".");

	return strcmp(a, b) == 0 || (strcmp(hip + stem, ".hip") == 0 && strncmp(hip, cuda, stem) == 0 &&
		(strcmp(cuda + stem, ".cu") == 0 || strcmp(cuda + stem, ".cuh") == 0));
}

enum file_match { FILE_OTHER, FILE_ANY, FILE_STEM, FILE_SAME };

/* A cell that starts with < is a placeholder: generated Python, a user's Python, a user's extension. */
static enum file_match match_placeholder(const char *cell, const struct sighting *s)
{
	if (ends_with(cell, ".py")) /* the first Triton releases printed no place, or a wrong one */
		return ends_with(s->base, ".py") || starts_with(s->path, "unknown") ||
			starts_with(s->path, "<frozen") ? FILE_ANY : FILE_OTHER;
	return strstr(s->path, "aten/") || strstr(s->path, "c10/") || strstr(s->path, "torch/") ||
		!*s->path ? FILE_OTHER : FILE_ANY;
}

static enum file_match match_file(const char *cell, const struct sighting *s)
{
	enum file_match best = FILE_OTHER;
	char path[256];

	if (cell[0] == '<')
		return match_placeholder(cell, s);
	while ((cell = next_word(cell, path, sizeof(path))) != NULL) {
		char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
		size_t stem = strcspn(base, ".");
		enum file_match found = FILE_OTHER;

		if (strcmp(base, "*") == 0 || strcmp(base, "?") == 0) { /* any file of that folder */
			*base = '\0';
			found = strstr(s->path, path) ? FILE_ANY : FILE_OTHER;
		} else if (same_base(base, s->base)) {
			found = FILE_SAME;
		} else if (strncmp(base, s->base, stem + 1) == 0) {
			found = FILE_STEM;
		}
		if (found > best)
			best = found;
	}
	return best;
}

enum condition_match { CONDITION_OTHER, CONDITION_WILD, CONDITION_BARE, CONDITION_SAME };

static enum condition_match match_condition(const struct site_row *row, const struct sighting *s)
{
	char cell[SITE_CONDITION_MAX];

	if (row->compared == SITE_ANY)
		return CONDITION_WILD;
	if (row->compared == SITE_EMPTY)
		return s->full[0] == '\0' ? CONDITION_SAME : CONDITION_OTHER;
	site_squeeze(row->condition, cell);
	if (row->compared == SITE_PATTERN)
		return pattern_whole(cell, s->full, NULL) ? CONDITION_SAME : CONDITION_OTHER;
	if (strcmp(cell, s->full) == 0)
		return CONDITION_SAME;
	cut_text(cell);
	return strcmp(cell, s->bare) == 0 ? CONDITION_BARE : CONDITION_OTHER;
}

/* Conditions that say nothing by themselves. */
static bool mute(const struct sighting *s)
{
	return strcmp(s->bare, "false") == 0 || strcmp(s->bare, "0") == 0;
}

static struct site_match grade_row(const struct site_row *row, const struct sighting *s)
{
	struct site_match c = {row, CATALOG_NOTHING, 0};
	bool for_windows = strstr(row->versions, "(Windows)") != NULL;
	enum file_match file = match_file(row->file, s);
	enum kernel_match kernel = match_kernel(row->kernel, s);
	enum condition_match condition = match_condition(row, s);

	if (for_windows && !s->windows)
		return c;
	c.rank = ((int)condition * 4 + (int)file) * 4 + (int)kernel + (for_windows ? 1 : 0);
	if (condition == CONDITION_OTHER) {
		if (kernel == KERNEL_NAMED)
			c.grade = CATALOG_NAME;
	} else if (file == FILE_ANY && row->compared == SITE_EXACT && condition != CONDITION_SAME) {
		c.grade = CATALOG_NOTHING;
	} else if (file != FILE_OTHER && (kernel != KERNEL_OTHER || !s->kernel)) {
		c.grade = CATALOG_SITE;
	} else if (condition == CONDITION_WILD) {
		c.grade = CATALOG_NOTHING;
	} else if (file > FILE_ANY) {
		c.grade = CATALOG_FILE;
	} else if (kernel == KERNEL_NAMED && !mute(s)) {
		c.grade = CATALOG_KERNEL;
	}
	return c;
}

struct site_match site_find(const struct sighting *s, bool wild)
{
	struct site_match best = {NULL, CATALOG_NOTHING, 0};

	for (size_t i = 0; i < site_rows_count; i++) {
		if ((site_rows[i].compared == SITE_ANY) != wild)
			continue;
		struct site_match c = grade_row(&site_rows[i], s);
		bool better = c.grade != best.grade ? c.grade < best.grade
			: c.rank != best.rank ? c.rank > best.rank
			: best.row && c.row->seen > best.row->seen;

		if (c.grade != CATALOG_NOTHING && better)
			best = c;
	}
	return best;
}
