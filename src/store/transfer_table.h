/* store/transfer_table.h - inside export and import: which tables and columns travel. */
#ifndef DAIS_STORE_TRANSFER_TABLE_H
#define DAIS_STORE_TRANSFER_TABLE_H

#include <stddef.h>

/* What a column holds, and how it is written. Upper case: it may be NULL, and is left out then. */
enum transfer_kind {
	TRANSFER_INT = 'i',
	TRANSFER_INT_NULL = 'I',
	TRANSFER_TEXT = 's',
	TRANSFER_TEXT_NULL = 'S',
	TRANSFER_ID = 'u', /* 16 bytes, as a UUID */
	TRANSFER_ID_NULL = 'U',
	TRANSFER_SECRET = 'x', /* 32 bytes that stay here; import puts random ones that nobody knows */
};

struct transfer_column {
	const char *name;
	enum transfer_kind kind;
};

struct transfer_table {
	const char *name;
	const char *order; /* total, and such that rows come after what they refer to */
	const struct transfer_column *columns; /* ends with a NULL name */
};

/* Rows refer only to tables that stand above theirs. */
extern const struct transfer_table transfer_tables[];
extern const size_t transfer_table_count;

#endif
