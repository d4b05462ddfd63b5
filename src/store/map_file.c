/* How readers keep the database mapped. SQLite gives the whole mapping up whenever another connection has committed,
 * since some system might have cut the file and made it long again behind its back; then every page that a search
 * touches is a page fault once more. On Linux a mapping shows the file as it is, whoever wrote it, so it is kept, and
 * given up only where the file has another size: what lies beyond its end is read, not mapped.
 *
 * Only database files are ours, and only that one method; all others are those of the system's VFS. */
#include "store/private.h"

#include <pthread.h>
#include <sqlite3.h>

/* A mapping is made anew when the file has grown by a sixteenth, and by this. */
#define LEAST_GROWTH (INT64_C(4) << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the next two while the first reader opens */
static sqlite3_io_methods methods;
static const sqlite3_io_methods *system_methods;
static int system_bytes;

/* What the file's size was when the mapping was given up last; it stands behind the system's own part. */
static sqlite3_int64 *mapped(sqlite3_file *file)
{
	return (sqlite3_int64 *)((char *)file + system_bytes);
}

static int unfetch(sqlite3_file *file, sqlite3_int64 at, void *page)
{
	sqlite3_int64 size, known = *mapped(file);

	if (page != NULL)
		return system_methods->xUnfetch(file, at, page);
	if (system_methods->xFileSize(file, &size) != SQLITE_OK)
		size = 0;
	if (size >= known && size - known < LEAST_GROWTH + known / 16 && known > 0)
		return SQLITE_OK;
	*mapped(file) = size;
	return system_methods->xUnfetch(file, at, page);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
	sqlite3_vfs *system = vfs->pAppData;
	int rc = system->xOpen(system, name, file, flags, out_flags);

	if (rc != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0 || file->pMethods->iVersion < 3)
		return rc;
	(void)pthread_mutex_lock(&lock);
	if (system_methods == NULL) {
		methods = *file->pMethods;
		methods.xUnfetch = unfetch;
		system_methods = file->pMethods;
	}
	(void)pthread_mutex_unlock(&lock);
	*mapped(file) = 0;
	if (file->pMethods == system_methods)
		file->pMethods = &methods;
	return rc;
}

void map_file_register(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *system = sqlite3_vfs_find(NULL);

	system_bytes = (system->szOsFile + 7) / 8 * 8;
	vfs = *system;
	vfs.pNext = NULL;
	vfs.zName = MAP_FILE_VFS;
	vfs.pAppData = system;
	vfs.szOsFile = system_bytes + (int)sizeof(sqlite3_int64);
	vfs.xOpen = open_file;
	(void)sqlite3_vfs_register(&vfs, 0);
}
