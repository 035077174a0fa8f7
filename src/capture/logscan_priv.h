/*
 * logscan_priv: what the files of the log scanner share; nobody else includes it.
 *
 * logscan.c         bytes to lines, and which reader gets a line
 * logscan_text.c    spans of bytes, words that make a line worth reading, readable names
 * logscan_line.c    a line made readable: colours, web entities, escaped line ends, prefixes
 * logscan_fold.c    equal assertions folded, with exact counts; the fast path
 * logscan_assert.c  the forms in which a device-side assertion is printed
 * logscan_salvage.c assertions out of lines that several writers mixed
 * logscan_python.c  the forms in which a Python traceback is printed
 * logscan_fail.c    errors that libraries print, and launchers that name a rank
 *
 * Nothing here grows with the log: every table below has its bound beside it.
 */
#ifndef CUWHY_LOGSCAN_PRIV_H
#define CUWHY_LOGSCAN_PRIV_H

#include "capture/logscan.h"

enum {
	LINE_WINDOW = 64 * 1024,  /* bytes: a longer line is read in windows of this size */
	LINE_OVERLAP = 16 * 1024, /* bytes that two windows share: the longest assertion found across them */
	CONDITION_MAX = 4096,     /* bytes of a condition or a signature */
	TEXT_MAX = 1024,          /* bytes of any other text in a fact */
	SPEAKERS = 8,             /* ranks or actors whose unfinished facts are kept apart, a stream */
};

/* Bytes inside a line: borrowed, not terminated. */
struct span {
	const char *p;
	size_t n;
};

struct span span_of(const char *text); /* NULL gives an empty span */
struct span span_between(const char *from, const char *to);
const char *span_end(struct span s);
/* Where word begins in s, or NULL. */
const char *span_find(struct span s, const char *word);
struct span span_after(struct span s, const char *p); /* from p to the end of s */
struct span span_trim(struct span s);
bool span_starts(struct span s, const char *word);
bool span_ends(struct span s, const char *word);
bool span_eat(struct span *s, const char *word);  /* skips word when s starts with it */
bool span_eat_int(struct span *s, int64_t *ret_v); /* at most nine digits */
bool span_same(struct span a, struct span b);
uint64_t span_hash(struct span s, uint64_t seed);
/* A copy that is valid UTF-8 without control bytes, trimmed, at most max bytes; caller frees. */
char *span_text(struct span s, size_t max);
char *span_text_or_null(struct span s, size_t max); /* NULL when nothing is left */
void span_keep(char **slot, struct span text, size_t max); /* in place of what the slot held */
void span_add_utf8(struct buf *out, uint32_t c); /* one character, below 0x110000 */
bool is_digit(char c);
bool is_word(char c); /* of an identifier */
bool is_blank(char c);
/* Length of the quotation mark at p, 0 when there is none. */
size_t quote_at(const char *p, const char *end);

/* May the character that ends at p be one of a path? The text begins at start. */
bool path_goes_on(const char *start, const char *p);
/* Where the path that ends at end begins, not before start. Goes no further back than a colon, but for C:\. */
const char *path_start(const char *start, const char *end);

/* nll_loss_forward from a printed signature; caller frees. */
char *name_kernel(struct span signature);
/* aten/src/.../Loss.cu from a printed path; caller frees. */
char *name_source(struct span path);

/* Why a line is worth reading. Bits. */
enum word_kind {
	WORD_ASSERT = 1,
	WORD_TRACE = 2,
	WORD_FRAME = 4,
	WORD_FAIL = 8,   /* a GPU library's error */
	WORD_ERROR = 16, /* the end of an exception's type */
	WORD_LATE = 32,
	WORD_DSA = 64,
	WORD_RANK = 128,
	WORD_THROW = 256,
	WORD_PLACE = 512,
	WORD_FAULT = 1024, /* faulthandler's */
};

/* All words are looked for at once, through the first two bytes of each. */
struct words {
	uint8_t first[65536]; /* index into the table + 1 */
	uint8_t next[256];
	uint8_t len[256];
	uint32_t begin[256]; /* its first four bytes */
};

void words_init(struct words *w);
unsigned words_in(const struct words *w, struct span text); /* word_kind bits */
/* Where the first word of that kind begins, or NULL. */
const char *words_find(const struct words *w, struct span text, enum word_kind kind);

enum { KEYS_MAX = 512 };

/* Hashes of the facts of a kind that were told, so that none is told twice. */
struct keys {
	uint64_t slots[2 * KEYS_MAX]; /* open addressing; 0: free */
	size_t count;
};

/* False when the key is known already, or KEYS_MAX others are. */
bool keys_add(struct keys *k, uint64_t key);

/* A line, prefixes taken off. */
struct line {
	struct span text;
	uint64_t speaker; /* which rank or actor says it; 0 when the line does not tell */
	int64_t rank;
	unsigned words;
	bool partial; /* a window of a longer line: what is unfinished may end in the next one */
};

/* Takes rank tags, actor names and time stamps off the front. */
void line_strip(struct line *l);
/* Colours, web entities and control sequences taken out. False when there was nothing to do. */
bool line_clean(struct span raw, struct buf *out);
/* Does a line hold other lines with their ends escaped, as JSON and repr do? Told by what is around an end. */
bool line_is_escaped(struct span raw);
void line_unescape(struct span raw, struct buf *out);

/* logscan_fold.c */

enum {
	FOLD_GROUPS = 256,        /* distinct assertions */
	FOLD_PAIRS = 4096,        /* pairs told of one assertion */
	FOLD_ALL_PAIRS = 65536,   /* pairs told of all */
	FOLD_CELLS = 512 * 1024,  /* slots for distinct blocks and threads, 32 bytes each */
	FOLD_RECENT = 64,         /* spellings whose group is known without making its texts */
	FOLD_SHAPES = 8,          /* spellings of a line that the fast path knows */
	FOLD_PREFIX = 128,        /* bytes before a path in which clocks are looked for */
};

struct cell;

struct group {
	struct assertion a;
	int64_t lines, printed; /* assertion lines; CUDA_KERNEL_ASSERT_PRINTF lines */
	uint32_t cell;          /* of the last pair, as runs stay in one; 0: none */
	bool grown;             /* since it was last told */
};

/* A line seen before, but for its six numbers. */
struct shape {
	char *head, *tail; /* up to the first number; from the last number on, end of line included */
	size_t head_len, tail_len;
	struct buf near, far; /* the last line that fitted, before and behind thread x */
	uint32_t at[6];       /* its numbers */
	size_t loose;         /* bytes before the path, whose digits may change */
	struct group *group;
};

/* By what most groups are passed over without a look at their texts: hashes of two of them. */
struct group_mark {
	uint64_t source, condition;
	bool mixed;
};

struct folds {
	struct group *groups; /* FOLD_GROUPS, so that pointers stay good */
	struct group_mark marks[FOLD_GROUPS];
	size_t group_count;
	struct {
		uint64_t spelling;
		struct group *group;
	} recent[FOLD_RECENT];
	struct cell *cells;
	size_t cell_cap, cell_count;
	size_t pair_count;
	struct shape shapes[FOLD_SHAPES];
	size_t shape_count, shape_next, shape_last;
};

/* An assertion as one line tells it. Texts are borrowed. */
struct told {
	struct span path, function, condition, text;
	int64_t line, rank;
	const char *form;
	bool printed;      /* a CUDA_KERNEL_ASSERT_PRINTF line */
	bool placed;       /* at[] is known: block x y z, thread x y z */
	bool truncated;    /* the condition is only the beginning */
	bool ungrouped;    /* the first three of at[] are no block, but a global id */
	uint32_t at[6];
};

/* NULL when there are too many assertions, or what is told adds nothing. */
struct group *fold_add(struct logscan *s, const struct told *t);
void fold_flush(struct logscan *s);
void fold_done(struct folds *f);
/* The length of the line at p, its end included, when it was folded without being parsed; else 0. */
size_t fold_fast(struct folds *f, const char *p, size_t len);
/* Where the one assertion of a line has its path and its numbers; head is NULL when it has none. */
struct exact {
	struct group *group;
	const char *path, *head, *tail;
};

/* Remembers a line for fold_fast. */
void fold_learn(struct folds *f, struct span raw, const struct exact *x);

/* logscan_assert.c */

/* A DSA report so far. */
struct dsa {
	char *message, *place, *function;
	uint32_t thread[3];
};

/*
 * Reads all assertions of a line. ret_before and ret_after get the text around them (empty when none
 * was found: false). In a partial line *ret_after is what may still become an assertion.
 */
bool assert_line(struct logscan *s, int stream, const struct line *l, struct span *ret_before,
	struct span *ret_after, struct exact *ret_exact);
bool dsa_line(struct logscan *s, int stream, const struct line *l);
void assert_finish(struct logscan *s, int stream);

/* logscan_salvage.c */

/* What is known of assertions whose lines were mixed by several writers. */
struct pieces {
	char *path, *function, *condition;
	int64_t line, waiting; /* waiting: times the condition was seen before its place was known */
};

/* The length of a condition up to a piece of another line. */
size_t salvage_condition(struct span condition);
/* Counts the conditions of a mixed line. False when the line holds no piece of an assertion. */
bool salvage_line(struct logscan *s, int stream, struct span mixed, int64_t rank);
void salvage_finish(struct logscan *s, int stream);

/* logscan_fail.c */

enum { RANK_TOLD = 64 };

/* A failure kept for the next lines of its speaker, which may say that it is late. */
struct held {
	struct failure f;
	uint64_t speaker;
	int lines_left; /* 0: free */
	bool thrown;    /* a C++ exception whose what() is still to come */
};

struct failures {
	struct keys told;
	int64_t ranks[RANK_TOLD];
	size_t rank_count;
	int64_t rank_maybe; /* a launcher's local rank, or one that failed after another */
	bool others;        /* inside a launcher's list of later failures */
};

void fail_hold(struct logscan *s, int stream, const struct line *l, struct span type, struct span text,
	int64_t rank);
/* Another line of the speaker: tells a held failure whose warning can no longer come. */
void fail_pass(struct logscan *s, int stream, const struct line *l);
void fail_line(struct logscan *s, int stream, const struct line *l);
void rank_line(struct logscan *s, const struct line *l, int64_t *ret_next);
void fail_finish(struct logscan *s, int stream);
void rank_finish(struct logscan *s);
/* `Dotted.Type: message` or `Dotted.Type`; strict wants a name that ends as exceptions' names do. */
bool exception_read(struct span text, bool strict, struct span *ret_type, struct span *ret_message);

/* logscan_python.c */

enum {
	TRACE_ENDS = 64,  /* frames kept of each end of a traceback */
	TRACE_WRAPS = 16, /* lines over which rich may wrap a path */
};

struct trace {
	struct traceback t;
	uint64_t speaker;
	enum { TRACE_FREE, TRACE_PLAIN, TRACE_RICH, TRACE_IPYTHON, TRACE_FAULT } kind;
	char *prefix;     /* what stood before the word Traceback: later lines may have it too */
	struct buf wrapped; /* rich: a path whose rest is on the next line */
	int wraps;        /* lines in it */
	bool headed;      /* began with a Traceback line */
	bool current;     /* faulthandler: the frames are of the thread that failed */
	bool wants_code;  /* the last frame's code may follow */
	bool box_closed;
	bool broken;      /* plain: other output stands between the frames and the exception */
	int foreign;      /* lines of others since the last frame */
};

/* True when the line belonged to a traceback. */
bool python_line(struct logscan *s, int stream, const struct line *l);
void python_finish(struct logscan *s, int stream);

struct stream {
	/* Encoding, from the byte order mark. */
	enum { BYTES_UNKNOWN, BYTES_UTF8, BYTES_UTF16LE, BYTES_UTF16BE } encoding;
	unsigned char mark[3];
	size_t mark_len;
	int half;          /* UTF-16: first byte of a unit, or -1 */
	uint32_t high;     /* UTF-16: first half of a surrogate pair, or 0 */
	struct buf kept;   /* the unfinished line, LINE_WINDOW bytes at most */
	struct pieces pieces;
	struct dsa dsa;
	struct held held[SPEAKERS];
	struct trace traces[SPEAKERS];
	int64_t next_rank; /* of the traceback that follows a launcher's line, or INT_UNKNOWN */
	size_t open;       /* held failures and traces: while 0, lines without a word are skipped */
};

struct logscan {
	struct logscan_sink sink;
	struct words words;
	struct folds folds;
	struct failures failures;
	struct keys traces; /* told */
	struct stream streams[LOGSCAN_STREAMS];
};

#endif
