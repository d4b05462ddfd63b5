/* script/scenario.h - a scenario file, read and checked: turns, steps, values.
 *
 * The table of step kinds (step_table.c) is the grammar: the reader, --help and the tests take it from there. Nothing
 * is understood from what a scalar looks like, but by what the table asks for; the exception are values that become
 * JSON (arguments, result), where a plain number, true, false and null are what they are in JSON. */
#ifndef DAIS_SCRIPT_SCENARIO_H
#define DAIS_SCRIPT_SCENARIO_H

#include "base/yaml.h"

#include <regex.h>

enum value_kind {
	VALUE_END,  /* of a table */
	VALUE_TRUE, /* `true`: the step is there */
	VALUE_BOOL,
	VALUE_INT,   /* min … max */
	VALUE_WORD,  /* one of words; number is its index */
	VALUE_TEXT,  /* with {{…}} */
	VALUE_BYTES, /* the same, where a character up to U+00FF is one byte */
	VALUE_NAME,  /* of a saved result */
	VALUE_TEXTS, /* list of texts; node */
	VALUE_PAIRS, /* mapping of texts; node */
	VALUE_PLAN,  /* list of {content, status}; node */
	VALUE_JSON,  /* any; node */
	VALUE_CODE,  /* a whole number, or one of words: then number is its index and text the word */
};

struct value_field {
	const char *name;
	enum value_kind kind;
	bool is_required;
	int64_t min, max, fallback;
	const char *const *words; /* NULL at the end */
};

struct value {
	bool is_set;
	int64_t number;          /* INT, BOOL, WORD, CODE; the fallback when nothing is set */
	struct str text;         /* TEXT, BYTES, NAME; of a CODE: the word, or absent */
	const struct yaml *node; /* TEXTS, PAIRS, PLAN, JSON */
};

struct turn;
struct step;
enum outcome { GO_ON, ENDED }; /* ENDED: turn->end says how */

#define STEP_FIELDS 6
struct step_kind {
	const char *name;
	/* A mapping holds the fields; otherwise the first field is the value itself and the others stand beside it. */
	bool is_mapping;
	struct value_field fields[STEP_FIELDS + 1];
	enum outcome (*run)(struct turn *turn, const struct step *step);
	const char *summary;
};
extern const struct step_kind step_kinds[];
extern const size_t step_kind_count;

struct step {
	const struct step_kind *kind;
	struct yaml_place at;
	struct value values[STEP_FIELDS];
};
/* The value of a field that the kind has. */
const struct value *step_value(const struct step *step, const char *field);

struct scene { /* one entry of `turns` */
	bool has_pattern;
	regex_t pattern;
	int64_t times; /* 0: no limit */
	const struct step *steps;
	size_t step_count;
};

/* What can be hidden: SCENARIO_WITHOUT(name). */
enum without {
	WITHOUT_MCP = 1,
	WITHOUT_LOAD = 2,
	WITHOUT_RESUME = 4,
	WITHOUT_CLOSE = 8,
	WITHOUT_STEERING = 16,
	WITHOUT_MODELS = 32,
	WITHOUT_MODES = 64,
	WITHOUT_PERMISSIONS = 128,
	WITHOUT_QUESTIONS = 256,
	WITHOUT_USAGE = 512,
	WITHOUT_CANCEL = 1024,
};
/* The words of `without`, in the order of their bits. */
extern const char *const without_words[];

struct scenario {
	const struct str *models;
	size_t model_count; /* at least one */
	unsigned without;   /* enum without */
	int64_t init_delay_ms;
	bool needs_auth;
	struct scene *scenes;
	size_t scene_count;
};

/* All of it lives in `arena`. -1 with *error. */
int scenario_read(struct str text, struct arena *arena, const struct scenario **out, struct yaml_error *error);

/* Levels and values of a value that becomes JSON. */
#define SCENARIO_JSON_VALUES 10000

#endif
