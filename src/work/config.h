#ifndef DAIS_WORK_CONFIG_H
#define DAIS_WORK_CONFIG_H
#include "work/work.h"
struct config_import { struct str yaml; const char *path; };
int config_import_global(struct tx *tx, void *arg, struct failure *f);
#endif
