#include "report/report.h"

#include <string.h>
#include <unistd.h>

/* Bytes that end a path in prose, in JSON and in code. */
static bool ends_path(char c)
{
	return c == '\0' || strchr(" \t\n\"'`,;:()[]{}<>|\\*", c) != NULL;
}

static size_t path_length(const char *text)
{
	size_t n = 0;

	while (!ends_path(text[n]))
		n++;
	return n;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Length of name if it stands at text[at] as a word of its own. */
static size_t word_at(const char *text, size_t at, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n < 2 || strncmp(text + at, name, n) != 0 || is_word(text[at + n]) || (at && is_word(text[at - 1])))
		return 0;
	return n;
}

/* The user's name in a home folder of the path: /home/NAME/..., /Users/NAME/..., C:\Users\NAME\... */
static void owner_of(const char *path, char out[static 64])
{
	static const char *const homes[] = {"/home/", "/Users/", "\\Users\\"};

	out[0] = '\0';
	for (size_t i = 0; path && i < COUNT(homes); i++) {
		const char *at = strstr(path, homes[i]);
		size_t n = at ? strcspn(at + strlen(homes[i]), "/\\") : 0;

		if (n > 0 && n < 64) {
			memcpy(out, at + strlen(homes[i]), n);
			out[n] = '\0';
		}
	}
}

void report_redact(const struct report *r, struct buf *text)
{
	const char *cwd = r->model->nruns ? r->model->runs[0].run.cwd : NULL;
	size_t cwd_len = cwd && strlen(cwd) > 1 ? strlen(cwd) : 0, n;
	char host[256] = "", user[64];
	struct buf out = {0};

	gethostname(host, sizeof host - 1);
	owner_of(cwd ? cwd : r->session, user);
	for (size_t i = 0; i < text->len;) {
		const char *at = text->data + i;
		bool starts = i == 0 || ends_path(at[-1]) || at[-1] == '=';

		bool inside = cwd_len && starts && strncmp(at, cwd, cwd_len) == 0;

		if (inside && (at[cwd_len] == '/' || ends_path(at[cwd_len]))) {
			/* Inside the project paths stay, from the project on. */
			buf_str(&out, at[cwd_len] == '/' ? "" : ".");
			i += cwd_len + (at[cwd_len] == '/');
		} else if (starts && *at == '/' && at[1] != '/' && (n = path_length(at)) > 1 &&
			   memchr(at + 1, '/', n - 1)) {
			const char *last = memrchr(at, '/', n);

			buf_str(&out, "...");
			buf_add(&out, last, n - (size_t)(last - at));
			i += n;
		} else if ((n = word_at(text->data, i, host)) || (n = word_at(text->data, i, user))) {
			buf_str(&out, "...");
			i += n;
		} else {
			buf_chr(&out, *at);
			i++;
		}
	}
	buf_done(text);
	*text = out;
}
