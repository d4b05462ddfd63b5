/* Prints every statement that SQL() defined anywhere in the program, one per line, for
 * tests/tools/test_sql.py. The linker gathers them in one section, with padding between. */
#include <stdio.h>
#include <string.h>

extern const char __start_dais_sql[] __attribute__((visibility("hidden")));
extern const char __stop_dais_sql[] __attribute__((visibility("hidden")));

int main(void)
{
	const char *end = __stop_dais_sql;

	for (const char *p = __start_dais_sql; p < end;) {
		if (*p == '\0') {
			p++;
			continue;
		}
		puts(p);
		p += strlen(p);
	}
	return 0;
}
