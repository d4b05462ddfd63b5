/* How the write-ahead log reaches the disk. SQLite writes each frame in two pieces, 24 bytes and a page, so that a
 * commit of 64 transitions makes some 400 system calls. Here they are gathered and written in one piece.
 *
 * Invariant: nothing is asked of the file below before what was gathered is in it. A commit syncs the log, which
 * synchronous=FULL makes sure of, before the index shows its frames: no other connection looks for a frame that
 * is still in memory, and what a sync answered for is on the disk. */
#include "store/private.h"

#include "base/limits.h"

#include <sqlite3.h>
#include <stdlib.h>

/* The system's VFS takes the lowest 17 bits of a length for the length. */
_Static_assert(LIMIT_WAL_GATHERED_BYTES < 1 << 17, "a write of what was gathered reaches the disk whole");

struct wal_file {
	sqlite3_file base; /* what SQLite sees */
	char *gathered;
	size_t length;
	sqlite3_int64 at; /* of the first byte gathered */
	bool defers;	   /* a sync hands the bytes to the system and no more */
	bool owes;	   /* it did so */
	bool must_sync;	   /* the next one is for the disk: the file is new, or its header is */
	sqlite3_file below[]; /* as large as the system's own VFS asks for */
};

static sqlite3_file *below(sqlite3_file *file)
{
	return ((struct wal_file *)file)->below;
}

/* A failed write is the transaction's failure: SQLite undoes it and writes its place anew. */
static int flush(struct wal_file *wal)
{
	size_t n = wal->length;

	wal->length = 0;
	return n == 0 ? SQLITE_OK : wal->below->pMethods->xWrite(wal->below, wal->gathered, (int)n, wal->at);
}

static int wal_close(sqlite3_file *file)
{
	struct wal_file *wal = (struct wal_file *)file;
	int written = flush(wal);
	int closed = wal->below->pMethods->xClose(wal->below);

	free(wal->gathered);
	return written == SQLITE_OK ? closed : written;
}

static int wal_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
	int rc = flush((struct wal_file *)file);

	return rc == SQLITE_OK ? below(file)->pMethods->xRead(below(file), to, n, at) : rc;
}

static int wal_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
	struct wal_file *wal = (struct wal_file *)file;
	bool follows = at == wal->at + (sqlite3_int64)wal->length;

	wal->must_sync = wal->must_sync || at == 0;
	if (!follows || wal->length + (size_t)n > LIMIT_WAL_GATHERED_BYTES) {
		int rc = flush(wal);

		if (rc != SQLITE_OK)
			return rc;
		wal->at = at;
	}
	if (n > LIMIT_WAL_GATHERED_BYTES)
		return below(file)->pMethods->xWrite(below(file), bytes, n, at);
	if (wal->gathered == NULL && (wal->gathered = malloc(LIMIT_WAL_GATHERED_BYTES)) == NULL)
		return SQLITE_NOMEM;
	memcpy(wal->gathered + wal->length, bytes, (size_t)n);
	wal->length += (size_t)n;
	return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int rc = flush((struct wal_file *)file);

	return rc == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : rc;
}

static int wal_sync(sqlite3_file *file, int flags)
{
	struct wal_file *wal = (struct wal_file *)file;
	int rc = flush(wal);

	if (rc != SQLITE_OK)
		return rc;
	if (wal->defers && !wal->must_sync) {
		wal->owes = true;
		return SQLITE_OK;
	}
	rc = wal->below->pMethods->xSync(wal->below, flags);
	if (rc == SQLITE_OK)
		wal->must_sync = wal->owes = false;
	return rc;
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *size)
{
	int rc = flush((struct wal_file *)file);

	return rc == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), size) : rc;
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
	return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int wal_sector_size(sqlite3_file *file)
{
	return below(file)->pMethods->xSectorSize(below(file));
}

static int wal_characteristics(sqlite3_file *file)
{
	return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

/* Locks and the index belong to the database's file: version 1 has all that a log needs but for locks, which
 * SQLite does not take on it. */
static int no_lock(sqlite3_file *file, int level)
{
	(void)file;
	(void)level;
	return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *out)
{
	(void)file;
	*out = 0;
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = wal_close,
	.xRead = wal_read,
	.xWrite = wal_write,
	.xTruncate = wal_truncate,
	.xSync = wal_sync,
	.xFileSize = wal_size,
	.xLock = no_lock,
	.xUnlock = no_lock,
	.xCheckReservedLock = is_reserved,
	.xFileControl = wal_control,
	.xSectorSize = wal_sector_size,
	.xDeviceCharacteristics = wal_characteristics,
};

/* Only the log is ours; every other file is opened as the system's VFS does it. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
	sqlite3_vfs *system = vfs->pAppData;
	struct wal_file *wal = (struct wal_file *)file;
	int rc;

	if ((flags & SQLITE_OPEN_WAL) == 0)
		return system->xOpen(system, name, file, flags, out_flags);
	*wal = (struct wal_file){.must_sync = true};
	rc = system->xOpen(system, name, wal->below, flags, out_flags);
	if (rc == SQLITE_OK)
		wal->base.pMethods = &methods;
	return rc;
}

bool wal_file_defer(sqlite3 *handle, bool defers)
{
	sqlite3_file *file = NULL;
	struct wal_file *wal;
	bool owes;

	(void)sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
	if (file == NULL || file->pMethods != &methods)
		return false;
	wal = (struct wal_file *)file;
	wal->defers = defers;
	owes = wal->owes;
	wal->owes = false;
	return owes;
}

void wal_file_register(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *system = sqlite3_vfs_find(NULL);

	vfs = *system;
	vfs.pNext = NULL;
	vfs.zName = WAL_FILE_VFS;
	vfs.pAppData = system;
	vfs.szOsFile = (int)sizeof(struct wal_file) + system->szOsFile;
	vfs.xOpen = open_file;
	(void)sqlite3_vfs_register(&vfs, 0);
}
