/* Digests: has anything in this folder changed? */
#include "workspace/private.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
	const struct workspace_call *call;
	struct failure *f;
	EVP_MD_CTX *hash;
	int64_t until; /* monotonic */
	int64_t files, bytes;
};

static void feed(struct walk *walk, const void *bytes, size_t n)
{
	if (EVP_DigestUpdate(walk->hash, bytes, n) != 1)
		abort(); /* fails only without memory */
}

static int too_many_bytes(struct walk *walk)
{
	return fault(walk->f, FAULT_TOO_LARGE, "The folder holds more than %d bytes.",
		LIMIT_DIGEST_BYTES);
}

static int check_limits(struct walk *walk)
{
	if (cancel_is_requested(walk->call->cancel))
		return fault(
			walk->f, FAULT_CANCELLED, "It was asked to stop while it read a folder.");
	if (clock_mono_ms() > walk->until)
		return fault(walk->f, FAULT_TIMED_OUT, "Reading the folder took longer than %d s.",
			LIMIT_DIGEST_MS / 1000);
	if (walk->files > LIMIT_DIGEST_FILES)
		return fault(walk->f, FAULT_TOO_LARGE, "The folder holds more than %d files.",
			LIMIT_DIGEST_FILES);
	return walk->bytes > LIMIT_DIGEST_BYTES ? too_many_bytes(walk) : 0;
}

/* Name, kind, mode and size, each with its length or of a fixed form, so that no two folders give
 * the same stream. */
static void feed_entry(struct walk *walk, const char *name, const struct stat *about)
{
	bool is_dir = S_ISDIR(about->st_mode);
	const char *head = arena_printf(walk->call->arena, "%s%c%o %lld", name, '\0',
		(unsigned)about->st_mode, is_dir ? 0LL : (long long)about->st_size);

	feed(walk, head, strlen(name) + 1 + strlen(head + strlen(name) + 1) + 1);
}

static int feed_file(struct walk *walk, int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char bytes[65536];
	int64_t size = 0;
	ssize_t n;

	if (fd < 0)
		return fault_errno(walk->f, "read", name);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		feed(walk, bytes, (size_t)n);
		size += n;
		walk->bytes += n;
		if (check_limits(walk) != 0) {
			close(fd);
			return -1;
		}
	}
	if (n < 0) {
		(void)fault_errno(walk->f, "read", name);
		close(fd);
		return -1;
	}
	close(fd);
	feed(walk, &size, sizeof(size)); /* it may have grown since it was looked at */
	return 0;
}

static int feed_link(struct walk *walk, int parent, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(parent, name, target, sizeof(target));

	if (n < 0)
		return fault_errno(walk->f, "read the link", name);
	feed(walk, target, (size_t)n);
	return 0;
}

static int walk_folder(struct walk *walk, int fd, int level);

static int feed_one(struct walk *walk, int parent, const char *name, int level)
{
	struct stat about;
	int fd, result;

	walk->files++;
	if (check_limits(walk) != 0)
		return -1;
	if (fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
		return fault_errno(walk->f, "look at", name);
	feed_entry(walk, name, &about);
	if (S_ISREG(about.st_mode) && about.st_size > LIMIT_DIGEST_BYTES - walk->bytes)
		return too_many_bytes(walk);
	if (S_ISREG(about.st_mode))
		return feed_file(walk, parent, name);
	if (S_ISLNK(about.st_mode))
		return feed_link(walk, parent, name);
	if (!S_ISDIR(about.st_mode))
		return 0;
	if (level == LIMIT_DIGEST_LEVELS)
		return fault(walk->f, FAULT_TOO_LARGE, "Folders are nested more than %d levels.",
			LIMIT_DIGEST_LEVELS);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(walk->f, "read the folder", name);
	result = walk_folder(walk, fd, level + 1);
	feed(walk, "", 1); /* an empty name: the end of the folder */
	return result;
}

static int is_wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
	       strcmp(entry->d_name, ".git") != 0;
}

/* Not alphasort(): the order must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Takes over fd. */
static int walk_folder(struct walk *walk, int fd, int level)
{
	struct dirent **entries;
	int n = scandirat(fd, ".", &entries, is_wanted, by_name), result = 0;

	if (n < 0)
		result = fault_errno(walk->f, "read", "a folder");
	for (int i = 0; i < n; i++) {
		if (result == 0)
			result = feed_one(walk, fd, entries[i]->d_name, level);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	close(fd);
	return result;
}

static int take_by_walk(
	const struct workspace_call *call, const char *path, struct str *out, struct failure *f)
{
	struct walk walk = {.call = call, .f = f, .until = clock_mono_ms() + LIMIT_DIGEST_MS};
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;
	unsigned char digest[32];

	if (fd < 0)
		return fault_errno(f, "read the folder", path);
	walk.hash = EVP_MD_CTX_new();
	if (walk.hash == NULL || EVP_DigestInit_ex(walk.hash, EVP_sha256(), NULL) != 1)
		abort();
	result = walk_folder(&walk, fd, 0);
	if (EVP_DigestFinal_ex(walk.hash, digest, NULL) != 1)
		abort();
	EVP_MD_CTX_free(walk.hash);
	if (result == 0)
		*out = str_join(
			call->arena, STR("folder:"), hex(call->arena, digest, sizeof(digest)));
	return result;
}

int digest_take(
	const struct workspace_call *call, struct str path, struct str *out, struct failure *f)
{
	struct snapshot snapshot;
	int result;

	if (snapshot_open(call, path, &snapshot, f) == 0) {
		result = snapshot_tree(&snapshot, out, f);
		snapshot_close(&snapshot);
		return result;
	}
	if (!fault_is(f, FAULT_REPOSITORY_MISSING) && !fault_is(f, FAULT_GIT_MISSING))
		return -1;
	return take_by_walk(call, str_z(call->arena, path), out, f);
}

static bool is_tree(struct str digest)
{
	for (size_t i = 0; i < digest.n; i++)
		if (!(digest.p[i] >= '0' && digest.p[i] <= '9') &&
			!(digest.p[i] >= 'a' && digest.p[i] <= 'f'))
			return false;
	return digest.n > 0;
}

int digest_compare(const struct workspace_call *call, struct str path, struct str before,
	struct str after, struct file_changes *out, struct failure *f)
{
	if (!is_tree(before) || !is_tree(after))
		return fault(f, FAULT_NOT_A_WORKTREE,
			"Only digests of a work tree tell which files differ.");
	return tree_compare(call, str_z(call->arena, path), before, after, out, f);
}
