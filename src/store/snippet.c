/* Snippets of texts that are known to match: words are compared as the index compares them. */
#include "store/snippet.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Words of a snippet. */
#define SHOWN 32
/* What a window is worth: each phrase in it, each further place of one, and that it begins with a sentence, most of
 * all the first. */
#define WORTH_PHRASE 1000
#define WORTH_PLACE 1
#define WORTH_SENTENCE 100
#define WORTH_BEGIN 120

/* ---- words ---- */

struct word {
	int at, bytes;	/* in words.text: as the index has it */
	int start, end; /* in the source */
};
struct words {
	struct word *v;
	int n, cap;
	char *text;
	int bytes, text_cap;
};

static void words_finish(struct words *words)
{
	sqlite3_free(words->v);
	sqlite3_free(words->text);
}

/* Room for `need` things of `size` bytes. */
static int grow(void **p, int *cap, int need, size_t size)
{
	int more = *cap < 64 ? 64 : *cap;
	void *bigger;

	if (need <= *cap)
		return SQLITE_OK;
	while (more < need)
		more *= 2;
	bigger = sqlite3_realloc64(*p, (sqlite3_uint64)more * size);
	if (bigger == NULL)
		return SQLITE_NOMEM;
	*p = bigger;
	*cap = more;
	return SQLITE_OK;
}

static int add_word(void *context, int flags, const char *text, int bytes, int start, int end)
{
	struct words *words = context;

	if ((flags & FTS5_TOKEN_COLOCATED) != 0)
		return SQLITE_OK;
	if (grow((void **)&words->v, &words->cap, words->n + 1, sizeof(*words->v)) != SQLITE_OK ||
		grow((void **)&words->text, &words->text_cap, words->bytes + bytes, 1) != SQLITE_OK)
		return SQLITE_NOMEM;
	memcpy(words->text + words->bytes, text, (size_t)bytes);
	words->v[words->n++] = (struct word){words->bytes, bytes, start, end};
	words->bytes += bytes;
	return SQLITE_OK;
}

static bool same_word(const struct words *a, int i, const struct words *b, int k)
{
	return a->v[i].bytes == b->v[k].bytes &&
		memcmp(a->text + a->v[i].at, b->text + b->v[k].at, (size_t)a->v[i].bytes) == 0;
}

/* ---- the tokenizer ---- */

struct cutter {
	fts5_tokenizer calls;
	Fts5Tokenizer *tokenizer; /* owner: this */
};

static void cutter_destroy(void *context)
{
	struct cutter *cutter = context;

	if (cutter->tokenizer != NULL)
		cutter->calls.xDelete(cutter->tokenizer);
	free(cutter);
}

static int cutter_create(fts5_api *api, struct cutter **out)
{
	const char *args[] = {"unicode61", "remove_diacritics", "2"};
	struct cutter *cutter = calloc(1, sizeof(*cutter));
	void *context;
	int code;

	if (cutter == NULL)
		return SQLITE_NOMEM;
	code = api->xFindTokenizer(api, "porter", &context, &cutter->calls);
	if (code == SQLITE_OK)
		code = cutter->calls.xCreate(context, args, 3, &cutter->tokenizer);
	if (code != SQLITE_OK) {
		cutter_destroy(cutter);
		return code;
	}
	*out = cutter;
	return SQLITE_OK;
}

static int cut(struct cutter *cutter, int flags, const char *text, int bytes, struct words *words)
{
	return cutter->calls.xTokenize(cutter->tokenizer, words, flags, text, bytes, add_word);
}

/* ---- the query ---- */

#define BUCKETS 64

struct phrase {
	int first, n; /* words */
	int next;     /* in its bucket; -1: the last */
};
/* Hundreds of phrases may be looked for in thousands of words: buckets of first words leave few for each. */
struct phrases {
	struct words words;
	struct phrase *v;
	int n, cap;
	int bucket[BUCKETS]; /* by bucket_of the first word, in the order of the query */
};

static int bucket_of(const struct words *words, int i)
{
	const struct word *word = &words->v[i];
	unsigned sum = (unsigned)word->bytes;

	for (int k = 0; k < word->bytes; k++)
		sum = sum * 31 + (unsigned char)words->text[word->at + k];
	return (int)(sum % BUCKETS);
}

static void fill_buckets(struct phrases *phrases)
{
	for (int i = 0; i < BUCKETS; i++)
		phrases->bucket[i] = -1;
	for (int i = phrases->n - 1; i >= 0; i--) {
		int *bucket = &phrases->bucket[bucket_of(&phrases->words, phrases->v[i].first)];

		phrases->v[i].next = *bucket;
		*bucket = i;
	}
}

static void phrases_destroy(void *context)
{
	struct phrases *phrases = context;

	words_finish(&phrases->words);
	sqlite3_free(phrases->v);
	sqlite3_free(phrases);
}

/* A phrase without words is none. */
static int add_phrase(struct cutter *cutter, struct phrases *phrases, const char *text, int bytes)
{
	int first = phrases->words.n;
	int code = cut(cutter, FTS5_TOKENIZE_QUERY, text, bytes, &phrases->words);

	if (code != SQLITE_OK || phrases->words.n == first)
		return code;
	code = grow((void **)&phrases->v, &phrases->cap, phrases->n + 1, sizeof(*phrases->v));
	if (code == SQLITE_OK)
		phrases->v[phrases->n++] = (struct phrase){first, phrases->words.n - first, -1};
	return code;
}

/* The query is phrases in double quotes; a quote inside is doubled. */
static int read_phrases(struct cutter *cutter, const char *query, int bytes, struct phrases *phrases)
{
	char *text = sqlite3_malloc64((sqlite3_uint64)bytes + 1);
	int code = text == NULL ? SQLITE_NOMEM : SQLITE_OK;

	for (int at = 0; code == SQLITE_OK && at < bytes; at++) {
		int n = 0;

		if (query[at] != '"')
			continue;
		for (at++; at < bytes; at++) {
			if (query[at] == '"' && (at + 1 == bytes || query[++at] != '"'))
				break;
			text[n++] = query[at];
		}
		code = add_phrase(cutter, phrases, text, n);
	}
	sqlite3_free(text);
	return code;
}

/* Kept with the statement, which asks for one query and many texts. */
static int find_phrases(sqlite3_context *context, struct cutter *cutter, sqlite3_value *query, struct phrases **out)
{
	struct phrases *phrases = sqlite3_get_auxdata(context, 0);
	const char *text = (const char *)sqlite3_value_text(query);
	int code;

	*out = phrases;
	if (phrases != NULL)
		return SQLITE_OK;
	phrases = sqlite3_malloc64(sizeof(*phrases));
	if (phrases == NULL || text == NULL) {
		sqlite3_free(phrases);
		return SQLITE_NOMEM;
	}
	memset(phrases, 0, sizeof(*phrases));
	code = read_phrases(cutter, text, sqlite3_value_bytes(query), phrases);
	if (code != SQLITE_OK) {
		phrases_destroy(phrases);
		return code;
	}
	fill_buckets(phrases);
	sqlite3_set_auxdata(context, 0, phrases, phrases_destroy);
	*out = sqlite3_get_auxdata(context, 0); /* NULL: there was no memory to keep it */
	return *out == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* ---- where the phrases stand ---- */

struct place {
	int first, last; /* words of the text */
	int phrase;
};
struct text {
	const char *source;
	int bytes;
	struct words words;
	struct place *places; /* by their first word */
	int place_count, place_cap;
	bool *seen; /* by phrase */
	const struct phrases *phrases;
};

static void text_finish(struct text *text)
{
	words_finish(&text->words);
	sqlite3_free(text->places);
	sqlite3_free(text->seen);
}

static bool stands_at(const struct text *text, int at, const struct phrase *phrase)
{
	if (at + phrase->n > text->words.n)
		return false;
	for (int i = 0; i < phrase->n; i++)
		if (!same_word(&text->words, at + i, &text->phrases->words, phrase->first + i))
			return false;
	return true;
}

static int find_places(struct text *text)
{
	for (int at = 0; at < text->words.n; at++)
		for (int i = text->phrases->bucket[bucket_of(&text->words, at)]; i >= 0; i = text->phrases->v[i].next) {
			const struct phrase *phrase = &text->phrases->v[i];

			if (!stands_at(text, at, phrase))
				continue;
			if (grow((void **)&text->places, &text->place_cap, text->place_count + 1, sizeof(*text->places)) !=
				SQLITE_OK)
				return SQLITE_NOMEM;
			text->places[text->place_count++] = (struct place){at, at + phrase->n - 1, i};
		}
	return SQLITE_OK;
}

/* ---- the best window ---- */

/* What SHOWN words are worth whose first place is number `first`; `last` becomes the last place in them. */
static int worth(struct text *text, int from, int first, int *last)
{
	int sum = 0;

	memset(text->seen, 0, (size_t)text->phrases->n * sizeof(*text->seen));
	for (int i = first; i < text->place_count && text->places[i].first < from + SHOWN; i++) {
		bool *seen = &text->seen[text->places[i].phrase];

		sum += *seen ? WORTH_PLACE : WORTH_PHRASE;
		*seen = true;
		*last = i;
	}
	return sum;
}

static bool begins_sentence(const struct text *text, int word)
{
	int start = text->words.v[word].start;
	int at = start - 1;

	if (word == 0)
		return true;
	while (at >= 0 && memchr(" \t\n\r", text->source[at], 4) != NULL)
		at--;
	return at >= 0 && at != start - 1 && (text->source[at] == '.' || text->source[at] == ':');
}

/* The window with place `i` and what follows it in the middle, in the text. */
static int centred(const struct text *text, int i, int last)
{
	int words = text->places[last].last + 1 - text->places[i].first;
	int from = text->places[i].first - (SHOWN - words) / 2;

	if (from + SHOWN > text->words.n)
		from = text->words.n - SHOWN;
	return from < 0 ? 0 : from;
}

/* A window around each place, and one from the start of its sentence. */
static int best_window(struct text *text)
{
	int best = -1, from = 0, sentence = 0, word = 0;

	for (int i = 0; i < text->place_count; i++) {
		int at = text->places[i].first;
		int last = i, first = i;
		int sum = worth(text, at, i, &last);

		if (sum > best) {
			best = sum;
			from = centred(text, i, last);
		}
		for (; word <= at; word++)
			sentence = begins_sentence(text, word) ? word : sentence;
		if (sentence == at || text->words.n <= SHOWN)
			continue;
		while (first > 0 && text->places[first - 1].first >= sentence)
			first--;
		sum = worth(text, sentence, first, &last) + (sentence == 0 ? WORTH_BEGIN : WORTH_SENTENCE);
		if (sum > best) {
			best = sum;
			from = sentence;
		}
	}
	return from;
}

/* ---- the snippet ---- */

static void add(sqlite3_str *out, const struct text *text, int from, int to)
{
	sqlite3_str_append(out, text->source + from, to - from);
}

static char *write_window(struct text *text, int from, int *bytes)
{
	sqlite3_str *out = sqlite3_str_new(NULL);
	const struct word *words = text->words.v;
	int to = from + SHOWN - 1 < text->words.n ? from + SHOWN - 1 : text->words.n - 1;
	int at = from == 0 ? 0 : words[from].start;

	if (from > 0)
		sqlite3_str_appendall(out, "…");
	for (int i = 0; i < text->place_count && text->places[i].first <= to;) {
		int first = text->places[i].first, last = text->places[i].last;

		/* places that overlap share a mark */
		for (i++; i < text->place_count && text->places[i].first <= last; i++)
			last = text->places[i].last > last ? text->places[i].last : last;
		if (first < from)
			continue; /* cut in two: FTS5 does not mark such either */
		last = last > to ? to : last;
		add(out, text, at, words[first].start);
		sqlite3_str_appendall(out, "<mark>");
		add(out, text, words[first].start, words[last].end);
		sqlite3_str_appendall(out, "</mark>");
		at = words[last].end;
	}
	add(out, text, at, to == text->words.n - 1 ? text->bytes : words[to].end);
	if (to < text->words.n - 1)
		sqlite3_str_appendall(out, "…");
	*bytes = sqlite3_str_length(out);
	return sqlite3_str_finish(out);
}

static int write_snippet(struct text *text, char **out, int *bytes)
{
	text->seen = sqlite3_malloc64((sqlite3_uint64)text->phrases->n * sizeof(*text->seen) + 1);
	if (text->seen == NULL || find_places(text) != SQLITE_OK)
		return SQLITE_NOMEM;
	*out = text->place_count == 0 ? NULL : write_window(text, best_window(text), bytes);
	return text->place_count > 0 && *out == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

static void snippet_words(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct cutter *cutter = sqlite3_user_data(context);
	struct text text = {0};
	struct phrases *phrases;
	char *snippet = NULL;
	int bytes = 0;
	int code = find_phrases(context, cutter, values[0], &phrases);

	(void)count;
	text.phrases = phrases;
	text.source = (const char *)sqlite3_value_text(values[1]);
	text.bytes = sqlite3_value_bytes(values[1]);
	if (code == SQLITE_OK && text.source != NULL)
		code = cut(cutter, FTS5_TOKENIZE_AUX, text.source, text.bytes, &text.words);
	if (code == SQLITE_OK && text.source != NULL)
		code = write_snippet(&text, &snippet, &bytes);
	text_finish(&text);
	if (code != SQLITE_OK)
		sqlite3_result_error_code(context, code);
	else if (snippet != NULL)
		sqlite3_result_text(context, snippet, bytes, sqlite3_free);
}

int snippet_register(sqlite3 *handle, fts5_api *api)
{
	struct cutter *cutter;
	int code = cutter_create(api, &cutter);

	if (code != SQLITE_OK)
		return code;
	/* A refusal destroys the cutter too. */
	return sqlite3_create_function_v2(handle, "snippet_words", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, cutter,
		snippet_words, NULL, NULL, cutter_destroy);
}
