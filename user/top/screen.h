/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Draws a top_model on the terminal, and reads keys. The only module that knows ncurses. */
#ifndef XDP_CUCKOO_TOP_SCREEN_H
#define XDP_CUCKOO_TOP_SCREEN_H

#include "top/model.h"

/* False where input or output is no terminal, or one that nobody knows. What it was is set again by the other. */
bool top_screen_open(void);
void top_screen_close(void);

void top_screen_draw(const struct top_model *model);

/*
 * Waits for a key at most so long, and less where a signal comes. TOP_SCREEN_NONE; TOP_SCREEN_RESIZED: it is to be
 * drawn again; TOP_SCREEN_GONE: the terminal is no more.
 */
enum { TOP_SCREEN_NONE = -1, TOP_SCREEN_RESIZED = -2, TOP_SCREEN_GONE = -3 };
int top_screen_key(int wait_ms);

#endif
