/* threads/places.h - how many runs may work at once, and whose place is lent. */
#ifndef DAIS_THREADS_PLACES_H
#define DAIS_THREADS_PLACES_H

#include "base/str.h"

/* 0: no limit. */
int64_t places_runs(void);
int64_t places_of_instance(struct str instance);
int64_t places_of_project(void);
int64_t places_of_batch(void);
void places_set(int64_t runs, int64_t project, int64_t batch);
void places_set_instance(struct str instance, int64_t runs);

/* A run that waits inside a call for its own tasks lends its place: they might never begin otherwise. Any thread. */
void places_lend(int64_t thread_n);
void places_take_back(int64_t thread_n);
bool places_is_lent(int64_t thread_n);

#endif
