/* Prints one reference page from the tables of the program: reference configuration|tools|errors|events|man.
 * tests/tools/write_reference puts each below the marker of its page; a test compares. */
#include "base/limits.h"
#include "base/settings.h"
#include "store/store.h"
#include "tools/plain.h"

#include <stdio.h>
#include <string.h>

/* A cell of a Markdown table: a bar would end it, and angle brackets would be read as HTML. */
static void cell(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|')
			fputs("\\|", stdout);
		else if (*text == '<')
			fputs("&lt;", stdout);
		else
			putchar(*text);
	}
}

static const char *setting_type_text(enum setting_type type)
{
	switch (type) {
	case SETTING_TEXT:
		return "text";
	case SETTING_LIST:
		return "list";
	case SETTING_INT:
		return "integer";
	case SETTING_BOOL:
		return "true or false";
	case SETTING_WORD:
		return "one word of";
	case SETTING_PATH:
		return "path";
	}
	return "";
}

static void print_limits(void)
{
	puts("\n## Limits\n");
	puts("Everything that grows has a bound. These are fixed in the program.\n");
	puts("| limit | value | unit | what it bounds, and why this number |");
	puts("|---|---:|---|---|");
	for (size_t i = 0; i < limit_count; i++) {
		printf("| `%s` | %lld | %s | ", limits[i].name, (long long)limits[i].value, limits[i].unit);
		cell(limits[i].why);
		puts(" |");
	}
}

static void print_configuration(void)
{
	puts("## Settings\n");
	puts("| key in the file | environment | flag | type | default | meaning |");
	puts("|---|---|---|---|---|---|");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting_info *one = &setting_table[i];

		printf("| `%s` | `%s` | ", one->key, one->env);
		if (one->flag != NULL)
			printf("`--%s`", one->flag);
		printf(" | %s%s%s | ", setting_type_text(one->type), one->bounds != NULL ? " " : "",
			one->bounds != NULL ? one->bounds : "");
		if (one->fallback[0] != '\0')
			printf("`%s`", one->fallback);
		fputs(" | ", stdout);
		cell(one->help);
		puts(" |");
	}
	print_limits();
}

static const char *field_kind_text(const struct field *field)
{
	switch (field->kind) {
	case FIELD_STR:
		return "string";
	case FIELD_INT:
		return "integer";
	case FIELD_BOOL:
		return "boolean";
	case FIELD_WORD:
		return "one of";
	case FIELD_ID:
		return "id";
	case FIELD_TIME:
		return "time (RFC 3339)";
	case FIELD_STRS:
		return "list of strings";
	case FIELD_WORDS:
		return "list of";
	case FIELD_IDS:
		return field->flags & ID_OR_IDS ? "id or list of ids" : "list of ids";
	case FIELD_JSON:
	case FIELD_OBJECT:
		return "object";
	case FIELD_OBJECTS:
		return "list of objects";
	}
	return "";
}

static void print_bounds(const struct field *field)
{
	const char *unit = field->flags & IN_BYTES ? " bytes" : "";

	if (field->min != 0 && field->max != 0)
		printf(", %lld to %lld%s", (long long)field->min, (long long)field->max, unit);
	else if (field->max != 0)
		printf(", at most %lld%s", (long long)field->max, unit);
	else if (field->min != 0)
		printf(", at least %lld", (long long)field->min);
	if (field->item_max != 0)
		printf(", %lld characters each", (long long)field->item_max);
}

static void print_fields(const struct field *fields, const char *prefix)
{
	for (const struct field *field = fields; field->name != NULL; field++) {
		char path[256];

		printf("| `%s%s` | %s", prefix, field->name, field_kind_text(field));
		for (const struct word *word = field->words; word != NULL && word->text != NULL; word++)
			printf("%s`%s`", word == field->words ? " " : ", ", word->text);
		print_bounds(field);
		if (field->flags & NULLABLE)
			fputs(", or null", stdout);
		fputs(" | ", stdout);
		if (field->flags & REQUIRED)
			fputs("yes", stdout);
		else if (field->group != NULL)
			printf("exactly one of *%s*", field->group);
		fputs(" | ", stdout);
		if (field->fallback != NULL)
			printf("`%s`", field->fallback);
		fputs(" | ", stdout);
		cell(field->help != NULL ? field->help : "");
		puts(" |");
		if (field->fields == NULL)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s%s.", prefix, field->name,
			field->kind == FIELD_OBJECTS ? "[]" : "");
		print_fields(field->fields, path);
	}
}

static void print_operation(const char *kind, const struct operation *operation)
{
	printf("\n### %s `%s`\n\n%s\n\n", kind, operation->name, operation->summary);
	fputs("Needs:", stdout);
	for (unsigned bit = 1; bit <= CAP_ADMIN; bit <<= 1)
		if (operation->capability & bit)
			printf(" `%s`", capability_name((enum capability)bit));
	puts(operation->capability == 0 ? " nothing.\n" : ".\n");
	if (operation->fields[0].name != NULL) {
		puts("| parameter | type | required | default | meaning |");
		puts("|---|---|---|---|---|");
		print_fields(operation->fields, "");
	}
	if (operation->returns != NULL)
		printf("\nReturns `%s`.\n", operation->returns);
	for (size_t i = 0; i < operation->error_count; i++)
		printf("%s`%s`", i == 0 ? "\nErrors: " : ", ", failure_info(operation->errors[i])->wire);
	if (operation->error_count > 0)
		puts(".");
	if (operation->example != NULL)
		printf("\n```json\n%s\n```\n", operation->example);
}

/* One operation without select or op: its arguments are those of the tool. */
static void print_plain(const struct plain *plain)
{
	printf("\nNeeds: `%s`.\n\n", capability_name(CAP_ORCHESTRATION));
	if (plain->fields[0].name != NULL) {
		puts("| parameter | type | required | default | meaning |");
		puts("|---|---|---|---|---|");
		print_fields(plain->fields, "");
	}
	for (size_t i = 0; i < PLAIN_ERRORS_COUNT; i++)
		printf("%s`%s`", i == 0 ? "\nErrors: " : ", ", failure_info(plain_errors[i])->wire);
	for (size_t i = 0; i < plain->error_count; i++)
		printf(", `%s`", failure_info(plain->errors[i])->wire);
	printf(".\n\n```json\n%s\n```\n", plain->example);
}

static void print_tools(void)
{
	for (size_t i = 0; i < tool_count; i++) {
		const struct tool *tool = tool_table[i];

		printf("%s## %s\n\n%s\n", i == 0 ? "" : "\n", tool->name, tool->description);
		if (tool->plain != NULL)
			print_plain(tool->plain);
		for (size_t k = 0; k < tool->select_count; k++)
			print_operation("select", &tool->selects[k]);
		for (size_t k = 0; k < tool->op_count; k++)
			print_operation("op", &tool->ops[k]);
	}
}

static void print_errors(void)
{
	static const char *const kinds[] = {"permanent", "transient", "shedding"};

	puts("| code | kind | HTTP | exit | when | what to do |");
	puts("|---|---|---:|---:|---|---|");
	for (int code = 0; code < FAILURE_CODES; code++) {
		const struct failure_info *one = failure_info((enum failure_code)code);

		printf("| `%s` | %s | %d | %d | ", one->wire, kinds[one->kind], one->http_status, one->exit_code);
		cell(one->meaning);
		fputs(" | ", stdout);
		cell(one->fix);
		puts(" |");
	}
}

static void print_events(void)
{
	static const struct {
		const char *wire, *stream, *data;
	} rows[] = {
#define EVENT(name, number, wire, stream, data) {wire, stream, data},
#include "store/event.def"
#undef EVENT
	};

	puts("| type | in the stream as | data |");
	puts("|---|---|---|");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("| `%s` | %s%s%s | %s |\n", rows[i].wire, rows[i].stream != NULL ? "`" : "audit only",
			rows[i].stream != NULL ? rows[i].stream : "", rows[i].stream != NULL ? "`" : "",
			rows[i].data);
}

/* Roff: a leading dot or apostrophe is a request, and a hyphen has to be said. */
static void roff(const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		if ((*p == '.' || *p == '\'') && p == text)
			fputs("\\&", stdout);
		if (*p == '-')
			fputs("\\-", stdout);
		else if (*p == '\\')
			fputs("\\e", stdout);
		else
			putchar(*p);
	}
}

static void print_man(void)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting_info *one = &setting_table[i];

		fputs(".TP\n.B ", stdout);
		roff(one->key);
		putchar('\n');
		roff(one->help);
		printf(".\nType: %s%s", setting_type_text(one->type), one->bounds != NULL ? " " : "");
		roff(one->bounds != NULL ? one->bounds : "");
		fputs(".\nDefault: ", stdout);
		roff(one->fallback[0] != '\0' ? one->fallback : "none");
		printf(".\nEnvironment: %s.\n", one->env);
		if (one->flag != NULL) {
			fputs("Flag: \\-\\-", stdout);
			roff(one->flag);
			puts(".");
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} pages[] = {
		{"configuration", print_configuration},
		{"errors", print_errors},
		{"events", print_events},
		{"man", print_man},
		{"tools", print_tools},
	};

	for (size_t i = 0; argc == 2 && i < sizeof(pages) / sizeof(pages[0]); i++)
		if (strcmp(argv[1], pages[i].name) == 0) {
			pages[i].print();
			return 0;
		}
	fputs("usage: reference configuration|errors|events|man|tools\n", stderr);
	return 64;
}
