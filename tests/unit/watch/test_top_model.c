// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The model of top, without a terminal: rates, order, history, rules, and their text. */
#include "unit/test.h"
#include "rule/rule.h"
#include "watch/top.h"

#define CPUS 2
#define DROPS (OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP)
#define WOULD_DROPS (OUTCOME_DROP_RULE * VERDICTS + VERDICT_WOULD_DROP)
#define PASSES (OUTCOME_NO_RULE * VERDICTS + VERDICT_PASS)

struct scene {
	struct top_model model;
	struct tally difference;
};

static struct abi_counter *cell(struct scene *scene, unsigned int row, unsigned int cpu, unsigned int counter)
{
	return &scene->difference.part[0].counter[((size_t)row * CPUS + cpu) * ABI_COUNTERS + counter];
}

/* Two seconds: eth1 drops 100 packets of 50 bytes by CPU 0, eth2 drops 10 and passes 600 by CPU 1. */
static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct tally *tally = &scene->difference;

	assert_int_equal(top_model_open(&scene->model, TOP_BY_INTERFACE), 0);
	*tally = (struct tally){
		.part = calloc(1, sizeof(*tally->part)), .parts = 1, .cpus = CPUS, .filters = 1, .seconds = 2
	};
	tally->part[0].counter = calloc((size_t)ABI_COUNTER_ROWS * CPUS * ABI_COUNTERS, sizeof(struct abi_counter));
	strcpy(tally->interfaces[3], "eth1");
	strcpy(tally->interfaces[4], "eth2");
	*cell(scene, 3, 0, DROPS) = (struct abi_counter){ 100, 5000 };
	*cell(scene, 4, 1, DROPS) = (struct abi_counter){ 10, 500 };
	*cell(scene, 4, 1, PASSES) = (struct abi_counter){ 600, 60000 };
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	tally_close(&scene->difference);
	top_model_close(&scene->model);
	free(scene);
	return 0;
}

#define MODEL_TEST(name) TEST_WITH(name, struct scene *scene, set_up, tear_down)

static void feed(struct scene *scene)
{
	top_model_add(&scene->model, &scene->difference, &scene->difference);
}

MODEL_TEST(test_rates)
{
	const struct top_model *model = &scene->model;
	char text[TOP_TEXT_BYTES];

	assert_string_equal(top_model_heading(model, 2, text), "dropped     - packets/s     - bits/s");
	*cell(scene, 0, 0, ABI_COUNTER_STOPPED) = (struct abi_counter){ 8, 0 };
	feed(scene);
	assert_true(model->total.pps[VERDICT_DROP] == 55 && model->total.bps[VERDICT_DROP] == 22000);
	assert_true(model->total.pps[VERDICT_PASS] == 300 && model->stopped == 4);
	assert_string_equal(top_model_heading(model, 1, text), "passed    300 packets/s  240k bits/s");
	assert_string_equal(top_model_heading(model, 2, text), "dropped    55 packets/s 22.0k bits/s, 15.5 % of all");
	assert_int_equal(model->lines, 2);
	scene->difference.lost[0] = 2000;
	scene->difference.lost[1] = 400;
	feed(scene);
	assert_string_equal(top_model_heading(model, 1, text),
			    "passed    300 packets/s  240k bits/s; LOST by the card 1.20k packets/s");
	assert_non_null(strstr(top_model_plain(model, text), "; LOST by the card 1.20k packets/s"));
}

/* A packet that only would be dropped passes, and is never called dropped. */
MODEL_TEST(test_would_drop_is_not_dropped)
{
	char text[TOP_TEXT_BYTES];

	*cell(scene, 3, 0, WOULD_DROPS) = (struct abi_counter){ 90, 9000 };
	feed(scene);
	assert_string_equal(top_model_heading(&scene->model, 1, text),
			    "passed    300 packets/s  240k bits/s; would drop    45 packets/s 36.0k bits/s");
	assert_string_equal(top_model_heading(&scene->model, 2, text),
			    "dropped    55 packets/s 22.0k bits/s, 13.8 % of all");
	assert_non_null(strstr(top_model_plain(&scene->model, text),
			       "; would drop    45 packets/s 36.0k bits/s; dropped    55 packets/s 22.0k bits/s;"));
	assert_string_equal(scene->model.line[0].name, "eth1");
}

/* Drops that are not due to a rule. */
MODEL_TEST(test_dropped_by_policy)
{
	char text[TOP_TEXT_BYTES];

	*cell(scene, 3, 0, OUTCOME_MALFORMED * VERDICTS + VERDICT_DROP) = (struct abi_counter){ 16, 1000 };
	feed(scene);
	assert_string_equal(top_model_heading(&scene->model, 2, text),
			    "dropped    63 packets/s 26.0k bits/s, 17.4 % of all; 8/s by policy");
}

MODEL_TEST(test_order_and_view)
{
	struct top_model *model = &scene->model;

	feed(scene);
	assert_string_equal(model->line[0].name, "eth1");
	assert_true(top_model_key(model, 's'));
	assert_int_equal(model->sort, TOP_SORT_PASSED);
	assert_string_equal(model->line[0].name, "eth2");
	assert_true(top_model_key(model, 's'));
	assert_string_equal(model->line[0].name, "eth1");
	assert_true(top_model_key(model, 'c'));
	top_model_list(model, &scene->difference, &scene->difference);
	assert_int_equal(model->lines, 2);
	assert_string_equal(model->line[1].name, "1");
	assert_true(model->line[1].rates.pps[VERDICT_PASS] == 300);
	assert_int_equal(model->intervals, 1);
	assert_true(top_model_key(model, 'i'));
	assert_false(top_model_key(model, 'x'));
}

/* An interface that the filter has left keeps its line while it still counts. */
MODEL_TEST(test_left_interface)
{
	scene->difference.interfaces[3][0] = '\0';
	feed(scene);
	assert_int_equal(scene->model.lines, 2);
	assert_string_equal(scene->model.line[0].name, "-");
	assert_true(scene->model.line[0].rates.pps[VERDICT_DROP] == 50);
	*cell(scene, 3, 0, DROPS) = (struct abi_counter){ 0, 0 };
	feed(scene);
	assert_int_equal(scene->model.lines, 1);
}

MODEL_TEST(test_history)
{
	struct top_model *model = &scene->model;

	for (int i = 1; i <= TOP_HISTORY + 3; i++) {
		cell(scene, 3, 0, DROPS)->packets = 2 * i;
		cell(scene, 4, 1, DROPS)->packets = 0;
		feed(scene);
	}
	assert_true(top_model_past(model, model->dropped, 0) == TOP_HISTORY + 3);
	assert_true(top_model_past(model, model->dropped, TOP_HISTORY - 1) == 4);
	assert_true(top_model_past(model, model->dropped, TOP_HISTORY) == 0);
}

MODEL_TEST(test_history_begins)
{
	feed(scene);
	assert_true(top_model_past(&scene->model, scene->model.dropped, 0) == 55);
	assert_true(top_model_past(&scene->model, scene->model.dropped, 1) == 0);
}

MODEL_TEST(test_rules)
{
	struct top_model *model = &scene->model;
	struct hits hits = { .ranked = { { 7, 90 }, { 8, 80 }, { 9, 70 } }, .ranked_count = 3, .passes = 2 };
	struct top_names names = { .name = { { .tag = 9, .action = RULE_DROP, .rule = "src 192.0.2.1" },
					     { .tag = 8, .action = RULE_PASS, .rule = "src 192.0.2.2" } },
				   .count = 2 };

	top_model_rank(model, &hits, &names);
	assert_int_equal(model->rules, 2);
	assert_null(model->rule[0].name);
	assert_true(model->rule[0].pps == 90);
	assert_string_equal(model->rule[1].name->rule, "src 192.0.2.1");
	assert_string_equal(model->rules_note, "1 rule is not looked up yet");
	hits.ranked_count = 0;
	top_model_rank(model, &hits, &names);
	assert_string_equal(model->rules_note, "");
	hits.passes = 0;
	top_model_rank(model, &hits, &names);
	assert_string_equal(model->rules_note, "being counted for the first time");
}

TEST(test_numbers)
{
	static const struct {
		double number;
		const char *text;
	} cases[] = {
		{ 0, "0" },          { 0.04, "0.0" },     { 7, "7" },        { 7.5, "7.5" },       { 9.96, "10" },
		{ 999.4, "999" },    { 999.96, "1.00k" }, { 1234, "1.23k" }, { 9996, "10.0k" },    { 99960, "100k" },
		{ 999600, "1.00M" }, { 45.6e6, "45.6M" }, { 789e9, "789G" }, { 18.4e18, "18.4E" }, { 5e21, "5000E" },
	};
	char text[TOP_NUMBER_BYTES];

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(top_number(cases[i].number, text), cases[i].text);
}

MODEL_TEST(test_state)
{
	struct top_model *model = &scene->model;
	char text[TOP_TEXT_BYTES];

	model->state =
		(struct top_state){ .name = "web", .effect = "filters", .slots = 16384, .used = 8192, .age_s = 3723.4 };
	assert_string_equal(top_model_heading(model, 0, text), "web: filters; loaded 1h2m3s ago");
	assert_true(top_model_key(model, 'p'));
	model->state.age_s = -1;
	assert_string_equal(top_model_heading(model, 0, text), "web: filters; loaded ? ago; PAUSED");
	assert_string_equal(top_model_heading(model, 3, text), "table   50.0 % of 16.4k slots, 8.19k filled");
	model->retries = 3;
	assert_string_equal(top_model_heading(model, 3, text),
			    "table   50.0 % of 16.4k slots, 8.19k filled; stopped 0/s, retries 3/s");
}

MODEL_TEST(test_json)
{
	json_t *all, *line;

	scene->model.state = (struct top_state){ .name = "web", .effect = "filters" };
	feed(scene);
	all = top_model_json(&scene->model);
	line = json_array_get(json_object_get(all, "interfaces"), 0);
	assert_int_equal(json_integer_value(json_object_get(all, "dropped_pps")), 55);
	assert_string_equal(json_string_value(json_object_get(line, "interface")), "eth1");
	assert_int_equal(json_integer_value(json_object_get(line, "dropped_bps")), 20000);
	json_decref(all);
}

TEST_MAIN(NULL, NULL)
