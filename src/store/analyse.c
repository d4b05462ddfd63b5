/* The analyser of parts of words, and how words are ranked. Both stand on what FTS5 has: its trigrams, which fold
 * and cut characters, and its counts. */
#include "store/analyse.h"

#include "store/snippet.h"
#include "store/store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TRIGRAM_CHARS 3
#define MORE_CHARS (GRAM_CHARS - TRIGRAM_CHARS)
#define UTF8_BYTES 4

typedef int (*token_fn)(void *context, int flags, const char *token, int bytes, int start, int end);

struct analyser {
	fts5_tokenizer trigram;
	Fts5Tokenizer *tokenizer; /* owner: this */
};

static void analyser_destroy(Fts5Tokenizer *context)
{
	struct analyser *analyser = (struct analyser *)context;

	if (analyser->tokenizer != NULL)
		analyser->trigram.xDelete(analyser->tokenizer);
	free(analyser);
}

static int analyser_create(void *context, const char **args, int count, Fts5Tokenizer **out)
{
	fts5_api *api = context;
	struct analyser *analyser = calloc(1, sizeof(*analyser));
	void *its_context;
	int code;

	(void)args;
	(void)count;
	if (analyser == NULL)
		return SQLITE_NOMEM;
	code = api->xFindTokenizer(api, "trigram", &its_context, &analyser->trigram);
	if (code == SQLITE_OK)
		code = analyser->trigram.xCreate(its_context, NULL, 0, &analyser->tokenizer);
	if (code != SQLITE_OK) {
		analyser_destroy((Fts5Tokenizer *)analyser);
		return code;
	}
	*out = (Fts5Tokenizer *)analyser;
	return SQLITE_OK;
}

/* Bytes of the last character. */
static int last_char(const char *text, int bytes)
{
	int n = 1;

	while (n < bytes && ((unsigned char)text[bytes - n] & 0xC0) == 0x80)
		n++;
	return n;
}

/* ---- grams ---- */

/* A trigram is the head of a gram, and its last character the next one of the grams before it. */
struct grams {
	token_fn token;
	void *context;
	struct gram {
		char text[GRAM_CHARS * UTF8_BYTES];
		int bytes, start, end;
	} open[MORE_CHARS + 1];
	uint64_t begun, told;
	bool is_query;
};

static int tell(struct grams *grams)
{
	const struct gram *gram = &grams->open[grams->told % (MORE_CHARS + 1)];

	grams->told++;
	return grams->token(grams->context, 0, gram->text, gram->bytes, gram->start, gram->end);
}

static int add_trigram(void *context, int flags, const char *text, int bytes, int start, int end)
{
	struct grams *grams = context;
	struct gram *gram;
	int last = last_char(text, bytes);

	(void)flags;
	if (grams->is_query && grams->told > 0)
		return SQLITE_OK;
	for (uint64_t i = grams->told; i < grams->begun; i++) {
		gram = &grams->open[i % (MORE_CHARS + 1)];
		memcpy(gram->text + gram->bytes, text + bytes - last, (size_t)last);
		gram->bytes += last;
		gram->end = end;
	}
	gram = &grams->open[grams->begun++ % (MORE_CHARS + 1)];
	memcpy(gram->text, text, (size_t)bytes);
	gram->bytes = bytes;
	gram->start = start;
	gram->end = end;
	return grams->begun - grams->told > MORE_CHARS ? tell(grams) : SQLITE_OK;
}

static int analyser_run(Fts5Tokenizer *context, void *token_context, int flags, const char *text, int bytes,
	token_fn token)
{
	struct analyser *analyser = (struct analyser *)context;
	struct grams grams = {
		.token = token, .context = token_context, .is_query = (flags & FTS5_TOKENIZE_QUERY) != 0};
	int code = analyser->trigram.xTokenize(analyser->tokenizer, &grams, flags, text, bytes, add_trigram);

	while (code == SQLITE_OK && grams.told < grams.begun && !(grams.is_query && grams.told > 0))
		code = tell(&grams);
	return code;
}

/* ---- fold ---- */

struct folded {
	char *text;
	int bytes;
};

static int add_folded(void *context, int flags, const char *text, int bytes, int start, int end)
{
	struct folded *folded = context;
	int from = folded->bytes == 0 ? 0 : bytes - last_char(text, bytes);

	(void)flags;
	(void)start;
	(void)end;
	memcpy(folded->text + folded->bytes, text + from, (size_t)(bytes - from));
	folded->bytes += bytes - from;
	return SQLITE_OK;
}

static void fold(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct analyser *analyser = sqlite3_user_data(context);
	const char *text = (const char *)sqlite3_value_text(values[0]);
	int bytes = sqlite3_value_bytes(values[0]);
	struct folded folded = {0};

	(void)count;
	if (text == NULL)
		return;
	/* A character of one byte may become one of up to four. */
	folded.text = sqlite3_malloc64((sqlite3_uint64)bytes * UTF8_BYTES + 1);
	if (folded.text == NULL) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (analyser->trigram.xTokenize(analyser->tokenizer, &folded, FTS5_TOKENIZE_AUX, text, bytes, add_folded) !=
		SQLITE_OK)
		sqlite3_result_error_nomem(context);
	else
		sqlite3_result_text64(context, folded.text, (sqlite3_uint64)folded.bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
	sqlite3_free(folded.text);
}

static void fold_destroy(void *analyser)
{
	analyser_destroy(analyser);
}

/* ---- rank ---- */

#define K1 1.2
#define B 0.75
/* Matches that are counted to tell how frequent a word is: where it has more, the share of the table that they came
 * from says it well enough, and counting on is a walk over all of them. */
#define SAMPLE 2000
#define LEAST_WEIGHT 1e-6

struct weights {
	double mean_words;
	double word[];
};

struct frequency {
	int64_t rows, last_row;
};

static int count_row(const Fts5ExtensionApi *api, Fts5Context *fts, void *context)
{
	struct frequency *frequency = context;

	frequency->last_row = api->xRowid(fts);
	return ++frequency->rows == SAMPLE ? SQLITE_DONE : SQLITE_OK;
}

static int weigh(const Fts5ExtensionApi *api, Fts5Context *fts, int phrase, double rows, double *found)
{
	struct frequency frequency = {0};
	int code = api->xQueryPhrase(fts, phrase, &frequency, count_row);

	*found = (double)frequency.rows;
	if (frequency.rows == SAMPLE && (double)frequency.last_row < rows)
		*found = *found * rows / (double)frequency.last_row;
	return code;
}

static int count_table(const Fts5ExtensionApi *api, Fts5Context *fts, double *rows, double *mean_words)
{
	sqlite3_int64 row_count = 0, words = 0;
	int code = api->xRowCount(fts, &row_count);

	if (code == SQLITE_OK)
		code = api->xColumnTotalSize(fts, -1, &words);
	*rows = (double)row_count;
	*mean_words = row_count > 0 && words > 0 ? (double)words / (double)row_count : 1;
	return code;
}

static void weigh_words(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context, int count,
	sqlite3_value **values)
{
	sqlite3_str *weights = sqlite3_str_new(NULL);
	double rows, mean, rarest = HUGE_VAL, matches;
	int code = count_table(api, fts, &rows, &mean);
	char *text;

	(void)count;
	(void)values;
	matches = rows;
	for (int i = 0; code == SQLITE_OK && i < api->xPhraseCount(fts); i++) {
		double found, weight;

		code = weigh(api, fts, i, rows, &found);
		matches *= rows > 0 ? found / rows : 0;
		rarest = found < rarest ? found : rarest;
		weight = log((rows - found + 0.5) / (found + 0.5));
		sqlite3_str_appendf(weights, " %!.17g", weight > 0 ? weight : LEAST_WEIGHT);
	}
	text = sqlite3_str_finish(weights);
	if (code == SQLITE_OK && text != NULL)
		text = sqlite3_mprintf("%.0f %.0f %!.17g%z", rarest, matches, mean, text);
	if (code != SQLITE_OK || text == NULL)
		sqlite3_result_error_code(context, code != SQLITE_OK ? code : SQLITE_NOMEM);
	else
		sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
	sqlite3_free(text);
}

/* Those that weigh_words() wrote; without them all words weigh the same. */
static int read_weights(const Fts5ExtensionApi *api, Fts5Context *fts, const char *text, struct weights **out)
{
	int phrases = api->xPhraseCount(fts);
	struct weights *weights = sqlite3_malloc64(sizeof(*weights) + (size_t)phrases * sizeof(double));
	char *end = NULL;
	double rows;
	int code = weights == NULL ? SQLITE_NOMEM : SQLITE_OK;

	if (code == SQLITE_OK && text == NULL)
		code = count_table(api, fts, &rows, &weights->mean_words);
	if (code != SQLITE_OK) {
		sqlite3_free(weights);
		return code;
	}
	if (text != NULL) {
		(void)strtod(text, &end); /* the rarest word's rows, and how many match */
		(void)strtod(end, &end);
		weights->mean_words = strtod(end, &end);
	}
	for (int i = 0; i < phrases; i++)
		weights->word[i] = text == NULL ? 1 : strtod(end, &end);
	*out = weights;
	return api->xSetAuxdata(fts, weights, sqlite3_free);
}

/* Words of the row: FTS5 keeps a varint for each column. It would tell them too, by a statement of its own. */
static int count_words(sqlite3_value *sizes)
{
	const unsigned char *p = sqlite3_value_blob(sizes);
	int bytes = sqlite3_value_bytes(sizes);
	unsigned words = 0, column = 0;

	for (int i = 0; i < bytes; i++) {
		column = (column << 7) | (p[i] & 0x7F);
		if ((p[i] & 0x80) != 0)
			continue;
		words += column;
		column = 0;
	}
	return (int)words;
}

static int count_phrase(const Fts5ExtensionApi *api, Fts5Context *fts, int phrase, double *out)
{
	Fts5PhraseIter at;
	int column, place;
	int n = 0;
	int code = api->xPhraseFirst(fts, phrase, &at, &column, &place);

	for (; code == SQLITE_OK && column >= 0; api->xPhraseNext(fts, &at, &column, &place))
		n++;
	*out = n;
	return code;
}

static void rank_words(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context, int count,
	sqlite3_value **values)
{
	struct weights *weights = api->xGetAuxdata(fts, 0);
	int phrases = api->xPhraseCount(fts);
	int code = SQLITE_OK;
	double score = 0;
	int words;

	if (count != 2) {
		sqlite3_result_error(context, "rank_words(table, sizes, weights)", -1);
		return;
	}
	if (weights == NULL)
		code = read_weights(api, fts, (const char *)sqlite3_value_text(values[1]), &weights);
	words = count_words(values[0]);
	for (int i = 0; code == SQLITE_OK && i < phrases; i++) {
		double n;

		code = count_phrase(api, fts, i, &n);
		score += weights->word[i] * n * (K1 + 1) / (n + K1 * (1 - B + B * words / weights->mean_words));
	}
	if (code == SQLITE_OK)
		sqlite3_result_double(context, -score);
	else
		sqlite3_result_error_code(context, code);
}

/* ---- registering ---- */

static int find_api(sqlite3 *handle, fts5_api **out)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(handle, "SELECT fts5(?1)", -1, &stmt, NULL);

	*out = NULL;
	if (code == SQLITE_OK)
		code = sqlite3_bind_pointer(stmt, 1, out, "fts5_api_ptr", NULL);
	if (code == SQLITE_OK)
		(void)sqlite3_step(stmt);
	(void)sqlite3_finalize(stmt);
	return code == SQLITE_OK && *out == NULL ? SQLITE_ERROR : code;
}

int analyse_register(sqlite3 *handle)
{
	fts5_tokenizer grams = {analyser_create, analyser_destroy, analyser_run};
	Fts5Tokenizer *folder = NULL;
	fts5_api *api;
	int code = find_api(handle, &api);

	if (code == SQLITE_OK)
		code = api->xCreateTokenizer(api, "grams", api, &grams, NULL);
	if (code == SQLITE_OK)
		code = api->xCreateFunction(api, "rank_words", NULL, rank_words, NULL);
	if (code == SQLITE_OK)
		code = api->xCreateFunction(api, "weigh_words", NULL, weigh_words, NULL);
	if (code == SQLITE_OK)
		code = snippet_register(handle, api);
	if (code == SQLITE_OK)
		code = analyser_create(api, NULL, 0, &folder);
	if (code == SQLITE_OK)
		/* A refusal destroys the folder too. */
		code = sqlite3_create_function_v2(handle, "fold", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, folder, fold, NULL,
			NULL, fold_destroy);
	return code;
}
