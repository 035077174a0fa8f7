#include "base/show.h"

#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), 0 when there is none. */
static int decode(const unsigned char *p, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	int n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 :
		p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
	uint32_t code = n == 1 ? p[0] : n ? p[0] & (0xffu >> (n + 1)) : 0;

	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (n > 1 && (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
		return 0;
	*ret_code = code;
	return n;
}

/* Characters that change or hide what stands around them. */
static bool deceptive(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},     {0x180e, 0x180e},
		{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
		{0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
	};

	for (size_t i = 0; i < COUNT(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

void show_text(struct buf *out, const char *text)
{
	if (text == NULL)
		return;
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		uint32_t code;
		int n = decode(p, &code);

		if (n == 0) {
			buf_fmt(out, "\\x%02x", *p++);
			continue;
		}
		if (code == '\n' || code == '\t' || code == '\r')
			buf_chr(out, ' ');
		else if (deceptive(code))
			buf_fmt(out, code < 0x100 ? "\\x%02x" : "\\u{%x}", code);
		else
			buf_add(out, p, (size_t)n);
		p += n;
	}
}
