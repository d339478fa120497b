// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch/top.h"

#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>
#include <term.h> /* defines macros whose names are used here */
#undef columns
#undef lines

#include "counters/counters.h"
#include "io/output.h"

#define GRAPH_ROWS 4       /* without its title and its axis */
#define ROWS_FOR_GRAPH 19  /* a window with fewer rows has no graph */
#define COLUMNS_FOR_TWO 60 /* a narrower window has one graph */
#define NAME_COLUMNS 20
#define FIGURE_COLUMNS 10
#define RULE_INDENT 11
#define PUT_BYTES (RULE_TEXT_BYTES + MB_LEN_MAX)

enum { COLOR_OF_DROPPED = 1, COLOR_OF_PASSED };

static SCREEN *screen;
static WINDOW *window; /* all of the screen */

bool top_screen_open(void)
{
	int is_known;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	setlocale(LC_CTYPE, "");
	/* newterm() leaks memory for an unknown terminal, so ask first. */
	if (setupterm(NULL, STDOUT_FILENO, &is_known) != OK)
		return false;
	del_curterm(cur_term);
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	window = stdscr;
	cbreak();
	noecho();
	nonl();
	keypad(window, TRUE);
	nodelay(window, TRUE);
	curs_set(0);
	if (has_colors() && start_color() == OK && use_default_colors() == OK) {
		init_pair(COLOR_OF_DROPPED, COLOR_RED, -1);
		init_pair(COLOR_OF_PASSED, COLOR_GREEN, -1);
	}
	return true;
}

void top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

int top_screen_key(int wait_ms)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int key;

	if (poll(&input, 1, wait_ms) > 0 && input.revents & (POLLHUP | POLLERR | POLLNVAL))
		return TOP_SCREEN_GONE;
	key = wgetch(window);
	if (key == KEY_RESIZE)
		return TOP_SCREEN_RESIZED;
	/* The input is readable but has no key: this is its end. */
	if (key == ERR && input.revents & POLLIN)
		return TOP_SCREEN_GONE;
	return key == ERR ? TOP_SCREEN_NONE : key;
}

/* Draws the part of the text that is inside the window. What the locale cannot decode or print becomes '?'. */
static void put(int row, int column, chtype attributes, const char *text)
{
	char fitting[PUT_BYTES];
	int columns = COLS - column;
	size_t used = 0;

	if (row >= LINES || columns <= 0)
		return;
	while (*text && used + MB_LEN_MAX < PUT_BYTES) {
		wchar_t character;
		mbstate_t state = {};
		const size_t bytes = mbrtowc(&character, text, MB_LEN_MAX, &state);
		const bool is_one = bytes <= MB_LEN_MAX && wcwidth(character) >= 0;

		columns -= is_one ? wcwidth(character) : 1;
		if (columns < 0)
			break;
		memcpy(fitting + used, is_one ? text : "?", is_one ? bytes : 1);
		used += is_one ? bytes : 1;
		text += is_one ? bytes : 1;
	}
	fitting[used] = '\0';
	wattrset(window, attributes);
	if (wmove(window, row, column) == OK)
		waddnstr(window, fitting, -1);
	wattrset(window, A_NORMAL);
}

/* The last interval is on the right. A small rate still shows "_". */
static void draw_graph(const struct top_model *model, const double history[TOP_HISTORY], const char *what, int row,
		       int left, int columns, chtype color)
{
	char text[TOP_TEXT_BYTES], number[TOP_NUMBER_BYTES];
	double most = 0;

	for (int ago = 0; ago < columns; ago++)
		if (most < top_model_past(model, history, ago))
			most = top_model_past(model, history, ago);
	snprintf(text, sizeof(text), "%s packets/s, at most %s", what, top_number(most, number));
	put(row, left, A_BOLD, text);
	for (int ago = 0; ago < columns; ago++) {
		const double share = most > 0 ? top_model_past(model, history, ago) / most : 0;
		const int height = (int)(2 * share * GRAPH_ROWS + 1) / 2;

		for (int y = 0; y < height; y++)
			put(row + GRAPH_ROWS - y, left + columns - 1 - ago, color, "#");
		if (share > 0 && !height)
			put(row + GRAPH_ROWS, left + columns - 1 - ago, color, "_");
	}
	/* How long ago the left end and the middle were. */
	row += GRAPH_ROWS + 1;
	put(row, left, A_DIM, top_model_ago(model, columns, text));
	put(row, left + columns / 2, A_DIM, top_model_ago(model, columns - columns / 2, text));
	put(row, left + columns - 3, A_DIM, "now");
}

/* A narrow window shows only packets, which are every second figure. */
static void draw_line(int row, const char *name, const char *const *figures, int count)
{
	const int step = COLS >= NAME_COLUMNS + count * FIGURE_COLUMNS ? 1 : 2,
		  columns = count / step * FIGURE_COLUMNS;
	const int room = COLS > columns ? COLS - columns : 0;
	char text[FIGURE_COLUMNS + 1];

	put(row, 0, A_NORMAL, name);
	for (int i = 0; i < count; i += step) {
		snprintf(text, sizeof(text), "%*s", FIGURE_COLUMNS, figures[i]);
		put(row, room + i / step * FIGURE_COLUMNS, A_NORMAL, text);
	}
}

/* Draws interfaces or CPUs in at most `rows` rows, with the heading. Returns the next row. */
static int draw_lines(const struct top_model *model, int row, int rows)
{
	static const char *const order[TOP_SORTS] = { "dropped", "passed", "name" };
	static const char *const units[] = { "drop pps", "drop bps", "pass pps", "pass bps", "would pps", "would bps" };
	const int count = model->has_would_drop ? 6 : 4;
	char text[TOP_TEXT_BYTES], figure[6][TOP_NUMBER_BYTES];

	if (rows < 2)
		return row;
	snprintf(text, sizeof(text), "%s by %s", model->view == TOP_BY_CPU ? "CPU" : "interface", order[model->sort]);
	draw_line(row, text, units, count);
	if (wmove(window, row, 0) == OK)
		wchgat(window, -1, A_BOLD | A_UNDERLINE, 0, NULL);
	row++;
	for (size_t i = 0; i < model->lines && (int)i < rows - 1; i++) {
		const struct top_rates *rates = &model->line[i].rates;
		const char *figures[] = { top_number(rates->pps[VERDICT_DROP], figure[0]),
					  top_number(rates->bps[VERDICT_DROP], figure[1]),
					  top_number(rates->pps[VERDICT_PASS], figure[2]),
					  top_number(rates->bps[VERDICT_PASS], figure[3]),
					  top_number(rates->pps[VERDICT_WOULD_DROP], figure[4]),
					  top_number(rates->bps[VERDICT_WOULD_DROP], figure[5]) };

		draw_line(row++, model->line[i].name, figures, count);
	}
	return row;
}

static void draw_all(const struct top_model *model)
{
	const bool has_two = COLS >= COLUMNS_FOR_TWO;
	const int columns = has_two ? COLS / 2 - 1 : COLS;
	char text[TOP_TEXT_BYTES], figure[TOP_NUMBER_BYTES];
	int row = TOP_HEADINGS, rows, lines;

	for (int i = 0; i < TOP_HEADINGS; i++) {
		const bool is_alarming = i == 0 && strcmp(model->state.effect, "filters");
		const chtype color = i == 1                ? COLOR_PAIR(COLOR_OF_PASSED) :
				     i == 2 || is_alarming ? COLOR_PAIR(COLOR_OF_DROPPED) :
							     A_NORMAL;

		put(i, 0, (i < 3 ? A_BOLD : A_NORMAL) | color, top_model_heading(model, i, text));
	}
	if (LINES >= ROWS_FOR_GRAPH) {
		draw_graph(model, model->dropped, model->has_would_drop ? "drop + would drop" : "dropped", row, 0,
			   columns, COLOR_PAIR(COLOR_OF_DROPPED));
		if (has_two)
			draw_graph(model, model->passed, verdict_words[VERDICT_PASS].done, row, COLS / 2,
				   columns, COLOR_PAIR(COLOR_OF_PASSED));
		row += GRAPH_ROWS + 2;
	}
	/* Interfaces or CPUs get at most half of the remaining rows. */
	rows = LINES - row - 1;
	lines = (int)model->lines + 1 < rows - rows / 2 ? (int)model->lines + 1 : rows - rows / 2;
	row = draw_lines(model, row, lines);
	rows = LINES - row - 1;
	if (rows >= 2) {
		snprintf(text, sizeof(text), "packets/s  rule%s%s", *model->rules_note ? "; " : "", model->rules_note);
		put(row++, 0, A_BOLD | A_UNDERLINE, text);
	}
	for (size_t i = 0; i < model->rules && (int)i < rows - 1; i++, row++) {
		const struct top_rule *rule = &model->rule[i];

		snprintf(text, sizeof(text), "%9s", top_number(rule->pps, figure));
		put(row, 0, A_NORMAL, text);
		put(row, RULE_INDENT, rule->name ? A_NORMAL : A_DIM,
		    rule->name ? rule->name->rule : "?");
	}
	put(LINES - 1, 0, A_DIM, "q quit  s sort  p pause  i interfaces  c CPUs  ? help");
}

void top_screen_draw(const struct top_model *model)
{
	static const char *const help[] = {
		"s         sort by what is dropped, passed, by name",
		"p, space  pause, continue",
		"i, c      by interface, by CPU",
		"?, h      this, and back",
		"q         end",
		"",
		"pps, bps  packets, bits per second",
		"would     passed only because of monitor-only or a monitor rule",
		"by policy dropped by no rule: see xdp-cuckoo policy, stats",
		"stopped   packets with the fingerprint of a rule that the",
		"          records of the exact table cleared",
		"retries   look-ups repeated because the table changed",
		"?         a rule that is not looked up yet",
	};

	werase(window);
	if (!model->has_help)
		draw_all(model);
	for (size_t i = 0; model->has_help && i < sizeof(help) / sizeof(help[0]); i++)
		put((int)i, 0, A_NORMAL, help[i]);
	wrefresh(window);
}
