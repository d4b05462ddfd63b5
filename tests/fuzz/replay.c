/* Runs a fuzz target over the files of a folder: the corpus as an ordinary test, with any compiler. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *folder, const char *name)
{
	static uint8_t bytes[1024 * 1024];
	char path[4096];
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (file == NULL)
		abort();
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	printf("%s\n", name); /* the last one printed is the one that broke */
	fflush(stdout);
	(void)LLVMFuzzerTestOneInput(bytes, n);
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int count = 0;

	if (folder == NULL)
		return 64;
	while ((entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.') {
			replay(argv[1], entry->d_name);
			count++;
		}
	closedir(folder);
	return count > 0 ? 0 : 1;
}
