/* bench/bare.h - what the product is compared with, each as little as can be. */
#ifndef DAIS_BENCH_BARE_H
#define DAIS_BENCH_BARE_H

/* Latency of one 4 KB overwrite and fdatasync; prints JSON. */
int bare_disk(const char *file, double seconds);
/* An epoll loop of our own that answers every request with one fixed text: what HTTP costs at least on
 * this machine. Prints "bare: ready URL", runs until it is killed. */
int bare_loop(void);

#endif
