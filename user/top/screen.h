/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Draws a top_model on the terminal, and reads keys. Only this module uses ncurses. */
#ifndef XDP_CUCKOO_TOP_SCREEN_H
#define XDP_CUCKOO_TOP_SCREEN_H

#include "top/model.h"

/* False: input or output is not a terminal that ncurses knows. top_screen_close() restores the terminal. */
bool top_screen_open(void);
void top_screen_close(void);

void top_screen_draw(const struct top_model *model);

/* Waits for a key until a signal comes or `wait_ms` are over. Returns the key, or one of these: */
enum {
	TOP_SCREEN_NONE = -1,
	TOP_SCREEN_RESIZED = -2, /* draw again */
	TOP_SCREEN_GONE = -3,    /* the terminal has gone */
};
int top_screen_key(int wait_ms);

#endif
