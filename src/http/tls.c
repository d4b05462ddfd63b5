/* Certificate and key, checked here so that a mistake names its file; GnuTLS below libmicrohttpd would
 * only say that the daemon does not start. */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad_file(struct failure *f, const char *file, const char *why)
{
	return fail(f, FAIL_BAD_CONFIGURATION, "TLS file %s: %s", file, why);
}

static int read_all(int fd, char *out, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, out + got, n - got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		got += (size_t)r;
	}
	return 0;
}

static int read_file(struct arena *arena, const char *file, const char **out, struct failure *f)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	struct stat info;
	char *text;

	if (fd < 0)
		return bad_file(f, file, strerrordesc_np(errno));
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
		why = "it is not a regular file";
	else if (info.st_size > LIMIT_TLS_FILE_BYTES)
		why = "it is longer than 256 KiB";
	if (why == NULL) {
		text = arena_alloc(arena, (size_t)info.st_size + 1);
		if (read_all(fd, text, (size_t)info.st_size) != 0)
			why = "it cannot be read";
		else
			*out = text;
	}
	(void)close(fd); /* read only */
	return why == NULL ? 0 : bad_file(f, file, why);
}

/* An encrypted key would make OpenSSL ask the terminal. */
static int no_password(char *out, int size, int writing, void *context)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)context;
	return -1;
}

static int check_pair(struct http_server *server, struct failure *f)
{
	const struct http_options *options = &server->options;
	BIO *cert_bio = BIO_new_mem_buf(server->cert, -1), *key_bio = BIO_new_mem_buf(server->key, -1);
	X509 *cert = PEM_read_bio_X509(cert_bio, NULL, no_password, NULL);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, no_password, NULL);
	int result = 0;

	if (cert == NULL)
		result = bad_file(f, options->tls_cert_file, "it holds no PEM certificate");
	else if (key == NULL)
		result = bad_file(f, options->tls_key_file, "it holds no PEM private key without a password");
	else if (X509_check_private_key(cert, key) != 1)
		result = bad_file(f, options->tls_key_file, "the key does not belong to the certificate");
	EVP_PKEY_free(key);
	X509_free(cert);
	BIO_free(key_bio);
	BIO_free(cert_bio);
	ERR_clear_error();
	return result;
}

int tls_load(struct http_server *server, struct failure *f)
{
	const struct http_options *options = &server->options;

	if (options->tls_cert_file == NULL && options->tls_key_file == NULL)
		return 0;
	if (options->tls_cert_file == NULL || options->tls_key_file == NULL)
		return fail(f, FAIL_BAD_CONFIGURATION, "TLS needs both a certificate file and a key file");
	if (read_file(server->arena, options->tls_cert_file, &server->cert, f) != 0
		|| read_file(server->arena, options->tls_key_file, &server->key, f) != 0)
		return -1;
	return check_pair(server, f);
}
